// --------------------------------------------------------------------------------------------------------- speech

const voiceOf = (language) => (language === "it" ? "it-IT" : "en-US");

/** Push to talk, where the browser can listen. */
class Listening {
  constructor(chat) {
    this.chat = chat;
    this.Hearing = chat.on.microfono ? window.SpeechRecognition || window.webkitSpeechRecognition : null;
    this.hearing = null;
    this.button = chat.button("talk", "pc-parla");
    this.button.hidden = !this.Hearing;
    if (this.Hearing) this.listen();
  }

  listen() {
    let pressed = 0;
    const press = (event) => {
      if (event.type === "keydown" && (event.repeat || ![" ", "Enter"].includes(event.key))) return;
      event.preventDefault();
      pressed = event.timeStamp;
      if (this.hearing) this.hearing.stop();
      else this.start();
    };
    // A short press (also that of a screen reader) starts or stops; a long one listens as long as it lasts.
    const release = (event) => event.timeStamp - pressed > 400 && this.hearing && this.hearing.stop();
    this.button.addEventListener("pointerdown", press);
    this.button.addEventListener("pointerup", release);
    this.button.addEventListener("keydown", press);
    this.button.addEventListener("keyup", release);
    this.button.setAttribute("aria-pressed", "false");
  }

  start() {
    const { chat } = this;
    const before = chat.text.value ? chat.text.value.trimEnd() + " " : "";
    const hearing = new this.Hearing();
    hearing.lang = voiceOf(chat.language);
    hearing.interimResults = true;
    hearing.continuous = true;
    hearing.addEventListener("result", (event) => {
      chat.text.value = before + Array.from(event.results, (result) => result[0].transcript).join("");
      chat.grow();
    });
    hearing.addEventListener("error", () => chat.warn(chat.words("talk_failed")));
    hearing.addEventListener("end", () => {
      this.hearing = null;
      this.button.setAttribute("aria-pressed", "false");
      chat.setStatus("");
      chat.text.focus();
    });
    this.hearing = hearing;
    chat.warn("");
    this.button.setAttribute("aria-pressed", "true");
    chat.setStatus(chat.words("listening"));
    hearing.start();
  }
}

/** Answers read aloud, one at a time. */
class Reading {
  constructor(chat) {
    this.chat = chat;
    this.button = null; // of the answer that is being read
  }

  toggle(text, button) {
    const mine = this.button === button;
    this.stop();
    if (mine) return;
    const spoken = new SpeechSynthesisUtterance(text);
    spoken.lang = voiceOf(this.chat.language);
    spoken.addEventListener("end", () => this.button === button && this.stop());
    this.button = button;
    this.label("read_stop");
    speechSynthesis.speak(spoken);
  }

  stop() {
    if (!this.button) return;
    this.label("read");
    this.button = null;
    speechSynthesis.cancel();
  }

  label(key) {
    this.button.title = this.chat.words(key);
    this.button.setAttribute("aria-label", this.chat.words(key));
  }
}

