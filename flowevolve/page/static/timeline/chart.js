// The timeline's canvas and what one does on it: zooming, moving, pointing, and going from stretch to stretch by keys.

import { Surface } from "../canvas.js";
import { OVERVIEW, across, paint, paintOver } from "./paint.js";
import { firstAbove } from "./steps.js";

const SLIP = 4;
const EDGE = 7;

/** Draws scenes and changes their view; tells `events` of it: view(), point(hit, x, y), choose(hit), open(hit). */
export class Chart {
  constructor(parent, events) {
    this.parent = parent;
    this.events = events;
    this.scene = null;
    this.chosen = null;
    this.pointer = null;
    this.drag = null;
    this.fingers = new Map();
    this.main = new Surface(parent, (context) => this.scene && paint(context, this.scene));
    this.over = new Surface(parent, (context) => this.paintOver(context));
    this.over.canvas.className = "over";
    this.over.observer.disconnect();
    const listen = (name, act, options) => parent.addEventListener(name, (event) => this.scene && act.call(this, event), options);
    listen("pointerdown", this.down);
    listen("pointermove", this.move);
    listen("pointerup", this.up);
    listen("pointercancel", this.up);
    listen("pointerleave", this.leave);
    listen("wheel", this.wheel, { passive: false });
    listen("dblclick", () => this.look(0, this.scene.end));
    listen("keydown", this.key);
  }

  close() {
    this.main.close();
    this.over.close();
  }

  /** Draw another scene; the view stays unless the scene brings its own. */
  show(scene) {
    this.scene = scene;
    this.main.height = this.over.height = scene.layout.height;
    this.parent.style.height = `${scene.layout.height}px`;
    this.main.redraw();
    this.over.redraw();
  }

  /** Show these seconds. */
  look(from, to) {
    const { scene } = this;
    const width = Math.min(scene.end, Math.max(to - from, scene.end * 1e-5, 1e-3));
    const begin = Math.min(Math.max(0, from), scene.end - width);
    scene.view = { from: begin, to: begin + width };
    this.main.redraw();
    this.over.redraw();
    this.events.view();
  }

  zoom(factor, at = null) {
    const { from, to } = this.scene.view;
    const still = at ?? (from + to) / 2;
    this.look(still - (still - from) * factor, still + (to - still) * factor);
  }

  shift(part) {
    const { from, to } = this.scene.view;
    this.look(from + (to - from) * part, to + (to - from) * part);
  }

  choose(hit) {
    this.chosen = hit;
    this.over.redraw();
    this.events.choose(hit);
  }

  timeAt(x, { from, to } = this.scene.view) {
    const { left, plot } = this.scene.layout;
    return from + ((x - left) / plot) * (to - from);
  }

  /** The stretch at a point, or null: {reference, begin, end, y, height, lane, row, list, place}. */
  hit(x, y) {
    const { layout, view } = this.scene;
    const lane = layout.lanes.findIndex((each) => y >= each.y && y < each.y + each.height);
    if (lane < 0 || x < layout.left || x > layout.left + layout.plot) return null;
    const row = Math.min(layout.lanes[lane].lane.rows.length - 1, Math.floor((y - layout.lanes[lane].y) / layout.lanes[lane].row));
    const slack = (2 * (view.to - view.from)) / layout.plot;
    const time = this.timeAt(x);
    for (const list of ["calls", "work"]) {
      const found = layout.lanes[lane].lane.rows[row]?.[list];
      if (!found) continue;
      const last = firstAbove(found.begins, time + slack) - 1;
      for (let place = last; place >= Math.max(0, last - 20); place--) {
        if (found.ends[place] >= time - slack) return this.placed(lane, row, list, place);
      }
    }
    return null;
  }

  placed(lane, row, list, place) {
    const at = this.scene.layout.lanes[lane];
    const found = at.lane.rows[row][list];
    const [begin, end, reference] = [found.begins[place], found.ends[place], found.references[place]];
    return { reference, begin, end, y: at.y + row * at.row, height: Math.max(2, at.row - 1), lane, row, list, place };
  }

  /** The stretch with a reference, or null. */
  find(reference) {
    for (const [lane, { lane: each }] of this.scene.layout.lanes.entries()) {
      for (const [row, lists] of each.rows.entries()) {
        for (const list of ["calls", "work"]) {
          const place = lists[list] ? lists[list].references.indexOf(reference) : -1;
          if (place >= 0) return this.placed(lane, row, list, place);
        }
      }
    }
    return null;
  }

