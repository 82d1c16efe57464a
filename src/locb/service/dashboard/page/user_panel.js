/* Panel "User": estimate, groups, similar users, recent decisions with explanations, and preview. */

import { path, request } from "./api.js";
import { Chart } from "./charts.js";
import { explainDecisions, LEGEND_INDENT } from "./score_chart.js";
import { DECISIONS_SUMMARY, formatEstimate, formatMembership, formatSources, groupName, mergeGroups, NO_EXPLANATIONS,
  SCREENED } from "./sentences.js";
import { stateBadge } from "./groups_panel.js";
import { userLink } from "./map_panel.js";
import { Preview } from "./preview.js";

const { byId, create, createTable, formatClock, formatCount, formatNumber, formatPercent, formatTime, setContent }
  = window.locbUi;
const MAX_FEATURES = 24; // features in the chart of the estimate
const REWARD_STATUS = {
  pending: ["pending", ""],
  received: ["rewarded", "good"],
  default: ["default", "warn"],
  corrected: ["corrected", "info"],
};

const linkTo = (user) => (user === null ? "–" : create("a", { href: userLink(user), className: "name" }, user));

const GROUP_COLUMNS = [
  { name: "seed", title: "Seed", show: (row) => linkTo(row.seed) },
  { name: "size", title: "Users", number: true, show: (row) => formatCount(row.size) },
  { name: "returned", title: "State", show: (row) => stateBadge(row.returned) },
];
const PROBABLE_GROUP_COLUMNS = [
  { name: "seed", title: "Seed", hint: "The user around whom the group is built.", show: ({ seed, seeds }) =>
    create("span", {}, seed === null ? groupName(seed) : linkTo(seed),
      seeds.length ? create("span", { className: "muted small block" }, `same group: ${seeds.join(", ")}`) : null) },
  { name: "probability", title: "Probability", number: true,
    hint: "Probability that the user belongs to the group, according to the policy.",
    show: (row) => formatPercent(row.probability) },
];
const SIMILAR_COLUMNS = [
  { name: "user", title: "User", show: (row) => linkTo(row.user) },
  { name: "distance", title: "Distance", number: true, show: (row) => formatNumber(row.distance) },
  { name: "radius", title: "Radius of the estimate", number: true, show: (row) => formatNumber(row.radius) },
];
const DECISION_COLUMNS = [
  { name: "time", title: "Time", show: (row) => create("span", { className: "nowrap" }, formatTime(row.time)) },
  { name: "arm", title: "Arm", show: (row) => create("span", { className: "name" }, row.arm) },
  { name: "reward_status", title: "Reward status", show: (row) => {
    const [text, level] = REWARD_STATUS[row.reward_status] ?? [row.reward_status, ""];
    return create("span", { className: `badge ${level}` }, text);
  } },
  { name: "reward", title: "Reward", number: true,
    show: (row) => (row.reward === null ? "–" : formatNumber(row.reward, 2)) },
  { name: "score", title: "Score", number: true, value: (row) => row.response.ranking[0]?.score,
    show: (row) => formatNumber(row.response.ranking[0]?.score) },
  { name: "second", title: "Second best", sort: false, show: secondBest,
    hint: "Second arm of the ranking, and its score minus the score of the recommended arm" },
  { name: "sources", title: "Evidence", sort: false, show: ({ response: { explanation } }) =>
    create("span", { className: "sources small" }, formatSources(explanation?.sources ?? []) || "–",
      explanation?.screened ? create("span", { className: "block" }, SCREENED) : null) },
];

function secondBest({ response: { ranking: [first, second] } }) {
  if (!second) return "–";
  const gap = first.score - second.score;
  const text = Math.abs(gap) < 0.0005 ? "equal score" : `${gap > 0 ? "−" : "+"}${formatNumber(Math.abs(gap))}`;
  return create("span", { className: "name second-best" }, `${second.arm}, ${text}`);
}

/* Returns the row of a feature in the chart of the estimate. A negative index −j means the weight −theta[j]. */
function estimateRow(feature, index, theta, intervals) {
  const position = Math.abs(index);
  const isNegated = index < 0;
  const bounds = intervals?.[position] ?? [null, null];
  const [low, high] = isNegated && bounds[0] !== null ? [-bounds[1], -bounds[0]] : bounds;
  return { feature, value: isNegated ? -theta[position] : theta[position], low, high };
}

export class UserPanel {
  constructor() {
    this.user = null;
    this.reload = () => {};
    this.estimateChart = new Chart(byId("estimate-chart"), "estimate");
    this.decisionsChart = new Chart(byId("decisions-chart"), "parts", { legendIndent: LEGEND_INDENT });
    this.similar = createTable(byId("user-similar"), SIMILAR_COLUMNS, null, { caption: "Similar users",
      key: (row) => row.user, sort: ["distance", "ascending"], tall: true, empty: "No similar users yet." });
    this.decisions = createTable(byId("decisions-table"), DECISION_COLUMNS, null, { caption: "Recent decisions",
      key: (row) => row.decision_id, sort: ["time", "descending"], empty: "No decisions yet." });
    this.preview = new Preview();
    byId("user-search").addEventListener("submit", (event) => {
      event.preventDefault();
      location.hash = userLink(byId("user-text").value);
    });
  }

