// Making and finding elements. Text is only ever set as text, never parsed as HTML.

export const $ = (id) => document.getElementById(id);

/** Make an element: properties that are functions are listeners, null and false leave one out. */
export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

export function button(text, click, properties = {}) {
  return el("button", { type: "button", ...properties, click }, text);
}

/** Show a dialog; gives back focus to what had it, also when that has been drawn anew. */
export function openDialog(dialog) {
  if (dialog.open) return;
  const before = document.activeElement;
  dialog.showModal();
  dialog.addEventListener("close", () => {
    if (before && before.isConnected) before.focus();
    else $("results-heading").focus();
  }, { once: true });
}

/** Close by its close buttons, and by a click beside it. */
export function closable(dialog) {
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.closest("[data-close]")) dialog.close();
  });
}

const counts = new Intl.NumberFormat("en");
export const count = (n) => counts.format(n);
export const items = (n) => `${count(n)} ${n === 1 ? "item" : "items"}`;

export function showError(error) {
  if (error && error.name === "AbortError") return;
  const box = $("error");
  box.textContent = error ? error.message : "";
  box.hidden = !error;
}