  paintOver(context) {
    if (!this.scene) return;
    const { layout } = this.scene;
    paintOver(context, this.scene, this.chosen, this.pointer);
    if (this.drag?.kind !== "brush" || this.drag.overview) return;
    const [a, b] = [across(this.scene, this.drag.time), this.drag.x].sort((one, other) => one - other);
    context.fillStyle = this.scene.colours.accent;
    context.globalAlpha = 0.2;
    context.fillRect(a, OVERVIEW + 4, b - a, layout.bottom - OVERVIEW - 4);
    context.globalAlpha = 1;
  }

  position(event) {
    const box = this.parent.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  down(event) {
    if (event.button !== 0) return;
    const [x, y] = this.position(event);
    this.fingers.set(event.pointerId, x);
    this.parent.setPointerCapture(event.pointerId);
    if (this.fingers.size === 2) {
      this.drag = { kind: "pinch", view: this.scene.view, xs: [...this.fingers.values()] };
      return;
    }
    this.drag = { x, y, from: x, moved: false, view: this.scene.view, ...this.dragAt(x, y, event.shiftKey) };
  }

  /** What begins here: a brush in the overview, a move of its frame or of one end of it, a move of the lanes, or a brush there. */
  dragAt(x, y, shift) {
    const { view, end } = this.scene;
    const whole = { from: 0, to: end };
    if (y > OVERVIEW) return shift ? { kind: "brush", time: this.timeAt(x) } : { kind: "move" };
    const { left, plot } = this.scene.layout;
    const [begin, stop] = [view.from, view.to].map((time) => left + (time / end) * plot);
    if (Math.abs(x - begin) <= EDGE) return { kind: "brush", overview: true, time: view.to };
    if (Math.abs(x - stop) <= EDGE) return { kind: "brush", overview: true, time: view.from };
    if (x > begin && x < stop && view.to - view.from < 0.98 * end) return { kind: "frame" };
    return { kind: "brush", overview: true, time: this.timeAt(x, whole) };
  }

  move(event) {
    const [x, y] = this.position(event);
    if (this.fingers.has(event.pointerId)) this.fingers.set(event.pointerId, x);
    if (this.drag?.kind === "pinch") {
      this.pinch();
      return;
    }
    if (!this.drag) {
      this.pointer = event.pointerType === "mouse" && y > OVERVIEW ? x : null;
      this.over.redraw();
      this.parent.style.cursor = y <= OVERVIEW ? "col-resize" : "";
      this.events.point(y > OVERVIEW ? this.hit(x, y) : null, x, y);
      return;
    }
    const { drag, scene } = this;
    drag.x = x;
    drag.moved ||= Math.abs(x - drag.from) > SLIP;
    if (!drag.moved) return;
    this.pointer = null;
    this.events.point(null, x, y);
    const whole = scene.end / scene.layout.plot;
    const width = drag.view.to - drag.view.from;
    if (drag.kind === "move") this.look(drag.view.from - ((x - drag.from) * width) / scene.layout.plot, drag.view.to - ((x - drag.from) * width) / scene.layout.plot);
    else if (drag.kind === "frame") this.look(drag.view.from + (x - drag.from) * whole, drag.view.to + (x - drag.from) * whole);
    else if (drag.overview) this.between(drag.time, this.timeAt(x, { from: 0, to: scene.end }));
    else this.over.redraw();
  }

  between(one, other) {
    const { end } = this.scene;
    this.look(Math.max(0, Math.min(one, other)), Math.min(end, Math.max(one, other)));
  }

  pinch() {
    const { view, xs } = this.drag;
    const now = [...this.fingers.values()];
    if (now.length < 2) return;
    const factor = Math.abs(xs[1] - xs[0]) / Math.max(10, Math.abs(now[1] - now[0]));
    const still = this.timeAt((xs[0] + xs[1]) / 2, view);
    const width = (view.to - view.from) * factor;
    const { left, plot } = this.scene.layout;
    const from = still - (((now[0] + now[1]) / 2 - left) / plot) * width;
    this.look(from, from + width);
  }

  up(event) {
    this.fingers.delete(event.pointerId);
    const { drag } = this;
    this.drag = null;
    if (!drag || event.type === "pointercancel" || drag.kind === "pinch") return;
    if (drag.kind === "brush" && !drag.overview && drag.moved) this.between(drag.time, this.timeAt(drag.x));
    else if (!drag.moved && drag.y > OVERVIEW) this.choose(this.hit(drag.x, drag.y));
    this.over.redraw();
  }

  leave() {
    this.pointer = null;
    this.over.redraw();
    this.events.point(null, 0, 0);
  }

  /** Zooms with Ctrl, Cmd or a pinch, or while the chart has the focus; otherwise the page scrolls as it does elsewhere. */
  wheel(event) {
    const [x] = this.position(event);
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
    const zooms = event.ctrlKey || event.metaKey || this.parent.contains(document.activeElement);
    const { view, end } = this.scene;
    const whole = view.to - view.from >= end * 0.9999;
    if (!sideways && (!zooms || (whole && event.deltaY > 0 && !event.ctrlKey))) return;
    event.preventDefault();
    if (sideways) this.shift((event.deltaX || event.deltaY) / this.scene.layout.plot);
    else this.zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY)) * 0.003), this.timeAt(x));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== this.parent) return;
    const acts = {
      ArrowRight: () => (event.shiftKey ? this.shift(0.25) : this.along(1)),
      ArrowLeft: () => (event.shiftKey ? this.shift(-0.25) : this.along(-1)),
      ArrowDown: () => this.toRow(1),
      ArrowUp: () => this.toRow(-1),
      PageDown: () => this.toLane(1),
      PageUp: () => this.toLane(-1),
      Home: () => this.along(-Infinity),
      End: () => this.along(Infinity),
      "+": () => this.zoom(0.5, this.chosen && (this.chosen.begin + this.chosen.end) / 2),
      "=": () => this.zoom(0.5, this.chosen && (this.chosen.begin + this.chosen.end) / 2),
      "-": () => this.zoom(2),
      0: () => this.look(0, this.scene.end),
      Enter: () => this.chosen && this.events.open(this.chosen),
      Escape: () => this.choose(null),
    };
    if (!(event.key in acts)) return;
    event.preventDefault();
    acts[event.key]();
  }

  along(step) {
    if (!this.chosen) {
      this.first(0, 1);
      return;
    }
    const { lane, row, list, place } = this.chosen;
    const count = this.scene.layout.lanes[lane].lane.rows[row][list].begins.length;
    this.goTo(this.placed(lane, row, list, Math.min(count - 1, Math.max(0, place + step))));
  }

  toRow(step) {
    if (!this.chosen) {
      this.first(0, 1);
      return;
    }
    const { lane, row, list } = this.chosen;
    const rows = this.scene.layout.lanes[lane].lane.rows;
    const other = list === "work" ? "calls" : "work";
    if (rows[row][other]?.begins.length && (step > 0) === (list === "work")) this.nearest(lane, row, other);
    else if (row + step >= 0 && row + step < rows.length) this.nearest(lane, row + step, step > 0 ? "work" : "calls");
    else this.toLane(step);
  }

  toLane(step) {
    this.first((this.chosen?.lane ?? -1) + step, step);
  }

  /** The stretch that is nearest to the chosen one's beginning, or to the view's, in the first row from a lane on. */
  first(lane, step) {
    const lanes = this.scene.layout.lanes;
    for (let at = lane; at >= 0 && at < lanes.length; at += step) {
      if (this.nearest(at, step > 0 ? 0 : lanes[at].lane.rows.length - 1, "work")) return;
    }
  }

  nearest(lane, row, preferred) {
    const rows = this.scene.layout.lanes[lane].lane.rows;
    const list = rows[row]?.[preferred]?.begins.length ? preferred : preferred === "work" ? "calls" : "work";
    const found = rows[row]?.[list];
    if (!found?.begins.length) return false;
    const time = this.chosen?.begin ?? this.scene.view.from;
    const after = Math.min(found.begins.length - 1, firstAbove(found.begins, time));
    const before = Math.max(0, after - 1);
    const nearer = Math.abs(found.begins[before] - time) <= Math.abs(found.begins[after] - time) ? before : after;
    this.goTo(this.placed(lane, row, list, nearer));
    return true;
  }

  /** Choose a stretch and bring it into view. */
  goTo(hit) {
    const { from, to } = this.scene.view;
    const width = to - from;
    if (hit.end < from || hit.begin > to) this.look((hit.begin + hit.end - width) / 2, (hit.begin + hit.end + width) / 2);
    this.choose(hit);
  }
}
