// The shell: opens the data, shows the head of the page, and changes between views.

import { html, render } from "./vendor/htm-preact.standalone.umd.js";
import { Head } from "./head.js";
import { toggleHelp } from "./help.js";
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
  const act = { go: (name) => store.go(name), run: (name) => lookAt(name, view), theme: changeTheme, help: () => toggleHelp(VIEWS, view) };
  const header = page.querySelector("header");
  render(html`<${Head} store=${store} views=${VIEWS} view=${view} act=${act} />`, header);
}

/** Look at another run, in the same view. */
function lookAt(name, view) {
  store.run = name;
  store.go(view);
}

function showFoot() {
  const said = store.leftOut();
  render(said.length ? html`<p>${said.join(" ")}</p>` : null, page.querySelector("footer"));
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
  main.tabIndex = -1;
  shown = { place, view: VIEWS[view].mount(main, store) };
  scrollTo(0, 0);
  page.querySelector("nav .here").scrollIntoView({ block: "nearest", inline: "nearest" });
}

function changeTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  setTheme(dark ? "light" : "dark");
}

/** Draw all in a theme; canvases have its colours only when their view is mounted anew. */
function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  shown = (shown?.view.unmount(), null);
  show(new Set());
}

/** Paper is white. */
function printLight() {
  const before = document.documentElement.dataset.theme;
  setTheme("light");
  addEventListener("afterprint", () => setTheme(before), { once: true });
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(input|textarea|select)$/i.test(event.target.tagName)) return;
  const names = Object.keys(VIEWS);
  const view = route();
  const beside = (list, name, by) => list[(list.indexOf(name) + by + list.length) % list.length];
  const acts = {
    n: () => store.go(beside(names, view, 1)),
    p: () => store.go(beside(names, view, -1)),
    r: () => store.runs.size > 1 && lookAt(beside([...store.runs.keys()], store.run, 1), view),
    t: changeTheme,
    "?": () => toggleHelp(VIEWS, view),
  };
  if (document.querySelector("dialog[open]") && event.key !== "?") return;
  if (names[Number(event.key) - 1]) store.go(names[Number(event.key) - 1]);
  else acts[event.key]?.();
}

async function open() {
  page.replaceChildren(...["header", "main", "footer"].map((name) => document.createElement(name)));
  for (const run of await embedded()) store.addRun(run);
  if (!store.runs.size) await follow(store);
  store.subscribe(show);
  addEventListener("hashchange", () => show(new Set()));
  addEventListener("keydown", onKey);
  addEventListener("beforeprint", printLight);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(document.documentElement.dataset.theme));
  show(new Set());
}

open().catch((error) => {
  const said = document.createElement("p");
  said.className = "empty";
  said.textContent = `This page can't be shown: ${error.message}`;
  page.replaceChildren(said);
  throw error;
});
