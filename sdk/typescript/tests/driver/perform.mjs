// What a driver does for each command of conformance/DRIVER.md, in any runtime: nothing here knows where lines come from.

const PLACES = { api_keys: "apiKeys" };
const NAMES = { iterate_completions: "iterate" };
const camel = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const bytes = (base64) => Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
const base64 = (data) => btoa(Array.from(data, (byte) => String.fromCharCode(byte)).join(""));
const text = (data) => new TextDecoder().decode(data);

/** Milliseconds of a scenario's seconds, in our names; counts stay counts. */
const policy = (given) =>
  Object.fromEntries(
    Object.entries(given).map(([name, value]) => [
      name === "max_seconds" ? "maxTime" : camel(name),
      value === null || name === "max_retries" || name === "max_reconnects" ? value : value * 1000,
    ]),
  );

const OPTIONS = { after: "after", epoch: "epoch", include_pings: "includePings", on_expired: "onExpired" };

/**
 * `sdk` is the package; `ledger(path)` opens a durable one; `print(error)` says what the runtime's ways to print show.
 * `notify` sends a notice.
 */
export class Performer {
  constructor({ sdk, ledger, print, runtime, notify }) {
    Object.assign(this, { sdk, ledger, print, runtime, notify });
  }

  async reply({ id, do: what, ...given }) {
    if (!(what in COMMANDS)) return { id, unknown: true };
    const seen = {};
    try {
      return { id, result: (await COMMANDS[what].call(this, given, seen)) ?? {} };
    } catch (problem) {
      return { id, ...(seen.result ? { result: seen.result } : {}), error: this.told(problem) };
    }
  }

