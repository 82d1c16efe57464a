/* Sentences for what people should know, each for one state. */

const { count, number, time } = window.look;

export function ofProblem(problem, seconds) {
  const again = seconds ? " The page goes on asking, at least every ten seconds." : "";
  if (problem.status === 0 && problem.kind === "slow") return `The service takes very long to answer.${again}`;
  if (problem.status === 0) return `The service does not answer: it may be restarting.${again}`;
  if (problem.status === 429) return `The service has too many requests at once.${again}`;
  if (problem.status === 503) return `The service cannot tell now: ${problem.message}.${again}`;
  if (problem.status === 404) return `This service does not tell that: ${problem.message}.`;
  if (problem.status === undefined) return `The page could not show the answer: ${problem.message}.`;
  return `The service could not answer (${problem.status}): ${problem.message}.${again}`;
}

/* Why a token is asked for; null if a token would not help. */
export function ofToken(problem, hadToken) {
  if (problem.status === 401 && hadToken) return "The service does not know this token. Give another one.";
  if (problem.status === 401) return "This service tells what it knows to those who have a token.";
  if (problem.status === 403 && hadToken) return "This token may not read. Give one with the scope read.";
  return null;
}

/* What is to be known of a service that answers: [kind, sentence]. */
export function ofNow(now) {
  const told = [];
  const { store, snapshot } = now;
  const failure = store.error ?? (now.status === "ok" ? null : now.detail ?? now.status);
  if (failure) {
    told.push(["bad", `The store cannot be written: ${failure}. Decisions and rewards are refused until it can; `
      + "what is shown was learned before."]);
  } else if (store.queued_requests >= 100) {
    told.push(["warn", `The store is behind: ${count(store.queued_requests)} requests wait for the disk.`]);
  }
  if (now.backfilling) {
    told.push(["info", "The past of the log is still being read: totals and means are not complete yet."]);
  }
  if (now.rebuilding) {
    told.push(["info", "A user was erased: the policy is being made anew from the log. Until then the old one "
      + "serves."]);
  }
  if (now.decisions === 0 && !now.backfilling) {
    told.push(["info", "Nothing was decided yet. Ask at POST /v1/recommend, and this page begins to fill."]);
  } else if (now.rewards === 0 && !now.backfilling) {
    told.push(["info", "No reward has come yet. Send them to POST /v1/reward: without them nothing is learned."]);
  }
  if (snapshot === null && store.position > 200000) {
    told.push(["warn", "There is no snapshot: the next start reads the whole log."]);
  }
  return told;
}

const SPANS = { hour: "the last hour", day: "the last day", month: "the last 30 days", all: "all the time" };

/* How the mean reward is, and how it has changed. */
export function ofHistory(history) {
  const { total, baseline, change } = history;
  if (!total || total.mean === null) return `No reward came in ${SPANS[history.span]}.`;
  const mean = `Mean reward in ${SPANS[history.span]}: ${number(total.mean)}${ofInterval(total)}, from `
    + `${count(total.rewards)} reward${total.rewards === 1 ? "" : "s"}.`;
  if (!baseline) return mean;
  const period = `${time(baseline.from)} to ${time(baseline.to)}`;
  if (baseline.mean === null) return `${mean} No reward came in the baseline period, ${period}.`;
  const base = `In the baseline period, ${period}, it was ${number(baseline.mean)}${ofInterval(baseline)}.`;
  if (!change || change.mean === null) {
    return `${mean} ${base} There are too few rewards outside that period to compare it with.`;
  }
  const sign = (value) => (value > 0 ? "+" : "") + number(value);
  const verdict = change.low === null ? "too few rewards to tell how sure that is"
    : change.low > 0 ? "it has risen" : change.high < 0 ? "it has fallen" : "that may be chance";
  const interval = change.low === null ? "" : ` (95% interval ${sign(change.low)} to ${sign(change.high)})`;
  // The period itself is left out of what it is compared with.
  const overlaps = baseline.to > total.from && baseline.from < total.to;
  const rest = overlaps ? ` Without that period it is ${number(baseline.mean + change.mean)}.` : "";
  return `${mean} ${base}${rest} The difference is ${sign(change.mean)}${interval}: ${verdict}.`;
}

function ofInterval({ low, high }) {
  return low === null ? "" : ` (95% interval ${number(low)} to ${number(high)})`;
}

/* Whose rewards a decision rests on. */
export function ofLenders(sources) {
  const whose = { user: () => "their own", everyone: () => "everyone", population: () => "the population" };
  return sources.filter((one) => one.weight > 0.005).sort((a, b) => b.weight - a.weight).map((one) => {
    const who = (whose[one.kind] ?? (() => (one.seed === null ? `a ${one.kind}` : `the ${one.kind} of ${one.seed}`)))();
    const users = one.users > 1 ? `${count(one.users)} users, ` : "";
    return `${who} (${users}${one.observations === null ? "" : `${count(one.observations)} rewards, `}`
      + `${number(100 * one.weight, 0)}%)`;
  }).join("; ");
}
