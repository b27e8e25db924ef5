/* Crocevia's chat kit: one file, no libraries. docs/chat-kit.md says how to use it.
 *
 *   PepperChat.attacca(element, {indirizzo: "/my-server/chat", progetto: "default"})
 *
 * Parts, in order: texts · event stream · reducer · sentences · Markdown · DOM · one turn on the wire · the widget.
 * Everything down to «DOM» is pure and is tested without a browser. No text ever becomes markup: nodes are built one by
 * one, from a fixed set of tags, so that nothing a model, a tool, a file or a server says can run.
 */
(function () {
"use strict";

const SCRIPT = typeof document === "object" && document.currentScript ? document.currentScript.src : "";

// ---------------------------------------------------------------------------------------------------------- texts

const TEXTS = {
  it: {
    chat: "Chat",
    log: "Conversazione",
    empty: "Come posso aiutarti?",
    you: "Tu",
    write: "Scrivi un messaggio",
    send: "Invia",
    stop: "Ferma",
    stopped: "Risposta fermata.",
    new_chat: "Nuova chat",
    new_failed: "La chat non si è potuta cancellare. Riprova.",
    newest: "Nuovi messaggi",
    thinking: "{name} sta pensando…",
    writing: "{name} sta scrivendo…",
    using: "{name} usa {tool}…",
    reconnecting: "Mi ricollego…",
    confirm_waits: "Un'azione aspetta la tua conferma.",
    confirm_elsewhere: "Un'azione aspetta una conferma, che qui non si può dare.",
    approve: "Approva",
    deny: "Nega",
    approved: "Approvata",
    denied: "Negata",
    tool_running: "in corso",
    tool_asked: "chiesto",
    tool_ok: "fatto",
    tool_failed: "non riuscito",
    tool_waiting: "in attesa di conferma",
    tool_denied: "negato",
    arguments: "Argomenti",
    novelty: "Adesso risponde {name}. {line}",
    cut: "La risposta è arrivata al limite di lunghezza.",
    lost: "La connessione si è interrotta prima della fine della risposta.",
    failed: "Qualcosa non ha funzionato.",
    busy: "Troppe richieste in questo momento.",
    try_again: "Riprova",
    try_in: "Riprova fra {seconds} s",
    attach: "Allega un PDF o una foto",
    drop: "Lascia qui i file",
    remove: "Togli {name}",
    too_many: "Al massimo {count} file per messaggio.",
    too_large: "{name} è troppo grande: al massimo {size} MB.",
    wrong_kind: "{name} non è un PDF né una foto JPEG, PNG, GIF o WebP.",
    unreadable: "{name} non si può leggere.",
    read: "Leggi ad alta voce",
    read_stop: "Smetti di leggere",
    talk: "Tieni premuto per parlare",
    listening: "Ti ascolto…",
    talk_failed: "Non ho potuto ascoltare.",
    code: "Blocco di codice.",
    table: "Tabella",
  },
  en: {
    chat: "Chat",
    log: "Conversation",
    empty: "How can I help?",
    you: "You",
    write: "Write a message",
    send: "Send",
    stop: "Stop",
    stopped: "Answer stopped.",
    new_chat: "New chat",
    new_failed: "The chat could not be deleted. Try again.",
    newest: "New messages",
    thinking: "{name} is thinking…",
    writing: "{name} is writing…",
    using: "{name} is using {tool}…",
    reconnecting: "Reconnecting…",
    confirm_waits: "An action waits for your approval.",
    confirm_elsewhere: "An action waits for an approval that cannot be given here.",
    approve: "Approve",
    deny: "Deny",
    approved: "Approved",
    denied: "Denied",
    tool_running: "running",
    tool_asked: "asked for",
    tool_ok: "done",
    tool_failed: "failed",
    tool_waiting: "waiting for approval",
    tool_denied: "denied",
    arguments: "Arguments",
    novelty: "{name} answers now. {line}",
    cut: "The answer reached its length limit.",
    lost: "The connection was lost before the end of the answer.",
    failed: "Something went wrong.",
    busy: "Too many requests right now.",
    try_again: "Try again",
    try_in: "Try again in {seconds} s",
    attach: "Attach a PDF or a photo",
    drop: "Drop the files here",
    remove: "Remove {name}",
    too_many: "At most {count} files in one message.",
    too_large: "{name} is too large: {size} MB at most.",
    wrong_kind: "{name} is neither a PDF nor a JPEG, PNG, GIF or WebP photo.",
    unreadable: "{name} cannot be read.",
    read: "Read aloud",
    read_stop: "Stop reading",
    talk: "Hold to talk",
    listening: "Listening…",
    talk_failed: "I could not listen.",
    code: "Code block.",
    table: "Table",
  },
};

function speaker(language) {
  const table = TEXTS[language];
  return (key, values) => table[key].replace(/\{(\w+)\}/g, (whole, name) => (values && name in values ? String(values[name]) : whole)).trim();
}

// --------------------------------------------------------------------------------------------------- event stream

const MAX_LINE = 32 * 1024 * 1024; // characters, as much as a request may hold

/** Feed decoded text in any pieces; `onEvent(name, data)` gets each complete event, `onComment()` each comment. */
function eventParser(onEvent, onComment) {
  let pieces = []; // of a line that is not complete: joined once, so that a line of megabytes costs one pass
  let size = 0;
  let afterReturn = false;
  let name = "";
  let data = [];
  function line(text) {
    if (text === "") {
      if (data.length) onEvent(name || "message", data.join("\n"));
      name = "";
      data = [];
    } else if (text[0] === ":") {
      if (onComment) onComment();
    } else {
      const colon = text.indexOf(":");
      const field = colon < 0 ? text : text.slice(0, colon);
      const value = colon < 0 ? "" : text.slice(text[colon + 1] === " " ? colon + 2 : colon + 1);
      if (field === "event") name = value;
      else if (field === "data") data.push(value);
    }
  }
  return function feed(text) {
    if (!text) return;
    let start = afterReturn && text[0] === "\n" ? 1 : 0;
    afterReturn = text[text.length - 1] === "\r";
    const ends = /\r\n|\n|\r/g;
    ends.lastIndex = start;
    for (let end = ends.exec(text); end; end = ends.exec(text)) {
      pieces.push(text.slice(start, end.index));
      start = ends.lastIndex;
      line(pieces.join(""));
      pieces = [];
      size = 0;
    }
    if (start < text.length) {
      pieces.push(text.slice(start));
      size += text.length - start;
      if (size > MAX_LINE) throw new RangeError("a line of the stream is too long");
    }
  };
}

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

// ------------------------------------------------------------------------------------------------------ sentences

const ABBREVIATIONS = new Set((
  "dr dott prof sig sigg ing avv arch geom rag art pag pagg cap es cfr vol n nr tel fig ca pp s spett gent egr lett " +
  "mr mrs ms st vs approx jr sr e.g i.e p.es sig.ra dott.ssa prof.ssa a.c d.c p.s n.b"
).split(" "));
const SENTENCE_END = /(?<![.!?…])[.!?…]+["'”»’)\]]*([^\S\n]+)(?=\S)/gu;

/** Where the white space after each sentence begins and ends, as [start, end] pairs. */
function sentenceBreaks(text) {
  const found = [];
  SENTENCE_END.lastIndex = 0;
  for (let match = SENTENCE_END.exec(text); match; match = SENTENCE_END.exec(text)) {
    const end = match.index + match[0].length;
    const next = String.fromCodePoint(text.codePointAt(end));
    if (/[\p{Ll},;:.)\]»”]/u.test(next)) continue;
    if (match[0][0] === "." && match[0][1] !== "." && isAbbreviation(text, match.index)) continue;
    found.push([end - match[1].length, end]);
  }
  return found;
}

function isAbbreviation(text, dot) {
  const before = text.slice(Math.max(0, dot - 24), dot);
  const word = /[^\s("'«“[]*$/.exec(before)[0];
  return ABBREVIATIONS.has(word.toLowerCase()) || /^(\p{Lu}\.)*\p{Lu}$/u.test(word) || /(^|\n)\s*\d{1,3}$/.test(before);
}

/** The sentences of a plain text; line ends are ends too. */
function sentences(text) {
  const out = [];
  for (const line of text.split("\n")) {
    let from = 0;
    for (const [start, end] of sentenceBreaks(line)) {
      out.push(line.slice(from, start).trim());
      from = end;
    }
    out.push(line.slice(from).trim());
  }
  return out.filter(Boolean);
}

// ------------------------------------------------------------------------------------------------------- Markdown

/* Text -> blocks -> trees. A tree is a string or {t: tag, k: class, a: attributes, c: children}; only the functions
 * below choose tags and attributes. Supported: paragraphs, headings, lists, quotes, tables, code, bold, italic, struck
 * text, links. Everything else, HTML above all, is text. */

const FENCE = /^\s*(`{3,}|~{3,})[^`]*$/;
const FENCE_END = /^\s*(`{3,}|~{3,})\s*$/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*$/;
const RULE = /^ {0,3}(?:-{3,}|\*{3,}|_{3,})[ \t]*$/;
const ITEM = /^( *)(?:([-*+•])|(\d{1,9})[.)])[ \t]+(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const TABLE_RULE = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
// A paragraph of more characters goes on as another one at its next sentence, or where no sentence ends, at a space; a list
// at its next item: what is drawn again with every delta stays small, and the reader sees no difference.
const LONG = 1500;
const TOO_LONG = 3000;
const DEPTH = 4;

function kindOf(line) {
  if (FENCE.test(line)) return "code";
  if (HEADING.test(line)) return "heading";
  if (RULE.test(line)) return "rule";
  if (ITEM.test(line)) return "list";
  return QUOTE.test(line) ? "quote" : "text";
}

/** Whether a line of this kind belongs to the open block. A delimiter row makes a table of the line before it. */
function continues(block, kind, line) {
  if (block.kind === "list") return kind === "list" || (kind !== "code" && (/^ {2,}\S/.test(line) || (!block.blank && kind === "text")));
  if (block.kind === "table") return kind === "text" && line.includes("|");
  if (block.kind === "quote") return kind === "quote";
  if (block.kind !== "paragraph") return false;
  if (block.lines.length === 1 && block.lines[0].includes("|") && line.includes("|") && TABLE_RULE.test(line)) block.kind = "table";
  return block.kind === "table" || kind === "text";
}

function isOuterItem(block, line) {
  const found = ITEM.exec(line);
  return found !== null && found[1].length < ITEM.exec(block.lines[0])[1].length + 2;
}

/** The white space at which a paragraph is cut, as [start, end], or null. used: the characters that it has already. */
function cutPlace(line, used) {
  if (used + line.length <= LONG) return null;
  const from = Math.max(0, LONG - used);
  const [sentence] = sentenceBreaks(line.slice(from, from + TOO_LONG));
  const space = line.indexOf(" ", Math.max(0, TOO_LONG - used));
  if (sentence && (space < 0 || from + sentence[0] < space)) return [from + sentence[0], from + sentence[1]];
  return space < 0 ? null : [space, space + 1];
}

/** {blocks, stable, continued}. A block: {kind, lines, firm}; firm: nothing that follows can change it. Reading may go on
 * from `stable`, saying whether that place is in the middle of a line. */
function splitBlocks(text, continued) {
  const blocks = [];
  let block = null;
  let free = { at: 0, continued: Boolean(continued) }; // where reading may go on if every block is firm
  const close = (firm) => {
    if (block) block.firm = firm;
    block = null;
  };
  const open = (kind, line, start, inside) => {
    block = { kind, lines: [line], firm: false, size: line.length, blank: false, start, inside };
    blocks.push(block);
  };
  const paragraph = (line, start, inside) => {
    for (;;) {
      // The cut depends only on what came before it: streamed and whole texts are cut alike.
      const used = block ? block.size : 0;
      const cut = cutPlace(line, used);
      const piece = cut ? line.slice(0, cut[0]) : line;
      if (block) {
        block.lines.push(piece);
        block.size += piece.length + 1;
      } else {
        open("paragraph", piece, start, inside);
      }
      if (!cut) return;
      close(true);
      start += cut[1];
      inside = true;
      free = { at: start, continued: true };
      line = line.slice(cut[1]);
      if (!line) return;
    }
  };
  const place = (line, start, complete, inside) => {
    if (block && block.kind === "code") {
      const end = FENCE_END.exec(line);
      if (end && block.lines[0].trim().startsWith(end[1].slice(0, 3)) && end[1].length >= /(`|~)+/.exec(block.lines[0])[0].length) close(complete);
      else block.lines.push(line);
      return;
    }
    if (!line.trim()) {
      if (block && block.kind === "list") block.blank = true;
      else close(complete);
      return;
    }
    const kind = inside ? "text" : kindOf(line);
    if (block && continues(block, kind, line) && !(block.kind === "list" && block.size > LONG && isOuterItem(block, line))) {
      block.blank = false;
      if (block.kind === "paragraph") return paragraph(line, start, inside);
      block.lines.push(line);
      block.size += line.length;
      return;
    }
    close(complete);
    if (kind === "text") return paragraph(line, start, inside);
    open(kind, line, start, false);
    if (kind === "heading" || kind === "rule") close(complete);
  };
  let inside = Boolean(continued);
  for (let at = 0; at < text.length; ) {
    const found = text.indexOf("\n", at);
    const end = found < 0 ? text.length : found;
    place(text.slice(at, end).replace(/\r$/, ""), at, found >= 0, inside);
    inside = false;
    if (found < 0) break;
    at = found + 1;
    free = { at, continued: false };
  }
  const loose = blocks.find((one) => !one.firm);
  return loose
    ? { blocks, stable: loose.start, continued: loose.inside }
    : { blocks, stable: free.at, continued: free.continued };
}

