/** Waiting, within a deadline and a caller's signal. */
import { CancelledError, RequestTimeoutError } from "./errors.js";

/** Until when to wait, on the clock of `now`, and whose signal to obey. */
export interface Limits {
  deadline?: number | undefined;
  signal?: AbortSignal | undefined;
}

export const now = (): number => performance.now();

export function deadlineOf(timeout: number | undefined): number | undefined {
  return timeout === undefined ? undefined : now() + timeout;
}

export function limitsOf(options: { timeout?: number; signal?: AbortSignal } | undefined): Limits {
  return { deadline: deadlineOf(options?.timeout), signal: options?.signal };
}

/** Milliseconds left, undefined without a deadline. Throws when none are left or the signal was aborted. */
export function remaining(limits: Limits): number | undefined {
  if (limits.signal?.aborted) throw new CancelledError(limits.signal.reason);
  if (limits.deadline === undefined) return undefined;
  const left = limits.deadline - now();
  if (left <= 0) throw new RequestTimeoutError("the operation's timeout has passed");
  return left;
}

/** Sleep at most until the deadline; throws CancelledError at once when the signal is aborted. */
export async function sleep(ms: number, limits: Limits = {}): Promise<void> {
  const left = remaining(limits);
  await within(new Promise<void>(() => {}), left === undefined ? ms : Math.min(ms, left), limits.signal, () => undefined);
}

/** Sleep; throws RequestTimeoutError at once if the deadline falls within. */
export async function pause(ms: number, limits: Limits): Promise<void> {
  if (limits.deadline !== undefined && now() + ms >= limits.deadline) {
    throw new RequestTimeoutError("the operation's timeout would pass before the next attempt");
  }
  await sleep(ms, limits);
}

/**
 * What `work` gives, or `late()` after `ms`, which may throw. The signal's abortion throws CancelledError. Either way
 * `work` is left to itself: whoever started it stops it.
 */
export function within<T>(
  work: Promise<T>,
  ms: number | undefined,
  signal: AbortSignal | undefined,
  late: () => T,
): Promise<T> {
  if (ms === undefined && signal === undefined) return work;
  return new Promise<T>((resolve, reject) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const done = (settle: () => void): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", aborted);
      settle();
    };
    const aborted = (): void => done(() => reject(new CancelledError(signal?.reason)));
    // A timer holds at most 2**31-1 ms; beyond that there is nothing to wait for.
    if (ms !== undefined && ms < 2 ** 31) {
      timer = setTimeout(() => {
        done(() => {
          try {
            resolve(late());
          } catch (problem) {
            reject(problem as Error);
          }
        });
      }, ms);
    }
    signal?.addEventListener("abort", aborted, { once: true });
    if (signal?.aborted) aborted();
    work.then(
      (value) => done(() => resolve(value)),
      (problem: unknown) => done(() => reject(problem as Error)),
    );
  });
}

/** Exponential with full jitter above one half. */
export function backoff(base: number, ceiling: number, attempt: number): number {
  return Math.min(ceiling, base * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2);
}
