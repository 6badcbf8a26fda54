// The keys of the page, shown on top of it.

import { html, render } from "./vendor/htm-preact.standalone.umd.js";

const EVERYWHERE = [
  ["n, p", "go to the next or the previous view"],
  ["r", "look at the next run, where there are several"],
  ["t", "dark or light"],
  ["?", "show or hide the keys"],
  ["Tab", "go through links, buttons and lists"],
];

/** Show the keys of the page and of the view that is looked at; or hide them, if they are shown. */
export function toggleHelp(views, view) {
  const known = document.querySelector("dialog.help");
  if (known) {
    known.close();
    return;
  }
  const dialog = document.createElement("dialog");
  dialog.className = "help";
  dialog.setAttribute("aria-label", "keys");
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  const { title, keys = [] } = views[view];
  const titles = Object.values(views).map((each, place) => [String(place + 1), each.title]);
  const list = (rows) => html`<dl>${rows.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>`;
  render(
    html`<h2>Keys</h2>
      <div class="columns">
        <section><h3>Views</h3>${list(titles)}</section>
        <section><h3>Everywhere</h3>${list(EVERYWHERE)} ${keys.length > 0 && html`<h3>${title}</h3>${list(keys)}`}</section>
      </div>
      <form method="dialog"><button>Close</button></form>`,
    dialog,
  );
  document.body.append(dialog);
  dialog.showModal();
}
