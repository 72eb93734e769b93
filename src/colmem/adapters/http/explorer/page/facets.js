// The drill-down tree: facets, their values, and path segments within those. Each facet is counted
// under all conditions but its own, so that its other values can still be seen and chosen.

import { call } from "./api.js";
import { $, count, el, showError } from "./dom.js";
import { FACETS, isSelected, pathTree, toggled, without } from "./filters.js";
import { change, state } from "./state.js";

const BUCKETS = 20;
const BUCKETS_MAX = 500;

const pages = new Map();
const expanded = new Set(["kind", "namespace", "folder"]);
const wide = new Set();
let current = "kind"; // key of the one node that Tab reaches
let running = null;

export async function drawFacets() {
  running?.abort();
  const { signal } = (running = new AbortController());
  $("tree").setAttribute("aria-busy", "true");
  try {
    await Promise.all(FACETS.map((facet) => load(facet, signal)));
    draw();
  } catch (error) {
    showError(error);
  }
  if (!signal.aborted) $("tree").removeAttribute("aria-busy");
}

async function load(facet, signal) {
  const body = { facet: facet.name, filter: without(state.filter, facet), limit: bucketsOf(facet) };
  pages.set(facet.name, await call("v1/explore", body, signal));
}

function bucketsOf(facet) {
  if (!expanded.has(facet.name)) return 1; // enough to know how many values there are
  return facet.path || wide.has(facet.name) ? BUCKETS_MAX : BUCKETS;
}

function draw() {
  const tree = $("tree");
  const hadFocus = tree.contains(document.activeElement);
  tree.replaceChildren(...FACETS.map(facetNode).filter(Boolean));
  const nodes = visible();
  const held = nodes.find((node) => node.dataset.key === current) ?? nodes[0];
  if (held) reach(held, hadFocus);
}

function facetNode(facet) {
  const page = pages.get(facet.name);
  const distinct = page.buckets.length + page.more_buckets;
  if (!distinct && !(facet.field in state.filter)) return null;
  const isOpen = expanded.has(facet.name);
  return node({
    key: facet.name,
    label: facet.label,
    hint: `${count(distinct)} ${distinct === 1 ? "value" : "values"}`,
    level: 1,
    isOpen,
    click: () => unfold(facet.name, facet),
    children: () => valueNodes(facet, page),
  });
}

function valueNodes(facet, page) {
  const made = facet.path
    ? pathTree(page.buckets).map((place) => pathNode(facet, place, 2, page.more_buckets > 0))
    : page.buckets.map((bucket) => valueNode(facet, bucket));
  if (page.missing) made.push(note(`${count(page.missing)} without`));
  if (page.truncated) made.push(note("counted among the first items only"));
  if (page.more_buckets) made.push(moreNode(facet, page));
  return made;
}

function valueNode(facet, { value, count: number }) {
  return node({
    key: `${facet.name} ${value}`,
    label: value === "" ? "(empty)" : value,
    number: count(number),
    level: 2,
    isSelected: isSelected(state.filter, facet, value),
    click: () => change({ filter: toggled(state.filter, facet, value) }),
  });
}

function pathNode(facet, place, level, isPartial) {
  const key = `${facet.name} ${place.value}`;
  return node({
    key,
    label: place.label === "" ? "(empty)" : place.label,
    number: count(place.count) + (isPartial && place.children.length ? "+" : ""),
    level,
    isSelected: isSelected(state.filter, facet, place.value),
    isOpen: place.children.length ? expanded.has(key) : undefined,
    fold: () => unfold(key),
    click: () => {
      if (place.children.length) expanded.add(key);
      change({ filter: toggled(state.filter, facet, place.value) });
    },
    children: () => place.children.map((child) => pathNode(facet, child, level + 1, isPartial)),
  });
}

function moreNode(facet, page) {
  const left = `${count(page.more_buckets)} more`;
  if (bucketsOf(facet) === BUCKETS_MAX) return note(left);
  const click = () => {
    wide.add(facet.name);
    reload(facet);
  };
  return node({ key: `${facet.name} more`, label: `Show ${left}`, level: 2, click });
}

const note = (text) => el("li", { role: "none", class: "note quiet" }, text);

function node({ key, label, number, hint, level, isOpen, isSelected: chosen, fold, click, children }) {
  const row = el("div", { class: "row", click },
    el("span", { class: "fold", "aria-hidden": "true", click: fold && stopped(fold) },
      isOpen === undefined ? "" : isOpen ? "▾" : "▸"),
    el("span", { class: "label", title: label }, label),
    el("span", { class: number ? "number" : "number quiet" }, number ?? hint ?? ""));
  const made = el("li", {
    role: "treeitem", tabindex: "-1", "data-key": key, "aria-level": String(level),
    "aria-expanded": isOpen === undefined ? null : String(isOpen),
    "aria-selected": chosen === undefined ? null : String(chosen),
    "aria-label": `${label}, ${number ? `${number} items` : (hint ?? "")}`,
  }, row);
  made.activate = click;
  made.fold = isOpen === undefined ? null : (fold ?? click);
  if (isOpen) made.append(el("ul", { role: "group" }, children()));
  return made;
}

const stopped = (action) => (event) => {
  event.stopPropagation();
  action();
};

function unfold(key, facet) {
  current = key;
  const isOpen = expanded.delete(key);
  if (!isOpen) expanded.add(key);
  if (!isOpen && facet) reload(facet);
  else draw();
}

async function reload(facet) {
  try {
    await load(facet, running.signal);
    draw();
  } catch (error) {
    showError(error);
  }
}

const visible = () => [...$("tree").querySelectorAll("[role=treeitem]")];

function reach(node, focus = true) {
  visible().forEach((other) => other.setAttribute("tabindex", "-1"));
  node.setAttribute("tabindex", "0");
  current = node.dataset.key;
  if (focus) node.focus();
}

export function focusFacets() {
  const nodes = visible();
  const held = nodes.find((node) => node.dataset.key === current) ?? nodes[0];
  if (held) reach(held);
}

export function listenToFacets() {
  const tree = $("tree");
  tree.addEventListener("focusin", (event) => {
    const node = event.target.closest("[role=treeitem]");
    if (node && node.dataset.key !== current) reach(node, false);
  });
  tree.addEventListener("keydown", (event) => {
    const node = event.target.closest("[role=treeitem]");
    const move = node && !event.ctrlKey && !event.metaKey && !event.altKey && MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    const next = move(node, visible());
    if (next) reach(next);
  });
}

const parentOf = (node) => node.parentElement.closest("[role=treeitem]");
const MOVES = {
  ArrowDown: (node, all) => all[all.indexOf(node) + 1],
  ArrowUp: (node, all) => all[all.indexOf(node) - 1],
  Home: (_, all) => all[0],
  End: (_, all) => all.at(-1),
  ArrowRight(node, all) {
    if (node.getAttribute("aria-expanded") === "true") return all[all.indexOf(node) + 1];
    node.fold?.();
    return null;
  },
  ArrowLeft(node) {
    if (node.getAttribute("aria-expanded") !== "true") return parentOf(node);
    node.fold();
    return null;
  },
  Enter: (node) => node.activate(),
  " ": (node) => node.activate(),
};
