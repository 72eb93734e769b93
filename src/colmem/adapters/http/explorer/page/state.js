// What is looked at: query, mode, filter, answer, open item. It lives in the address, so that back,
// forward and bookmarks work; what follows `#` is never sent to the server.

export const state = { query: "", mode: "hybrid", filter: {}, answer: false, item: null };

const listeners = [];

/** The ways of ranking that the engine has, the best last. */
export let modes = [];

export function offerModes(offered) {
  modes = offered;
}

/** Call back with the set of names that changed. */
export function onChange(listener) {
  listeners.push(listener);
}

/** Look at something else, as a new step of the history. */
export function change(changes) {
  const names = assign(changes);
  if (!names.size) return;
  history.pushState(null, "", address());
  listeners.forEach((listener) => listener(names));
}

/** Follow the address when the history moves. */
export function followAddress() {
  const names = assign(read());
  listeners.forEach((listener) => listener(names));
}

/** Begin with what the address says. */
export function start() {
  assign(read());
  listeners.forEach((listener) => listener(new Set(Object.keys(state))));
}

/** Draw everything anew: what is stored has changed. */
export function refresh() {
  listeners.forEach((listener) => listener(new Set(["filter"])));
}

function assign(changes) {
  const differs = ([name, value]) => JSON.stringify(state[name]) !== JSON.stringify(value);
  const changed = Object.entries(changes).filter(differs);
  Object.assign(state, Object.fromEntries(changed));
  return new Set(changed.map(([name]) => name));
}

function read() {
  const parts = new URLSearchParams(location.hash.slice(1));
  let filter = {};
  try {
    filter = JSON.parse(parts.get("filter") ?? "{}");
  } catch {
    // An address cut short in a message still shows the rest of what it says.
  }
  return {
    query: parts.get("q") ?? "",
    mode: modes.includes(parts.get("mode")) ? parts.get("mode") : modes.at(-1),
    filter: filter !== null && typeof filter === "object" && !Array.isArray(filter) ? filter : {},
    answer: parts.get("answer") === "1",
    item: parts.get("item"),
  };
}

function address() {
  const parts = new URLSearchParams();
  if (state.query) parts.set("q", state.query);
  if (state.mode !== modes.at(-1)) parts.set("mode", state.mode);
  if (Object.keys(state.filter).length) parts.set("filter", JSON.stringify(state.filter));
  if (state.answer) parts.set("answer", "1");
  if (state.item) parts.set("item", state.item);
  const hash = parts.toString();
  return hash ? `#${hash}` : location.pathname + location.search;
}
