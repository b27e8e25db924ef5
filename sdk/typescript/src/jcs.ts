/** RFC 8785 canonical JSON: what is signed. */

/** The canonical text of a JSON value. Throws TypeError on what has none (NaN, infinities, lone surrogates). */
export function canonicalJson(value: unknown): string {
  try {
    return canonical(value);
  } catch (problem) {
    throw problem instanceof RangeError ? new TypeError("no canonical form: too deep") : problem;
  }
}

// ECMAScript's own numbers and strings are those of RFC 8785, and its sort compares UTF-16 code units.
function canonical(value: unknown): string {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") return quoted(value);
  if (typeof value === "number" && Number.isFinite(value)) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object") throw new TypeError(`no canonical form: ${typeof value}`);
  const fields = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${fields.map(([name, item]) => `${quoted(name)}:${canonical(item)}`).join(",")}}`;
}

function quoted(text: string): string {
  if (/\p{Surrogate}/u.test(text)) throw new TypeError("no canonical form: half of a surrogate pair");
  return JSON.stringify(text);
}
