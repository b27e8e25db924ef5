// -------------------------------------------------------------------------------------------------------- reducer

/* A chat is a value: {messaggi, modello}. An answer: {ruolo, turno, parti, azioni, …}; its `parti` are texts and tools in
 * the order in which they came. `reduce` gives a new value and changes nothing. */

function emptyChat() {
  return { messaggi: [], modello: null };
}

function emptyAnswer(turno) {
  return {
    ruolo: "assistente", turno, parti: [], azioni: [], fine: null, troncato: false, usage: null, versione: null,
    novita: null, blocchi: null, errore: null, chiuso: false,
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
    const parti = answer.parti.slice();
    const last = parti[parti.length - 1];
    if (last && last.tipo === "testo" && !last.chiuso) parti[parti.length - 1] = { tipo: "testo", testo: last.testo + text, chiuso: false };
    else parti.push({ tipo: "testo", testo: text, chiuso: false });
    return Object.assign({}, answer, { parti, fine: null });
  },
  tool_call(answer, data) {
    const tool = { tipo: "attrezzo", id: asText(data.id), nome: asText(data.name), argomenti: data.arguments === undefined ? {} : data.arguments, stato: "chiesto" };
    return Object.assign({}, answer, { parti: closeText(answer.parti).concat([tool]), fine: null });
  },
  done(answer, data) {
    return Object.assign({}, answer, {
      parti: closeText(answer.parti),
      fine: asText(data.stop_reason) || "end_turn",
      troncato: data.troncato === true,
      usage: addUsage(answer.usage, data.usage),
      versione: data.versione ? asText(data.versione) : answer.versione,
      blocchi: Array.isArray(data.blocchi) ? data.blocchi : null,
    });
  },
  error(answer, data) {
    const seconds = Number(data.retry_after);
    const errore = { codice: asText(data.code), messaggio: asText(data.message), attesa: seconds > 0 ? Math.ceil(seconds) : null };
    return Object.assign({}, answer, { parti: closeText(answer.parti), errore, chiuso: true });
  },
  pending(answer, data) {
    const given = (Array.isArray(data.actions) ? data.actions : []).filter((action) => isObject(action) && action.id !== undefined);
    const azioni = given.map((action) => ({
      id: asText(action.id), nome: asText(action.name), testo: asText(action.text), argomenti: action.arguments === undefined ? null : action.arguments, esito: null,
    }));
    const ids = new Set(azioni.map((action) => action.id));
    const kept = answer.azioni.filter((action) => !ids.has(action.id));
    const parti = answer.parti.map((part) => (part.tipo === "attrezzo" && ids.has(part.id) ? Object.assign({}, part, { stato: "in_attesa" }) : part));
    return Object.assign({}, answer, { parti, azioni: kept.concat(azioni) });
  },
};

/** No text is added to a part that another call wrote. */
function closeText(parti) {
  const last = parti[parti.length - 1];
  return last && last.tipo === "testo" && !last.chiuso ? parti.slice(0, -1).concat([Object.assign({}, last, { chiuso: true })]) : parti;
}