  open(user) {
    if (user === this.user && user !== null) return;
    this.user = user || null;
    byId("user").hidden = true;
    byId("user-text").value = this.user ?? "";
    setContent(byId("user-title"), this.user ?? "User");
    setContent(byId("user-message"),
      this.user === null ? "Enter a user id, or select a user on the map or in a group." : "Loading …");
    if (this.user !== null) this.preview.open(this.user);
  }

  async load() {
    const { user } = this;
    if (user === null) return null;
    const [detail, similar, decisions] = await Promise.all([
      request(path`/v1/users/${user}`), request(path`/v1/users/${user}/similar?limit=10`),
      request(path`/v1/users/${user}/decisions?limit=20`)]);
    return { detail, similar: similar.similar, decisions: decisions.decisions };
  }

  handleProblem(problem) {
    if (problem.status !== 404 && problem.type !== "dot-segment") return false;
    byId("user").hidden = true;
    setContent(byId("user-message"), problem.status !== 404 ? problem.message
      : `Unknown user “${this.user}”. Ids are case-sensitive, and spaces are significant.`);
    return true;
  }

  show(data) {
    if (data === null) return;
    const { detail, similar, decisions } = data;
    byId("user").hidden = false;
    setContent(byId("user-message"), detail.served === 0 ? "No rewards yet."
      : create("a", { href: `#map/${encodeURIComponent(detail.user)}` }, "Show on the map"));
    this.showCards(detail);
    this.showEstimate(detail);
    this.showGroups(detail);
    this.similar.update(similar);
    this.decisions.update(decisions);
    this.preview.offerArms(decisions);
    this.showExplanations(decisions);
  }

  /* Shows the groups with their probabilities, or with their states if the policy has no probabilities. */
  showGroups({ clusters, no_cluster_probability: alone }) {
    const hasProbabilities = alone !== null;
    if (this.groups === undefined || this.hasProbabilities !== hasProbabilities) {
      this.hasProbabilities = hasProbabilities;
      const [columns, sort] = hasProbabilities ? [PROBABLE_GROUP_COLUMNS, ["probability", "descending"]]
        : [GROUP_COLUMNS, ["size", "ascending"]];
      this.groups = createTable(byId("user-groups"), columns, null, { caption: "Groups of the user",
        key: (row) => row.seed, sort, tall: true, empty: "In no group yet." });
    }
    this.groups.update(hasProbabilities ? mergeGroups(clusters) : clusters);
  }

  showCards(detail) {
    const { served, rewards, mean_reward: mean, radius, clusters } = detail;
    const final = clusters.filter(({ returned }) => returned).length;
    const membership = formatMembership(detail);
    const cards = [
      ["Rewards learned", formatCount(served), `${formatCount(rewards)} in the log`],
      ["Mean reward", formatNumber(mean), "of all decisions with a reward"],
      membership ? ["Group", ...membership] : ["Groups", formatCount(clusters.length), `${formatCount(final)} final`],
      ["Radius of the estimate", formatNumber(radius), "uncertainty of the estimated preferences"],
    ];
    setContent(byId("user-cards"), cards.map(([title, figure, text]) =>
      create("div", {}, create("dt", {}, title), create("dd", {}, figure), create("dd", {}, text))));
  }

  showEstimate({ theta, intervals, feature_indices: indices }) {
    if (!theta) return this.estimateChart.show({ empty: "The policy does not report estimates." });
    const isNamed = Object.keys(indices).length > 0;
    const features = isNamed ? Object.entries({ intercept: 0, ...indices })
      : theta.map((_, index) => [String(index), index]);
    const all = features.map(([name, index]) => estimateRow(name, index, theta, intervals));
    const rows = all.sort((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, MAX_FEATURES)
      .map((row, order) => ({ ...row, order }));
    return this.estimateChart.show({
      rows: { features: rows }, label: "Estimated preferences by feature",
      summary: formatEstimate(rows, all.length, isNamed, Boolean(intervals)),
    });
  }

  showExplanations(decisions) {
    const explained = decisions.filter(({ response }) => response.explanation);
    if (!explained.length) {
      const empty = decisions.length ? NO_EXPLANATIONS : "No decisions yet.";
      return this.decisionsChart.show({ empty });
    }
    const content = explainDecisions(explained.map(({ arm, time, response }) =>
      ({ arm, name: `${arm} · ${formatClock(time)}`, explanation: response.explanation })));
    this.preview.featureNames = content.params.names;
    return this.decisionsChart.show({
      ...content, label: "Score of each recommended arm by feature and bonus",
      summary: DECISIONS_SUMMARY,
    });
  }
}
