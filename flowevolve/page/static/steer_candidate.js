// What the view of a candidate has to steer the run: edit it, say something of it, take it out of the pool, branch.

import { html } from "./vendor/htm-preact.standalone.umd.js";
import { componentsOf, isCode } from "./candidate_texts.js";
import { seconds } from "./common.js";
import { BranchForm, CommentForm, EditForm, openForm } from "./steer_forms.js";
import { Control } from "./steer_head.js";
import { actsAbout, hasControls, isAsked, useActs, whyNot } from "./steering.js";
import { tame } from "./tame.js";
import { statusOf } from "./texts.js";

export function CandidateControls({ store, row }) {
  const { refused, send, say } = useActs(store);
  const { id } = row;
  const branch = html`<button title="begin a new run with its texts" onClick=${() => openForm(BranchForm, "branch a new run", { store, id })}>Branch …</button>`;
  if (!hasControls(store)) return html`<p class="steer">${branch}</p>`;
  const why = whyNot(store);
  const or = (act) => () => {
    if (why !== null) return say(why);
    store.go("candidate", { candidate: id }); // the view shows the best one otherwise, which it may be no more
    return act();
  };
  const texts = componentsOf(store, id);
  const approved = row.status === "rejected" && actsAbout(store, "approve", { candidate: id }).length > 0;
  return html`<p class="steer" role="group" aria-label="steer the run by this candidate">
      <${Control} why=${why} onClick=${or(() => openForm(EditForm, "edit this candidate", { store, id, texts, code: isCode(store) }))}
        label="Edit and inject …" about="put an edited copy into the run" />
      <${Control} why=${why} onClick=${or(() => openForm(CommentForm, "comment on this candidate", { store, about: { candidate: id } }))}
        label="Comment …" about="say something that reflections read as feedback" />
      <${Judge} store=${store} row=${row} approved=${approved} why=${why} judge=${(act) => or(() => send(act))()} />
      ${branch}
    </p>
    ${refused !== null && html`<p class="facts notice" role="alert">${tame(refused)}</p>`}`;
}

/** Who has taken a candidate out of the pool, put it back or let it go on, if anybody did. */
export function Judged({ store, row }) {
  const of = (act) => actsAbout(store, act, { candidate: row.id }).at(-1);
  const [veto, approval] = [of("veto"), of("approve")];
  if (row.vetoed && veto) return html`<p class="facts">${tame(veto.by)} has taken it out of the pool.</p>`;
  if (!approval) return null;
  return html`<p class="facts">${tame(approval.by)} has ${row.status === "rejected" ? "approved it: a copy goes on to its validation" : "put it back into the pool"}.</p>`;
}

/** Takes the candidate out of the pool, or into it. One that lives on in another, or of which a copy does, can be neither. */
function Judge({ store, row, approved, why, judge }) {
  const status = statusOf(row);
  if (status === "merged" || status === "made again" || approved) return null;
  const act = row.vetoed || status === "rejected" ? "approve" : "veto";
  const asked = isAsked(store, act, row.id);
  const about = {
    veto: "take it out of the pool: never a parent, never the best",
    approve: row.vetoed ? "take the veto back" : "let it go on to its validation, though it was rejected",
  };
  const press = () => judge({ act, candidate: row.id });
  const labels = { veto: ["Veto", "Vetoing …"], approve: ["Approve", "Approving …"] };
  return html`<${Control} why=${why} busy=${asked} onClick=${press} label=${labels[act][asked ? 1 : 0]} about=${about[act]} />`;
}

/** What was said of {candidate} or {example}, with its id. */
export function Comments({ store, about }) {
  return actsAbout(store, "comment", about).map(
    ({ time, by, text }) => html`<blockquote class="comment"><p>${tame(text)}</p><footer>${tame(by)}, at ${seconds(time)}</footer></blockquote>`,
  );
}
