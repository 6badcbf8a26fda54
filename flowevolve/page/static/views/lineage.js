// Lineage: what was made of what, and where each sentence of a text came from.

import { html, render, Component } from "../vendor/htm-preact.standalone.umd.js";
import { colour, score } from "../common.js";
import { Drawing, KINDS, shape } from "../drawing.js";
import { choose, layOut, readLineage } from "../graph.js";
import { CandidateTexts } from "../candidate_texts.js";
import { CandidateLink, Status, capital, describe, joinedWith, statusOf } from "../texts.js";

export const title = "Lineage";

const KEYS = "arrow keys: to parents, children and neighbours; Enter: its page; Home: the best; + and −: zoom";

export function mount(element, store) {
  let page = null;
  let seen = "";
  const draw = () => render(html`<${Lineage} store=${store} ref=${(found) => (page = found)} />`, element);
  draw();
  return {
    update(changed) {
      const now = [store.params.candidate, ...["candidates", "runs"].map((name) => store.table(name).version)].join();
      if (changed.size && now === seen) return;
      seen = now;
      page?.refresh();
      draw();
    },
    unmount() {
      render(null, element);
    },
  };
}

class Lineage extends Component {
  constructor(props) {
    super(props);
    this.opened = new Set();
    /** The candidates through which the chosen sentence came. */
    this.path = [];
    this.state = { all: false, hover: null, at: [0, 0] };
    this.read();
  }

  read() {
    this.lineage = readLineage(this.props.store);
    const wanted = this.props.store.params.candidate;
    this.chosen = this.lineage.nodes.has(wanted) ? wanted : this.lineage.best ?? [...this.lineage.nodes.keys()][0] ?? null;
  }

  componentDidMount() {
    if (!this.canvas) return;
    this.drawing = new Drawing(
      this.canvas,
      (id) => this.props.store.go("lineage", { candidate: id }),
      (id) => this.unfold(id),
      (hover, at) => (hover?.id !== this.state.hover?.id || hover) && this.setState({ hover, at: at ?? this.state.at }),
    );
    this.arrange();
    this.drawing.begin();
  }

  componentWillUnmount() {
    this.drawing?.end();
  }

  refresh() {
    const before = this.chosen;
    this.read();
    if (this.chosen !== before) this.path = [];
    if (!this.drawing) {
      this.forceUpdate(() => this.canvas && this.componentDidMount());
      return;
    }
    this.arrange();
    if (this.chosen !== before) {
      this.drawing.follow([]);
      this.drawing.reveal(this.chosen);
    }
    this.forceUpdate();
  }

  arrange() {
    const { shown, hidden } = choose(this.lineage, this.state.all, this.opened, [this.chosen, ...this.path]);
    this.drawing.chosen = this.chosen;
    this.drawing.show(layOut(shown), hidden, this.lineage.best);
  }

  follow(path) {
    this.path = path;
    if (path.some((id) => !this.drawing.layout.places.has(id))) this.arrange();
    this.drawing.follow(path);
  }

  showAll(all) {
    this.opened.clear();
    this.setState({ all }, () => {
      this.arrange();
      this.drawing.reveal(this.chosen);
    });
  }

  unfold(id) {
    this.opened.add(id);
    this.arrange();
  }

  key(event) {
    const { store } = this.props;
    if (event.key.startsWith("Arrow")) {
      const next = this.drawing.beside(this.chosen, event.key);
      if (next !== null) store.go("lineage", { candidate: next });
    } else if (event.key === "Enter") store.go("candidate", { candidate: this.chosen });
    else if (event.key === "Home") store.go("lineage", { candidate: this.lineage.best });
    else if (event.key === "+") this.drawing.zoomBy(1.25);
    else if (event.key === "-") this.drawing.zoomBy(0.8);
    else return;
    event.preventDefault();
  }

