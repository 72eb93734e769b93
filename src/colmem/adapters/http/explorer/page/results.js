// The list in the middle: the best hits of a search, or without a query the items in their order.

import { call } from "./api.js";
import { card } from "./card.js";
import { $, count, items, showError } from "./dom.js";
import { termsOf } from "./highlight.js";
import { modes, state } from "./state.js";

const PAGE = 20;

let running = null;
let cursor = null;
let shown = 0;
let total = null;
let search = null; // what the hits shown were found by

/** Show the first page. */
export async function drawResults() {
  running?.abort();
  running = new AbortController();
  shown = 0;
  total = null;
  $("results-heading").textContent = state.query.trim() ? "Hits" : "Items";
  $("results-heading").closest("section").setAttribute("aria-busy", "true");
  await Promise.all([page(null, running.signal), countAll(running.signal)]);
}

export async function showMore() {
  const first = shown;
  await page(cursor, running.signal);
  $("hits").children[first]?.querySelector(".open").focus();
}

async function page(from, signal) {
  const query = state.query.trim();
  const body = { filter: state.filter, limit: PAGE };
  if (from) body.cursor = from;
  try {
    const answer = query
      ? await call("v1/fetch", { ...body, query, mode: state.mode }, signal)
      : await call("v1/list", body, signal);
    const found = answer.hits ?? answer.items;
    cursor = answer.next_cursor ?? null;
    if (!from) search = query ? { ...body, query, mode: state.mode, modes, legs: new Map() } : null;
    if (search && !from) search.best = found[0]?.score ?? 1;
    const terms = termsOf(query);
    const cards = found.map((hit, place) => card(hit, shown + place + 1, terms, search));
    if (from) $("hits").append(...cards);
    else $("hits").replaceChildren(...cards);
    shown += found.length;
    $("more").hidden = cursor === null;
    showError(null);
    say();
  } catch (error) {
    if (error.name === "AbortError") return;
    showError(error);
    if (!from) $("hits").replaceChildren();
    $("more").hidden = true;
    $("status").textContent = "";
  }
  $("results-heading").closest("section").removeAttribute("aria-busy");
}

async function countAll(signal) {
  try {
    total = await countItems(state.filter, signal);
    say();
  } catch {
    // The page itself tells what is wrong.
  }
}

/** How many items a filter admits. */
export async function countItems(filter, signal) {
  return (await call("v1/explore", { facet: "kind", filter, limit: 1 }, signal)).total;
}

function say() {
  const isSearch = Boolean(state.query.trim());
  const filtered = Object.keys(state.filter).length ? " that match the filters" : "";
  const admitted = total === null ? "" : items(total) + filtered;
  let text = `${count(shown)}${admitted && ` of ${admitted}`}`;
  if (isSearch) text = `The best ${count(shown)}${admitted && `, looked for among ${admitted}`}`;
  if (!shown && isSearch) text = `Nothing found${admitted && ` among ${admitted}`}.`;
  else if (!shown) text = filtered ? "No item matches the filters." : "The store is empty.";
  $("status").textContent = text;
}
