// The staleness ledger: each item that had missed changes of the pool, and what was made of it.

import { html, render } from "../vendor/htm-preact.standalone.umd.js";
import { colour, number, score, seconds } from "../common.js";
import { RowList } from "../row_list.js";
import { tame } from "../tame.js";
import { WordDiff } from "../word_diff.js";

export const title = "Staleness";
export const keys = [["up, down, Enter", "go from item to item and unfold one, when the list has the focus"]];

/** What can become of a stale item: the words for it, the colour, and what it means. */
const OUTCOMES = {
  continue: ["went on", "grey", "as it was: the staleness policy let it"],
  discard: ["discarded", "red", "thrown away, because it had missed too much"],
  orthogonal: ["repaired", "green", "its edit was applied to the newer candidate"],
  subsumed: ["subsumed", "sky", "what its edit says is in the newer candidate already"],
  conflicting: ["conflicting", "purple", "its edit contradicts the newer candidate"],
  unreadable: ["not readable", "orange", "the judge's reply was not; it went on as it was"],
  pending: ["not judged", "yellow", "sent to be repaired, but not judged yet"],
};
const COLUMNS = [
  { name: "time", title: "time", number: true },
  { name: "item", title: "item" },
  { name: "stage", title: "taken by" },
  { name: "gap", title: "gap", number: true },
  { name: "outcome", title: "what became of it" },
  { name: "candidate", title: "candidate" },
  { name: "reason", title: "why" },
];
/** Gaps from here on share a bar. */
const WIDEST = 12;

export function mount(element, store) {
  const view = new StalenessView(element, store);
  view.update(new Set());
  return view;
}

class StalenessView {
  constructor(element, store) {
    this.element = element;
    this.store = store;
    this.filter = { outcome: null, stage: "" };
    this.list = null;
  }

  unmount() {
    this.list?.unmount();
    render(null, this.element);
  }

  update(changed) {
    if (changed.size && !changed.has("judgements") && !changed.has("runs")) return;
    this.show();
    const { item } = this.store.params;
    if (changed.size || item == null) return;
    const place = this.place(item);
    if (place < 0) return;
    this.filter = { outcome: null, stage: "" };
    this.show();
    this.list.unfold(place);
  }

  /** The place of the judgement of an item, which may be named as it is while it is repaired. */
  place(item) {
    const table = this.store.table("judgements");
    const found = table.find(item);
    return found < 0 ? table.find(item.replace(/\.r$/, "")) : found;
  }

  show() {
    const table = this.store.table("judgements");
    if (!table.length) {
      this.list?.unmount();
      this.list = null;
      render(html`<p class="empty">${nothing(this.store.about())}</p>`, this.element);
      return;
    }
    const outcomes = Array.from({ length: table.length }, (_, place) => outcomeOf(table, place));
    const stages = table.column("stage");
    const inStage = places(table, (place) => !this.filter.stage || stages[place] === this.filter.stage);
    const shown = inStage.filter((place) => this.filter.outcome == null || outcomes[place] === this.filter.outcome);
    this.outcomes = outcomes;
    render(
      html`<div class="sums">${this.sums(table, outcomes, inStage)}${gaps(table, outcomes, inStage)}</div>
        <div class="controls">${this.controls(stages)}
          <span role="status">${number(shown.length)} of ${number(table.length)} items</span></div>
        <div class="list" />`,
      this.element,
    );
    this.list ??= new RowList(this.element.querySelector(".list"), {
      label: "Items that had missed changes. Enter unfolds one.",
      columns: COLUMNS,
      row: (place) => this.cells(place),
      details: (place) => html`<${Details} store=${this.store} judgement=${this.store.table("judgements").row(place)}
        outcome=${this.outcomes[place]} />`,
    });
    this.list.set(shown);
  }

  controls(stages) {
    const choose = (event) => {
      this.filter.stage = event.target.value;
      this.show();
    };
    return html`<label>taken by <select onChange=${choose}>
        <option value="">all stages</option>
        ${[...new Set(stages)].map((stage) => html`<option value=${stage} selected=${stage === this.filter.stage}>${tame(stage)}</option>`)}
      </select></label>`;
  }

