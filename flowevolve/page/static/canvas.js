// What charts on a canvas of our own share: its size, its frames, ticks, and rectangles by colour.

/** A canvas as wide as its parent and as high as `height`, drawn by `draw(context, width, height)` in CSS pixels. */
export class Surface {
  constructor(parent, draw) {
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("aria-hidden", "true");
    parent.append(this.canvas);
    this.draw = draw;
    this.height = 0;
    this.frame = null;
    this.observer = new ResizeObserver(() => this.redraw());
    this.observer.observe(parent);
  }

  get width() {
    return this.canvas.parentElement?.clientWidth ?? 0;
  }

  /** Draw at the next frame, once however often it is called before. */
  redraw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.now();
    });
  }

  now() {
    const { width, height } = this;
    if (!width || !height) return;
    const scale = window.devicePixelRatio || 1;
    const [across, down] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.canvas.width !== across || this.canvas.height !== down) {
      [this.canvas.width, this.canvas.height] = [across, down];
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
    const context = this.canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    this.draw(context, width, height);
  }

  close() {
    if (this.frame) cancelAnimationFrame(this.frame);
    this.observer.disconnect();
    this.canvas.remove();
  }
}

/** Rectangles gathered by their colour and opacity, so that a canvas changes these seldom. */
export class Rectangles {
  constructor() {
    this.groups = new Map();
  }

  add(colour, opacity, x, y, width, height) {
    const key = `${colour} ${opacity}`;
    let group = this.groups.get(key);
    if (!group) this.groups.set(key, (group = { colour, opacity, values: [] }));
    const { values } = group;
    const last = values.length - 4;
    if (last >= 0 && values[last + 1] === y && values[last + 3] === height && values[last] + values[last + 2] === x) values[last + 2] += width;
    else values.push(x, y, width, height);
  }

  fill(context) {
    for (const { colour, opacity, values } of this.groups.values()) {
      context.fillStyle = colour;
      context.globalAlpha = opacity;
      for (let at = 0; at < values.length; at += 4) context.fillRect(values[at], values[at + 1], values[at + 2], values[at + 3]);
    }
    context.globalAlpha = 1;
  }
}

const SPANS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

/** Ticks of a time axis, [{at, label}], at least so many pixels apart, and the unit of the labels. */
export function timeTicks(from, to, width, apart = 70) {
  const least = ((to - from) * apart) / Math.max(1, width);
  const step = least <= 1 ? niceStep(least) : (SPANS.find((each) => each >= least) ?? 86400 * Math.ceil(least / 86400));
  const plain = to < 120 || step < 1;
  const hours = !plain && to >= 7200;
  const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  const two = (value) => String(Math.floor(value)).padStart(2, "0");
  const label = (at) => {
    if (plain) return at.toFixed(digits);
    if (!hours) return `${Math.floor(at / 60)}:${two(at % 60)}`;
    const minutes = `${Math.floor(at / 3600)}:${two((at % 3600) / 60)}`;
    return step < 60 ? `${minutes}:${two(at % 60)}` : minutes;
  };
  const unit = plain ? "seconds" : !hours ? "min:s" : step < 60 ? "h:min:s" : "h:min";
  return { ticks: ticksAt(from, to, step).map((at) => ({ at, label: label(at) })), unit };
}

/** 1, 2 or 5 times a power of ten, not below a value. */
export function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least || 1));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= least * 0.999999);
}

function ticksAt(from, to, step) {
  const first = Math.ceil(from / step - 1e-6);
  const count = Math.max(0, Math.floor(to / step + 1e-6) - first + 1);
  return Array.from({ length: Math.min(count, 200) }, (_, number) => (first + number) * step);
}

/** Diagonal lines of a colour, as what a canvas can fill with. */
export function hatch(context, colour, apart = 6) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = apart;
  const drawing = tile.getContext("2d");
  drawing.strokeStyle = colour;
  drawing.lineWidth = 1;
  drawing.beginPath();
  for (const shift of [-apart, 0, apart]) {
    drawing.moveTo(shift, apart);
    drawing.lineTo(shift + apart, 0);
  }
  drawing.stroke();
  return context.createPattern(tile, "repeat");
}
