// Snapshots: write, verify, load, with the progress the server reports.

import { run } from "./api.js";
import { $, count, el, items, openDialog } from "./dom.js";
import { refresh, state } from "./state.js";

const VERBS = {
  snapshot: ["Writing…", "Snapshot written."],
  verify: ["Verifying…", "The snapshot is whole: every checksum agrees."],
  hydrate: ["Loading…", "Snapshot loaded."],
};

export function openTransfers() {
  $("snapshot-filtered-label").hidden = !Object.keys(state.filter).length;
  openDialog($("transfers"));
}

export function listenToTransfers() {
  $("transfers-form").addEventListener("submit", (event) => {
    event.preventDefault();
    start(event.submitter?.value || "snapshot");
  });
}

async function start(name) {
  const buttons = [...$("transfers-form").querySelectorAll("button")];
  buttons.forEach((one) => { one.disabled = true; });
  $("transfer-report").replaceChildren();
  $("transfer-status").className = "";
  $("transfer-status").textContent = VERBS[name][0];
  $("transfer-running").hidden = false;
  progress({});
  try {
    report(await run(`v1/${name}`, bodyOf(name), progress));
    $("transfer-status").textContent = VERBS[name][1];
    if (name === "hydrate") refresh();
  } catch (error) {
    $("transfer-status").className = "error";
    $("transfer-status").textContent = error.message;
    const { reason, file, expected, actual } = error.body ?? {};
    report({ reason, file, expected, actual });
  }
  $("transfer-running").hidden = true;
  buttons.forEach((one) => { one.disabled = false; });
}

function bodyOf(name) {
  const body = { path: $("snapshot-path").value.trim() };
  if (name !== "snapshot") return body;
  if ($("snapshot-format").value) body.format = $("snapshot-format").value;
  const isFiltered = !$("snapshot-filtered-label").hidden && $("snapshot-filtered").checked;
  return isFiltered ? { ...body, filter: state.filter } : body;
}

/** Show how far the work is: bytes of a total, else items, when the bar only shows that it goes on. */
function progress({ done, exported, total }) {
  const bar = $("transfer-progress");
  const number = done ?? exported;
  if (number === undefined) {
    bar.removeAttribute("value");
    return;
  }
  if (total) {
    bar.max = total;
    bar.value = number;
  }
  $("transfer-status").textContent = total ? `${Math.floor((100 * number) / total)} %` : items(number);
}

function report(fields) {
  const told = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null && value !== 0);
  const text = (value) => (typeof value === "number" ? count(value) : String(value));
  $("transfer-report").replaceChildren(...told.flatMap(([name, value]) => [
    el("dt", {}, name.replaceAll("_", " ")), el("dd", {}, text(value)),
  ]));
}
