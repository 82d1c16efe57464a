/* Map of a comparison: users in two dimensions, their true clusters, and the clusters that a policy found until a
   selected round. */
(() => {
  "use strict";
  const ui = window.locbUi;
  const { create, setContent, byId, formatCount, formatNumber } = ui;
  const { data, getChoice, setChoice, entryIndex, labelOf, onParameterChange } = report;
  const { map } = data;
  if (!map) return;
  const STEP_MILLISECONDS = 700; // per step of the animation
  const last = map.rounds.length - 1;
  const policies = data.policies.filter((name) =>
    data.entries.some((entry, index) => entry.policy === name && map.entries[index]));
  const reducedMotion = window.matchMedia("(prefers-reduced-motion: reduce)");
  let policy = policies.includes(getChoice("map")) ? getChoice("map") : policies[0];
  let step = nearestStep(Number(getChoice("round", map.rounds[last])));
  let timer = null;
  let foundChart = null;

  function nearestStep(round) {
    const distances = map.rounds.map((other) => Math.abs(other - round));
    return Math.max(0, distances.indexOf(Math.min(...distances)));
  }

  // Rows

  function currentEntry() {
    return map.entries[entryIndex(policy)];
  }

  const clusterName = (cluster) => (cluster < 0 ? "none" : String(cluster + 1));

  function toRows(clusters, counts, more) {
    return map.users.map((user, index) => ({
      ...more, user, x: map.x[index], y: map.y[index], group: clusterName(clusters[index]),
      cluster_count: counts[index],
    }));
  }

  function trueRows() {
    return toRows(map.true_cluster, map.true_cluster.map((cluster) => (cluster < 0 ? 0 : 1)), {});
  }

  function foundRows() {
    const { cluster, cluster_count: counts } = currentEntry();
    return toRows(cluster[step], counts[step], { policy, round: map.rounds[step] });
  }

  function tableRows() {
    const found = currentEntry().cluster[step];
    return Array.from({ length: map.n_clusters }, (_, cluster) => {
      const users = map.users.map((_, index) => index).filter((index) => map.true_cluster[index] === cluster);
      const [right, none] = [cluster, -1].map((value) => users.filter((index) => found[index] === value).length);
      return { cluster: cluster + 1, users: users.length, right, other: users.length - right - none, none };
    });
  }

  // Texts

  function curveValue(name) {
    return data.curves.find((curve) => curve.name === name).lines[entryIndex(policy)].repeats[0][step];
  }

  function stepSummary() {
    const counts = currentEntry().cluster_count[step];
    const usersWith = (condition) => formatCount(counts.filter(condition).length);
    const [clusters, f1] = [curveValue("clusters"), curveValue("f1")];
    return `After ${formatCount(map.rounds[step])} of ${formatCount(data.rounds)} rounds: ` +
      `${formatCount(clusters)} distinct ${clusters === 1 ? "cluster" : "clusters"}, F1 ${formatNumber(f1)}. ` +
      `Of ${formatCount(counts.length)} users, ${usersWith((count) => count > 1)} are in several clusters, ` +
      `${usersWith((count) => count === 1)} in one, ${usersWith((count) => count === 0)} in none.`;
  }

  function foundTexts() {
    const right = tableRows().reduce((sum, row) => sum + row.right, 0);
    const total = formatCount(map.users.length);
    return [`Users, clustered by ${labelOf(policy)}`,
      `${formatCount(right)} of ${total} users are in a cluster that matches their true cluster.`];
  }

  // Controls

  const slider = create("input", { type: "range", min: 0, max: last, step: 1, value: step, name: "round" });
  const onPlayClick = () => (timer ? stop() : play());
  const playButton = create("button", { type: "button", className: "button", onclick: onPlayClick });
  const table = ui.createTable(byId("map-table"), [
    { name: "cluster", title: "True cluster", number: true },
    { name: "users", title: "Users", number: true },
    { name: "right", title: "In a matching cluster", number: true },
    { name: "other", title: "In another cluster", number: true },
    { name: "none", title: "In no cluster", number: true },
  ], [], { caption: "Users of each true cluster, by the best match of their clusters", sort: ["cluster", "ascending"] });

  function updatePlayButton() {
    playButton.textContent = timer ? "Pause" : reducedMotion.matches ? "Next" : "Play";
  }

  function updateTexts() {
    slider.value = step;
    slider.setAttribute("aria-valuetext", `after ${formatCount(map.rounds[step])} rounds`);
    byId("map-found-heading").textContent = `Found by ${labelOf(policy)}`;
    byId("map-summary").textContent = stepSummary();
    // During the animation, a screen reader would read every step.
    byId("map-summary").setAttribute("aria-live", timer ? "off" : "polite");
    table.update(tableRows());
    updatePlayButton();
  }

  function refresh() {
    updateTexts();
    foundChart?.update("users", foundRows());
    foundChart?.describe(...foundTexts());
  }

  function showStep(newStep) {
    step = newStep;
    setChoice("round", step === last ? null : map.rounds[step]);
    refresh();
  }

  function play() {
    const first = step === last ? 0 : step + 1;
    if (reducedMotion.matches) return showStep(first); // one step per click
    timer = setInterval(() => {
      if (step + 1 === last) stop();
      showStep(step + 1);
    }, STEP_MILLISECONDS);
    return showStep(first);
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    updatePlayButton();
  }

  slider.addEventListener("input", () => {
    stop();
    showStep(Number(slider.value));
  });
  reducedMotion.addEventListener("change", stop);

  function createPolicyField() {
    const field = create("select", { name: "map" }, policies.map((name) =>
      create("option", { value: name, selected: name === policy }, name)));
    field.addEventListener("change", () => {
      policy = field.value;
      setChoice("map", policy === policies[0] ? null : policy);
      refresh();
    });
    return create("label", { className: "field" }, "Policy", field);
  }

  async function start() {
    byId("map").hidden = false;
    byId("map-description").textContent = `${map.sample}: projection of their true preferences θ onto two dimensions, ` +
      "in the first repeat. In the map on the right, colour and shape show which true cluster the user's clusters " +
      "match best. A thicker ring means that the user is in more clusters.";
    setContent(byId("map-choices"), createPolicyField(),
      create("label", { className: "field grow" }, "Round", slider), playButton);
    updateTexts();
    const options = (rows, label, summary, name) => ({ rows: { users: rows }, label, summary, name });
    const sizes = tableRows().map(({ users }) => String(users));
    await ui.drawChart(byId("map-true"), data.map_spec, options(trueRows(), "Users by true cluster",
      `${map.n_clusters} true ${map.n_clusters === 1 ? "cluster" : "clusters"} of ${report.joinNames(sizes)} users.`,
      "true-clusters"));
    foundChart = await ui.drawChart(byId("map-found"), data.map_spec,
      options(foundRows(), ...foundTexts(), "found-clusters"));
  }

  onParameterChange(refresh);
  report.ready = Promise.all([report.ready, start()]);
})();
