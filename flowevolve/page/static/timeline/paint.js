// Draws the timeline: the overview, the lanes, what is in flight, and the axis.

import { colour, number, roleColour, seconds, stageColour } from "../common.js";
import { Rectangles, hatch, niceStep, timeTicks } from "../canvas.js";
import { firstAbove } from "./steps.js";

/** How high the overview is, which shows the whole run. */
export const OVERVIEW = 34;
/** Where the axis below the overview ends, and the lanes begin. */
const TOP = OVERVIEW + 20;
const AXIS = 34;
const STRIP = 58;
const BETWEEN = 7;
const NARROW = 640;
/** A lane that is busy for less than this share of the run is as low as one of a single row. */
const SELDOM = 0.05;

/** The colours of the present theme. */
export function theme(context) {
  const names = ["back", "red", "yellow", "panel", "text", "faint", "line", "accent", "good", "bad", "blue", "orange", "green", "purple", "sky", "grey"];
  const colours = Object.fromEntries(names.map((name) => [name, colour(name)]));
  return { ...colours, hatched: hatch(context, colours.faint), font: "12px system-ui, -apple-system, sans-serif" };
}

/** The colour of each call and of each span of work, by place. */
export function coloured(data, by, colours) {
  const known = new Map();
  const named = (name, find) => {
    if (!known.has(name)) known.set(name, find(name));
    return known.get(name);
  };
  const ofStage = (stage) => named(`stage ${stage}`, () => stageColour(Math.max(0, data.stages.indexOf(stage))));
  const [stages, roles, outcomes] = ["stage", "role", "outcome"].map((name) => data.calls.column(name));
  const call = (place) => {
    if (outcomes[place] === "failed") return colours.bad;
    return by === "stage" ? ofStage(stages[place]) : named(`role ${roles[place]}`, () => roleColour(roles[place]));
  };
  const spanStages = data.spans.column("stage");
  const work = (place) => (by === "stage" ? ofStage(spanStages[place]) : colours.grey);
  return (reference) => (reference >= 0 ? call(reference) : work(-1 - reference));
}

/** Where everything is, in CSS pixels. */
export function layout(lanes, strips, width) {
  const narrow = width < NARROW;
  const left = narrow ? 8 : 138;
  const right = narrow ? 8 : 14;
  const label = narrow ? 16 : 0;
  const high = (lane) => (1 - lane.idle < SELDOM ? 1 : lane.rows.length);
  const rows = lanes.reduce((sum, lane) => sum + lane.rows.length, 0);
  const row = Math.min(15, (narrow ? 260 : 320) / Math.max(1, rows));
  let y = TOP + 14;
  const placed = lanes.map((lane) => {
    y += label;
    const height = Math.max(narrow ? 10 : 30, Math.round(high(lane) * row));
    const found = { lane, y, height, row: height / lane.rows.length };
    y += height + BETWEEN;
    return found;
  });
  const lanesEnd = y - BETWEEN;
  y += lanes.length ? 8 : 0;
  const drawn = strips.map((strip) => {
    y += label;
    const found = { strip, y, height: STRIP };
    y += STRIP + 12;
    return found;
  });
  const bottom = y - 4;
  return { narrow, left, right, plot: Math.max(10, width - left - right), lanes: placed, lanesEnd, strips: drawn, bottom, height: bottom + AXIS };
}