/** The tree of a block. open: more may come, so that marks without an end count as ended by it. */
function blockTree(block, open, depth) {
  const lines = block.lines;
  switch (block.kind) {
    case "code":
      return { t: "pre", k: "pc-codice", a: { tabindex: "0" }, c: [{ t: "code", c: [lines.slice(1).join("\n")] }] };
    case "heading": {
      const [, marks, text] = HEADING.exec(lines[0]);
      return { t: "p", k: "pc-titolo pc-titolo-" + Math.min(marks.length, 4), c: inline(text, open) };
    }
    case "rule":
      return { t: "hr" };
    case "list":
      return listTree(lines, open, depth || 0);
    case "quote": {
      const inner = lines.map((line) => QUOTE.exec(line)[1]).join("\n");
      const deep = (depth || 0) + 1;
      return { t: "blockquote", c: deep > DEPTH ? [inner] : splitBlocks(inner).blocks.map((one) => blockTree(one, open, deep)) };
    }
    case "table":
      return tableTree(lines, open);
    default:
      return { t: "p", c: breakSentences(inline(lines.join("\n"), open)) };
  }
}

function listTree(lines, open, depth) {
  const items = []; // {indent, ordered, start, lines}
  const base = ITEM.exec(lines[0])[1].length;
  for (const line of lines) {
    const found = ITEM.exec(line);
    const last = items[items.length - 1];
    if (found && (found[1].length < base + 2 || !last)) items.push({ ordered: found[3] !== undefined, start: found[3], text: [found[4]], inner: [] });
    else if (found || (last.inner.length && /^ {2,}/.test(line))) last.inner.push(line);
    else last.text.push(line.trim());
  }
  const groups = [];
  for (const item of items) {
    const group = groups[groups.length - 1];
    const content = breakSentences(inline(item.text.join("\n"), open));
    const children = item.inner.length ? (depth < DEPTH ? content.concat([listTree(item.inner, open, depth + 1)]) : content.concat([item.inner.join("\n")])) : content;
    const li = { t: "li", c: children };
    if (group && (group.t === "ol") === item.ordered) group.c.push(li);
    else groups.push({ t: item.ordered ? "ol" : "ul", a: item.ordered && item.start !== "1" ? { start: String(Number(item.start)) } : {}, c: [li] });
  }
  return groups.length === 1 ? groups[0] : { t: "div", c: groups };
}

