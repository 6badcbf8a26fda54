// Score: the best score so far over seconds, tokens, requests or dollars, of one run or of several.

import { html, render } from "../vendor/htm-preact.standalone.umd.js";
import { colour, dollars, number, score, seconds } from "../common.js";
import { Surface, niceStep, timeTicks } from "../canvas.js";
import { CandidateLink } from "../texts.js";

export const title = "Score";

const COLOURS = ["blue", "orange", "green", "purple", "sky", "red", "yellow", "grey"];
const AXES = {
  seconds: { name: "time", unit: "time since the run began", said: seconds },
  tokens: { name: "tokens", unit: "tokens read and written", said: (value) => number(value, true) },
  calls: { name: "requests", unit: "requests that had ended", said: (value) => number(value, true) },
  cost: { name: "dollars", unit: "dollars", said: dollars },
};
const MARKS = { held_out: "held-out", fresh: "fresh examples, at final selection" };

export function mount(element, store) {
  const view = new Score(element, store);
  return { update: (changed) => view.update(changed), unmount: () => view.surface.close() };
}

class Score {
  constructor(element, store) {
    this.store = store;
    this.parts = Object.fromEntries(["summary", "tools", "chart", "told", "panels"].map((name) => [name, document.createElement("div")]));
    for (const [name, part] of Object.entries(this.parts)) part.className = name;
    element.append(...Object.values(this.parts));
    const { chart, told } = this.parts;
    chart.tabIndex = 0;
    chart.setAttribute("role", "application");
    chart.setAttribute("aria-roledescription", "chart");
    chart.setAttribute("aria-label", "Best score so far. Left and right go from one new best to the next, up and down from run to run, Enter opens the candidate.");
    told.setAttribute("aria-live", "polite");
    this.axis = "seconds";
    this.at = null;
    this.surface = new Surface(chart, (context, width, height) => this.draw(context, width, height));
    chart.addEventListener("pointermove", (event) => this.point(event));
    chart.addEventListener("pointerdown", (event) => this.point(event));
    chart.addEventListener("click", () => this.at && store.go("candidate", { candidate: this.at.candidate }));
    chart.addEventListener("keydown", (event) => this.key(event));
    this.read();
  }

  update(changed) {
    if (changed.has("curve") || changed.has("runs")) this.read();
  }

  read() {
    const { store } = this;
    this.curves = [...store.runs.keys()].map((run, place) => curve(store, run, place)).filter((each) => each.steps.length);
    this.curves.sort((one, other) => (one.run === store.run) - (other.run === store.run));
    this.at = null;
    this.show();
  }

  show() {
    const { parts, store } = this;
    const own = this.curves.find((each) => each.run === store.run);
    const empty = !this.curves.length;
    for (const name of ["tools", "chart", "told", "panels"]) parts[name].hidden = empty;
    if (empty) {
      render(html`<p class="empty">Nothing is scored yet: the curve begins when the seed has been measured.</p>`, parts.summary);
      return;
    }
    render(html`<p>${own ? summary(own) : "This run has scored nothing yet; the others are shown."}</p>`, parts.summary);
    const priced = this.curves.some((each) => each.last.cost > 0);
    if (this.axis === "cost" && !priced) this.axis = "seconds";
    render(html`<${Tools} curves=${this.curves} axis=${this.axis} priced=${priced} pick=${(axis) => this.pick(axis)} />`, parts.tools);
    render(html`${this.curves.length > 1 && html`<${Comparison} curves=${this.curves} axis=${this.axis} />`}
      ${own && html`<${Steps} own=${own} store=${store} priced=${priced} />`}`, parts.panels);
    this.tell();
    this.surface.height = parts.chart.clientWidth < 640 ? 280 : 380;
    parts.chart.style.height = `${this.surface.height}px`;
    this.surface.redraw();
  }

  pick(axis) {
    this.axis = axis;
    this.show();
  }

