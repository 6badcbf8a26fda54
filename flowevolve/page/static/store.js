// The tables of the runs, from the data embedded in a report or from the server of a live page.

/** A table, held as columns. Views read it; only the store changes it. */
export class Table {
  constructor(name, key, columns) {
    this.name = name;
    this.key = key;
    this.names = columns;
    this.length = 0;
    /** Grows with each change. */
    this.version = 0;
    this.columns = Object.fromEntries(columns.map((column) => [column, []]));
    this.groups = null;
  }

  /** The values of a column, one a row: an array that must not be changed. */
  column(name) {
    const values = this.columns[name];
    if (!values) throw new Error(`the table ${this.name} has no column ${name}`);
    return values;
  }

  /** The row at a place, as an object. */
  row(place) {
    const row = {};
    for (const name of this.names) row[name] = this.columns[name][place];
    return row;
  }

  /** All rows, as objects: for small tables. */
  rows() {
    return Array.from({ length: this.length }, (_, place) => this.row(place));
  }

  /** The place of the row with this key (one value for each column of `table.key`), or -1. */
  find(first, ...rest) {
    if (!this.groups) this.group();
    const found = this.groups.get(first);
    if (found === undefined) return -1;
    if (!rest.length) return found;
    found.byRest ??= new Map(found.places.map((place) => [this.restAt(place), place]));
    return found.byRest.get(JSON.stringify(rest)) ?? -1;
  }

  /**
   * Find the place of each row by its key or, where that has several columns, the places of all rows that share the first
   * of them; these are told apart when one of them is asked for, so that a change of one row among millions takes no time.
   */
  group() {
    this.groups = new Map();
    const values = this.columns[this.key[0]];
    for (let place = 0; place < this.length; place++) this.join(values[place], place);
  }

  join(first, place) {
    if (this.key.length === 1) {
      this.groups.set(first, place);
      return;
    }
    const found = this.groups.get(first);
    if (!found) {
      this.groups.set(first, { places: [place], byRest: null });
      return;
    }
    found.places.push(place);
    found.byRest?.set(this.restAt(place), place);
  }

  /** The row with this key, as an object, or null. */
  get(...key) {
    const place = this.find(...key);
    return place < 0 ? null : this.row(place);
  }

  restAt(place) {
    return JSON.stringify(this.key.slice(1).map((name) => this.columns[name][place]));
  }

  fill(length, columns) {
    this.length = length;
    for (const name of this.names) this.columns[name] = unpacked(columns[name], length);
    this.groups = null;
    this.version += 1;
  }

  put(values) {
    const key = this.key.map((name) => values[this.names.indexOf(name)]);
    const found = this.find(...key);
    const place = found < 0 ? this.length++ : found;
    this.names.forEach((name, index) => {
      this.columns[name][place] = values[index];
    });
    if (found < 0) this.join(key[0], place);
    this.version += 1;
  }
}

function unpacked(column, length) {
  if (column == null) return new Array(length).fill(null);
  if (Array.isArray(column)) return column;
  if (column.first != null) return Array.from({ length }, (_, place) => column.first + place);
  return column.places.map((place) => column.values[place]);
}

/** All runs of the page, the one that is looked at, and where in the page one is. */
export class Store {
  constructor() {
    /** The runs by name: {name, tables, texts, leftOut}. */
    this.runs = new Map();
    /** The name of the run that is looked at. */
    this.run = null;
    /** Whether runs may still change. */
    this.live = false;
    /** What is to be said at the head of the page, such as that the server can't be reached; null if nothing. */
    this.notice = null;
    /** Of a live page: why runs can't be steered from it, by name (null if they can), and as whom one does: {onlyShown, by}. */
    this.steering = null;
    /** Acts that were asked for here, which the journal does not have yet: steering.js. */
    this.asked = new Set();
    /** What stands behind the view's name in the address, by name: {candidate: "c1", …}. */
    this.params = {};
    this.listeners = new Set();
    this.changed = new Set();
  }

  /** A table of the run that is looked at, or of the run that is named. */
  table(name, run = this.run) {
    const found = this.runs.get(run)?.tables[name];
    if (!found) throw new Error(`there is no table ${name} of ${run}`);
    return found;
  }