function tableTree(lines, open) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\\|/g, "|"));
  const head = cells(lines[0]);
  const row = (line) => {
    const found = cells(line);
    return { t: "tr", c: head.map((_, index) => ({ t: "td", c: inline(found[index] || "", open) })) };
  };
  const header = { t: "tr", c: head.map((cell) => ({ t: "th", a: { scope: "col" }, c: inline(cell, open) })) };
  return { t: "div", k: "pc-tabella", a: { tabindex: "0" }, c: [{ t: "table", c: [{ t: "thead", c: [header] }, { t: "tbody", c: lines.slice(2).map(row) }] }] };
}

/** The address if it is one that a reader may be sent to, else null. */
function safeAddress(text) {
  if (!/^https?:\/\//i.test(text) || text.length > 2048) return null;
  try {
    const found = new URL(text);
    return found.protocol === "https:" || found.protocol === "http:" ? found.href : null;
  } catch {
    return null;
  }
}

const MARKS = { "**": "strong", __: "strong", "*": "em", _: "em", "~~": "del" };
const PLAIN = /[^\\`*_~[\]!h\n]+/y;
const DESTINATION = /\(\s*<?((?:[^\s()<>]|\([^\s()<>]*\)){1,2048})>?(?:\s+(?:"[^"\n]*"|'[^'\n]*'))?\s*\)/y;
const BARE = /https?:\/\/[^\s<>"'`|\\^{}]{1,2048}/iy;
const MAX_OPEN = 32; // marks open at once; more are text, so that no text costs more than one pass

/** Children of a tree from one block's text, in one pass. */
function inline(text, open) {
  const stack = [{ mark: "", c: [] }];
  const missing = new Set(); // lengths of backtick runs that have no end
  let held = "";
  let at = 0;
  const top = () => stack[stack.length - 1];
  const flush = () => {
    if (held) top().c.push(held);
    held = "";
  };
  const drop = () => {
    // An opened mark that never closes is text.
    flush();
    const frame = stack.pop();
    top().c.push(frame.mark);
    for (const child of frame.c) top().c.push(child);
  };
  const dropTo = (depth) => {
    while (stack.length > depth + 1) drop();
  };
  const wrap = (tag) => {
    flush();
    const frame = stack.pop();
    top().c.push({ t: tag, c: frame.c });
  };
  const find = (mark) => lastIndex(stack, (frame) => frame.mark === mark);

  function code() {
    const run = /`+/y;
    run.lastIndex = at;
    const ticks = run.exec(text)[0];
    const from = at + ticks.length;
    let end = -1;
    if (!missing.has(ticks.length)) {
      const runs = /`+/g;
      runs.lastIndex = from;
      for (let next = runs.exec(text); next; next = runs.exec(text)) {
        if (next[0].length === ticks.length) {
          end = next.index;
          break;
        }
      }
    }
    if (end < 0 && !(open && from < text.length && !missing.size)) {
      missing.add(ticks.length);
      held += ticks;
      at = from;
      return;
    }
    flush();
    const inner = text.slice(from, end < 0 ? text.length : end).replace(/\n/g, " ");
    top().c.push({ t: "code", c: [/^ .*\S.* $/.test(inner) ? inner.slice(1, -1) : inner] });
    at = end < 0 ? text.length : end + ticks.length;
  }

  function emphasis() {
    const ch = text[at];
    const double = text[at + 1] === ch;
    if (ch === "~" && !double) return literal(1);
    const inner = top().mark;
    const mark = double && !(inner === ch && text[at + 2] === ch) ? ch + ch : ch;
    const before = text[at - 1];
    const after = text[at + mark.length];
    const wordBefore = before !== undefined && /[\p{L}\p{N}]/u.test(before);
    const wordAfter = after !== undefined && /[\p{L}\p{N}]/u.test(after);
    const canClose = before !== undefined && !/\s/.test(before) && !(ch === "_" && wordAfter);
    const canOpen = after !== undefined && !/\s/.test(after) && !(ch === "_" && wordBefore);
    const depth = canClose ? find(mark) : -1;
    if (depth > 0 && (stack.length > depth + 1 || top().c.length || held)) {
      dropTo(depth);
      wrap(MARKS[mark]);
      at += mark.length;
    } else if (canOpen && stack.length <= MAX_OPEN && find(mark) < 0) {
      flush();
      stack.push({ mark, c: [] });
      at += mark.length;
    } else if (after === undefined && open) {
      at += mark.length; // what it is shows with the next piece
    } else {
      literal(mark.length);
    }
  }

  function bracket() {
    const depth = Math.max(find("["), find("!["));
    if (depth < 1) return literal(1);
    DESTINATION.lastIndex = at + 1;
    const found = DESTINATION.exec(text);
    const href = found && safeAddress(found[1]);
    if (!href && open && !found && /^\((?:[^\s()]*)$/.test(text.slice(at + 1, at + 2050))) {
      dropTo(depth); // the address is still coming: its label is all there is to read
      flush();
      const frame = stack.pop();
      for (const child of frame.c) top().c.push(child);
      at = text.length;
      return undefined;
    }
    if (!href) {
      dropTo(depth - 1);
      return literal(1);
    }
    dropTo(depth);
    flush();
    const frame = stack.pop();
    const label = withoutLinks(frame.c);
    top().c.push(link(href, label.length ? label : [href]));
    at = DESTINATION.lastIndex;
    return undefined;
  }

  function bare() {
    BARE.lastIndex = at;
    const found = /[\p{L}\p{N}]/u.test(text[at - 1] || " ") ? null : BARE.exec(text);
    if (!found) return literal(1);
    let shown = found[0].replace(/[.,;:!?*_~]+$/, "");
    for (const [opening, closing] of ["()", "[]"]) {
      while (shown.endsWith(closing) && shown.split(closing).length > shown.split(opening).length) shown = shown.slice(0, -1);
    }
    const href = safeAddress(shown);
    if (!href) return literal(1);
    flush();
    top().c.push(link(href, [shown]));
    at += shown.length;
    return undefined;
  }

  function literal(length) {
    held += text.slice(at, at + length);
    at += length;
  }

  function opening(mark) {
    if (stack.length > MAX_OPEN) return literal(mark.length);
    flush();
    stack.push({ mark, c: [] });
    at += mark.length;
    return undefined;
  }

  while (at < text.length) {
    PLAIN.lastIndex = at;
    const plain = PLAIN.exec(text);
    if (plain) {
      held += plain[0];
      at = PLAIN.lastIndex;
      continue;
    }
    const ch = text[at];
    if (ch === "\\" && /[!-/:-@[-`{-~]/.test(text[at + 1] || "")) {
      held += text[at + 1];
      at += 2;
    } else if (ch === "`") code();
    else if (ch === "*" || ch === "_" || ch === "~") emphasis();
    else if (ch === "[") opening("[");
    else if (ch === "!" && text[at + 1] === "[") opening("![");
    else if (ch === "]") bracket();
    else if (ch === "h") bare();
    else if (ch === "\n") {
      flush();
      top().c.push({ t: "br" });
      at += 1;
    } else literal(1);
  }
  while (stack.length > 1) {
    const mark = top().mark;
    if (open && MARKS[mark]) wrap(MARKS[mark]);
    else drop();
  }
  flush();
  return joinTexts(stack[0].c);
}

const link = (href, c) => ({ t: "a", a: { href, target: "_blank", rel: "noopener noreferrer nofollow" }, c });

function withoutLinks(children) {
  return children.flatMap((child) => (child.t === "a" ? child.c : [child]));
}

function joinTexts(children) {
  const out = [];
  for (const child of children) {
    if (typeof child === "string" && typeof out[out.length - 1] === "string") out[out.length - 1] += child;
    else if (child !== "") out.push(typeof child === "string" ? child : Object.assign({}, child, child.c && { c: joinTexts(child.c) }));
  }
  return out;
}

/** The text of a tree as it is read. */
function plainText(tree) {
  if (typeof tree === "string") return tree;
  if (tree.t === "br" || tree.t === "hr") return "\n";
  const inner = (tree.c || []).map(plainText).join(tree.t === "tr" ? " · " : "");
  return ["li", "tr", "p", "ul", "ol", "pre", "div"].includes(tree.t) ? "\n" + inner + "\n" : inner;
}

/** Children with a line break after every sentence, also where a sentence ends inside bold text. */
function breakSentences(children) {
  const flat = children.map(flatText).join("");
  const breaks = sentenceBreaks(flat);
  if (!breaks.length) return children;
  let offset = 0;
  let next = 0;
  const walk = (child) => {
    if (typeof child !== "string") {
      if (child.t === "br" || child.t === "code") {
        offset += flatText(child).length;
        return [child];
      }
      return [Object.assign({}, child, { c: child.c.flatMap(walk) })];
    }
    const out = [];
    const start = offset;
    let from = 0;
    while (next < breaks.length && breaks[next][0] < start + child.length) {
      const [begin, end] = breaks[next];
      if (begin >= start) out.push(child.slice(from, begin - start), { t: "br" });
      from = Math.min(child.length, end - start);
      if (end > start + child.length) break;
      next += 1;
    }
    offset = start + child.length;
    out.push(child.slice(from));
    return out.filter((piece) => piece !== "");
  };
  return children.flatMap(walk);
}

function flatText(child) {
  if (typeof child === "string") return child;
  if (child.t === "br") return "\n";
  return child.t === "code" ? "x".repeat(child.c[0].length) : child.c.map(flatText).join("");
}

/** The trees of a whole text. */
const markdown = (text) => splitBlocks(text).blocks.map((block) => blockTree(block, false));

if (typeof module === "object" && module.exports) {
  module.exports = {
    TEXTS, eventParser, emptyChat, reduce, isComplete, answerText, sentences, splitBlocks, blockTree, markdown, plainText, safeAddress,
  };
}
if (typeof document !== "object") return;

// ------------------------------------------------------------------------------------------------------------ DOM

const SVG = "http://www.w3.org/2000/svg";
const ICONS = {
  send: "M12 20V5M5 11l7-7 7 7",
  stop: "M7 7h10v10H7z",
  attach: "M8 12.5l6.5-6.5a3.2 3.2 0 014.5 4.5L11 18.500a5 5 0 01-7-7L11.500 4",
  talk: "M12 4a3 3 0 00-3 3v5a3 3 0 006 0V7a3 3 0 00-3-3zM6 11.500a6 6 0 0012 0M12 17.500V21",
  read: "M4 10v4h3.500l4.500 4V6L7.500 10zM16 9a4 4 0 010 6M18.500 6.500a8 8 0 010 11",
  fresh: "M12 5v14M5 12h14",
  remove: "M7 7l10 10M17 7L7 17",
  down: "M12 5v14M6 13l6 6 6-6",
};

/** An element. Attributes are set one by one, children are nodes or texts: nothing is ever parsed. */
function element(tag, className, attributes, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  for (const name of Object.keys(attributes || {})) if (attributes[name] !== null && attributes[name] !== undefined) made.setAttribute(name, attributes[name]);
  made.append(...children);
  return made;
}

function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "pc-icona");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

function build(tree) {
  return typeof tree === "string" ? tree : element(tree.t, tree.k, tree.a, ...(tree.c || []).map(build));
}

const hidden = (text) => element("span", "pc-nascosto", null, text);

const BUDGET = 12; // milliseconds of drawing in one frame
const WINDOW = 20000; // characters looked at in one frame

/** A text that grows. What can no longer change is drawn once; only the last block is drawn again. */
class TextView {
  constructor(say, words) {
    this.node = element("div", "pc-testo");
    this.say = say;
    this.words = words;
    this.read = 0;
    this.inside = false;
    this.window = WINDOW;
    this.loose = [];
    this.told = 0;
    this.state = null;
  }

  /** Draw until `deadline`; whether all is drawn. ended: nothing will be added. */
  update(text, ended, deadline) {
    if (this.state && this.state.text === text && this.state.ended === ended) return true;
    const seen = text.slice(this.read, this.read + this.window);
    const last = this.read + seen.length === text.length;
    const { blocks, stable, continued } = splitBlocks(seen, this.inside);
    const firm = blocks.filter((block) => block.firm);
    for (let index = 0; index < firm.length; index += 1) {
      if (index && performance.now() > deadline) {
        this.read += firm[index].start;
        this.inside = firm[index].inside;
        return false;
      }
      this.draw([this.make(firm[index], false)], true);
      this.tell(firm[index], true);
      this.told = 0;
    }
    this.read += stable;
    this.inside = continued;
    if (!last) {
      if (!firm.length) this.window *= 2;
      return false;
    }
    this.window = WINDOW;
    const rest = blocks.filter((block) => !block.firm);
    this.draw(rest.map((block) => this.make(block, !ended)), false);
    for (const block of rest) this.tell(block, ended);
    if (ended) this.told = Infinity;
    this.state = { text, ended };
    return true;
  }

  make(block, open) {
    block.tree = blockTree(block, open);
    const node = build(block.tree);
    if (block.inside) node.classList.add("pc-segue");
    return node;
  }

  draw(nodes, keep) {
    for (const old of this.loose) old.remove();
    this.node.append(...nodes);
    this.loose = keep ? [] : nodes;
  }

  /** Whole sentences only, each once. */
  tell(block, whole) {
    const found = block.kind === "code" ? [this.words("code")] : sentences(plainText(block.tree));
    const count = whole ? found.length : found.length - 1;
    for (; this.told < count; this.told += 1) this.say(found[this.told]);
  }
}

// ------------------------------------------------------------------------------------------- one turn on the wire

const TRIES = 6;
const SILENCE = 60000; // ms; only where the stream has shown that it says something every few seconds

/** Why a request was refused: {stato, codice, messaggio, attesa}. */
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
  return { stato: response.status, codice: asText(error.code), messaggio: asText(error.message), attesa: seconds > 0 ? seconds : null };
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
 * Gives {come: "finito" | "vuoto" | "perso" | "fermato"} or {come: "rifiutato", problema}.
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
        const problema = await problemOf(response);
        const passing = problema.stato === 429 || problema.stato >= 500;
        if (request === body) return { come: "rifiutato", problema };
        if (!passing) return { come: "perso" };
        refusal = problema;
        wait = (problema.attesa || 0) * 1000;
      } else if (!/^text\/event-stream/i.test(response.headers.get("Content-Type") || "")) {
        const text = await response.text();
        if (!text.trim()) return { come: "vuoto" };
        return { come: unfold(JSON.parse(text), onEvent) ? "finito" : "vuoto" };
      } else {
        refusal = null;
        await readStream(response, onEvent);
        if (hooks.complete()) return { come: "finito" };
      }
    } catch (error) {
      if (!signal.aborted && error instanceof SyntaxError) return { come: "perso" };
    }
    if (signal.aborted) return { come: "fermato" };
    tries += 1;
    if (tries > TRIES) return refusal ? { come: "rifiutato", problema: refusal } : { come: "perso" };
    hooks.reconnecting();
    await pause(Math.max(wait, 250 * 2 ** tries * (0.75 + Math.random() / 2)), signal);
    if (signal.aborted) return { come: "fermato" };
    request = { versione: body.versione, tipo: "riprendi", conversazione: body.conversazione, turno: body.turno, progetto: body.progetto, lingua: body.lingua, dopo: seen };
  }
}

