// Candidate: its texts, its scores on each example, what it was made from, and every request behind it.

import { html, render, Component } from "../vendor/htm-preact.standalone.umd.js";
import { CallDetails, callsBehind } from "../calls.js";
import { CandidateTexts } from "../candidate_texts.js";
import { dollars, number, score, seconds } from "../common.js";
import { CandidateControls, Comments, Judged } from "../steer_candidate.js";
import { CandidateLink, Status, capital, describe, joinedWith } from "../texts.js";

export const title = "Candidate";

const FIRST_ROWS = 30;
const FIRST_CALLS = 15;
const TABLES = ["candidates", "components", "runs", "scores", "calls", "acts"];

export function mount(element, store) {
  let seen = "";
  function update(changed) {
    const now = [store.params.candidate, store.asked.size, ...TABLES.map((name) => store.table(name).version)].join();
    if (changed?.size && now === seen) return;
    seen = now;
    const candidates = store.table("candidates");
    const wanted = [store.params.candidate, store.about().best, candidates.column("id")[0]].find((id) => id != null && candidates.find(id) >= 0);
    render(wanted == null ? html`<p class="empty">No candidate was proposed yet.</p>` : html`<${Candidate} store=${store} id=${wanted} unknown=${unknown(wanted)} />`, element);
  }
  const unknown = (found) => (store.params.candidate != null && store.params.candidate !== found ? store.params.candidate : null);

  update();
  return {
    update,
    unmount() {
      render(null, element);
    },
  };
}

function Candidate({ store, id, unknown }) {
  const row = store.table("candidates").get(id);
  return html`<${Picker} store=${store} id=${id} />
    ${unknown && html`<p class="notice">There is no candidate ${unknown} in this run.</p>`}
    <h2>${id} <${Status} row=${row} /></h2>
    <p class="facts">${capital(describe(row))}, proposed at ${seconds(row.created)}${row.stage ? ` by ${row.stage}` : ""}, on version ${row.born} of the pool${row.reason ? `; ${row.reason}` : ""}.
      ${" "}<${CandidateLink} store=${store} id=${id} label="in the lineage" /></p>
    ${row.idea && html`<p class="facts">${row.name ? `${row.name}: ` : ""}${row.idea}</p>`}
    <${CandidateControls} key=${id} store=${store} row=${row} />
    <${Judged} store=${store} row=${row} />
    <${Comments} store=${store} about=${{ candidate: id }} />
    <${Facts} store=${store} row=${row} />
    <${Family} store=${store} row=${row} />
    <${Output} row=${row} />
    <div class="halves">
      <section aria-label="texts"><h2>Texts</h2><${CandidateTexts} key=${id} store=${store} id=${id} /></section>
      <section aria-label="scores"><h2>Scores by example</h2><${Scores} key=${id} store=${store} row=${row} /></section>
    </div>
    <${Requests} key=${id} store=${store} id=${id} />`;
}

function Picker({ store, id }) {
  const ids = store.table("candidates").column("id");
  const place = ids.indexOf(id);
  const go = (next) => store.go("candidate", { candidate: ids[next] });
  return html`<div class="picker">
    <button disabled=${place <= 0} onClick=${() => go(place - 1)}>← earlier</button>
    <label>candidate <input type="text" size="9" list="candidate-ids" value=${id} onChange=${(event) => event.target.value && store.go("candidate", { candidate: event.target.value.trim() })} /></label>
    <datalist id="candidate-ids">${ids.slice(-500).map((each) => html`<option value=${each} />`)}</datalist>
    <button disabled=${place >= ids.length - 1} onClick=${() => go(place + 1)}>later →</button>
    <button disabled=${store.about().best === null} onClick=${() => store.go("candidate", { candidate: store.about().best })}>best</button>
    <span class="faint">${number(place + 1)} of ${number(ids.length)}</span>
  </div>`;
}

function Facts({ row }) {
  const facts = [
    ["score", row.score == null ? "not validated" : score(row.score), row.score == null ? "" : row.examples === 1 ? "on one example" : `mean over ${number(row.examples)} examples`],
    row.screen != null && ["screened", score(row.screen), row.screen_baseline == null ? "" : `its parent: ${score(row.screen_baseline)}`],
    row.held_out != null && ["held out", score(row.held_out), "on the test examples"],
    ["length", number(row.length), "characters"],
    ...Object.entries(row.metrics).filter(([, value]) => typeof value === "number").map(([name, value]) => [name, String(Number(value.toPrecision(6))), ""]),
  ];
  return html`<dl class="figures">${facts.filter(Boolean).map(([name, value, note]) => html`<div class="panel"><dt>${name}</dt><dd>${value}</dd>${note && html`<dd class="faint">${note}</dd>`}</div>`)}</dl>`;
}

class Family extends Component {
  render({ store, row }) {
    const candidates = store.table("candidates");
    const [ids, parents, edits] = ["id", "parents", "edits"].map((name) => candidates.column(name));
    const [children, groups] = [[], []];
    for (let place = 0; place < ids.length; place++) {
      if (parents[place].includes(row.id)) children.push(ids[place]);
      if (edits[place].includes(row.id)) groups.push(ids[place]);
    }
    const shown = row.sources.filter((id) => !row.parents.includes(id) && !row.edits.includes(id));
    const lines = [["parents", row.parents], ["edits in it", row.edits], ["its text may also be of", shown], ["children", children], ["part of", groups]];
    return lines.map(([name, names]) => names.length > 0 && html`<p class="facts family"><span class="faint">${name}</span> ${joinedWith(names.slice(0, 40).map((id) => html`<${CandidateLink} store=${store} id=${id} view="candidate" />`), " ")}${names.length > 40 ? ` and ${names.length - 40} more` : ""}</p>`);
  }
}

