/** Where a reader is in a chat's log: duplicates, gaps, epochs and restarted numbering. Pure state, no I/O. */
import { CursorExpiredError, ReplayGapError } from "./errors.js";
import { type Event, moment } from "./events.js";

const REMEMBERED = 1024;

export type Verdict = "deliver" | "drop" | "replay";

/**
 * Judges each event against the last one delivered. `lastSeq` moves only in `settle`, after the application has taken
 * the event. `connected` starts a connection.
 */
export class Cursor {
  readonly chatId: string;
  lastSeq: number;
  epoch: string | null;
  /** Whether this connection's replay is over. */
  live = false;
  #replaying = false;
  #ids = new Map<number, string>();
  #latest: string | undefined; // the latest moment by the server's own clock

  constructor(chatId: string, lastSeq = 0, epoch: string | null = null) {
    if (!Number.isInteger(lastSeq) || lastSeq < 0) throw new RangeError("after must be an integer from 0 on");
    this.chatId = chatId;
    this.lastSeq = lastSeq;
    this.epoch = epoch;
  }

  /** A new connection answered. Throws CursorExpiredError if it serves another epoch. */
  connected(epoch: string | null): void {
    this.live = false;
    this.#seeEpoch(epoch);
  }

  /** What to do with an event of this chat. Throws ReplayGapError and CursorExpiredError. */
  judge(event: Event): Verdict {
    this.#seeEpoch(event.epoch);
    if (event.type === "ping") {
      this.live = true;
      this.#see(event.ts);
      return "deliver";
    }
    if (event.seq <= this.lastSeq) {
      this.#checkRestart(event);
      return "drop";
    }
    if (event.seq === this.lastSeq + 1) {
      this.#replaying = false;
      return "deliver";
    }
    if (this.#replaying) {
      const { chatId, lastSeq } = this;
      throw new ReplayGapError({ chatId, missingFrom: lastSeq + 1, missingTo: event.seq - 1, lastSeq });
    }
    this.#replaying = true;
    return "replay";
  }

  /** The application has taken `event`. */
  settle(event: Event): void {
    if (event.type === "ping") return;
    this.lastSeq = event.seq;
    this.#see(event.ts);
    this.#ids.set(event.seq, event.id);
    this.#ids.delete(event.seq - REMEMBERED);
  }

  /** Begin again at zero, as another log: only ever on the caller's explicit policy. */
  restart(epoch: string | null): void {
    this.lastSeq = 0;
    this.epoch = epoch;
    this.live = false;
    this.#replaying = false;
    this.#ids.clear();
    this.#latest = undefined;
  }

  #see(ts: string): void {
    if (this.#latest === undefined || (ts !== this.#latest && isLater(ts, this.#latest))) this.#latest = ts;
  }

  #seeEpoch(epoch: string | null): void {
    if (epoch === null) return;
    if (this.epoch !== null && epoch !== this.epoch) {
      throw new CursorExpiredError("", { reason: "epoch_changed", lastSeq: this.lastSeq, epoch });
    }
    this.epoch = epoch;
  }

  /**
   * An old number on a new event means the numbering began again (an epoch nobody announced). A duplicate has an id we
   * delivered, or is older than what we know by the server's own clock. Anything else is a restart: dropping it as a
   * duplicate would wait for ever.
   */
  #checkRestart(event: Event): void {
    if (this.#ids.get(event.seq) === event.id || this.#latest === undefined) return;
    if (moment(event.ts) > moment(this.#latest)) {
      throw new CursorExpiredError("", { reason: "sequence_reset", lastSeq: this.lastSeq, epoch: this.epoch });
    }
  }
}

function isLater(ts: string, known: string): boolean {
  // Times of one shape compare as texts.
  const alike = ts.length === known.length && ts.endsWith("Z") && known.endsWith("Z");
  return alike ? ts > known : moment(ts) > moment(known);
}
