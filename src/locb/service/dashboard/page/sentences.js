/* Sentences of the panels about history, evidence, scores, estimates and groups, and formats of sizes and durations.
   notices.js has the notices and the messages about failed requests. */

import { SPANS } from "./spans.js";

const { formatCount, formatNumber, formatPercent, formatTime } = window.locbUi;

export const plural = (count, noun) => `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;

const signed = (value) => (value > 0 ? "+" : "") + formatNumber(value);

function formatInterval({ low, high }, format = formatNumber) {
  return low === null ? "" : ` (95% interval ${format(low)} to ${format(high)})`;
}

/* Returns sentences about the mean reward and its change from the baseline period. */
export function formatHistory(history) {
  const { total, baseline, change } = history;
  const { period: spanText } = SPANS[history.span];
  if (!total || total.mean === null) return `No rewards in ${spanText}.`;
  const mean = `Mean reward in ${spanText}: ${formatNumber(total.mean)}${formatInterval(total)}, from `
    + `${plural(total.rewards, "reward")}.`;
  if (!baseline) return mean;
  const period = `${formatTime(baseline.from)} to ${formatTime(baseline.to)}`;
  if (baseline.mean === null) return `${mean} No rewards in the baseline period (${period}).`;
  const base = `Baseline (${period}): ${formatNumber(baseline.mean)}${formatInterval(baseline)}.`;
  if (!change || change.mean === null) {
    return `${mean} ${base} No comparison: ${spanText} has no rewards outside the baseline period.`;
  }
  const verdict = change.low === null ? "too few rewards for an interval"
    : change.low > 0 ? "significant increase" : change.high < 0 ? "significant decrease" : "not significant";
  // The service compares the baseline period with the part of the span outside the baseline period.
  const overlaps = baseline.to > total.from && baseline.from < total.to;
  const rest = overlaps ? ` Mean reward in ${spanText} outside the baseline period: `
    + `${formatNumber(baseline.mean + change.mean)}.` : "";
  const changed = overlaps ? "Change from the baseline to this mean" : "Change from the baseline";
  return `${mean} ${base}${rest} ${changed}: ${signed(change.mean)}${formatInterval(change, signed)}, ${verdict}.`;
}

/* Returns a text that lists the evidence sources of an estimate, largest weight first. Sources with a weight of 0.5% or
   less are omitted. */
export function formatSources(sources) {
  const names = { user: "own rewards", everyone: "everyone", population: "population prior", cluster: "group",
    component: "group", neighbourhood: "group", other: "other groups" };
  return sources.filter(({ weight }) => weight > 0.005).sort((a, b) => b.weight - a.weight).map((source) => {
    // A neighbourhood without a seed (CAB, RCLUMB) is not a group of the policy.
    const isGroup = source.kind !== "neighbourhood" || source.seed !== null;
    const name = isGroup ? names[source.kind] ?? source.kind : "similar users";
    const seed = source.seed === null || source.kind === "user" ? "" : ` of ${source.seed}`;
    const users = source.users > 1 ? `${formatCount(source.users)} users, ` : "";
    const rewards = source.observations === null ? "" : `${plural(source.observations, "reward")}, `;
    return `${name}${seed} (${users}${rewards}${formatNumber(100 * source.weight, 0)}%)`;
  }).join("; ");
}

const SURE = 0.9; // as in dashboard/state_view.py
const MIN_LIKELY = 0.5; // a group with a lower probability is not shown as the group of the user
export const SCREENED = "The safety screen replaced the arm with the highest score, because the user's own rewards "
  + "indicate that another arm may be clearly better.";

export const NO_SCORES = "The policy does not report scores.";
export const NO_EXPLANATIONS = "The policy does not explain its decisions.";
const PARTS = "the intercept and the exploration bonus. The line marks the score, which is the sum of these parts.";
export const DECISIONS_SUMMARY =
  `One bar per decision, newest first: contributions of the features of the arm, ${PARTS}`;
export const RECOMMENDED_SUMMARY = `Contributions of the features of the recommended arm, ${PARTS}`;

/* Returns the sentences after the name of a recommended arm: its score, the evidence and the safety screen. */
export function formatRecommendation({ score, estimate, bonus }, explanation) {
  const parts = score === null ? ""
    : ` Score ${formatNumber(score)} = estimate ${formatNumber(estimate)} + exploration `
    + `bonus ${formatNumber(bonus)}.`;
  const sources = explanation?.sources ?? [];
  return parts + (sources.length ? ` Evidence: ${formatSources(sources)}.` : "")
    + (explanation?.screened ? ` ${SCREENED}` : "");
}

/* Returns the summary of the chart of the first arms of a ranking. */
export function formatRanking(shown, total) {
  const which = shown === total ? "all arms" : `the best ${shown} of ${total} arms`;
  return `Estimate and exploration bonus of ${which}. The line marks the score, which is their sum.`;
}

/* Returns the summary of the chart of an estimate. rows: the weights of the chart with their intervals; total: number
   of all features. */
export function formatEstimate(rows, total, isNamed, hasIntervals) {
  const names = isNamed ? "features named in recent requests" : "features, labelled with their indices";
  const which = rows.length < total
    ? `The ${rows.length} weights with the largest absolute values, of ${total} ${names}.`
    : `All ${names}, sorted by absolute weight.`;
  const significant = rows.filter(({ low, high }) => low > 0 || (high !== null && high < 0)).length;
  return which + (hasIntervals ? ` Lines: 95% intervals; ${significant} of ${rows.length} exclude 0.` : "");
}

/* Returns the groups of a user by decreasing probability: [{seed, seeds, probability}]. Groups that count as one group
   are one entry; seeds are those of its other groups. A policy without probabilities has no entries. */
export function mergeGroups(clusters) {
  const merged = new Map();
  for (const { seed, same_as: original, probability } of clusters) {
    if (probability === null) continue;
    const name = original ?? seed;
    const entry = merged.get(name) ?? { seed: name, seeds: [], probability };
    if (seed !== name) entry.seeds.push(seed);
    merged.set(name, entry);
  }
  return [...merged.values()].sort((a, b) => b.probability - a.probability);
}

// The group without a seed is the group "everyone" of ELOC.
export const groupName = (seed) => (seed === null ? "everyone" : seed);

/* Returns the most probable group of a user as [short text, sentence]; null for a policy without probabilities. */
export function formatMembership({ served, clusters, no_cluster_probability: alone }) {
  if (alone === null) return null;
  const [best] = mergeGroups(clusters);
  if (!served) return ["unknown", "no rewards yet"];
  const unlikely = "No group has a probability of 50% or more.";
  const none = `Probability that the user is in no group: ${formatPercent(alone)}.`;
  if (!best) return ["unknown", `${unlikely} ${none}`];
  const probability = formatPercent(best.probability);
  const group = best.seed === null ? `the group “${groupName(null)}”` : `the group of ${best.seed}`;
  const sentence = `belongs to ${group} with a probability of ${probability}`;
  if (best.probability < MIN_LIKELY) {
    return ["unknown", `${unlikely} Most probable: ${group} (${probability}). ${none}`];
  }
  const isSure = best.seed === null || best.probability >= SURE;
  return [isSure ? groupName(best.seed) : `${best.seed}?`, sentence];
}

/* Returns a number of bytes as text, in bytes, kB (1,000 bytes), MB, GB or TB. */
export function formatBytes(size) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  const power = size < 1 ? 0 : Math.min(4, Math.floor(Math.log10(size) / 3));
  const value = size / 1000 ** power;
  return `${formatNumber(value, power && value < 100 ? 1 : 0)} ${units[power]}`;
}

/* Returns a duration as text, in days, hours, minutes or seconds: the largest unit that fits. */
export function formatDuration(seconds) {
  const [size, unit] = seconds >= 86400 ? [86400, "day"] : seconds >= 3600 ? [3600, "hour"]
    : seconds >= 60 ? [60, "minute"] : [1, "second"];
  return plural(seconds / size, unit);
}
