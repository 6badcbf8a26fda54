// Programs: the cells of an archive or the islands, and of a program its source, its changes and what its run said.

import { html, render, Component } from "../vendor/htm-preact.standalone.umd.js";
import { CandidateTexts, isCode } from "../candidate_texts.js";
import { number, score, seconds } from "../common.js";
import { CandidateLink, Status, capital, describe } from "../texts.js";

export const title = "Programs";

const FIRST_TILES = 120;
const TABLES = ["candidates", "cells", "runs", "components"];

export function mount(element, store) {
  let seen = "";
  function update(changed) {
    const now = [store.params.candidate, ...TABLES.map((name) => store.table(name).version)].join();
    if (changed?.size && now === seen) return;
    seen = now;
    render(html`<${Programs} store=${store} />`, element);
  }

  update();
  return {
    update,
    unmount() {
      render(null, element);
    },
  };
}

function Programs({ store }) {
  const archives = readArchives(store);
  if (!archives.length) {
    const why = isCode(store)
      ? "No program has been confirmed yet."
      : `This run evolves a ${store.about().kind} with ${store.about().algorithm}, which keeps no archive and no islands: the lineage has all that it tried.`;
    return html`<p class="empty">${why}</p>`;
  }
  const tiles = archives.flatMap((archive) => archive.tiles);
  const best = tiles.reduce((most, tile) => (tile.score ?? -Infinity) > (most?.score ?? -Infinity) ? tile : most, null);
  const chosen = [store.params.candidate, store.about().best, best?.candidate].find((id) => id != null && store.table("candidates").find(id) >= 0) ?? null;
  const known = tiles.filter((tile) => tile.works && tile.score != null).map((tile) => tile.score);
  const range = known.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
  return html`<div class="archives">
      <p class="faint">${isCode(store) ? "" : "Each place holds a candidate. "}The stronger its colour, the higher the rank of its score, of ${score(known.length ? range[0] : null)} to ${score(known.length ? range[1] : null)} <span class="scale" aria-hidden="true"></span>. Hatched: it does not work. ★ is the best of the run.</p>
      ${archives.map((archive) => html`<${Archive} key=${archive.name} store=${store} archive=${archive} ranks=${ranksOf(known)} chosen=${chosen} />`)}
    </div>
    ${chosen !== null && html`<${Program} store=${store} id=${chosen} />`}`;
}

/** The archives or islands: {name, note, tiles: [{candidate, label, score, seconds, works}]}. */
function readArchives(store) {
  const candidates = store.table("candidates");
  const tile = (candidate, label, scored, at) => ({
    candidate,
    label,
    score: scored,
    seconds: at,
    works: candidates.column("failure")[candidates.find(candidate)] === null,
  });
  const cells = store.table("cells");
  const archives = new Map();
  const main = componentNames(store, store.about().best ?? candidates.column("id")[0]);
  for (const row of cells.rows()) {
    if (candidates.find(row.candidate) < 0 || componentNames(store, row.candidate) !== main) continue;
    if (!archives.has(row.archive)) archives.set(row.archive, []);
    const onIsland = row.place.length === 0;
    archives.get(row.archive).push({ ...tile(row.candidate, onIsland ? row.candidate : `cell ${row.cell}`, row.score, row.seconds), cell: onIsland ? null : Number(row.cell) });
  }
  if (!archives.size && isCode(store)) {
    const living = candidates.rows().filter((row) => row.status === "confirmed" || row.status === "speculative");
    if (living.length) archives.set("confirmed programs", living.map((row) => tile(row.id, row.id, row.score, row.created)));
  }
  return [...archives]
    .sort(([one], [other]) => one.localeCompare(other, "en", { numeric: true }))
    .map(([name, tiles]) => ({ name: name === "map" ? "archive" : name, tiles: tiles.sort((a, b) => (a.cell ?? 0) - (b.cell ?? 0) || a.seconds - b.seconds) }));
}

