// Candidates x examples: what each candidate scored on each example, where the best ones are, what is still failed.

import { html, render } from "../vendor/htm-preact.standalone.umd.js";
import { number, score, seconds } from "../common.js";
import { HeatCanvas, SIZES, hatch, inks, measures } from "../heat_canvas.js";
import { Matrix, orderedColumns, orderedRows } from "../matrix.js";
import { sequential } from "../palette.js";
import { Comments } from "../steer_candidate.js";
import { ExampleControl } from "../steer_head.js";
import { tame } from "../tame.js";

export const title = "Examples";
export const keys = [
  ["arrows, Page Up, Page Down, Home, End", "go from cell to cell, when the map has the focus"],
  ["Enter", "open the candidate of the chosen cell"],
];

const SHOWN = { pool: "in the pool", all: "all that are scored", front: "on the Pareto front" };
const ORDERS = { score: "best first", newest: "newest first", oldest: "oldest first" };
const COLUMNS = { failed: "failed by all first", leader: "failed by the best first", name: "by name" };

export function mount(element, store) {
  const view = new HeatView(element, store);
  view.take();
  return view;
}

class HeatView {
  constructor(element, store) {
    this.element = element;
    this.store = store;
    this.matrices = { validation: new Matrix("validation"), screen: new Matrix("screen") };
    this.choice = { source: "validation", shown: "pool", order: "score", columns: "leader", size: "medium" };
    /** The candidate and example of the chosen cell, by their ids, as rows move. */
    this.chosen = { candidate: store.params.candidate ?? null, example: store.params.example ?? null };
    this.pointed = null;
    this.drawn = { map: null };
    /** When more may be taken in, and the timer until then. */
    this.ready = 0;
    this.later = null;
    this.observer = new ResizeObserver(() => this.layOut());
  }

  unmount() {
    this.observer.disconnect();
    clearTimeout(this.later);
    cancelAnimationFrame(this.frame);
    render(null, this.element);
  }

  update(changed) {
    if (!changed.size) {
      const { candidate = null, example = null } = this.store.params;
      if (candidate || example) this.choose(candidate ?? this.chosen.candidate, example ?? this.chosen.example);
      return;
    }
    if (changed.has("acts")) this.say();
    if (!changed.has("scores") && !changed.has("candidates")) return;
    this.later ??= setTimeout(() => this.take(), Math.max(0, this.ready - performance.now()));
  }

  /** Take in what is new; where there is much, that is done more seldom, so that the page stays quick. */
  take() {
    const began = performance.now();
    clearTimeout(this.later);
    this.later = null;
    const table = this.store.table("scores");
    for (const matrix of Object.values(this.matrices)) matrix.take(table);
    this.arrange();
    this.ready = performance.now() + 20 * (performance.now() - began);
  }

  /** Put rows and columns in their order, and show all anew. */
  arrange() {
    const sources = Object.keys(this.matrices).filter((source) => this.matrices[source].examples.length);
    if (sources.length && !sources.includes(this.choice.source)) this.choice.source = sources[0];
    const matrix = this.matrices[this.choice.source];
    const candidates = this.store.table("candidates");
    const [statuses, places] = [candidates.column("status"), candidates.column("place")];
    const found = matrix.candidates.map((id) => candidates.find(id));
    const ages = found.map((place) => (place < 0 ? Infinity : places[place]));
    const means = matrix.means();
    const all = orderedRows([...matrix.candidates.keys()], "oldest", means, ages);
    const pool = all.filter((row) => found[row] >= 0 && /^(confirmed|speculative)$/.test(statuses[found[row]]));
    const standard = pool.filter((row) => statuses[found[row]] === "confirmed");
    const measured = standard.length ? standard : all;
    const columns = matrix.columns(measured);
    const front = this.choice.source === "validation" ? matrix.front(measured, columns.best, means) : new Set();
    const rows = { all, pool: pool.length ? pool : all, front: front.size ? [...front] : all }[this.choice.shown];
    const best = matrix.candidates.indexOf(this.store.about().best);
    const leader = best >= 0 ? best : measured.reduce((one, other) => (means[other] > means[one] ? other : one), measured[0]);
    this.picture = {
      matrix,
      means,
      leader,
      front,
      best: columns.best,
      scale: matrix.scale(),
      rows: orderedRows([...rows], this.choice.order, means, ages),
      columns: orderedColumns(matrix, this.choice.columns, columns, leader),
    };
    this.counts = { all: all.length, pool: pool.length, front: front.size };
    this.places = { row: placesOf(this.picture.rows), column: placesOf(this.picture.columns) };
    this.show(sources);
    this.layOut();
  }

