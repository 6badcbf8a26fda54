// Texts of candidates: links to candidates, differences between two texts, and where each sentence came from.

import { html, Component } from "./vendor/htm-preact.standalone.umd.js";
import { diffLines, diffWordsWithSpace } from "./vendor/diff.min.js";
import { CallDetails } from "./calls.js";
import { score, seconds } from "./common.js";

const TINTS = 7;
/** How many lines that stay the same are shown before and behind a change. */
const AROUND = 2;

/** A link to a candidate: in the lineage, or to the view that is named. */
export function CandidateLink({ store, id, view = "lineage", label }) {
  const go = (event) => {
    event.preventDefault();
    store.go(view, { candidate: id });
  };
  return html`<a class="chip" href=${`#/${view}?candidate=${encodeURIComponent(id)}`} onClick=${go}>${label ?? id}</a>`;
}

/** The state of a candidate in a word: that of an edit which lives on in another candidate is not that it was rejected. */
export function statusOf({ status, reason, vetoed }) {
  if (vetoed) return "vetoed";
  if (status === "rejected" && /^merged into /.test(reason)) return "merged";
  if (status === "rejected" && /^(?:replaced by its repair|rebased as )/.test(reason)) return "made again";
  return status;
}

export function Status({ row }) {
  const said = statusOf(row);
  const tone = { merged: "", "made again": "", vetoed: "revoked" }[said] ?? row.status;
  return html`<span class=${`status ${tone}`}>${said}</span>`;
}

export function capital(text) {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Names in a row, with something between them. */
export function joinedWith(parts, between) {
  return parts.flatMap((part, place) => (place ? [between, part] : [part]));
}

/** The difference between two texts: what was taken out and what was put in. Programs are compared by lines. */
export function Difference({ before, after, byLine }) {
  if (before === after) return html`<p class="empty">This text is the same.</p>`;
  const parts = (byLine ? diffLines : diffWordsWithSpace)(before, after);
  return html`<pre class=${byLine ? "difference code" : "difference"}>${parts.map((part, place) => {
    if (part.removed) return html`<del><span class="hidden">taken out: </span>${part.value}</del>`;
    if (part.added) return html`<ins><span class="hidden">put in: </span>${part.value}</ins>`;
    return html`<${Same} text=${part.value} first=${place === 0} last=${place === parts.length - 1} />`;
  })}</pre>`;
}

function Same({ text, first, last }) {
  const lines = text.split("\n");
  const [head, tail] = [first ? 0 : AROUND, last ? 0 : AROUND + 1];
  const folded = lines.slice(head, lines.length - tail);
  if (folded.length < 5) return html`<span>${text}</span>`;
  return html`<span>${lines.slice(0, head).join("\n")}${head ? "\n" : ""}</span>
    <details class="same"><summary>${folded.length} lines stay the same</summary><span>${folded.join("\n")}</span></details>
    <span>${tail ? lines.slice(-tail).join("\n") : ""}</span>`;
}

/** A text with the origins of its sentences: `rows` are those of the table blame for it. */
export class Blame extends Component {
  constructor(props) {
    super(props);
    this.state = { chosen: null, reached: 0 };
  }

  choose(place) {
    this.setState({ chosen: place, reached: place ?? this.state.reached });
    this.props.onPath?.(place === null ? [] : this.props.rows[place].path);
  }

  key(event, place) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter" || event.key === " ") this.choose(this.state.chosen === place ? null : place);
    else if (event.key === "Escape") this.choose(null);
    else if (step) {
      const next = Math.min(this.props.rows.length - 1, Math.max(0, place + step));
      this.setState({ reached: next });
      event.currentTarget.closest(".blame").querySelector(`[data-place="${next}"]`).focus();
    } else return;
    event.preventDefault();
  }

  render({ store, text, rows, code }, { chosen, reached }) {
    const tints = tintsOf(rows);
    return html`<div class=${code ? "blame code" : "blame"} role="group" aria-label="the text, sentence by sentence; arrow keys move, Enter tells where a sentence came from">
      ${linesOf(text, rows).map(
        ({ pieces, origins, ends }) => html`<div class="line">
            <span class="origins">${origins.map((id) => html`<span class=${`origin ${tints.get(id)}`} title=${`came in with ${id}`}>${id}</span>`)}</span>
            <span class="words">${pieces.map(({ said, place }) =>
              place === null
                ? said
                : html`<span role="button" tabindex=${place === reached ? 0 : -1} data-place=${place}
                    class=${`sentence ${tints.get(rows[place].origin)} ${place === chosen ? "chosen" : ""}`}
                    aria-expanded=${place === chosen ? "true" : "false"} aria-description=${`came in with ${rows[place].origin}`}
                    onClick=${() => this.choose(place === chosen ? null : place)} onKeyDown=${(event) => this.key(event, place)}>${said}</span>`,
            )}</span>
          </div>
          ${chosen !== null && ends.includes(chosen) && html`<${OriginCard} store=${store} row=${rows[chosen]} said=${text.slice(rows[chosen].start, rows[chosen].end)} />`}`,
      )}
    </div>`;
  }
}

