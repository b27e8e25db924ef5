/** What may be uploaded, and how it travels: as a stream, never copied whole. */

export type UploadContent = Blob | Uint8Array | ArrayBuffer | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

/**
 * A file (`File`, or a `Blob` such as the one of `fs.openAsBlob`), bytes, a stream of bytes, or all spelled out. Streams
 * of unknown length need a runtime that can send them (Node, Deno and Bun can; browsers ask for HTTP/2).
 */
export type Upload = UploadContent | { name: string; content: UploadContent; type?: string };

interface Part {
  head: string;
  content: UploadContent;
}

const OCTETS = "application/octet-stream";

/** @internal A form of fields and files as a request body, and its content type. */
export function multipart(fields: Record<string, string>, files: [string, Upload][]): { body: BodyInit; type: string } {
  const boundary = `envai-${Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  const parts: Part[] = [
    ...Object.entries(fields).map(([name, value]) => ({
      head: `Content-Disposition: form-data; name="${quoted(name)}"\r\n\r\n`,
      content: new TextEncoder().encode(value),
    })),
    ...files.map(([name, upload]) => filePart(name, upload)),
  ];
  const pieces: UploadContent[] = [];
  for (const part of parts) {
    pieces.push(new TextEncoder().encode(`--${boundary}\r\n${part.head}`), part.content, new TextEncoder().encode("\r\n"));
  }
  pieces.push(new TextEncoder().encode(`--${boundary}--\r\n`));
  const type = `multipart/form-data; boundary=${boundary}`;
  return { body: pieces.every(isWhole) ? new Blob(pieces as BlobPart[]) : streamed(pieces), type };
}

function isWhole(content: UploadContent): boolean {
  return content instanceof Blob || content instanceof Uint8Array || content instanceof ArrayBuffer;
}

function filePart(name: string, upload: Upload): Part {
  const spelled = typeof upload === "object" && "content" in upload;
  const content = spelled ? upload.content : upload;
  const own = content instanceof Blob ? content : undefined;
  const label = (spelled ? upload.name : undefined) ?? (own as File | undefined)?.name ?? "upload";
  const type = (spelled ? upload.type : undefined) || own?.type || OCTETS;
  if (/[\r\n]/.test(type)) throw new TypeError("an upload's type must be one line");
  const disposition = `form-data; name="${quoted(name)}"; filename="${quoted(label)}"`;
  return { head: `Content-Disposition: ${disposition}\r\nContent-Type: ${type}\r\n\r\n`, content };
}

function quoted(text: string): string {
  return text.replace(/\n/g, "%0A").replace(/\r/g, "%0D").replace(/"/g, "%22");
}

function streamed(pieces: UploadContent[]): ReadableStream<Uint8Array> {
  const chunks = chunksOf(pieces);
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value, done } = await chunks.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await chunks.return(undefined);
    },
  });
}

async function* chunksOf(pieces: UploadContent[]): AsyncGenerator<Uint8Array, void> {
  for (const piece of pieces) {
    if (piece instanceof Uint8Array) yield piece;
    else if (piece instanceof ArrayBuffer) yield new Uint8Array(piece);
    else yield* readAll(piece instanceof Blob ? piece.stream() : piece);
  }
}

/** @internal The chunks of a stream, also where `ReadableStream` is not iterable. */
export async function* readAll(
  source: ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void> {
  if (!("getReader" in source)) {
    yield* source;
    return;
  }
  const reader = source.getReader();
  try {
    for (let step = await reader.read(); !step.done; step = await reader.read()) yield step.value;
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
