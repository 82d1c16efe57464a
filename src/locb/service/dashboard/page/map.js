/* The panel "Map": users where their tastes are, and a list of them for those who do not point. */

import { ask } from "./api.js";
import { Place } from "./charts.js";

const { count, make, put, share, table } = window.look;
const at = (id) => document.getElementById(id);
const LISTED = 100;
const COLUMNS = [
  { name: "user", title: "User", show: (row) => make("a", { href: userLink(row.user), className: "name" }, row.user) },
  { name: "group_label", title: "Set", show: (row) => make("span", { className: "name" }, row.group_label) },
  { name: "served", title: "Rewards", number: true, show: (row) => count(row.served) },
];

const ENTRY = 165; // pixels of a set in the legend
export const userLink = (user) => `#user/${encodeURIComponent(user)}`;

export class MapPanel {
  constructor() {
    this.basis = null;
    this.again = () => {};
    this.rows = null; // not known yet
    this.looks = []; // the seed that each look is for: a set keeps its own as long as it is listed
    const click = ({ user }) => user && (location.hash = userLink(user));
    this.chart = new Place(at("map-chart"), "map", { click, entry: ENTRY });
    this.table = table(at("map-users"), COLUMNS, null, {
      caption: "Users on the map", key: (row) => row.user, sort: ["served", "descending"], tall: true, empty: "Nobody.",
    });
    at("map-axes").addEventListener("click", () => {
      this.basis = "new";
      this.again();
    });
    at("map-text").addEventListener("input", () => this.list());
    at("map-search").addEventListener("submit", (event) => {
      event.preventDefault();
      const text = at("map-text").value.trim();
      if (text) location.hash = userLink(text);
    });
  }

  /* With somebody to point out, or not. */
  open(user) {
    if (user === null) return;
    at("map-text").value = user;
    this.list();
  }

  ask() {
    return ask(this.basis === null ? "/v1/map" : `/v1/map?projection=${encodeURIComponent(this.basis)}`);
  }

  /* A basis that the service no longer has, since it was restarted: another is made. */
  fail(problem) {
    if (this.basis === null || ![404, 422].includes(problem.status)) return false;
    this.basis = null;
    this.again();
    return true;
  }

  show(map) {
    this.basis = map.projection;
    const { points, clusters: groups } = map;
    if (!points.user.length) {
      put(at("map-how"), "");
      this.rows = [];
      this.list();
      this.chart.show({ empty: "No user has an estimate yet: the map begins with the first rewards." });
      return;
    }
    const looks = this.dress(groups.map((group) => group.seed));
    this.rows = points.user.map((user, place) => {
      const group = points.cluster[place];
      return {
        user, x: points.x[place], y: points.y[place], served: points.served[place], cluster_count: points.cluster_count[place],
        group: group === -1 ? "none" : group === -2 ? "others" : String(looks[group]),
        group_label: group === -1 ? "none" : group === -2 ? "another" : groups[group].seed ?? "–",
      };
    });
    // Those in no set lie below the others.
    this.rows.sort((a, b) => (a.group === "none" ? 0 : 1) - (b.group === "none" ? 0 : 1));
    put(at("map-how"), `${map.description.replace(/\.$/, "")}. The plane shows ${share(map.explained_variance)} of how they differ.`);
    this.names = Array(this.looks.length).fill("–");
    groups.forEach((group, place) => {
      const drawn = points.cluster.filter((one) => one === place).length;
      this.names[looks[place]] = `${group.seed ?? "–"} (${count(drawn)} of ${count(group.size)})`;
    });
    this.used = looks.map(String)
      .concat(["others", "none"].filter((name) => this.rows.some((row) => row.group === name)));
    this.list();
  }

  /* The look of each of these sets. */
  dress(seeds) {
    this.looks = this.looks.map((seed) => (seeds.includes(seed) ? seed : undefined));
    return seeds.map((seed) => {
      let look = this.looks.indexOf(seed);
      if (look < 0) {
        look = [...this.looks, undefined].indexOf(undefined);
        this.looks[look] = seed;
      }
      return look;
    });
  }

  found() {
    const text = at("map-text").value.trim().toLowerCase();
    return text ? this.rows.filter((row) => row.user.toLowerCase().includes(text)) : this.rows;
  }

  list() {
    if (!this.rows) return;
    const found = this.found();
    const text = at("map-text").value.trim();
    const listed = [...found].sort((a, b) => b.served - a.served).slice(0, LISTED);
    this.table.update(listed);
    put(at("map-found"), !found.length && text ? "Nobody on the map has that in their id. “Open” looks among all users."
      : found.length > listed.length ? `The ${count(LISTED)} of ${count(found.length)} with the most rewards.` : "");
    if (!this.rows.length) return;
    const exact = this.rows.some((row) => row.user === text) ? text : found.length === 1 ? found[0].user : "";
    this.chart.show({
      rows: { users: this.rows },
      values: { names: this.names, legend_values: this.used, selected_user: exact },
      label: "Map of users by their estimated tastes",
      summary: this.summary(),
    });
  }

  summary() {
    const several = this.rows.filter((row) => row.cluster_count > 1).length;
    const none = this.rows.filter((row) => row.group === "none").length;
    return "One mark a user: colour and shape tell the smallest set that holds them, size the rewards learned, a ring "
      + `that they are in several sets (${count(several)}). ${count(none)} are in none. The legend tells how many of a `
      + "set's users have its look here. Click a user to open them, a set in the legend to single it out.";
  }
}
