/** A download in progress. */
import { UnsafePathError } from "./errors.js";
import type { Reply } from "./http.js";
import { type Limits, limitsOf } from "./waits.js";

export const asyncDispose: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? (Symbol.for("Symbol.asyncDispose") as never);

export interface SaveOptions {
  /** The name appears complete or not at all (default). */
  atomic?: boolean;
  /** Replace a file that is there; refused otherwise. */
  overwrite?: boolean;
  timeout?: number;
  signal?: AbortSignal;
}

/** Iterate over its chunks, take it as a `stream()`, read its `bytes()` or `save()` it. Close it if you do none of these. */
export class ByteStream implements AsyncIterable<Uint8Array> {
  readonly #reply: Reply;
  readonly #limits: Limits;

  /** @internal */
  constructor(reply: Reply, limits: Limits) {
    this.#reply = reply;
    this.#limits = limits;
  }

  get contentType(): string | null {
    return this.#reply.headers.get("content-type");
  }

  get headers(): Headers {
    return this.#reply.headers;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    yield* chunks(this.#reply, this.#limits);
  }

  /** All of it. */
  async bytes(options?: { timeout?: number; signal?: AbortSignal }): Promise<Uint8Array> {
    return this.#reply.all(options === undefined ? this.#limits : limitsOf(options), Infinity);
  }

  /** A web stream of it; cancelling that closes the download. */
  stream(): ReadableStream<Uint8Array> {
    const source = this[Symbol.asyncIterator]();
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { value, done } = await source.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: () => this.close(),
    });
  }

  /** Write it to a file without holding it in memory, in runtimes that have files. Nothing is left behind on failure. */
  async save(destination: string, options: SaveOptions = {}): Promise<void> {
    const limits = options.timeout !== undefined || options.signal !== undefined ? limitsOf(options) : this.#limits;
    try {
      await writeFile(destination, chunks(this.#reply, limits), options);
    } finally {
      await this.close();
    }
  }

  async close(): Promise<void> {
    this.#reply.close();
  }

  async [asyncDispose](): Promise<void> {
    await this.close();
  }
}

async function* chunks(reply: Reply, limits: Limits): AsyncGenerator<Uint8Array, void> {
  try {
    for (let chunk = await reply.read(limits); chunk !== null; chunk = await reply.read(limits)) yield chunk;
  } finally {
    reply.close();
  }
}

/** @internal What is used of `node:fs/promises`, which Deno and Bun have too. */
export interface Files {
  open(path: string, flags: string, mode?: number): Promise<FileHandle>;
  link(from: string, to: string): Promise<void>;
  mkdir(path: string, options: { recursive: true; mode: number }): Promise<unknown>;
  readFile(path: string, encoding: "utf8"): Promise<string>;
  readdir(path: string): Promise<string[]>;
  rename(from: string, to: string): Promise<void>;
  stat(path: string): Promise<{ isDirectory(): boolean }>;
  unlink(path: string): Promise<void>;
}

/** @internal */
export interface FileHandle {
  writeFile(data: Uint8Array | string): Promise<void>;
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** @internal The file system, where there is one. A name of its own keeps bundlers from looking for it. */
export async function fileSystem(): Promise<Files> {
  const name = "node:fs/promises";
  try {
    return (await import(/* @vite-ignore */ /* webpackIgnore: true */ name)) as Files;
  } catch {
    throw new TypeError("this runtime has no file system");
  }
}

async function writeFile(destination: string, source: AsyncIterable<Uint8Array>, options: SaveOptions): Promise<void> {
  const { atomic = true, overwrite = false } = options;
  const files = await fileSystem();
  const [, folder = "", name = ""] = /^(.*[\\/])?([^\\/]*)$/s.exec(destination) ?? [];
  const there = await files.stat(destination).catch(() => undefined);
  if (name === "" || name === "." || name === ".." || there?.isDirectory()) {
    throw new UnsafePathError("the destination must be a file name, not a folder");
  }
  if (there !== undefined && !overwrite) throw new Error("the destination exists; pass overwrite to replace it");
  const part = atomic ? `${folder}.${name}.part` : destination;
  const file = await files.open(part, atomic || overwrite ? "w" : "wx");
  try {
    try {
      for await (const chunk of source) await file.writeFile(chunk);
      await file.sync();
    } finally {
      await file.close();
    }
    if (atomic) await (overwrite ? files.rename(part, destination) : linkNew(files, part, destination));
  } catch (problem) {
    await files.unlink(part).catch(() => undefined);
    throw problem;
  }
}

/** @internal Give `part` the name `path` unless it is taken: a rename could replace what appeared meanwhile. */
export async function linkNew(files: Files, part: string, path: string): Promise<void> {
  try {
    await files.link(part, path);
  } catch (problem) {
    const taken = (problem as { code?: string }).code === "EEXIST";
    if (taken || (await files.stat(path).catch(() => undefined)) !== undefined) throw problem;
    await files.rename(part, path); // a file system without links
    return;
  }
  await files.unlink(part);
}
