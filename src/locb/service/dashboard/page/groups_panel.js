/* Panel "Groups": table of the groups of users, and their overlap. */

import { request } from "./api.js";
import { Chart } from "./charts.js";
import { groupName } from "./sentences.js";
import { userLink } from "./map_panel.js";

const { byId, create, createTable, formatCount, formatNumber, formatPercent, setContent } = window.locbUi;
const PAGE_SIZE = 25;
const FIRST_COLUMNS = [
  { name: "seed", title: "Seed", direction: "ascending", show: showSeed,
    hint: "The user around whom the group is built. For policies other than LOCB and ELOC: the first user of the "
      + "group." },
  { name: "size", title: "Users", number: true, direction: "descending", show: (row) => formatCount(row.size),
    hint: "Number of users in the group. With ELOC: number of users who may belong to the group." },
];
// Columns of policies with membership probabilities, and of all other policies.
const SURE_COLUMNS = [
  { name: "sure", title: "Sure members", direction: "descending",
    show: (row) => bar(row.sure_share, `Sure members of the group of ${row.seed}`),
    hint: "Share of the users in the group who belong to it with a probability of at least 90%." },
];
const FINAL_COLUMNS = [
  { name: "state", title: "State", sort: false, show: (row) => stateBadge(row.returned),
    hint: "A final group loses no members. A forming group can still change. Of the built-in policies, only LOCB "
      + "has final groups." },
  { name: "progress", title: "Progress", direction: "descending",
    show: (row) => bar(row.progress, `Progress of the group of ${row.seed}`),
    hint: "How close a group of LOCB is to being final." },
  { name: "certificate", title: "Certificate", number: true, sort: false, show: formatCertificate,
    hint: "Upper bound on the distance between the preferences of any two members, valid with a probability of at "
      + "least 1 − delta." },
];
const LAST_COLUMNS = [
  { name: "rewards", title: "Rewards", number: true, sort: false, show: (row) => formatCount(row.rewards) },
  { name: "reward", title: "Mean reward", number: true, direction: "descending",
    show: (row) => formatNumber(row.mean_reward) },
  { name: "top_features", title: "Top features", sort: false, show: topFeatures },
];

export const stateBadge = (isFinal) =>
  create("span", { className: `badge ${isFinal ? "good" : ""}` }, isFinal ? "final" : "forming");

function showSeed({ seed, same_as: original }) {
  if (seed === null) return groupName(seed);
  const note = original === null ? null : create("span", { className: "muted small block",
    title: "The two groups have nearly the same preferences, and count as one group." }, `same group as ${original}`);
  return create("span", {}, create("a", { href: userLink(seed), className: "name" }, seed), note);
}

function bar(share, label) {
  if (share === null) return "–";
  return create("span", { className: "progress" },
    create("progress", { value: share, max: 1, "aria-label": label }),
    create("span", { className: "nowrap" }, `${Math.floor(100 * share)}%`));
}

export function formatCertificate(row) {
  if (row.certificate === null) return "–";
  if (row.certificate >= row.max_distance) return `not informative yet (≥ ${row.max_distance})`;
  return (row.certificate_exact ? "" : "≤ ") + formatNumber(row.certificate);
}

function topFeatures(row) {
  return create("span", { className: "top-features" }, row.top_features.map(({ feature, weight }) =>
    create("span", { className: "name" }, `${feature} `,
      create("span", { className: "muted nowrap" }, formatNumber(weight, 2)))));
}

function summarizeSure(count) {
  return `${formatCount(count)} groups, which overlap: a user is in each group that the user's rewards do not rule `
    + "out. A member is sure if the user belongs to the group with a probability of at least 90%. Groups with nearly "
    + "the same preferences count as one group. The group “everyone” has no seed and contains the users who may be "
    + "like all others.";
}

function summarizeFinal(returned, forming, maxDistance) {
  return `${formatCount(returned)} final, ${formatCount(forming)} forming. A final group loses no members and accepts `
    + "only users who arrive later; a forming group can still change. The certificate is an upper bound on the "
    + "distance between the preferences of any two members, with a probability of at least 1 − delta, which is 0.9 by "
    + `default. A bound of ${maxDistance} or more is not informative: users whose preferences have a norm of at most `
    + `${maxDistance / 2} cannot be farther apart. “≤” marks a less tight bound, `
    + "which is used for groups of more than 300 users.";
}

