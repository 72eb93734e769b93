// What a score is made of: the hit's place and score in the rankings by keyword and by meaning alone,
// which every server can tell; and where the server offers /v1/explain, what that says.

import { call } from "./api.js";
import { bar, scoreText } from "./card.js";
import { count, el } from "./dom.js";
import { placesOf, termsOf } from "./highlight.js";

const DEPTH = 50;
const EXPLAIN = "/v1/explain";
const LEGS = { keyword: "By its words", vector: "By its meaning" };

/** Fill a box with the parts of a hit's score under a search: {query, mode, filter, modes, best, legs}. */
export async function scoreParts(box, hit, rank, search) {
  box.setAttribute("aria-live", "polite");
  box.replaceChildren(el("p", { class: "quiet" }, "Comparing rankings…"));
  const modes = Object.keys(LEGS).filter((mode) => search.modes.includes(mode));
  let legs;
  let said;
  try {
    [said, ...legs] = await Promise.all([explanation(hit, search), ...modes.map((mode) => leg(mode, search))]);
  } catch (error) {
    box.replaceChildren(el("p", { class: "error" }, error.message));
    return;
  }
  const rows = modes.map((mode, place) => {
    const at = legs[place].findIndex((other) => other.id === hit.id);
    return at < 0
      ? row(LEGS[mode], `not among the first ${count(legs[place].length)}`)
      : row(LEGS[mode], `number ${at + 1}`, legs[place][at].score, legs[place][0].score);
  });
  const words = [...new Set(placesOf(hit.text, termsOf(search.query)).map(([start, end]) => hit.text.slice(start, end).toLowerCase()))];
  box.replaceChildren(...[
    el("table", {},
      el("caption", { class: "hidden" }, "Place and score in each ranking"),
      el("tbody", {}, row(`This list (${search.mode})`, `number ${rank}`, hit.score, search.best), rows)),
    el("p", { class: "quiet" }, words.length ? `Words found: ${words.slice(0, 12).join(", ")}` : "No word of the query found."),
    said && el("details", {}, el("summary", {}, "What the engine says"), tree(said)),
  ].filter(Boolean));
}

let offered = null; // whether the server explains, asked once

/** What the server says of a hit; null when it does not explain, or not this one. */
async function explanation(hit, { query, mode, filter }) {
  offered ??= call("v1/openapi.json").then((api) => EXPLAIN in api.paths);
  try {
    return (await offered) ? own(hit, await call(EXPLAIN.slice(1), { query, mode, filter, limit: DEPTH, id: hit.id })) : null;
  } catch {
    return null; // the rankings still tell the most of it
  }
}

/** An explanation cut down to one hit and what holds for all of them. */
function own(hit, { hits, why_not: whyNot, ...rest }) {
  const found = hits?.find((other) => other.id === hit.id) ?? whyNot?.hit;
  return { ...rest, ...found };
}

/** Any JSON as nested lists. */
function tree(value) {
  if (value === null || typeof value !== "object") return el("span", {}, String(value));
  return el("ul", { class: "said" }, Object.entries(value).map(([name, part]) => {
    const label = Array.isArray(value) ? null : el("span", { class: "quiet" }, `${name.replaceAll("_", " ")}: `);
    return el("li", {}, label, tree(part));
  }));
}

// A ranking is the same for all hits of a search, so it is asked for once.
function leg(mode, { query, filter, legs }) {
  if (!legs.has(mode)) {
    const asked = call("v1/fetch", { query, mode, filter, limit: DEPTH }).then((page) => page.hits);
    asked.catch(() => legs.delete(mode));
    legs.set(mode, asked);
  }
  return legs.get(mode);
}

function row(name, place, score, best) {
  const cell = score === undefined
    ? ["–"]
    : [bar(score, best), ` ${scoreText(score)}`];
  return el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, place), el("td", {}, cell));
}
