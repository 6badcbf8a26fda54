// What a request or a piece of work is, in words.

import { dollars, number, seconds } from "../common.js";

/** {title, facts: [[name, value], …], candidate, item, call} of a reference: the place of a call, or -1 less that of work. */
export function told(data, reference) {
  return reference >= 0 ? call(data.calls.row(reference)) : work(data.spans.row(-1 - reference), data.end);
}

function call(row) {
  const facts = [["item", row.part ? `${row.item}, ${row.part}` : row.item]];
  if (row.candidate) facts.push(["candidate", row.candidate]);
  facts.push(["time", `${seconds(row.ended - row.begun)}, from ${seconds(row.begun)} on`]);
  if (row.begun - row.queued >= 0.005) facts.push(["waited before", seconds(row.begun - row.queued)]);
  if (row.completion_tokens != null) {
    const cached = row.cached_tokens ? ` (${number(row.cached_tokens)} cached)` : "";
    facts.push(["tokens", `${number(row.prompt_tokens)} read${cached}, ${number(row.completion_tokens)} written`]);
  }
  if (row.cost) facts.push(["cost", dollars(row.cost)]);
  facts.push(["outcome", outcome(row)]);
  return { title: `${row.stage}: ${row.role} request ${row.id}`, facts, candidate: row.candidate, item: row.item, call: row.id };
}

function outcome({ outcome: said, error, attempts }) {
  const words = { ok: "answered", cut: "cut off: out of tokens", cached: "answered by the cache" };
  const result = error ? `failed: ${error.slice(0, 160)}` : (words[said] ?? said);
  return attempts > 1 ? `${result}, sent ${attempts} times` : result;
}

function work(row, end) {
  const facts = [["item", row.item]];
  if (row.candidate) facts.push(["candidate", row.candidate]);
  const until = row.done ?? end;
  facts.push(["time", `${seconds(until - row.taken)}, from ${seconds(row.taken)} on`]);
  if (row.taken - row.sent >= 0.005) facts.push(["waited before", seconds(row.taken - row.sent)]);
  if (row.rollouts) facts.push(["rollouts", number(row.rollouts)]);
  if (row.tokens) facts.push(["tokens", number(row.tokens)]);
  if (row.cost) facts.push(["cost", dollars(row.cost)]);
  if (row.gap) facts.push(["staleness", `missed ${row.gap} ${row.gap === 1 ? "change" : "changes"}${row.judged ? `: ${row.judged}` : ""}`]);
  const state = { consumed: "done", working: "still at work", held: "left for a resume" }[row.state] ?? row.state;
  facts.push(["outcome", row.reason ? `${state}: ${row.reason}` : state]);
  return { title: `${row.stage}, worker ${(row.worker ?? 0) + 1}`, facts, candidate: row.candidate, item: row.item, call: null };
}

/** All of it in one sentence, for screen readers. */
export function sentence({ title, facts }) {
  return `${title}; ${facts.map(([name, value]) => `${name} ${value}`).join("; ")}.`;
}
