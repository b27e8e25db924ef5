// ------------------------------------------------------------------------------------------------------- messages

const STATES = { ok: "tool_ok", failed: "tool_failed", waiting: "tool_waiting", denied: "tool_denied" };

const SHOWN = 20000; // characters of a tool's arguments

function argumentsView(words, value) {
  const text = JSON.stringify(value, null, 2);
  const shown = text.length > SHOWN ? text.slice(0, SHOWN) + "…" : text;
  return element("pre", "pc-codice", { tabindex: "0", "aria-label": words("arguments") }, shown);
}

class UserView {
  constructor(chat, message) {
    this.node = element("article", "pc-mio", null, hidden(chat.words("you") + ": "));
    if (message.text) this.node.append(element("div", "pc-testo pc-piano", null, message.text));
    if (message.attachments.length) this.node.append(element("ul", "pc-allegati", null, ...message.attachments.map((file) => element("li", "pc-allegato", null, icon("attach"), element("span", "pc-nomefile", null, file.name)))));
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
    const ended = message.closed;
    this.whole = true;
    message.parts.forEach((part, index) => this.showPart(part, index, ended, deadline));
    for (const action of message.actions) this.showAction(action);
    if (message.error && !this.error) this.showError(message);
    if (message.novelty && this.chat.on.novita && !this.novelty) this.showNovelty(message.novelty);
    if (message.truncated && !this.cut) this.node.append((this.cut = element("p", "pc-nota", null, this.chat.words("cut"))));
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
      view = part.kind === "text" ? new TextView((sentence) => this.chat.say(sentence), this.chat.words) : new ToolView(this.chat.words);
      this.parts[index] = view;
      this.body.append(view.node);
    }
    if (part.kind === "text") this.whole = view.update(part.text, part.closed, deadline) && this.whole;
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
    const { error, turn } = message;
    const words = this.chat.words;
    this.error = element("div", "pc-errore", { role: "alert" }, element("p", "", null, error.message || words("failed")));
    this.node.append(this.error);
    const retry = this.chat.retrying.get(turn);
    if (retry) this.showRetry(retry, error.wait);
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

  showNovelty({ model, line }) {
    this.novelty = element("p", "pc-novita", null, this.chat.words("novelty", { name: model, line }));
    this.node.append(this.novelty);
    this.chat.say(this.novelty.textContent);
  }

  showEnd(message) {
    this.closed = true;
    const retry = this.waiting && this.chat.retrying.get(message.turn);
    if (retry) this.showRetry(retry, message.error.wait);
    const text = answerText(message);
    if (this.chat.on.lettura && text && "speechSynthesis" in window) {
      const button = this.chat.button("read", "pc-leggi");
      button.addEventListener("click", () => this.chat.reading.toggle(markdown(text).map(plainText).join("\n"), button));
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
    this.node = element("details", "pc-attrezzo", null, element("summary", "", null, this.dot, this.name, this.state));
  }

  update(tool, ended) {
    if (this.tool === tool && this.ended === ended) return;
    if (!this.tool) {
      this.name.textContent = tool.name;
      this.node.append(argumentsView(this.words, tool.arguments));
    }
    // Nobody said that it was run: then it was asked for, no more than that.
    const key = STATES[tool.state] || (ended ? "tool_asked" : "tool_running");
    this.state.textContent = this.words(key);
    this.dot.className = "pc-pallino pc-" + key.replace("_", "-");
    this.tool = tool;
    this.ended = ended;
  }
}

class ActionView {
  constructor(chat, action) {
    this.words = chat.words;
    this.title = action.text || action.name;
    this.node = element("div", "pc-conferma", { role: "group", "aria-label": this.title }, element("p", "pc-domanda", null, this.title));
    if (action.arguments !== null) this.node.append(argumentsView(this.words, action.arguments));
    this.outcome = element("p", "pc-esito");
    this.buttons = element("div", "pc-azioni");
    if (chat.on.conferme) {
      const choice = (key, className, outcome) => {
        const button = element("button", "pc-tasto " + className, { type: "button" }, this.words(key));
        button.addEventListener("click", () => chat.decide(action, outcome));
        return button;
      };
      this.buttons.append(choice("approve", "pc-approva", "approved"), choice("deny", "pc-nega", "denied"));
    }
    this.node.append(this.buttons, this.outcome);
  }

  update(action) {
    this.buttons.hidden = action.outcome !== null || !this.buttons.childElementCount;
    this.outcome.hidden = action.outcome === null;
    this.outcome.textContent = action.outcome === null ? "" : this.words(action.outcome === "denied" ? "denied" : "approved");
  }
}