function changeTools(message, id, stato, only) {
  if (message.ruolo !== "assistente" || !message.parti.some((part) => part.tipo === "attrezzo" && part.id === id)) return message;
  const change = (part) => (part.tipo === "attrezzo" && part.id === id && (!only || part.stato === only) ? Object.assign({}, part, { stato }) : part);
  return Object.assign({}, message, { parti: message.parti.map(change) });
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
  utente: (chat, event) => Object.assign({}, chat, { messaggi: chat.messaggi.concat([{ ruolo: "utente", turno: event.turno, testo: event.testo, allegati: event.allegati || [] }]) }),
  apri: (chat, event) => Object.assign({}, chat, { messaggi: chat.messaggi.concat([emptyAnswer(event.turno)]) }),
  togli: (chat, event) => Object.assign({}, chat, { messaggi: chat.messaggi.filter((message) => message.turno !== event.turno || message.ruolo === "utente") }),
  chiudi: (chat, event) => inAnswer(chat, event.turno, (answer) => Object.assign({}, answer, { parti: closeText(answer.parti), chiuso: true })),
  modello: (chat, event) => Object.assign({}, chat, { modello: event.nome }),
  esito(chat, event) {
    const messaggi = chat.messaggi.map((message) => {
      if (message.ruolo !== "assistente" || !message.azioni.some((action) => action.id === event.id)) return message;
      const azioni = message.azioni.map((action) => (action.id === event.id ? Object.assign({}, action, { esito: event.esito }) : action));
      return changeTools(Object.assign({}, message, { azioni }), event.id, event.esito === "negata" ? "negato" : event.esito ? "chiesto" : "in_attesa");
    });
    return Object.assign({}, chat, { messaggi });
  },
  /** A history in the form of the agent call's `messages`. */
  storia(chat, event) {
    let state = chat;
    (Array.isArray(event.messaggi) ? event.messaggi : []).filter(isObject).forEach((message, index) => {
      const turno = "storia-" + index;
      if (message.role === "user") state = CHAT_EVENTS.utente(state, Object.assign({ turno }, spoken(message.content)));
      else if (message.role === "tool") state = reduce(state, { turno: null, nome: "tool_done", dati: { id: message.tool_call_id } });
      else if (message.role === "assistant") {
        state = CHAT_EVENTS.apri(state, { turno });
        state = reduce(state, { turno, nome: "delta", dati: { text: asText(message.content) } });
        for (const call of Array.isArray(message.tool_calls) ? message.tool_calls : []) if (isObject(call)) state = reduce(state, { turno, nome: "tool_call", dati: call });
        state = CHAT_EVENTS.chiudi(state, { turno });
      }
    });
    return state;
  },
};

/** What a user message of a history shows: its texts and the names of its files. */
function spoken(content) {
  if (!Array.isArray(content)) return { testo: asText(content), allegati: [] };
  const blocks = content.filter(isObject);
  return {
    testo: blocks.filter((block) => block.tipo === "testo").map((block) => asText(block.testo)).join("\n"),
    allegati: blocks.filter((block) => block.tipo === "documento").map((block) => ({ nome: asText(block.nome) })),
  };
}

function inAnswer(chat, turno, change) {
  const index = lastIndex(chat.messaggi, (message) => message.ruolo === "assistente" && message.turno === turno);
  if (index < 0) return chat;
  const changed = change(chat.messaggi[index]);
  return changed === chat.messaggi[index] ? chat : Object.assign({}, chat, { messaggi: replaceAt(chat.messaggi, index, changed) });
}

/** One event of the stream, {turno, nome, dati}, or one of the chat's own, {tipo, …}. Unknown events change nothing. */
function reduce(chat, event) {
  if (event.tipo) return CHAT_EVENTS[event.tipo](chat, event);
  const data = isObject(event.dati) ? event.dati : {};
  if (event.nome === "tool_done") {
    const stato = data.ok === false ? "fallito" : "riuscito";
    const index = lastIndex(chat.messaggi, (message) => changeTools(message, asText(data.id), stato) !== message);
    return index < 0 ? chat : Object.assign({}, chat, { messaggi: replaceAt(chat.messaggi, index, changeTools(chat.messaggi[index], asText(data.id), stato)) });
  }
  if (!Object.prototype.hasOwnProperty.call(STREAM_EVENTS, event.nome)) return chat;
  const next = inAnswer(chat, event.turno, (answer) => STREAM_EVENTS[event.nome](answer, data));
  return event.nome === "done" && data.versione ? withModel(next, event.turno, asText(data.versione), asText(data.novita)) : next;
}

/** The chat knows who answered; the answer says so if it was somebody else than before. */
function withModel(chat, turno, modello, riga) {
  const changed = chat.modello !== null && chat.modello !== modello;
  const next = changed ? inAnswer(chat, turno, (answer) => Object.assign({}, answer, { novita: { modello, riga } })) : chat;
  return Object.assign({}, next, { modello });
}

/** Whether an answer came to its end, as opposed to a line that fell silent. */
function isComplete(answer) {
  if (answer.errore) return true;
  if (answer.azioni.some((action) => action.esito === null)) return true;
  return answer.fine !== null && answer.fine !== "tool_use";
}

const answerText = (answer) => answer.parti.filter((part) => part.tipo === "testo").map((part) => part.testo).join("");

