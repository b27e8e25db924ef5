// ------------------------------------------------------------------------------------------------- Markdown: trees

/* A tree is a string or {t: tag, k: class, a: attributes, c: children}; only the functions of this part and of the
 * next one choose tags and attributes. */

const DEPTH = 4;

/** The tree of a block. open: more may come, so that marks without an end count as ended by it. A block that joins
 * another gives what is to be put into that one (code, a list, a table), or what stands below it without a gap. */
function blockTree(block, open, depth) {
  const { lines, joins } = block;
  const follows = joins ? "pc-segue" : undefined;
  switch (block.kind) {
    case "code": {
      const code = { t: "code", c: [lines.join("\n")] };
      return joins ? code : { t: "pre", k: "pc-codice", a: { tabindex: "0" }, c: [code] };
    }
    case "heading": {
      const [, marks, text] = HEADING.exec(lines[0]);
      return { t: "p", k: "pc-titolo pc-titolo-" + Math.min(marks.length, 4), c: inline(text, open) };
    }
    case "rule":
      return { t: "hr" };
    case "list":
      return joins ? itemRest(lines, open, depth || 0, block) : listTree(lines, open, depth || 0);
    case "quote":
      return quoteTree(block, open, depth || 0, follows);
    case "table":
      return joins ? { t: "tbody", c: lines.map((line) => rowTree(line, block.columns, open)) } : tableTree(block, open);
    default:
      return { t: "p", k: follows, c: breakSentences(inline(lines.join("\n"), open)) };
  }
}

function quoteTree(block, open, depth, follows) {
  const raw = block.joins && block.joins.inside ? 1 : 0; // the rest of a line that was cut has no mark
  const inner = block.lines.map((line, index) => (index < raw ? line : QUOTE.exec(line)[1])).join("\n");
  const children = depth >= DEPTH ? [inner] : splitBlocks(inner).blocks.map((one) => blockTree(one, open, depth + 1));
  return { t: "blockquote", k: follows, c: children };
}

function listTree(lines, open, depth) {
  const items = []; // {ordered, start, text, inner}
  const base = ITEM.exec(lines[0])[1].length;
  for (const line of lines) {
    const found = ITEM.exec(line);
    const last = items[items.length - 1];
    if (found && (found[1].length < base + 2 || !last)) items.push({ ordered: found[3] !== undefined, start: found[3], text: [found[4]], inner: [] });
    else if (found || (last.inner.length && /^ {2,}/.test(line))) last.inner.push(line);
    else last.text.push(line.trim());
  }
  const groups = [];
  for (const item of items) {
    const group = groups[groups.length - 1];
    const content = breakSentences(inline(item.text.join("\n"), open));
    const li = { t: "li", c: content.concat(innerTrees(item.inner, open, depth)) };
    if (group && (group.t === "ol") === item.ordered) group.c.push(li);
    else groups.push({ t: item.ordered ? "ol" : "ul", a: item.ordered && item.start !== "1" ? { start: String(Number(item.start)) } : {}, c: [li] });
  }
  return groups.length === 1 ? groups[0] : { t: "div", c: groups };
}

function innerTrees(lines, open, depth) {
  if (!lines.length) return [];
  return [depth < DEPTH ? listTree(lines, open, depth + 1) : lines.join("\n")];
}

/** What goes on in the last item of a list: the rest of its text, then the lists in it. */
function itemRest(lines, open, depth, block) {
  const raw = block.joins.inside ? 1 : 0;
  const found = lines.findIndex((line, index) => index >= raw && ITEM.test(line));
  const text = found < 0 ? lines : lines.slice(0, found);
  const content = breakSentences(inline(text.map((line) => line.trim()).join("\n"), open));
  return { t: "div", k: "pc-segue", c: content.concat(found < 0 ? [] : innerTrees(lines.slice(found), open, depth)) };
}

const cellsOf = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\\|/g, "|"));

function rowTree(line, columns, open) {
  const found = cellsOf(line);
  return { t: "tr", c: Array.from({ length: columns }, (_, index) => ({ t: "td", c: inline(found[index] || "", open) })) };
}

function tableTree(block, open) {
  const [head, , ...rows] = block.lines;
  const header = { t: "tr", c: cellsOf(head).map((cell) => ({ t: "th", a: { scope: "col" }, c: inline(cell, open) })) };
  const body = { t: "tbody", c: rows.map((line) => rowTree(line, block.columns, open)) };
  return { t: "div", k: "pc-tabella", a: { tabindex: "0" }, c: [{ t: "table", c: [{ t: "thead", c: [header] }, body] }] };
}

/** The text of a tree as it is read. */
function plainText(tree) {
  if (typeof tree === "string") return tree;
  if (tree.t === "br" || tree.t === "hr") return "\n";
  const inner = (tree.c || []).map(plainText).join(tree.t === "tr" ? " · " : "");
  return ["li", "tr", "p", "ul", "ol", "pre", "div"].includes(tree.t) ? "\n" + inner + "\n" : inner;
}

/** Children with a line break after every sentence, also where a sentence ends inside bold text. */
function breakSentences(children) {
  const flat = children.map(flatText).join("");
  const breaks = sentenceBreaks(flat);
  if (!breaks.length) return children;
  let offset = 0;
  let next = 0;
  const walk = (child) => {
    if (typeof child !== "string") {
      if (child.t === "br" || child.t === "code") {
        offset += flatText(child).length;
        return [child];
      }
      return [Object.assign({}, child, { c: child.c.flatMap(walk) })];
    }
    const out = [];
    const start = offset;
    let from = 0;
    while (next < breaks.length && breaks[next][0] < start + child.length) {
      const [begin, end] = breaks[next];
      if (begin >= start) out.push(child.slice(from, begin - start), { t: "br" });
      from = Math.min(child.length, end - start);
      if (end > start + child.length) break;
      next += 1;
    }
    offset = start + child.length;
    out.push(child.slice(from));
    return out.filter((piece) => piece !== "");
  };
  return children.flatMap(walk);
}

function flatText(child) {
  if (typeof child === "string") return child;
  if (child.t === "br") return "\n";
  return child.t === "code" ? "x".repeat(child.c[0].length) : child.c.map(flatText).join("");
}

/** The trees of a whole text. */
const markdown = (text) => splitBlocks(text).blocks.map((block) => blockTree(block, false));

