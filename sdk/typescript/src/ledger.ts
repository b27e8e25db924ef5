/**
 * What happened to each client-tool call, kept where a crash cannot lose it.
 *
 * A call is keyed by (chatId, callId). `claim` is recorded before the handler runs, so whatever happens next, it runs at
 * most once. A call that is `started` by somebody else (a process that died, or another that lives) is ambiguous: nobody
 * but the application can say what became of it.
 */
import { sha256 } from "./ed25519.js";
import { type Files, fileSystem, linkNew } from "./downloads.js";
import { inspect } from "./secrets.js";

export interface LedgerRecord {
  readonly chatId: string;
  readonly callId: string;
  readonly tool: string;
  readonly fingerprint: string;
  /** started: the handler may have run. finished: `output` is known, its delivery is not. resolved: over. */
  readonly state: "started" | "finished" | "resolved";
  readonly owner: string;
  readonly output: string | null;
  readonly isError: boolean;
  readonly note: string;
  /** Milliseconds since 1970. */
  readonly updatedAt: number;
}

type Awaitable<T> = T | Promise<T>;

/** Any store that keeps these promises will do; each method is atomic and durable when its promise resolves. */
export interface Ledger {
  /** Record `started` and give undefined, or give the record that is already there, untouched. */
  claim(call: Claim): Awaitable<LedgerRecord | undefined>;
  /** The handler's outcome, before it is delivered. Only a `started` call can finish. */
  finish(chatId: string, callId: string, output: string, isError: boolean): Awaitable<void>;
  /** The call is over (delivered, or the server has a result). Creates the record if there is none. */
  resolve(chatId: string, callId: string, note: string): Awaitable<void>;
  /** Remember how the last delivery attempt went. */
  note(chatId: string, callId: string, note: string): Awaitable<void>;
  get(chatId: string, callId: string): Awaitable<LedgerRecord | undefined>;
  /** Calls that are `started` or `finished`, oldest first: what to reconcile after a crash. */
  unsettled(chatId?: string): Awaitable<LedgerRecord[]>;
  /** Drop resolved calls untouched for `olderThan` ms, and say how many. Keep them longer than any replay. */
  forget(olderThan: number): Awaitable<number>;
  /** Under which name calls are claimed from the server: the ledger's, so that its next life has them still. */
  holder?(): Awaitable<string>;
  close?(): Awaitable<void>;
}

export interface Claim {
  readonly chatId: string;
  readonly callId: string;
  readonly tool: string;
  readonly fingerprint: string;
  readonly owner: string;
}

/** A record that prints no output. */
class Entry implements LedgerRecord {
  declare readonly chatId: string;
  declare readonly callId: string;
  declare readonly tool: string;
  declare readonly fingerprint: string;
  declare readonly state: "started" | "finished" | "resolved";
  declare readonly owner: string;
  declare readonly output: string | null;
  declare readonly isError: boolean;
  declare readonly note: string;
  declare readonly updatedAt: number;

  constructor(fields: LedgerRecord) {
    Object.assign(this, fields);
  }

  [inspect](): string {
    return `<LedgerRecord ${this.callId} ${this.state}>`;
  }
}

const begun = (call: Claim): Entry =>
  new Entry({ ...call, state: "started", output: null, isError: false, note: "", updatedAt: Date.now() });

// The four transitions, as values: what each ledger stores. undefined: nothing changes.
type Change = (known: LedgerRecord | undefined) => LedgerRecord | undefined;

const finished =
  (output: string, isError: boolean): Change =>
  (known) =>
    known?.state === "started" ? { ...known, state: "finished", output, isError, updatedAt: Date.now() } : undefined;

// A resolved call needs no output any more: it is not kept at rest longer than it has to be.
const resolved =
  (chatId: string, callId: string, note: string): Change =>
  (known) => ({
    ...(known ?? { chatId, callId, tool: "", fingerprint: "", owner: "", isError: false }),
    state: "resolved",
    output: null,
    note,
    updatedAt: Date.now(),
  });

const noted =
  (note: string): Change =>
  (known) =>
    known === undefined ? undefined : { ...known, note, updatedAt: Date.now() };

const inOrder = (records: LedgerRecord[], chatId: string | undefined): LedgerRecord[] =>
  records
    .filter((record) => record.state !== "resolved" && (chatId === undefined || record.chatId === chatId))
    .sort((one, other) => one.updatedAt - other.updatedAt);

/** @internal */
export function uniqueId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A ledger that dies with the process: for tests, and for tools that may run again after a crash. */
export class MemoryLedger implements Ledger {
  readonly #records = new Map<string, LedgerRecord>();
  readonly #holder = uniqueId();

  claim(call: Claim): LedgerRecord | undefined {
    const known = this.get(call.chatId, call.callId);
    if (known === undefined) this.#records.set(`${call.chatId} ${call.callId}`, begun(call));
    return known;
  }

  finish(chatId: string, callId: string, output: string, isError: boolean): void {
    this.#change(chatId, callId, finished(output, isError));
  }

