/* The map of a comparison: where users are, their true clusters, and the sets that a policy has found at a moment. */
(() => {
  "use strict";
  const { make, put } = look;
  const { data, choice, choose, entryOf, labelOf, onAlpha } = report;
  const { map } = data;
  if (!map) return;
  const STEP = 700; // milliseconds a moment, while it plays
  const last = map.rounds.length - 1;
  const finders = data.policies.filter((name) =>
    data.entries.some((entry, place) => entry.policy === name && map.entries[place]));
  const at = (id) => document.getElementById(id);
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  let policy = finders.includes(choice("map")) ? choice("map") : finders[0];
  let moment = nearest(Number(choice("round", map.rounds[last])));
  let timer = null;
  let found = null;

  function nearest(round) {
    const away = map.rounds.map((one) => Math.abs(one - round));
    return Math.max(0, away.indexOf(Math.min(...away)));
  }

  function entry() {
    return map.entries[entryOf(policy)];
  }

  const called = (group) => (group < 0 ? "none" : String(group + 1));

  function rowsOf(groups, sets, more) {
    return map.users.map((user, place) => ({
      ...more, user, x: map.x[place], y: map.y[place], group: called(groups[place]), cluster_count: sets[place],
    }));
  }

  function trueRows() {
    return rowsOf(map.true_cluster, map.true_cluster.map((group) => (group < 0 ? 0 : 1)), {});
  }

  function foundRows() {
    const { cluster, cluster_count: counts } = entry();
    return rowsOf(cluster[moment], counts[moment], { policy, round: map.rounds[moment] });
  }

  // In words

  function curveOf(name) {
    return data.curves.find((curve) => curve.name === name).lines[entryOf(policy)].repeats[0][moment];
  }

  function told() {
    const sets = entry().cluster_count[moment];
    const [none, one] = [0, 1].map((held) => look.count(sets.filter((many) => many === held).length));
    const [count, f1] = [curveOf("clusters"), curveOf("f1")];
    const several = look.count(sets.filter((held) => held > 1).length);
    return `After ${look.count(map.rounds[moment])} of ${look.count(data.rounds)} rounds: ` +
      `${look.count(count)} different ${count === 1 ? "set" : "sets"}, F1 ${look.number(f1)}. ` +
      `Of ${look.count(sets.length)} users ${several} are in several sets, ${one} in one, ${none} in none.`;
  }

  function clusterRows() {
    const groups = entry().cluster[moment];
    return Array.from({ length: map.n_clusters }, (_, cluster) => {
      const users = map.users.map((_, place) => place).filter((place) => map.true_cluster[place] === cluster);
      const [right, none] = [cluster, -1].map((group) => users.filter((place) => groups[place] === group).length);
      return { cluster: cluster + 1, users: users.length, right, other: users.length - right - none, none };
    });
  }

  function foundWords() {
    const right = clusterRows().reduce((sum, row) => sum + row.right, 0);
    return [`Users as ${labelOf(policy)} groups them`,
      `${look.count(right)} of ${look.count(map.users.length)} users are in a set that fits their true cluster.`];
  }

  // Changes

  const slider = make("input", { type: "range", min: 0, max: last, step: 1, value: moment, name: "round" });
  const play = make("button", { type: "button", className: "button", onclick: () => (timer ? stop() : begin()) });
  const table = look.table(at("map-table"), [
    { name: "cluster", title: "True cluster", number: true },
    { name: "users", title: "Users", number: true },
    { name: "right", title: "In a set that fits it", number: true },
    { name: "other", title: "In a set that fits another", number: true },
    { name: "none", title: "In none", number: true },
  ], [], { caption: "Users of each true cluster, by the best-fitting of their sets", sort: ["cluster", "ascending"] });

  function name() {
    play.textContent = timer ? "Pause" : calm.matches ? "Next" : "Play";
  }

  function tell() {
    slider.value = moment;
    slider.setAttribute("aria-valuetext", `after ${look.count(map.rounds[moment])} rounds`);
    at("map-found-heading").textContent = `Found by ${labelOf(policy)}`;
    at("map-summary").textContent = told();
    // While it plays a screen reader would hear every step.
    at("map-summary").setAttribute("aria-live", timer ? "off" : "polite");
    table.update(clusterRows());
    name();
  }

  function refresh() {
    tell();
    found?.update("users", foundRows());
    found?.describe(...foundWords());
  }

  function go(next) {
    moment = next;
    choose("round", moment === last ? null : map.rounds[moment]);
    refresh();
  }

  function begin() {
    const first = moment === last ? 0 : moment + 1;
    if (calm.matches) return go(first); // a step at a time, where motion is not wanted
    timer = setInterval(() => {
      if (moment + 1 === last) stop();
      go(moment + 1);
    }, STEP);
    return go(first);
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    name();
  }

  slider.addEventListener("input", () => {
    stop();
    go(Number(slider.value));
  });
  calm.addEventListener("change", stop);

  function policyField() {
    const field = make("select", { name: "map" }, finders.map((one) =>
      make("option", { value: one, selected: one === policy }, one)));
    field.addEventListener("change", () => {
      policy = field.value;
      choose("map", policy === finders[0] ? null : policy);
      refresh();
    });
    return make("label", { className: "field" }, "Policy", field);
  }

  async function start() {
    at("map").hidden = false;
    at("map-description").textContent = `${map.sample}, where their true θ are in two dimensions, in the first repeat. ` +
      "Colour and shape on the right: the true cluster that the best-fitting of a user's sets fits. " +
      "The thicker a ring, the more sets hold a user.";
    put(at("map-choices"), policyField(),
      make("label", { className: "field grow" }, "Round", slider), play);
    tell();
    const options = (rows, label, summary, file) => ({ rows: { users: rows }, label, summary, name: file });
    const sizes = clusterRows().map(({ users }) => users);
    await look.chart(at("map-true"), data.map_spec, options(trueRows(), "Users in their true clusters",
      `${map.n_clusters} true clusters of ${report.inWords(sizes.map(String))} users.`, "true-clusters"));
    found = await look.chart(at("map-found"), data.map_spec, options(foundRows(), ...foundWords(), "found-sets"));
  }

  onAlpha(refresh);
  report.ready = Promise.all([report.ready, start()]);
})();