/** What the run of a program said. */
function Output({ row }) {
  if (!row.failure && !row.feedback) return null;
  return html`<section aria-label="output"><h2>What its run said</h2>
    ${row.failure && html`<pre class="plain code bad" tabindex="0" aria-label="failure">${row.failure}</pre>`}
    ${row.feedback && row.feedback !== row.failure && html`<pre class="plain code" tabindex="0" aria-label="feedback">${row.feedback}</pre>`}
  </section>`;
}

const ORDERS = {
  worst: ["lowest first", (a, b) => a.value - b.value],
  changed: ["most changed first", (a, b) => Math.abs(b.change ?? 0) - Math.abs(a.change ?? 0)],
  name: ["by name", (a, b) => a.example.localeCompare(b.example, "en", { numeric: true })],
};

class Scores extends Component {
  constructor(props) {
    super(props);
    this.state = { order: "worst", all: false };
  }

  render({ store, row }, { order, all }) {
    const scores = scoresOf(store, row.id);
    const source = scores.validation.length ? "validation" : "screen";
    const rows = scores[source];
    if (!rows.length) return html`<p class="empty">It was not scored on any example.</p>`;
    const parent = row.parents[0] ?? row.sources[0] ?? null;
    const before = new Map(parent === null ? [] : scoresOf(store, parent)[source].map((each) => [each.example, each.value]));
    const compared = rows.map((each) => ({ ...each, before: before.get(each.example), change: before.has(each.example) ? each.value - before.get(each.example) : null }));
    compared.sort(ORDERS[order][1]);
    const most = Math.max(...rows.map((each) => Math.abs(each.value)), 1e-9);
    const [better, worse] = [compared.filter((each) => each.change > 1e-9).length, compared.filter((each) => each.change < -1e-9).length];
    return html`<p class="facts">${source === "screen" ? "Only from its screening: " : ""}${number(rows.length)} ${rows.length === 1 ? "example" : "examples"}${before.size ? `; against ${parent}: ${better} better, ${worse} worse` : ""}.</p>
      <p class="facts"><label>order <select onChange=${(event) => this.setState({ order: event.target.value })}>${Object.entries(ORDERS).map(([name, [label]]) => html`<option value=${name} selected=${name === order}>${label}</option>`)}</select></label></p>
      <table class="scores">
        <thead><tr><th scope="col">example</th><th scope="col" class="number">score</th><th scope="col" aria-label="bar"></th>${before.size > 0 && html`<th scope="col" class="number">${parent}</th><th scope="col" class="number">change</th>`}</tr></thead>
        <tbody>${compared.slice(0, all ? undefined : FIRST_ROWS).map((each) => html`<tr>
          <td><a href=${`#/heat?example=${encodeURIComponent(each.example)}`} onClick=${(event) => {
            event.preventDefault();
            store.go("heat", { candidate: row.id, example: each.example });
          }}>${each.example}</a></td>
          <td class="number">${score(each.value)}</td>
          <td class="bar"><span style=${{ width: `${(100 * Math.max(0, each.value)) / most}%` }}></span></td>
          ${before.size > 0 && html`<td class="number faint">${score(each.before)}</td><td class=${`number ${each.change < 0 ? "bad" : each.change > 0 ? "good" : "faint"}`}>${signed(each.change)}</td>`}
        </tr>`)}</tbody>
      </table>
      ${rows.length > FIRST_ROWS && html`<button onClick=${() => this.setState({ all: !all })}>${all ? "fewer" : `all ${number(rows.length)}`}</button>`}`;
  }
}

function signed(change) {
  if (change == null) return "–";
  return `${change < 0 ? "−" : change > 0 ? "+" : ""}${Math.abs(change).toFixed(4)}`;
}

/** The scores of a candidate: {validation, screen}, each a list of {example, value}. */
function scoresOf(store, id) {
  const table = store.table("scores");
  const [owners, sources, examples, values] = ["candidate", "source", "example", "value"].map((name) => table.column(name));
  const found = { validation: [], screen: [] };
  for (let place = 0; place < table.length; place++) {
    if (owners[place] === id) found[sources[place]]?.push({ example: examples[place], value: values[place] });
  }
  return found;
}

class Requests extends Component {
  constructor(props) {
    super(props);
    this.state = { all: {} };
  }

  render({ store, id }, { all }) {
    const { writing, running } = callsBehind(store, id);
    const lists = [["writing", "The requests that wrote it", writing, "No request wrote it."], ["running", "The requests that ran it", running, "No request ran it."]];
    return lists.map(([name, heading, ids, none]) => html`<section aria-label=${heading}>
      <h2>${heading}</h2>
      ${ids.length === 0
        ? html`<p class="faint">${none}</p>`
        : html`<p class="faint">${totals(store, ids)}</p>
          ${ids.slice(0, all[name] ? undefined : FIRST_CALLS).map((each) => html`<${CallDetails} key=${each} store=${store} id=${each} />`)}
          ${ids.length > FIRST_CALLS && html`<button onClick=${() => this.setState({ all: { ...all, [name]: !all[name] } })}>${all[name] ? "fewer" : `all ${number(ids.length)}`}</button>`}`}
    </section>`);
  }
}

function totals(store, ids) {
  const calls = store.table("calls");
  const sum = (name) => ids.reduce((all, id) => all + (calls.column(name)[calls.find(id)] ?? 0), 0);
  const cost = sum("cost");
  return `${number(ids.length)} ${ids.length === 1 ? "request" : "requests"}, ${number(sum("prompt_tokens"))} prompt and ${number(sum("completion_tokens"))} completion tokens${cost ? `, ${dollars(cost)}` : ""}`;
}
