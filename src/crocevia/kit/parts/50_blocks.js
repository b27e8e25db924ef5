// ------------------------------------------------------------------------------------------------ Markdown: blocks

/* Text -> blocks -> trees. Supported: paragraphs, headings, lists, quotes, tables, code, bold, italic, struck text,
 * links. Everything else, HTML above all, is text.
 *
 * A block that grows long goes on as another one that `joins` it: what is drawn again with every delta stays small,
 * whatever a model writes, and the reader sees one block. Where a block is cut depends only on what stands before, so
 * that streamed and whole texts are cut alike. */

const FENCE = /^\s*(`{3,}|~{3,})[^`]*$/;
const FENCE_END = /^\s*(`{3,}|~{3,})\s*$/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*$/;
const RULE = /^ {0,3}(?:-{3,}|\*{3,}|_{3,})[ \t]*$/;
const ITEM = /^( {0,99})(?:([-*+•])|(\d{1,9})[.)])[ \t]+(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const TABLE_RULE = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const LONG = 1500; // characters after which a block ends at the next good place: a sentence, a line, an item
const TOO_LONG = 3000; // a space will do
const HARD = 6000; // anywhere
const ROWS = 40; // lines of code, rows of a table
const TABLE = 600; // rows after which the header is said again: a browser measures every cell of a table each time
const SURE = 1000; // characters of a line after which nothing that follows changes what kind of line it is

function kindOf(line) {
  const short = line.length <= SURE;
  if (short && FENCE.test(line)) return "code";
  if (short && HEADING.test(line)) return "heading";
  if (short && RULE.test(line)) return "rule";
  if (ITEM.test(line)) return "list";
  return QUOTE.test(line) ? "quote" : "text";
}

const isRow = (line) => line.length <= HARD && line.slice(0, SURE).includes("|");
const isBlank = (line) => line.length <= SURE && !line.trim();

/** Whether a line of this kind belongs to the open block, or to the one that is to be joined. */
function continues(block, kind, line) {
  if (block.kind === "list") return kind === "list" || (kind !== "code" && (/^ {2,99}\S/.test(line) || (!block.blank && kind === "text")));
  if (block.kind === "table") return kind === "text" && isRow(line);
  if (block.kind === "quote") return kind === "quote";
  return block.kind === "paragraph" && kind === "text";
}

/** A delimiter row makes a table of the line before it. */
function becomesTable(block, line) {
  return block.kind === "paragraph" && !block.joins && block.lines.length === 1 && isRow(block.lines[0]) && line.length <= SURE && line.includes("|") && TABLE_RULE.test(line);
}

function isOuterItem(block, line) {
  const found = ITEM.exec(line);
  return found !== null && found[1].length < block.base + 2;
}

function isFenceEnd(block, line) {
  const end = line.length <= SURE && FENCE_END.exec(line);
  return Boolean(end) && end[1][0] === block.fence[0] && end[1].length >= block.fence.length;
}

/** Whether the block is so long that its next line begins another one. */
function isFull(block) {
  if (block.kind === "table") return block.lines.length >= ROWS + 2 || (block.lines.length > 2 && block.size > TOO_LONG);
  if (block.kind === "code") return block.lines.length >= ROWS || block.size > TOO_LONG;
  if (block.kind === "list") return block.size > HARD;
  return block.size > LONG;
}

/** Where the line is cut, as [end, begin of the rest], or null. */
function cutPlace(block, line) {
  const used = block.size;
  if (block.kind === "heading" || block.kind === "table" || used + line.length <= LONG) return null;
  const from = Math.max(0, LONG - used);
  const hard = Math.max(1, HARD - used);
  if (block.kind !== "code") {
    const [sentence] = sentenceBreaks(line.slice(from, from + TOO_LONG));
    const space = line.slice(0, hard).indexOf(" ", Math.max(0, TOO_LONG - used));
    if (sentence && (space < 0 || from + sentence[0] < space)) return [from + sentence[0], from + sentence[1]];
    if (space >= 0) return [space, space + 1];
  }
  if (line.length <= hard) return null;
  const whole = /[\uD800-\uDBFF]/.test(line[hard - 1]) ? hard + 1 : hard;
  return [whole, whole];
}

/** What a block that goes on hands to the one that joins it. inside: it goes on in the middle of a line. */
function thread(block, inside) {
  const { kind, base, fence, columns, head } = block;
  return { kind, base, fence, columns, head, rows: (block.rows || 0) + (block.lines || []).length, inside, blank: false };
}

/** {blocks, stable, goes}. A block: {kind, lines, joins, goes, firm}; firm: nothing that follows can change it. Reading
 * may go on from `stable` with what `goes` on there: hand it in with the rest of the text. */
function splitBlocks(text, goes) {
  const blocks = [];
  let block = null;
  let joins = goes || null;
  let free = { at: 0, goes: joins }; // where reading may go on if every block is firm

  function close(firm) {
    if (block) block.firm = firm;
    block = null;
  }

  function open(kind, start, joined, more) {
    block = Object.assign({ firm: false, size: 0, start, joins: joined, goes: joined }, thread(joined || { kind }, false), { lines: [] }, more);
    blocks.push(block);
    joins = null;
  }

  /** Open what joins the block before; a table that is long already is begun anew. */
  function goOn(start) {
    const goes = joins;
    if (goes.kind !== "table" || goes.rows < TABLE) return open(goes.kind, start, goes);
    return open("table", start, null, { goes, head: goes.head, columns: goes.columns, lines: [goes.head, "|-|"] });
  }

  /** The open block is at its end for now; what follows joins it. */
  function turnOver(start, inside) {
    const following = thread(block, inside);
    close(true);
    free = { at: start, goes: following };
    joins = following;
  }

  function add(text, from) {
    let line = text;
    let start = from;
    for (;;) {
      const cut = cutPlace(block, line);
      block.lines.push(cut ? line.slice(0, cut[0]) : line);
      block.size += (cut ? cut[0] : line.length) + 1;
      if (!cut) return;
      start += cut[1];
      line = line.slice(cut[1]);
      turnOver(start, true);
      if (!line) return;
      goOn(start);
    }
  }

  /** A line after a block that was cut: joins it, or does not. Whether it is dealt with. */
  function resume(line, start, complete) {
    if (joins.inside && !line) return true; // it was cut at the end of its line
    const kind = joins.inside ? null : kindOf(line);
    if (joins.kind === "code" && !joins.inside && isFenceEnd(joins, line)) {
      if (complete) joins = null;
      return true;
    }
    if (joins.kind === "list" && isBlank(line) && !joins.inside) {
      joins = Object.assign({}, joins, { blank: true });
      return true;
    }
    const outer = joins.kind === "list" && !joins.inside && isOuterItem(joins, line);
    if (joins.inside || joins.kind === "code" || (!isBlank(line) && !outer && continues(joins, kind, line))) {
      goOn(start);
      add(line, start);
      return true;
    }
    joins = null;
    return false;
  }

  function place(line, start, complete) {
    const sure = complete || line.length > SURE;
    if (!block && joins && resume(line, start, complete)) return;
    if (block && block.kind === "code") {
      if (isFenceEnd(block, line)) return close(sure);
      if (isFull(block)) {
        turnOver(start, false);
        goOn(start);
      }
      return add(line, start);
    }
    if (isBlank(line)) {
      if (block && block.kind === "list") block.blank = true;
      else close(sure);
      return;
    }
    const kind = kindOf(line);
    if (block && becomesTable(block, line)) {
      block.kind = "table";
      block.head = block.lines[0];
      block.columns = cellsOf(block.head).length;
      return add(line, start);
    }
    if (block && continues(block, kind, line)) {
      const outer = block.kind === "list" && isOuterItem(block, line);
      if (!outer && isFull(block)) {
        turnOver(start, false);
        goOn(start);
      }
      if (!outer || (block.size <= LONG && !block.joins)) {
        block.blank = false;
        return add(line, start);
      }
    }
    close(sure);
    begin(kind, line, start);
    if (kind === "heading" || kind === "rule") close(sure);
  }

  function begin(kind, line, start) {
    if (kind === "code") return open(kind, start, null, { fence: FENCE.exec(line)[1] });
    open(kind === "text" ? "paragraph" : kind, start, null, kind === "list" ? { base: ITEM.exec(line)[1].length } : null);
    add(line, start);
  }

  for (let at = 0; at < text.length; ) {
    const found = text.indexOf("\n", at);
    const end = found < 0 ? text.length : found;
    place(text.slice(at, end).replace(/\r$/, ""), at, found >= 0);
    if (found < 0) break;
    at = found + 1;
    if (joins && joins.inside && !block) joins = Object.assign({}, joins, { inside: false });
    free = { at, goes: joins };
  }
  const first = blocks.findIndex((one) => !one.firm);
  if (first < 0) return { blocks, stable: free.at, goes: free.goes };
  for (const one of blocks.slice(first)) one.firm = false; // its place may still change
  return { blocks, stable: blocks[first].start, goes: blocks[first].goes };
}