  resolve(chatId: string, callId: string, note: string): void {
    this.#change(chatId, callId, resolved(chatId, callId, note));
  }

  note(chatId: string, callId: string, note: string): void {
    this.#change(chatId, callId, noted(note));
  }

  get(chatId: string, callId: string): LedgerRecord | undefined {
    return this.#records.get(`${chatId} ${callId}`);
  }

  unsettled(chatId?: string): LedgerRecord[] {
    return inOrder([...this.#records.values()], chatId);
  }

  forget(olderThan: number): number {
    const old = [...this.#records].filter(([, { state, updatedAt }]) => state === "resolved" && updatedAt < Date.now() - olderThan);
    for (const [key] of old) this.#records.delete(key);
    return old.length;
  }

  holder(): string {
    return this.#holder;
  }

  #change(chatId: string, callId: string, change: Change): void {
    const changed = change(this.get(chatId, callId));
    if (changed !== undefined) this.#records.set(`${chatId} ${callId}`, new Entry(changed));
  }
}

/**
 * The default where there is a file system: a folder with one file per call, readable by its owner only, synced at every
 * step. Several processes may share a folder: a claim is a name that only one of them can create.
 */
export class FileLedger implements Ledger {
  readonly folder: string;
  #files: Promise<Files> | undefined;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(folder: string) {
    this.folder = folder.replace(/[\\/]+$/, "");
  }

  async claim(call: Claim): Promise<LedgerRecord | undefined> {
    const path = await this.#path(call.chatId, call.callId);
    return (await this.#create(path, begun(call))) ? undefined : await this.#read(path);
  }

  finish(chatId: string, callId: string, output: string, isError: boolean): Promise<void> {
    return this.#change(chatId, callId, finished(output, isError));
  }

  resolve(chatId: string, callId: string, note: string): Promise<void> {
    return this.#change(chatId, callId, resolved(chatId, callId, note));
  }

  note(chatId: string, callId: string, note: string): Promise<void> {
    return this.#change(chatId, callId, noted(note));
  }

  async get(chatId: string, callId: string): Promise<LedgerRecord | undefined> {
    return this.#read(await this.#path(chatId, callId));
  }

  async unsettled(chatId?: string): Promise<LedgerRecord[]> {
    return inOrder(await this.#all(), chatId);
  }

  async forget(olderThan: number): Promise<number> {
    const files = await this.#open();
    const old = (await this.#all()).filter(({ state, updatedAt }) => state === "resolved" && updatedAt < Date.now() - olderThan);
    for (const { chatId, callId } of old) await files.unlink(await this.#path(chatId, callId));
    return old.length;
  }

  async holder(): Promise<string> {
    const files = await this.#open();
    const path = `${this.folder}/holder`;
    await this.#createText(path, uniqueId());
    return (await files.readFile(path, "utf8")).trim();
  }

  #open(): Promise<Files> {
    this.#files ??= fileSystem().then(async (files) => {
      await files.mkdir(this.folder, { recursive: true, mode: 0o700 });
      return files;
    });
    return this.#files;
  }

  async #path(chatId: string, callId: string): Promise<string> {
    await this.#open();
    return `${this.folder}/${await sha256(new TextEncoder().encode(`${chatId}\n${callId}`))}.json`;
  }

  async #read(path: string): Promise<LedgerRecord | undefined> {
    const files = await this.#open();
    try {
      return new Entry(JSON.parse(await files.readFile(path, "utf8")) as LedgerRecord);
    } catch (problem) {
      if ((problem as { code?: string }).code === "ENOENT") return undefined;
      throw problem;
    }
  }

  async #all(): Promise<LedgerRecord[]> {
    const files = await this.#open();
    const names = (await files.readdir(this.folder)).filter((name) => /^[0-9a-f]{64}\.json$/.test(name));
    const records = await Promise.all(names.map((name) => this.#read(`${this.folder}/${name}`)));
    return records.filter((record) => record !== undefined);
  }

  #create(path: string, record: LedgerRecord): Promise<boolean> {
    return this.#createText(path, JSON.stringify(record));
  }

  /** Whether the file is new: written whole before it has its name. */
  async #createText(path: string, text: string): Promise<boolean> {
    const files = await this.#open();
    const part = await this.#writePart(files, path, text);
    try {
      await linkNew(files, part, path);
    } catch (problem) {
      await files.unlink(part).catch(() => undefined);
      if ((problem as { code?: string }).code === "EEXIST") return false;
      throw problem;
    }
    await this.#syncFolder(files);
    return true;
  }

  /** One change at a time: what is read is what is replaced. */
  #change(chatId: string, callId: string, change: Change): Promise<void> {
    const turn = this.#queue.then(async () => {
      const files = await this.#open();
      const path = await this.#path(chatId, callId);
      const changed = change(await this.#read(path));
      if (changed === undefined) return;
      await files.rename(await this.#writePart(files, path, JSON.stringify(changed)), path);
      await this.#syncFolder(files);
    });
    this.#queue = turn.catch(() => undefined);
    return turn;
  }

  async #writePart(files: Files, path: string, text: string): Promise<string> {
    const part = `${path}.${uniqueId()}.part`;
    const file = await files.open(part, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    return part;
  }

  /** Names are durable once their folder is; not every system lets one be opened. */
  async #syncFolder(files: Files): Promise<void> {
    const folder = await files.open(this.folder, "r").catch(() => undefined);
    try {
      await folder?.sync().catch(() => undefined);
    } finally {
      await folder?.close();
    }
  }
}

