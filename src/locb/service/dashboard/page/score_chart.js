/* Data of the chart "parts", which shows scores as stacked bars: contributions of the features, intercept and bonus. */

const MAX_FEATURES = 5; // features with their own colour; see MAX_COLOURED_FEATURES in dashboard_charts.py
export const LEGEND_INDENT = 130; // pixels to the left of the bars
const BONUS_LABEL = "exploration bonus";

/* Returns the names in the order of another chart, so that a feature has the same colour in both charts. Names that the
   other chart does not have fill the gaps. */
function orderLike(names, reference) {
  const added = names.filter((name) => !reference.includes(name));
  const slots = Array.from({ length: MAX_FEATURES }, (_, index) => reference[index]);
  return slots.map((name) => (names.includes(name) ? name : added.shift() ?? ""));
}

/* Returns the rows and parameters of the chart for decisions [{arm, name, explanation}], from top to bottom.
   reference: feature names of another chart, which keep their colours. */
export function explainDecisions(decisions, reference = []) {
  const explained = decisions.filter(({ explanation }) => explanation);
  const sizes = new Map();
  for (const { explanation } of explained) {
    for (const [feature, value] of Object.entries(explanation.contributions)) {
      sizes.set(feature, (sizes.get(feature) ?? 0) + Math.abs(value));
    }
  }
  const largest = [...sizes].filter(([, size]) => size > 0).sort((a, b) => b[1] - a[1]).slice(0, MAX_FEATURES);
  const names = orderLike(largest.map(([feature]) => feature), reference);
  const parts = explained.flatMap(({ arm, explanation }, row) => scoreParts(explanation, names)
    .map(([part, label, value], order) => ({ row, arm, part, label, value, order }))
    .filter(({ value }) => value !== 0));
  const used = new Set(parts.map(({ part }) => part));
  return {
    rows: { parts, scores: explained.map(({ explanation }, row) => ({ row, score: totalScore(explanation) })) },
    params: {
      rows: explained.map(({ name }) => name),
      names,
      legend_values: [...names.keys()].filter((index) => names[index]).map(String)
        .concat(["rest", "intercept"].filter((part) => used.has(part)), "bonus"),
    },
  };
}

function totalScore({ contributions, intercept, bonus }) {
  return Object.values(contributions).reduce((sum, value) => sum + value, intercept + bonus);
}

/* Returns triples [part, label, value] in stacking order. Features without their own colour are added up: the positive
   contributions, and the negative contributions. */
function scoreParts({ contributions, intercept, bonus }, names) {
  const parts = names.map((name, index) => [String(index), name, (name && contributions[name]) || 0]);
  const rest = Object.entries(contributions).filter(([name]) => !names.includes(name)).map(([, value]) => value);
  for (const sign of [1, -1]) {
    const total = rest.filter((value) => value * sign > 0).reduce((sum, value) => sum + value, 0);
    parts.push(["rest", "other features", total]);
  }
  return [...parts, ["intercept", "intercept", intercept], ["bonus", BONUS_LABEL, bonus]];
}

/* Returns the rows and parameters of the chart for a ranking: bars of estimate and bonus. */
export function explainRanking(ranking) {
  const scored = ranking.filter(({ score }) => score !== null);
  return {
    rows: {
      parts: scored.flatMap(({ arm, estimate, bonus }, row) => [
        { row, arm, part: "estimate", label: "estimate", value: estimate, order: 0 },
        { row, arm, part: "bonus", label: BONUS_LABEL, value: bonus, order: 1 },
      ]),
      scores: scored.map(({ score }, row) => ({ row, score })),
    },
    params: { rows: scored.map(({ arm }) => arm), names: [], legend_values: ["estimate", "bonus"] },
  };
}