// ----------------------------------------------------------------------------------------------------- the widget

const SWITCHES = { allegati: false, lettura: false, microfono: false, conferme: false, nuova: false, novita: true };
const PHOTOS = ["image/jpeg", "image/png", "image/gif", "image/webp"];
const MAX_FILES = 5;
const MAX_PDF = 10;
const MAX_PHOTO = 5; // megabytes
const POINTLESS = new Set([
  "richiesta_non_valida", "non_autorizzato", "agente_non_abilitato", "documenti_non_abilitati", "immagini_non_abilitate",
  "metodo_non_valido", "richiesta_troppo_grande", "richiesta_rifiutata",
]);
const STATES = { riuscito: "tool_ok", fallito: "tool_failed", in_attesa: "tool_waiting", negato: "tool_denied" };

const newId = () => {
  // randomUUID is there on secure pages only; a chat on http in one's own network needs an id too.
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
};

function chosenSwitches(options) {
  const given = options.funzioni || {};
  for (const name of Object.keys(given)) if (!(name in SWITCHES)) console.warn("PepperChat: funzioni." + name + " does not exist");
  const chosen = Object.assign({}, SWITCHES);
  for (const name of Object.keys(SWITCHES)) if (given[name] !== undefined) chosen[name] = given[name] === true;
  if (given.nuova === undefined && options.nuova) chosen.nuova = true;
  return chosen;
}