/** Draws all of a scene: {view, data, layout, colours, colourOf, steps, none, end, mean}. */
export function paint(context, scene) {
  const { layout: at, view, colours } = scene;
  context.font = colours.font;
  context.textBaseline = "middle";
  const time = timeTicks(view.from, view.to, at.plot);
  paintOverview(context, scene);
  context.save();
  context.beginPath();
  context.rect(at.left, TOP, at.plot, at.bottom - TOP);
  context.clip();
  for (const lane of at.lanes) paintIdle(context, scene, lane);
  paintGrid(context, scene, time.ticks);
  const found = new Rectangles();
  for (const { lane, y, row } of at.lanes) {
    lane.rows.forEach((each, number) => {
      const [top, height] = [y + number * row, row >= 4 ? row - 1 : row];
      if (each.work) paintRow(each.work, scene, top, height, found, each.calls ? 0.3 : 0.75);
      if (each.calls) paintRow(each.calls, scene, each.work ? top + height * 0.25 : top, each.work ? height * 0.5 : height, found, 1);
    });
  }
  found.fill(context);
  paintStill(context, scene);
  for (const strip of at.strips) paintStrip(context, scene, strip);
  context.restore();
  paintLabels(context, scene);
  paintAxis(context, scene, time);
}

/** Where a time is, from the left of the canvas. */
export function across(scene, time) {
  const { view, layout: at } = scene;
  return at.left + ((time - view.from) / (view.to - view.from)) * at.plot;
}

function paintRow(row, scene, y, height, found, opacity) {
  const { view, layout: at, colourOf } = scene;
  const scale = at.plot / (view.to - view.from);
  let [column, cover, kept] = [-1, 0, null];
  const flush = () => {
    if (cover > 0) found.add(kept, opacity * Math.max(0.25, Math.ceil(Math.min(1, cover) * 4) / 4), at.left + column, y, 1, height);
    cover = 0;
  };
  for (let place = firstAbove(row.reach, view.from); place < row.begins.length && row.begins[place] < view.to; place++) {
    const begin = Math.max(0, (row.begins[place] - view.from) * scale);
    const end = Math.min(at.plot, (row.ends[place] - view.from) * scale);
    if (end - begin >= 2) {
      flush();
      found.add(colourOf(row.references[place]), opacity, at.left + begin, y, end - begin - (end - begin > 4 ? 1 : 0.25), height);
      continue;
    }
    const mine = Math.floor(begin);
    if (mine !== column) {
      flush();
      column = mine;
      kept = colourOf(row.references[place]);
    }
    cover += Math.max(0.12, end - begin);
  }
  flush();
}

/** The hatched background of a lane where nothing of it was at work. */
function paintIdle(context, scene, { lane, y, height }) {
  const { view, layout: at, colours, end } = scene;
  context.fillStyle = colours.panel;
  context.fillRect(at.left, y, at.plot, height);
  context.fillStyle = colours.hatched;
  context.globalAlpha = 0.45;
  const { joined } = lane;
  let since = Math.max(0, view.from);
  const gap = (to) => {
    const [left, right] = [across(scene, since), across(scene, Math.min(to, view.to, end))];
    if (right - left >= 3) context.fillRect(left, y, right - left, height);
  };
  for (let place = 0; place < joined.length && joined[place] < view.to; place += 2) {
    if (joined[place] > since) gap(joined[place]);
    since = Math.max(since, joined[place + 1]);
  }
  gap(end);
  context.globalAlpha = 1;
}

function paintGrid(context, scene, ticks) {
  const { layout: at, colours } = scene;
  context.fillStyle = colours.line;
  context.globalAlpha = 0.6;
  for (const tick of ticks) context.fillRect(Math.round(across(scene, tick.at)), TOP + 4, 1, at.bottom - TOP - 4);
  context.globalAlpha = 1;
}

/** A bar above the lanes where few requests were in flight, and bands over everything where none was. */
function paintStill(context, scene) {
  const { layout: at, colours, none, few } = scene;
  context.fillStyle = colours.orange;
  eachWide(scene, few, (left, wide) => context.fillRect(left, TOP + 6, wide, 4));
  context.fillStyle = colours.bad;
  eachWide(scene, none, (left, wide) => {
    context.fillRect(left, TOP + 6, wide, 4);
    context.globalAlpha = 0.22;
    context.fillRect(left, TOP + 12, wide, at.bottom - TOP - 12);
    context.globalAlpha = 1;
  });
}

