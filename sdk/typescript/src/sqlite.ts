/** Ledger and webhook inbox in an SQLite database of yours: that of `node:sqlite`, `bun:sqlite` or better-sqlite3. */
import type { Claim, Ledger, LedgerRecord } from "./ledger.js";
import { uniqueId } from "./ledger.js";
import type { WebhookEvent } from "./webhooks.js";

/** What is used of a database. */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): {
    run(...values: (string | number | null)[]): { changes: number | bigint } | unknown;
    get(...values: (string | number | null)[]): unknown;
    all(...values: (string | number | null)[]): unknown[];
  };
}

type Values = (string | number | null)[];

// The tables of the Python SDK: programs in both languages may share a file.
const SCHEMA = `
CREATE TABLE IF NOT EXISTS tool_calls (
    chat_id TEXT NOT NULL, call_id TEXT NOT NULL, tool TEXT NOT NULL, fingerprint TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('started', 'finished', 'resolved')), owner TEXT NOT NULL,
    output TEXT, is_error INTEGER NOT NULL DEFAULT 0, note TEXT NOT NULL DEFAULT '', updated_at REAL NOT NULL,
    PRIMARY KEY (chat_id, call_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS identity (one INTEGER PRIMARY KEY CHECK (one = 1), holder TEXT NOT NULL) STRICT;
`;
const CLAIM = "INSERT INTO tool_calls VALUES (?, ?, ?, ?, 'started', ?, NULL, 0, '', ?) ON CONFLICT DO NOTHING";
const FINISH =
  "UPDATE tool_calls SET state = 'finished', output = ?, is_error = ?, updated_at = ?" +
  " WHERE chat_id = ? AND call_id = ? AND state = 'started'";
// A resolved call needs no output any more: it is not kept at rest longer than it has to be.
const RESOLVE =
  "INSERT INTO tool_calls VALUES (?, ?, '', '', 'resolved', '', NULL, 0, ?, ?)" +
  " ON CONFLICT DO UPDATE SET state = 'resolved', output = NULL, note = excluded.note," +
  " updated_at = excluded.updated_at";

/** Synced at every step. Several processes may share a file. */
export class SqliteLedger implements Ledger {
  readonly #database: SqliteDatabase;

