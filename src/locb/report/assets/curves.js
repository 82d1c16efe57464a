/* The curves of a comparison: which policies, at which alpha, which repeats.

   report.entryOf(policy)     the place of what is shown of a policy among the entries; undefined where there is none
   report.onAlpha(f)          f() after another alpha was chosen */
(() => {
  "use strict";
  const { make, put } = look;
  const { data, choice, choose, inWords } = report;
  const MEAN = "mean", EACH = "each", BEST = "best";
  const listeners = new Set();
  const several = data.alphas.length > 1;
  const kept = choice("policies", null);
  const shown = {
    policies: new Set(kept === null ? data.policies : kept.split(",").filter((name) => data.policies.includes(name))),
    alpha: known(choice("alpha", BEST), data.alphas.map(String), BEST),
    repeat: known(choice("repeat", MEAN), [EACH, ...data.seeds.map((_, place) => String(place + 1))], MEAN),
  };
  const charts = [];

  function known(value, values, usual) {
    return values.includes(value) ? value : usual;
  }

  function entryOf(policy) {
    if (shown.alpha === BEST) return data.best.find((place) => data.entries[place].policy === policy);
    const place = data.entries.findIndex(({ policy: name, alpha }) =>
      name === policy && (alpha === null || String(alpha) === shown.alpha));
    return place < 0 ? undefined : place;
  }

  /* A policy with its alpha, where several were tried. */
  function labelOf(policy) {
    const alpha = data.entries[entryOf(policy)]?.alpha;
    return several && alpha !== null && alpha !== undefined ? `${policy} (α = ${alpha})` : policy;
  }

  // Rows

  function points(curve, policy, line, values, repeat, band) {
    const { alpha } = data.entries[entryOf(policy)];
    return curve.rounds.map((round, place) => ({
      policy, alpha, repeat, round, [curve.name]: values[place],
      ...(band ? { low: line.low[place], high: line.high[place] } : {}),
    })).filter((row) => row[curve.name] !== null);
  }

  function rowsOf(curve, policy) {
    const line = curve.lines[entryOf(policy)];
    if (!line) return [];
    if (shown.repeat === MEAN) return points(curve, policy, line, line.mean, MEAN, "low" in line);
    const repeats = shown.repeat === EACH ? line.repeats.keys() : [Number(shown.repeat) - 1];
    return [...repeats].flatMap((place) => points(curve, policy, line, line.repeats[place], place + 1, false));
  }

  function chosen() {
    return data.policies.filter((name) => shown.policies.has(name) && entryOf(name) !== undefined);
  }

  // In words

  const isSingle = () => shown.repeat !== MEAN && shown.repeat !== EACH;

  function lastOf(curve, policy) {
    const line = curve.lines[entryOf(policy)];
    if (!line) return null;
    return (isSingle() ? line.repeats[Number(shown.repeat) - 1] : line.mean).at(-1);
  }

  function summary(curve) {
    const policies = chosen();
    if (!policies.length) return "No policy is chosen.";
    const ends = policies.map((name) => [name, lastOf(curve, name)]).filter(([, value]) => value !== null);
    const without = policies.filter((name) => !curve.lines[entryOf(name)]);
    const ranked = ends.sort(([, a], [, b]) => (curve.name === "regret" ? a - b : b - a));
    const digits = curve.name === "clusters" && isSingle() ? 0 : curve.digits;
    const told = ranked.map(([name, value]) => `${labelOf(name)} ${look.number(value, digits)}`);
    const whose = isSingle() || data.repeats === 1 ? "After" : "On average after";
    const after = `${whose} ${look.count(data.rounds)} rounds: ${told.join(", ")}.`;
    const none = without.length ? `${inWords(without)} ${without.length > 1 ? "look" : "looks"} for no sets.` : "";
    return [told.length ? after : "", none].filter(Boolean).join(" ");
  }

  function refresh() {
    for (const { curve, handle } of charts) {
      handle.update("curves", chosen().flatMap((name) => rowsOf(curve, name)));
      handle.describe(null, summary(curve));
    }
  }

  // Controls

  function policyChoice(name, place) {
    const colour = data.colours[place % data.colours.length];
    const swatch = make("span", { className: "swatch", "aria-hidden": "true" });
    const paint = () => (swatch.style.background = data.themes[look.theme()].colours[colour] ?? colour);
    look.onTheme(paint);
    paint();
    const box = make("input", { type: "checkbox", name: "policy", value: name, checked: shown.policies.has(name) });
    box.addEventListener("change", () => {
      if (box.checked) shown.policies.add(name);
      else shown.policies.delete(name);
      const names = data.policies.filter((one) => shown.policies.has(one));
      choose("policies", names.length === data.policies.length ? null : names.join(","));
      refresh();
    });
    return make("label", { className: "choice" }, box, swatch, name);
  }

  function select(name, label, options, then) {
    const field = make("select", { name }, options.map(([value, text]) =>
      make("option", { value, selected: shown[name] === value }, text)));
    field.addEventListener("change", () => {
      shown[name] = field.value;
      choose(name, field.value === options[0][0] ? null : field.value);
      refresh();
      then?.();
    });
    return make("label", { className: "field" }, label, field);
  }

  function controls() {
    const alphas = data.alphas.map((alpha) => [String(alpha), `α = ${alpha}`]);
    const told = [[MEAN, `Mean of all ${data.repeats}, with 95% interval`], [EACH, `All ${data.repeats}, one by one`]];
    const single = data.seeds.map((seed, place) => [String(place + 1), `Repeat ${place + 1} (seed ${seed})`]);
    return [
      make("fieldset", {}, make("legend", {}, "Policies"), data.policies.map(policyChoice)),
      several ? select("alpha", "Alpha", [[BEST, "Best of each"], ...alphas], () => {
        for (const listener of listeners) listener();
      }) : null,
      data.repeats > 1 ? select("repeat", "Repeats", [...told, ...single]) : null,
    ];
  }

  // Charts

  async function draw(curve, holder) {
    const handle = await look.chart(holder, curve.spec, {
      rows: { curves: chosen().flatMap((name) => rowsOf(curve, name)) },
      label: `${curve.title} over rounds`, summary: summary(curve), name: curve.name,
    });
    charts.push({ curve, handle });
  }

  function start() {
    document.getElementById("explore").hidden = false;
    put(document.getElementById("choices"), controls());
    const holders = data.curves.map(() => make("div"));
    put(document.getElementById("curves"), data.curves.map((curve, place) => make("section", { className: "card" },
      make("h3", {}, curve.title), make("p", { className: "quiet small" }, curve.description), holders[place])));
    return Promise.all(data.curves.map((curve, place) => draw(curve, holders[place])));
  }

  Object.assign(report, { entryOf, labelOf, onAlpha: (listener) => listeners.add(listener), ready: start() });
})();
