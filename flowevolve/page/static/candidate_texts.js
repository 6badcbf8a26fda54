// The texts of a candidate: where their sentences came from, what has changed, and as they are.

import { html, Component } from "./vendor/htm-preact.standalone.umd.js";
import { Blame, Difference } from "./texts.js";

const TABS = [["blame", "Where it came from"], ["changes", "Changes"], ["text", "Text"]];
const TOO_LONG = "The report has left this text out, being too long; flowevolve watch has it.";

/** The texts of a candidate by component. */
export function componentsOf(store, id) {
  const table = store.table("components");
  const [owners, names, texts] = ["candidate", "component", "text"].map((name) => table.column(name));
  const found = new Map();
  for (let place = 0; place < table.length; place++) if (owners[place] === id) found.set(names[place], texts[place]);
  return found;
}

/** Whether the run evolves programs, which are compared line by line. */
export function isCode(store) {
  return ["program", "harness"].includes(store.about().kind);
}

/** The texts of the candidate `id`. `onPath` is told the candidates through which a chosen sentence came. */
export class CandidateTexts extends Component {
  constructor(props) {
    super(props);
    /** `tab` is null until one is chosen. */
    this.state = { tab: null, blame: [], of: null, against: null };
  }

  componentDidMount() {
    this.load();
  }

  componentDidUpdate(before) {
    if (before.id !== this.props.id) this.load();
  }

  async load() {
    const { id, store } = this.props;
    const blame = await store.blame(id).catch(() => []);
    if (id === this.props.id) this.setState({ blame, of: id, against: null });
  }

  turn(tab) {
    this.setState({ tab });
    this.props.onPath?.([]);
  }

  key(event, place) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (place + step + TABS.length) % TABS.length;
    this.turn(TABS[next][0]);
    event.currentTarget.parentElement.children[next].focus();
    event.preventDefault();
  }

  render({ store, id, onPath, first = "blame" }, { tab, blame, of, against }) {
    const sources = sourcesOf(store, id);
    const ready = of === id;
    const shown = tab ?? (first === "blame" && ready && !blame.length && sources.length ? "changes" : first);
    return html`<div class="tabs" role="tablist" aria-label="the texts">
        ${TABS.map(
          ([name, label], place) => html`<button role="tab" aria-selected=${shown === name ? "true" : "false"} tabindex=${shown === name ? 0 : -1}
            class=${shown === name ? "here" : ""} onClick=${() => this.turn(name)} onKeyDown=${(event) => this.key(event, place)}>${label}</button>`,
        )}
      </div>
      ${!ready
        ? html`<p class="empty">Following its sentences …</p>`
        : shown === "blame"
          ? html`<${Origins} store=${store} id=${id} blame=${blame} onPath=${onPath} />`
          : shown === "text"
            ? html`<${Plain} store=${store} id=${id} />`
            : html`<${Changes} store=${store} id=${id} sources=${sources} against=${against ?? sources[0]} onAgainst=${(name) => this.setState({ against: name })} />`}`;
  }
}

/** What a candidate's texts may be made of and be compared with. */
function sourcesOf(store, id) {
  const candidates = store.table("candidates");
  const { parents, edits, sources } = candidates.get(id);
  return [...new Set([...parents, ...edits, ...sources])].filter((name) => candidates.find(name) >= 0);
}

function Origins({ store, id, blame, onPath }) {
  if (!blame.length) return html`<p class="empty">Where the sentences of this candidate came from is not in this report, which tells it of the best one, of those behind that, and of others that were confirmed; flowevolve watch tells it of all.</p>`;
  const components = [...new Set(blame.map((row) => row.component))];
  return html`<p class="faint">Choose a ${isCode(store) ? "line" : "sentence"}, with a click or with the arrow keys and Enter: it tells the candidate, the request and the examples that it came from.</p>
    ${components.map((component) => {
      const text = store.table("components").get(id, component)?.text;
      return html`${components.length > 1 && html`<h3>${component}</h3>`}
        ${text == null
          ? html`<p class="empty">${TOO_LONG}</p>`
          : html`<${Blame} key=${`${id}/${component}`} store=${store} text=${text} rows=${blame.filter((row) => row.component === component)}
              code=${isCode(store)} onPath=${onPath} />`}`;
    })}`;
}

function Changes({ store, id, sources, against, onAgainst }) {
  if (!against) return html`<p class="empty">It was made from nothing: there is nothing to compare it with.</p>`;
  const [components, before] = [componentsOf(store, id), componentsOf(store, against)];
  return html`<p class="facts"><label>compared with <select onChange=${(event) => onAgainst(event.target.value)}>
      ${sources.map((name) => html`<option value=${name} selected=${name === against}>${name}</option>`)}
    </select></label></p>
    ${[...components].map(
      ([name, text]) => html`${components.size > 1 && html`<h3>${name}</h3>`}
        ${text === null || before.get(name) === null
          ? html`<p class="empty">${TOO_LONG}</p>`
          : html`<${Difference} before=${before.get(name) ?? ""} after=${text} byLine=${isCode(store)} />`}`,
    )}`;
}

function Plain({ store, id }) {
  const components = componentsOf(store, id);
  return [...components].map(
    ([name, text]) => html`${components.size > 1 && html`<h3>${name}</h3>`}
      ${text === null ? html`<p class="empty">${TOO_LONG}</p>` : html`<pre class=${isCode(store) ? "plain code" : "plain"} tabindex="0" aria-label=${name}>${text}</pre>`}`,
  );
}
