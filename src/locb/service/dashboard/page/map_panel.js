/* Panel "Map": projection of the users' estimates, and the same users as a list. */

import { request } from "./api.js";
import { Chart } from "./charts.js";
import { groupName } from "./sentences.js";

const { byId, create, createTable, formatCount, formatPercent, setContent } = window.locbUi;
const MAX_LISTED = 100; // users in the list
const LEGEND_ENTRY_WIDTH = 165; // pixels
const NO_CLUSTER = -1, UNLISTED_CLUSTER = -2; // as in dashboard/map.py
const COLUMNS = [
  { name: "user", title: "User",
    show: (row) => create("a", { href: userLink(row.user), className: "name" }, row.user) },
  { name: "group_label", title: "Group", show: (row) => create("span", { className: "name" }, row.group_label) },
  { name: "served", title: "Rewards", number: true, show: (row) => formatCount(row.served) },
];

export const userLink = (user) => `#user/${encodeURIComponent(user)}`;

export class MapPanel {
  constructor() {
    this.projection = null;
    this.reload = () => {};
    this.rows = null; // not loaded yet
    this.colourSeeds = []; // seed of the group that has each colour
    const onClick = ({ user }) => user && (location.hash = userLink(user));
    this.chart = new Chart(byId("map-chart"), "map", { onClick, legendEntryWidth: LEGEND_ENTRY_WIDTH });
    this.table = createTable(byId("map-users"), COLUMNS, null, {
      caption: "Users on the map", key: (row) => row.user, sort: ["served", "descending"], tall: true,
      empty: "No users.",
    });
    byId("map-refit").addEventListener("click", () => {
      this.projection = "new";
      this.reload();
    });
    byId("map-text").addEventListener("input", () => this.refresh());
    byId("map-search").addEventListener("submit", (event) => {
      event.preventDefault();
      const text = byId("map-text").value.trim();
      if (text) location.hash = userLink(text);
    });
  }

  /* Highlights a user on the map; null: no user. */
  open(user) {
    if (user === null) return;
    byId("map-text").value = user;
    this.refresh();
  }

  load() {
    return request(this.projection === null ? "/v1/map" : `/v1/map?projection=${encodeURIComponent(this.projection)}`);
  }

  /* Handles a problem: the service may no longer have the projection, for example after a restart. */
  handleProblem(problem) {
    if (this.projection === null || ![404, 422].includes(problem.status)) return false;
    this.projection = null;
    this.reload();
    return true;
  }

  show(map) {
    this.projection = map.projection;
    const { points, clusters } = map;
    if (!points.user.length) {
      setContent(byId("map-description"), "");
      this.rows = [];
      this.refresh();
      this.chart.show({
        empty: "No user has an estimate yet. The map appears after the first rewards, unless the policy does not "
          + "report estimates.",
      });
      return;
    }
    const colours = this.assignColours(clusters.map(({ seed }) => seed));
    this.rows = points.user.map((user, index) => {
      const cluster = points.cluster[index];
      return {
        user, x: points.x[index], y: points.y[index], served: points.served[index],
        cluster_count: points.cluster_count[index],
        group: cluster === NO_CLUSTER ? "none" : cluster === UNLISTED_CLUSTER ? "others" : String(colours[cluster]),
        group_label: cluster === NO_CLUSTER ? "none" : cluster === UNLISTED_CLUSTER ? "other"
          : groupName(clusters[cluster].seed),
      };
    });
    // Users without a group are drawn first, below all other users.
    this.rows.sort((a, b) => (a.group === "none" ? 0 : 1) - (b.group === "none" ? 0 : 1));
    const explained = map.explained_variance === null ? ""
      : ` The projection explains ${formatPercent(map.explained_variance)} of the variance of their estimated`
        + " preferences.";
    setContent(byId("map-description"), `${map.description}.${explained}`);
    this.legendNames = Array(this.colourSeeds.length).fill("–");
    clusters.forEach((cluster, index) => {
      const shown = points.cluster.filter((other) => other === index).length;
      const counts = `${formatCount(shown)} of ${formatCount(cluster.size)}`;
      this.legendNames[colours[index]] = `${groupName(cluster.seed)} (${counts})`;
    });
    this.legendValues = colours.map(String)
      .concat(["others", "none"].filter((name) => this.rows.some((row) => row.group === name)));
    this.refresh();
  }

  /* Returns the index of the colour of each group. A group keeps its colour while it is listed. */
  assignColours(seeds) {
    this.colourSeeds = this.colourSeeds.map((seed) => (seeds.includes(seed) ? seed : undefined));
    return seeds.map((seed) => {
      let colour = this.colourSeeds.indexOf(seed);
      if (colour < 0) {
        colour = [...this.colourSeeds, undefined].indexOf(undefined);
        this.colourSeeds[colour] = seed;
      }
      return colour;
    });
  }

  refresh() {
    if (!this.rows) return;
    const text = byId("map-text").value.trim();
    const found = text ? this.rows.filter(({ user }) => user.toLowerCase().includes(text.toLowerCase())) : this.rows;
    const listed = [...found].sort((a, b) => b.served - a.served).slice(0, MAX_LISTED);
    this.table.update(listed);
    const message = !found.length && text ? "No user on the map matches. “Open” opens any user by the exact id."
      : found.length > listed.length
        ? `Showing ${formatCount(MAX_LISTED)} of ${formatCount(found.length)} users: those with the most rewards.` : "";
    setContent(byId("map-message"), message);
    if (!this.rows.length) return;
    const selected = this.rows.some(({ user }) => user === text) ? text : found.length === 1 ? found[0].user : "";
    this.chart.show({
      rows: { users: this.rows },
      params: { names: this.legendNames, legend_values: this.legendValues, selected_user: selected },
      label: "Map of users by estimated preferences",
      summary: this.summarize(),
    });
  }

  summarize() {
    const several = this.rows.filter((row) => row.cluster_count > 1).length;
    const none = this.rows.filter((row) => row.group === "none").length;
    return "Each mark is a user. Colour and shape: the smallest group in the legend that contains the user. Size: "
      + `number of rewards. Ring: the user is in several groups. Users with a ring: ${formatCount(several)}. Users in `
      + `no group: ${formatCount(none)}. Legend: seed of each group (its first user, if it has no seed), and in `
      + "parentheses the number of users drawn in its colour and the number of its members. Click a user to open the "
      + "panel “User”, or click a group in the legend to highlight the group.";
  }
}