  show(sources) {
    if (!sources.length) {
      render(html`<p class="empty">${nothing(this.store.about())}</p>`, this.element);
      this.drawn.map = null;
      return;
    }
    const choice = (name, label, options) =>
      html`<label>${label}
        <select onChange=${(event) => this.set(name, event.target.value)}>
          ${Object.entries(options).map(
            ([value, said]) => html`<option value=${value} selected=${value === this.choice[name]}>${said}</option>`,
          )}
        </select>
      </label>`;
    const shown = Object.fromEntries(
      Object.entries(SHOWN).map(([name, said]) => [name, `${said} (${number(this.counts[name])})`]),
    );
    render(
      html`<div class="controls">
          ${choice("shown", "candidates", shown)} ${choice("order", "rows", ORDERS)}
          ${choice("columns", "examples", COLUMNS)}
          ${sources.length > 1 && choice("source", "scores of the", { validation: "validation", screen: "screening" })}
          ${choice("size", "size", Object.fromEntries(Object.keys(SIZES).map((name) => [name, name])))}
        </div>
        <p class="summary">${summary(this.picture)}</p>
        <div class="said" aria-live="polite"></div>
        <div class="place"><div class="map" tabindex="0" role="application" aria-roledescription="heat map"
          aria-label="Scores by candidate and example. Arrow keys go from cell to cell, Enter opens the candidate.">
          <div class="sizer"><canvas></canvas></div>
        </div></div>
        <div class="legend"></div>`,
      this.element,
    );
    const map = this.element.querySelector(".map");
    if (map !== this.drawn.map) this.begin(map);
    render(html`<${Legend} scale=${this.picture.scale} front=${this.choice.source === "validation"} />`,
      this.element.querySelector(".legend"));
    this.say();
  }

  /** The map is new in the page: draw on its canvas and listen to it. */
  begin(map) {
    this.drawn = { map, canvas: new HeatCanvas(map.querySelector("canvas")), sizer: map.querySelector(".sizer") };
    this.observer.disconnect();
    this.observer.observe(map.parentElement);
    map.addEventListener("scroll", () => this.draw(), { passive: true });
    map.addEventListener("mousemove", (event) => this.point(this.cellAt(event)));
    map.addEventListener("mouseleave", () => this.point(null));
    map.addEventListener("keydown", (event) => this.onKey(event));
    map.addEventListener("click", (event) => {
      const cell = this.cellAt(event);
      if (cell) this.choose(...this.names(cell));
    });
    map.addEventListener("dblclick", () => this.open());
    this.scrollTo = this.chosen.candidate != null || this.chosen.example != null;
  }

  set(name, value) {
    this.choice[name] = value;
    this.arrange();
    this.reveal();
  }

  layOut() {
    const { map, canvas, sizer } = this.drawn;
    if (!map?.clientWidth) return;
    const { rows, columns, matrix } = this.picture;
    const labels = Math.max(...matrix.examples.map((name) => name.length));
    const room = map.parentElement.clientWidth - 16; // without a scroll bar
    const size = measures(this.choice.size, rows.length, columns.length, room, labels);
    this.picture.size = size;
    map.style.width = size.width <= room ? `${size.width + 16}px` : "";
    sizer.style.width = `${size.width}px`;
    sizer.style.height = `${size.total}px`;
    map.style.height = `${Math.min(size.total + 14, Math.max(260, innerHeight - 300))}px`;
    canvas.resize(map.clientWidth, map.clientHeight);
    if (this.scrollTo) this.reveal();
    this.scrollTo = false;
    this.paint();
  }