/** A ledger in the browser's database: it outlives the page and is shared by all pages of the origin. */
export class IndexedDbLedger implements Ledger {
  readonly name: string;
  #database: Promise<IDBDatabase> | undefined;

  constructor(name = "envai-client") {
    this.name = name;
  }

  claim(call: Claim): Promise<LedgerRecord | undefined> {
    return this.#transact((calls, done) => {
      const asked = calls.get([call.chatId, call.callId]);
      asked.onsuccess = () => {
        const known = asked.result as LedgerRecord | undefined;
        if (known === undefined) calls.put({ ...begun(call) });
        done(known && new Entry(known));
      };
    });
  }

  finish(chatId: string, callId: string, output: string, isError: boolean): Promise<void> {
    return this.#change(chatId, callId, finished(output, isError));
  }

  resolve(chatId: string, callId: string, note: string): Promise<void> {
    return this.#change(chatId, callId, resolved(chatId, callId, note));
  }

  note(chatId: string, callId: string, note: string): Promise<void> {
    return this.#change(chatId, callId, noted(note));
  }

  get(chatId: string, callId: string): Promise<LedgerRecord | undefined> {
    return this.#transact((calls, done) => {
      const asked = calls.get([chatId, callId]);
      asked.onsuccess = () => done(asked.result && new Entry(asked.result as LedgerRecord));
    });
  }

  async unsettled(chatId?: string): Promise<LedgerRecord[]> {
    return inOrder(await this.#all(), chatId);
  }

  async forget(olderThan: number): Promise<number> {
    const old = (await this.#all()).filter(({ state, updatedAt }) => state === "resolved" && updatedAt < Date.now() - olderThan);
    await this.#transact((calls, done) => {
      for (const { chatId, callId } of old) calls.delete([chatId, callId]);
      done(undefined);
    });
    return old.length;
  }

  async holder(): Promise<string> {
    const fresh = uniqueId();
    return this.#transact<string>((_, done, identity) => {
      const asked = identity.get("holder");
      asked.onsuccess = () => {
        if (asked.result === undefined) identity.put(fresh, "holder");
        done((asked.result as string | undefined) ?? fresh);
      };
    });
  }

  async close(): Promise<void> {
    (await this.#database)?.close();
    this.#database = undefined;
  }

  #all(): Promise<LedgerRecord[]> {
    return this.#transact((calls, done) => {
      const asked = calls.getAll();
      asked.onsuccess = () => done((asked.result as LedgerRecord[]).map((record) => new Entry(record)));
    });
  }

  #change(chatId: string, callId: string, change: Change): Promise<void> {
    return this.#transact((calls, done) => {
      const asked = calls.get([chatId, callId]);
      asked.onsuccess = () => {
        const changed = change(asked.result as LedgerRecord | undefined);
        if (changed !== undefined) calls.put({ ...changed });
        done(undefined);
      };
    });
  }

  /** What `work` says, once it is durable. */
  async #transact<T>(
    work: (calls: IDBObjectStore, done: (value: T) => void, identity: IDBObjectStore) => void,
  ): Promise<T> {
    this.#database ??= openDatabase(this.name);
    const database = await this.#database;
    return new Promise<T>((resolve, reject) => {
      const transaction = database.transaction(["calls", "identity"], "readwrite", { durability: "strict" });
      let result: T;
      transaction.oncomplete = () => resolve(result);
      transaction.onabort = transaction.onerror = () => reject(transaction.error ?? new Error("the ledger failed"));
      const done = (value: T): void => {
        result = value;
      };
      work(transaction.objectStore("calls"), done, transaction.objectStore("identity"));
    });
  }
}

function openDatabase(name: string): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open(name, 1);
    asked.onupgradeneeded = () => {
      asked.result.createObjectStore("calls", { keyPath: ["chatId", "callId"] });
      asked.result.createObjectStore("identity");
    };
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error ?? new Error("the ledger cannot be opened"));
  });
}

interface StateFolder {
  process?: { env: Record<string, string | undefined>; versions?: { node?: string } };
}

/** @internal Where calls are recorded unless the application says otherwise: files, else the browser's database. */
export function defaultLedger(): Ledger {
  const { process } = globalThis as StateFolder;
  if (process?.versions?.node !== undefined) {
    const home = process.env["HOME"] ?? process.env["USERPROFILE"] ?? ".";
    return new FileLedger(`${process.env["XDG_STATE_HOME"] || `${home}/.local/state`}/envai-client/tools`);
  }
  if ("indexedDB" in globalThis) return new IndexedDbLedger();
  throw new TypeError("this runtime keeps nothing: pass a ledger, or new MemoryLedger() to run without one");
}
