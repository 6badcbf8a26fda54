// Queues: what waited where, how many workers each stage had and why, what was admitted, and what each stage cost.

import { html, render } from "../vendor/htm-preact.standalone.umd.js";
import { colour, dollars, number, seconds } from "../common.js";
import { Chart } from "../timeline/chart.js";
import { collected } from "../timeline/lanes.js";
import { OVERVIEW, coloured, layout, theme } from "../timeline/paint.js";
import { moment } from "../timeline/panels.js";
import { Refresh } from "../timeline/refresh.js";
import { Steps, firstAbove } from "../timeline/steps.js";

export const title = "Queues";

const READ = ["calls", "spans", "moves", "stages", "runs"];
const SHOWN = 60;
const KINDS = {
  workers: "workers",
  requests: "requests in flight, at most",
  flows: "flows open, at most",
  width: "flows a step",
  endpoint: "endpoint",
  limits: "rate limit",
  server: "server",
  pause: "pause",
};

export function mount(element, store) {
  const view = new Queues(element, store);
  return { update: (changed) => view.update(changed), unmount: () => view.close() };
}

class Queues {
  constructor(element, store) {
    this.store = store;
    this.parts = Object.fromEntries(["summary", "tools", "chart", "panels"].map((name) => [name, document.createElement("div")]));
    for (const [name, part] of Object.entries(this.parts)) part.className = name;
    element.append(...Object.values(this.parts));
    const { chart } = this.parts;
    chart.tabIndex = 0;
    chart.setAttribute("role", "application");
    chart.setAttribute("aria-roledescription", "chart");
    chart.setAttribute("aria-label", "Queues and workers of each stage over time. Plus and minus zoom, Shift and the arrow keys move, 0 shows the whole run; the tables below say the same.");
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    chart.append(this.tip);
    this.chart = new Chart(chart, { view: () => this.showTools(), point: (_, x, y) => this.point(x, y), choose() {}, open() {} });
    this.kind = "";
    this.all = false;
    this.refresh = new Refresh(() => this.read());
    this.resized = new ResizeObserver(() => this.place());
    this.resized.observe(chart);
    this.point(0, 0);
    this.refresh.now();
  }

  close() {
    this.refresh.close();
    this.resized.disconnect();
    this.chart.close();
  }

  update(changed) {
    if (READ.some((name) => changed.has(name))) this.refresh.soon();
  }

  read() {
    const whole = !this.chart.scene || this.chart.scene.view.to - this.chart.scene.view.from >= 0.9999 * this.chart.scene.end;
    this.data = collected(this.store);
    this.moves = this.store.table("moves").rows();
    this.inFlight = new Steps(this.data.calls.column("begun"), this.data.calls.column("ended"));
    this.work = stageWork(this.data);
    this.strips = [this.requests(), ...this.work.filter((each) => each.items && each.stage !== "init" && each.stage !== "finish").map((each) => this.stage(each))];
    this.place(whole);
    this.showPanels();
  }

  /** Requests that wait to be sent, those in flight, and how many may be. */
  requests() {
    const { calls } = this.data;
    const lines = [atWork(this.inFlight)];
    const limits = stepsOf(this.moves.filter((move) => move.kind === "requests" && move.after != null));
    if (limits) lines.push({ name: "at most", colour: "text", stepped: true, ...limits });
    return { name: "requests", label: ["requests"], colour: "orange", steps: new Steps(calls.column("queued"), calls.column("begun")), lines, peaks: true };
  }

  stage({ stage, waiting, working }) {
    const lines = [atWork(working)];
    const workers = stepsOf(this.moves.filter((move) => move.kind === "workers" && move.subject === stage));
    if (workers) lines.push({ name: "at most", colour: "text", stepped: true, ...workers });
    return { name: stage, label: [stage], colour: "orange", steps: waiting, lines, peaks: true };
  }

