// The journal's events as a list that can be filtered.

import { html, render } from "../vendor/htm-preact.standalone.umd.js";
import { number, seconds } from "../common.js";
import { RowList } from "../row_list.js";
import { actSaid } from "../steering.js";
import { tame } from "../tame.js";

export const title = "Log";
export const keys = [
  ["/", "search in the events"],
  ["up, down, Enter", "go from event to event and unfold one, when the list has the focus"],
];

const LEVELS = { debug: "all levels", info: "info and warnings", warning: "warnings" };
const RANKS = { debug: 0, info: 1, warning: 2, error: 3 };
const COLUMNS = [
  { name: "seq", title: "no.", number: true },
  { name: "time", title: "time", number: true },
  { name: "kind", title: "kind" },
  { name: "stage", title: "stage" },
  { name: "item", title: "item" },
  { name: "candidate", title: "candidate" },
  { name: "rest", title: "what it says" },
];

export function mount(element, store) {
  const view = new LogView(element, store);
  view.update(new Set());
  return view;
}

class LogView {
  constructor(element, store) {
    this.element = element;
    this.store = store;
    this.filter = { text: "", kind: "", level: "debug", candidate: "", item: "" };
    this.list = null;
    this.onSlash = (event) => {
      const field = element.querySelector("input[type=search]");
      if (event.key !== "/" || !field || /^(input|textarea|select)$/i.test(event.target.tagName)) return;
      event.preventDefault();
      field.focus();
    };
    addEventListener("keydown", this.onSlash);
  }

  unmount() {
    removeEventListener("keydown", this.onSlash);
    clearTimeout(this.timer);
    this.list?.unmount();
    render(null, this.element);
  }

  update(changed) {
    if (!changed.size) {
      const { kind = "", candidate = "", item = "", seq } = this.store.params;
      this.filter = { ...this.filter, kind, candidate, item };
      if (seq != null) this.filter = { text: "", kind: "", level: "debug", candidate: "", item: "" };
      this.show(false);
      if (seq != null) this.unfold(Number(seq));
    } else if (changed.has("log")) this.show(true);
  }

  unfold(seq) {
    const place = this.store.table("log").find(seq);
    if (place >= 0) this.list?.unfold(place);
  }

  /** Show the events that the filter lets through; `follow` keeps the newest in sight if they were. */
  show(follow) {
    const table = this.store.table("log");
    if (!table.length) {
      this.list?.unmount();
      this.list = null;
      render(html`<p class="empty">The journal has no events yet.</p>`, this.element);
      return;
    }
    const places = filtered(table, this.filter);
    render(html`<${Acts} store=${this.store} />${this.controls(table, places.length)}<div class="list" />`, this.element);
    this.list ??= new RowList(this.element.querySelector(".list"), {
      label: "Events. Enter unfolds one.",
      columns: COLUMNS,
      row: (place) => cells(this.store.table("log"), place),
      details: (place) => details(this.store, place),
      mark: (place) => this.store.table("log").column("level")[place],
    });
    const atEnd = follow && this.list.atEnd();
    this.list.set(places);
    if (atEnd) this.list.toEnd();
  }

  controls(table, shown) {
    const kinds = new Map();
    for (const kind of table.column("kind")) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    const { text, kind, level, candidate, item } = this.filter;
    return html`<div class="controls" role="search">
        <label>search <input type="search" value=${text} placeholder="words of the events" onInput=${(event) => this.type("text", event)} /></label>
        <label>kind <select onChange=${(event) => this.set("kind", event.target.value)}>
          <option value="">all kinds</option>
          ${[...kinds.keys()].sort().map(
            (name) => html`<option value=${name} selected=${name === kind}>${tame(name)} (${number(kinds.get(name))})</option>`,
          )}
        </select></label>
        <label>level <select onChange=${(event) => this.set("level", event.target.value)}>
          ${Object.entries(LEVELS).map(([name, said]) => html`<option value=${name} selected=${name === level}>${said}</option>`)}
        </select></label>
        <label>candidate <input value=${candidate} size="8" placeholder="its id" onInput=${(event) => this.type("candidate", event)} /></label>
        <label>item <input value=${item} size="8" placeholder="17 or 17.0" onInput=${(event) => this.type("item", event)} /></label>
        <button onClick=${() => this.clear()} disabled=${shown === table.length}>show all</button>
      </div>
      <p class="summary" role="status">${
        shown === table.length
          ? `${number(shown)} events`
          : shown
            ? `${number(shown)} of ${number(table.length)} events`
            : `None of the ${number(table.length)} events fits these filters.`
      }</p>`;
  }

