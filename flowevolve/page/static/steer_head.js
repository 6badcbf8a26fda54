// What the head of the page has to steer the run: pause and go on, stop, raise the budget.

import { html } from "./vendor/htm-preact.standalone.umd.js";
import { BudgetForm, CommentForm, StopForm, openForm } from "./steer_forms.js";
import { hasControls, isAsked, useActs, whyNot } from "./steering.js";
import { tame } from "./tame.js";

export function RunControls({ store }) {
  const { refused, send, say } = useActs(store);
  if (!hasControls(store) || store.about().state !== "running") return null;
  const why = whyNot(store);
  const { paused } = store.about();
  const [asksPause, asksGoingOn, asksStop] = ["pause", "unpause", "stop"].map((name) => isAsked(store, name));
  const or = (act) => (why === null ? act : () => say(why));
  return html`<span class="steer" role="group" aria-label="steer the run">
      <${Control} why=${why} busy=${asksPause || asksGoingOn} onClick=${or(() => send({ act: paused ? "unpause" : "pause" }))}
        label=${paused ? (asksGoingOn ? "Going on …" : "Go on") : asksPause ? "Pausing …" : "Pause"}
        about=${paused ? "begin new work again" : "begin nothing new; what is under way goes on"} />
      <${Control} why=${why} busy=${asksStop} onClick=${or(() => openForm(StopForm, "stop this run", { store }))}
        label=${asksStop ? "Stopping …" : "Stop …"} about="end the run in good order; it asks once more" />
      <${Control} why=${why} busy=${isAsked(store, "raise_budget")} onClick=${or(() => openForm(BudgetForm, "raise the budget", { store }))}
        label="Budget …" about="raise a limit of the budget" />
    </span>
    ${refused !== null &&
    html`<p class="refused notice" role="alert">${tame(refused)} <button onClick=${() => say(null)} aria-label="hide this">×</button></p>`}`;
}

/** Says something of an example. */
export function ExampleControl({ store, example }) {
  const { refused, say } = useActs(store);
  if (!hasControls(store)) return null;
  const why = whyNot(store);
  const open = () => openForm(CommentForm, "comment on this example", { store, about: { example } });
  return html`<${Control} why=${why} label="Comment …" about="say something of this example that reflections read as feedback"
      onClick=${why === null ? open : () => say(why)} />
    ${refused !== null && html`<span class="notice" role="alert">${tame(refused)}</span>`}`;
}

/** A button that, if the run can't be steered from here, says why when it is pressed. */
export function Control({ label, about, why, busy = false, onClick }) {
  return html`<button class=${why === null ? "" : "off"} aria-disabled=${why === null ? null : "true"} disabled=${busy} title=${why ?? about}
    aria-description=${why ?? about} onClick=${onClick}>${label}</button>`;
}
