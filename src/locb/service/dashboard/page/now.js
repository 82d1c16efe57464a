/* The panel "Now": how the service does, and whether rewards rise. */

import { ask } from "./api.js";
import { Place } from "./charts.js";
import { ofHistory } from "./words.js";

const { count, make, number, put, share, time } = window.look;
const at = (id) => document.getElementById(id);
const STORES = { sqlite: "SQLite", postgresql: "PostgreSQL" };
const SPANS = { hour: ["Hour", 3600], day: ["Day", 86400], month: ["30 days", 30 * 86400], all: ["All", null] };

export class NowPanel {
  constructor() {
    this.span = "hour";
    this.again = () => {};
    this.reward = new Place(at("reward-chart"), "reward");
    this.traffic = new Place(at("traffic-chart"), "decisions");
    this.cards = new Map();
    for (const [span, [title]] of Object.entries(SPANS)) {
      at("spans").append(make("button", { type: "button", className: "button small", "data-span": span,
        "aria-pressed": String(span === this.span), onclick: () => this.choose(span) }, title));
    }
    at("baseline").addEventListener("submit", (event) => {
      event.preventDefault();
      this.again();
    });
    at("baseline-kind").addEventListener("change", () => {
      at("baseline-own").hidden = at("baseline-kind").value !== "own";
      if (at("baseline-kind").value !== "own") this.again();
    });
  }

  choose(span) {
    this.span = span;
    for (const button of at("spans").querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.dataset.span === span));
    }
    at("baseline-kind").querySelector("[value=before]").disabled = span === "all";
    if (span === "all" && at("baseline-kind").value === "before") at("baseline-kind").value = "none";
    this.again();
  }

  // What comes every two seconds

  card(title, figure, more) {
    if (!this.cards.has(title)) {
      const parts = [make("dt", {}, title), make("dd"), make("dd")];
      at("now-cards").append(make("div", {}, parts));
      this.cards.set(title, parts);
    }
    const [, first, second] = this.cards.get(title);
    if (first.textContent !== figure) first.textContent = figure;
    if (second.textContent !== more) second.textContent = more;
  }

  showNow(now) {
    const { clusters } = now;
    this.time = now.time;
    put(at("now-since"), `${now.policy}, version ${now.version}, running since ${time(now.started_at)}`);
    this.card("Decisions a second", number(now.decisions_per_second, 1), `${count(now.decisions)} in all`);
    this.card("Rewards a second", number(now.rewards_per_second, 1), `${count(now.rewards)} in all`);
    this.card("Users learned", count(now.rewarded_users), `of ${count(now.users)} who came`);
    this.card("Decided with a group", share(now.cluster_based_share), "of the last hour's decisions");
    this.card("Rewards waited for", count(now.pending_rewards), "recent decisions without one");
    this.card("Sets returned", count(clusters.returned),
      `${count(clusters.forming)} still forming`);
    this.showStore(now);
  }

  showStore({ store, snapshot }) {
    const size = store.bytes === null ? "" : `, ${bytes(store.bytes)}`;
    const waiting = store.queued_requests ? `${count(store.queued_requests)} requests wait for the disk` : "nothing waits";
    const pairs = [
      ["Store", `${STORES[store.kind] ?? store.kind}${size}, ${count(store.position)} events`],
      ["Writing", store.error ?? waiting],
      ["Snapshot", snapshot === null ? "none yet: a start reads the whole log" : ofSnapshot(snapshot)],
    ];
    const next = JSON.stringify(pairs);
    if (next === this.stored) return;
    this.stored = next;
    put(at("store"), pairs.flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)]));
  }

  // What comes every ten seconds

  async ask() {
    const query = new URLSearchParams({ span: this.span });
    const period = await this.period();
    if (period) {
      query.set("baseline_from", period[0]);
      query.set("baseline_to", period[1]);
    }
    return ask(`/v1/history?${query}`);
  }

  /* The baseline in seconds since 1970, or null. */
  async period() {
    const kind = at("baseline-kind").value;
    if (kind === "before") {
      const long = SPANS[this.span][1];
      const now = Math.floor(this.time); // by the service's clock
      return [now - 2 * long, now - long];
    }
    if (kind === "first") {
      const { points } = await ask("/v1/history?span=all");
      return points.length ? [points[0].time, points[0].time + 86400] : null;
    }
    const [from, to] = ["baseline-from", "baseline-to"].map((id) => Date.parse(at(id).value) / 1000);
    return kind === "own" && to > from ? [from, to] : null;
  }

  /* From when to when the charts reach: of the span, what there is something in, and a dozen steps at least. */
  ends({ points, step_seconds: step, total, span }) {
    const end = Math.max(total.to, points.at(-1).time + step);
    const start = Math.min(points[0].time, end - 12 * step);
    return { start: 1000 * (span === "all" ? start : Math.max(total.from, start)), end: 1000 * end };
  }

  show(history) {
    const { points, step_seconds: step, baseline } = history;
    const own = at("baseline-kind").value === "own" && !baseline;
    put(at("change"), ofHistory(history) + (own ? " Choose when the baseline period begins and when it ends." : ""));
    if (!points.length) {
      const empty = "Nothing happened in this time.";
      this.reward.show({ empty });
      this.traffic.show({ empty });
      return;
    }
    const ends = this.ends(history);
    this.reward.show({
      rows: { points: broken(points, step), baseline: drawn(baseline, ends) },
      values: ends,
      label: "Mean reward over time, with its 95% interval",
      summary: `Shaded: 95% interval of each step's mean.${baseline ? " Dashed: the baseline's mean." : ""}`,
    });
    const steps = points.flatMap((point) => stacked(point, step));
    const known = points.filter((point) => point.cluster_based !== null);
    const rest = known.length === points.length ? "of them"
      : `of the ${count(sum(known, "decisions"))} of which it is known`;
    this.traffic.show({
      rows: { steps },
      values: { ...ends, legend_values: KINDS.filter((kind, place) => place < 2 || steps.some((row) => row.kind === kind)) },
      label: "Decisions over time",
      summary: `${count(sum(points, "decisions"))} decisions in steps of ${ofStep(step)}, `
        + `${count(sum(known, "cluster_based"))} ${rest} with a group.`,
    });
  }
}