/** Each stretch in view, those that are narrower than a pixel joined to the one before. */
function eachWide(scene, stretches, draw) {
  const { view } = scene;
  let last = -Infinity;
  for (const [from, to] of stretches) {
    if (to < view.from || from > view.to) continue;
    const left = across(scene, from);
    const right = across(scene, to);
    if (right - left < 1 && left - last < 1) continue;
    last = right;
    draw(left, Math.max(1, right - left));
  }
}

/** The whole run, small, with the part that is in view. */
function paintOverview(context, scene) {
  const { layout: at, view, end, steps, colours, none } = scene;
  context.fillStyle = colours.panel;
  context.fillRect(at.left, 0, at.plot, OVERVIEW);
  scene.overview ??= steps.columns(0, end, Math.max(1, Math.floor(at.plot)));
  const { means } = scene.overview;
  const most = Math.max(1, ...means);
  context.fillStyle = colours.grey;
  means.forEach((mean, column) => {
    const high = mean > 0 ? Math.max(1, (mean / most) * (OVERVIEW - 4)) : 0;
    context.fillRect(at.left + column, OVERVIEW - high, 1, high);
  });
  context.fillStyle = colours.bad;
  for (const [from, to] of none) if (to - from > end / at.plot) context.fillRect(at.left + (from / end) * at.plot, 0, ((to - from) / end) * at.plot, OVERVIEW);
  const [left, right] = [view.from, view.to].map((time) => at.left + (time / end) * at.plot);
  context.fillStyle = colours.back;
  context.globalAlpha = 0.65;
  context.fillRect(at.left, 0, left - at.left, OVERVIEW);
  context.fillRect(right, 0, at.left + at.plot - right, OVERVIEW);
  context.globalAlpha = 1;
  context.strokeStyle = colours.accent;
  context.strokeRect(Math.round(left) + 0.5, 0.5, Math.max(2, Math.round(right - left) - 1), OVERVIEW - 1);
  context.fillStyle = colours.accent;
  for (const x of [left, right]) context.fillRect(Math.round(x) - 2, OVERVIEW / 2 - 7, 4, 14);
}

/** A curve over time below the lanes: an area, the highest of each column above it, and lines of the server's looks. */
function paintStrip(context, scene, { strip, y, height }) {
  const { layout: at, view, colours } = scene;
  const count = Math.max(1, Math.floor(at.plot));
  const { means, highest } = strip.steps.columns(view.from, view.to, count);
  const top = topOf(strip, means, highest);
  const up = (value) => (Math.min(value, top) / top) * height;
  context.fillStyle = colours.panel;
  context.fillRect(at.left, y, at.plot, height);
  context.fillStyle = colours.line;
  context.fillRect(at.left, Math.round(y + height / 2), at.plot, 1);
  const area = new Rectangles();
  for (let column = 0; column < count; column++) {
    if (strip.peaks) area.add(colours[strip.colour], 0.25, at.left + column, y + height - up(highest[column]), 1, up(highest[column]));
    area.add(colours[strip.colour], 0.75, at.left + column, y + height - up(means[column]), 1, up(means[column]));
  }
  area.fill(context);
  for (const line of strip.lines) paintLine(context, scene, line, (value) => y + height - up(value));
  strip.top = top;
}

function topOf(strip, means, highest) {
  let most = 1;
  for (const values of strip.peaks ? [highest] : [means]) for (const value of values) most = Math.max(most, value);
  for (const { values } of strip.lines) for (const value of values) most = Math.max(most, value ?? 0);
  const step = niceStep(most / 4);
  return Math.ceil(most / step) * step;
}

function paintLine(context, scene, { times, values, colour: named, stepped }, height) {
  const { view, colours } = scene;
  context.strokeStyle = colours[named];
  context.lineWidth = 1.25;
  context.beginPath();
  const first = Math.max(0, firstAbove(times, view.from) - 1);
  let before = null;
  for (let place = first; place < times.length; place++) {
    const [x, y] = [across(scene, times[place]), height(values[place] ?? 0)];
    if (before === null) context.moveTo(x, y);
    else if (stepped) context.lineTo(x, before);
    context.lineTo(x, y);
    before = y;
    if (times[place] > view.to) break;
  }
  if (stepped && before !== null) context.lineTo(across(scene, scene.end), before);
  context.stroke();
  context.lineWidth = 1;
}