export class GroupsPanel {
  constructor() {
    Object.assign(this, { sort: "size", offset: 0, search: "", reload: () => {} });
    this.overlapChart = new Chart(byId("overlap-chart"), "overlap");
    byId("groups-search").addEventListener("submit", (event) => {
      event.preventDefault();
      this.setSearch(byId("groups-text").value.trim());
    });
    byId("groups-text").addEventListener("search", () => this.setSearch(byId("groups-text").value.trim()));
    byId("groups-previous").addEventListener("click", () => this.movePage(-PAGE_SIZE));
    byId("groups-next").addEventListener("click", () => this.movePage(PAGE_SIZE));
  }

  /* Returns the table with the columns of the policy. */
  tableFor(clusters) {
    const hasSure = clusters.length ? clusters.some((row) => row.sure_share !== null) : this.hasSure ?? false;
    if (hasSure !== this.hasSure) {
      this.hasSure = hasSure;
      const columns = [...FIRST_COLUMNS, ...(hasSure ? SURE_COLUMNS : FINAL_COLUMNS), ...LAST_COLUMNS];
      this.table = createTable(byId("groups-table"), columns, null, {
        caption: "Groups of users", key: (row) => row.seed, sort: [this.sort, "descending"],
        onSort: (name) => this.setSort(name), empty: "No group matches the search.",
      });
    }
    return this.table;
  }

  setSort(name) {
    Object.assign(this, { sort: name, offset: 0 });
    this.reload();
  }

  setSearch(text) {
    if (text === this.search) return;
    Object.assign(this, { search: text, offset: 0 });
    this.reload();
  }

  movePage(rows) {
    this.offset = Math.max(0, this.offset + rows);
    this.reload();
  }

  load() {
    const query = new URLSearchParams({ sort: this.sort, limit: PAGE_SIZE, offset: this.offset });
    if (this.search) query.set("search", this.search);
    return request(`/v1/groups?${query}`);
  }

  show({ total, clusters, returned, forming, max_distance, overlap }) {
    if (!clusters.length && this.offset) return this.movePage(-this.offset); // the table has become shorter
    const isEmpty = !total && !this.search;
    byId("groups-all").hidden = isEmpty;
    this.tableFor(clusters).update(clusters.map((row) => ({ ...row, max_distance })));
    setContent(byId("groups-summary"), isEmpty
      ? "No groups: there are no users yet, or the policy does not group users."
      : this.hasSure ? summarizeSure(returned + forming) : summarizeFinal(returned, forming, max_distance));
    byId("groups-pagination").hidden = total <= PAGE_SIZE;
    byId("groups-previous").disabled = this.offset === 0;
    byId("groups-next").disabled = this.offset + clusters.length >= total;
    setContent(byId("groups-range"),
      `${formatCount(this.offset + 1)} to ${formatCount(this.offset + clusters.length)} of ${formatCount(total)}`);
    this.showOverlap(overlap);
  }

  showOverlap({ seeds, shares }) {
    byId("overlap").hidden = seeds.length < 2;
    if (seeds.length < 2) return;
    const names = seeds.map(groupName);
    const named = (name) => (name === groupName(null) ? `“${name}”` : `of “${name}”`);
    const rows = names.flatMap((row, i) => names.map((column, j) =>
      ({ row, column, row_order: i, column_order: j, share: shares[i][j] })));
    const pairs = rows.filter(({ row_order: i, column_order: j }) => i !== j);
    const largest = pairs.reduce((best, pair) => (pair.share > best.share ? pair : best));
    this.overlapChart.show({
      rows: { overlap: rows },
      label: "Overlap of groups",
      summary: largest.share === 0 ? "These groups have no members in common."
        : `Largest overlap: ${formatPercent(largest.share)} of the members of the group ${named(largest.row)} `
          + `are also in the group ${named(largest.column)}.`,
    });
  }
}
