// What overlapping stretches of time add up to: how many requests are in flight, how many tokens a second are written.

/** The places of values in their order, as a typed array; values that are in order already are only looked through. */
export function inOrder(values) {
  const places = Uint32Array.from(values, (_, place) => place);
  for (let at = 1; at < values.length; at++) if (values[at] < values[at - 1]) return places.sort((a, b) => values[a] - values[b]);
  return places;
}

/** The first place in sorted values that is above the limit. */
export function firstAbove(sorted, limit) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** A level over time that goes up where a stretch begins and down where it ends, by the stretch's weight (1 if not given). */
export class Steps {
  constructor(begins, ends, weights = null) {
    const lasts = (place) => ends[place] > begins[place];
    const [up, down] = [inOrder(begins).filter(lasts), inOrder(ends).filter(lasts)];
    const count = up.length;
    /** When the level changes, and what it is from then on. */
    this.times = new Float64Array(2 * count);
    this.levels = new Float64Array(2 * count);
    /** The level's integral up to each change. */
    this.areas = new Float64Array(2 * count);
    this.most = 0;
    let [level, area, last, u, d] = [0, 0, 0, 0, 0];
    for (let at = 0; at < 2 * count; at++) {
      const rises = u < count && begins[up[u]] < ends[down[d]];
      const place = rises ? up[u++] : down[d++];
      const time = rises ? begins[place] : ends[place];
      area += level * (time - last);
      level += (rises ? 1 : -1) * (weights ? weights[place] : 1);
      if (weights && Math.abs(level) < 1e-9) level = 0;
      [this.times[at], this.levels[at], this.areas[at], last] = [time, level, area, time];
      if (level > this.most) this.most = level;
    }
  }

  /** The level at a time. */
  at(time) {
    const place = firstAbove(this.times, time) - 1;
    return place < 0 ? 0 : this.levels[place];
  }

  /** The level's integral from the beginning to a time. */
  area(time) {
    const place = firstAbove(this.times, time) - 1;
    return place < 0 ? 0 : this.areas[place] + this.levels[place] * (time - this.times[place]);
  }

  /** The mean level between two times. */
  mean(from, to) {
    return to > from ? (this.area(to) - this.area(from)) / (to - from) : this.at(from);
  }

  /** The mean and the highest level in each of so many columns of the same width. */
  columns(from, to, count) {
    const means = new Float64Array(count);
    const highest = new Float64Array(count);
    const width = (to - from) / count;
    let place = firstAbove(this.times, from);
    let before = this.area(from);
    for (let column = 0; column < count; column++) {
      const end = from + (column + 1) * width;
      let high = place > 0 ? this.levels[place - 1] : 0;
      for (; place < this.times.length && this.times[place] <= end; place++) high = Math.max(high, this.levels[place]);
      const after = place > 0 ? this.areas[place - 1] + this.levels[place - 1] * (end - this.times[place - 1]) : 0;
      means[column] = Math.max(0, (after - before) / width);
      highest[column] = high;
      before = after;
    }
    return { means, highest };
  }

  /** The stretches between two times in which the level is below a limit, as [from, to]. */
  below(limit, from, to) {
    const found = [];
    let since = limit > 0 ? from : null;
    for (let at = 0; at < this.times.length; at++) {
      const low = this.levels[at] < limit;
      if (low && since === null) since = this.times[at];
      else if (!low && since !== null) {
        if (this.times[at] > since) found.push([since, this.times[at]]);
        since = null;
      }
    }
    if (since !== null && to > since) found.push([since, to]);
    return found;
  }
}

/** The union of stretches that come in the order of their beginnings: [begin, end, begin, end, …]. */
export function union(begins, ends) {
  const found = [];
  for (let at = 0; at < begins.length; at++) {
    const last = found.length - 1;
    if (last > 0 && begins[at] <= found[last]) found[last] = Math.max(found[last], ends[at]);
    else found.push(begins[at], ends[at]);
  }
  return found;
}

/** How long a union is within two times. */
export function lengthWithin(joined, from, to) {
  let sum = 0;
  for (let at = 0; at < joined.length; at += 2) sum += Math.max(0, Math.min(to, joined[at + 1]) - Math.max(from, joined[at]));
  return sum;
}