  draw() {
    this.frame ??= requestAnimationFrame(() => this.paint());
  }

  paint() {
    cancelAnimationFrame(this.frame);
    this.frame = null;
    const { map, canvas } = this.drawn;
    if (!map || !this.picture.size) return;
    canvas.draw({ ...this.picture, chosen: this.cell(this.chosen), pointed: this.pointed }, map.scrollLeft, map.scrollTop);
  }

  /** The place in the map of a candidate and an example, or null where they are not shown. */
  cell({ candidate, example }) {
    const { matrix } = this.picture;
    const row = this.places.row.get(matrix.rowOf.get(candidate));
    const column = this.places.column.get(matrix.columnOf.get(example));
    return row === undefined && column === undefined ? null : { row: row ?? 0, column: column ?? 0 };
  }

  names({ row, column }) {
    const { matrix, rows, columns } = this.picture;
    return [matrix.candidates[rows[row]], matrix.examples[columns[column]]];
  }

  cellAt(event) {
    const { map } = this.drawn;
    const { size, rows, columns } = this.picture;
    const box = map.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left - size.left, event.clientY - box.top - size.above];
    const row = Math.floor((y + map.scrollTop) / size.height);
    const column = Math.floor((x + map.scrollLeft) / size.cell);
    return x >= 0 && y >= 0 && row < rows.length && column < columns.length ? { row, column } : null;
  }

  point(cell) {
    if (cell?.row === this.pointed?.row && cell?.column === this.pointed?.column) return;
    this.pointed = cell;
    this.say();
    this.draw();
  }

  choose(candidate, example) {
    this.chosen = { candidate, example };
    this.pointed = null;
    this.reveal();
    this.say();
    this.draw();
  }

  /** Scroll so that the chosen cell is in sight. */
  reveal() {
    const cell = this.drawn.map && this.picture.size && this.cell(this.chosen);
    if (!cell) return;
    const { map } = this.drawn;
    const { size } = this.picture;
    const into = (scroll, start, length, room) => Math.min(Math.max(scroll, start + length - room), start);
    const [wide, high] = [map.clientWidth - size.left, map.clientHeight - size.above];
    map.scrollLeft = into(map.scrollLeft, cell.column * size.cell, size.cell, wide);
    map.scrollTop = into(map.scrollTop, cell.row * size.height, size.height, high);
  }

  open() {
    if (this.chosen.candidate != null) this.store.go("candidate", { candidate: this.chosen.candidate });
  }

  onKey(event) {
    if (event.key === "Enter") return this.open();
    const { rows, columns, size } = this.picture;
    const page = Math.max(1, Math.floor((this.drawn.map.clientHeight - size.above) / size.height) - 1);
    const moves = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      PageUp: [-page, 0],
      PageDown: [page, 0],
      Home: event.ctrlKey ? [-Infinity, -Infinity] : [0, -Infinity],
      End: event.ctrlKey ? [Infinity, Infinity] : [0, Infinity],
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const from = this.cell(this.chosen);
    const within = (value, count) => Math.min(Math.max(value, 0), count - 1);
    const row = from ? within(from.row + move[0], rows.length) : 0;
    const column = from ? within(from.column + move[1], columns.length) : 0;
    this.choose(...this.names({ row, column }));
  }

  /** Say in words what stands in the cell that is pointed at, or else in the chosen one. */
  say() {
    const said = this.element.querySelector(".said");
    const cell = this.pointed ?? (this.picture && this.cell(this.chosen));
    if (!said) return;
    if (!cell) {
      render(html`Point at a cell, or go to one with the arrow keys, to see what it says.`, said);
      return;
    }
    const { matrix, rows, columns, means, best, front } = this.picture;
    const [row, column] = [rows[cell.row], columns[cell.column]];
    const [candidate, example] = this.names(cell);
    const about = this.store.table("candidates").get(candidate);
    const value = matrix.at(row, column);
    const repeats = matrix.repeats[row * matrix.stride + column];
    const times = repeats === 1 ? "one run" : `the mean of ${repeats} runs`;
    render(
      html`<a href=${`#/candidate?candidate=${encodeURIComponent(candidate)}`} onClick=${(event) => {
          event.preventDefault();
          this.store.go("candidate", { candidate });
        }}>${tame(candidate)}</a>
        ${about && html`<span>${about.kind}, ${about.status}, made after ${seconds(about.created)}, mean ${score(means[row])}</span>`}
        <span>example <b>${tame(example)}</b></span>
        ${Number.isNaN(value) ? html`<b>not measured</b>` : html`<span><b>${score(value)}</b> (${times})</span>`}
        <span>best ${Number.isNaN(best[column]) ? "not known" : score(best[column])}${
          value === best[column] && front.has(row) ? ", reached here, on the Pareto front" : ""
        }</span>
        ${this.pointed === null && html`<${ExampleControl} key=${example} store=${this.store} example=${example} /><${Comments} store=${this.store} about=${{ example }} />`}`,
      said,
    );
  }
}

function placesOf(order) {
  return new Map(order.map((each, place) => [each, place]));
}

/** In a few sentences: how much of the examples the candidates reach, and the best one alone. */
function summary({ matrix, leader, best, scale, front }) {
  const known = best.filter((value) => !Number.isNaN(value));
  const [low, high] = scale;
  const many = number(best.length);
  if (low !== 0 || high !== 1) return `${many} ${best.length === 1 ? "example" : "examples"}; values from ${score(low)} to ${score(high)}.`;
  const [full, none] = [known.filter((value) => value >= high).length, known.filter((value) => value <= low).length];
  const alone = matrix.examples.filter((_, column) => matrix.at(leader, column) < high).length;
  const said = [
    `${number(full)} of ${many} examples are solved by some candidate${none ? `; on ${number(none)} none scores above 0` : ""}.`,
    `The best candidate, ${tame(matrix.candidates[leader])}, does not solve ${number(alone)} of them.`,
  ];
  if (front.size) said.push(`${front.size === 1 ? "One candidate is" : `${number(front.size)} candidates are`} on the Pareto front.`);
  return said.join(" ");
}

function nothing({ state }) {
  if (state === "running") return "No candidate has been scored yet: the first scores come when the seed is validated.";
  return "No candidate was scored in this run, so that there is nothing to show by example.";
}

/** The colours from low to high, and the marks. */
function Legend({ scale: [low, high], front }) {
  const swatch = (canvas, draw) => {
    if (!canvas) return;
    const pen = canvas.getContext("2d");
    draw(pen, canvas.width, canvas.height);
  };
  const colours = (pen, width, height) => {
    for (let x = 0; x < width; x++) {
      pen.fillStyle = `rgb(${sequential(x / (width - 1)).join(" ")})`;
      pen.fillRect(x, 0, 1, height);
    }
  };
  const stripes = (pen, width, height) => {
    pen.fillStyle = hatch(pen, inks());
    pen.fillRect(0, 0, width, height);
  };
  const mark = (pen, width, height) => {
    pen.fillStyle = `rgb(${sequential(1).join(" ")})`;
    pen.fillRect(0, 0, width, height);
    pen.fillStyle = "#10141a";
    pen.fillRect(width / 2 - 3, height / 2 - 3, 5, 5);
  };
  const digits = high - low < 1 ? 3 : 2;
  const said = (value) => String(Number(value.toFixed(digits)));
  return html`<span>score ${said(low)} <canvas width="160" height="12" ref=${(it) => swatch(it, colours)}></canvas> ${said(high)}</span>
    <span><canvas width="18" height="12" ref=${(it) => swatch(it, stripes)}></canvas> not measured</span>
    ${front && html`<span><canvas width="18" height="12" ref=${(it) => swatch(it, mark)}></canvas> best of its example, by a candidate on the Pareto front</span>`}`;
}