/** The address of kit.php: given, or that of this very script. A copied script has no server to ask. */
function kitAddress(options) {
  const given = options.server ? String(options.server).replace(/\/$/, "") : null;
  if (given) return /kit\.php$/.test(given) ? given : given + "/kit.php";
  const own = SCRIPT.split(/[?#]/)[0];
  return /\/kit\.php$/.test(own) ? own : null;
}

const remembered = {
  get(key) {
    try {
      return localStorage.getItem(key);
    } catch {
      return null; // a page may be denied its storage
    }
  },
  set(key, value) {
    try {
      localStorage.setItem(key, value);
    } catch {
      // then the novelty is told again
    }
  },
};

class Chat {
  constructor(host, options) {
    const language = String(options.lingua || document.documentElement.lang || navigator.language || "").slice(0, 2).toLowerCase();
    this.language = language === "it" ? "it" : "en";
    this.words = speaker(this.language);
    this.host = host;
    this.address = String(options.indirizzo);
    this.project = options.progetto === undefined ? null : String(options.progetto);
    this.options = options;
    this.on = chosenSwitches(options);
    this.kit = kitAddress(options);
    this.memory = "pepper-chat:" + (this.kit || "") + ":" + (this.project || this.address);
    this.conversation = options.conversazione ? String(options.conversazione) : newId();
    this.name = null;
    this.turns = new Map(); // turno -> {abort, body}
    this.files = [];
    this.views = new Map();
    this.waits = new Set(); // countdowns to stop when the chat is taken away
    this.retrying = new Map(); // turno -> what its button does
    this.frame = 0;
    this.timer = 0;
    this.cost = 0;
    this.follows = true; // the reader is at the end, and wants to stay there
    this.build();
    this.begin();
    this.askName();
  }

  begin() {
    this.chat = emptyChat();
    const known = remembered.get(this.memory);
    if (known) this.chat = reduce(this.chat, { tipo: "modello", nome: known });
    if (this.options.storia) this.chat = reduce(this.chat, { tipo: "storia", messaggi: this.options.storia });
    this.quiet = true; // what was said before is not announced
    this.render();
    this.quiet = false;
  }

  build() {
    const w = this.words;
    const theme = { chiaro: " pc-chiaro", scuro: " pc-scuro" }[this.options.tema] || "";
    this.root = element("section", "pepper-chat" + theme, { lang: this.language, "aria-label": w("chat") });
    this.title = element("span", "pc-modello");
    this.fresh = element("button", "pc-tasto pc-nuova", { type: "button" }, icon("fresh"), w("new_chat"));
    this.head = element("header", "pc-testa", null, this.title, this.fresh);
    this.emptyName = element("p", "pc-nome");
    this.emptyView = element("div", "pc-vuota", null, this.emptyName, element("p", "pc-invito", null, w("empty")));
    this.list = element("div", "pc-messaggi");
    this.log = element("div", "pc-scorri", { role: "log", "aria-live": "off", "aria-label": w("log"), tabindex: "0" }, this.emptyView, this.list);
    this.down = element("button", "pc-tasto pc-giu", { type: "button" }, icon("down"), w("newest"));
    this.status = element("p", "pc-stato", { role: "status" });
    this.voice = element("div", "pc-nascosto pc-voce", { "aria-live": "polite" });
    this.trays = element("ul", "pc-allegati");
    this.notice = element("p", "pc-avviso", { role: "alert" });
    this.text = element("textarea", "pc-campo", { rows: "1", "aria-label": w("write"), placeholder: w("write"), enterkeyhint: "send" });
    this.picker = element("input", "pc-nascosto", { type: "file", multiple: "", accept: ["application/pdf", ...PHOTOS].join(","), tabindex: "-1", "aria-hidden": "true" });
    this.attach = this.button("attach", "pc-allega");
    this.talk = this.button("talk", "pc-parla");
    this.send = this.button("send", "pc-invia", "submit");
    const row = element("div", "pc-riga", null, this.attach, this.text, this.talk, this.send);
    this.form = element("form", "pc-scrivi", null, this.trays, this.notice, row, this.picker);
    const bottom = element("div", "pc-fondo", null, this.down, this.status, this.form);
    this.root.append(this.head, this.log, bottom, this.voice);
    this.fresh.hidden = !this.on.nuova;
    this.attach.hidden = !this.on.allegati;
    this.picker.disabled = !this.on.allegati;
    this.listener = this.on.microfono ? window.SpeechRecognition || window.webkitSpeechRecognition : null;
    this.talk.hidden = !this.listener;
    this.down.hidden = true;
    this.notice.hidden = true;
    this.listen();
    this.host.append(this.root);
  }

  button(name, className, type) {
    return element("button", "pc-tasto pc-tondo " + className, { type: type || "button", "aria-label": this.words(name), title: this.words(name) }, icon(name));
  }

  listen() {
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.turns.size) this.halt();
      else this.submit();
    });
    this.text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229) {
        event.preventDefault();
        if (!this.turns.size) this.submit();
      }
    });
    this.root.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.turns.size) this.halt();
    });
    this.text.addEventListener("input", () => this.grow());
    this.fresh.addEventListener("click", () => this.restart());
    this.down.addEventListener("click", () => this.toEnd());
    this.log.addEventListener("scroll", () => {
      this.follows = this.atEnd();
      if (this.follows) this.down.hidden = true;
    }, { passive: true });
    // A field that grows or a keyboard that opens takes room from the conversation, not from its end.
    this.resized = new ResizeObserver(() => this.follows && (this.log.scrollTop = this.log.scrollHeight));
    this.resized.observe(this.log);
    if (this.on.allegati) this.listenForFiles();
    if (this.listener) this.listenForSpeech();
  }

  // -- who answers

  async askName() {
    if (!this.kit || !this.project) return;
    try {
      const response = await fetch(this.kit + "?progetto=" + encodeURIComponent(this.project), { credentials: "omit" });
      const found = await response.json();
      if (found && found.modello && !this.gone) this.name = this.name || String(found.modello);
      this.render();
    } catch {
      // a chat without a name is still a chat
    }
  }

  get spokenName() {
    return this.name || "Pepper";
  }

  // -- what the user does

  submit() {
    const testo = this.text.value.trim();
    if (!testo && !this.files.length) return;
    if (this.files.some((file) => file.dati === null)) return; // still being read
    const allegati = this.files;
    this.text.value = "";
    this.files = [];
    this.grow();
    this.showFiles();
    this.ask(testo, allegati);
  }

  ask(testo, allegati) {
    this.follows = true;
    const turno = newId();
    const sent = allegati.map((file) => Object.assign({ tipo: "documento", nome: file.nome }, file.tipo !== "application/pdf" && { tipo_file: file.tipo }, { dati: file.dati }));
    this.change({ tipo: "utente", turno, testo, allegati: allegati.map((file) => ({ nome: file.nome })) });
    return this.turn(this.body("messaggio", turno, { testo, allegati: sent }));
  }

  body(tipo, turno, more) {
    return Object.assign({ versione: 1, tipo, conversazione: this.conversation, turno, progetto: this.project, lingua: this.language }, more);
  }

  decide(action, esito) {
    this.change({ tipo: "esito", id: action.id, esito });
    this.text.focus();
    const turno = newId();
    return this.turn(this.body("conferma", turno, { azione: action.id, esito }), () => this.change({ tipo: "esito", id: action.id, esito: null }));
  }

  async restart() {
    const conversazione = this.conversation;
    const when = this.options.nuova && this.options.nuova.quando;
    this.halt();
    this.fresh.disabled = true;
    this.warn("");
    try {
      if (typeof when === "function") await when({ conversazione });
      else {
        const response = await post(this.address, this.body("nuova", newId(), {}));
        if (!response.ok) throw new Error(String(response.status));
      }
      this.conversation = newId();
      this.options = Object.assign({}, this.options, { storia: null });
      this.stopReading();
      this.begin();
    } catch {
      this.warn(this.words("new_failed"));
    }
    this.fresh.disabled = false;
    this.text.focus();
  }

  halt() {
    for (const [turno, turn] of this.turns) {
      turn.abort.abort();
      // Closing the line may not be enough: a server that lets a reader come back goes on without one.
      post(this.address, this.body("ferma", turno, {})).catch(() => {});
    }
  }

  // -- one turn

  async turn(body, undo) {
    const turno = body.turno;
    const abort = new AbortController();
    const empty = body.tipo !== "messaggio"; // a confirmation may be answered by nothing, or in the stream that is open
    this.turns.set(turno, { abort, body });
    this.change({ tipo: "apri", turno });
    const outcome = await follow(this.address, body, abort.signal, {
      event: (nome, dati) => this.heard(turno, nome, dati),
      complete: () => isComplete(this.answer(turno)),
      reconnecting: () => this.setStatus(this.words("reconnecting")),
    });
    this.turns.delete(turno);
    if (this.gone || !this.answer(turno)) return;
    if (outcome.come === "rifiutato") this.fail(turno, outcome.problema, body, undo);
    else if (outcome.come === "perso") this.fail(turno, { codice: "", messaggio: this.words("lost"), attesa: null, stato: 0 }, body, undo);
    else if (outcome.come === "vuoto" && (empty || !this.answer(turno).parti.length)) this.change({ tipo: "togli", turno });
    else this.close(turno, body);
    if (outcome.come === "fermato") this.say(this.words("stopped"));
    this.host.dispatchEvent(new CustomEvent("pepper:fine", { detail: { turno, come: outcome.come } }));
  }

  close(turno, body) {
    const error = this.answer(turno).errore;
    if (error && !POINTLESS.has(error.codice)) this.retrying.set(turno, () => this.again(body));
    this.change({ tipo: "chiudi", turno });
  }

  fail(turno, problem, body, undo) {
    const said = problem.messaggio || this.words(problem.stato === 429 ? "busy" : "failed");
    if (undo) undo();
    else if (!POINTLESS.has(problem.codice) && ![400, 401, 403, 405, 413, 422].includes(problem.stato)) this.retrying.set(turno, () => this.again(body));
    this.change({ turno, nome: "error", dati: { code: problem.codice, message: said, retry_after: problem.attesa } });
  }

  again(body) {
    this.retrying.delete(body.turno);
    this.change({ tipo: "togli", turno: body.turno });
    this.render(); // the answer that takes its place starts from nothing
    this.text.focus();
    this.turn(body);
  }

  heard(turno, nome, dati) {
    this.change({ turno, nome, dati });
    if (nome === "done" && this.chat.modello) {
      this.name = this.chat.modello;
      remembered.set(this.memory, this.name);
    }
    this.host.dispatchEvent(new CustomEvent("pepper:evento", { detail: { turno, nome, dati } }));
  }

  answer(turno) {
    const index = lastIndex(this.chat.messaggi, (message) => message.ruolo === "assistente" && message.turno === turno);
    return index < 0 ? null : this.chat.messaggi[index];
  }

  // -- drawing

  change(event) {
    this.chat = reduce(this.chat, event);
    this.schedule();
  }

  schedule() {
    if (this.frame || this.timer || this.gone) return;
    const draw = () => {
      this.frame = 0;
      this.timer = 0;
      this.render();
    };
    // A page in the background gets no frames; a slow one gets the rest of its time for itself.
    if (document.hidden || this.cost > BUDGET) this.timer = setTimeout(draw, document.hidden ? 250 : Math.min(1000, this.cost * 4));
    else this.frame = requestAnimationFrame(draw);
  }

  render() {
    const started = performance.now();
    const kept = new Set();
    let whole = true;
    for (const message of this.chat.messaggi) {
      const key = message.ruolo + message.turno;
      kept.add(key);
      let view = this.views.get(key);
      if (!view) {
        view = message.ruolo === "utente" ? new UserView(this, message) : new AnswerView(this);
        this.views.set(key, view);
        this.list.append(view.node);
      }
      if (!view.update(message, started + BUDGET)) whole = false;
    }
    for (const [key, view] of this.views) {
      if (kept.has(key)) continue;
      view.node.remove();
      this.views.delete(key);
    }
    this.emptyView.hidden = this.chat.messaggi.length > 0;
    this.setText(this.emptyName, this.name || "");
    this.emptyName.hidden = !this.name;
    this.setText(this.title, this.emptyView.hidden ? this.name || "" : "");
    this.head.hidden = !this.on.nuova && !this.title.textContent;
    this.showState();
    if (this.follows) this.log.scrollTop = this.log.scrollHeight;
    else if (!this.quiet && !this.atEnd()) this.down.hidden = false;
    this.cost = performance.now() - started;
    if (!whole) this.schedule();
  }

  showState() {
    const busy = this.turns.size > 0;
    const label = this.words(busy ? "stop" : "send");
    if (this.send.title !== label) {
      this.send.title = label;
      this.send.setAttribute("aria-label", label);
      this.send.replaceChildren(icon(busy ? "stop" : "send"));
      this.send.classList.toggle("pc-ferma", busy);
    }
    const last = this.chat.messaggi[this.chat.messaggi.length - 1];
    this.setStatus(last && last.ruolo === "assistente" ? this.statusOf(last, busy) : "");
  }

  statusOf(answer, busy) {
    if (answer.azioni.some((action) => action.esito === null)) return this.words(this.on.conferme ? "confirm_waits" : "confirm_elsewhere");
    if (!busy || answer.errore) return "";
    const last = answer.parti[answer.parti.length - 1];
    if (last && last.tipo === "attrezzo" && last.stato === "chiesto") return this.words("using", { name: this.spokenName, tool: last.nome });
    return this.words(last && last.tipo === "testo" && !last.chiuso ? "writing" : "thinking", { name: this.spokenName });
  }

  setStatus(text) {
    this.setText(this.status, text);
  }

  setText(node, text) {
    if (node.textContent !== text) node.textContent = text;
  }

  say(sentence) {
    if (this.quiet) return;
    this.voice.append(element("p", "", null, sentence));
    while (this.voice.childElementCount > 40) this.voice.firstElementChild.remove();
  }

  warn(text) {
    this.notice.hidden = !text;
    this.setText(this.notice, text);
  }

  atEnd() {
    return this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 48;
  }

  toEnd() {
    this.follows = true;
    this.log.scrollTop = this.log.scrollHeight;
    this.down.hidden = true;
    this.text.focus();
  }

  grow() {
    const lines = this.text.value.split("\n").length;
    this.text.rows = Math.min(8, Math.max(1, lines));
  }

  // -- attachments

  listenForFiles() {
    this.attach.addEventListener("click", () => this.picker.click());
    this.picker.addEventListener("change", () => {
      this.addFiles(this.picker.files);
      this.picker.value = "";
    });
    this.text.addEventListener("paste", (event) => {
      if (event.clipboardData.files.length) {
        event.preventDefault();
        this.addFiles(event.clipboardData.files);
      }
    });
    const over = (on) => (event) => {
      if (!event.dataTransfer || ![...event.dataTransfer.types].includes("Files")) return;
      event.preventDefault();
      this.root.classList.toggle("pc-sopra", on);
      if (event.type === "drop") this.addFiles(event.dataTransfer.files);
    };
    this.root.addEventListener("dragover", over(true));
    this.root.addEventListener("dragleave", over(false));
    this.root.addEventListener("drop", over(false));
  }

  addFiles(list) {
    this.warn("");
    for (const file of list) {
      const problem = this.problemWith(file);
      if (problem) {
        this.warn(problem);
        continue;
      }
      const held = { nome: file.name, tipo: file.type, dati: null };
      this.files.push(held);
      const reader = new FileReader();
      reader.addEventListener("load", () => {
        held.dati = String(reader.result).replace(/^[^,]*,/, "");
        this.showFiles();
      });
      reader.addEventListener("error", () => {
        this.files = this.files.filter((one) => one !== held);
        this.warn(this.words("unreadable", { name: file.name }));
        this.showFiles();
      });
      reader.readAsDataURL(file);
    }
    this.showFiles();
    this.text.focus();
  }

  problemWith(file) {
    if (this.files.length >= MAX_FILES) return this.words("too_many", { count: MAX_FILES });
    const size = file.type === "application/pdf" ? MAX_PDF : PHOTOS.includes(file.type) ? MAX_PHOTO : 0;
    if (!size) return this.words("wrong_kind", { name: file.name });
    return file.size > size * 1024 * 1024 ? this.words("too_large", { name: file.name, size }) : null;
  }

  showFiles() {
    this.trays.hidden = !this.files.length;
    this.trays.replaceChildren(...this.files.map((file) => {
      const remove = element("button", "pc-tasto pc-togli", { type: "button", "aria-label": this.words("remove", { name: file.nome }) }, icon("remove"));
      remove.addEventListener("click", () => {
        this.files = this.files.filter((one) => one !== file);
        this.showFiles();
        this.text.focus();
      });
      return element("li", "pc-allegato" + (file.dati === null ? " pc-legge" : ""), null, element("span", "pc-nomefile", null, file.nome), remove);
    }));
  }

  // -- speech

  listenForSpeech() {
    let hearing = null;
    let pressed = 0;
    const end = () => hearing && hearing.stop();
    const start = () => {
      const before = this.text.value ? this.text.value.trimEnd() + " " : "";
      hearing = new this.listener();
      hearing.lang = this.language === "it" ? "it-IT" : "en-US";
      hearing.interimResults = true;
      hearing.continuous = true;
      hearing.addEventListener("result", (event) => {
        this.text.value = before + Array.from(event.results, (result) => result[0].transcript).join("");
        this.grow();
      });
      hearing.addEventListener("error", () => this.warn(this.words("talk_failed")));
      hearing.addEventListener("end", () => {
        hearing = null;
        this.talk.setAttribute("aria-pressed", "false");
        this.setStatus("");
        this.text.focus();
      });
      this.warn("");
      this.talk.setAttribute("aria-pressed", "true");
      this.setStatus(this.words("listening"));
      hearing.start();
    };
    const press = (event) => {
      if (event.type === "keydown" && (event.repeat || ![" ", "Enter"].includes(event.key))) return;
      event.preventDefault();
      pressed = event.timeStamp;
      if (hearing) end();
      else start();
    };
    // A short press (also that of a screen reader) starts or stops; a long one listens as long as it lasts.
    const release = (event) => event.timeStamp - pressed > 400 && end();
    this.talk.addEventListener("pointerdown", press);
    this.talk.addEventListener("pointerup", release);
    this.talk.addEventListener("keydown", press);
    this.talk.addEventListener("keyup", release);
    this.talk.setAttribute("aria-pressed", "false");
  }

  readAloud(text, button) {
    const mine = this.reading === button;
    this.stopReading();
    if (mine) return;
    const spoken = new SpeechSynthesisUtterance(text);
    spoken.lang = this.language === "it" ? "it-IT" : "en-US";
    spoken.addEventListener("end", () => this.reading === button && this.stopReading());
    this.reading = button;
    this.label(button, "read_stop");
    speechSynthesis.speak(spoken);
  }

  stopReading() {
    if (!this.reading) return;
    this.label(this.reading, "read");
    this.reading = null;
    speechSynthesis.cancel();
  }

  label(button, key) {
    button.title = this.words(key);
    button.setAttribute("aria-label", this.words(key));
  }

  remove() {
    this.gone = true;
    for (const turn of this.turns.values()) turn.abort.abort();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    for (const stop of this.waits) stop();
    this.resized.disconnect();
    this.stopReading();
    this.root.remove();
  }
}

