// ---------------------------------------------------------------------------------------------------- attachments

const PHOTOS = ["image/jpeg", "image/png", "image/gif", "image/webp"];
const MAX_FILES = 5;
const MAX_PDF = 10;
const MAX_PHOTO = 5; // megabytes

/** Files beside the message that is being written: by button, paste and drop. */
class Attachments {
  constructor(chat) {
    this.chat = chat;
    this.held = []; // {nome, tipo, dati}; dati null while the file is being read
    this.tray = element("ul", "pc-allegati");
    const accepted = ["application/pdf", ...PHOTOS].join(",");
    this.picker = element("input", "pc-nascosto", { type: "file", multiple: "", accept: accepted, tabindex: "-1", "aria-hidden": "true" });
    this.button = chat.button("attach", "pc-allega");
    this.button.hidden = !chat.on.allegati;
    this.picker.disabled = !chat.on.allegati;
    if (chat.on.allegati) this.listen();
  }

  get busy() {
    return this.held.some((file) => file.dati === null);
  }

  /** The files as blocks of the agent call; the tray is empty afterwards. */
  take() {
    const taken = this.held.map(({ nome, tipo, dati }) => Object.assign({ tipo: "documento", nome }, tipo !== "application/pdf" && { tipo_file: tipo }, { dati }));
    this.held = [];
    this.show();
    return taken;
  }

  listen() {
    const { root, text } = this.chat;
    this.button.addEventListener("click", () => this.picker.click());
    this.picker.addEventListener("change", () => {
      this.add(this.picker.files);
      this.picker.value = "";
    });
    text.addEventListener("paste", (event) => {
      if (event.clipboardData.files.length) {
        event.preventDefault();
        this.add(event.clipboardData.files);
      }
    });
    const over = (on) => (event) => {
      if (!event.dataTransfer || ![...event.dataTransfer.types].includes("Files")) return;
      event.preventDefault();
      root.classList.toggle("pc-sopra", on);
      if (event.type === "drop") this.add(event.dataTransfer.files);
    };
    root.addEventListener("dragover", over(true));
    root.addEventListener("dragleave", over(false));
    root.addEventListener("drop", over(false));
  }

  add(list) {
    const { chat } = this;
    chat.warn("");
    for (const file of list) {
      const problem = this.problemWith(file);
      if (problem) chat.warn(problem);
      else this.read(file);
    }
    this.show();
    chat.text.focus();
  }

  read(file) {
    const held = { nome: file.name, tipo: file.type, dati: null };
    this.held.push(held);
    const reader = new FileReader();
    reader.addEventListener("load", () => {
      held.dati = String(reader.result).replace(/^[^,]*,/, "");
      this.show();
    });
    reader.addEventListener("error", () => {
      this.held = this.held.filter((one) => one !== held);
      this.chat.warn(this.chat.words("unreadable", { name: file.name }));
      this.show();
    });
    reader.readAsDataURL(file);
  }

  problemWith(file) {
    const { words } = this.chat;
    if (this.held.length >= MAX_FILES) return words("too_many", { count: MAX_FILES });
    const size = file.type === "application/pdf" ? MAX_PDF : PHOTOS.includes(file.type) ? MAX_PHOTO : 0;
    if (!size) return words("wrong_kind", { name: file.name });
    return file.size > size * 1024 * 1024 ? words("too_large", { name: file.name, size }) : null;
  }

  show() {
    const { chat } = this;
    this.tray.hidden = !this.held.length;
    this.tray.replaceChildren(...this.held.map((file) => {
      const remove = element("button", "pc-tasto pc-togli", { type: "button", "aria-label": chat.words("remove", { name: file.nome }) }, icon("remove"));
      remove.addEventListener("click", () => {
        this.held = this.held.filter((one) => one !== file);
        this.show();
        chat.text.focus();
      });
      return element("li", "pc-allegato" + (file.dati === null ? " pc-legge" : ""), null, element("span", "pc-nomefile", null, file.nome), remove);
    }));
  }
}

