PepperChat.attacca(document.getElementById("chat"), {
  indirizzo: "/chat",
  progetto: "PROJECT",
  funzioni: { conferme: true, allegati: true, nuova: true },
});
