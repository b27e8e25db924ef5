// The kit on this page's own address, and what the server really sent beside it.
"use strict";

const host = document.getElementById("chat");
const raw = document.getElementById("raw");
const address = host.dataset.address;
const theme = { light: "chiaro", dark: "scuro" }[document.documentElement.dataset.theme];
const LONGEST = 200000; // characters

/** Show a copy of the stream as it comes; the kit reads its own. */
async function show(response) {
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  raw.textContent = "HTTP " + response.status + "\n\n";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const atEnd = raw.scrollHeight - raw.scrollTop - raw.clientHeight < 40;
    if (raw.textContent.length < LONGEST) raw.append(decoder.decode(value, { stream: true }));
    if (atEnd) raw.scrollTop = raw.scrollHeight;
  }
}

const plainFetch = window.fetch;
window.fetch = async (target, options) => {
  const response = await plainFetch(target, options);
  if (target === address && response.body && response.status !== 204) show(response.clone()).catch(() => {});
  return response;
};

const funzioni = Object.fromEntries(host.dataset.switches.split(" ").map((name) => [name, true]));
PepperChat.attacca(host, { indirizzo: address, progetto: host.dataset.project || undefined, funzioni, lingua: document.documentElement.lang, tema: theme });
