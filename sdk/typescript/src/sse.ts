/** Server-sent events out of bytes, however the network cut them. */
import { InvalidFrameError } from "./errors.js";
import { joined } from "./http.js";

const LF = 10;
const CR = 13;
const NOTHING = new Uint8Array();

/**
 * Feed bytes, get the `data` of each completed event. Comments and other fields are read and dropped. A frame left open
 * at the end of the stream is incomplete and never delivered. Throws InvalidFrameError beyond `maxFrame` bytes.
 */
export class SseDecoder {
  readonly maxFrame: number;
  #pieces: Uint8Array[] = []; // of a line that has not ended
  #pending = 0;
  #data: Uint8Array[] = [];
  #size = 0;
  #afterCr = false;
  #mark: Uint8Array | undefined = NOTHING; // what came so far, while that may be the byte order mark

  constructor(maxFrame: number = 16 * 1024 * 1024) {
    this.maxFrame = maxFrame;
  }

  /** The events that `chunk` completes, as UTF-8 bytes. */
  feed(chunk: Uint8Array): Uint8Array[] {
    const out: Uint8Array[] = [];
    let bytes = this.#mark === undefined ? chunk : this.#skipMark(chunk);
    // A CR ends the line at once; the LF of a CRLF may still be on its way.
    if (this.#afterCr && bytes.length > 0) {
      if (bytes[0] === LF) bytes = bytes.subarray(1);
      this.#afterCr = false;
    }
    let cr = bytes.indexOf(CR);
    let start = 0;
    for (let lf = bytes.indexOf(LF); lf >= 0 || cr >= 0; lf = bytes.indexOf(LF, start)) {
      const atCr = cr >= 0 && (lf < 0 || cr < lf);
      const end = atCr ? cr : lf;
      this.#line(this.#whole(bytes.subarray(start, end)), out);
      start = end + 1;
      if (!atCr) continue;
      if (bytes[start] === LF) start++;
      else if (start === bytes.length) this.#afterCr = true;
      cr = bytes.indexOf(CR, start);
    }
    if (start < bytes.length) {
      this.#pieces.push(bytes.subarray(start));
      this.#pending += bytes.length - start;
    }
    this.#bound(this.#pending + this.#size);
    return out;
  }

  #skipMark(chunk: Uint8Array): Uint8Array {
    const bytes = joined([this.#mark!, chunk], this.#mark!.length + chunk.length);
    const mark = [0xef, 0xbb, 0xbf];
    const length = Math.min(bytes.length, 3);
    const begun = mark.slice(0, length).every((byte, at) => bytes[at] === byte);
    if (begun && length < 3) {
      this.#mark = bytes;
      return NOTHING;
    }
    this.#mark = undefined;
    return begun ? bytes.subarray(3) : bytes;
  }

  #whole(last: Uint8Array): Uint8Array {
    if (this.#pending === 0) return last;
    const line = joined([...this.#pieces, last], this.#pending + last.length);
    this.#pieces = [];
    this.#pending = 0;
    return line;
  }

  #line(line: Uint8Array, out: Uint8Array[]): void {
    if (line.length === 0) {
      if (this.#data.length > 0) out.push(this.#frame());
      this.#data = [];
      this.#size = 0;
      return;
    }
    if (!isData(line)) return;
    const value = line.subarray(line[5] === 32 ? 6 : 5);
    this.#data.push(value);
    this.#size += value.length;
    this.#bound(this.#size);
  }

  #frame(): Uint8Array {
    if (this.#data.length === 1) return this.#data[0]!;
    const lines = this.#data.flatMap((line, at) => (at === 0 ? [line] : [Uint8Array.of(LF), line]));
    return joined(lines, this.#size + this.#data.length - 1);
  }

  #bound(size: number): void {
    if (size > this.maxFrame) throw new InvalidFrameError(`an event is larger than ${this.maxFrame} bytes`);
  }
}

/** Whether the field of a line is `data`: the name alone, or the name and a colon. */
function isData(line: Uint8Array): boolean {
  const named = line[0] === 100 && line[1] === 97 && line[2] === 116 && line[3] === 97;
  return named && (line.length === 4 || line[4] === 58);
}
