// The page as a whole: what listens to what. Each part draws itself from `state`.

import { drawAnswer } from "./answer.js";
import { call, onTokenNeeded } from "./api.js";
import { $, button, closable, count, el, items, openDialog, showError } from "./dom.js";
import { drawFacets, focusFacets, listenToFacets } from "./facets.js";
import { chips } from "./filters.js";
import { confirmForget } from "./forget.js";
import { drawItem } from "./item.js";
import { countItems, drawResults, showMore } from "./results.js";
import { change, followAddress, offerModes, onChange, refresh, start, state } from "./state.js";
import { listenToTheme } from "./theme.js";
import { listenToTransfers, openTransfers } from "./transfers.js";

const MODE_LABELS = { keyword: "Words", vector: "Meaning", hybrid: "Both" };

onTokenNeeded((wasRefused) => new Promise((resolve) => {
  const dialog = $("token");
  const input = $("token-input");
  let given = null;
  $("token-error").hidden = !wasRefused;
  $("token-error").textContent = wasRefused ? "The server does not know this token." : "";
  $("token-form").onsubmit = (event) => {
    event.preventDefault();
    given = input.value.trim();
    if (given) dialog.close();
  };
  dialog.addEventListener("close", () => {
    input.value = "";
    resolve(given);
  }, { once: true });
  openDialog(dialog);
  input.focus();
}));

onChange((names) => {
  drawForm(names);
  drawChips();
  const has = (...some) => some.some((name) => names.has(name));
  if (has("query", "mode", "filter")) drawResults();
  if (has("filter")) {
    drawFacets();
    drawFacts();
  }
  if (has("query", "filter", "answer")) drawAnswer();
  if (has("item")) drawItem();
});

function drawForm(names) {
  // What is typed and not yet searched for stays when something else changes.
  if (names.has("query")) $("query").value = state.query;
  for (const radio of document.getElementsByName("mode")) radio.checked = radio.value === state.mode;
  $("observed-after").value = (state.filter.observed_after ?? "").slice(0, 10);
  $("observed-before").value = (state.filter.observed_before ?? "").slice(0, 10);
  document.title = state.query ? `${state.query} – colmem` : "colmem";
}

function drawChips() {
  const made = chips(state.filter);
  $("chips").replaceChildren(...made.map(({ label, text, rest }, place) => {
    const remove = () => {
      change({ filter: rest });
      const left = $("chips").querySelectorAll("button");
      (left[Math.min(place, left.length - 1)] ?? $("toggle-facets")).focus();
    };
    const name = `Remove filter ${label}: ${text}`;
    return el("li", {}, button([`${label}: `, el("b", {}, text), " ✕"], remove, { class: "chip", "aria-label": name }));
  }));
  const isFiltered = made.length > 0;
  $("clear-filters").hidden = !isFiltered;
  $("forget-filtered").hidden = !isFiltered;
}

/** Describe the store in the head of the page; what a token may not see is left out. */
async function drawFacts() {
  const [stats, health] = await Promise.all([call("v1/stats"), call("v1/health")].map((one) => one.catch(() => ({}))));
  const facts = [];
  if (stats.items !== undefined) facts.push(items(stats.items));
  if (stats.embedder) facts.push(stats.embedder);
  if (health.state && health.state !== "ok") facts.push(`${health.state}: ${health.reason ?? "no reason given"}`);
  $("store-facts").textContent = facts.join(" · ");
}

async function drawModes() {
  const { fetch_modes: offered } = await call("v1/descriptor");
  offerModes(offered);
  $("modes").append(...offered.map((mode) => el("label", {},
    el("input", { type: "radio", name: "mode", value: mode, change: () => change({ mode, query: $("query").value.trim() }) }),
    el("span", {}, MODE_LABELS[mode] ?? mode))));
}

function search(answer) {
  const query = $("query").value.trim();
  if (query === state.query && answer === state.answer) refresh();
  else change({ query, answer });
}

async function forgetFiltered() {
  const { filter } = state;
  try {
    const number = await countItems(filter);
    const what = chips(filter).map(({ label, text }) => `${label}: ${text}`).join("\n");
    const text = `All ${items(number)} that match the filters will be forgotten:`;
    if (await confirmForget({ filter }, text, what, `Forget ${count(number)}`)) {
      change({ filter: {} });
      refresh();
    }
  } catch (error) {
    showError(error);
  }
}

function observed(field, text) {
  const { [field]: _, ...rest } = state.filter;
  change({ filter: text ? { ...rest, [field]: `${text}T00:00:00Z` } : rest });
}

function toggleFacets() {
  const isOpen = document.body.classList.toggle("browsing");
  $("toggle-facets").setAttribute("aria-expanded", String(isOpen));
}

$("search").addEventListener("submit", (event) => {
  event.preventDefault();
  search(false);
});
$("query").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !event.shiftKey) return;
  event.preventDefault();
  search(true);
});
$("do-recall").addEventListener("click", () => search(true));
$("close-answer").addEventListener("click", () => {
  change({ answer: false });
  $("query").focus();
});
$("more").addEventListener("click", showMore);
$("toggle-facets").addEventListener("click", toggleFacets);
$("clear-filters").addEventListener("click", () => {
  change({ filter: {} });
  $("query").focus();
});
$("forget-filtered").addEventListener("click", forgetFiltered);
$("observed-after").addEventListener("change", (event) => observed("observed_after", event.target.value));
$("observed-before").addEventListener("change", (event) => observed("observed_before", event.target.value));
$("open-transfers").addEventListener("click", openTransfers);
$("open-help").addEventListener("click", () => openDialog($("help")));
for (const dialog of document.querySelectorAll("dialog")) closable(dialog);
$("item").addEventListener("close", () => change({ item: null }));

const KEYS = {
  "/": () => $("query").select(),
  "?": () => openDialog($("help")),
  f: () => {
    if (!document.body.classList.contains("browsing")) toggleFacets();
    focusFacets();
  },
  x: () => {
    const last = chips(state.filter).at(-1);
    if (last) change({ filter: last.rest });
  },
  j: () => step(1),
  k: () => step(-1),
};

function step(by) {
  const all = [...document.querySelectorAll("#hits .open")];
  const here = document.activeElement.closest?.(".hit");
  const at = here ? all.indexOf(here.querySelector(".open")) : by > 0 ? -1 : all.length;
  all[at + by]?.focus();
}

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input:not([type=radio], [type=checkbox]), select, textarea");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

listenToTheme();
listenToFacets();
listenToTransfers();
addEventListener("popstate", followAddress);
try {
  await drawModes();
  start();
} catch (error) {
  showError(error);
}