  told(problem) {
    if (!(problem instanceof this.sdk.EnvaiError)) return { class: problem?.name, message: problem?.stack, printed: "" };
    const { raw } = problem;
    const out = {
      class: problem.name,
      http_status: problem.httpStatus,
      type: problem.type,
      code: problem.code,
      message: problem.serverMessage,
      details: problem.details,
      request_id: problem.requestId,
      retry_after: problem.retryAfter === null ? null : problem.retryAfter / 1000,
      sent: problem.sent,
      last_seq: problem.lastSeq,
      reason: problem.reason,
      missing_from: problem.missingFrom,
      missing_to: problem.missingTo,
      chat: problem.chat && this.value(problem.chat),
      printed: this.print(problem),
    };
    if (raw instanceof Uint8Array) {
      try {
        out.raw = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(raw));
      } catch {
        out.raw_text = text(raw);
      }
    } else if (raw !== null) out.raw = raw;
    return out;
  }

  /** A result with the wire's names, what a resource does not know under `extra`. */
  value(given) {
    const { sdk } = this;
    if (given === undefined || given === null || typeof given !== "object") return given ?? null;
    if (Array.isArray(given)) return given.map((item) => this.value(item));
    if (given instanceof sdk.TurnResult) {
      const { chatId, turnId, text: words, terminalEvent, usage, cost, lastSeq, completed } = given;
      const ended = { terminal_event: terminalEvent.raw, usage, cost, last_seq: lastSeq, completed };
      return { chat_id: chatId, turn_id: turnId, text: words, ...ended };
    }
    if (given instanceof sdk.CompletionPage) {
      const { data, links, meta, extra } = given;
      return { data: this.value(data), links: this.value(links), meta: this.value(meta), extra };
    }
    if ("sourceChatId" in given) return { source_chat_id: given.sourceChatId, chat: this.value(given.chat) };
    const known = Object.entries(given).filter(([name]) => !(name in (given.extra ?? {})));
    const fields = Object.fromEntries(known.map(([name, item]) => [name, this.value(item)]));
    return given.extra === undefined ? fields : { ...fields, extra: given.extra };
  }

  /** The method of a façade name and the arguments it takes here. */
  call(step, more = []) {
    const [service, name] = step.call.split(".");
    const place = this.client[PLACES[service] ?? service];
    const method = NAMES[name] ?? camel(name);
    return () => place[method](...this.given(`${service}.${name}`, step), ...more);
  }

  given(name, step) {
    const kwargs = Object.fromEntries(Object.entries(step.kwargs ?? {}).map(([key, value]) => [key.replace(/_$/, ""), value]));
    const args = [...(step.args ?? [])];
    if (step.file) args.push({ name: step.file.name, content: bytes(step.file.base64), type: step.file.type });
    if (name in HELPERS) return HELPERS[name].call(this, args, kwargs, step);
    const id = Object.keys(this.sdk.OPERATIONS).find((each) => this.facade[each] === name);
    const { path, query = {}, header = {}, body = [] } = this.sdk.OPERATIONS[id];
    const ids = [...path.matchAll(/{(\w+)}/g)].map(() => args.shift() ?? kwargs[Object.keys(kwargs)[0]]);
    // The positional arguments after the path are the required ones, in the order of the contract.
    const names = [...Object.keys(query), ...Object.keys(header), ...body].filter((each) => this.required[id].includes(each));
    const params = { ...Object.fromEntries(args.map((value, at) => [names[at], value])), ...kwargs };
    const takes = [...Object.keys(query), ...Object.keys(header), ...body].length > 0;
    return takes ? [...ids, params] : ids;
  }

  turnOptions(step, kwargs) {
    const { idempotency_key, attachment_ids, ...rest } = kwargs;
    const options = this.streamOptions(rest);
    if (step.tools) options.tools = this.tools(step.tools);
    if (step.max_concurrency) options.maxConcurrency = step.max_concurrency;
    const extra = { ...(idempotency_key && { idempotency_key }), ...(attachment_ids && { attachment_ids }) };
    return [extra, options];
  }

  streamOptions(kwargs) {
    return Object.fromEntries(
      Object.entries(kwargs).map(([name, value]) => [
        OPTIONS[name] ?? camel(name),
        name === "timeout" ? value * 1000 : value === "raise" ? "throw" : value,
      ]),
    );
  }

  tools(given) {
    return Object.entries(given).map(([name, { schema, timeout, does }]) => ({
      name,
      parameters: schema,
      timeout: timeout * 1000,
      run: async (_, { signal }) => {
        this.notify({ notice: "entered", tool: name });
        const seconds = does.sleeps ?? does.meanwhile ?? ("until_cancelled" in does ? 20 : 0);
        if (seconds > 0) {
          await new Promise((resolve) => {
            const timer = setTimeout(resolve, seconds * 1000);
            signal.addEventListener("abort", () => (clearTimeout(timer), resolve()));
          });
        }
        this.notify({ notice: "left", tool: name, cancelled: signal.aborted });
        if ("raises" in does) throw new Error(does.raises);
        return "returns_size" in does ? "x".repeat(does.returns_size) : (does.returns ?? null);
      },
    }));
  }

  async take(step, seen) {
    const stop = new AbortController();
    const options = { ...this.streamOptions(step.kwargs ?? {}), signal: stop.signal };
    const stream = this.client.chats.events(...step.args, options);
    const run = step.tools ? this.client.chats.runClientTools(stream, this.tools(step.tools)) : stream;
    const events = [];
    try {
      while (events.length < step.take) {
        if (events.length === step.cancel_after) setTimeout(() => stop.abort(), 100);
        const { value, done } = await run.next();
        if (done) break;
        events.push(value);
      }
      stream.acknowledge();
    } finally {
      const { lastSeq, restarts } = stream;
      await run.return();
      seen.result = {
        events: events.map((event) => ({
          seq: event.seq,
          raw: event.raw,
          known: event.type !== "unknown",
          terminal: this.sdk.isTerminal(event),
        })),
        last_seq: lastSeq,
        restarts,
        texts: step.texts ? this.texts(step, events) : {},
      };
    }
    return seen.result;
  }

  texts(step, events) {
    const turn = new this.sdk.TurnAccumulator(step.turn);
    for (const event of events) turn.add(event);
    const names = Object.keys(step.texts);
    return Object.fromEntries(names.map((who) => [who, who === "orchestrator" ? turn.text : turn.textOf(who)]));
  }

  async during(step) {
    const stream = this.client.chats.sendAndStream(...this.given("chats.send_and_stream", step));
    let value = null;
    for await (const event of stream) {
      if (event.seq === step.during.after_seq) value = this.value(await this.call(step.during)());
    }
    return { value: this.value(stream.result()), during: value };
  }
}