/** Where one sentence came from: candidate, request and examples. */
function OriginCard({ store, row, said }) {
  const origin = store.table("candidates").get(row.origin);
  const reworded = row.how === "reworded" ? `, and was reworded since (${Math.round(100 * row.similarity)} % alike)` : "";
  return html`<div class="panel card" role="status">
    <p>Came in with <${CandidateLink} store=${store} id=${row.origin} />${origin && `, ${describe(origin)} at ${seconds(origin.created)}`}${reworded}.</p>
    ${row.path.length > 1 &&
    html`<p class="path">Its way here: ${joinedWith(shortened(row.path).map((id) => (id === null ? "…" : html`<${CandidateLink} store=${store} id=${id} />`)), " → ")}</p>`}
    ${row.examples.length > 0 &&
    html`<p>Learnt from ${row.examples.length === 1 ? "the example" : "the examples"}${" "}
      ${joinedWith(row.examples.map((example) => html`<${ExampleLink} store=${store} candidate=${row.origin} example=${example} />`), " ")}</p>`}
    ${row.calls.length > 0
      ? html`<div>Written by ${row.calls.map((id) => html`<${CallDetails} store=${store} id=${id} mark=${said} />`)}</div>`
      : html`<p class="faint">${row.how === "seed" ? "It stood in the text that the run began with." : "No request wrote it: it was put together without a model."}</p>`}
  </div>`;
}

/** A link to an example in the view of examples, with what the candidate scored on it in its screening. */
function ExampleLink({ store, candidate, example }) {
  const screened = store.table("scores").get(candidate, "screen", example);
  const go = (event) => {
    event.preventDefault();
    store.go("heat", { candidate, example });
  };
  return html`<a class="chip" href=${`#/heat?example=${encodeURIComponent(example)}`} onClick=${go}
    title=${screened ? "what the candidate scored on it when it was screened" : ""}>${example}${screened ? ` (${score(screened.value)})` : ""}</a>`;
}

/** A candidate in words, such as "an edit of c3 (reflect)". */
export function describe(row) {
  const article = /^[aeio]/.test(row.kind) ? "an" : "a";
  if (row.kind === "seed") return "the seed";
  if (row.kind === "new") return `a text written anew (${row.operator})`;
  const parents = row.parents.length ? ` of ${row.parents.join(" and ")}` : "";
  if (row.kind === "group") return row.edits.length ? `a group of ${row.edits.length} edits on ${row.parents[0]}` : `a merge of edits${parents}`;
  return `${article} ${row.kind}${parents} (${row.operator})`;
}

function shortened(path) {
  return path.length > 9 ? [...path.slice(0, 4), null, ...path.slice(-4)] : path;
}

/** A class for each origin; what the run began with has none. */
function tintsOf(rows) {
  const tints = new Map();
  let next = 0;
  for (const row of rows) {
    if (!tints.has(row.origin)) tints.set(row.origin, row.how === "seed" ? "tint-none" : `tint-${next++ % TINTS}`);
  }
  return tints;
}

/** The lines of a text, each in pieces: a sentence by its place in `rows`, or what is between two. */
function linesOf(text, rows) {
  const lines = [];
  let [start, next] = [0, 0];
  for (const line of text.split("\n")) {
    const end = start + line.length;
    const [pieces, origins, ends] = [[], [], []];
    let at = start;
    while (next < rows.length && rows[next].start < end) {
      const row = rows[next];
      if (row.start > at) pieces.push({ said: text.slice(at, row.start), place: null });
      const from = Math.max(row.start, start);
      at = Math.min(row.end, end);
      pieces.push({ said: text.slice(from, at), place: next });
      if (row.start >= start && !origins.includes(row.origin)) origins.push(row.origin);
      if (row.end > end) break;
      ends.push(next);
      next += 1;
    }
    if (at < end) pieces.push({ said: text.slice(at, end), place: null });
    lines.push({ pieces, origins, ends });
    start = end + 1;
  }
  return lines;
}
