// What stands around the timeline: the summary, the legend, what is chosen, and the same as tables.

import { html } from "../vendor/htm-preact.standalone.umd.js";
import { colour, number, roleColour, seconds, stageColour } from "../common.js";
import { percent } from "./paint.js";
import { sentence } from "./told.js";

/** What the chart shows, in sentences. */
export function Summary({ about, data, steps, still, written, live }) {
  if (!data.calls.length && !data.spans.length) {
    return html`<p class="empty">${live ? "The run has made no request yet." : "The run made no request."}</p>`;
  }
  const mean = steps.mean(0, data.end);
  const after = data.stages.includes("held_out") ? Math.max(0, data.end - about.seconds) : 0;
  const lasted = `${seconds(data.end - after)}${after ? `, and ${seconds(after)} of held-out test` : ""}`;
  const rate = data.end > 0 ? written / data.end : 0;
  const ended = { interrupted: " The run was killed or cut off: work that was open then reaches to the right edge.", failed: " The run failed." }[about.state] ?? "";
  const coming = live && about.state === "running" ? " Requests appear when they end." : "";
  return html`<p>${number(data.calls.length)} requests in ${lasted}: on average <strong>${mean.toFixed(1)} in flight</strong>, at most
    ${" "}${number(steps.most)}; ${number(Math.round(rate), true)} tokens/s were written. ${stillSaid(still, data.end)}${ended}${coming}</p>`;
}

function stillSaid({ secondsNone, secondsFew, limit }, end) {
  const none = secondsNone > 0 ? `Nothing was in flight for ${seconds(secondsNone)} (${percent(secondsNone / end)})` : "There was always something in flight";
  if (limit <= 1 || secondsFew <= secondsNone) return `${none}.`;
  return html`${none}, and fewer than ${limit} requests for <strong>${seconds(secondsFew)} (${percent(secondsFew / end)})</strong> of the run.`;
}

/** Which colour is what. */
export function Legend({ data, colouring, strips, lanes, limit }) {
  const column = data.calls.column(colouring === "stage" ? "stage" : "role");
  const shown = new Set([...column, ...(colouring === "stage" ? lanes.map((lane) => lane.name) : [])]);
  const entries =
    colouring === "stage"
      ? data.stages.map((name, place) => [name, stageColour(place)]).filter(([name]) => shown.has(name))
      : [...shown].map((name) => [name, roleColour(name)]);
  if (data.calls.column("outcome").includes("failed")) entries.push(["failed", colour("bad")]);
  if (colouring === "role" && lanes.some((lane) => lane.what === "work")) entries.push(["work on items", colour("grey")]);
  const lines = strips.flatMap(({ strip }) => strip.lines).map((line) => [line.name, colour(line.colour)]);
  const mark = (kind) => ([name, value]) => html`<li><i class=${kind} style=${{ background: value }}></i>${name}</li>`;
  return html`<ul class="legend" aria-label="colours">${entries.map(mark("box"))}${lines.map(mark("line"))}
    <li><i class="hatch"></i>idle</li><li><i class="none"></i>nothing in flight</li>
    ${limit > 1 && html`<li><i class="few"></i>fewer than ${limit} in flight</li>`}</ul>`;
}

/** The stretch that is chosen, and where one can go from it. */
export function Chosen({ found, store }) {
  if (!found) {
    return html`<p class="hint">Point at a request to see what it is; click or use the arrow keys to choose one. Drag to move, drag in the strip above
      or hold Shift to zoom to a part, zoom with Ctrl and the wheel (the wheel alone, once the chart has the focus).</p>`;
  }
  const link = (label, view, params) => html`<button onClick=${() => store.go(view, params)}>${label}</button>`;
  return html`<div class="panel" aria-label=${sentence(found)}><strong>${found.title}</strong>
    <dl>${found.facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    <p>${found.candidate && link(`candidate ${found.candidate}`, "candidate", { candidate: found.candidate, call: found.call })}
      ${" "}${link("events of the item", "log", { item: found.item })} ${" "}${link("its staleness", "staleness", { item: found.item })}</p></div>`;
}

/** The longest stretches in which the run stood still or nearly so. */
export function StillTable({ still, look }) {
  if (!still.stretches.length) return still.brief > 0 && html`<section><h2>What stood still</h2><p class="hint">${briefly(still.brief)}</p></section>`;
  return html`<section><h2>What stood still</h2><table><thead><tr><th class="number">lasted</th><th class="number">from</th>
    <th class="number">in flight</th><th>why</th></tr></thead><tbody>${still.stretches.map(
      ({ from, to, nothing, inFlight, why }) => html`<tr class=${nothing ? "nothing" : ""}><td class="number"><button onClick=${() => look(from, to)}
        title="show it in the timeline">${seconds(to - from)}</button></td><td class="number">${moment(from)}</td>
        <td class="number">${nothing ? "nothing" : inFlight.toFixed(1)}</td><td>${why}</td></tr>`,
    )}</tbody></table>${still.brief > 0 && html`<p class="hint">${briefly(still.brief)}</p>`}</section>`;
}

function briefly(count) {
  return `${count === 1 ? "One stretch" : `${number(count)} stretches`} of less than 1 % of the run ${count === 1 ? "is" : "are"} left out.`;
}

/** A time since the run began. */
export function moment(time) {
  return time > 0 ? seconds(time) : "0 s";
}

/** The lanes as a table. */
export function LaneTable({ lanes, arrangement }) {
  if (!lanes.lanes.length) return null;
  const rows = { stage: "side by side at most", worker: "workers", slot: "slots" }[arrangement];
  return html`<section><h2>Lanes</h2><table><thead><tr><th>lane</th><th class="number">requests</th><th class="number">${rows}</th>
    <th class="number">busy</th><th class="number">idle</th></tr></thead><tbody>${lanes.lanes.map(
      (lane) => html`<tr><td>${lane.name}</td><td class="number">${number(lane.requests)}</td><td class="number">${lane.rows.length}</td>
        <td class="number">${seconds(lane.busy)}</td><td class="number">${percent(lane.idle)}</td></tr>`,
    )}</tbody></table>
    <p class="hint">Busy is the time in which at least one of the lane's rows was at work.${lanes.slight.length
      ? ` No lane is shown for ${lanes.slight.join(", ")}: without requests, and at work for less than 1 % of the run.` : ""}</p></section>`;
}
