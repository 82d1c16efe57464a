/* Panel "Status": rates, totals, mean reward and decisions over time, and state of the store. */

import { request } from "./api.js";
import { Chart } from "./charts.js";
import { formatBytes, formatDuration, formatHistory, plural } from "./sentences.js";
import { SPANS } from "./spans.js";

const { byId, create, formatCount, formatNumber, formatPercent, formatTime, setContent } = window.locbUi;
const STORES = { sqlite: "SQLite", postgresql: "PostgreSQL" };
const DAY = 86400; // seconds
const MIN_STEPS = 12; // minimum number of time steps in the range of a chart
const MAX_DOTS = 60; // if a chart has more points, only isolated points are drawn as dots
const KINDS = ["using a group", "without a group", "unknown"]; // DECISION_KINDS of dashboard_charts.py

export class StatusPanel {
  constructor() {
    this.span = "hour";
    this.reload = () => {};
    this.rewardChart = new Chart(byId("reward-chart"), "reward");
    this.trafficChart = new Chart(byId("traffic-chart"), "decisions");
    this.cards = new Map();
    for (const [span, { title }] of Object.entries(SPANS)) {
      byId("spans").append(create("button", { type: "button", className: "button small", "data-span": span,
        "aria-pressed": String(span === this.span), onclick: () => this.selectSpan(span) }, title));
    }
    byId("baseline").addEventListener("submit", (event) => {
      event.preventDefault();
      this.reload();
    });
    byId("baseline-kind").addEventListener("change", () => {
      byId("baseline-custom").hidden = byId("baseline-kind").value !== "custom";
      if (byId("baseline-kind").value !== "custom") this.reload();
    });
  }

  selectSpan(span) {
    this.span = span;
    for (const button of byId("spans").querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.dataset.span === span));
    }
    const isWhole = SPANS[span].seconds === null;
    byId("baseline-kind").querySelector("[value=previous]").disabled = isWhole;
    if (isWhole && byId("baseline-kind").value === "previous") byId("baseline-kind").value = "none";
    this.reload();
  }

  // Status, every two seconds

  /* Shows a figure on the card of this title. Cards with the same key replace each other. */
  setCard(title, figure, detail, key = title) {
    if (!this.cards.has(key)) {
      const parts = [create("dt"), create("dd"), create("dd")];
      byId("status-cards").append(create("div", {}, parts));
      this.cards.set(key, parts);
    }
    const [titleElement, figureElement, detailElement] = this.cards.get(key);
    if (titleElement.textContent !== title) titleElement.textContent = title;
    if (figureElement.textContent !== figure) figureElement.textContent = figure;
    if (detailElement.textContent !== detail) detailElement.textContent = detail;
  }

  showStatus(status) {
    const { clusters } = status;
    setContent(byId("status-about"),
      `Policy ${status.policy}, version ${status.version}, running since ${formatTime(status.started_at)}`);
    this.setCard("Decisions per second", formatNumber(status.decisions_per_second, 1),
      `${formatCount(status.decisions)} in total`);
    this.setCard("Rewards per second", formatNumber(status.rewards_per_second, 1),
      `${formatCount(status.rewards)} in total`);
    this.setCard("Users with rewards", formatCount(status.rewarded_users),
      `${plural(status.users, "user")} in total`);
    this.setCard("Decisions using a group", formatPercent(status.cluster_based_share), "in the last hour");
    this.setCard("Pending rewards", formatCount(status.pending_rewards),
      "decisions of the last 24 hours without a reward or default reward");
    if (status.sure_users !== null) {
      this.setCard("Users with a group probability of at least 90%",
        formatPercent(status.sure_users / Math.max(status.rewarded_users, 1)),
        `${formatCount(status.sure_users)} of ${plural(status.rewarded_users, "user")} with rewards`, "groups");
    } else {
      this.setCard("Final groups", formatCount(clusters.returned),
        `${formatCount(clusters.forming)} forming (can still change)`, "groups");
    }
    this.showStore(status);
  }

  showStore({ store, snapshot }) {
    const size = store.bytes === null ? "" : `, ${formatBytes(store.bytes)}`;
    const pairs = [
      ["Store", `${STORES[store.kind] ?? store.kind}${size}, ${plural(store.position, "event")}`],
      ["Queue", store.error ?? `${plural(store.queued_requests, "request")} waiting`],
      ["Snapshot", snapshot === null ? "none yet: the next startup replays all events" : formatSnapshot(snapshot)],
    ];
    const key = JSON.stringify(pairs);
    if (key === this.shownStore) return;
    this.shownStore = key;
    setContent(byId("store"), pairs.flatMap(([name, text]) => [create("dt", {}, name), create("dd", {}, text)]));
  }

  // History, every ten seconds

  async load() {
    const query = new URLSearchParams({ span: this.span });
    if (byId("baseline-kind").value === "previous") {
      query.set("baseline", "previous");
    } else {
      const [from, to] = await this.baselinePeriod() ?? [];
      if (to) query.set("baseline_from", from);
      if (to) query.set("baseline_to", to);
    }
    return request(`/v1/history?${query}`);
  }

  /* Returns a promise of the start and end of the chosen baseline in Unix time; of null if there is no baseline. */
  async baselinePeriod() {
    const kind = byId("baseline-kind").value;
    if (kind === "first") {
      const { points } = await request("/v1/history?span=all");
      return points.length ? [points[0].time, points[0].time + DAY] : null;
    }
    const [from, to] = ["baseline-from", "baseline-to"].map((id) => Date.parse(byId(id).value) / 1000);
    return kind === "custom" && to > from ? [from, to] : null;
  }

  show(history) {
    const { points, baseline } = history;
    const isIncomplete = byId("baseline-kind").value === "custom" && !baseline;
    setContent(byId("reward-summary"),
      formatHistory(history) + (isIncomplete ? " Enter a start and a later end of the baseline period." : ""));
    if (!points.length) {
      const empty = "No decisions or rewards in this period.";
      this.rewardChart.show({ empty });
      this.trafficChart.show({ empty });
      return;
    }
    const range = chartRange(history);
    this.showRewards(history, range);
    this.showTraffic(history, range);
  }

  showRewards({ points, step_seconds: step, baseline }, range) {
    this.rewardChart.show({
      rows: { points: rewardRows(points, step), baseline: baselineRows(baseline, range) },
      params: range,
      label: "Mean reward over time with 95% confidence interval",
      summary: `Shaded: 95% confidence interval of each time step.${
        baseline ? " Dashed: mean reward of the baseline period." : ""}`,
    });
  }

  showTraffic({ points, step_seconds: step }, range) {
    const steps = points.flatMap((point) => trafficRows(point, step));
    const known = points.filter((point) => point.cluster_based !== null);
    const unknown = sumOf(points, "decisions") - sumOf(known, "decisions");
    const rest = unknown ? `, and for ${formatCount(unknown)} it is unknown whether they used a group` : "";
    const kinds = KINDS.filter((kind, index) => index < 2 || steps.some((row) => row.kind === kind));
    this.trafficChart.show({
      rows: { steps },
      params: { ...range, legend_values: kinds },
      label: "Decisions over time",
      summary: `${plural(sumOf(points, "decisions"), "decision")} in steps of ${formatDuration(step)}; `
        + `${formatCount(sumOf(known, "cluster_based"))} used a group${rest}.`,
    });
  }
}

