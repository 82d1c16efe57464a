/* Preview: the arm that would be recommended to a user now. No decision is stored. */

import { request } from "./api.js";
import { Chart } from "./charts.js";
import { explainDecisions, explainRanking, LEGEND_INDENT } from "./score_chart.js";
import { formatRanking, formatRecommendation, NO_EXPLANATIONS, NO_SCORES, RECOMMENDED_SUMMARY } from "./sentences.js";
import { formatProblem } from "./notices.js";

const { byId, create, setContent } = window.locbUi;
const MAX_ARMS = 12; // arms in the chart of the ranking

export class Preview {
  constructor() {
    this.rankingChart = new Chart(byId("preview-ranking"), "parts", { legendIndent: LEGEND_INDENT });
    this.partsChart = new Chart(byId("preview-parts"), "parts", { legendIndent: LEGEND_INDENT });
    this.featureNames = []; // of the chart of decisions, so that a feature has the same colour in both charts
    byId("preview").addEventListener("submit", (event) => {
      event.preventDefault();
      this.load();
    });
    byId("preview-fill").addEventListener("click", () => this.fillArms());
  }

  open(user) {
    this.user = user;
    this.arms = [];
    byId("preview-arms").value = "";
    this.clear();
  }

  clear(...content) {
    setContent(byId("preview-result"), content);
    for (const chart of [this.rankingChart, this.partsChart]) chart.show({ empty: "" });
  }

  /* Stores the recommended arms of recent decisions, each once, for the button that fills them in. */
  offerArms(decisions) {
    const arms = new Map();
    for (const { arm, features } of decisions) if (!arms.has(arm)) arms.set(arm, { id: arm, features });
    this.arms = [...arms.values()];
    byId("preview-fill").disabled = !this.arms.length;
    if (!byId("preview-arms").value) this.fillArms();
  }

  fillArms() {
    const lines = this.arms.map((arm) => JSON.stringify(arm)).join(",\n ");
    byId("preview-arms").value = this.arms.length ? `[${lines}]` : "";
  }

  async load() {
    let arms;
    try {
      arms = JSON.parse(byId("preview-arms").value);
    } catch (error) {
      this.clear(create("p", { className: "note bad" }, `The arms are not valid JSON: ${error.message}. `
        + "Enter an array of objects with id and features."));
      return;
    }
    try {
      this.show(await request("/v1/preview", { user: this.user, arms }));
    } catch (problem) {
      const isInvalid = [400, 422].includes(problem.status);
      const text = isInvalid ? `The arms are invalid: ${problem.message}.` : formatProblem(problem);
      this.clear(create("p", { className: "note bad" }, text));
    }
  }

  show({ arm, ranking, explanation }) {
    const [first] = ranking;
    setContent(byId("preview-result"), create("p", { className: "note info" }, "Recommended now: ",
      create("strong", {}, arm), `.${formatRecommendation(first, explanation)}`));
    const shown = ranking.slice(0, MAX_ARMS);
    if (first.score === null) this.rankingChart.show({ empty: NO_SCORES });
    else {
      const summary = formatRanking(shown.length, ranking.length);
      this.rankingChart.show({ ...explainRanking(shown), label: "Scores of arms", summary });
    }
    if (!explanation) this.partsChart.show({ empty: NO_EXPLANATIONS });
    else {
      this.partsChart.show({ ...explainDecisions([{ arm, name: arm, explanation }], this.featureNames),
        label: `Parts of the score of ${arm}`, summary: RECOMMENDED_SUMMARY });
    }
  }
}