class UserView {
  constructor(chat, message) {
    this.node = element("article", "pc-mio", null, hidden(chat.words("you") + ": "));
    if (message.testo) this.node.append(element("div", "pc-testo pc-piano", null, message.testo));
    if (message.allegati.length) this.node.append(element("ul", "pc-allegati", null, ...message.allegati.map((file) => element("li", "pc-allegato", null, icon("attach"), element("span", "pc-nomefile", null, file.nome)))));
  }

  update() {
    return true;
  }
}

class AnswerView {
  constructor(chat) {
    this.chat = chat;
    this.body = element("div", "pc-parti");
    this.node = element("article", "pc-risposta", null, hidden(chat.spokenName + ": "), this.body);
    this.parts = [];
    this.actions = new Map();
    this.message = null;
    this.whole = false;
  }

  update(message, deadline) {
    if (this.message === message && this.whole) return true;
    const ended = message.chiuso;
    this.whole = true;
    message.parti.forEach((part, index) => this.showPart(part, index, ended, deadline));
    for (const action of message.azioni) this.showAction(action);
    if (message.errore && !this.error) this.showError(message);
    if (message.novita && this.chat.on.novita && !this.novelty) this.showNovelty(message.novita);
    if (message.troncato && !this.cut) this.node.append((this.cut = element("p", "pc-nota", null, this.chat.words("cut"))));
    if (ended && !this.closed) this.showEnd(message);
    const busy = !ended || !this.whole; // a long answer is there before it is drawn
    this.node.classList.toggle("pc-viva", busy);
    this.node.setAttribute("aria-busy", String(busy));
    this.message = message;
    return this.whole;
  }

