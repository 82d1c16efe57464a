/* Decisions as bars: what each feature of the recommended arm adds to its score, and the bonus. */

const FEATURES = 5; // with a colour of their own; the chart knows as many
export const INDENT = 130; // pixels of the chart "parts" beside its bars

/* Names in the places that they have in another chart, so that they have their colours too; others where room is. */
function placed(names, like) {
  const free = names.filter((name) => !like.includes(name));
  const places = Array.from({ length: FEATURES }, (_, place) => like[place]);
  return places.map((name) => (names.includes(name) ? name : free.shift() ?? ""));
}

/* decisions: [{arm, name, explanation}], from the top; like: the names of another such chart. Rows and values for the
   chart "parts". */
export function parts(decisions, like = []) {
  const told = decisions.filter((one) => one.explanation);
  const sums = new Map();
  for (const { explanation } of told) {
    for (const [feature, value] of Object.entries(explanation.contributions)) {
      sums.set(feature, (sums.get(feature) ?? 0) + Math.abs(value));
    }
  }
  const largest = [...sums].filter(([, size]) => size > 0).sort((a, b) => b[1] - a[1]).slice(0, FEATURES);
  const names = placed(largest.map(([feature]) => feature), like);
  const rows = told.flatMap(({ arm, explanation }, row) => ofOne(explanation, names)
    .map(([part, label, value], place) => ({ row, arm, part, label, value, order: place }))
    .filter(({ value }) => value !== 0));
  const used = new Set(rows.map(({ part }) => part));
  return {
    rows: { parts: rows, scores: told.map(({ explanation }, row) => ({ row, score: score(explanation) })) },
    values: {
      rows: told.map(({ name }) => name),
      names,
      legend_values: [...names.keys()].filter((place) => names[place]).map(String)
        .concat(["rest", "constant"].filter((part) => used.has(part)), "bonus"),
    },
  };
}

function score({ contributions, intercept: constant, bonus }) {
  return Object.values(contributions).reduce((sum, value) => sum + value, constant + bonus);
}

/* [part, label, value] in the order of the stack; what has no colour of its own adds up, gains and losses apart. */
function ofOne({ contributions, intercept: constant, bonus }, names) {
  const found = names.map((name, place) => [String(place), name, (name && contributions[name]) || 0]);
  const rest = Object.entries(contributions).filter(([name]) => !names.includes(name)).map(([, value]) => value);
  for (const sign of [1, -1]) {
    found.push(["rest", "other features", rest.filter((value) => value * sign > 0).reduce((sum, one) => sum + one, 0)]);
  }
  return [...found, ["constant", "constant", constant], ["bonus", "bonus for what is uncertain", bonus]];
}

/* A ranking as bars of estimate and bonus, for the same chart. */
export function ranked(ranking) {
  const told = ranking.filter((one) => one.score !== null);
  return {
    rows: {
      parts: told.flatMap(({ arm, estimate, bonus }, row) => [
        { row, arm, part: "estimate", label: "estimate", value: estimate, order: 0 },
        { row, arm, part: "bonus", label: "exploration bonus", value: bonus, order: 1 },
      ]),
      scores: told.map(({ score: end }, row) => ({ row, score: end })),
    },
    values: { rows: told.map(({ arm }) => arm), names: [], legend_values: ["estimate", "bonus"] },
  };
}