  /** The single row of the table runs, as an object. */
  about(run = this.run) {
    return this.table("runs", run).row(0);
  }

  /** What the report has left out, in sentences. */
  leftOut(run = this.run) {
    return this.runs.get(run).leftOut;
  }

  /**
   * The texts of a call: {messages: [{role, content}, …] or null, thinking, reply}; each is null where there is none.
   * The whole is null where this page does not have them.
   */
  async callTexts(id, run = this.run) {
    const { texts } = this.runs.get(run);
    if (texts) {
      const found = texts.calls[id];
      if (!found) return null;
      const [messages, thinking, reply] = found;
      const text = (place) => (place == null ? null : texts.strings[place]);
      return {
        messages: messages.map(([role, place]) => ({ role, content: text(place) })),
        thinking: text(thinking),
        reply: text(reply),
      };
    }
    const response = await fetch(`api/runs/${encodeURIComponent(run)}/calls/${id}`);
    return response.ok ? response.json() : null;
  }

  /** Where the sentences of a candidate's texts come from: rows of the table blame, as objects. */
  async blame(candidate, run = this.run) {
    const known = this.table("blame", run).rows().filter((row) => row.candidate === candidate);
    if (known.length || !this.live) return known;
    const response = await fetch(`api/runs/${encodeURIComponent(run)}/blame/${encodeURIComponent(candidate)}`);
    return response.ok ? response.json() : [];
  }

  /** Go to a view, with parameters by name; those that are null are left out. */
  go(view, params = {}) {
    const query = new URLSearchParams();
    if (this.runs.size > 1) query.set("run", this.run);
    for (const [name, value] of Object.entries(params)) if (value != null) query.set(name, value);
    const said = query.toString();
    location.hash = `#/${view}${said ? `?${said}` : ""}`;
  }

  /** Call a function after each batch of changes, with the set of the names of the tables that have changed. */
  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  addRun({ name, tables, texts = null, left_out: leftOut = [] }) {
    const filled = {};
    for (const [table, { key, rows, columns }] of Object.entries(tables)) {
      filled[table] = this.runs.get(name)?.tables[table] ?? new Table(table, key, Object.keys(columns));
      filled[table].fill(rows, columns);
      this.changed.add(table);
    }
    this.runs.set(name, { name, tables: filled, texts, leftOut });
    this.run ??= name;
    this.tell();
  }

  /** Rows of a table that have changed, each as the values of its columns. */
  put(run, table, rows) {
    const target = this.table(table, run);
    for (const row of rows) target.put(row);
    this.changed.add(table);
    this.tell();
  }

  tell() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = null;
      const changed = this.changed;
      this.changed = new Set();
      for (const listener of this.listeners) listener(changed);
    });
  }
}

/** The runs that are embedded in the page. */
export async function embedded() {
  const blocks = document.querySelectorAll("script.data");
  return Promise.all(Array.from(blocks, (block) => unzipped(block.textContent)));
}

/** Fill a store from the server that the page came from, and keep it up with what changes there. */
export async function follow(store) {
  const { runs, version, only_shown: onlyShown, by } = await fetched("api/runs");
  for (const name of runs) store.addRun({ ...(await fetched(`api/runs/${encodeURIComponent(name)}/tables`)), name });
  store.live = true;
  store.steering = { onlyShown, by };
  const source = new EventSource(`api/events?after=${version}`);
  const say = (notice) => {
    store.notice = notice;
    store.tell();
  };
  source.onopen = () => say(null);
  source.onerror = () => say("the server can't be reached; trying again");
  source.onmessage = ({ data }) => {
    for (const { run, tables } of JSON.parse(data)) {
      for (const [table, rows] of Object.entries(tables)) store.put(run, table, rows);
    }
  };
  source.addEventListener("anew", () => location.reload());
  source.addEventListener("end", () => {
    source.close();
    store.live = false;
    say("this page is not kept up any more; flowevolve watch opens it again");
  });
}

async function fetched(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

async function unzipped(base64) {
  const text = atob(base64.trim());
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}