  /** Where values are on the canvas: x of the axis, y of the score. */
  scales(width, height) {
    const box = { left: 54, right: width - 14, top: 28, bottom: height - 44 };
    const every = this.curves.flatMap((each) => [...each.steps, ...each.marks]);
    const most = Math.max(...this.curves.map((each) => each.last[this.axis]), 1e-9);
    const low = Math.min(...every.map((each) => each.low ?? each.score));
    const high = Math.max(...every.map((each) => each.high ?? each.score));
    const step = niceStep(Math.max(high - low, 0.01) / 6);
    const [bottom, top] = [Math.floor(low / step + 1e-9) * step, Math.ceil(high / step - 1e-9) * step];
    const x = (value) => box.left + (value / most) * (box.right - box.left);
    const y = (value) => box.bottom - ((value - bottom) / Math.max(step, top - bottom)) * (box.bottom - box.top);
    return { box, most, bottom, top, step, x, y };
  }

  draw(context, width, height) {
    const scales = this.scales(width, height);
    this.drawn = scales;
    context.font = "12px system-ui, -apple-system, sans-serif";
    context.textBaseline = "middle";
    this.drawAxes(context, scales);
    for (const each of this.curves) this.drawBand(context, scales, each);
    for (const each of this.curves) this.drawLine(context, scales, each);
    for (const each of this.curves) for (const mark of each.marks) drawMark(context, scales, mark, mark[this.axis], colour(each.colour));
    if (this.at) this.drawAt(context, scales);
  }

  drawAxes(context, { box, most, bottom, top, step, x, y }) {
    const line = colour("line");
    const faint = colour("faint");
    const digits = Math.max(0, Math.min(4, Math.ceil(-Math.log10(step) - 1e-9)));
    for (let value = bottom; value <= top + step / 2; value += step) {
      context.fillStyle = line;
      context.fillRect(box.left, Math.round(y(value)), box.right - box.left, 1);
      context.fillStyle = faint;
      context.textAlign = "right";
      context.fillText(value.toFixed(digits), box.left - 8, y(value));
    }
    const { ticks, unit } = this.axis === "seconds" ? timeTicks(0, most, box.right - box.left, 80) : numberTicks(most, box.right - box.left, AXES[this.axis].said);
    for (const { at, label } of ticks) {
      context.fillStyle = line;
      context.fillRect(Math.round(x(at)), box.bottom, 1, 5);
      context.fillStyle = faint;
      context.textAlign = at === 0 ? "left" : box.right - x(at) < 20 ? "right" : "center";
      context.fillText(label, x(at), box.bottom + 14);
    }
    context.textAlign = "right";
    context.fillText(unit ? `${AXES[this.axis].unit}, ${unit}` : AXES[this.axis].unit, box.right, box.bottom + 33);
    context.textAlign = "left";
    context.fillText("best mean score so far", 0, 8);
  }

  drawBand(context, { x, y }, { steps, last, colour: name }) {
    context.fillStyle = colour(name);
    context.globalAlpha = this.curves.length > 3 ? 0.07 : 0.15;
    steps.forEach((each, place) => {
      if (each.low == null) return;
      const end = (steps[place + 1] ?? last)[this.axis];
      context.fillRect(x(each[this.axis]), y(each.high), x(end) - x(each[this.axis]), y(each.low) - y(each.high));
    });
    context.globalAlpha = 1;
  }

  drawLine(context, { x, y }, { steps, last, colour: name, run }) {
    context.strokeStyle = context.fillStyle = colour(name);
    context.lineWidth = run === this.store.run ? 2.5 : 1.5;
    context.beginPath();
    context.moveTo(x(steps[0][this.axis]), y(steps[0].score));
    steps.slice(1).forEach((each, before) => {
      context.lineTo(x(each[this.axis]), y(steps[before].score));
      context.lineTo(x(each[this.axis]), y(each.score));
    });
    context.lineTo(x(last[this.axis]), y(steps.at(-1).score));
    context.stroke();
    for (const each of steps) context.fillRect(x(each[this.axis]) - 2.5, y(each.score) - 2.5, 5, 5);
    context.lineWidth = 1;
  }

  drawAt(context, { x, y }) {
    context.strokeStyle = colour("text");
    context.lineWidth = 2;
    context.beginPath();
    context.arc(x(this.at[this.axis]), y(this.at.score), 7, 0, 2 * Math.PI);
    context.stroke();
    context.lineWidth = 1;
  }