  sums(table, outcomes, shown) {
    const gap = table.column("gap");
    const groups = new Map();
    for (const place of shown) groups.set(outcomes[place], [...(groups.get(outcomes[place]) ?? []), gap[place]]);
    const row = (outcome, found) => {
      const [word, , meaning] = wordsOf(outcome);
      const here = this.filter.outcome === outcome;
      const choose = () => {
        this.filter.outcome = here ? null : outcome;
        this.show();
      };
      const sorted = found.sort((one, other) => one - other);
      return html`<tr class=${here ? "here" : ""}>
        <td><button aria-pressed=${here ? "true" : "false"} onClick=${choose}><${Swatch} outcome=${outcome} /> ${tame(word)}</button></td>
        <td class="number">${number(sorted.length)}</td>
        <td class="number">${((100 * sorted.length) / shown.length).toFixed(1)} %</td>
        <td class="number">${number(sorted[Math.floor((sorted.length - 1) / 2)])}</td>
        <td class="number">${number(sorted.at(-1))}</td>
        <td class="meaning">${meaning}</td>
      </tr>`;
    };
    return html`<table><thead><tr><th>what became of it</th><th class="number">items</th><th class="number">share</th>
        <th class="number">median gap</th><th class="number">widest</th><th class="meaning">that is</th></tr></thead>
      <tbody>${inOrder(groups.keys()).map((outcome) => row(outcome, groups.get(outcome)))}</tbody></table>`;
  }

  cells(place) {
    const table = this.store.table("judgements");
    const value = (name) => table.column(name)[place];
    const outcome = this.outcomes[place];
    return [
      seconds(value("seconds")),
      tame(value("item")),
      tame(value("stage")),
      number(value("gap")),
      html`<${Swatch} outcome=${outcome} /> ${tame(wordsOf(outcome)[0])}`,
      tame(value("candidate") ?? ""),
      tame(value("reason") ?? value("error") ?? wordsOf(outcome)[2]),
    ];
  }
}

function outcomeOf(table, place) {
  const policy = table.column("policy")[place];
  const verdict = table.column("verdict")[place];
  if (policy !== "repair") return policy;
  if (verdict != null) return verdict;
  return table.column("error")[place] == null ? "pending" : "unreadable";
}

/** The words for an outcome, its colour and what it means; a verdict that is not known here says itself. */
function wordsOf(outcome) {
  return OUTCOMES[outcome] ?? [outcome, "blue", "what the judge said of its edit"];
}

function inOrder(outcomes) {
  const known = Object.keys(OUTCOMES);
  const rank = (outcome) => (known.includes(outcome) ? known.indexOf(outcome) : known.length);
  return [...outcomes].sort((one, other) => rank(one) - rank(other));
}

function places(table, fits) {
  const found = [];
  for (let place = 0; place < table.length; place++) if (fits(place)) found.push(place);
  return found;
}

function Swatch({ outcome }) {
  return html`<i class="swatch" style=${{ background: colour(wordsOf(outcome)[1]) }}></i>`;
}

/** How many items had which gap, by what became of them. */
function gaps(table, outcomes, shown) {
  const gap = table.column("gap");
  const widest = Math.min(WIDEST, shown.reduce((most, place) => Math.max(most, gap[place]), 0));
  const least = shown.reduce((low, place) => Math.min(low, gap[place]), 1);
  const bars = [];
  for (let each = least; each <= widest; each++) {
    const counts = new Map();
    for (const place of shown) {
      if (Math.min(gap[place], WIDEST) === each) counts.set(outcomes[place], (counts.get(outcomes[place]) ?? 0) + 1);
    }
    bars.push([each, counts, [...counts.values()].reduce((sum, count) => sum + count, 0)]);
  }
  const most = Math.max(1, ...bars.map(([, , sum]) => sum));
  const bar = ([each, counts, sum]) => html`<div class="bar" title=${`gap ${each}: ${number(sum)} items`}>
      <span class="count">${number(sum)}</span>
      ${inOrder(counts.keys()).reverse().map(
        (outcome) => html`<i style=${{ background: colour(wordsOf(outcome)[1]), height: `${(100 * counts.get(outcome)) / most}px` }}></i>`,
      )}
      <span class="gap">${each === WIDEST ? `${each}+` : each}</span>
    </div>`;
  return html`<figure><div class="bars" role="img"
      aria-label=${`Items by gap: ${bars.map(([each, , sum]) => `${each}: ${sum}`).join(", ")}`}>${bars.map(bar)}</div>
    <figcaption>items by gap, in changes of the pool that they had missed</figcaption></figure>`;
}

