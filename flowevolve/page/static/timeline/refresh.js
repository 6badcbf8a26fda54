// Reading the tables of a live page anew, but not so often that it takes much of the time.

export class Refresh {
  /** `read` reads and draws; it is called by `now`, and some time after `soon`. */
  constructor(read) {
    this.read = read;
    this.timer = null;
    this.took = 0;
  }

  now() {
    const before = performance.now();
    this.read();
    this.took = performance.now() - before;
  }

  soon() {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.now();
    }, Math.max(1000, 16 * this.took));
  }

  close() {
    clearTimeout(this.timer);
  }
}
