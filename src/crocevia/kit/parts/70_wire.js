// ------------------------------------------------------------------------------------------- one turn on the wire

const TRIES = 6;
const SILENCE = 60000; // ms; only where the stream has shown that it says something every few seconds

/** Why a request was refused: {status, code, message, wait}. */
async function problemOf(response) {
  const later = response.headers.get("Retry-After");
  const seconds = later === null ? NaN : /^\d+$/.test(later.trim()) ? Number(later) : Math.ceil((Date.parse(later) - Date.now()) / 1000);
  let error = {};
  try {
    const body = JSON.parse((await response.text()).slice(0, 100000));
    if (isObject(body) && isObject(body.error)) error = body.error;
  } catch {
    // Whatever a server says when it fails, the status is enough to go on.
  }
  return { status: response.status, code: asText(error.code), message: asText(error.message), wait: seconds > 0 ? seconds : null };
}

function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      removeEventListener("online", end);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    addEventListener("online", end);
    signal.addEventListener("abort", end);
  });
}

const post = (address, body, signal) =>
  fetch(address, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "text/event-stream, application/json" },
    body: JSON.stringify(body),
    cache: "no-store",
    signal,
  });

/** Read one response: "ended", or "lost" if the line broke. */
async function readStream(response, onEvent) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder(); // keeps characters that are cut between two reads
  let pings = false;
  let timer = 0;
  const feed = eventParser(onEvent, () => (pings = true));
  try {
    for (;;) {
      const silent = pings && new Promise((resolve) => (timer = setTimeout(resolve, SILENCE, { silent: true })));
      const read = reader.read();
      const got = await (silent ? Promise.race([read, silent]) : read);
      clearTimeout(timer);
      if (got.silent) {
        read.catch(() => {});
        return "lost";
      }
      if (got.done) return "ended";
      feed(decoder.decode(got.value, { stream: true }));
    }
  } catch {
    return "lost";
  } finally {
    clearTimeout(timer);
    reader.cancel().catch(() => {});
  }
}

/** An answer that came in one piece, as the events that spell it. */
function unfold(reply, onEvent) {
  if (!isObject(reply) || reply.stop_reason === undefined) return false;
  if (reply.content) onEvent("delta", { text: reply.content });
  for (const call of Array.isArray(reply.tool_calls) ? reply.tool_calls : []) onEvent("tool_call", call);
  onEvent("done", reply);
  return true;
}

/** Post `body` and follow its answer, over broken lines too.
 *
 * hooks: event(name, data), complete() -> whether the answer has its end, reconnecting().
 * Gives {end: "finished" | "empty" | "lost" | "stopped"} or {end: "refused", problem}.
 */
async function follow(address, body, signal, hooks) {
  let seen = 0;
  let request = body;
  let refusal = null;
  const onEvent = (name, text) => {
    let data = text;
    if (typeof text === "string") {
      try {
        data = JSON.parse(text);
      } catch {
        data = null;
      }
    }
    seen += 1;
    tries = 0;
    hooks.event(name, data);
  };
  let tries = 0;
  for (;;) {
    let wait = 0;
    try {
      const response = await post(address, request, signal);
      if (!response.ok) {
        const problem = await problemOf(response);
        const passing = problem.status === 429 || problem.status >= 500;
        if (request === body) return { end: "refused", problem };
        if (!passing) return { end: "lost" };
        refusal = problem;
        wait = (problem.wait || 0) * 1000;
      } else if (!/^text\/event-stream/i.test(response.headers.get("Content-Type") || "")) {
        const text = await response.text();
        if (!text.trim()) return { end: "empty" };
        return { end: unfold(JSON.parse(text), onEvent) ? "finished" : "empty" };
      } else {
        refusal = null;
        await readStream(response, onEvent);
        if (hooks.complete()) return { end: "finished" };
      }
    } catch (error) {
      if (!signal.aborted && error instanceof SyntaxError) return { end: "lost" };
    }
    if (signal.aborted) return { end: "stopped" };
    tries += 1;
    if (tries > TRIES) return refusal ? { end: "refused", problem: refusal } : { end: "lost" };
    hooks.reconnecting();
    await pause(Math.max(wait, 250 * 2 ** tries * (0.75 + Math.random() / 2)), signal);
    if (signal.aborted) return { end: "stopped" };
    request = { versione: body.versione, tipo: "riprendi", conversazione: body.conversazione, turno: body.turno, progetto: body.progetto, lingua: body.lingua, dopo: seen };
  }
}

