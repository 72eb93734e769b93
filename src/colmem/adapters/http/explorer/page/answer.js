// recall: an answer whose marks lead to what it quotes.

import { call } from "./api.js";
import { headingOf, instant } from "./card.js";
import { $, button, el, items, showError } from "./dom.js";
import { excerpt, marked, termsOf } from "./highlight.js";
import { change, state } from "./state.js";

const LIMIT = 8;
let running = null;

export async function drawAnswer() {
  running?.abort();
  const question = state.query.trim();
  $("answer").hidden = !state.answer || !question;
  if ($("answer").hidden) return;
  running = new AbortController();
  $("answer-text").textContent = "Looking for an answer…";
  $("citations").replaceChildren();
  $("answer-model").textContent = "";
  try {
    const body = { question, filter: state.filter, limit: LIMIT };
    fill(await call("v1/recall", body, running.signal));
  } catch (error) {
    if (error.name === "AbortError") return;
    $("answer-text").textContent = "";
    showError(error);
  }
}

function fill({ answer, citations, model }) {
  const terms = termsOf(state.query);
  $("answer-text").replaceChildren(...withMarks(answer, citations));
  $("citations").replaceChildren(...citations.map((citation) => entry(citation, terms)));
  const by = model ? `Answered by ${model} from ` : "From ";
  $("answer-model").textContent = citations.length ? `${by}${items(citations.length)}.` : "";
}

/** An answer as nodes: each mark that names a citation is a button that opens it. */
function withMarks(answer, citations) {
  return answer.split(/(\[\d+\])/).map((part) => {
    const citation = /^\[\d+\]$/.test(part) ? citations[Number(part.slice(1, -1)) - 1] : undefined;
    if (!citation) return part;
    const label = `Citation ${part.slice(1, -1)}: ${titleOf(citation)}`;
    return button(part, () => change({ item: citation.id }), { class: "cite plain", "aria-label": label });
  });
}

const titleOf = (citation) => headingOf({ ...citation, text: citation.snippet }).title;

function entry(citation, terms) {
  const about = [citation.kind, citation.meta.observed_at && instant(citation.meta.observed_at)].filter(Boolean);
  return el("li", {},
    button(titleOf(citation), () => change({ item: citation.id }), { class: "plain open" }),
    el("span", { class: "quiet" }, ` ${about.join(" · ")}`),
    el("p", { class: "text", dir: "auto" }, marked(excerpt(citation.snippet, terms, 200), terms)));
}
