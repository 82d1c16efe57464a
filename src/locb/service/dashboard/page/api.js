/* What the page asks the service, and the token it does so with, which is kept for this tab only. */

const KEPT = "locb-token";
const PATIENCE = 15000; // milliseconds for an answer

/* An answer that is not the one hoped for; status 0: there was none. */
export class Problem extends Error {
  constructor(status, kind, detail) {
    super(detail);
    this.status = status;
    this.kind = kind;
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEPT),
  set: (text) => sessionStorage.setItem(KEPT, text),
  forget: () => sessionStorage.removeItem(KEPT),
};

/* The JSON at a path, or a Problem. */
export async function ask(path, body) {
  const headers = {};
  const held = token.get();
  if (held) headers.authorization = `Bearer ${held}`;
  const options = { headers, signal: AbortSignal.timeout(PATIENCE), cache: "no-store", credentials: "omit" };
  if (body !== undefined) {
    headers["content-type"] = "application/json";
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  }
  let response;
  try {
    response = await fetch(path, options);
    if (response.ok) return await response.json();
  } catch (error) {
    if (error instanceof SyntaxError) throw new Problem(502, "not-json", "the answer is not one of this service");
    throw new Problem(0, error.name === "TimeoutError" ? "slow" : "unreachable", error.message);
  }
  const told = await response.json().catch(() => ({}));
  throw new Problem(response.status, (told.type ?? "").split(":").pop(), told.detail ?? response.statusText);
}

/* A path with names in it, each encoded: ids are any text. A dot alone would be taken for a step. */
export function path(strings, ...names) {
  const encoded = names.map((name) => encodeURIComponent(name).replace(/^\.+$/, (dots) => "%2E".repeat(dots.length)));
  return String.raw({ raw: strings }, ...encoded);
}
