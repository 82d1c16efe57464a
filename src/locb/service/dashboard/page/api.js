/* Requests to the API, single or repeated, and the token, which is stored for this browser tab only. */

const TOKEN_KEY = "locb-token";
export const TIMEOUT_SECONDS = 15;
const MAX_PAUSE_SECONDS = 8; // while requests fail; for longer normal pauses, twice the normal pause

/* Failed request. status: HTTP status, 0 if there was no response. type: last part of the problem type, or "timeout",
   "unreachable" or "not-json" if the page detected the failure. */
export class Problem extends Error {
  constructor(status, type, detail) {
    super(detail);
    this.status = status;
    this.type = type;
  }
}

export const token = {
  get: () => sessionStorage.getItem(TOKEN_KEY),
  set: (text) => sessionStorage.setItem(TOKEN_KEY, text),
  remove: () => sessionStorage.removeItem(TOKEN_KEY),
};

/* Sends GET, or POST if there is a body, and returns a promise of the decoded JSON response. The promise is rejected
   with a Problem if the request fails. */
export async function request(path, body) {
  const headers = {};
  if (token.get()) headers.authorization = `Bearer ${token.get()}`;
  const options = {
    headers, signal: AbortSignal.timeout(1000 * TIMEOUT_SECONDS), cache: "no-store", credentials: "omit",
  };
  if (body !== undefined) {
    headers["content-type"] = "application/json";
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  }
  let response;
  try {
    response = await fetch(path, options);
    if (response.ok) return await response.json();
  } catch (error) {
    if (error instanceof SyntaxError) {
      throw new Problem(response.status, "not-json", `the response to ${path} is not JSON`);
    }
    throw new Problem(0, error.name === "TimeoutError" ? "timeout" : "unreachable", error.message);
  }
  const { type = "", detail } = await response.json().catch(() => ({}));
  throw new Problem(response.status, type.split(":").pop(), detail ?? response.statusText);
}

/* Template tag for paths, which encodes the ids in a path. Throws a Problem for the ids “.” and “..”, because browsers
   remove such path segments, even if they are encoded, and would request another path. */
export function path(strings, ...ids) {
  const removed = ids.find((id) => id === "." || id === "..");
  if (removed !== undefined) {
    const advice = "Use locb watch or the API instead.";
    throw new Problem(400, "dot-segment", `Browsers cannot request the id “${removed}”. ${advice}`);
  }
  return String.raw({ raw: strings }, ...ids.map(encodeURIComponent));
}

/* Repeated requests while the page is visible. Each failed request doubles the pause, up to MAX_PAUSE_SECONDS or twice
   the normal pause, whichever is longer. */
export class Polling {
  /* seconds: normal pause between requests. load() sends a request and returns a promise of the data. After each
     request, Polling calls onData(data) or onProblem(problem, seconds until the next attempt). */
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
    this.attempt += 1; // a response that is still in progress is ignored
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
      this.pause = Math.min(2 * this.pause, Math.max(2 * this.seconds, MAX_PAUSE_SECONDS));
      this.onProblem(problem, this.pause);
    }
    if (this.active && !document.hidden) this.timer = setTimeout(() => this.poll(), 1000 * this.pause);
  }
}
