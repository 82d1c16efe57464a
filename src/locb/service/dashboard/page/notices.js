/* Notices above the panels: which states of the service are reported, at which thresholds, and messages about failed
   requests. */

import { TIMEOUT_SECONDS } from "./api.js";

const { formatCount, formatTime } = window.locbUi;

/* Returns the notices about the state of the service as pairs [level, text]. */
export function statusNotices(status) {
  const notices = [];
  const { store, snapshot } = status;
  const error = store.error ?? (status.status === "ok" ? null : status.detail ?? status.status);
  if (error) {
    notices.push(["bad", `The store is not writable: ${error}. Until the store is writable again, the service rejects `
      + "requests for decisions and rewards. This page shows the last known state."]);
  } else if (store.queued_requests >= 100) {
    notices.push(["warn", `The store is slow: ${formatCount(store.queued_requests)} requests are queued.`]);
  }
  if (status.backfilling) {
    notices.push(["info", "Statistics are being read from the log. In the meantime, the history, means and pending "
      + "rewards are incomplete."]);
  }
  if (status.rebuilding) {
    notices.push(["info", "A user was erased. The policy is being rebuilt from the log. In the meantime, the service "
      + "uses the previous policy."]);
  }
  if (status.reward_scale_problem) {
    notices.push(["warn", `The policy assumes rewards of about 0 to 1, but ${status.reward_scale_problem}. Choices and `
      + "groups may be poor. Start the service with a new store and with --reward-range low,high, where low and high "
      + "are the lowest and the highest possible reward."]);
  }
  if (status.decisions === 0 && !status.backfilling) {
    notices.push(["info", "No decisions yet. Send requests to POST /v1/recommend."]);
  } else if (status.rewards === 0 && !status.backfilling) {
    notices.push(["info", "No rewards yet. Send rewards to POST /v1/reward. The service learns only from rewards."]);
  }
  if (snapshot === null && store.position > 200000) {
    notices.push(["warn", "There is no snapshot. The next startup replays all events, which can take a long time. "
      + "The messages on the standard error of the service may state why no snapshot was written. You can also set a "
      + "smaller --snapshot-every."]);
  }
  return notices;
}

/* Returns the notice for a failed request of the state of the service as a pair [level, text].
   lastTime: Unix time of the last response; null if there was none. */
export function disconnectedNotice(problem, retrySeconds, lastTime) {
  const age = lastTime === null ? "" : ` This page shows the state at ${formatTime(lastTime)}.`;
  return ["bad", formatProblem(problem, retrySeconds) + age];
}

/* Returns the message for a failed request. retrySeconds: seconds until the next attempt; omit it if there is none. */
export function formatProblem(problem, retrySeconds) {
  const retry = retrySeconds ? " Retrying automatically." : "";
  if (problem.status === 0 && problem.type === "timeout") {
    return `The service did not respond within ${TIMEOUT_SECONDS} seconds.${retry}`;
  }
  if (problem.status === 0) return `The service is unreachable. It may be restarting.${retry}`;
  if (problem.status === 429) return `The service rejected the request: ${problem.message}.${retry}`;
  if (problem.status === 503) return `The service is unavailable: ${problem.message}.${retry}`;
  if (problem.type === "dot-segment") return problem.message;
  if (problem.status === 404) return `Not found: ${problem.message}.`;
  if (problem.status === undefined) return `The page could not show the response: ${problem.message}.`;
  return `Request failed with status ${problem.status}: ${problem.message}.${retry}`;
}

/* Returns the reason why a token is required; null if a token would not help. */
export function formatTokenReason(problem, hadToken) {
  if (problem.status === 401 && hadToken) return "This token is not valid. Enter another token.";
  if (problem.status === 401) return "This service requires a token.";
  if (problem.status === 403 && hadToken) return "This token does not have the scope “read”. Enter another token.";
  return null;
}
