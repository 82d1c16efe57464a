/* The panel "Groups": the sets of users who may be alike. */

import { ask } from "./api.js";
import { Place } from "./charts.js";
import { userLink } from "./map.js";

const { count, make, number, put, share, table } = window.look;
const at = (id) => document.getElementById(id);
const LIMIT = 25;
const COLUMNS = [
  { name: "seed", title: "Seed", way: "ascending",
    show: (row) => (row.seed === null ? "–" : make("a", { href: userLink(row.seed), className: "name" }, row.seed)) },
  { name: "size", title: "Users", number: true, way: "descending", show: (row) => count(row.size) },
  { name: "state", title: "State", sort: false, show: (row) => state(row.returned) },
  { name: "progress", title: "Progress", way: "descending", show: progress },
  { name: "certificate", title: "Certificate", number: true, sort: false, show: certificate },
  { name: "rewards", title: "Rewards", number: true, sort: false, show: (row) => count(row.rewards) },
  { name: "reward", title: "Mean reward", number: true, way: "descending", show: (row) => number(row.mean_reward) },
  { name: "likes", title: "Its members like", sort: false, show: likes },
];

export const state = (returned) =>
  make("span", { className: `badge ${returned ? "good" : ""}` }, returned ? "returned" : "forming");

function progress(row) {
  if (row.progress === null) return "–";
  return make("span", { className: "progress" },
    make("progress", { value: row.progress, max: 1, "aria-label": `Progress of the set of ${row.seed}` }),
    make("span", { className: "figure" }, `${Math.floor(100 * row.progress)}%`));
}

const WIDEST = 2; // no two tastes of length 1 at most are farther apart

export function certificate(row) {
  if (row.certificate === null) return "–";
  if (row.certificate > WIDEST) return "says nothing";
  return (row.certificate_exact ? "" : "≤ ") + number(row.certificate);
}

function likes(row) {
  const one = ({ feature, weight }) => make("span", { className: "name" }, `${feature} `,
    make("span", { className: "weight figure" }, number(weight, 2)));
  return make("span", { className: "likes" }, row.top_features.map(one));
}

export class GroupsPanel {
  constructor() {
    Object.assign(this, { sort: "size", offset: 0, search: "", again: () => {} });
    this.overlap = new Place(at("overlap-chart"), "overlap");
    this.table = table(at("groups-table"), COLUMNS, null, {
      caption: "Sets of users", key: (row) => row.seed, sort: ["size", "descending"],
      onSort: (name) => this.choose(name), empty: "No set is like that.",
    });
    at("groups-search").addEventListener("submit", (event) => {
      event.preventDefault();
      this.look(at("groups-text").value.trim());
    });
    at("groups-text").addEventListener("search", () => this.look(at("groups-text").value.trim()));
    at("groups-back").addEventListener("click", () => this.turn(-LIMIT));
    at("groups-on").addEventListener("click", () => this.turn(LIMIT));
  }

  choose(name) {
    Object.assign(this, { sort: name, offset: 0 });
    this.again();
  }

  look(text) {
    if (text === this.search) return;
    Object.assign(this, { search: text, offset: 0 });
    this.again();
  }

  turn(by) {
    this.offset = Math.max(0, this.offset + by);
    this.again();
  }

  ask() {
    const query = new URLSearchParams({ sort: this.sort, limit: LIMIT, offset: this.offset });
    if (this.search) query.set("search", this.search);
    return ask(`/v1/groups?${query}`);
  }

  show(answer) {
    const { total, clusters: groups, returned, forming } = answer;
    if (!groups.length && this.offset) return this.turn(-this.offset); // there are fewer than there were
    put(at("groups-told"), !total && !this.search
      ? "There are no sets: nobody has come yet, or the policy does not group users."
      : `${count(returned)} returned, ${count(forming)} forming. A set is returned when it is complete by the `
        + "policy's own radii. The certificate is stricter: with the probability that the policy was set to, no two "
        + `members differ by more. Tastes are at most ${WIDEST} apart in any case, so that a larger one says nothing.`);
    at("groups-all").hidden = !total && !this.search;
    this.table.update(groups);
    at("groups-pages").hidden = total <= LIMIT;
    at("groups-back").disabled = this.offset === 0;
    at("groups-on").disabled = this.offset + groups.length >= total;
    put(at("groups-place"), `${count(this.offset + 1)} to ${count(this.offset + groups.length)} of ${count(total)}`);
    this.showOverlap(answer.overlap);
  }

  showOverlap({ seeds, shares }) {
    at("overlap").hidden = seeds.length < 2;
    if (seeds.length < 2) return;
    const names = seeds.map((seed) => seed ?? "–");
    const rows = names.flatMap((row, i) => names.map((column, j) =>
      ({ row, column, row_order: i, column_order: j, share: shares[i][j] })));
    const others = rows.filter(({ row_order: i, column_order: j }) => i !== j);
    const most = others.reduce((best, one) => (one.share > best.share ? one : best));
    this.overlap.show({
      rows: { overlap: rows },
      label: "Overlap of sets",
      summary: most.share === 0 ? "None of these sets have members in common."
        : `Most in common: ${share(most.share)} of the members of “${most.row}” are also in “${most.column}”.`,
    });
  }
}
