// An item opened: its whole text, its metadata, its JSON as the server gives it.

import { call } from "./api.js";
import { headingOf, instant } from "./card.js";
import { $, button, el, openDialog } from "./dom.js";
import { FACETS, narrowed } from "./filters.js";
import { confirmForget } from "./forget.js";
import { excerpt, marked, termsOf } from "./highlight.js";
import { change, refresh, state } from "./state.js";

const NONE = termsOf("");

export async function drawItem() {
  const dialog = $("item");
  const id = state.item;
  if (!id) {
    if (dialog.open) dialog.close();
    return;
  }
  $("item-heading").textContent = "Item";
  $("item-content").replaceChildren(el("p", { class: "quiet" }, "Reading…"));
  openDialog(dialog);
  dialog.scrollTop = 0;
  let hit;
  try {
    [hit] = await call("v1/get", { ids: [id] });
  } catch (error) {
    if (state.item === id) $("item-content").replaceChildren(el("p", { class: "error", role: "alert" }, error.message));
    return;
  }
  if (state.item !== id) return;
  if (hit) fill(hit);
  else $("item-content").replaceChildren(el("p", { role: "alert" }, "There is no such item, or it has been forgotten."));
}

function fill(hit) {
  const { title, text } = headingOf(hit);
  $("item-heading").textContent = title;
  $("item-content").replaceChildren(
    el("div", { class: "whole", dir: "auto" }, marked(text, termsOf(state.query))),
    el("h3", {}, "Metadata"),
    el("dl", { class: "meta" }, entries(hit).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
    el("details", { id: "raw" }, el("summary", {}, "Raw JSON"), el("pre", { tabindex: "0" }, JSON.stringify(hit, null, 2))),
    el("div", { class: "dialog-actions" },
      copyButton(hit),
      button("Forget…", () => forget(hit, `${title}\n${excerpt(text, NONE, 200)}`), { class: "danger", id: "forget-item" })));
}

const copyButton = (hit) => navigator.clipboard && button("Copy JSON", async (event) => {
  const pressed = event.currentTarget;
  await navigator.clipboard.writeText(JSON.stringify(hit, null, 2));
  pressed.textContent = "Copied";
});

async function forget(hit, what) {
  const forgotten = await confirmForget({ ids: [hit.id] }, "This item will be forgotten:", what);
  if (!forgotten) return;
  change({ item: null });
  refresh();
}

function entries(hit) {
  const { meta } = hit;
  const made = [["id", el("code", {}, hit.id)], ["kind", narrowing("kind", hit.kind)]];
  if (hit.confidence !== undefined) made.push(["confidence", String(Number(hit.confidence.toFixed(4)))]);
  made.push(["namespace", narrowing("namespace", meta.namespace ?? "root")]);
  for (const [name, facet] of PLAIN) {
    if (meta[name] !== undefined) made.push([name, facet ? narrowing(facet, meta[name]) : meta[name]]);
  }
  if (/^https?:\/\//i.test(meta.url ?? "")) {
    const link = el("a", { href: meta.url, target: "_blank", rel: "noopener noreferrer" }, "open in a new tab");
    made.push(["", link]);
  }
  if (meta.turns) made.push(["turns", `${meta.turns.first}–${meta.turns.last}`]);
  if (meta.tool_call) made.push(["tool", narrowing("tool_call", meta.tool_call.name)]);
  made.push(["source", narrowing("source", meta.source.kind)]);
  if (meta.source.id !== undefined) made.push(["source id", narrowing("source_id", meta.source.id)]);
  if (meta.tags?.length) made.push(["tags", meta.tags.map((tag) => narrowing("tag", tag))]);
  if (meta.observed_at) {
    const words = `${instant(meta.observed_at)} UTC`;
    made.push(["observed", el("time", { datetime: meta.observed_at, title: meta.observed_at }, words)]);
  }
  return made;
}

const PLAIN = [
  ["workspace", "workspace"], ["folder", "folder"], ["file_path", "file_path"], ["language", "language"],
  ["repo", "repo"], ["commit", null], ["url", "url"], ["thread_id", "thread"], ["agent_id", "agent"],
];

/** A value that, pressed, becomes a filter. */
function narrowing(name, value) {
  const facet = FACETS.find((one) => one.name === name);
  const narrow = () => change({ item: null, filter: narrowed(state.filter, facet, value) });
  return button(value === "" ? "(empty)" : value, narrow, { class: "plain value", title: `Filter by this ${facet.label.toLowerCase()}` });
}
