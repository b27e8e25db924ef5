// ------------------------------------------------------------------------------------------------ Markdown: inline

/** The address if it is one that a reader may be sent to, else null. */
function safeAddress(text) {
  if (!/^https?:\/\//i.test(text) || text.length > 2048) return null;
  try {
    const found = new URL(text);
    return found.protocol === "https:" || found.protocol === "http:" ? found.href : null;
  } catch {
    return null;
  }
}

const MARKS = { "**": "strong", __: "strong", "*": "em", _: "em", "~~": "del" };
const PLAIN = /[^\\`*_~[\]!h\n]+/y;
const DESTINATION = /\(\s*<?((?:[^\s()<>]|\([^\s()<>]*\)){1,2048})>?(?:\s+(?:"[^"\n]*"|'[^'\n]*'))?\s*\)/y;
const BARE = /https?:\/\/[^\s<>"'`|\\^{}]{1,2048}/iy;
const MAX_OPEN = 32; // marks open at once; more are text, so that no text costs more than one pass

/** Children of a tree from one block's text, in one pass. */
function inline(text, open) {
  const stack = [{ mark: "", c: [] }];
  const missing = new Set(); // lengths of backtick runs that have no end
  let held = "";
  let at = 0;
  const top = () => stack[stack.length - 1];
  const flush = () => {
    if (held) top().c.push(held);
    held = "";
  };
  const drop = () => {
    // An opened mark that never closes is text.
    flush();
    const frame = stack.pop();
    top().c.push(frame.mark);
    for (const child of frame.c) top().c.push(child);
  };
  const dropTo = (depth) => {
    while (stack.length > depth + 1) drop();
  };
  const wrap = (tag) => {
    flush();
    const frame = stack.pop();
    top().c.push({ t: tag, c: frame.c });
  };
  const find = (mark) => lastIndex(stack, (frame) => frame.mark === mark);

  function code() {
    const run = /`+/y;
    run.lastIndex = at;
    const ticks = run.exec(text)[0];
    const from = at + ticks.length;
    let end = -1;
    if (!missing.has(ticks.length)) {
      const runs = /`+/g;
      runs.lastIndex = from;
      for (let next = runs.exec(text); next; next = runs.exec(text)) {
        if (next[0].length === ticks.length) {
          end = next.index;
          break;
        }
      }
    }
    if (end < 0 && !(open && from < text.length && !missing.size)) {
      missing.add(ticks.length);
      held += ticks;
      at = from;
      return;
    }
    flush();
    const inner = text.slice(from, end < 0 ? text.length : end).replace(/\n/g, " ");
    top().c.push({ t: "code", c: [/^ .*\S.* $/.test(inner) ? inner.slice(1, -1) : inner] });
    at = end < 0 ? text.length : end + ticks.length;
  }

  function emphasis() {
    const ch = text[at];
    const double = text[at + 1] === ch;
    if (ch === "~" && !double) return literal(1);
    const inner = top().mark;
    const mark = double && !(inner === ch && text[at + 2] === ch) ? ch + ch : ch;
    const before = text[at - 1];
    const after = text[at + mark.length];
    const wordBefore = before !== undefined && /[\p{L}\p{N}]/u.test(before);
    const wordAfter = after !== undefined && /[\p{L}\p{N}]/u.test(after);
    const canClose = before !== undefined && !/\s/.test(before) && !(ch === "_" && wordAfter);
    const canOpen = after !== undefined && !/\s/.test(after) && !(ch === "_" && wordBefore);
    const depth = canClose ? find(mark) : -1;
    if (depth > 0 && (stack.length > depth + 1 || top().c.length || held)) {
      dropTo(depth);
      wrap(MARKS[mark]);
      at += mark.length;
    } else if (canOpen && stack.length <= MAX_OPEN && find(mark) < 0) {
      flush();
      stack.push({ mark, c: [] });
      at += mark.length;
    } else if (after === undefined && open) {
      at += mark.length; // what it is shows with the next piece
    } else {
      literal(mark.length);
    }
  }

  function bracket() {
    const depth = Math.max(find("["), find("!["));
    if (depth < 1) return literal(1);
    DESTINATION.lastIndex = at + 1;
    const found = DESTINATION.exec(text);
    const href = found && safeAddress(found[1]);
    if (!href && open && !found && /^\((?:[^\s()]*)$/.test(text.slice(at + 1, at + 2050))) {
      dropTo(depth); // the address is still coming: its label is all there is to read
      flush();
      const frame = stack.pop();
      for (const child of frame.c) top().c.push(child);
      at = text.length;
      return undefined;
    }
    if (!href) {
      dropTo(depth - 1);
      return literal(1);
    }
    dropTo(depth);
    flush();
    const frame = stack.pop();
    const label = withoutLinks(frame.c);
    top().c.push(link(href, label.length ? label : [href]));
    at = DESTINATION.lastIndex;
    return undefined;
  }

  function bare() {
    BARE.lastIndex = at;
    const found = /[\p{L}\p{N}]/u.test(text[at - 1] || " ") ? null : BARE.exec(text);
    if (!found) return literal(1);
    let shown = found[0].replace(/[.,;:!?*_~]+$/, "");
    for (const [opening, closing] of ["()", "[]"]) {
      while (shown.endsWith(closing) && shown.split(closing).length > shown.split(opening).length) shown = shown.slice(0, -1);
    }
    const href = safeAddress(shown);
    if (!href) return literal(1);
    flush();
    top().c.push(link(href, [shown]));
    at += shown.length;
    return undefined;
  }

  function literal(length) {
    held += text.slice(at, at + length);
    at += length;
  }

  function opening(mark) {
    if (stack.length > MAX_OPEN) return literal(mark.length);
    flush();
    stack.push({ mark, c: [] });
    at += mark.length;
    return undefined;
  }

  while (at < text.length) {
    PLAIN.lastIndex = at;
    const plain = PLAIN.exec(text);
    if (plain) {
      held += plain[0];
      at = PLAIN.lastIndex;
      continue;
    }
    const ch = text[at];
    if (ch === "\\" && /[!-/:-@[-`{-~]/.test(text[at + 1] || "")) {
      held += text[at + 1];
      at += 2;
    } else if (ch === "`") code();
    else if (ch === "*" || ch === "_" || ch === "~") emphasis();
    else if (ch === "[") opening("[");
    else if (ch === "!" && text[at + 1] === "[") opening("![");
    else if (ch === "]") bracket();
    else if (ch === "h") bare();
    else if (ch === "\n") {
      flush();
      top().c.push({ t: "br" });
      at += 1;
    } else literal(1);
  }
  while (stack.length > 1) {
    const mark = top().mark;
    if (open && MARKS[mark]) wrap(MARKS[mark]);
    else drop();
  }
  flush();
  return joinTexts(stack[0].c);
}

const link = (href, c) => ({ t: "a", a: { href, target: "_blank", rel: "noopener noreferrer nofollow" }, c });

function withoutLinks(children) {
  return children.flatMap((child) => (child.t === "a" ? child.c : [child]));
}

function joinTexts(children) {
  const out = [];
  for (const child of children) {
    if (typeof child === "string" && typeof out[out.length - 1] === "string") out[out.length - 1] += child;
    else if (child !== "") out.push(typeof child === "string" ? child : Object.assign({}, child, child.c && { c: joinTexts(child.c) }));
  }
  return out;
}

