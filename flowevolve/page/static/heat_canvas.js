// Draws the visible part of the heat map: cells, labels at the left and above, marks.

import { colour, score } from "./common.js";
import { sequential, sequentialPixels } from "./palette.js";
import { tame } from "./tame.js";

const FONT = "11px system-ui, sans-serif";
/** Pixels of the strip above the cells that shows the best value on each example. */
export const STRIP = 12;

/** The heights of rows and the least widths of columns, in pixels, by what the size is called. */
export const SIZES = { small: [4, 3], medium: [14, 6], large: [22, 18] };

/** How wide and high everything is, in pixels, for so many rows and columns in so wide a place. */
export function measures(size, rows, columns, width, labels) {
  const [height, least] = SIZES[size];
  const left = width < 520 ? 112 : 140;
  const cell = Math.max(least, Math.min(48, Math.floor((width - left) / Math.max(columns, 1))));
  const above = (cell >= 11 ? Math.min(90, 18 + labels * 7) : 6) + STRIP + 4;
  return { left, above, cell, height, width: left + cell * columns, total: above + height * rows };
}

/** Colours of everything but the values, in the present theme. */
export function inks() {
  return Object.fromEntries(["back", "panel", "text", "faint", "line", "accent"].map((name) => [name, colour(name)]));
}

/** Fills a place where nothing is measured: stripes, which no value has. */
export function hatch(context, ink) {
  const tile = new OffscreenCanvas(6, 6);
  const pen = tile.getContext("2d");
  pen.fillStyle = ink.panel;
  pen.fillRect(0, 0, 6, 6);
  pen.strokeStyle = ink.line;
  pen.beginPath();
  for (const from of [-6, 0, 6]) {
    pen.moveTo(from, 6);
    pen.lineTo(from + 6, 0);
  }
  pen.stroke();
  return context.createPattern(tile, "repeat");
}

