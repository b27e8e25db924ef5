// ------------------------------------------------------------------------------------------------ what others see

if (typeof module === "object" && module.exports) {
  module.exports = {
    TEXTS, eventParser, emptyChat, reduce, isComplete, answerText, sentences, splitBlocks, blockTree, markdown, plainText, safeAddress,
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
}
