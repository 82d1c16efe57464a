/* The panel "User": what is known of one, and why they were shown what they were shown. */

import { ask, path } from "./api.js";
import { Place } from "./charts.js";
import { INDENT, parts } from "./explaining.js";
import { state } from "./groups.js";
import { userLink } from "./map.js";
import { Preview } from "./preview.js";
import { ofLenders } from "./words.js";

const { clock, count, make, number, put, table, time } = window.look;
const at = (id) => document.getElementById(id);
const FEATURES = 24; // bars of an estimate
const DOTS = [".", ".."]; // which in an address stand for other addresses
const KINDS = {
  pending: ["pending", ""],
  received: ["rewarded", "good"],
  default: ["default", "warn"],
  corrected: ["corrected", "info"],
};

/* A bar: what an estimate says of the feature at a place, which is negative where the feature's sign is. */
function entry(feature, place, theta, intervals) {
  const at = Math.abs(place);
  const ends = intervals?.[at] ?? [null, null];
  const [low, high] = place < 0 && ends[0] !== null ? [-ends[1], -ends[0]] : ends;
  return { feature, value: place < 0 ? -theta[at] : theta[at], low, high };
}

const less = (gap) => (gap < 0.0005 ? "as good" : `${number(gap)} less`);
const link = (user) => (user === null ? "–" : make("a", { href: userLink(user), className: "name" }, user));

const SETS = [
  { name: "seed", title: "Seed", show: (row) => link(row.seed) },
  { name: "size", title: "Users", number: true, show: (row) => count(row.size) },
  { name: "returned", title: "State", show: (row) => state(row.returned) },
];
const SIMILAR = [
  { name: "user", title: "User", show: (row) => link(row.user) },
  { name: "distance", title: "Distance", number: true, show: (row) => number(row.distance) },
  { name: "radius", title: "± at most", number: true, show: (row) => number(row.radius) },
];
const DECISIONS = [
  { name: "time", title: "When", show: (row) => make("span", { className: "figure" }, time(row.time)) },
  { name: "arm", title: "Arm", show: (row) => make("span", { className: "name" }, row.arm) },
  { name: "kind", title: "State", show: (row) => {
    const [word, kind] = KINDS[row.reward_status] ?? [row.reward_status, ""];
    return make("span", { className: `badge ${kind}` }, word);
  } },
  { name: "reward", title: "Reward", number: true, show: (row) => (row.reward === null ? "–" : number(row.reward, 2)) },
  { name: "score", title: "Score", number: true, value: (row) => row.response.ranking[0]?.score,
    show: (row) => number(row.response.ranking[0]?.score) },
  { name: "next", title: "Next best", sort: false, show: ({ response: { ranking: [first, next] } }) =>
    (next ? make("span", { className: "name next" }, `${next.arm}, ${less(first.score - next.score)}`) : "–") },
  { name: "whose", title: "Rests on the rewards of", sort: false, show: ({ response }) =>
    make("span", { className: "whose small" }, ofLenders(response.explanation?.sources ?? []) || "–") },
];

export class UserPanel {
  constructor() {
    this.user = null;
    this.again = () => {};
    this.estimate = new Place(at("estimate-chart"), "estimate");
    this.why = new Place(at("decisions-chart"), "parts", { indent: INDENT });
    this.sets = table(at("user-sets"), SETS, null, { caption: "Sets the user is in", key: (row) => row.seed,
      sort: ["size", "ascending"], tall: true, empty: "In none yet." });
    this.similar = table(at("user-similar"), SIMILAR, null, { caption: "Similar users", key: (row) => row.user,
      sort: ["distance", "ascending"], tall: true, empty: "Nobody shares a set with them yet." });
    this.decisions = table(at("decisions-table"), DECISIONS, null, { caption: "Last decisions",
      key: (row) => row.decision_id, sort: ["time", "descending"], empty: "Nothing was decided for them yet." });
    this.preview = new Preview();
    at("user-search").addEventListener("submit", (event) => {
      event.preventDefault();
      location.hash = userLink(at("user-text").value);
    });
  }

