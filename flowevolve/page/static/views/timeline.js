// Timeline: when which stage, worker or request was at work, how much was in flight, and what stood still and why.

import { html, render } from "../vendor/htm-preact.standalone.umd.js";
import { Chart } from "../timeline/chart.js";
import { ARRANGEMENTS, arranged, collected } from "../timeline/lanes.js";
import { coloured, layout, theme } from "../timeline/paint.js";
import { Chosen, LaneTable, Legend, StillTable, Summary, moment } from "../timeline/panels.js";
import { Refresh } from "../timeline/refresh.js";
import { Steps } from "../timeline/steps.js";
import { stillStretches } from "../timeline/stretches.js";
import { told } from "../timeline/told.js";

export const title = "Timeline";
const READ = ["calls", "spans", "server", "moves", "stages", "runs"];

export function mount(element, store) {
  const view = new Timeline(element, store);
  return { update: (changed) => view.update(changed), unmount: () => view.close() };
}

class Timeline {
  constructor(element, store) {
    this.store = store;
    this.parts = Object.fromEntries(["summary", "tools", "chart", "chosen", "panels"].map((name) => [name, document.createElement("div")]));
    for (const [name, part] of Object.entries(this.parts)) part.className = name;
    element.append(...Object.values(this.parts));
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.tip.hidden = true;
    const { chart } = this.parts;
    chart.tabIndex = 0;
    chart.setAttribute("role", "application");
    chart.setAttribute("aria-roledescription", "timeline");
    chart.setAttribute("aria-label", "Timeline of requests. Arrow keys go from one to the next, Page Up and Down from lane to lane, Enter opens its candidate, plus and minus zoom, 0 shows the whole run.");
    this.parts.chosen.setAttribute("aria-live", "polite");
    chart.append(this.tip);
    this.chart = new Chart(chart, {
      view: () => this.showTools(),
      point: (hit, x, y) => this.point(hit, x, y),
      choose: (hit) => this.showChosen(hit),
      open: (hit) => this.open(told(this.data, hit.reference)),
    });
    this.arrangement = "stage";
    this.colouring = "role";
    this.applied = "";
    this.refresh = new Refresh(() => this.read());
    this.resized = new ResizeObserver(() => this.place());
    this.resized.observe(chart);
    this.showChosen(null);
    this.refresh.now();
    this.apply();
  }

  close() {
    this.refresh.close();
    this.resized.disconnect();
    this.chart.close();
  }

  update(changed) {
    if (!changed.size) this.apply();
    if (READ.some((name) => changed.has(name))) this.refresh.soon();
  }

  /** Read the tables anew. */
  read() {
    const { store } = this;
    const end = this.data?.end ?? 0;
    const view = this.chart.scene?.view;
    this.data = collected(store);
    const sent = sentCalls(this.data.calls);
    const column = (name) => sent.map((place) => this.data.calls.column(name)[place]);
    const [begun, ended, written] = [column("begun"), column("ended"), column("completion_tokens")];
    const rates = begun.map((begin, at) => (ended[at] > begin ? (written[at] ?? 0) / (ended[at] - begin) : 0));
    this.steps = new Steps(begun, ended);
    this.rates = new Steps(begun, ended, rates);
    this.written = written.reduce((sum, tokens) => sum + (tokens ?? 0), 0);
    this.still = stillStretches(store, this.data, this.steps, stepsByStage(this.data, sent));
    this.arrange();
    if (view) this.follow(view, end);
    this.place();
    const { chosen } = this.chart;
    if (chosen) this.chart.choose(this.chart.find(chosen.reference));
  }

  /** Keep what is looked at: the whole run stays whole, its end stays in view if it was. */
  follow(view, end) {
    const moved = view.to >= end * 0.9999 ? this.data.end - end : 0;
    this.view = view.from <= 0 && moved ? null : { from: view.from + moved, to: view.to + moved };
  }

  arrange() {
    this.lanes = arranged(this.data, this.arrangement);
  }

  /** Draw with the present width and theme. */
  place() {
    const { data, steps, still } = this;
    const width = this.parts.summary.clientWidth;
    if (!width) return;
    const empty = !this.lanes.lanes.length;
    for (const name of ["chart", "tools", "chosen"]) this.parts[name].hidden = empty;
    if (!empty) {
      this.colours ??= theme(document.createElement("canvas").getContext("2d"));
      this.chart.show({
        data,
        steps,
        none: still.none,
        few: still.few,
        end: data.end,
        view: this.chart.scene?.view ?? { from: 0, to: data.end },
        colours: this.colours,
        colourOf: coloured(data, this.colouring, this.colours),
        layout: layout(this.lanes.lanes, this.strips(), width),
      });
      const view = this.view === undefined ? this.chart.scene.view : (this.view ?? { from: 0, to: data.end });
      this.view = undefined;
      this.chart.look(view.from, view.to);
    }
    this.showTools();
    this.showPanels();
  }

