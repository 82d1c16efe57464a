/* Curves of a comparison, by policy, parameters that vary, and repeat. Adds to window.report:

     entryIndex(policy)             returns the index in data.entries of the selected run of a policy; undefined if none
     labelOf(policy)                returns the name of a policy, with its parameters if several values were compared
     onParameterChange(listener)    calls listener() after the reader selects another value of a parameter */
(() => {
  "use strict";
  const ui = window.locbUi;
  const { create, setContent, byId } = ui;
  const { data, getChoice, setChoice, joinNames } = report;
  const MEAN = "mean", EACH = "each", BEST = "best";
  const parameterListeners = new Set();
  const parameters = Object.keys(data.parameters);
  const policiesChoice = getChoice("policies", null);
  const chosenPolicies = policiesChoice === null ? data.policies
    : policiesChoice.split(",").filter((name) => data.policies.includes(name));
  const selection = {
    policies: new Set(chosenPolicies),
    repeat: validChoice("repeat", [EACH, ...data.seeds.map((_, index) => String(index + 1))], MEAN),
  };
  for (const name of parameters) selection[name] = validChoice(name, data.parameters[name].map(String), BEST);
  const charts = [];

  function validChoice(name, values, fallback) {
    const value = getChoice(name, fallback);
    return values.includes(value) ? value : fallback;
  }

  /* Of the runs with the selected values, the run with the lowest regret. A policy without a parameter has any value. */
  function entryIndex(policy) {
    const isSelected = ({ policy: name, parameters: own }) => name === policy && parameters.every((parameter) =>
      selection[parameter] === BEST || !(parameter in own) || String(own[parameter]) === selection[parameter]);
    const found = [...data.entries.keys()].filter((index) => isSelected(data.entries[index]));
    found.sort((a, b) => data.entries[a].regret - data.entries[b].regret);
    return found[0];
  }

  const symbolOf = (parameter) => (parameter === "alpha" ? "α" : parameter);

  function labelOf(policy) {
    const own = data.entries[entryIndex(policy)]?.parameters ?? {};
    const texts = parameters.filter((name) => name in own).map((name) => `${symbolOf(name)} = ${own[name]}`);
    return texts.length ? `${policy} (${texts.join(", ")})` : policy;
  }

  // Rows

  function toPoints(curve, policy, line, values, repeat, hasBand) {
    const own = data.entries[entryIndex(policy)].parameters;
    const ownValues = Object.fromEntries(parameters.map((name) => [name, own[name] ?? null]));
    return curve.rounds.map((round, index) => ({
      policy, ...ownValues, repeat, round, [curve.name]: values[index],
      ...(hasBand ? { low: line.low[index], high: line.high[index] } : {}),
    })).filter((row) => row[curve.name] !== null);
  }

  function policyRows(curve, policy) {
    const line = curve.lines[entryIndex(policy)];
    if (!line) return [];
    if (selection.repeat === MEAN) return toPoints(curve, policy, line, line.mean, MEAN, "low" in line);
    const repeats = selection.repeat === EACH ? line.repeats.keys() : [Number(selection.repeat) - 1];
    return [...repeats].flatMap((index) => toPoints(curve, policy, line, line.repeats[index], index + 1, false));
  }

  function selectedPolicies() {
    return data.policies.filter((name) => selection.policies.has(name) && entryIndex(name) !== undefined);
  }

  // Texts

  const isSingleRepeat = () => selection.repeat !== MEAN && selection.repeat !== EACH;

  function lastValue(curve, policy) {
    const line = curve.lines[entryIndex(policy)];
    if (!line) return null;
    return (isSingleRepeat() ? line.repeats[Number(selection.repeat) - 1] : line.mean).at(-1);
  }

  function summarize(curve) {
    const policies = selectedPolicies();
    if (!policies.length) return "No policy is selected.";
    const values = policies.map((name) => [name, lastValue(curve, name)]).filter(([, value]) => value !== null);
    const without = policies.filter((name) => !curve.lines[entryIndex(name)]);
    const ranked = values.sort(([, a], [, b]) => (curve.name === "regret" ? a - b : b - a));
    const digits = curve.name === "clusters" && isSingleRepeat() ? 0 : curve.digits;
    const texts = ranked.map(([name, value]) => `${labelOf(name)} ${ui.formatNumber(value, digits)}`);
    const prefix = isSingleRepeat() || data.repeats === 1 ? "After" : "Mean after";
    const result = `${prefix} ${ui.formatCount(data.rounds)} rounds: ${texts.join(", ")}.`;
    const none = without.length
      ? `${joinNames(without)} ${without.length > 1 ? "do" : "does"} not group users.` : "";
    return [texts.length ? result : "", none].filter(Boolean).join(" ");
  }

  function refresh() {
    for (const { curve, chart } of charts) {
      chart.update("curves", selectedPolicies().flatMap((name) => policyRows(curve, name)));
      chart.describe(null, summarize(curve));
    }
  }

  // Controls

  function createPolicyChoice(name, index) {
    const colour = data.colours[index % data.colours.length];
    const swatch = create("span", { className: "swatch", "aria-hidden": "true" });
    const paint = () => (swatch.style.background = data.themes[ui.currentTheme()].colours[colour] ?? colour);
    ui.onThemeChange(paint);
    paint();
    const checkbox = create("input", {
      type: "checkbox", name: "policy", value: name, checked: selection.policies.has(name),
    });
    checkbox.addEventListener("change", () => {
      if (checkbox.checked) selection.policies.add(name);
      else selection.policies.delete(name);
      const names = data.policies.filter((policy) => selection.policies.has(policy));
      setChoice("policies", names.length === data.policies.length ? null : names.join(","));
      refresh();
    });
    return create("label", { className: "choice" }, checkbox, swatch, name);
  }

  function createSelect(name, label, options, onChange) {
    const field = create("select", { name }, options.map(([value, text]) =>
      create("option", { value, selected: selection[name] === value }, text)));
    field.addEventListener("change", () => {
      selection[name] = field.value;
      setChoice(name, field.value === options[0][0] ? null : field.value);
      refresh();
      onChange?.();
    });
    return create("label", { className: "field" }, label, field);
  }

  function createControls() {
    const createParameter = (name) => {
      const values = data.parameters[name].map((value) => [String(value), `${symbolOf(name)} = ${value}`]);
      return createSelect(name, name === "alpha" ? "Alpha" : name, [[BEST, "Best per policy"], ...values], () => {
        for (const listener of parameterListeners) listener();
      });
    };
    const all = [[MEAN, `Mean of ${data.repeats} repeats with 95% interval`], [EACH, `All ${data.repeats} repeats`]];
    const single = data.seeds.map((seed, index) => [String(index + 1), `Repeat ${index + 1} (random seed ${seed})`]);
    return [
      create("fieldset", {}, create("legend", {}, "Policies"), data.policies.map(createPolicyChoice)),
      ...parameters.map(createParameter),
      data.repeats > 1 ? createSelect("repeat", "Repeats", [...all, ...single]) : null,
    ];
  }

  // Charts

  async function drawCurve(curve, element) {
    const chart = await ui.drawChart(element, curve.spec, {
      rows: { curves: selectedPolicies().flatMap((name) => policyRows(curve, name)) },
      label: `${curve.title} over rounds`, summary: summarize(curve), name: curve.name,
    });
    charts.push({ curve, chart });
  }

  function start() {
    byId("explore").hidden = false;
    setContent(byId("choices"), createControls());
    const elements = data.curves.map(() => create("div"));
    setContent(byId("curves"), data.curves.map((curve, index) => create("section", { className: "card" },
      create("h3", {}, curve.title), create("p", { className: "muted small" }, curve.description), elements[index])));
    return Promise.all(data.curves.map((curve, index) => drawCurve(curve, elements[index])));
  }

  Object.assign(report, {
    entryIndex, labelOf, onParameterChange: (listener) => parameterListeners.add(listener), ready: start(),
  });
})();