  showPart(part, index, ended, deadline) {
    let view = this.parts[index];
    if (!view) {
      view = part.tipo === "testo" ? new TextView((sentence) => this.chat.say(sentence), this.chat.words) : new ToolView(this.chat.words);
      this.parts[index] = view;
      this.body.append(view.node);
    }
    if (part.tipo === "testo") this.whole = view.update(part.testo, part.chiuso, deadline) && this.whole;
    else view.update(part, ended);
  }

  showAction(action) {
    let card = this.actions.get(action.id);
    if (!card) {
      card = new ActionView(this.chat, action);
      this.actions.set(action.id, card);
      this.node.append(card.node);
      this.chat.say(card.title);
    }
    card.update(action);
  }

  showError(message) {
    const { errore, turno } = message;
    const words = this.chat.words;
    this.error = element("div", "pc-errore", { role: "alert" }, element("p", "", null, errore.messaggio || words("failed")));
    this.node.append(this.error);
    const retry = this.chat.retrying.get(turno);
    if (retry) this.showRetry(retry, errore.attesa);
    else this.waiting = true;
  }

  showRetry(retry, seconds) {
    const words = this.chat.words;
    this.waiting = false;
    const button = element("button", "pc-tasto", { type: "button" });
    const until = Date.now() + (seconds || 0) * 1000;
    let timer = 0;
    const stop = () => clearInterval(timer);
    const tick = () => {
      const left = Math.ceil((until - Date.now()) / 1000);
      button.disabled = left > 0;
      button.textContent = left > 0 ? words("try_in", { seconds: left }) : words("try_again");
      if (left > 0) return;
      stop();
      this.chat.waits.delete(stop);
    };
    button.addEventListener("click", retry);
    this.chat.waits.add(stop);
    timer = setInterval(tick, 250);
    tick();
    // Outside the alert: a countdown inside it would be read out every second.
    this.node.append(element("div", "pc-azioni", null, button));
  }

