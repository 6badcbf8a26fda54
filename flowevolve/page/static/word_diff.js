// What has changed between two texts, word by word, as marked text.

import { html } from "./vendor/htm-preact.standalone.umd.js";
import { diffWordsWithSpace } from "./vendor/diff.min.js";
import { tame } from "./tame.js";

/** Above so many characters of both texts together they are not compared: it would take seconds. */
const LONGEST = 60000;

/** The texts of a component before and after, with what is gone and what is new marked. */
export function WordDiff({ before, after }) {
  if (before == null || after == null) {
    return html`<p class="faint">This report has left the text out, as it is too long.</p>`;
  }
  if (before === after) return html`<pre class="diff">${tame(after)}</pre><p class="faint">Nothing is different.</p>`;
  if (before.length + after.length > LONGEST) {
    return html`<p class="faint">The texts are too long to be compared here. This is the new one:</p><pre class="diff">${tame(after)}</pre>`;
  }
  return html`<pre class="diff">${diffWordsWithSpace(before, after).map(({ value, added, removed }) =>
    added ? html`<ins>${tame(value)}</ins>` : removed ? html`<del>${tame(value)}</del>` : tame(value),
  )}</pre>`;
}