/* The baseline as the chart shows it: its time as far as it is in sight, its mean to the end. */
function drawn(baseline, { start, end }) {
  if (!baseline || baseline.mean === null) return [];
  const [from, to] = [baseline.from, baseline.to].map((time) => Math.min(end, Math.max(start, 1000 * time)));
  return [{ from, to, mean: baseline.mean, until: end }];
}

const KINDS = ["based on a group", "based on the user only", "unknown"]; // categories of the chart
const sum = (points, name) => points.reduce((total, point) => total + point[name], 0);

function ofSnapshot({ time: written, events_since: behind }) {
  const when = written === null ? "" : `of ${time(written)}; `;
  return `${when}${count(behind)} event${behind === 1 ? "" : "s"} since`;
}

function ofStep(seconds) {
  const [size, unit] = seconds >= 86400 ? [86400, "day"] : seconds >= 3600 ? [3600, "hour"]
    : seconds >= 60 ? [60, "minute"] : [1, "second"];
  return `${count(seconds / size)} ${unit}${seconds === size ? "" : "s"}`;
}

function bytes(size) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  const place = size < 1 ? 0 : Math.min(4, Math.floor(Math.log10(size) / 3));
  return `${number(size / 1000 ** place, place && size / 1000 ** place < 100 ? 1 : 0)} ${units[place]}`;
}

const FEW = 60; // points that are all drawn

/* In milliseconds, with an empty row where steps are missing, so that no line bridges them. */
function broken(points, step) {
  const apart = (one, next) => !one || !next || next.time - one.time > 1.5 * step;
  return points.flatMap((point, place) => {
    const [before, after] = [points[place - 1], points[place + 1]];
    const isolated = points.length <= FEW || (apart(before, point) && apart(point, after));
    const row = { ...point, time: 1000 * point.time, isolated };
    const gap = { time: row.time + 1000 * step, mean: null, low: null, high: null };
    return after && apart(point, after) ? [row, gap] : [row];
  });
}

function stacked(point, step) {
  const times = { time: 1000 * point.time, until: 1000 * (point.time + step) };
  const { cluster_based: grouped, decisions } = point;
  const ends = grouped === null ? [0, 0, 0, decisions] : [0, grouped, decisions, decisions];
  return KINDS.map((kind, place) => ({ ...times, kind, decisions: ends[place + 1] - ends[place], low: ends[place],
    high: ends[place + 1] })).filter((row) => row.decisions);
}
