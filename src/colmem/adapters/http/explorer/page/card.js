// A hit in the list: where it is from, the part of its text that fits the query, its score.

import { button, el } from "./dom.js";
import { excerpt, marked } from "./highlight.js";
import { scoreParts } from "./parts.js";
import { change } from "./state.js";

const TITLE_CHARS_MAX = 100;

/** What stands above an item's text: its own first line if that is a title, else where it is from. */
export function headingOf(hit) {
  const [first, ...rest] = hit.text.split("\n");
  const isTitled = rest.some((line) => line.trim()) && first.length <= TITLE_CHARS_MAX;
  if (hit.kind === "document" && isTitled) {
    return { title: first.replace(/^#+\s*/, ""), text: rest.join("\n").trim() };
  }
  const { file_path: file, url, thread_id: thread, folder } = hit.meta;
  const place = file || url || (thread && `Thread ${thread}`) || folder;
  return { title: place || `${hit.kind[0].toUpperCase()}${hit.kind.slice(1)} ${hit.id.slice(0, 8)}`, text: hit.text };
}

/** An instant as it is read easily; all are UTC. */
export const instant = (text) => text.slice(0, 16).replace("T", " ");

/** How a score compares with the best one; keyword scores know no bound. */
export function bar(score, best) {
  const max = String(Math.max(best, 1));
  return el("meter", { min: "0", max, value: String(score), "aria-hidden": "true" });
}

export const scoreText = (score) => score.toFixed(3);

/** A list entry; `search` is what found it, null when nothing was searched for. */
export function card(hit, rank, terms, search) {
  const { title, text } = headingOf(hit);
  const open = () => change({ item: hit.id });
  const clicked = (event) => {
    const isOther = event.target.closest("button, a, .parts") || String(getSelection());
    if (!isOther) open();
  };
  return el("li", { class: "hit", "data-id": hit.id, click: clicked },
    el("h3", {}, button(title, open, { class: "open plain" })),
    el("p", { class: "text", dir: "auto" }, marked(excerpt(text, terms), terms)),
    el("p", { class: "about quiet" },
      el("span", { class: `kind ${hit.kind}` }, hit.kind),
      facts(hit).map((fact) => el("span", {}, fact))),
    search && score(hit, rank, search));
}

function facts({ meta, confidence }) {
  const made = [];
  if (confidence !== undefined) made.push(`confidence ${Number(confidence.toFixed(2))}`);
  if (meta.namespace && meta.namespace !== "root") made.push(meta.namespace);
  if (meta.folder) made.push(meta.folder);
  if (meta.language) made.push(meta.language);
  if (meta.observed_at) made.push(instant(meta.observed_at));
  made.push(...(meta.tags ?? []).map((tag) => `#${tag}`));
  return made;
}

function score(hit, rank, search) {
  const parts = el("div", { class: "parts", hidden: true, id: `parts-${rank}` });
  const toggle = async () => {
    parts.hidden = !parts.hidden;
    why.setAttribute("aria-expanded", String(!parts.hidden));
    if (!parts.hidden && !parts.firstChild) await scoreParts(parts, hit, rank, search);
  };
  const why = button("Why?", toggle, {
    class: "plain", "aria-expanded": "false", "aria-controls": parts.id,
    "aria-label": `Why is this number ${rank}?`,
  });
  return [
    el("p", { class: "score" },
      bar(hit.score, search.best),
      el("span", {}, `score ${scoreText(hit.score)}`), why),
    parts,
  ];
}
