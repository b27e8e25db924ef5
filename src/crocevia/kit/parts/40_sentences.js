// ------------------------------------------------------------------------------------------------------ sentences

const ABBREVIATIONS = new Set((
  "dr dott prof sig sigg ing avv arch geom rag art pag pagg cap es cfr vol n nr tel fig ca pp s spett gent egr lett " +
  "mr mrs ms st vs approx jr sr e.g i.e p.es sig.ra dott.ssa prof.ssa a.c d.c p.s n.b"
).split(" "));
const SENTENCE_END = /(?<![.!?…])[.!?…]+["'”»’)\]]*([^\S\n]+)(?=\S)/gu;

/** Where the white space after each sentence begins and ends, as [start, end] pairs. */
function sentenceBreaks(text) {
  const found = [];
  SENTENCE_END.lastIndex = 0;
  for (let match = SENTENCE_END.exec(text); match; match = SENTENCE_END.exec(text)) {
    const end = match.index + match[0].length;
    const next = String.fromCodePoint(text.codePointAt(end));
    if (/[\p{Ll},;:.)\]»”]/u.test(next)) continue;
    if (match[0][0] === "." && match[0][1] !== "." && isAbbreviation(text, match.index)) continue;
    found.push([end - match[1].length, end]);
  }
  return found;
}

function isAbbreviation(text, dot) {
  const before = text.slice(Math.max(0, dot - 24), dot);
  const word = /[^\s("'«“[]*$/.exec(before)[0];
  return ABBREVIATIONS.has(word.toLowerCase()) || /^(\p{Lu}\.)*\p{Lu}$/u.test(word) || /(^|\n)\s*\d{1,3}$/.test(before);
}

/** The sentences of a plain text; line ends are ends too. */
function sentences(text) {
  const out = [];
  for (const line of text.split("\n")) {
    let from = 0;
    for (const [start, end] of sentenceBreaks(line)) {
      out.push(line.slice(from, start).trim());
      from = end;
    }
    out.push(line.slice(from).trim());
  }
  return out.filter(Boolean);
}