  /** The step or mark next to the pointer. */
  point(event) {
    if (!this.drawn) return;
    const bounds = this.parts.chart.getBoundingClientRect();
    const { x, y } = this.drawn;
    let [best, nearest] = [null, 40];
    for (const each of this.curves) {
      for (const found of [...each.steps, ...each.marks]) {
        const away = Math.hypot(x(found[this.axis]) - (event.clientX - bounds.left), y(found.score) - (event.clientY - bounds.top));
        if (away < nearest) [best, nearest] = [found, away];
      }
    }
    if (best !== this.at) this.choose(best);
  }

  key(event) {
    const runs = this.curves;
    const steps = runs.find((each) => each.run === (this.at?.run ?? this.store.run))?.steps ?? runs[0].steps;
    const place = steps.indexOf(this.at);
    const run = runs.findIndex((each) => each.steps === steps);
    const acts = {
      ArrowRight: () => steps[Math.min(steps.length - 1, place + 1)],
      ArrowLeft: () => steps[Math.max(0, place - 1)],
      ArrowUp: () => runs[Math.min(runs.length - 1, run + 1)].steps[0],
      ArrowDown: () => runs[Math.max(0, run - 1)].steps[0],
      Escape: () => null,
    };
    if (event.key === "Enter" && this.at) this.store.go("candidate", { candidate: this.at.candidate });
    if (!(event.key in acts)) return;
    event.preventDefault();
    this.choose(acts[event.key]());
  }

  choose(found) {
    this.at = found;
    this.parts.chart.style.cursor = found ? "pointer" : "";
    this.tell();
    this.surface.redraw();
  }

  tell() {
    const { at } = this;
    if (!at) {
      render(html`<p class="hint">Point at a square to see which candidate was a new best; click to open it. The bands are 95 % intervals, by resampling the
        examples of the validation; diamonds are scores on the held-out test examples, triangles those on fresh examples at final selection.</p>`, this.parts.told);
      return;
    }
    const what = at.series === "validation" ? "validation" : MARKS[at.series];
    render(html`<p><strong>${at.run}: ${at.candidate}</strong> ${score(at.score)} ${interval(at)} (${what}, ${number(at.examples)} examples), after
      ${" "}${seconds(at.seconds)}, ${number(at.calls)} requests and ${number(at.tokens, true)} tokens${at.cost > 0 ? `, ${dollars(at.cost)}` : ""}</p>`, this.parts.told);
  }
}

/** A run's curve: steps of the best validation score, marks of other examples, and the last point. */
function curve(store, run, place) {
  const rows = store.table("curve", run).rows().map((row) => ({ ...row, run }));
  const validation = rows.filter((row) => row.series === "validation");
  const steps = validation.filter((row) => row.version >= 0);
  const last = validation.find((row) => row.version < 0) ?? steps.at(-1);
  const marks = rows.filter((row) => row.series !== "validation");
  return { run, steps, marks, last, colour: COLOURS[place % COLOURS.length], about: store.about(run) };
}

function numberTicks(most, width, said) {
  const step = niceStep((most * 90) / width);
  return { ticks: Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, place) => ({ at: place * step, label: place ? said(place * step) : "0" })), unit: "" };
}

/** A diamond (held-out) or triangle (fresh), with the interval as a line. */
function drawMark(context, { x, y }, mark, value, painted) {
  const [across, down] = [x(value), y(mark.score)];
  context.fillStyle = context.strokeStyle = painted;
  if (mark.low != null) {
    context.beginPath();
    context.moveTo(across, y(mark.low));
    context.lineTo(across, y(mark.high));
    context.stroke();
  }
  context.beginPath();
  context.moveTo(across, down - 7);
  context.lineTo(across + 6, mark.series === "fresh" ? down + 5 : down);
  if (mark.series !== "fresh") context.lineTo(across, down + 7);
  context.lineTo(across - 6, mark.series === "fresh" ? down + 5 : down);
  context.closePath();
  context.fill();
  context.strokeStyle = colour("back");
  context.stroke();
}

function interval({ low, high }) {
  return low == null ? "" : `[${score(low)}, ${score(high)}]`;
}