export class HeatCanvas {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.ink = inks();
    this.pixels = sequentialPixels();
    this.cells = new OffscreenCanvas(1, 1);
  }

  resize(width, height) {
    this.ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.wide = width;
    this.high = height;
    this.stripes = hatch(this.context, this.ink);
  }

  /**
   * Draw what is in sight. `picture` has the matrix, its rows and columns in their order, measures (`size`), the best
   * values by column, the set of rows on the front, labels, and the chosen and the pointed-at cell.
   */
  draw(picture, scrollLeft, scrollTop) {
    const { context, wide, high, ink } = this;
    const { size, rows, columns } = picture;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.fillStyle = ink.back;
    context.fillRect(0, 0, wide, high);
    const sight = {
      row: Math.max(0, Math.floor(scrollTop / size.height)),
      column: Math.max(0, Math.floor(scrollLeft / size.cell)),
    };
    sight.rows = Math.min(rows.length, Math.ceil((scrollTop + high - size.above) / size.height)) - sight.row;
    sight.columns = Math.min(columns.length, Math.ceil((scrollLeft + wide - size.left) / size.cell)) - sight.column;
    sight.x = size.left + sight.column * size.cell - scrollLeft;
    sight.y = size.above + sight.row * size.height - scrollTop;
    if (sight.rows > 0 && sight.columns > 0) {
      this.clipped(size.left, size.above, () => {
        this.drawCells(picture, sight);
        this.drawMarks(picture, sight);
        this.drawFrame(picture, picture.pointed, sight, ink.faint);
        this.drawFrame(picture, picture.chosen, sight, ink.accent);
      });
      this.clipped(size.left, 0, () => this.drawAbove(picture, sight));
      this.clipped(0, size.above, () => this.drawLeft(picture, sight));
    }
    this.drawCorner(size);
  }

  clipped(left, top, draw) {
    this.context.save();
    this.context.beginPath();
    this.context.rect(left, top, this.wide - left, this.high - top);
    this.context.clip();
    draw();
    this.context.restore();
  }

  drawCells({ matrix, rows, columns, size, scale }, { row, column, rows: many, columns: across, x, y }) {
    const { context } = this;
    const image = new ImageData(across, many);
    const pixels = new Uint32Array(image.data.buffer);
    const shade = 255 / (scale[1] - scale[0]);
    for (let down = 0, at = 0; down < many; down++) {
      const start = rows[row + down] * matrix.stride;
      for (let right = 0; right < across; right++, at++) {
        const value = matrix.values[start + columns[column + right]];
        if (value === value) pixels[at] = this.pixels[Math.round((value - scale[0]) * shade)];
      }
    }
    this.cells.width = across;
    this.cells.height = many;
    this.cells.getContext("2d").putImageData(image, 0, 0);
    const [width, height] = [across * size.cell, many * size.height];
    context.fillStyle = this.stripes;
    context.fillRect(x, y, width, height);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.cells, x, y, width, height);
    if (size.cell < 5 || size.height < 8) return;
    context.fillStyle = this.ink.back;
    for (let right = 1; right <= across; right++) context.fillRect(x + right * size.cell - 1, y, 1, height);
    for (let down = 1; down <= many; down++) context.fillRect(x, y + down * size.height - 1, width, 1);
  }

  /** Marks cells in which a candidate on the front reaches the best value, dark on light cells and light on dark ones. */
  drawMarks({ matrix, rows, columns, size, scale, best, front }, { row, column, rows: many, columns: across, x, y }) {
    if (size.cell < 5 || size.height < 8) return;
    const middle = (scale[0] + scale[1]) / 2;
    const side = Math.max(2, Math.min(5, size.cell - 4));
    const [dark, light] = [new Path2D(), new Path2D()];
    for (let down = 0; down < many; down++) {
      if (!front.has(rows[row + down])) continue;
      for (let right = 0; right < across; right++) {
        const place = columns[column + right];
        const value = matrix.at(rows[row + down], place);
        if (value !== best[place]) continue;
        const left = x + right * size.cell + (size.cell - 1 - side) / 2;
        const top = y + down * size.height + (size.height - 1 - side) / 2;
        (value >= middle ? dark : light).rect(Math.round(left), Math.round(top), side, side);
      }
    }
    this.context.fillStyle = "#10141a";
    this.context.fill(dark);
    this.context.fillStyle = "#ffffff";
    this.context.fill(light);
  }

  drawFrame({ size }, cell, sight, ink) {
    if (!cell) return;
    const x = sight.x + (cell.column - sight.column) * size.cell;
    const y = sight.y + (cell.row - sight.row) * size.height;
    const { context } = this;
    context.lineWidth = 2;
    context.strokeStyle = this.ink.back;
    context.strokeRect(x - 2.5, y - 2.5, size.cell + 4, size.height + 4);
    context.strokeStyle = ink;
    context.strokeRect(x - 1, y - 1, size.cell + 1, size.height + 1);
  }

  drawAbove({ matrix, columns, size, scale, best, pointed, chosen }, { column, columns: across, x }) {
    const { context, ink } = this;
    const top = size.above - STRIP - 3;
    for (let right = 0; right < across; right++) {
      const value = best[columns[column + right]];
      const left = x + right * size.cell;
      context.fillStyle = Number.isNaN(value)
        ? this.stripes
        : `rgb(${sequential((value - scale[0]) / (scale[1] - scale[0])).join(" ")})`;
      context.fillRect(left, top, size.cell >= 5 ? size.cell - 1 : size.cell, STRIP);
    }
    if (size.cell < 11) return;
    context.font = FONT;
    context.textBaseline = "middle";
    for (let right = 0; right < across; right++) {
      const place = column + right;
      context.save();
      context.translate(x + right * size.cell + size.cell / 2, top - 4);
      context.rotate(-Math.PI / 2);
      context.fillStyle = place === pointed?.column || place === chosen?.column ? ink.text : ink.faint;
      context.fillText(fitted(context, tame(matrix.examples[columns[place]]), top - 8), 0, 0);
      context.restore();
    }
  }

  drawLeft({ matrix, rows, size, means, pointed, chosen, front }, { row, rows: many, y }) {
    const { context, ink } = this;
    const step = Math.ceil(13 / size.height);
    context.font = FONT;
    context.textBaseline = "middle";
    const first = step - 1 - ((row + step - 1) % step);
    for (let down = first; down < many; down += step) {
      const place = row + down;
      const middle = y + down * size.height + size.height / 2;
      const near = [pointed, chosen].some((cell) => cell && Math.abs(cell.row - place) < step);
      context.fillStyle = near ? ink.text : ink.faint;
      const said = score(means[rows[place]]);
      const room = size.left - context.measureText(said).width - 26;
      context.textAlign = "left";
      if (front.has(rows[place]) && step === 1) context.fillRect(3, middle - 2, 4, 4);
      context.fillText(fitted(context, tame(matrix.candidates[rows[place]]), room), 11, middle);
      context.textAlign = "right";
      context.fillText(said, size.left - 8, middle);
    }
    context.textAlign = "left";
  }

  drawCorner(size) {
    const { context, ink } = this;
    context.fillStyle = ink.faint;
    context.font = FONT;
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.fillText("best of each", size.left - 8, size.above - 3 - STRIP / 2);
    context.textAlign = "left";
  }
}

function fitted(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let [short, long] = [0, Math.min(text.length, 200)];
  while (short < long) {
    const middle = Math.ceil((short + long) / 2);
    if (context.measureText(`${text.slice(0, middle)}…`).width <= room) short = middle;
    else long = middle - 1;
  }
  return short ? `${text.slice(0, short)}…` : "";
}
