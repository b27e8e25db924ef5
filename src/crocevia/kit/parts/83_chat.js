// ----------------------------------------------------------------------------------------------------- the widget

// The kit's own names are English; what a page or its server sees keeps the wire's Italian words.
const OUTCOMES = { approved: "approvata", denied: "negata" };
const ENDINGS = { finished: "finito", empty: "vuoto", lost: "perso", stopped: "fermato", refused: "rifiutato" };

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
    this.turns = new Map(); // turnId -> {abort, body}
    this.views = new Map();
    this.waits = new Set(); // countdowns to stop when the chat is taken away
    this.retrying = new Map(); // turnId -> what its button does
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
    if (known) this.chat = reduce(this.chat, { type: "model", name: known });
    if (this.options.storia) this.chat = reduce(this.chat, { type: "history", messages: this.options.storia });
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
    this.notice = element("p", "pc-avviso", { role: "alert" });
    this.text = element("textarea", "pc-campo", { rows: "1", "aria-label": w("write"), placeholder: w("write"), enterkeyhint: "send" });
    this.files = new Attachments(this);
    this.listening = new Listening(this);
    this.reading = new Reading(this);
    this.send = this.button("send", "pc-invia", "submit");
    const row = element("div", "pc-riga", null, this.files.button, this.text, this.listening.button, this.send);
    this.form = element("form", "pc-scrivi", null, this.files.tray, this.notice, row, this.files.picker);
    const bottom = element("div", "pc-fondo", null, this.down, this.status, this.form);
    this.root.append(this.head, this.log, bottom, this.voice);
    this.fresh.hidden = !this.on.nuova;
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
    const text = this.text.value.trim();
    if ((!text && !this.files.held.length) || this.files.busy) return;
    const attachments = this.files.take();
    this.text.value = "";
    this.grow();
    this.ask(text, attachments);
  }

  ask(text, attachments) {
    this.follows = true;
    const turnId = newId();
    this.change({ type: "user", turn: turnId, text, attachments: attachments.map((file) => ({ name: file.nome })) });
    return this.turn(this.body("messaggio", turnId, { testo: text, allegati: attachments }));
  }

  body(kind, turnId, more) {
    return Object.assign({ versione: 1, tipo: kind, conversazione: this.conversation, turno: turnId, progetto: this.project, lingua: this.language }, more);
  }

  decide(action, outcome) {
    this.change({ type: "outcome", id: action.id, outcome });
    this.text.focus();
    const turnId = newId();
    return this.turn(this.body("conferma", turnId, { azione: action.id, esito: OUTCOMES[outcome] }), () => this.change({ type: "outcome", id: action.id, outcome: null }));
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
      this.reading.stop();
      this.begin();
    } catch {
      this.warn(this.words("new_failed"));
    }
    this.fresh.disabled = false;
    this.text.focus();
  }

  halt() {
    for (const [turnId, turn] of this.turns) {
      turn.abort.abort();
      // Closing the line may not be enough: a server that lets a reader come back goes on without one.
      post(this.address, this.body("ferma", turnId, {})).catch(() => {});
    }
  }

  // -- one turn

  async turn(body, undo) {
    const turnId = body.turno;
    const abort = new AbortController();
    const empty = body.tipo !== "messaggio"; // a confirmation may be answered by nothing, or in the stream that is open
    this.turns.set(turnId, { abort, body });
    this.change({ type: "open", turn: turnId });
    const outcome = await follow(this.address, body, abort.signal, {
      event: (name, data) => this.heard(turnId, name, data),
      complete: () => isComplete(this.answer(turnId)),
      reconnecting: () => this.setStatus(this.words("reconnecting")),
    });
    this.turns.delete(turnId);
    if (this.gone || !this.answer(turnId)) return;
    if (outcome.end === "refused") this.fail(turnId, outcome.problem, body, undo);
    else if (outcome.end === "lost") this.fail(turnId, { code: "", message: this.words("lost"), wait: null, status: 0 }, body, undo);
    else if (outcome.end === "empty" && (empty || !this.answer(turnId).parts.length)) this.change({ type: "remove", turn: turnId });
    else this.close(turnId, body);
    if (outcome.end === "stopped") this.say(this.words("stopped"));
    this.host.dispatchEvent(new CustomEvent("pepper:fine", { detail: { turno: turnId, come: ENDINGS[outcome.end] } }));
  }

  close(turnId, body) {
    const error = this.answer(turnId).error;
    if (error && !POINTLESS.has(error.code)) this.retrying.set(turnId, () => this.again(body));
    this.change({ type: "close", turn: turnId });
  }

  fail(turnId, problem, body, undo) {
    const said = problem.message || this.words(problem.status === 429 ? "busy" : "failed");
    if (undo) undo();
    else if (!POINTLESS.has(problem.code) && ![400, 401, 403, 405, 413, 422].includes(problem.status)) this.retrying.set(turnId, () => this.again(body));
    this.change({ turn: turnId, name: "error", data: { code: problem.code, message: said, retry_after: problem.wait } });
  }

  again(body) {
    this.retrying.delete(body.turno);
    this.change({ type: "remove", turn: body.turno });
    this.render(); // the answer that takes its place starts from nothing
    this.text.focus();
    this.turn(body);
  }

  heard(turnId, name, data) {
    this.change({ turn: turnId, name, data });
    if (name === "done" && this.chat.model) {
      this.name = this.chat.model;
      remembered.set(this.memory, this.name);
    }
    this.host.dispatchEvent(new CustomEvent("pepper:evento", { detail: { turno: turnId, nome: name, dati: data } }));
  }

  answer(turnId) {
    const index = lastIndex(this.chat.messages, (message) => message.role === "assistant" && message.turn === turnId);
    return index < 0 ? null : this.chat.messages[index];
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
    for (const message of this.chat.messages) {
      const key = message.role + message.turn;
      kept.add(key);
      let view = this.views.get(key);
      if (!view) {
        view = message.role === "user" ? new UserView(this, message) : new AnswerView(this);
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
    this.emptyView.hidden = this.chat.messages.length > 0;
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
    const last = this.chat.messages[this.chat.messages.length - 1];
    this.setStatus(last && last.role === "assistant" ? this.statusOf(last, busy) : "");
  }

  statusOf(answer, busy) {
    if (answer.actions.some((action) => action.outcome === null)) return this.words(this.on.conferme ? "confirm_waits" : "confirm_elsewhere");
    if (!busy || answer.error) return "";
    const last = answer.parts[answer.parts.length - 1];
    if (last && last.kind === "tool" && last.state === "asked") return this.words("using", { name: this.spokenName, tool: last.name });
    return this.words(last && last.kind === "text" && !last.closed ? "writing" : "thinking", { name: this.spokenName });
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

  remove() {
    this.gone = true;
    for (const turn of this.turns.values()) turn.abort.abort();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    for (const stop of this.waits) stop();
    this.resized.disconnect();
    this.reading.stop();
    this.root.remove();
  }
}

