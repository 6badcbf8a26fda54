// The head of the page: which run it is, how it stands, and the way to the views.

import { html } from "./vendor/htm-preact.standalone.umd.js";
import { score, seconds } from "./common.js";
import { RunControls } from "./steer_head.js";
import { tame } from "./tame.js";

/** `views` are the modules by name; `act` has go(view), run(name), theme() and help(). */
export function Head({ store, views, view, act }) {
  const about = store.about();
  const names = [...store.runs.keys()];
  return html`<a class="skip" href="#main" onClick=${toMain}>Skip to the view</a>
    <div class="head">
      <h1>${tame(about.name)}</h1>
      ${names.length > 1 &&
      html`<label class="runs">run <select title="key r: the next run" onChange=${(event) => act.run(event.target.value)}>
        ${names.map((name) => html`<option value=${name} selected=${name === store.run}>${tame(name)}</option>`)}
      </select></label>`}
      <span role="status" class=${`state ${about.state.replace(" ", "-")}`}>${stateOf(about)}</span>
      <${RunControls} key=${store.run} store=${store} />
      ${store.notice && html`<span class="notice" role="status">${store.notice}</span>`}
      <span class="buttons">
        <button onClick=${act.theme} title="dark or light: key t" aria-label="dark or light">◐</button>
        <button onClick=${act.help} title="keys: key ?" aria-label="keys">?</button>
      </span>
    </div>
    ${about.error && html`<p class="notice error">${tame(about.error)}</p>`}
    <dl class="facts">${facts(store, about).map(([name, said]) => html`<div><dt>${name}</dt> <dd>${said}</dd></div>`)}</dl>
    <nav aria-label="views">
      ${Object.entries(views).map(
        ([name, { title }], place) =>
          html`<a href=${`#/${name}`} class=${name === view ? "here" : ""} aria-current=${name === view ? "page" : null}
            title=${`key ${place + 1}`} onClick=${(event) => {
              event.preventDefault();
              act.go(name);
            }}>${title}</a>`,
      )}
    </nav>`;
}

function toMain(event) {
  event.preventDefault();
  document.querySelector("main").focus();
}

function stateOf({ state, stop_reason: reason, paused }) {
  if (paused && state === "running") return "paused";
  if (reason == null || reason === state) return state;
  return `${state}: ${tame({ seconds: "its time was over", exhausted: "nothing was left to do" }[reason] ?? reason)}`;
}

/** What is known of the run in a few words each; nothing of what it does not have. */
function facts(store, about) {
  const { best, best_score: reached, seed_score: seed, low, high } = about;
  const interval = low == null || low === high ? "" : ` (95 %: ${score(low)}–${score(high)})`;
  const heldOut = heldOutOf(store, best);
  return [
    ["algorithm", `${tame(about.algorithm)}, ${about.mode}`],
    ["task", `${tame(about.task)}${about.simulated ? ", simulated model" : ""}`],
    ["best score", best == null ? "nothing is scored yet" : `${seed == null ? "" : `${score(seed)} → `}${score(reached)}${interval}`],
    ["held-out", heldOut],
    ["used", about.used],
    ["time", seconds(about.seconds)],
    ["branched off", about.branched_from && tame(about.branched_from)],
    ["to go on", goingOn(about)],
  ].filter(([, said]) => said);
}

/** How to go on with a run that has ended, if its budget or somebody ended it. */
function goingOn({ state, stop_reason: reason, directory, budget }) {
  if (state === "interrupted" || state === "failed") return html`<code>flowevolve resume ${tame(directory)}</code>`;
  if (state !== "finished" || !(reason in budget)) return null;
  return html`<code>flowevolve resume ${tame(directory)} --set budget.${reason === "seconds" ? "minutes" : reason}=…</code>`;
}

/** The means on the test examples of the seed and of the best candidate. */
function heldOutOf(store, best) {
  const candidates = store.table("candidates");
  const place = best == null ? -1 : candidates.find(best);
  const of = (row) => (row < 0 ? null : candidates.column("held_out")[row]);
  if (of(place) == null) return null;
  const seed = candidates.column("kind").indexOf("seed");
  return of(seed) == null || seed === place ? score(of(place)) : `${score(of(seed))} → ${score(of(place))}`;
}