  render({ store }, { all, hover, at }) {
    const { nodes } = this.lineage;
    if (!nodes.size) return html`<p class="empty">No candidate was proposed yet.</p>`;
    const kinds = [...new Set([...nodes.values()].map((node) => node.kind))];
    return html`<div class="graph">
        <div class="tools">
          <label><input type="checkbox" checked=${all} onChange=${(event) => this.showAll(event.target.checked)} /> show what came to nothing</label>
          <span class="buttons">
            <button aria-label="zoom in" onClick=${() => this.drawing.zoomBy(1.25)}>+</button>
            <button aria-label="zoom out" onClick=${() => this.drawing.zoomBy(0.8)}>−</button>
            <button onClick=${() => this.drawing.fit()}>all</button>
            <button onClick=${() => store.go("lineage", { candidate: this.lineage.best })} disabled=${this.lineage.best === null}>best</button>
          </span>
          <label class="find">candidate <input type="text" size="8" list="lineage-candidates" value=${this.chosen} onChange=${(event) => nodes.has(event.target.value) && store.go("lineage", { candidate: event.target.value })} /></label>
          <datalist id="lineage-candidates">${[...nodes.keys()].slice(-500).map((id) => html`<option value=${id} />`)}</datalist>
        </div>
        <div class="field">
          <canvas tabindex="0" role="application" ref=${(canvas) => (this.canvas = canvas)} onKeyDown=${(event) => this.key(event)}
            aria-label=${`the lineage: ${nodes.size} candidates; ${KEYS}`}></canvas>
          ${hover && html`<${Tip} node=${hover} at=${at} width=${this.canvas?.clientWidth} />`}
        </div>
        <${Legend} kinds=${kinds} />
        <p class="hidden" aria-live="polite">${this.chosen === null ? "" : saidOf(nodes.get(this.chosen))}</p>
      </div>
      <${Chosen} store=${store} id=${this.chosen} onPath=${(path) => this.follow(path)} />`;
  }
}

function saidOf(node) {
  const scored = node.score == null ? "" : `, score ${score(node.score)}`;
  return `${node.id}: ${node.kind}, ${statusOf(node)}${scored}`;
}

function Tip({ node, at, width }) {
  const left = Math.min(at[0] + 12, Math.max(0, (width ?? 400) - 190));
  return html`<div class="tip panel" aria-hidden="true" style=${{ left: `${left}px`, top: `${at[1] + 14}px` }}>${saidOf(node)}</div>`;
}

function Legend({ kinds }) {
  return html`<ul class="legend" aria-label="legend">
    ${kinds.map((kind) => html`<li><${Swatch} kind=${kind} filled=${true} />${kind}</li>`)}
    <li><${Swatch} kind="edit" filled=${false} />rejected or not judged</li>
    <li><span class="stroke winning"></span>way to the best ★</li>
    <li><span class="stroke side"></span>merged in</li>
    <li><span class="count">+3</span>folded; a click shows them</li>
  </ul>`;
}

class Swatch extends Component {
  componentDidMount() {
    const ratio = devicePixelRatio || 1;
    const canvas = this.base;
    canvas.width = canvas.height = 18 * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    shape(context, this.props.kind, 9, 9, 5.5);
    context.fillStyle = context.strokeStyle = colour(KINDS[this.props.kind] ?? "blue");
    context.lineWidth = 1.6;
    if (this.props.filled) context.fill();
    context.stroke();
  }

  render() {
    return html`<canvas class="swatch" aria-hidden="true"></canvas>`;
  }
}

function Chosen({ store, id, onPath }) {
  if (id === null) return null;
  const row = store.table("candidates").get(id);
  const made = [...row.parents, ...row.edits];
  const after = made.length ? [] : row.sources.slice(0, 1);
  return html`<section class="chosen" aria-label=${`candidate ${id}`}>
    <h2>${id} <${Status} row=${row} /></h2>
    <p class="facts">${capital(describe(row))}${row.score == null ? "" : `; score ${score(row.score)} on ${row.examples === 1 ? "one example" : `${row.examples} examples`}`}${row.reason ? `; ${row.reason}` : ""}.
      ${" "}<${CandidateLink} store=${store} id=${id} view="candidate" label="all about it" /></p>
    ${row.idea && html`<p class="facts">${row.name ? `${row.name}: ` : ""}${row.idea}</p>`}
    ${made.length > 0 && html`<p class="facts">Made from ${joinedWith(made.map((name) => html`<${CandidateLink} store=${store} id=${name} />`), " ")}</p>`}
    ${after.length > 0 && html`<p class="facts">After <${CandidateLink} store=${store} id=${after[0]} /></p>`}
    <${CandidateTexts} store=${store} id=${id} onPath=${onPath} />
  </section>`;
}
