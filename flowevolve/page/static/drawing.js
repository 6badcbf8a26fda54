// The drawing of a lineage on a canvas, with pan and zoom by pointer, wheel, fingers and keys.

import { colour, score } from "./common.js";
import { COLUMN, ROW } from "./graph.js";

const RADIUS = 8;
const MARGIN = 46;
const LEAST_ZOOM = 0.08;
const MOST_ZOOM = 2.5;
/** The least zooms at which candidates have labels, and shapes. */
const LABELS_FROM = 0.55;
const SHAPES_FROM = 0.3;
/** The colour of each kind of candidate; kinds have different shapes, too. */
export const KINDS = {
  seed: "grey",
  new: "yellow",
  copy: "grey",
  edit: "blue",
  group: "orange",
  merge: "purple",
  prune: "green",
  repair: "sky",
  injected: "red",
  adopted: "red",
};

/** Draws a node's shape around (x, y) as the path of a canvas: a legend uses it, too. */
export function shape(context, kind, x, y, radius) {
  context.beginPath();
  if (kind === "group" || kind === "merge") context.roundRect(x - radius * 1.25, y - radius, radius * 2.5, radius * 2, 4);
  else if (kind === "seed") context.rect(x - radius * 0.9, y - radius * 0.9, radius * 1.8, radius * 1.8);
  else if (kind === "prune") polygon(context, x, y, radius * 1.2, 3);
  else if (kind === "repair") polygon(context, x, y, radius * 1.15, 4);
  else context.arc(x, y, radius, 0, 2 * Math.PI);
}

function polygon(context, x, y, radius, corners) {
  for (let corner = 0; corner < corners; corner++) {
    const angle = (2 * Math.PI * corner) / corners + Math.PI / 2;
    context.lineTo(x + radius * Math.cos(angle), y + radius * Math.sin(angle));
  }
  context.closePath();
}

/** A name that fits under a node. */
function short(id) {
  return id.length > 12 ? `${id.slice(0, 5)}…${id.slice(-6)}` : id;
}

export class Drawing {
  /** `onChoose(id)` is called for a click or a key on a candidate, `onUnfold(id)` for one on a count of folded ones. */
  constructor(canvas, onChoose, onUnfold, onHover) {
    Object.assign(this, { canvas, onChoose, onUnfold, onHover });
    this.context = canvas.getContext("2d");
    this.colours = Object.fromEntries(
      ["back", "panel", "text", "faint", "line", "accent", "bad", ...new Set(Object.values(KINDS))].map((name) => [name, colour(name)]),
    );
    this.layout = null;
    this.hidden = new Map();
    this.chosen = null;
    this.best = null;
    this.path = new Set();
    this.origin = null;
    this.zoom = 1;
    this.left = this.top = 0;
    this.pointers = new Map();
    this.listen();
  }

  /** Show a layout of `layOut`, with the counts of folded candidates by id. */
  show(layout, hidden, best) {
    Object.assign(this, { layout, hidden, best });
    this.draw();
  }

