// -------------------------------------------------------------------------------------------------------- reducer

/* A chat is a value: {messages, model}. An answer: {role, turn, parts, actions, …}; its `parts` are texts and tools in
 * the order in which they came. `reduce` gives a new value and changes nothing. */

function emptyChat() {
  return { messages: [], model: null };
}

function emptyAnswer(turn) {
  return {
    role: "assistant", turn, parts: [], actions: [], stopReason: null, truncated: false, usage: null, version: null,
    novelty: null, blocks: null, error: null, closed: false,
  };
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const asText = (value) => (typeof value === "string" ? value : value === undefined || value === null ? "" : String(value));

/** Tokens of several calls in one answer: outputs add up, the last input already holds the earlier ones. */
function addUsage(before, usage) {
  if (!isObject(usage)) return before;
  const written = before && before.output_tokens;
  const now = usage.output_tokens;
  const both = typeof written === "number" && typeof now === "number";
  return Object.assign({}, usage, { output_tokens: before ? (both ? written + now : null) : (now === undefined ? null : now) });
}

const STREAM_EVENTS = {
  delta(answer, data) {
    const text = asText(data.text);
    if (!text) return answer;
    const parts = answer.parts.slice();
    const last = parts[parts.length - 1];
    if (last && last.kind === "text" && !last.closed) parts[parts.length - 1] = { kind: "text", text: last.text + text, closed: false };
    else parts.push({ kind: "text", text, closed: false });
    return Object.assign({}, answer, { parts, stopReason: null });
  },
  tool_call(answer, data) {
    const tool = { kind: "tool", id: asText(data.id), name: asText(data.name), arguments: data.arguments === undefined ? {} : data.arguments, state: "asked" };
    return Object.assign({}, answer, { parts: closeText(answer.parts).concat([tool]), stopReason: null });
  },
  done(answer, data) {
    return Object.assign({}, answer, {
      parts: closeText(answer.parts),
      stopReason: asText(data.stop_reason) || "end_turn",
      truncated: data.troncato === true,
      usage: addUsage(answer.usage, data.usage),
      version: data.versione ? asText(data.versione) : answer.version,
      blocks: Array.isArray(data.blocchi) ? data.blocchi : null,
    });
  },
  error(answer, data) {
    const seconds = Number(data.retry_after);
    const error = { code: asText(data.code), message: asText(data.message), wait: seconds > 0 ? Math.ceil(seconds) : null };
    return Object.assign({}, answer, { parts: closeText(answer.parts), error, closed: true });
  },
  pending(answer, data) {
    const given = (Array.isArray(data.actions) ? data.actions : []).filter((action) => isObject(action) && action.id !== undefined);
    const actions = given.map((action) => ({
      id: asText(action.id), name: asText(action.name), text: asText(action.text), arguments: action.arguments === undefined ? null : action.arguments, outcome: null,
    }));
    const ids = new Set(actions.map((action) => action.id));
    const kept = answer.actions.filter((action) => !ids.has(action.id));
    const parts = answer.parts.map((part) => (part.kind === "tool" && ids.has(part.id) ? Object.assign({}, part, { state: "waiting" }) : part));
    return Object.assign({}, answer, { parts, actions: kept.concat(actions) });
  },
};

/** No text is added to a part that another call wrote. */
function closeText(parts) {
  const last = parts[parts.length - 1];
  return last && last.kind === "text" && !last.closed ? parts.slice(0, -1).concat([Object.assign({}, last, { closed: true })]) : parts;
}

function changeTools(message, id, state, only) {
  if (message.role !== "assistant" || !message.parts.some((part) => part.kind === "tool" && part.id === id)) return message;
  const change = (part) => (part.kind === "tool" && part.id === id && (!only || part.state === only) ? Object.assign({}, part, { state }) : part);
  return Object.assign({}, message, { parts: message.parts.map(change) });
}

function replaceAt(list, index, value) {
  const copy = list.slice();
  copy[index] = value;
  return copy;
}

function lastIndex(list, test) {
  for (let index = list.length - 1; index >= 0; index--) if (test(list[index])) return index;
  return -1;
}

const CHAT_EVENTS = {
  user: (chat, event) => Object.assign({}, chat, { messages: chat.messages.concat([{ role: "user", turn: event.turn, text: event.text, attachments: event.attachments || [] }]) }),
  open: (chat, event) => Object.assign({}, chat, { messages: chat.messages.concat([emptyAnswer(event.turn)]) }),
  remove: (chat, event) => Object.assign({}, chat, { messages: chat.messages.filter((message) => message.turn !== event.turn || message.role === "user") }),
  close: (chat, event) => inAnswer(chat, event.turn, (answer) => Object.assign({}, answer, { parts: closeText(answer.parts), closed: true })),
  model: (chat, event) => Object.assign({}, chat, { model: event.name }),
  outcome(chat, event) {
    const messages = chat.messages.map((message) => {
      if (message.role !== "assistant" || !message.actions.some((action) => action.id === event.id)) return message;
      const actions = message.actions.map((action) => (action.id === event.id ? Object.assign({}, action, { outcome: event.outcome }) : action));
      return changeTools(Object.assign({}, message, { actions }), event.id, event.outcome === "denied" ? "denied" : event.outcome ? "asked" : "waiting");
    });
    return Object.assign({}, chat, { messages });
  },
  /** A history in the form of the agent call's `messages`. */
  history(chat, event) {
    let state = chat;
    (Array.isArray(event.messages) ? event.messages : []).filter(isObject).forEach((message, index) => {
      const turn = "history-" + index;
      if (message.role === "user") state = CHAT_EVENTS.user(state, Object.assign({ turn }, spoken(message.content)));
      else if (message.role === "tool") state = reduce(state, { turn: null, name: "tool_done", data: { id: message.tool_call_id } });
      else if (message.role === "assistant") {
        state = CHAT_EVENTS.open(state, { turn });
        state = reduce(state, { turn, name: "delta", data: { text: asText(message.content) } });
        for (const call of Array.isArray(message.tool_calls) ? message.tool_calls : []) if (isObject(call)) state = reduce(state, { turn, name: "tool_call", data: call });
        state = CHAT_EVENTS.close(state, { turn });
      }
    });
    return state;
  },
};

/** What a user message of a history shows: its texts and the names of its files. */
function spoken(content) {
  if (!Array.isArray(content)) return { text: asText(content), attachments: [] };
  const blocks = content.filter(isObject);
  return {
    text: blocks.filter((block) => block.tipo === "testo").map((block) => asText(block.testo)).join("\n"),
    attachments: blocks.filter((block) => block.tipo === "documento").map((block) => ({ name: asText(block.nome) })),
  };
}

function inAnswer(chat, turn, change) {
  const index = lastIndex(chat.messages, (message) => message.role === "assistant" && message.turn === turn);
  if (index < 0) return chat;
  const changed = change(chat.messages[index]);
  return changed === chat.messages[index] ? chat : Object.assign({}, chat, { messages: replaceAt(chat.messages, index, changed) });
}

/** One event of the stream, {turn, name, data}, or one of the chat's own, {type, …}. Unknown events change nothing. */
function reduce(chat, event) {
  if (event.type) return CHAT_EVENTS[event.type](chat, event);
  const data = isObject(event.data) ? event.data : {};
  if (event.name === "tool_done") {
    const state = data.ok === false ? "failed" : "ok";
    const index = lastIndex(chat.messages, (message) => changeTools(message, asText(data.id), state) !== message);
    return index < 0 ? chat : Object.assign({}, chat, { messages: replaceAt(chat.messages, index, changeTools(chat.messages[index], asText(data.id), state)) });
  }
  if (!Object.prototype.hasOwnProperty.call(STREAM_EVENTS, event.name)) return chat;
  const next = inAnswer(chat, event.turn, (answer) => STREAM_EVENTS[event.name](answer, data));
  return event.name === "done" && data.versione ? withModel(next, event.turn, asText(data.versione), asText(data.novita)) : next;
}

/** The chat knows who answered; the answer says so if it was somebody else than before. */
function withModel(chat, turn, model, line) {
  const changed = chat.model !== null && chat.model !== model;
  const next = changed ? inAnswer(chat, turn, (answer) => Object.assign({}, answer, { novelty: { model, line } })) : chat;
  return Object.assign({}, next, { model });
}

/** Whether an answer came to its end, as opposed to a line that fell silent. */
function isComplete(answer) {
  if (answer.error) return true;
  if (answer.actions.some((action) => action.outcome === null)) return true;
  return answer.stopReason !== null && answer.stopReason !== "tool_use";
}

const answerText = (answer) => answer.parts.filter((part) => part.kind === "text").map((part) => part.text).join("");