  constructor(database: SqliteDatabase) {
    this.#database = database;
    database.exec("PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    database.exec(SCHEMA);
    this.#run("INSERT INTO identity VALUES (1, ?) ON CONFLICT DO NOTHING", uniqueId());
  }

  claim({ chatId, callId, tool, fingerprint, owner }: Claim): LedgerRecord | undefined {
    const isNew = this.#run(CLAIM, chatId, callId, tool, fingerprint, owner, Date.now() / 1000) > 0;
    return isNew ? undefined : this.get(chatId, callId);
  }

  finish(chatId: string, callId: string, output: string, isError: boolean): void {
    this.#run(FINISH, output, Number(isError), Date.now() / 1000, chatId, callId);
  }

  resolve(chatId: string, callId: string, note: string): void {
    this.#run(RESOLVE, chatId, callId, note, Date.now() / 1000);
  }

  note(chatId: string, callId: string, note: string): void {
    const sql = "UPDATE tool_calls SET note = ?, updated_at = ? WHERE chat_id = ? AND call_id = ?";
    this.#run(sql, note, Date.now() / 1000, chatId, callId);
  }

  get(chatId: string, callId: string): LedgerRecord | undefined {
    const sql = "SELECT * FROM tool_calls WHERE chat_id = ? AND call_id = ?";
    const row = this.#database.prepare(sql).get(chatId, callId);
    return row ? record(row as Row) : undefined;
  }

  unsettled(chatId?: string): LedgerRecord[] {
    const sql = "SELECT * FROM tool_calls WHERE state != 'resolved' AND chat_id = coalesce(?, chat_id) ORDER BY updated_at";
    return this.#database.prepare(sql).all(chatId ?? null).map((row) => record(row as Row));
  }

  forget(olderThan: number): number {
    const sql = "DELETE FROM tool_calls WHERE state = 'resolved' AND updated_at < ?";
    return this.#run(sql, (Date.now() - olderThan) / 1000);
  }

  holder(): string {
    return (this.#database.prepare("SELECT holder FROM identity").get() as { holder: string }).holder;
  }

  #run(sql: string, ...values: Values): number {
    return changesOf(this.#database, sql, values);
  }
}

function changesOf(database: SqliteDatabase, sql: string, values: Values): number {
  return Number((database.prepare(sql).run(...values) as { changes: number | bigint }).changes);
}

interface Row {
  chat_id: string;
  call_id: string;
  tool: string;
  fingerprint: string;
  state: LedgerRecord["state"];
  owner: string;
  output: string | null;
  is_error: number;
  note: string;
  updated_at: number;
}

function record({ chat_id: chatId, call_id: callId, is_error, updated_at, ...rest }: Row): LedgerRecord {
  return { chatId, callId, ...rest, isError: is_error !== 0, updatedAt: updated_at * 1000 };
}

const INBOX = `
CREATE TABLE IF NOT EXISTS envai_webhook_receipts (workspace_id TEXT NOT NULL, event_id TEXT NOT NULL,
 received_at REAL NOT NULL, PRIMARY KEY (workspace_id, event_id)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS envai_webhook_operations (workspace_id TEXT NOT NULL, operation_id TEXT NOT NULL,
 PRIMARY KEY (workspace_id, operation_id)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS envai_webhook_files (workspace_id TEXT NOT NULL, file_id TEXT NOT NULL,
 source_revision INTEGER NOT NULL, deleted INTEGER NOT NULL, PRIMARY KEY (workspace_id, file_id))
 STRICT, WITHOUT ROWID;
`;
const ADVANCE =
  "INSERT INTO envai_webhook_files VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET" +
  " source_revision = excluded.source_revision, deleted = excluded.deleted" +
  " WHERE excluded.source_revision > source_revision" +
  " OR (excluded.source_revision = source_revision AND excluded.deleted > deleted)";

/**
 * Take a verified event once: its receipt and what `job` writes commit together, or neither does. `job` is synchronous.
 *
 * duplicate: this event was taken before. stale: a newer revision of the file, or its operation's end, was. In both cases
 * `job` is not called. If `job` throws, nothing is kept and the next delivery tries again.
 */
export function receiveWebhook<D extends SqliteDatabase>(
  database: D,
  event: WebhookEvent,
  job: (database: D, event: WebhookEvent) => void,
): "accepted" | "duplicate" | "stale" {
  database.exec(INBOX);
  database.exec("BEGIN IMMEDIATE");
  try {
    const receipt = "INSERT INTO envai_webhook_receipts VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
    const isNew = changesOf(database, receipt, [event.workspace_id, event.event_id, Date.now() / 1000]) > 0;
    const verdict = !isNew ? "duplicate" : advances(database, event) ? "accepted" : "stale";
    if (verdict === "accepted") job(database, event);
    database.exec("COMMIT");
    return verdict;
  } catch (problem) {
    database.exec("ROLLBACK");
    throw problem;
  }
}

/** Whether `event` moves its file or operation forward; records that it did. A late event revives nothing. */
function advances(database: SqliteDatabase, event: WebhookEvent): boolean {
  if ("file_id" in event) {
    const deleted = Number("lifecycle" in event);
    return changesOf(database, ADVANCE, [event.workspace_id, event.file_id, event.source_revision, deleted]) === 1;
  }
  const sql = "INSERT INTO envai_webhook_operations VALUES (?, ?) ON CONFLICT DO NOTHING";
  return changesOf(database, sql, [event.workspace_id, event.operation_id]) === 1;
}
