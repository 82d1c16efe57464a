/* "What would be recommended now": a question that decides nothing. */

import { ask } from "./api.js";
import { Place } from "./charts.js";
import { INDENT, parts, ranked } from "./explaining.js";
import { ofLenders, ofProblem } from "./words.js";

const { make, number, put } = window.look;
const at = (id) => document.getElementById(id);
const SHOWN = 12; // arms of a ranking

export class Preview {
  constructor() {
    this.ranking = new Place(at("preview-ranking"), "parts", { indent: INDENT });
    this.parts = new Place(at("preview-parts"), "parts", { indent: INDENT });
    this.like = []; // features as the bars of the decisions have them
    at("preview").addEventListener("submit", (event) => {
      event.preventDefault();
      this.ask();
    });
    at("preview-fill").addEventListener("click", () => this.fill());
  }

  /* Another user. */
  open(user) {
    this.user = user;
    this.arms = [];
    at("preview-arms").value = "";
    this.clear();
  }

  clear(...words) {
    put(at("preview-answer"), words);
    for (const place of [this.ranking, this.parts]) {
      place.show({ empty: "" });
    }
  }

  /* The arms that were recommended lately, each once. */
  offer(decisions) {
    const seen = new Map();
    for (const { arm, features } of decisions) if (!seen.has(arm)) seen.set(arm, { id: arm, features });
    this.arms = [...seen.values()];
    at("preview-fill").disabled = !this.arms.length;
    if (!at("preview-arms").value) this.fill();
  }

  fill() {
    at("preview-arms").value = this.arms.length ? `[${this.arms.map((arm) => JSON.stringify(arm)).join(",\n ")}]` : "";
  }

  async ask() {
    let arms;
    try {
      arms = JSON.parse(at("preview-arms").value);
    } catch (error) {
      this.clear(make("p", { className: "note bad" }, `The arms are not JSON: ${error.message}.`));
      return;
    }
    try {
      this.show(await ask("/v1/preview", { user: this.user, arms }));
    } catch (problem) {
      const unfit = [400, 422].includes(problem.status);
      const told = unfit ? `The arms do not fit: ${problem.message}.` : ofProblem(problem);
      this.clear(make("p", { className: "note bad" }, told));
    }
  }

  show({ arm, ranking, explanation }) {
    const [first] = ranking;
    const sum = first.score === null ? "" : ` Its score is ${number(first.score)}: an estimate of `
      + `${number(first.estimate)} and a bonus of ${number(first.bonus)} for what is uncertain.`;
    const sources = explanation?.sources ?? [];
    const whose = sources.length ? ` The estimate rests on the rewards of ${ofLenders(sources)}.` : "";
    put(at("preview-answer"),
      make("p", { className: "note info" }, "Now it would be ", make("strong", {}, arm), `.${sum}${whose}`));
    const shown = ranking.slice(0, SHOWN);
    if (first.score === null) this.ranking.show({ empty: "The policy does not tell scores." });
    else {
      const which = shown.length === ranking.length ? "all arms" : `the best ${shown.length} of ${ranking.length} arms`;
      this.ranking.show({ ...ranked(shown), label: "Scores of the arms", summary: `Scores of ${which}.` });
    }
    if (!explanation) this.parts.show({ empty: "The policy does not explain its choice." });
    else {
      this.parts.show({ ...parts([{ arm, name: arm, explanation }], this.like), label: `What makes the score of ${arm}`,
        summary: "What each feature of the recommended arm adds." });
    }
  }
}
