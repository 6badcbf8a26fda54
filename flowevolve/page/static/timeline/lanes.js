// The lanes of the timeline: which requests and which work stand in which row.

import { inOrder, union, lengthWithin } from "./steps.js";

/** Ways to arrange lanes, and what each is called. */
export const ARRANGEMENTS = { stage: "stage", worker: "worker", slot: "request slot" };
/** A stage without requests whose work takes less than this share of the run has no lane. */
const NOTHING = 0.01;

/** Stretches of one row, in the order of their beginnings. A reference is the place of a call, or -1 less that of work. */
export class Row {
  constructor(begins, ends, references) {
    this.begins = Float64Array.from(begins);
    this.ends = Float64Array.from(ends);
    this.references = Int32Array.from(references);
    /** The latest end up to each stretch, by which the first one in view is found. */
    this.reach = new Float64Array(this.ends.length);
    let reach = -Infinity;
    for (let at = 0; at < this.ends.length; at++) this.reach[at] = reach = Math.max(reach, this.ends[at]);
  }
}

/** All requests and work as arrays, once for each change of the tables. `end` is when the run ended, or now. */
export function collected(store) {
  const calls = store.table("calls");
  const spans = store.table("spans");
  const ended = calls.column("ended");
  let end = store.about().seconds;
  for (const time of ended) if (time > end) end = time;
  const stages = store.table("stages").column("stage").slice();
  for (const stage of [...spans.column("stage"), ...calls.column("stage")]) if (!stages.includes(stage)) stages.push(stage);
  return { calls, spans, end, stages: ordered(stages) };
}

/** init comes first; finish and held_out come last, as in time. */
function ordered(stages) {
  const rank = (stage) => ({ init: -1, finish: 1, held_out: 2 })[stage] ?? 0;
  return stages.map((stage, place) => [stage, place]).sort((a, b) => rank(a[0]) - rank(b[0]) || a[1] - b[1]).map(([stage]) => stage);
}

/** The lanes of an arrangement: {name, stage (its place, or -1), rows, requests, busy, idle, joined}, and what has no lane. */
export function arranged(data, arrangement) {
  const lanes = arrangement === "slot" ? bySlot(data) : arrangement === "worker" ? byWorker(data) : byStage(data);
  return { lanes: lanes.filter((lane) => !lane.slight), slight: lanes.filter((lane) => lane.slight).map((lane) => lane.name) };
}

function byStage(data) {
  const calls = callsBy(data, data.stages.length, (place) => data.stages.indexOf(data.calls.column("stage")[place]));
  const work = workBy(data);
  return data.stages.map((name, stage) => {
    const own = calls[stage];
    const rows = own.length ? packed(data, own, true) : packed(data, work[stage], false);
    return lane(data, name, stage, own.length, own.length ? "requests" : "work", rows, own.length ? null : work[stage]);
  });
}

function byWorker(data) {
  const stageOf = data.calls.column("stage");
  const workers = data.spans.column("worker");
  const items = data.calls.column("item");
  const calls = new Map();
  for (let place = 0; place < data.calls.length; place++) {
    const span = data.spans.find(items[place]);
    if (span < 0 || workers[span] == null) continue;
    const key = `${stageOf[place]} ${workers[span]}`;
    if (!calls.has(key)) calls.set(key, []);
    calls.get(key).push(place);
  }
  const work = workBy(data);
  return data.stages.map((name, stage) => {
    const rows = [];
    for (const place of work[stage]) (rows[workers[place]] ??= []).push(place);
    const filled = Array.from(rows, (places, worker) => ({
      work: row(data, places ?? [], false),
      calls: row(data, calls.get(`${name} ${worker}`) ?? [], true),
    }));
    const requests = filled.reduce((sum, { calls: own }) => sum + own.begins.length, 0);
    return lane(data, name, stage, requests, "work", filled, work[stage]);
  });
}

function bySlot(data) {
  const slots = data.calls.column("slot");
  let most = -1;
  for (const slot of slots) if (slot > most) most = slot;
  const rows = callsBy(data, most + 1, (place) => slots[place]).map((places) => ({ work: null, calls: row(data, places, true) }));
  return rows.length ? [lane(data, "all requests", -1, data.calls.length, "requests", rows, null)] : [];
}

function lane(data, name, stage, requests, what, rows, work) {
  const all = rows.flatMap((each) => [each.work, each.calls]).filter(Boolean);
  const begins = all.flatMap((each) => Array.from(each.begins));
  const ends = all.flatMap((each) => Array.from(each.ends));
  const order = inOrder(begins);
  const joined = union(Array.from(order, (at) => begins[at]), Array.from(order, (at) => ends[at]));
  const busy = lengthWithin(joined, 0, data.end);
  const idle = data.end > 0 ? 1 - busy / data.end : 0;
  const slight = !requests && (!work?.length || busy < NOTHING * data.end);
  return { name, stage, requests, what, rows, joined, busy, idle, slight };
}

function callsBy({ calls }, count, group) {
  const groups = Array.from({ length: count }, () => []);
  const outcomes = calls.column("outcome");
  for (let place = 0; place < calls.length; place++) if (outcomes[place] !== "cached") groups[group(place)].push(place);
  return groups;
}

function workBy({ spans, stages }) {
  const groups = stages.map(() => []);
  const [stageOf, taken] = [spans.column("stage"), spans.column("taken")];
  for (let place = 0; place < spans.length; place++) if (taken[place] != null) groups[stages.indexOf(stageOf[place])].push(place);
  return groups;
}

function times(data, places, isCall) {
  const table = isCall ? data.calls : data.spans;
  const [begun, ended] = [table.column(isCall ? "begun" : "taken"), table.column(isCall ? "ended" : "done")];
  const begins = places.map((place) => begun[place]);
  const ends = places.map((place) => ended[place] ?? data.end);
  return { begins, ends, order: inOrder(begins) };
}

function row(data, places, isCall) {
  const { begins, ends, order } = times(data, places, isCall);
  return rowOf(order, begins, ends, places, isCall);
}

function rowOf(order, begins, ends, places, isCall) {
  const pick = (values) => Array.from(order, (at) => values[at]);
  return new Row(pick(begins), pick(ends), pick(places.map((place) => (isCall ? place : -1 - place))));
}

/** Rows in which no two stretches overlap, as few as there can be; the first ones are the fullest. */
function packed(data, places, isCall) {
  const { begins, ends, order } = times(data, places, isCall);
  const free = [];
  const rows = [];
  for (const at of order) {
    let place = 0;
    while (place < free.length && free[place] > begins[at]) place++;
    free[place] = ends[at];
    (rows[place] ??= []).push(at);
  }
  return rows.map((own) => {
    const found = rowOf(own, begins, ends, places, isCall);
    return isCall ? { work: null, calls: found } : { work: found, calls: null };
  });
}
