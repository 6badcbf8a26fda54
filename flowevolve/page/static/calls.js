// LLM requests behind a candidate: which they are, and what was asked and answered.

import { html, Component } from "./vendor/htm-preact.standalone.umd.js";
import { dollars, number, seconds } from "./common.js";

const NO_WRITERS = ["task", "embedding"];

/** A request that can be opened: its numbers and, once it is open, its texts. `mark` is looked for in the reply. */
export class CallDetails extends Component {
  constructor(props) {
    super(props);
    this.state = { texts: undefined };
  }

  async open() {
    if (this.state.texts !== undefined) return;
    const texts = await this.props.store.callTexts(this.props.id).catch(() => null);
    this.setState({ texts });
  }

  render({ store, id, mark = "" }, { texts }) {
    const call = store.table("calls").get(id);
    if (!call) return html`<p class="faint">request ${id}, which is not in this page</p>`;
    const tokens = call.prompt_tokens == null ? null : `${number(call.prompt_tokens)} + ${number(call.completion_tokens)} tokens`;
    const facts = [call.stage, call.part, tokens, call.cost ? dollars(call.cost) : null, seconds(call.ended - call.begun)];
    const outcome = call.outcome === "ok" ? null : html`<span class="bad">${call.error ?? call.outcome}</span>`;
    return html`<details class="call" onToggle=${(event) => event.currentTarget.open && this.open()}>
      <summary><b>request ${id}</b> ${call.role} (${call.model}) <span class="faint">${facts.filter(Boolean).join(" · ")}</span> ${outcome}</summary>
      ${texts === undefined
        ? html`<p class="faint">Opening …</p>`
        : texts === null
          ? html`<p class="faint">This page does not have its texts. ${store.leftOut().join(" ")}</p>`
          : html`<div class="texts">
              ${(texts.messages ?? []).map(({ role, content }) => html`<${Text} name=${`prompt (${role})`} text=${content} />`)}
              ${texts.thinking && html`<${Text} name="thinking" text=${texts.thinking} />`}
              <${Text} name="reply" text=${texts.reply ?? "none"} mark=${mark} />
            </div>`}
      <p class="faint">${call.template ? `written from the template ${call.template}; ` : ""}sent at ${seconds(call.begun)};${" "}
        <a href=${`#/timeline?call=${id}`} onClick=${(event) => {
          event.preventDefault();
          store.go("timeline", { call: id });
        }}>in the timeline</a></p>
    </details>`;
  }
}

function Text({ name, text, mark = "" }) {
  return html`<h4>${name}</h4><pre class="quoted" tabindex="0" aria-label=${name}>${marked(text ?? "", mark)}</pre>`;
}

/** A text in which a sentence is marked, without the mark of a list item and the full stop. */
function marked(text, sentence) {
  const said = sentence.replace(/^\s*(?:[-*+•>#]+|\(?(?:\d{1,3}|[a-z])[.)])\s+/i, "").replace(/[.!?]+$/, "");
  const at = said ? text.indexOf(said) : -1;
  if (at < 0) return text;
  return [text.slice(0, at), html`<mark>${said}</mark>`, text.slice(at + said.length)];
}

/**
 * The ids of the requests behind a candidate: `writing` it, from the item on which it was proposed back to the
 * beginning of the flow or to where an earlier candidate was made, and `running` it.
 */
export function callsBehind(store, candidate) {
  const candidates = store.table("candidates");
  const row = candidates.get(candidate);
  const made = new Set(candidates.column("item"));
  const together = new Map();
  const spans = store.table("spans");
  const heads = spans.column("head");
  for (let place = 0; place < spans.length; place++) {
    if (heads[place] === null) continue;
    if (!together.has(heads[place])) together.set(heads[place], []);
    together.get(heads[place]).push(spans.column("item")[place]);
  }
  const items = new Set();
  const open = [row.item];
  while (open.length) {
    const item = open.pop();
    if (items.has(item) || (made.has(item) && item !== row.item)) continue;
    items.add(item);
    open.push(...(together.get(item) ?? []));
    if (item.includes(".")) open.push(item.slice(0, item.lastIndexOf(".")));
  }
  const calls = store.table("calls");
  const [ids, roles, itemsOf, about] = ["id", "role", "item", "candidate"].map((name) => calls.column(name));
  const [writing, running] = [[], []];
  for (let place = 0; place < calls.length; place++) {
    const writes = !NO_WRITERS.includes(roles[place]);
    if (writes && items.has(itemsOf[place])) writing.push(ids[place]);
    else if (!writes && about[place] === candidate) running.push(ids[place]);
  }
  return { writing, running };
}
