// --------------------------------------------------------------------------------------------------- event stream

const MAX_LINE = 32 * 1024 * 1024; // characters, as much as a request may hold

/** Feed decoded text in any pieces; `onEvent(name, data)` gets each complete event, `onComment()` each comment. */
function eventParser(onEvent, onComment) {
  let pieces = []; // of a line that is not complete: joined once, so that a line of megabytes costs one pass
  let size = 0;
  let afterReturn = false;
  let name = "";
  let data = [];
  function line(text) {
    if (text === "") {
      if (data.length) onEvent(name || "message", data.join("\n"));
      name = "";
      data = [];
    } else if (text[0] === ":") {
      if (onComment) onComment();
    } else {
      const colon = text.indexOf(":");
      const field = colon < 0 ? text : text.slice(0, colon);
      const value = colon < 0 ? "" : text.slice(text[colon + 1] === " " ? colon + 2 : colon + 1);
      if (field === "event") name = value;
      else if (field === "data") data.push(value);
    }
  }
  return function feed(text) {
    if (!text) return;
    let start = afterReturn && text[0] === "\n" ? 1 : 0;
    afterReturn = text[text.length - 1] === "\r";
    const ends = /\r\n|\n|\r/g;
    ends.lastIndex = start;
    for (let end = ends.exec(text); end; end = ends.exec(text)) {
      pieces.push(text.slice(start, end.index));
      start = ends.lastIndex;
      line(pieces.join(""));
      pieces = [];
      size = 0;
    }
    if (start < text.length) {
      pieces.push(text.slice(start));
      size += text.length - start;
      if (size > MAX_LINE) throw new RangeError("a line of the stream is too long");
    }
  };
}