  place(whole = false) {
    const { data, parts } = this;
    const empty = !data.spans.length;
    for (const name of ["tools", "chart"]) parts[name].hidden = empty;
    const width = parts.summary.clientWidth;
    if (!width || empty) return;
    const colours = (this.colours ??= theme(document.createElement("canvas").getContext("2d")));
    const view = whole ? null : this.chart.scene?.view;
    this.chart.show({
      data,
      steps: this.inFlight,
      none: [],
      few: [],
      end: data.end,
      view: view ?? { from: 0, to: data.end },
      colours,
      colourOf: coloured(data, "stage", colours),
      layout: layout([], this.strips, width),
    });
    this.showTools();
  }

  /** Say the figures at the pointer. */
  point(x, y) {
    const { tip } = this;
    const { scene } = this.chart;
    const strip = scene && y > OVERVIEW ? scene.layout.strips.find((each) => y >= each.y && y < each.y + each.height) : null;
    tip.hidden = !strip;
    if (!strip) return;
    const time = this.chart.timeAt(x);
    const of = ({ times, values }) => values[firstAbove(times, time) - 1] ?? values[0] ?? 0;
    const facts = [["time", moment(time)], ["waiting", strip.strip.steps.at(time)], ...strip.strip.lines.map((line) => [line.name, of(line)])];
    render(html`<strong>${strip.strip.name}</strong><dl>${facts.map(([label, value]) => html`<dt>${label}</dt><dd>${typeof value === "number" ? number(value) : value}</dd>`)}</dl>`, tip);
    tip.style.left = `${Math.max(0, Math.min(x + 14, this.parts.chart.clientWidth - tip.offsetWidth - 4))}px`;
    tip.style.top = `${y + 18}px`;
  }

  showTools() {
    const { scene } = this.chart;
    if (!scene) return;
    const whole = scene.view.to - scene.view.from >= 0.9999 * scene.end;
    const limited = this.strips.some((strip) => strip.lines.length > 1);
    const mark = (name, said, kind) => html`<li><i class=${kind} style=${{ background: colour(name) }}></i>${said}</li>`;
    render(
      html`<span class="zoom"><button aria-label="zoom out" disabled=${whole} onClick=${() => this.chart.zoom(2)}>−</button>
        <button aria-label="zoom in" onClick=${() => this.chart.zoom(0.5)}>+</button>
        <button disabled=${whole} onClick=${() => this.chart.look(0, scene.end)}>whole run</button></span>
        <span class="window">${moment(scene.view.from)} to ${moment(scene.view.to)}</span>
        <ul class="legend" aria-label="colours">${mark("orange", "waiting", "box")}${mark("blue", "in flight, or at work", "line")}
          ${limited && mark("text", "at most, as admitted or allocated", "line")}</ul>`,
      this.parts.tools,
    );
  }

  showPanels() {
    const { data, work, moves, store } = this;
    if (!data.spans.length) {
      render(html`<p class="empty">${store.live ? "No work has begun yet." : "No work was begun."}</p>`, this.parts.summary);
      render(null, this.parts.panels);
      return;
    }
    render(html`<p>${summary(work, moves)}</p>`, this.parts.summary);
    const kinds = [...new Set(moves.map((move) => move.kind))];
    const shown = moves.filter((move) => !this.kind || move.kind === this.kind).reverse();
    const pick = (kind) => {
      this.kind = kind;
      this.showPanels();
    };
    const more = () => {
      this.all = true;
      this.showPanels();
    };
    render(
      html`<${StageTable} work=${work} stages=${store.table("stages")} /><${CostTable} calls=${data.calls} />
        <section><h2>Decisions</h2>${moves.length === 0 ? html`<p class="hint">No decision on workers, requests or flows was made: they stayed as configured.</p>`
          : html`<p><label>about <select onChange=${(event) => pick(event.target.value)}><option value="">everything</option>
              ${kinds.map((kind) => html`<option value=${kind} selected=${kind === this.kind}>${KINDS[kind] ?? kind}</option>`)}</select></label>
              ${" "}<span class="window">${number(shown.length)}, the newest first</span></p>
            <${Decisions} moves=${this.all ? shown : shown.slice(0, SHOWN)} store=${store} />
            ${!this.all && shown.length > SHOWN && html`<p><button onClick=${more}>show all ${number(shown.length)}</button></p>`}`}</section>`,
      this.parts.panels,
    );
  }
}

