// The lineage as a graph: which candidates are drawn, and where. Nothing here touches the page.

/** The size of a place in the drawing, in pixels at a zoom of 1. */
export const COLUMN = 92;
export const ROW = 58;

const LIVING = ["confirmed", "speculative"];

/**
 * The candidates of a run by id, in the order of proposals: {id, place, kind, status, reason, score, parent, others,
 * winning}. `parent` is what it was made from first, `others` are a merge's other parents and a group's edits.
 */
export function readLineage(store) {
  const table = store.table("candidates");
  const [ids, kinds, statuses, reasons, scores, parents, edits, sources] = [
    "id", "kind", "status", "reason", "score", "parents", "edits", "sources",
  ].map((name) => table.column(name));
  const nodes = new Map();
  for (let place = 0; place < table.length; place++) {
    const known = (names) => (names ?? []).filter((name) => nodes.has(name));
    const made = known(parents[place]);
    const from = made.length ? made : known(sources[place]).slice(0, 1);
    nodes.set(ids[place], {
      id: ids[place],
      place,
      kind: kinds[place],
      status: statuses[place],
      reason: reasons[place],
      score: scores[place],
      parent: from[0] ?? null,
      others: [...new Set([...from.slice(1), ...known(edits[place])])].filter((name) => name !== from[0]),
      winning: false,
    });
  }
  const about = store.about();
  for (let id = about.best; nodes.has(id); id = nodes.get(id).parent) nodes.get(id).winning = true;
  return { nodes, best: nodes.has(about.best) ? about.best : null, running: about.state === "running" };
}

/**
 * The candidates to be drawn, in their order. Those that came to nothing, and are in nothing that lives, are left out
 * unless `all` is set or they are among those that are `asked` for; `hidden` counts them by the candidate that they are
 * folded into.
 */
export function choose({ nodes, running }, all, opened, asked) {
  const kept = new Set();
  const keep = (id) => {
    const open = [id];
    while (open.length) {
      const node = nodes.get(open.pop());
      if (!node || kept.has(node.id)) continue;
      kept.add(node.id);
      open.push(node.parent, ...node.others);
    }
  };
  for (const node of nodes.values()) {
    const lives = LIVING.includes(node.status) || node.winning || node.parent === null || (running && node.status === "proposed");
    if (all || lives || opened.has(node.parent)) keep(node.id);
  }
  for (const id of asked) keep(id);
  const hidden = new Map();
  for (const node of nodes.values()) {
    if (kept.has(node.id)) continue;
    let above = node.parent;
    while (above !== null && !kept.has(above)) above = nodes.get(above).parent;
    hidden.set(above, (hidden.get(above) ?? 0) + 1);
  }
  return { shown: [...nodes.values()].filter((node) => kept.has(node.id)), hidden };
}

/**
 * Places for candidates: `column` is the length of the longest way from a first one, `row` is that of the parent for
 * the child that leads to the winner, or else to most others, and a free one below for each other child.
 */
export function layOut(shown) {
  const places = new Map();
  const children = new Map();
  const weights = new Map();
  for (const node of shown) {
    const above = [node.parent, ...node.others].map((id) => places.get(id)?.column ?? -1);
    places.set(node.id, { node, column: 1 + Math.max(...above), row: 0 });
    if (!children.has(node.parent)) children.set(node.parent, []);
    children.get(node.parent).push(node);
  }
  for (const node of [...shown].reverse()) {
    const below = children.get(node.id) ?? [];
    weights.set(node.id, 1 + below.reduce((sum, child) => sum + weights.get(child.id), 0));
  }
  for (const below of children.values()) {
    below.sort((a, b) => b.winning - a.winning || weights.get(b.id) - weights.get(a.id) || a.place - b.place);
  }
  const taken = new Rows();
  const open = [...(children.get(null) ?? [])].reverse().map((node) => [node, 0]);
  let columns = 0;
  while (open.length) {
    const [first, least] = open.pop();
    const line = [];
    for (let node = first; node; node = children.get(node.id)?.[0]) line.push(node);
    const from = Math.max(0, places.get(first.id).column - 1);
    const to = places.get(line[line.length - 1].id).column;
    const row = taken.take(least, from, to);
    columns = Math.max(columns, to + 1);
    for (const node of line) {
      places.get(node.id).row = row;
      for (const child of (children.get(node.id) ?? []).slice(1).reverse()) open.push([child, row + 1]);
    }
  }
  return { places, children, columns, rows: taken.rows.length };
}

/** Which columns of each row are taken. */
class Rows {
  constructor() {
    this.rows = [];
  }

  /** The first row, from `least` on, that is free from one column to another; they are taken then. */
  take(least, from, to) {
    let row = least;
    while (this.rows[row]?.some(([begin, end]) => begin <= to && end >= from)) row += 1;
    while (this.rows.length <= row) this.rows.push([]);
    this.rows[row].push([from, to]);
    return row;
  }
}