  showNovelty({ modello, riga }) {
    this.novelty = element("p", "pc-novita", null, this.chat.words("novelty", { name: modello, line: riga }));
    this.node.append(this.novelty);
    this.chat.say(this.novelty.textContent);
  }

  showEnd(message) {
    this.closed = true;
    const retry = this.waiting && this.chat.retrying.get(message.turno);
    if (retry) this.showRetry(retry, message.errore.attesa);
    const text = answerText(message);
    if (this.chat.on.lettura && text && "speechSynthesis" in window) {
      const button = this.chat.button("read", "pc-leggi");
      button.addEventListener("click", () => this.chat.readAloud(markdown(text).map(plainText).join("\n"), button));
      this.node.append(button);
    }
  }
}

class ToolView {
  constructor(words) {
    this.words = words;
    this.name = element("span", "pc-attrezzo-nome");
    this.state = element("span", "pc-attrezzo-stato");
    this.dot = element("span", "pc-pallino", { "aria-hidden": "true" });
    this.args = element("pre", "pc-codice", { tabindex: "0", "aria-label": words("arguments") });
    this.node = element("details", "pc-attrezzo", null, element("summary", "", null, this.dot, this.name, this.state), this.args);
  }

  update(tool, ended) {
    if (this.tool === tool && this.ended === ended) return;
    if (!this.tool) {
      this.name.textContent = tool.nome;
      this.args.textContent = JSON.stringify(tool.argomenti, null, 2);
    }
    // Nobody said that it was run: then it was asked for, no more than that.
    const key = STATES[tool.stato] || (ended ? "tool_asked" : "tool_running");
    this.state.textContent = this.words(key);
    this.dot.className = "pc-pallino pc-" + key.replace("_", "-");
    this.tool = tool;
    this.ended = ended;
  }
}

class ActionView {
  constructor(chat, action) {
    this.words = chat.words;
    this.title = action.testo || action.nome;
    this.node = element("div", "pc-conferma", { role: "group", "aria-label": this.title }, element("p", "pc-domanda", null, this.title));
    if (action.argomenti !== null) this.node.append(element("pre", "pc-codice", { tabindex: "0", "aria-label": this.words("arguments") }, JSON.stringify(action.argomenti, null, 2)));
    this.outcome = element("p", "pc-esito");
    this.buttons = element("div", "pc-azioni");
    if (chat.on.conferme) {
      const choice = (key, className, esito) => {
        const button = element("button", "pc-tasto " + className, { type: "button" }, this.words(key));
        button.addEventListener("click", () => chat.decide(action, esito));
        return button;
      };
      this.buttons.append(choice("approve", "pc-approva", "approvata"), choice("deny", "pc-nega", "negata"));
    }
    this.node.append(this.buttons, this.outcome);
  }

  update(action) {
    this.buttons.hidden = action.esito !== null || !this.buttons.childElementCount;
    this.outcome.hidden = action.esito === null;
    this.outcome.textContent = action.esito === null ? "" : this.words(action.esito === "negata" ? "denied" : "approved");
  }
}

window.PepperChat = {
  funzioni: Object.freeze(Object.assign({}, SWITCHES)),
  /** Put a chat into `host`. docs/chat-kit.md lists the options. */
  attacca(host, options) {
    if (!(host instanceof Element)) throw new TypeError("PepperChat.attacca: the first argument is an element");
    if (!options || !options.indirizzo) throw new TypeError("PepperChat.attacca: `indirizzo` is missing");
    const chat = new Chat(host, options);
    return {
      invia: (testo) => chat.ask(String(testo), []),
      ferma: () => chat.halt(),
      nuova: () => chat.restart(),
      stacca: () => chat.remove(),
      stato: () => chat.chat,
      get conversazione() {
        return chat.conversation;
      },
    };
  },
};
})();
