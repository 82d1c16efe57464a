/* Repeated requests while the page is visible, with longer pauses while they fail. */

const MAX_PAUSE_SECONDS = 8;

export class Polling {
  /* load() returns a promise; calls onData(data) or onProblem(problem, seconds until the next attempt). */
  constructor(seconds, load, onData, onProblem) {
    Object.assign(this, { seconds, load, onData, onProblem, timer: null, pause: seconds, active: false, attempt: 0 });
    document.addEventListener("visibilitychange", () => this.active && !document.hidden && this.poll());
  }

  start() {
    this.active = true;
    this.pause = this.seconds;
    return this.poll();
  }

  stop() {
    this.active = false;
    this.attempt += 1; // ignores a response that is still in progress
    clearTimeout(this.timer);
  }

  async poll() {
    clearTimeout(this.timer);
    const attempt = ++this.attempt;
    try {
      const data = await this.load();
      if (attempt !== this.attempt) return;
      this.pause = this.seconds;
      this.onData(data);
    } catch (problem) {
      if (attempt !== this.attempt) return;
      if (problem.status === undefined) console.error(problem);
      this.pause = Math.min(MAX_PAUSE_SECONDS, Math.max(2, 2 * this.pause));
      this.onProblem(problem, this.pause);
    }
    if (this.active && !document.hidden) this.timer = setTimeout(() => this.poll(), 1000 * this.pause);
  }
}