/* Returns start and end of the charts in milliseconds: the part of the span that has data, at least MIN_STEPS steps. */
function chartRange({ points, step_seconds: step, total, span }) {
  const end = Math.max(total.to, points.at(-1).time + step);
  const start = Math.min(points[0].time, end - MIN_STEPS * step);
  return { start: 1000 * (span === "all" ? start : Math.max(total.from, start)), end: 1000 * end };
}

function baselineRows(baseline, { start, end }) {
  if (!baseline || baseline.mean === null) return [];
  const [from, to] = [baseline.from, baseline.to].map((time) => Math.min(end, Math.max(start, 1000 * time)));
  return [{ from, to, mean: baseline.mean, until: end }];
}

/* Returns the points with times in milliseconds. Where steps are missing, an empty row interrupts the line. */
function rewardRows(points, step) {
  const isGap = (point, next) => !point || !next || next.time - point.time > 1.5 * step;
  return points.flatMap((point, index) => {
    const [before, after] = [points[index - 1], points[index + 1]];
    const isolated = points.length <= MAX_DOTS || (isGap(before, point) && isGap(point, after));
    const row = { ...point, time: 1000 * point.time, isolated };
    const empty = { time: row.time + 1000 * step, mean: null, low: null, high: null };
    return after && isGap(point, after) ? [row, empty] : [row];
  });
}

function trafficRows(point, step) {
  const times = { time: 1000 * point.time, until: 1000 * (point.time + step) };
  const { cluster_based: clusterBased, decisions } = point;
  const bounds = clusterBased === null ? [0, 0, 0, decisions] : [0, clusterBased, decisions, decisions];
  return KINDS.map((kind, index) => ({ ...times, kind, decisions: bounds[index + 1] - bounds[index],
    low: bounds[index], high: bounds[index + 1] })).filter((row) => row.decisions);
}

const sumOf = (points, name) => points.reduce((total, point) => total + point[name], 0);

function formatSnapshot({ time, events_since: events }) {
  const when = time === null ? "" : `written at ${formatTime(time)}; `;
  return `${when}${plural(events, "event")} since then`;
}
