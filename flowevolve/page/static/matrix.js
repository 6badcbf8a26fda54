// Candidates x examples: what each scored on each, from the table scores, in an order to be drawn in.

/** The scores of one source (validation or screen) as a dense matrix that takes in new rows of the table as they come. */
export class Matrix {
  constructor(source) {
    this.source = source;
    this.clear(256, 64);
  }

  clear(rows, stride) {
    /** The ids of candidates by row, and of examples by column. */
    this.candidates = [];
    this.examples = [];
    this.rowOf = new Map();
    this.columnOf = new Map();
    this.stride = stride;
    /** By row times stride plus column; not a number where nothing is measured. */
    this.values = new Float32Array(rows * stride).fill(NaN);
    this.repeats = new Uint16Array(rows * stride);
    this.low = Infinity;
    this.high = -Infinity;
    this.taken = 0;
    this.puts = null;
  }

  /** Take in what is new in the table; true if anything was. */
  take(table) {
    // Each new row adds one to both; a changed row to the version alone, and then all is read again.
    const puts = table.version - table.length;
    if (puts === this.puts && this.taken === table.length) return false;
    if (puts !== this.puts) this.clear(this.candidates.length || 256, this.stride);
    this.puts = puts;
    const [candidates, sources, examples, values, repeats] = ["candidate", "source", "example", "value", "repeats"].map(
      (name) => table.column(name),
    );
    for (let place = this.taken; place < table.length; place++) {
      if (sources[place] !== this.source) continue;
      const row = known(this.rowOf, this.candidates, candidates[place]);
      const column = known(this.columnOf, this.examples, examples[place]);
      this.reserve(row, column);
      this.values[row * this.stride + column] = values[place] ?? NaN;
      this.repeats[row * this.stride + column] = repeats[place];
      if (values[place] < this.low) this.low = values[place];
      if (values[place] > this.high) this.high = values[place];
    }
    this.taken = table.length;
    return true;
  }

  reserve(row, column) {
    const rows = this.values.length / this.stride;
    if (row < rows && column < this.stride) return;
    const stride = column < this.stride ? this.stride : this.stride * 2;
    const more = row < rows ? rows : rows * 2;
    const values = new Float32Array(more * stride).fill(NaN);
    const repeats = new Uint16Array(more * stride);
    for (let each = 0; each < rows; each++) {
      values.set(this.values.subarray(each * this.stride, (each + 1) * this.stride), each * stride);
      repeats.set(this.repeats.subarray(each * this.stride, (each + 1) * this.stride), each * stride);
    }
    Object.assign(this, { values, repeats, stride });
  }

  at(row, column) {
    return this.values[row * this.stride + column];
  }

  /** The scale of the values: 0 to 1 where all are in it, or from the lowest to the highest. */
  scale() {
    if (this.low >= 0 && this.high <= 1) return [0, 1];
    return this.low < this.high ? [this.low, this.high] : [this.low - 0.5, this.low + 0.5];
  }

  /** By row: the mean over the measured examples. */
  means() {
    return this.candidates.map((_, row) => {
      let sum = 0;
      let count = 0;
      for (let at = row * this.stride; at < row * this.stride + this.examples.length; at++) {
        if (Number.isNaN(this.values[at])) continue;
        sum += this.values[at];
        count += 1;
      }
      return count ? sum / count : NaN;
    });
  }

  /** By column, over the rows that are given: the best value, the mean, and how many were measured. */
  columns(rows) {
    const size = this.examples.length;
    const best = new Float32Array(size).fill(NaN);
    const sum = new Float64Array(size);
    const count = new Uint32Array(size);
    for (const row of rows) {
      for (let column = 0; column < size; column++) {
        const value = this.values[row * this.stride + column];
        if (Number.isNaN(value)) continue;
        if (!(value <= best[column])) best[column] = value;
        sum[column] += value;
        count[column] += 1;
      }
    }
    return { best, mean: Array.from(sum, (each, column) => each / count[column]), count };
  }

  /**
   * Which of the rows, given the oldest first, are on their Pareto front, `best` being their best values by column.
   *
   * An example's front is made of the rows that reach its best value. From the lowest mean up, a row is dropped if
   * each front that it is on holds another row that is left: so a row stays only if it is the last of some front.
   */
  front(rows, best, means) {
    const order = [...rows].sort((one, other) => means[one] - means[other]);
    const last = new Int32Array(this.examples.length).fill(-1);
    for (const row of order) {
      for (let column = 0; column < last.length; column++) if (this.at(row, column) === best[column]) last[column] = row;
    }
    const ends = new Set(last);
    const served = new Uint8Array(last.length);
    const kept = new Set();
    for (const row of order) {
      if (!ends.has(row)) continue;
      let needed = false;
      for (let column = 0; column < last.length; column++) needed ||= last[column] === row && !served[column];
      if (!needed) continue;
      kept.add(row);
      for (let column = 0; column < last.length; column++) if (this.at(row, column) === best[column]) served[column] = 1;
    }
    return kept;
  }
}

function known(places, names, name) {
  let place = places.get(name);
  if (place === undefined) {
    place = names.push(name) - 1;
    places.set(name, place);
  }
  return place;
}

const NAMES = new Intl.Collator("en", { numeric: true });

/**
 * The columns in an order: "failed" has those first on which even the best value is low, "leader" those on which that of
 * the row `leader` is; equal ones by their means; or by "name".
 */
export function orderedColumns(matrix, how, { best, mean }, leader) {
  const order = matrix.examples.map((_, column) => column);
  const byName = (one, other) => NAMES.compare(matrix.examples[one], matrix.examples[other]);
  if (how === "name") return order.sort(byName);
  const first = how === "leader" ? order.map((column) => matrix.at(leader, column)) : best;
  const low = (values, one, other) => sortable(values[one]) - sortable(values[other]);
  return order.sort((one, other) => low(first, one, other) || low(mean, one, other) || byName(one, other));
}

/** A value that is not measured comes after all others. */
function sortable(value) {
  return Number.isNaN(value) ? 1e300 : value;
}

/** Rows in an order: by "score", the best first; "newest" or "oldest" first. `ages` are places by row. */
export function orderedRows(rows, how, means, ages) {
  if (how === "newest") return rows.sort((one, other) => ages[other] - ages[one]);
  if (how === "oldest") return rows.sort((one, other) => ages[one] - ages[other]);
  return rows.sort((one, other) => means[other] - means[one] || ages[one] - ages[other]);
}