  open(user) {
    if (user === this.user && user !== null) return;
    this.user = user || null;
    at("user").hidden = true;
    at("user-text").value = this.user ?? "";
    put(at("user-title"), this.user ?? "User");
    put(at("user-told"), this.user === null ? "Open a user by their id, from the map, or from a set." : "Looking …");
    if (DOTS.includes(this.user)) {
      put(at("user-told"), `No browser asks for an address that ends in “${this.user}”: ask for this user with `
        + "locb watch, or through the API.");
      this.user = null;
    }
    if (this.user !== null) this.preview.open(this.user);
  }

  async ask() {
    const { user } = this;
    if (user === null) return null;
    const [known, similar, decisions] = await Promise.all([
      ask(path`/v1/users/${user}`), ask(path`/v1/users/${user}/similar?limit=10`),
      ask(path`/v1/users/${user}/decisions?limit=20`)]);
    return { known, similar: similar.similar, decisions: decisions.decisions };
  }

  fail(problem) {
    if (problem.status !== 404) return false;
    at("user").hidden = true;
    put(at("user-told"), `There is no user “${this.user}”. Ids are exact: capitals and blanks count.`);
    return true;
  }

  show(answer) {
    if (answer === null) return;
    const { known, similar, decisions } = answer;
    at("user").hidden = false;
    put(at("user-told"), known.served === 0 ? "Nothing was learned of them yet: no reward has come."
      : make("a", { href: `#map/${encodeURIComponent(known.user)}` }, "Show on the map"));
    this.showCards(known);
    this.showEstimate(known);
    this.sets.update(known.clusters);
    this.similar.update(similar);
    this.decisions.update(decisions);
    this.preview.offer(decisions);
    this.showWhy(decisions);
  }

  showCards({ served, rewards, mean_reward: mean, radius, clusters }) {
    const returned = clusters.filter((one) => one.returned).length;
    const cards = [
      ["Rewards learned", count(served), `${count(rewards)} came`],
      ["Mean reward", number(mean), "of what they were shown"],
      ["Sets", count(clusters.length), `${count(returned)} returned`],
      ["Radius", number(radius), "by which the policy tells users apart; intervals are below"],
    ];
    put(at("user-cards"), cards.map(([title, figure, more]) =>
      make("div", {}, make("dt", {}, title), make("dd", {}, figure), make("dd", {}, more))));
  }

  showEstimate({ theta, intervals, feature_indices: names }) {
    if (!theta) return this.estimate.show({ empty: "The policy does not tell what it estimates." });
    const named = Object.keys(names).length > 0;
    const places = named ? Object.entries({ constant: 0, ...names }) : theta.map((_, place) => [String(place), place]);
    const all = places.map(([name, place]) => entry(name, place, theta, intervals));
    const rows = all.sort((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, FEATURES)
      .map((row, order) => ({ ...row, order }));
    const sure = rows.filter(({ low, high }) => low > 0 || (high !== null && high < 0)).length;
    const how = named ? "as recent requests name them; “constant” is what every arm has" : "by place";
    const which = rows.length < all.length ? `The ${rows.length} largest of ${all.length} features, ${how}.`
      : `All features, ${how}.`;
    return this.estimate.show({
      rows: { features: rows }, label: "Estimate of the user's taste, feature by feature",
      summary: intervals ? `${which} Lines: 95% intervals; ${count(sure)} of them leave${sure === 1 ? "s" : ""} 0 out.`
        : which,
    });
  }

  showWhy(decisions) {
    const told = decisions.filter((one) => one.response.explanation);
    if (!told.length) {
      const empty = decisions.length ? "The policy does not explain its choices." : "Nothing was decided for them yet.";
      return this.why.show({ empty });
    }
    const named = told.map(({ arm, time: when, response }) =>
      ({ arm, name: `${arm} · ${clock(when)}`, explanation: response.explanation }));
    const drawn = parts(named);
    this.preview.like = drawn.values.names;
    return this.why.show({
      ...drawn, label: "Why each arm was recommended: contributions of its features and bonus",
      summary: "One bar a decision, the latest on top: what the arm's features add, and the bonus. "
        + "The line marks the score.",
    });
  }
}
