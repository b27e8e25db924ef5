// ------------------------------------------------------------------------------------------------ what others see

const PUBLIC = {
  messages: "messaggi", model: "modello", role: "ruolo", turn: "turno", parts: "parti", actions: "azioni", stopReason: "fine", truncated: "troncato",
  version: "versione", novelty: "novita", line: "riga", blocks: "blocchi", error: "errore", code: "codice", message: "messaggio", wait: "attesa",
  closed: "chiuso", kind: "tipo", text: "testo", name: "nome", arguments: "argomenti", state: "stato", outcome: "esito", attachments: "allegati",
};
const PUBLIC_VALUES = {
  role: { user: "utente", assistant: "assistente" },
  kind: { text: "testo", tool: "attrezzo" },
  state: { asked: "chiesto", waiting: "in_attesa", ok: "riuscito", failed: "fallito", denied: "negato" },
  outcome: OUTCOMES,
};
const AS_GIVEN = new Set(["usage", "blocks", "arguments"]); // what came from the wire goes out as it came

/** The chat as `stato()` gives it. */
function publicState(value) {
  if (Array.isArray(value)) return value.map(publicState);
  if (!isObject(value)) return value;
  const shown = {};
  for (const [key, inner] of Object.entries(value)) {
    const word = PUBLIC_VALUES[key] && PUBLIC_VALUES[key][inner];
    shown[PUBLIC[key] || key] = word || (AS_GIVEN.has(key) ? inner : publicState(inner));
  }
  return shown;
}

if (typeof module === "object" && module.exports) {
  module.exports = {
    TEXTS, eventParser, emptyChat, reduce, publicState, isComplete, answerText, sentences, splitBlocks, blockTree, markdown, plainText, safeAddress,
  };
}

if (typeof window === "object") {
  window.PepperChat = {
    funzioni: Object.freeze(Object.assign({}, SWITCHES)),
    /** Put a chat into `host`. docs/chat-kit.md lists the options. */
    attacca(host, options) {
      if (!(host instanceof Element)) throw new TypeError("PepperChat.attacca: the first argument is an element");
      if (!options || !options.indirizzo) throw new TypeError("PepperChat.attacca: `indirizzo` is missing");
      const chat = new Chat(host, options);
      return {
        invia: (text) => chat.ask(String(text), []),
        ferma: () => chat.halt(),
        nuova: () => chat.restart(),
        stacca: () => chat.remove(),
        stato: () => publicState(chat.chat),
        get conversazione() {
          return chat.conversation;
        },
      };
    },
  };
}