function summary({ steps, marks, about }) {
  const other = steps.findIndex((step) => step.candidate !== steps[0].candidate);
  const [first, best] = [steps.at(other < 0 ? -1 : other - 1), steps.at(-1)];  // the seed may be measured again
  const held = marks.filter((mark) => mark.series === "held_out");
  const heldBest = held.find((mark) => mark.candidate === best.candidate) ?? held.at(-1);
  const better = steps.filter((step, place) => place && step.candidate !== steps[place - 1].candidate).length;
  const came = better
    ? html`The best validation score went from ${score(first.score)} to <strong>${score(best.score)}</strong> ${interval(best)} in ${better}
        ${better === 1 ? " step" : " steps"}; the last one, ${best.candidate}, came after ${seconds(best.seconds)} of ${seconds(about.seconds)}.`
    : html`The seed's validation score is <strong>${score(first.score)}</strong> ${interval(first)}; no candidate was better after ${seconds(about.seconds)}.`;
  const test = heldBest ? ` On the held-out test examples it went from ${score(held[0].score)} to ${score(heldBest.score)} ${interval(heldBest)}.` : "";
  return html`${came}${test}`;
}

function Tools({ curves, axis, priced, pick }) {
  const mark = ({ run, colour: name }) => html`<li><i style=${{ background: colour(name) }}></i>${run}</li>`;
  return html`<label>over <select onChange=${(event) => pick(event.target.value)}>
      ${Object.entries(AXES).map(([name, { name: said }]) => html`<option value=${name} selected=${name === axis} disabled=${name === "cost" && !priced}>
        ${said}${name === "cost" && !priced ? " (no prices known)" : ""}</option>`)}</select></label>
    ${curves.length > 1 && html`<ul class="legend" aria-label="runs">${[...curves].reverse().map(mark)}</ul>`}`;
}

/** Several runs: where each ended, and when it reached what all have reached. */
function Comparison({ curves, axis }) {
  const common = Math.min(...curves.map((each) => each.steps.at(-1).score));
  const held = (each) => each.marks.filter((mark) => mark.series === "held_out").at(-1);
  return html`<section><h2>Runs</h2><table><thead><tr><th>run</th><th>mode</th><th class="number">best</th><th>95 % interval</th>
    <th class="number">held-out</th><th class="number">reached ${score(common)} after</th></tr></thead><tbody>${[...curves].reverse().map((each) => {
      const best = each.steps.at(-1);
      const reached = each.steps.find((step) => step.score >= common);
      return html`<tr><td>${each.run}</td><td>${each.about.mode}</td><td class="number">${score(best.score)}</td><td>${interval(best)}</td>
        <td class="number">${score(held(each)?.score)}</td><td class="number">${AXES[axis].said(reached[axis])}${axis === "seconds" || axis === "cost" ? "" : ` ${AXES[axis].name}`}</td></tr>`;
    })}</tbody></table></section>`;
}

function signed(gain) {
  return `${gain < 0 ? "−" : "+"}${score(Math.abs(gain))}`;
}

/** Each new best of a run. */
function Steps({ own, store, priced }) {
  return html`<section><h2>Each new best</h2><table><thead><tr><th class="number">after</th><th class="number wide">requests</th><th class="number wide">tokens</th>
    ${priced && html`<th class="number">dollars</th>`}<th>candidate</th><th class="number">score</th><th class="number">gain</th><th class="wide">95 % interval</th></tr></thead>
    <tbody>${own.steps.map((each, place) => {
      const before = own.steps[place - 1];
      const gain = !before ? "" : before.candidate === each.candidate ? "measured again" : signed(each.score - before.score);
      return html`<tr><td class="number">${seconds(each.seconds)}</td><td class="number wide">${number(each.calls)}</td><td class="number wide">${number(each.tokens, true)}</td>
        ${priced && html`<td class="number">${dollars(each.cost)}</td>`}<td><${CandidateLink} store=${store} id=${each.candidate} view="candidate" /></td>
        <td class="number">${score(each.score)}</td><td class="number">${gain}</td><td class="wide">${interval(each)}</td></tr>`;
    })}</tbody></table></section>`;
}
