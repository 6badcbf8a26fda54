// The shell: opens the data, shows the head of the page, and changes between views.

import { html, render } from "./vendor/htm-preact.standalone.umd.js";
import { score, seconds } from "./common.js";
import { Store, embedded, follow } from "./store.js";
import * as timeline from "./views/timeline.js";
import * as scores from "./views/score.js";
import * as queues from "./views/queues.js";
import * as lineage from "./views/lineage.js";
import * as candidate from "./views/candidate.js";
import * as programs from "./views/programs.js";
import * as heat from "./views/heat.js";
import * as staleness from "./views/staleness.js";
import * as log from "./views/log.js";

const VIEWS = { timeline, score: scores, queues, lineage, candidate, heat, programs, staleness, log };
const store = new Store();
// For those who look at the page with the tools of their browser: flowevolve.table("calls").rows()
globalThis.flowevolve = store;
const page = document.getElementById("page");
let shown = null;

function route() {
  const [, view, query] = /^#\/?([^?]*)\??(.*)$/.exec(location.hash) ?? [null, "", ""];
  const params = Object.fromEntries(new URLSearchParams(query));
  if (params.run && store.runs.has(params.run)) store.run = params.run;
  delete params.run;
  store.params = params;
  return view in VIEWS ? view : "timeline";
}

function showHead(view) {
  const about = store.about();
  const best = about.best == null ? "nothing is scored yet" : `${score(about.seed_score)} → ${score(about.best_score)}`;
  render(
    html`<div class="head">
        <h1>${about.name}</h1>
        <span class="state ${about.state.replace(" ", "-")}">${about.state}</span>
        ${store.runs.size > 1 &&
        html`<select aria-label="run" onChange=${(event) => {
          store.run = event.target.value;
          store.go(view);
        }}>
          ${[...store.runs.keys()].map((name) => html`<option value=${name} selected=${name === store.run}>${name}</option>`)}
        </select>`}
        <span class="fact">${about.algorithm} (${about.mode}) on ${about.task}${about.simulated ? ", simulated" : ""}</span>
        <span class="fact">best ${best}</span>
        <span class="fact">${seconds(about.seconds)}</span>
        ${store.notice && html`<span class="notice" role="status">${store.notice}</span>`}
        <button class="theme" onClick=${changeTheme} title="dark or light">◐</button>
      </div>
      <nav aria-label="views">
        ${Object.entries(VIEWS).map(
          ([name, { title }], place) =>
            html`<a href="#/${name}" class=${name === view ? "here" : ""} aria-current=${name === view ? "page" : null}
              title="key ${place + 1}" onClick=${(event) => {
                event.preventDefault();
                store.go(name);
              }}>${title}</a>`,
        )}
      </nav>`,
    page.querySelector("header"),
  );
}

function showFoot() {
  const said = store.leftOut();
  render(
    said.length ? html`<p>${said.join(" ")} <code>flowevolve watch</code> shows them all.</p>` : null,
    page.querySelector("footer"),
  );
}

function show(changed) {
  const view = route();
  const place = `${store.run}/${view}`;
  showHead(view);
  showFoot();
  document.title = `${VIEWS[view].title} – ${store.run} – flowevolve`;
  if (shown?.place === place) {
    shown.view.update(changed);
    return;
  }
  shown?.view.unmount();
  const main = page.querySelector("main");
  main.replaceChildren();
  main.className = `view-${view}`;
  shown = { place, view: VIEWS[view].mount(main, store) };
}

function changeTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  shown = (shown?.view.unmount(), null);
  show(new Set());
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(input|textarea|select)$/i.test(event.target.tagName)) return;
  const view = Object.keys(VIEWS)[Number(event.key) - 1];
  if (view) store.go(view);
}

async function open() {
  page.replaceChildren(...["header", "main", "footer"].map((name) => document.createElement(name)));
  for (const run of await embedded()) store.addRun(run);
  if (!store.runs.size) await follow(store);
  store.subscribe(show);
  addEventListener("hashchange", () => show(new Set()));
  addEventListener("keydown", onKey);
  show(new Set());
}

open().catch((error) => {
  const said = document.createElement("p");
  said.className = "empty";
  said.textContent = `This page can't be shown: ${error.message}`;
  page.replaceChildren(said);
  throw error;
});