  listen() {
    const on = (name, listener) => this.canvas.addEventListener(name, listener, { passive: false });
    on("pointerdown", (event) => this.press(event));
    on("pointermove", (event) => this.move(event));
    on("pointerup", (event) => this.release(event));
    on("pointercancel", (event) => this.pointers.delete(event.pointerId));
    on("pointerleave", () => this.onHover(null));
    on("wheel", (event) => this.wheel(event));
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.canvas);
  }

  end() {
    this.observer.disconnect();
    cancelAnimationFrame(this.waiting);
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ratio = devicePixelRatio || 1;
    const first = !this.width;
    Object.assign(this, { width, height, ratio });
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    if (first) this.begin();
    this.paint();
  }

  /** All of it where that is legible, or else the part with the best candidate. */
  begin() {
    if (!this.layout || !this.width) return;
    this.fit();
    if (this.zoom < 0.7) {
      this.zoom = 0.9;
      this.reveal(this.chosen ?? this.best, true);
      this.left = MARGIN + COLUMN * (Math.floor((this.left - MARGIN) / COLUMN - 0.5) + 0.5);  // between two columns
      this.clamp();
    }
  }

  fit() {
    const [wide, high] = this.size();
    this.zoom = Math.min(1.15, Math.max(LEAST_ZOOM, Math.min(this.width / wide, this.height / high)));
    this.left = this.top = 0;
    this.clamp();
    this.draw();
  }

  size() {
    return [this.layout.columns * COLUMN + MARGIN, this.layout.rows * ROW + MARGIN];
  }

  /** Bring a candidate into sight. */
  reveal(id, centre = false) {
    const place = this.layout?.places.get(id);
    if (!place || !this.width) return;
    const [x, y] = [this.x(place) - this.left, this.y(place) - this.top];
    const [wide, high] = [this.width / this.zoom, this.height / this.zoom];
    if (centre || x < MARGIN || x > wide - MARGIN) this.left += x - wide * (centre ? 0.7 : 0.5);
    if (centre || y < MARGIN || y > high - MARGIN) this.top += y - high / 2;
    this.clamp();
    this.draw();
  }

  /** Mark the candidates through which a sentence came, and bring them into sight where they fit. */
  follow(path) {
    this.path = new Set(path);
    this.origin = path[0] ?? null;
    const places = path.map((id) => this.layout?.places.get(id)).filter(Boolean);
    if (places.length) {
      const [xs, ys] = [places.map((place) => this.x(place)), places.map((place) => this.y(place))];
      const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
      const needed = Math.min(this.width / (right - left + 2 * MARGIN), this.height / (bottom - top + 2 * MARGIN));
      this.zoom = Math.min(this.zoom, Math.max(needed, LABELS_FROM * 0.75));
      this.left = right + MARGIN - this.width / this.zoom;
      this.top = (top + bottom - this.height / this.zoom) / 2;
      this.clamp();
    }
    this.draw();
  }

  x(place) {
    return MARGIN + place.column * COLUMN;
  }

  y(place) {
    return MARGIN * 0.75 + place.row * ROW;
  }

  zoomBy(factor, at = [this.width / 2, this.height / 2]) {
    const zoom = Math.min(MOST_ZOOM, Math.max(LEAST_ZOOM, this.zoom * factor));
    this.left += at[0] / this.zoom - at[0] / zoom;
    this.top += at[1] / this.zoom - at[1] / zoom;
    this.zoom = zoom;
    this.clamp();
    this.draw();
  }

  panBy(x, y) {
    const before = [this.left, this.top];
    this.left += x / this.zoom;
    this.top += y / this.zoom;
    this.clamp();
    this.draw();
    return this.left !== before[0] || this.top !== before[1];
  }

  clamp() {
    const [wide, high] = this.size();
    const [across, down] = [this.width / this.zoom, this.height / this.zoom];
    this.left = wide <= across ? (wide - across) / 2 : Math.min(wide - across, Math.max(0, this.left));
    this.top = high <= down ? 0 : Math.min(high - down, Math.max(0, this.top));
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  press(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.at(event));
    this.moved = this.pointers.size > 1;
  }

  move(event) {
    const now = this.at(event);
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      this.onHover(this.find(now)?.node ?? null, now);
      return;
    }
    if (this.pointers.size === 1) {
      if (!this.moved && Math.hypot(now[0] - before[0], now[1] - before[1]) < 4) return;
      this.moved = true;
      this.panBy(before[0] - now[0], before[1] - now[1]);
    } else {
      const [other] = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      const distance = (one) => Math.max(1, Math.hypot(one[0] - other[0], one[1] - other[1]));
      this.zoomBy(distance(now) / distance(before), [(now[0] + other[0]) / 2, (now[1] + other[1]) / 2]);
    }
    this.pointers.set(event.pointerId, now);
  }

  release(event) {
    this.pointers.delete(event.pointerId);
    if (this.moved) return;
    const found = this.find(this.at(event));
    if (found?.folded) this.onUnfold(found.node.id);
    else if (found) this.onChoose(found.node.id);
  }

  wheel(event) {
    const scale = event.deltaMode === 1 ? 16 : 1;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoomBy(Math.exp(-event.deltaY * scale * 0.005), this.at(event));
    } else if (this.panBy(event.deltaX * scale, event.deltaY * scale)) event.preventDefault();
  }

  /** The candidate at a place of the canvas, and whether it is its count of folded ones. */
  find([left, top]) {
    if (!this.layout) return null;
    const x = left / this.zoom + this.left;
    const y = top / this.zoom + this.top;
    for (const place of this.layout.places.values()) {
      const [dx, dy] = [x - this.x(place), y - this.y(place)];
      if (this.hidden.has(place.node.id) && dx > 8 && dx < 42 && dy < -4 && dy > -22) return { node: place.node, folded: true };
      if (Math.abs(dx) < COLUMN * 0.36 && dy > -14 && dy < 38) return { node: place.node, folded: false };
    }
    return null;
  }

  /** The candidate beside one, in the direction of an arrow key; null if there is none. */
  beside(id, key) {
    const place = this.layout?.places.get(id);
    if (!place) return this.best;
    if (key === "ArrowLeft") return place.node.parent;
    if (key === "ArrowRight") return this.layout.children.get(id)?.[0]?.id ?? null;
    const down = key === "ArrowDown" ? 1 : -1;
    let found = null;
    for (const other of this.layout.places.values()) {
      const distance = (other.row - place.row) * down;
      if (other.column === place.column && distance > 0 && (!found || distance < found.distance)) found = { distance, id: other.node.id };
    }
    return found?.id ?? null;
  }

  draw() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      this.paint();
    });
  }

  paint() {
    if (!this.layout || !this.width) return;
    const { context, zoom, ratio, colours } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.setTransform(zoom * ratio, 0, 0, zoom * ratio, -this.left * zoom * ratio, -this.top * zoom * ratio);
    const edges = { plain: new Path2D(), side: new Path2D(), winning: new Path2D() };
    for (const place of this.layout.places.values()) {
      for (const id of place.node.others) this.edge(edges, this.layout.places.get(id), place, "side");
      this.edge(edges, this.layout.places.get(place.node.parent), place, place.node.winning ? "winning" : "plain");
    }
    this.stroke(edges.side, colours.orange, 1, 0.5);
    this.stroke(edges.plain, colours.line, 1.3);
    this.stroke(edges.winning, colours.accent, 3);
    this.stroke(this.pathOf(), colours.orange, 3.5);
    const small = zoom < SHAPES_FROM;
    for (const place of this.layout.places.values()) {
      if (!this.within(place, place)) continue;
      if (small && !this.path.has(place.node.id) && ![this.chosen, this.best].includes(place.node.id)) this.dot(place);
      else this.node(place);
    }
  }

  /** Whether what lies between two places is in sight, in part. */
  within(from, to) {
    const [x1, x2, y1, y2] = [this.x(from), this.x(to), this.y(from), this.y(to)];
    return (
      Math.max(x1, x2) > this.left - COLUMN &&
      Math.min(x1, x2) < this.left + this.width / this.zoom + COLUMN &&
      Math.max(y1, y2) > this.top - ROW &&
      Math.min(y1, y2) < this.top + this.height / this.zoom + ROW
    );
  }

  /** The way of a sentence from the candidate that it came in with. */
  pathOf() {
    const edges = { side: new Path2D(), plain: new Path2D() };
    const places = [...this.path].map((id) => this.layout.places.get(id)).filter(Boolean);
    places.slice(1).forEach((place, number) => this.edge(edges, places[number], place, place.node.parent === places[number].node.id ? "plain" : "side"));
    edges.plain.addPath(edges.side);
    return edges.plain;
  }

  edge(edges, from, to, kind) {
    if (!from || !this.within(from, to)) return;
    const edge = edges[kind];
    const [x1, y1, x2, y2] = [this.x(from), this.y(from), this.x(to), this.y(to)];
    edge.moveTo(x1, y1);
    if (kind === "side") edge.bezierCurveTo((x1 + x2) / 2, y1, (x1 + x2) / 2, y2, x2, y2);
    else {
      if (y1 !== y2) edge.bezierCurveTo(x1 + COLUMN / 2, y1, x1 + COLUMN / 4, y2, x1 + COLUMN * 0.8, y2);
      edge.lineTo(x2, y2);
    }
  }

  stroke(path, colour, width, opacity = 1) {
    const { context } = this;
    context.strokeStyle = colour;
    context.lineWidth = Math.max(width, width / this.zoom / 2);
    context.globalAlpha = opacity;
    context.stroke(path);
    context.globalAlpha = 1;
  }

  /** A candidate seen from afar. */
  dot({ node, column, row }) {
    const size = RADIUS * 1.6;
    this.context.fillStyle = this.colours[node.status === "confirmed" ? KINDS[node.kind] ?? "blue" : "line"];
    this.context.fillRect(this.x({ column }) - size / 2, this.y({ row }) - size / 2, size, size);
  }

  node(place) {
    const { context, colours } = this;
    const { node } = place;
    const [x, y] = [this.x(place), this.y(place)];
    const colour = colours[KINDS[node.kind] ?? "blue"];
    const lives = node.status === "confirmed";
    context.setLineDash(node.status === "speculative" || node.status === "proposed" ? [3, 2] : []);
    shape(context, node.kind, x, y, RADIUS);
    context.fillStyle = lives ? colour : colours.back;
    context.fill();
    context.strokeStyle = colour;
    context.lineWidth = 2;
    context.stroke();
    context.setLineDash([]);
    if (node.id === this.chosen || this.path.has(node.id)) {
      shape(context, node.kind, x, y, RADIUS + 4);
      context.strokeStyle = node.id === this.chosen ? colours.text : colours.orange;
      context.stroke();
    }
    const labelled = this.zoom >= LABELS_FROM || [this.chosen, this.best, this.origin].includes(node.id);
    if (node.kind === "group" && node.others.length && this.zoom >= LABELS_FROM) this.text(`${node.others.length}`, x, y + 4, "600 11px", lives ? colours.back : colour, false);
    if (!labelled) return;
    const size = this.zoom >= LABELS_FROM ? 1 : 0.75 / this.zoom;
    const star = node.id === this.best ? "★ " : "";
    this.text(star + short(node.id), x, y + 14 + 10 * size, `${node.winning ? 700 : 400} ${11.5 * size}px`, node.winning ? colours.text : colours.faint);
    if (node.score != null && size === 1) this.text(score(node.score), x, y + 36, "11px", colours.faint);
    const folded = this.hidden.get(node.id);
    if (folded && this.zoom >= LABELS_FROM) this.badge(`+${folded}`, x + 11, y - 21);
  }

  text(said, x, y, font, fill, halo = true) {
    const { context } = this;
    context.font = `${font} system-ui, sans-serif`;
    context.textAlign = "center";
    if (halo) {
      context.strokeStyle = this.colours.back;
      context.lineWidth = 4;
      context.lineJoin = "round";
      context.strokeText(said, x, y);
    }
    context.fillStyle = fill;
    context.fillText(said, x, y);
  }

  badge(said, x, y) {
    const { context, colours } = this;
    context.beginPath();
    context.roundRect(x, y, 8 + 6.5 * said.length, 15, 7);
    context.fillStyle = colours.panel;
    context.fill();
    context.strokeStyle = colours.line;
    context.lineWidth = 1;
    context.stroke();
    this.text(said, x + 4 + 3.25 * said.length, y + 11, "10.5px", colours.faint, false);
  }
}