/** The names of a candidate's components, which tell a program from the instructions that evolve beside it. */
function componentNames(store, id) {
  const table = store.table("components");
  if (componentNames.version !== table.version || componentNames.table !== table) {
    const names = new Map();
    const [owners, components] = [table.column("candidate"), table.column("component")];
    for (let place = 0; place < table.length; place++) names.set(owners[place], `${names.get(owners[place]) ?? ""}/${components[place]}`);
    Object.assign(componentNames, { version: table.version, table, names });
  }
  return componentNames.names.get(id);
}

function ranksOf(scores) {
  const sorted = [...new Set(scores)].sort((a, b) => a - b);
  return new Map(sorted.map((value, place) => [value, sorted.length === 1 ? 1 : place / (sorted.length - 1)]));
}

class Archive extends Component {
  constructor(props) {
    super(props);
    this.state = { all: false };
  }

  render({ store, archive, ranks, chosen }, { all }) {
    const { tiles } = archive;
    const works = tiles.filter((tile) => tile.works && tile.score != null);
    const best = works.reduce((most, tile) => Math.max(most, tile.score), -Infinity);
    const noun = tiles[0].cell != null ? "cell" : isCode(store) ? "program" : "candidate";
    const said = `${number(tiles.length)} ${noun}${tiles.length === 1 ? "" : "s"}${works.length ? `, best ${score(best)}` : ""}${works.length < tiles.length ? `, ${tiles.length - works.length} not working` : ""}`;
    return html`<section aria-label=${archive.name}>
      <h2>${capital(archive.name)} <span class="faint">${said}</span></h2>
      <div class="tiles">${tiles.slice(0, all ? undefined : FIRST_TILES).map((tile) => html`<${Tile} store=${store} tile=${tile} share=${ranks.get(tile.score) ?? 0} chosen=${tile.candidate === chosen} />`)}</div>
      ${tiles.length > FIRST_TILES && html`<button onClick=${() => this.setState({ all: !all })}>${all ? "fewer" : `all ${number(tiles.length)}`}</button>`}
    </section>`;
  }
}

function Tile({ store, tile, share, chosen }) {
  const best = tile.candidate === store.about().best;
  const names = ["tile", chosen && "chosen", !tile.works && "broken"].filter(Boolean).join(" ");
  return html`<button class=${names} aria-pressed=${chosen ? "true" : "false"} style=${{ "--share": `${Math.round(8 + 52 * share)}%` }}
    title=${`${tile.candidate}, since ${seconds(tile.seconds)}`} onClick=${(event) => choose(store, tile.candidate, event.currentTarget)}>
      <span>${best ? "★ " : ""}${tile.label}</span><b>${tile.works ? score(tile.score) : "fails"}</b>
    </button>`;
}

/** Where there is one column, what is chosen is below all places: go there. */
function choose(store, candidate, tile) {
  store.go("programs", { candidate });
  const program = tile.closest("main").querySelector(".program");
  if (program.offsetTop > tile.offsetTop) program.scrollIntoView();
}

function Program({ store, id }) {
  const row = store.table("candidates").get(id);
  const metrics = Object.entries(row.metrics).filter(([, value]) => typeof value === "number");
  return html`<section class="program" aria-label=${`program ${id}`}>
    <h2>${id} <${Status} row=${row} /></h2>
    <p class="facts">${capital(describe(row))}, proposed at ${seconds(row.created)}${row.score == null ? "" : `; score ${score(row.score)}`}.
      ${" "}<${CandidateLink} store=${store} id=${id} view="candidate" label="all about it" /> <${CandidateLink} store=${store} id=${id} label="in the lineage" /></p>
    ${row.idea && html`<p class="facts">${row.name ? `${row.name}: ` : ""}${row.idea}</p>`}
    ${metrics.length > 0 && html`<p class="facts">${metrics.map(([name, value]) => `${name} ${Number(value.toPrecision(6))}`).join(" · ")}</p>`}
    <h3>What its run said</h3>
    ${row.failure && html`<pre class="plain code bad" tabindex="0" aria-label="failure">${row.failure}</pre>`}
    ${row.feedback && row.feedback !== row.failure && html`<pre class="plain code" tabindex="0" aria-label="feedback">${row.feedback}</pre>`}
    ${!row.failure && !row.feedback && html`<p class="faint">Nothing was recorded.</p>`}
    <${CandidateTexts} store=${store} id=${id} first="changes" />
  </section>`;
}
