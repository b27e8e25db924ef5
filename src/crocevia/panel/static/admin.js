// The panel's script: the reader's own times, Copy, a narrow page's menu, what follows the server, steps and deadlines.
"use strict";

const language = document.documentElement.lang;
const clock = new Intl.DateTimeFormat(language, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });
const zone = new Intl.DateTimeFormat(language, { dateStyle: "full", timeStyle: "long" });

function localize(root) {
  for (const node of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(node.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    node.textContent = clock.format(moment);
    node.title = zone.format(moment);
  }
  for (const node of root.querySelectorAll("[data-without-script]")) node.hidden = true;
}

/** Show the steps up to where the slider stands. */
function slide(slider) {
  const steps = document.querySelectorAll(".steps > li");
  const shown = Number(slider.value);
  steps.forEach((step, place) => (step.hidden = place >= shown));
  const told = slider.form.querySelector("output");
  told.value = told.dataset.text.replace("{step}", shown.toLocaleString(language)).replace("{count}", steps.length.toLocaleString(language));
}

/** Say how long is left, as minutes and seconds. */
function countDown() {
  for (const node of document.querySelectorAll("[data-deadline]")) {
    const left = Math.max(0, Math.floor(Number(node.dataset.deadline) - Date.now() / 1000));
    const text = Math.floor(left / 60) + ":" + String(left % 60).padStart(2, "0");
    if (left < 3600) node.textContent = text;
  }
}

async function copy(button) {
  const code = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {
    // On http away from localhost there is no clipboard: the text is selected instead.
    getSelection().selectAllChildren(code);
    return;
  }
  const label = button.querySelector("span");
  const before = label.textContent;
  label.textContent = button.dataset.done;
  button.setAttribute("aria-live", "polite");
  setTimeout(() => (label.textContent = before), 2000);
}

/** Ask for the page's JSON view every two seconds, and fetch the page only when its `etag` has changed. */
function follow(button) {
  const status = document.getElementById("live-status");
  const query = location.search;
  let on = true;
  let timer = 0;
  async function look() {
    clearTimeout(timer);
    if (on && !document.hidden) {
      try {
        const view = await (await fetch(button.dataset.live + query, { headers: { Accept: "application/json" } })).json();
        const shown = document.getElementById("live");
        if (view.etag !== undefined && view.etag !== shown.dataset.etag) {
          const text = await (await fetch(location.pathname + query)).text();
          const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("live");
          if (fresh && !shown.contains(document.activeElement)) {
            const node = document.importNode(fresh, true);
            localize(node);
            shown.replaceWith(node);
            status.textContent = status.dataset.text;
          }
        }
      } catch {
        // The server is away for a moment: the next look will tell.
      }
    }
    timer = setTimeout(look, 2000);
  }
  button.hidden = false;
  button.addEventListener("click", () => {
    on = !on;
    button.setAttribute("aria-pressed", String(on));
    if (on) look();
  });
  document.addEventListener("visibilitychange", () => document.hidden || look());
  timer = setTimeout(look, 2000);
}

/** A text file into the form: its name, and its text for a last look. */
async function take(picker) {
  const [file] = picker.files;
  if (!file) return;
  document.getElementById(picker.dataset.into + "-name").value = file.name;
  document.getElementById(picker.dataset.into + "-text").value = await file.text();
}

localize(document);
countDown();
for (const picker of document.querySelectorAll("[data-into]")) {
  picker.closest("[data-upload]").hidden = false;
  picker.addEventListener("change", () => take(picker));
}
if (document.querySelector("[data-live='/panel/waiting.json']")) setInterval(countDown, 1000);
document.addEventListener("input", (event) => event.target.matches("[data-slider]") && slide(event.target));
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
}
for (const button of document.querySelectorAll("[data-live]")) follow(button);
const menu = document.querySelector("details.menu");
if (menu) {
  const narrow = matchMedia("(max-width: 900px)");
  const fit = () => (menu.open = !narrow.matches);
  narrow.addEventListener("change", fit);
  fit();
}
const wrong = document.querySelector("[aria-invalid]");
if (wrong) wrong.focus();
