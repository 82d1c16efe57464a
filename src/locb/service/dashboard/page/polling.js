/* Asks again and again while the page is looked at; less and less often while there is no answer. */

const SLOWEST = 8;

export class Polling {
  /* ask() gives a promise; show(answer) and fail(problem, seconds until it is asked again) tell what came of it. */
  constructor(seconds, ask, show, fail) {
    Object.assign(this, { seconds, ask, show, fail, timer: null, wait: seconds, going: false, turn: 0 });
    document.addEventListener("visibilitychange", () => this.going && !document.hidden && this.now());
  }

  start() {
    this.going = true;
    this.wait = this.seconds;
    return this.now();
  }

  stop() {
    this.going = false;
    this.turn += 1; // an answer under way is no longer wanted
    clearTimeout(this.timer);
  }

  async now() {
    clearTimeout(this.timer);
    const turn = ++this.turn;
    try {
      const answer = await this.ask();
      if (turn !== this.turn) return;
      this.wait = this.seconds;
      this.show(answer);
    } catch (problem) {
      if (turn !== this.turn) return;
      if (problem.status === undefined) console.error(problem);
      this.wait = Math.min(SLOWEST, Math.max(2, 2 * this.wait));
      this.fail(problem, this.wait);
    }
    if (this.going && !document.hidden) this.timer = setTimeout(() => this.now(), 1000 * this.wait);
  }
}
