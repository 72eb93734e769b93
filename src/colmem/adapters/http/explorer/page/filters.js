// How facets and filters belong together: MetaFilter fields, the chips that show them, narrowing.

/** Facets in the order they are shown. A path facet's values form a tree; its filter admits all below. */
export const FACETS = [
  { name: "kind", label: "Kind", field: "kinds", many: true },
  { name: "namespace", label: "Namespace", field: "reach", path: true },
  { name: "workspace", label: "Workspace", field: "workspace" },
  { name: "folder", label: "Folder", field: "folder", path: true },
  { name: "file_path", label: "File", field: "file_path", path: true },
  { name: "tag", label: "Tag", field: "tags_any", many: true },
  { name: "language", label: "Language", field: "language" },
  { name: "source", label: "Source", field: "sources", many: true },
  { name: "source_id", label: "Source id", field: "source_id" },
  { name: "repo", label: "Repository", field: "repo" },
  { name: "url", label: "Address", field: "url" },
  { name: "thread", label: "Thread", field: "thread_id" },
  { name: "agent", label: "Agent", field: "agent_id" },
  { name: "tool_call", label: "Tool", field: "tool_call" },
];

const OTHERS = {
  commit: "Commit", turns: "Turns", observed_after: "Observed from", observed_before: "Observed before",
};

const ROOT = "root";

/** The filter without a facet's own condition: what its alternatives are counted by. */
export function without(filter, facet) {
  const { [facet.field]: _, ...rest } = filter;
  return rest;
}

export function isSelected(filter, facet, value) {
  const held = filter[facet.field];
  if (held === undefined) return false;
  if (facet.many) return held.includes(value);
  return facet.field === "reach" ? (held.at ?? ROOT) === value : held === value;
}

/** The filter with a value of a facet added, or taken away when it is there. */
export function toggled(filter, facet, value) {
  const rest = without(filter, facet);
  if (facet.many) {
    const held = filter[facet.field] ?? [];
    const now = held.includes(value) ? held.filter((one) => one !== value) : [...held, value];
    return now.length ? { ...rest, [facet.field]: now } : rest;
  }
  if (isSelected(filter, facet, value)) return rest;
  // Below root lies everything, so choosing it means the items of root itself.
  const at = { at: value, inherit: false, descendants: value !== ROOT };
  return { ...rest, [facet.field]: facet.field === "reach" ? at : value };
}

/** The filter with a value of a facet chosen, whether it was or not. */
export function narrowed(filter, facet, value) {
  return isSelected(filter, facet, value) ? filter : toggled(filter, facet, value);
}

/** The chips of a filter: a label, a text, and the filter without it. */
export function chips(filter) {
  const made = [];
  for (const facet of FACETS) {
    const held = filter[facet.field];
    if (held === undefined) continue;
    for (const value of facet.many ? held : [held]) {
      const rest = facet.many ? toggled(filter, facet, value) : without(filter, facet);
      made.push({ label: facet.label, text: textOf(facet, value), rest });
    }
  }
  for (const [field, label] of Object.entries(OTHERS)) {
    const { [field]: held, ...rest } = filter;
    if (held === undefined) continue;
    const text = typeof held === "object" ? `${held.first}–${held.last}` : held;
    made.push({ label, text: field.startsWith("observed") ? text.slice(0, 10) : text, rest });
  }
  return made;
}

function textOf(facet, value) {
  if (facet.field === "reach") {
    const above = value.inherit !== false ? " and above" : "";
    return `${value.at ?? ROOT}${above}${value.descendants ? " and below" : ""}`;
  }
  return value === "" ? "(empty)" : value;
}

/**
 * Values with their counts as a tree of path segments. A node's `value` is what to filter by; one
 * whose only content is a single child is joined with it.
 */
export function pathTree(buckets) {
  const root = { children: new Map() };
  for (const { value, count } of buckets) {
    let node = root;
    let end = 0;
    const parts = value.split("/");
    parts.forEach((part, place) => {
      end += part.length + (place ? 1 : 0);
      const isLast = place === parts.length - 1;
      if (part === "" && !(isLast && node === root)) return;
      if (!node.children.has(part)) {
        node.children.set(part, {
          label: part, value: value.slice(0, end), own: 0, count: 0, children: new Map(),
        });
      }
      node = node.children.get(part);
      node.count += count;
    });
    node.own += count;
  }
  return finished(root);
}

function finished(node) {
  return [...node.children.values()].map((child) => {
    let made = child;
    while (made.own === 0 && made.children.size === 1) {
      const [only] = made.children.values();
      made = { ...only, label: `${made.label}/${only.label}` };
    }
    return { ...made, children: finished(made) };
  }).sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1));
}