/** The figures of each stage: its queue and its work over time. */
function stageWork({ spans, stages, end }) {
  const [stageOf, sent, taken, done, state] = ["stage", "sent", "taken", "done", "state"].map((name) => spans.column(name));
  const places = new Map(stages.map((stage) => [stage, []]));
  for (let place = 0; place < spans.length; place++) places.get(stageOf[place]).push(place);
  return stages.map((stage) => {
    const own = places.get(stage);
    const begun = own.filter((place) => taken[place] != null);
    const waits = begun.map((place) => taken[place] - sent[place]);
    const works = begun.map((place) => (done[place] ?? end) - taken[place]);
    const sum = (values) => values.reduce((total, value) => total + value, 0);
    return {
      stage,
      items: own.length,
      discarded: own.filter((place) => state[place] === "discarded").length,
      waiting: new Steps(own.map((place) => sent[place]), own.map((place) => taken[place] ?? done[place] ?? end)),
      working: new Steps(begun.map((place) => taken[place]), begun.map((place) => done[place] ?? end)),
      waited: waits.length ? sum(waits) / waits.length : null,
      waitedAll: sum(waits),
      worked: works.length ? sum(works) / works.length : null,
    };
  });
}

/** The levels that decisions set, as times and values from the beginning on; null if there is none. */
function stepsOf(moves) {
  if (!moves.length) return null;
  return { times: [0, ...moves.map((move) => move.seconds)], values: [moves[0].before ?? moves[0].after, ...moves.map((move) => move.after)] };
}

function summary(work, moves) {
  const longest = work.reduce((most, each) => (each.waitedAll > most.waitedAll ? each : most), work[0]);
  const count = moves.length === 1 ? "one decision" : `${moves.length || "no"} decisions`;
  if (!(longest.waitedAll > 0)) return `No item waited for a worker; ${count} on workers, requests and flows.`;
  return html`Items waited the most for <strong>${longest.stage}</strong>: ${seconds(longest.waited)} each on average, at most ${longest.waiting.most} at a time.
    There ${moves.length === 1 ? "was" : "were"} ${count} on workers, requests and flows.`;
}

function StageTable({ work, stages }) {
  return html`<section><h2>Stages</h2><table><thead><tr><th>stage</th><th class="number">items</th><th class="number">discarded</th><th class="number">workers</th>
    <th class="number">most at work</th><th class="number">most waiting</th><th class="number">mean wait</th><th class="number">mean work</th></tr></thead>
    <tbody>${work.filter((each) => each.items).map(
      (each) => html`<tr><td>${each.stage}</td><td class="number">${number(each.items)}</td><td class="number">${number(each.discarded)}</td>
        <td class="number">${number(stages.get(each.stage)?.workers)}</td><td class="number">${Math.max(each.items ? 1 : 0, each.working.most)}</td><td class="number">${each.waiting.most}</td>
        <td class="number">${time(each.waited)}</td><td class="number">${time(each.worked)}</td></tr>`,
    )}</tbody></table></section>`;
}

function time(value) {
  return value === 0 ? "0 s" : seconds(value);
}