function paintLabels(context, scene) {
  const { layout: at, colours } = scene;
  const say = (text, y, faint, dy) => {
    context.fillStyle = faint ? colours.faint : colours.text;
    if (at.narrow) return;
    context.textAlign = "right";
    context.fillText(fitted(context, text, at.left - 14), at.left - 8, y + dy);
  };
  for (const { lane, y, height } of at.lanes) {
    const idle = `${percent(lane.idle)} idle`;
    if (at.narrow) narrowLabel(context, scene, `${lane.name}, ${idle}`, y);
    say(lane.name, y + height / 2, false, -7);
    say(idle, y + height / 2, true, 8);
  }
  for (const { strip, y, height } of at.strips) {
    if (at.narrow) narrowLabel(context, scene, `${strip.name}, up to ${number(strip.top, true)}`, y);
    say(number(strip.top, true), y, true, 6);
    strip.label.forEach((text, place) => say(text, y + height / 2, false, place * 15 - (strip.label.length - 1) * 7.5));
    say("0", y + height, true, -6);
  }
}

function narrowLabel(context, { layout: at, colours }, text, y) {
  context.textAlign = "left";
  context.fillStyle = colours.text;
  context.fillText(fitted(context, text, at.plot), at.left, y - 8);
}

/** The times, above the lanes and below them, as all of it seldom fits a screen. */
function paintAxis(context, scene, { ticks, unit }) {
  const { layout: at, colours } = scene;
  context.fillStyle = colours.faint;
  for (const tick of ticks) {
    const x = across(scene, tick.at);
    context.textAlign = x - at.left < 14 ? "left" : at.left + at.plot - x < 14 ? "right" : "center";
    for (const y of [OVERVIEW + 11, at.bottom + 9]) context.fillText(tick.label, x, y);
  }
  context.textAlign = "right";
  context.fillText(`time since the run began, ${unit}`, at.left + at.plot, at.bottom + 26);
}

function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let length = text.length;
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > width) length--;
  return `${text.slice(0, length)}…`;
}

/** A share from 0 to 1 as "41 %"; a small one is not called none. */
export function percent(share) {
  if (share > 0 && share < 0.005) return "under 1\u00a0%";
  if (share < 1 && share > 0.995) return "over 99\u00a0%";
  return `${Math.round(share * 100)}\u00a0%`;
}

/** The frame around the chosen stretch, and the line at the pointer. */
export function paintOver(context, scene, chosen, pointer) {
  const { layout: at, colours, view } = scene;
  if (pointer !== null && pointer >= at.left && pointer <= at.left + at.plot) {
    context.fillStyle = colours.faint;
    context.fillRect(Math.round(pointer), TOP, 1, at.bottom - TOP);
    const time = view.from + ((pointer - at.left) / at.plot) * (view.to - view.from);
    context.font = colours.font;
    const text = seconds(time);
    const wide = context.measureText(text).width + 8;
    const x = Math.min(Math.max(pointer - wide / 2, at.left), at.left + at.plot - wide);
    context.fillStyle = colours.text;
    context.fillRect(x, OVERVIEW + 2, wide, 17);
    context.fillStyle = colours.back;
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.fillText(text, x + 4, OVERVIEW + 11);
  }
  if (!chosen) return;
  const left = Math.max(at.left - 2, across(scene, chosen.begin));
  const right = Math.min(at.left + at.plot + 2, across(scene, chosen.end));
  if (right < at.left || left > at.left + at.plot) return;
  context.strokeStyle = colours.text;
  context.lineWidth = 2;
  context.strokeRect(left - 1, chosen.y - 1, Math.max(3, right - left + 2), chosen.height + 2);
}
