// The dialogs by which a run is steered: stop it, raise its budget, edit a candidate, say something, branch.

import { html, render, useState } from "./vendor/htm-preact.standalone.umd.js";
import { seconds } from "./common.js";
import { nameOf, setName, useActs } from "./steering.js";
import { tame } from "./tame.js";

/** Characters of a comment; the run refuses a longer one. */
const LONGEST_COMMENT = 4000;

/** Open a form over the page; `Form` gets `props` and `close()`. */
export function openForm(Form, label, props) {
  const dialog = document.createElement("dialog");
  dialog.className = "form";
  dialog.setAttribute("aria-label", label);
  dialog.addEventListener("close", () => {
    render(null, dialog);
    dialog.remove();
  });
  document.body.append(dialog);
  render(html`<${Form} ...${props} close=${() => dialog.close()} />`, dialog);
  dialog.showModal();
}

/**
 * What all forms that act have: a title, who acts, why it was refused, and the buttons. `act()` gives the act. With
 * `careful` the button that does nothing has the focus first.
 */
function ActForm({ store, title, button, ready = true, careful = false, act, close, children }) {
  const [name, type] = useState(nameOf(store));
  const { busy, refused, send } = useActs(store);
  const submit = async (event) => {
    event.preventDefault();
    setName(name);
    if (await send(act())) close();
  };
  return html`<form onSubmit=${submit}>
    <h2>${title}</h2>
    ${children}
    ${refused !== null && html`<p class="notice" role="alert">${tame(refused)}</p>`}
    <div class="last">
      <label>as <input size="12" maxlength="60" value=${name} onInput=${(event) => type(event.target.value)} autocomplete="name" /></label>
      <span class="buttons">
        <button type="button" autofocus=${careful} onClick=${close}>Cancel</button>
        <button class="main" disabled=${busy || !ready}>${busy ? "Asking the run …" : button}</button>
      </span>
    </div>
  </form>`;
}

export function StopForm({ store, close }) {
  return html`<${ActForm} store=${store} close=${close} title="Stop this run?" button="Stop the run" careful act=${() => ({ act: "stop" })}>
    <p>It begins nothing new, ends what is under way, and writes its result. <code>flowevolve resume</code> goes on with it later.</p>
  <//>`;
}

/** The limits that can be raised, by name; the time is in minutes where it is long. */
function limitsOf({ budget }) {
  return Object.entries(budget).map(([name, now]) => (name === "seconds" && now >= 120 ? ["minutes", now / 60] : [name, now]));
}

export function BudgetForm({ store, close }) {
  const about = store.about();
  const limits = limitsOf(about);
  const [typed, type] = useState({});
  const raised = limits.filter(([name, now]) => Number(typed[name]) > now);
  const act = () => ({ act: "raise_budget", limits: Object.fromEntries(raised.map(([name]) => [name, Number(typed[name])])) });
  return html`<${ActForm} store=${store} close=${close} title="Raise the budget" button="Raise it" ready=${raised.length > 0} act=${act}>
    <p>${about.used ? `Used: ${about.used}, in ${seconds(about.seconds)}.` : `It has run for ${seconds(about.seconds)}.`} Give the whole amount that it may come to.</p>
    ${limits.length === 0 && html`<p>This run has no limit that could be raised.</p>`}
    <div class="limits">${limits.map(
      ([name, now]) => html`<label><span>${name.replace("_", " ")}</span>
        <input type="number" step="any" min=${now} placeholder=${said(now)} value=${typed[name] ?? ""}
          onInput=${(event) => type({ ...typed, [name]: event.target.value })} />
        <span class="faint">now ${said(now)}</span></label>`,
    )}</div>
  <//>`;
}

function said(limit) {
  return limit.toLocaleString("en", { maximumFractionDigits: 2 });
}

/** `texts` are those of the candidate `id` by component. */
export function EditForm({ store, id, texts, code, close }) {
  const [edited, edit] = useState(() => new Map(texts));
  const changed = [...edited].filter(([name, text]) => text !== texts.get(name));
  const act = () => ({ act: "inject", parent: id, texts: Object.fromEntries(changed) });
  return html`<${ActForm} store=${store} close=${close} title=${`Edit ${tame(id)}`} button="Put it into the run" ready=${changed.length > 0} act=${act}>
    <p>The edited text becomes a new candidate. It is evaluated like any other, and counts as a proposal.</p>
    ${[...edited].map(
      ([name, text]) => html`<label class="text"><span>${tame(name)}</span>
        <textarea class=${code ? "code" : ""} rows=${edited.size > 1 ? 6 : 14} spellcheck=${!code} value=${text}
          onInput=${(event) => edit(new Map(edited).set(name, event.target.value))}></textarea></label>`,
    )}
  <//>`;
}

/** `about` is {candidate} or {example}, with its id. */
export function CommentForm({ store, about, close }) {
  const [text, type] = useState("");
  const [what, id] = Object.entries(about)[0];
  const read = what === "candidate" ? "changes this candidate" : "sees what candidates did on this example";
  return html`<${ActForm} store=${store} close=${close} title=${`Comment on ${what} ${tame(id)}`} button="Comment" ready=${text.trim() !== ""}
      act=${() => ({ act: "comment", text, ...about })}>
    <label class="text"><span>Whoever ${read} reads this as feedback.</span>
      <textarea rows="5" maxlength=${LONGEST_COMMENT} value=${text} onInput=${(event) => type(event.target.value)}></textarea></label>
  <//>`;
}

/** The command that branches a new run off a candidate, to be copied. */
export function BranchForm({ store, id, close }) {
  const { directory } = store.about();
  const words = ["flowevolve", "branch", directory, "--candidate", id, "--out", `${directory}-${id}`];
  const command = words.map(quoted).join(" ");
  const [told, tell] = useState("");
  const copy = async (event) => {
    event.preventDefault();
    const field = event.target.querySelector("input");
    field.select();
    try {
      await navigator.clipboard.writeText(command);
      tell("It is copied.");
    } catch {
      tell("It is marked: Ctrl+C copies it.");
    }
  };
  return html`<form onSubmit=${copy}>
    <h2>Branch a new run off ${tame(id)}</h2>
    <p>The new run has the same configuration, begins with the texts of this candidate, and has a budget of its own. Start it where this run was started:</p>
    ${tame(command) === command
      ? html`<input class="command" readonly value=${command} aria-label="the command" onFocus=${(event) => event.target.select()} />`
      : html`<p class="notice">A name in the command has characters that would act on a terminal, so it is not shown.</p>`}
    <p class="faint" role="status">${told || "With --no-start it is only written; --set changes settings."}</p>
    <div class="last"><span class="buttons"><button type="button" onClick=${close}>Close</button>
      <button class="main" disabled=${tame(command) !== command}>Copy</button></span></div>
  </form>`;
}

/** A word as a shell takes it for one. */
function quoted(word) {
  return /^[\w./@%+=:,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
