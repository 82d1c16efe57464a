/* Requests to the API, and the token, which is stored for this browser tab only. */

const TOKEN_KEY = "locb-token";
const TIMEOUT_MILLISECONDS = 15000;

/* Failed request. status is 0 if there was no response; type is the last part of the problem type. */
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

/* Returns the JSON response of GET, or of POST if there is a body; throws a Problem. */
export async function request(path, body) {
  const headers = {};
  if (token.get()) headers.authorization = `Bearer ${token.get()}`;
  const options = {
    headers, signal: AbortSignal.timeout(TIMEOUT_MILLISECONDS), cache: "no-store", credentials: "omit",
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
    if (error instanceof SyntaxError) throw new Problem(502, "not-json", "the response is not JSON");
    throw new Problem(0, error.name === "TimeoutError" ? "timeout" : "unreachable", error.message);
  }
  const { type = "", detail } = await response.json().catch(() => ({}));
  throw new Problem(response.status, type.split(":").pop(), detail ?? response.statusText);
}

/* Template tag for paths: encodes the ids in a path. Dots alone are encoded too, because URLs resolve them. */
export function path(strings, ...ids) {
  const encoded = ids.map((id) => encodeURIComponent(id).replace(/^\.+$/, (dots) => "%2E".repeat(dots.length)));
  return String.raw({ raw: strings }, ...encoded);
}
