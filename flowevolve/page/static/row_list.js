// A list of very many rows, of which only those in sight are in the page; one of them can be unfolded.

import { html, render } from "./vendor/htm-preact.standalone.umd.js";

const HEIGHT = 26;
/** Rows above and below those in sight that are there, too. */
const SPARE = 6;

let lists = 0;

export class RowList {
  /**
   * `columns` are {name, title, number}: the class of a column, its heading, and whether it holds numbers. `row(place)`
   * gives the cells of a row, one for each column, as text or templates; `details(place)` what is unfolded below it.
   * `mark(place)` may give a class for a row.
   */
  constructor(element, { label, columns, row, details, mark = () => "" }) {
    this.id = `list-${++lists}`;
    Object.assign(this, { label, columns, row, details, mark });
    /** The places of the rows that are shown, in their order. */
    this.places = [];
    /** Where in `places` one is, and which place is unfolded; -1 where none is. */
    this.active = -1;
    this.unfolded = -1;
    /** How high the unfolded part is, in pixels, and whether one has not been led to it yet. */
    this.extra = 0;
    this.unseen = false;
    this.element = element;
    render(html`<${Frame} list=${this} />`, element);
    this.box = element.querySelector(".rows");
    this.body = element.querySelector(".body");
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.box);
  }

  unmount() {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
    render(null, this.body);
    render(null, this.element);
  }

  /** Show these rows; the one that is unfolded stays so if it is among them. */
  set(places) {
    const active = this.places[this.active];
    this.places = places;
    this.active = active === undefined ? -1 : places.indexOf(active);
    this.open = this.unfolded < 0 ? -1 : places.indexOf(this.unfolded);
    if (this.open < 0) this.unfolded = -1;
    this.paint();
  }

  /** Unfold a row by its place, and scroll to it. */
  unfold(place) {
    this.unfolded = place;
    this.open = this.active = this.places.indexOf(place);
    this.extra = 0;
    this.unseen = true;
    this.reveal();
    this.paint();
  }

  fold() {
    this.unfolded = this.open = -1;
    this.paint();
  }

  toggle(at) {
    this.active = at;
    if (at === this.open) this.fold();
    else this.unfold(this.places[at]);
  }

  /** Whether the last row is in sight, so that the list may follow what comes. */
  atEnd() {
    return this.box.scrollTop + this.box.clientHeight >= this.box.scrollHeight - 2 * HEIGHT;
  }

  toEnd() {
    this.box.scrollTop = this.box.scrollHeight;
  }

  /** Pixels from the top of all rows to one of them. */
  top(at) {
    return at * HEIGHT + (this.open >= 0 && at > this.open ? this.extra : 0);
  }

  reveal() {
    if (this.active < 0) return;
    const { box } = this;
    const top = this.top(this.active);
    const end = top + HEIGHT + (this.active === this.open ? this.extra : 0);
    const room = box.clientHeight - HEIGHT; // the headings stay above
    if (top < box.scrollTop) box.scrollTop = top;
    else if (end > box.scrollTop + room) box.scrollTop = Math.min(top, end - room);
  }

  draw() {
    this.frame ??= requestAnimationFrame(() => this.paint());
  }

  paint() {
    cancelAnimationFrame(this.frame);
    this.frame = null;
    const { box, body, places } = this;
    body.style.height = `${this.top(places.length)}px`;
    let first = Math.floor(box.scrollTop / HEIGHT);
    if (this.open >= 0 && first > this.open) first = Math.max(this.open, Math.floor((box.scrollTop - this.extra) / HEIGHT));
    first = Math.max(0, first - SPARE);
    const last = Math.min(places.length, first + Math.ceil(box.clientHeight / HEIGHT) + 2 * SPARE);
    box.setAttribute("aria-rowcount", String(places.length + 1));
    box.setAttribute("aria-activedescendant", this.active >= first && this.active < last ? `${this.id}-${this.active}` : "");
    const shown = [];
    for (let at = first; at < last; at++) shown.push(...this.rowAt(at));
    render(shown, body);
    this.measure();
  }

  /** A row, and what is unfolded below it. */
  rowAt(at) {
    const place = this.places[at];
    const open = at === this.open;
    const classes = `row ${this.mark(place)} ${at === this.active ? "active" : ""} ${open ? "open" : ""}`;
    const cells = this.row(place);
    const row = html`<div key=${place} class=${classes} id=${`${this.id}-${at}`} role="row" aria-rowindex=${at + 2}
        aria-expanded=${open ? "true" : "false"} style=${{ transform: `translateY(${this.top(at)}px)` }}
        onClick=${() => this.toggle(at)}>
        ${this.columns.map(({ name, number }, index) => html`<span role="cell" class=${classOf(name, number)}>${cells[index]}</span>`)}
      </div>`;
    if (!open) return [row];
    const below = { transform: `translateY(${this.top(at) + HEIGHT}px)` };
    return [row, html`<div key="details" class="details" style=${below}>${this.details(place)}</div>`];
  }

  /** What is unfolded has its height only when it is in the page. */
  measure() {
    const details = this.body.querySelector(".details");
    const extra = details ? details.offsetHeight : this.open < 0 ? 0 : this.extra;
    if (extra === this.extra) return;
    this.extra = extra;
    this.paint();
    if (this.unseen) this.reveal();
    this.unseen = false;
  }

  onKey(event) {
    if (event.target !== this.box) return;
    const page = Math.max(1, Math.floor(this.box.clientHeight / HEIGHT) - 2);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key === "Enter" || event.key === " ") {
      if (this.active >= 0) this.toggle(this.active);
    } else if (event.key === "Escape" && this.open >= 0) {
      this.fold();
    } else if (event.key in moves && this.places.length) {
      this.active = Math.min(Math.max(this.active + moves[event.key], 0), this.places.length - 1);
      this.reveal();
      this.paint();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

function Frame({ list }) {
  return html`<div class="rows" role="table" tabindex="0" aria-label=${list.label} onScroll=${() => list.draw()}
    onKeyDown=${(event) => list.onKey(event)}>
    <div class="row headings" role="row">
      ${list.columns.map(({ name, title, number }) => html`<span role="columnheader" class=${classOf(name, number)}>${title}</span>`)}
    </div>
    <div class="body" role="rowgroup"></div>
  </div>`;
}

function classOf(name, number) {
  return number ? `${name} number` : name;
}