const HELPERS = {
  "chats.send_and_wait"(args, kwargs, step) {
    const [chat, message] = args;
    const [extra, options] = this.turnOptions(step, kwargs);
    return [chat, { message, ...extra }, options];
  },
  "chats.send_and_stream"(args, kwargs, step) {
    return HELPERS["chats.send_and_wait"].call(this, args, kwargs, step);
  },
  "chats.fork_chat": (args) => args,
  "completions.list": (args, kwargs) => [...args, kwargs],
  "completions.iterate_completions": (args, kwargs) => [...args, kwargs],
  "files.download_to_file": (args) => args,
};

const COMMANDS = {
  async hello() {
    return { language: "typescript", sdk: this.sdk.VERSION, runtime: this.runtime };
  },
  async open({ base_url: baseUrl, api_key: apiKey, ledger, options }) {
    await COMMANDS.close.call(this);
    const settings = { baseUrl, apiKey, ledger: (this.book = await this.ledger(ledger)) };
    for (const [name, value] of Object.entries(options)) {
      settings[camel(name)] = typeof value === "object" ? policy(value) : value;
    }
    this.client = new this.sdk.EnvaiClient(settings);
  },
  async close() {
    await this.client?.close();
    await this.book?.close?.();
    this.client = this.book = undefined;
  },
  async play({ step, target }, seen) {
    if ("take" in step) return this.take(step, seen);
    if ("during" in step) return this.during(step);
    if ("saves" in step) return void (await this.call(step, [target])());
    const made = this.call(step)();
    if ("iterates" in step) {
      const items = [];
      for await (const item of await made) items.push(this.value(item));
      return { items };
    }
    return "bytes" in step ? { base64: base64(await (await made).bytes()) } : { value: this.value(await made) };
  },
  async ledger({ chat_id, call_id }) {
    return { state: (await this.client.ledger.get(chat_id, call_id))?.state ?? null };
  },
  async sse({ chunks, max_frame }) {
    const decoder = new this.sdk.SseDecoder(max_frame);
    return { frames: chunks.flatMap((chunk) => decoder.feed(bytes(chunk)).map(text)) };
  },
  async event({ frame }) {
    return { raw: this.sdk.parseEvent(bytes(frame)).raw };
  },
  async canonical({ json, ieee754 }) {
    if (json !== undefined) return { canonical: this.sdk.canonicalJson(JSON.parse(json)) };
    const view = new DataView(new ArrayBuffer(8));
    view.setBigUint64(0, BigInt(`0x${ieee754}`));
    return { canonical: this.sdk.canonicalJson(view.getFloat64(0)) };
  },
  async signature({ keys, request }) {
    return { valid: await this.sdk.verifyToolRequest({ keys }, request) };
  },
  async webhook({ jwks_url: webhookJwksUrl, body, headers, workspace_id, now }) {
    const client = new this.sdk.EnvaiClient({ baseUrl: webhookJwksUrl, webhookJwksUrl });
    const at = new Date(now * 1000);
    try {
      return { valid: true, event: await client.wiki.verifyWebhook(bytes(body), headers, workspace_id, { now: at }) };
    } catch (problem) {
      if (!(problem instanceof this.sdk.EnvaiError)) throw problem;
      return { valid: false, event: null };
    }
  },
  async operations() {
    return { operations: Object.keys(this.sdk.OPERATIONS) };
  },
};

/** The façade's name of each operation, and which arguments it must have: what the contract's inventory says. */
export function inventory(...documents) {
  const facade = {};
  const required = {};
  for (const { id, sdk, query, header, body } of documents.flatMap((document) => document.operations)) {
    facade[id] = sdk;
    required[id] = [...query, ...header, ...(body?.fields ?? [])].filter((item) => item.required).map((item) => item.name);
  }
  return { facade, required };
}
