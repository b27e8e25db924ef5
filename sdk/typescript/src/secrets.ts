/** Secrets stay out of whatever can be printed. */

export const HIDDEN = "***";
export const inspect: unique symbol = Symbol.for("nodejs.util.inspect.custom") as never;

// Keys, bearer tokens and anything shaped like a JWT.
const TOKEN = /envai_sk_[\w.-]+|\bbearer\s+[^\s"',;]+|\beyJ[\w-]{8,}\.[\w.-]+/gi;
const URLS = /\b(?:https?|wss?):\/\/[^\s"'<>]+/gi;

// What a text field may be called to be printed: names, states and ids, chosen by programs and not by people or models.
const PLAIN = new Set(
  (
    "aspect_ratio code currency alg basis crv error_code event_type finish_reason format id kid kind kty lifecycle " +
    "media_type mime_type mode model outcome provider role scope_status status tool tool_name type use"
  ).split(" "),
);

/** `url` without credentials, query and fragment: what may be logged of a signed URL. */
export function safeUrl(url: string): string {
  try {
    const { protocol, host, pathname, search } = new URL(url);
    return `${protocol}//${host}${pathname}${search ? `?${HIDDEN}` : ""}`;
  } catch {
    return HIDDEN;
  }
}

/** `text` with tokens and URL queries hidden: for messages written by others. */
export function scrub(text: string): string {
  return text.replace(TOKEN, HIDDEN).replace(URLS, safeUrl);
}

/** What to print of a value from the wire: ids, states and numbers as they are, of texts how long they are. */
export function redacted(name: string, value: object): string {
  const fields = Object.entries(value).map(([key, item]) => `${key}: ${shown(key, item)}`);
  return `${name} { ${fields.join(", ")} }`;
}

function shown(name: string, value: unknown): string {
  if (typeof value === "string") {
    const plain = (PLAIN.has(name) || name.endsWith("_id")) && value.length <= 255;
    return plain ? JSON.stringify(scrub(value)) : `<${value.length} characters>`;
  }
  if (value === null || typeof value !== "object") return String(value);
  return Array.isArray(value) ? `<${value.length} items>` : `<${Object.keys(value).length} fields>`;
}
