// Steering a run from its page: whether one can, as whom, and what the run and its journal say to what is asked for.

import { useState } from "./vendor/htm-preact.standalone.umd.js";

const NAME = "flowevolve.by";
/** After so long an act that was done counts as done, though the journal's row has not come. */
const JOURNAL_MILLISECONDS = 5000;

/** Whether the page is one from which runs may be steered, or says why not: a report is none. */
export function hasControls(store) {
  return store.steering !== null;
}

/** Why the run that is looked at can't be steered from this page, in sentences; null if it can. */
export function whyNot(store) {
  if (!store.live) return "The server of this page has ended.";
  const { state } = store.about();
  if (state !== "running") return `The run is ${state === "finished" ? "over" : state}. A new run can be branched off its candidates.`;
  return store.steering.onlyShown[store.run] ?? null;
}

/** As whom one acts: the name that was typed here before, or that of whoever started the page. */
export function nameOf(store) {
  try {
    return localStorage.getItem(NAME) || store.steering.by;
  } catch {
    return store.steering.by;
  }
}

export function setName(name) {
  try {
    localStorage.setItem(NAME, name.trim());
  } catch {
    // A browser that keeps nothing asks again.
  }
}

/**
 * Have the run do an act; returns why it refuses, or null if it was done. From now on, until the journal says so, the
 * act is one that `isAsked` knows of.
 */
export async function ask(store, act, run = store.run) {
  const asked = { run, act, after: lastAct(store, run) };
  store.asked.add(asked);
  store.tell();
  const refused = await answer(run, { act, by: nameOf(store) });
  const forget = () => {
    store.asked.delete(asked);
    store.tell();
  };
  if (refused === null) setTimeout(forget, JOURNAL_MILLISECONDS);
  else forget();
  return refused;
}

async function answer(run, said) {
  const headers = { "Content-Type": "application/json" };
  try {
    const response = await fetch(`api/runs/${encodeURIComponent(run)}/acts`, { method: "POST", headers, body: JSON.stringify(said) });
    if (response.ok || response.status === 409) return (await response.json()).refused;
    return await response.text();
  } catch {
    return "The server of this page can't be reached.";
  }
}

/** Whether an act of this name was asked for, about a candidate if one is named, and the journal does not have it yet. */
export function isAsked(store, name, candidate = null) {
  for (const asked of store.asked) {
    if (asked.run !== store.run || asked.act.act !== name || (candidate !== null && asked.act.candidate !== candidate)) continue;
    if (lastAct(store, asked.run, name) <= asked.after) return true;
    store.asked.delete(asked);
  }
  return false;
}

/** The number of the last event that is an act, of this name if one is given; -1 if there is none. */
function lastAct(store, run, name = null) {
  const acts = store.table("acts", run);
  const [numbers, names] = [acts.column("seq"), acts.column("act")];
  for (let place = acts.length - 1; place >= 0; place--) if (name === null || names[place] === name) return numbers[place];
  return -1;
}

/** Acts of this name that were done about {candidate} or {example}, with its id, as objects, oldest first. */
export function actsAbout(store, name, { candidate, example }) {
  const rows = store.table("acts").rows();
  const about = candidate ?? example;
  return rows.filter((row) => row.act === name && row.about === about && row.is_example === (example != null) && row.refused === null);
}

const SAID = {
  pause: () => "paused it",
  unpause: () => "had it go on",
  stop: () => "stopped it",
  raise_budget: () => "raised the budget",
  inject: (about) => (about === null ? "put a candidate into the run" : `edited ${about} and put the copy into the run`),
  comment: (about) => `said of ${about}`,
  veto: (about) => `vetoed ${about}`,
  approve: (about) => `approved ${about}`,
};

/** What somebody did, in words: a row of acts. */
export function actSaid({ act, about }) {
  return SAID[act]?.(about) ?? act;
}

/**
 * For a control: `send(act)` asks for an act and returns whether it was done, `busy` is true meanwhile, and `refused` is
 * the sentence that says why the last one was not done, or null.
 */
export function useActs(store) {
  const [state, setState] = useState({ busy: false, refused: null });
  const send = async (act) => {
    setState({ busy: true, refused: null });
    const refused = await ask(store, act);
    setState({ busy: false, refused });
    return refused === null;
  };
  const say = (refused) => setState({ busy: false, refused });
  return { ...state, send, say };
}