/** What the requests of each stage and role took. */
function CostTable({ calls }) {
  const rows = costs(calls);
  if (!rows.length) return html`<section><h2>Cost</h2><p class="hint">No request has ended.</p></section>`;
  const most = Math.max(1, ...rows.map((row) => row.read + row.written));
  const priced = rows.some((row) => row.cost > 0);
  const all = rows.reduce((sum, row) => sum + row.read + row.written, 0);
  return html`<section><h2>Cost by stage and role</h2><table><thead><tr><th>stage</th><th>role</th><th class="number">requests</th><th class="number">failed</th>
    <th class="number">read</th><th class="number">cached</th><th class="number">written</th>${priced && html`<th class="number">dollars</th>`}
    <th class="number">mean time</th><th>tokens</th></tr></thead><tbody>${rows.map((row) => {
      const tokens = row.read + row.written;
      return html`<tr><td>${row.stage}</td><td>${row.role}</td><td class="number">${number(row.requests)}</td><td class="number">${number(row.failed)}</td>
        <td class="number">${number(row.read, true)}</td><td class="number">${number(row.cached, true)}</td><td class="number">${number(row.written, true)}</td>
        ${priced && html`<td class="number">${dollars(row.cost)}</td>`}<td class="number">${seconds(row.seconds / row.requests)}</td>
        <td class="share"><span class="bar"><i class="read" style=${{ width: `${(100 * row.read) / most}%` }}></i><i class="written"
          style=${{ width: `${(100 * row.written) / most}%` }}></i></span> ${all ? Math.round((100 * tokens) / all) : 0} %</td></tr>`;
    })}</tbody></table><p class="hint">Bars: tokens <i class="mark read"></i> read and <i class="mark written"></i> written. Requests that the response cache answered are not counted.</p></section>`;
}

function costs(calls) {
  const names = ["stage", "role", "outcome", "prompt_tokens", "cached_tokens", "completion_tokens", "cost", "begun", "ended"];
  const [stages, roles, outcomes, read, cached, written, cost, begun, ended] = names.map((name) => calls.column(name));
  const rows = new Map();
  for (let place = 0; place < calls.length; place++) {
    if (outcomes[place] === "cached") continue;
    const key = `${stages[place]} ${roles[place]}`;
    let row = rows.get(key);
    if (!row) rows.set(key, (row = { stage: stages[place], role: roles[place], requests: 0, failed: 0, read: 0, cached: 0, written: 0, cost: 0, seconds: 0 }));
    row.requests += 1;
    row.failed += outcomes[place] === "failed" ? 1 : 0;
    row.read += read[place] ?? 0;
    row.cached += cached[place] ?? 0;
    row.written += written[place] ?? 0;
    row.cost += cost[place] ?? 0;
    row.seconds += ended[place] - begun[place];
  }
  return [...rows.values()].sort((one, other) => other.read + other.written - one.read - one.written);
}

function Decisions({ moves, store }) {
  const known = (value) => (value == null ? "" : number(value));
  const state = (move) =>
    [["in flight", move.in_flight], ["waiting", move.waiting], ["in the server", move.server_running], ["waiting there", move.server_waiting]]
      .filter(([, value]) => value != null)
      .map(([name, value]) => `${number(value)} ${name}`)
      .join(", ");
  return html`<table class="decisions"><thead><tr><th class="number">at</th><th>what</th><th class="number">from</th><th class="number">to</th><th>why</th></tr></thead>
    <tbody>${moves.map(
      (move) => html`<tr><td class="number"><button title="show it in the timeline" onClick=${() => store.go("timeline", { from: Math.max(0, move.seconds - 30), to: move.seconds + 30 })}>
        ${moment(move.seconds)}</button></td><td>${KINDS[move.kind] ?? move.kind}${move.subject ? ` of ${move.subject}` : ""}</td><td class="number">${known(move.before)}</td>
        <td class="number">${known(move.after)}</td><td>${move.reason}${state(move) && html` <span class="window">(${state(move)})</span>`}</td></tr>`,
    )}</tbody></table>`;
}

/** The line of how much is at work: nothing at the beginning of the run. */
function atWork({ times, levels }) {
  return { name: "at work", colour: "blue", stepped: true, times: [0, ...times], values: [0, ...levels] };
}