function nothing({ mode, state, algorithm }) {
  if (mode === "sync") {
    return (
      `Nothing was stale, because ${algorithm} ran in lockstep here: each step waits until all work of the step ` +
      "before it has ended, so that no item can miss a change of the pool."
    );
  }
  if (state === "running") return "No item has missed a change of the pool up to now.";
  return "Nothing was stale, because no change of the pool that mattered to an item came between its making and when a stage took it.";
}

/** All that is known of one judged item. */
function Details({ store, judgement, outcome }) {
  const { item, stage, seconds: time, gap, policy, candidate, parent, head, reason, error, patch } = judgement;
  const [word, , meaning] = wordsOf(outcome);
  const link = (view, params, text) =>
    html`<a href=${`#/${view}?${new URLSearchParams(params)}`} onClick=${(event) => {
      event.preventDefault();
      store.go(view, params);
    }}>${text}</a>`;
  const named = (id) => link("candidate", { candidate: id }, tame(id));
  const made = repairOf(store, item);
  const changes = gap === 1 ? "one change" : `${number(gap)} changes`;
  return html`<p>When ${tame(stage)} took item ${tame(item)} at ${seconds(time)}, it had missed ${changes} of the pool.
      The policy said <b>${policy}</b>. <b>${tame(word)}</b>: ${meaning}.</p>
    ${reason && html`<p>The judge's reason: ${tame(reason)}</p>`}
    ${error && html`<p>The judge's reply could not be read: ${tame(error)}</p>`}
    <p class="links">${candidate && html`<span>candidate ${named(candidate)}</span>`}
      ${made && html`<span>made again as ${named(made.id)}, ${made.status}${made.score == null ? "" : `, score ${score(made.score)}`}</span>`}
      ${parent && html`<span>made from ${named(parent)}</span>`} ${head && html`<span>newer candidate ${named(head)}</span>`}
      ${link("timeline", { item }, "in the timeline")} ${link("log", { item }, "its events")}</p>
    ${candidate && parent && html`<${Edits} store=${store} candidate=${candidate} parent=${parent} head=${head} patch=${patch} />`}`;
}

/** The candidate that an item's repair made, or null. */
function repairOf(store, item) {
  const candidates = store.table("candidates");
  const kinds = candidates.column("kind");
  const place = candidates.column("item").findIndex((each, at) => each === `${item}.r` && kinds[at] === "repair");
  return place < 0 ? null : candidates.row(place);
}

/** The edit as it was made and, if it was repaired, as it was applied to the newer candidate. */
function Edits({ store, candidate, parent, head, patch }) {
  const text = (id, component) => store.table("components").get(id, component)?.text ?? null;
  const components = store.table("components");
  const mine = places(components, (place) => components.column("candidate")[place] === candidate).map(
    (place) => components.column("component")[place],
  );
  const changed = mine.filter((component) => component in patch || text(candidate, component) !== text(parent, component));
  return changed.map(
    (component) => html`<h3>${tame(component)}</h3>
      <div class="edits">
        <section><h4>The edit as it was made, on ${tame(parent)}</h4>
          <${WordDiff} before=${text(parent, component) ?? ""} after=${text(candidate, component)} /></section>
        ${component in patch
          ? html`<section><h4>After the repair, on ${tame(head ?? parent)}</h4>
              <${WordDiff} before=${text(head ?? parent, component) ?? ""} after=${String(patch[component])} /></section>`
          : head && html`<section><h4>What ${tame(head)} had meanwhile, against ${tame(parent)}</h4>
              <${WordDiff} before=${text(parent, component) ?? ""} after=${text(head, component)} /></section>`}
      </div>`,
  );
}