  strips() {
    const { store } = this;
    const server = store.table("server");
    const times = server.column("seconds");
    const limits = store.table("moves").rows().filter((move) => move.kind === "requests" && move.after != null);
    const lines = [];
    if (server.length) {
      lines.push({ name: "running in the server", colour: "green", times, values: server.column("running") });
      lines.push({ name: "waiting in the server", colour: "bad", times, values: server.column("waiting") });
    }
    if (limits.length) {
      const values = limits.map((move) => move.after);
      lines.push({ name: "admitted at most", colour: "text", stepped: true, times: [0, ...limits.map((move) => move.seconds)], values: [limits[0].before ?? values[0], ...values] });
    }
    return [
      { name: "requests in flight", label: ["requests", "in flight"], colour: "blue", steps: this.steps, lines, peaks: true },
      { name: "tokens/s written", label: ["tokens/s", "written"], colour: "purple", steps: this.rates, lines: [], peaks: false },
    ];
  }

  /** Do what the address says: show some seconds, a request, or an item. */
  apply() {
    const { from, to, call, item } = this.store.params;
    const said = JSON.stringify([from, to, call, item]);
    if (said === this.applied || !this.chart.scene) return;
    this.applied = said;
    if (from != null || to != null) this.chart.look(Number(from) || 0, Number(to) || this.data.end);
    if (call == null && item == null) return;
    if (call == null && this.arrangement !== "worker") this.change("arrangement", "worker");
    const place = call != null ? this.data.calls.find(Number(call)) : this.data.spans.find(item);
    const hit = place < 0 ? null : this.chart.find(call != null ? place : -1 - place);
    if (!hit) return;
    const around = Math.max(4 * (hit.end - hit.begin), this.data.end / 50);
    if (from == null && to == null) this.chart.look(hit.begin - around, hit.end + around);
    this.chart.goTo(hit);
  }

  change(name, value) {
    this[name] = value;
    if (name === "arrangement") {
      this.chart.choose(null);
      this.arrange();
    }
    this.place();
  }

  open({ candidate, item }) {
    if (candidate) this.store.go("candidate", { candidate });
    else this.store.go("log", { item });
  }

  point(hit, x, y) {
    const { tip } = this;
    tip.hidden = !hit;
    this.parts.chart.classList.toggle("pointed", Boolean(hit));
    if (!hit) return;
    const { title: name, facts } = told(this.data, hit.reference);
    render(html`<strong>${name}</strong><dl>${facts.map(([label, value]) => html`<dt>${label}</dt><dd>${value}</dd>`)}</dl>`, tip);
    const width = this.parts.chart.clientWidth;
    tip.style.left = `${Math.max(0, Math.min(x + 14, width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${y + 18}px`;
  }

  showTools() {
    const { scene } = this.chart;
    if (!scene) return;
    const whole = scene.view.to - scene.view.from >= 0.9999 * scene.end;
    const choices = (label, name, options) => html`<label>${label} <select value=${this[name]} onChange=${(event) => this.change(name, event.target.value)}>
      ${Object.entries(options).map(([key, said]) => html`<option value=${key} selected=${key === this[name]}>${said}</option>`)}</select></label>`;
    render(
      html`${choices("lanes by", "arrangement", ARRANGEMENTS)} ${choices("colours by", "colouring", { role: "role", stage: "stage" })}
        <span class="zoom"><button aria-label="zoom out" disabled=${whole} onClick=${() => this.chart.zoom(2)}>−</button>
        <button aria-label="zoom in" onClick=${() => this.chart.zoom(0.5)}>+</button>
        <button disabled=${whole} onClick=${() => this.chart.look(0, scene.end)}>whole run</button></span>
        <span class="window">${moment(scene.view.from)} to ${moment(scene.view.to)}</span>
        <${Legend} data=${this.data} colouring=${this.colouring} strips=${scene.layout.strips}
          lanes=${this.lanes.lanes} limit=${this.still.limit} />`,
      this.parts.tools,
    );
  }

  showChosen(hit) {
    const found = hit && told(this.data, hit.reference);
    render(html`<${Chosen} found=${found} store=${this.store} />`, this.parts.chosen);
  }

  showPanels() {
    const { data, still, steps, store } = this;
    const about = store.about();
    render(html`<${Summary} about=${about} data=${data} steps=${steps} still=${still} written=${this.written} live=${store.live} />`, this.parts.summary);
    const look = (from, to) => {
      const margin = Math.max((to - from) * 0.5, data.end * 0.002);
      this.chart.look(from - margin, to + margin);
      this.parts.chart.scrollIntoView({ block: "nearest" });
      this.parts.chart.focus({ preventScroll: true });
    };
    render(
      html`<${StillTable} still=${still} look=${look} /><${LaneTable} lanes=${this.lanes} arrangement=${this.arrangement} />`,
      this.parts.panels,
    );
  }
}

/** The places of the calls that were sent to a model. */
function sentCalls(calls) {
  const found = [];
  calls.column("outcome").forEach((outcome, place) => outcome !== "cached" && found.push(place));
  return found;
}

function stepsByStage({ calls }, sent) {
  const [stages, begun, ended] = ["stage", "begun", "ended"].map((name) => calls.column(name));
  const places = {};
  for (const place of sent) (places[stages[place]] ??= []).push(place);
  return Object.fromEntries(
    Object.entries(places).map(([stage, own]) => [stage, new Steps(own.map((place) => begun[place]), own.map((place) => ended[place]))]),
  );
}
