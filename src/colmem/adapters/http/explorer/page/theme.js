// Light, dark, or as the system has it; remembered in this browser.

import { $, el } from "./dom.js";

const KEY = "colmem.theme";
const THEMES = ["system", "light", "dark"];

export function listenToTheme() {
  let theme = THEMES.includes(localStorage.getItem(KEY)) ? localStorage.getItem(KEY) : "system";
  const draw = () => {
    document.documentElement.dataset.theme = theme;
    $("theme").replaceChildren(el("span", { class: "wide" }, "Theme: "), theme);
    $("theme").setAttribute("aria-label", `Theme: ${theme}`);
  };
  $("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    localStorage.setItem(KEY, theme);
    draw();
  });
  draw();
}