  set(name, value) {
    this.filter[name] = value;
    this.show(false);
  }

  /** What is typed filters when one has paused for a moment. */
  type(name, event) {
    this.filter[name] = event.target.value;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.show(false), 120);
  }

  clear() {
    this.filter = { text: "", kind: "", level: "debug", candidate: "", item: "" };
    this.show(false);
  }
}

/** What was done to the run by those who watched it. */
function Acts({ store }) {
  const acts = store.table("acts").rows();
  if (!acts.length) return null;
  return html`<details class="acts"><summary>${number(acts.length)} ${acts.length === 1 ? "act" : "acts"} of those who watched the run</summary>
    <table><thead><tr><th scope="col" class="number">time</th><th scope="col">by</th><th scope="col">what</th></tr></thead>
      <tbody>${acts.map(
        (act) => html`<tr><td class="number">${seconds(act.time)}</td><td>${tame(act.by)}</td>
          <td>${tame(actSaid(act))}${act.text && html`<p class="faint">${tame(act.text)}</p>`}${act.refused !== null && html`<p class="notice">Refused: ${tame(act.refused)}</p>`}</td></tr>`,
      )}</tbody>
    </table>
  </details>`;
}

/** The places of the events that fit. An item's id fits the items made of it, too. */
function filtered(table, { text, kind, level, candidate, item }) {
  const [kinds, stages, items, candidates, said, levels] = ["kind", "stage", "item", "candidate", "said", "level"].map(
    (name) => table.column(name),
  );
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const least = RANKS[level];
  const id = item.trim();
  const made = `${id}.`;
  const named = candidate.trim();
  const quoted = JSON.stringify(named);
  const fits = (place, word) =>
    [kinds, stages, items, candidates, said].some((column) => column[place]?.toLowerCase().includes(word));
  const places = [];
  for (let place = 0; place < table.length; place++) {
    if (kind && kinds[place] !== kind) continue;
    if (least && (RANKS[levels[place]] ?? 0) < least) continue;
    if (named && candidates[place] !== named && !said[place].includes(quoted)) continue;
    if (id && items[place] !== id && !items[place]?.startsWith(made)) continue;
    if (words.every((word) => fits(place, word))) places.push(place);
  }
  return places;
}

function cells(table, place) {
  const value = (name) => table.column(name)[place];
  return [
    value("seq"),
    seconds(value("seconds")),
    tame(value("kind")),
    tame(value("stage") ?? ""),
    tame(value("item") ?? ""),
    tame(value("candidate") ?? ""),
    tame(brief(value("said"))),
  ];
}

/** JSON without what only JSON needs, as far as it may be seen in a line. */
function brief(said) {
  return said.slice(0, 240).replace(/^\{|\}$/g, "").replace(/"(\w+)": /g, "$1: ");
}

function details(store, place) {
  const { seq, seconds: time, kind, stage, item, candidate, said, level } = store.table("log").row(place);
  const link = (view, params, text) =>
    html`<a href=${`#/${view}?${new URLSearchParams(params)}`} onClick=${(event) => {
      event.preventDefault();
      event.stopPropagation();
      store.go(view, params);
    }}>${text}</a>`;
  return html`<p>Event ${number(seq)}, <b>${tame(kind)}</b>, at ${time.toFixed(3)} s${stage ? `, stage ${tame(stage)}` : ""}, level ${level}.</p>
    <p class="links">
      ${candidate && link("candidate", { candidate }, `candidate ${tame(candidate)}`)}
      ${item && link("timeline", { item }, `item ${tame(item)} in the timeline`)}
      ${item && link("log", { item }, "all events of this item")}
      ${link("log", { kind }, `all events of this kind`)}
    </p>
    <pre>${tame(pretty(said)) || "It has no other fields."}</pre>`;
}

/** JSON on several lines; as it is where it was cut. */
function pretty(said) {
  try {
    return said && JSON.stringify(JSON.parse(said), null, 2);
  } catch {
    return said;
  }
}
