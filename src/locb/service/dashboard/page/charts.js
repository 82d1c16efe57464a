/* Charts as the service describes them. What draws them is made at the service's first start: until it is there, and
   if it never is, their places say so, and all figures and tables are there all the same. */

import { ofProblem } from "./words.js";
import { ask } from "./api.js";

const { make, put } = window.look;
const PREPARING = "Charts are being prepared, some seconds at the first start. Figures and tables are here.";
let loading = null;

function script(source) {
  return new Promise((done, failed) => {
    document.head.append(make("script", { src: source, onload: done, onerror: failed }));
  });
}

async function load(waiting) {
  for (;;) {
    try {
      const described = await ask("/page/charts.json"); // null until it is made
      if (described) {
        await script("/page/vega.js");
        window.look.themes = described.themes;
        return described.charts;
      }
    } catch (problem) {
      if (problem.status === 500) throw problem;
    }
    waiting(PREPARING);
    await new Promise((done) => setTimeout(done, 1000));
  }
}

const places = new Set(); // that wait

function drawing() {
  loading ??= load((told) => places.forEach((place) => place.tell(told)));
  return loading;
}

drawing().catch(() => {}); // at once; each place tells what came of it

/* A place for a chart: show() as often as there is something new. */
export class Place {
  constructor(element, name, options = {}) {
    Object.assign(this, { element, name, options, handle: null, latest: null, busy: false });
  }

  tell(sentence) {
    if (!this.handle) put(this.element, sentence ? make("p", { className: "empty" }, sentence) : null);
  }

  /* rows by data set, values by parameter, label and summary in words; empty: a sentence if nothing is to be drawn. */
  show(content) {
    this.latest = content;
    if (!this.busy) this.draw();
  }

  async draw() {
    this.busy = true;
    while (this.latest) {
      const content = this.latest;
      this.latest = null;
      if (content.empty !== undefined) this.clear(content.empty);
      else await this.drawOne(content);
    }
    this.busy = false;
  }

  clear(sentence) {
    this.handle?.remove();
    this.handle = null;
    this.tell(sentence);
  }

  async drawOne(content) {
    try {
      places.add(this);
      const charts = await drawing();
      places.delete(this);
      if (!this.handle) {
        const { rows, values, label, summary } = content;
        const options = { name: this.name, ...this.options, rows, values, label, summary };
        this.handle = await window.look.chart(this.element, charts[this.name], options);
        return;
      }
      this.handle.describe(content.label, content.summary);
      for (const [parameter, value] of Object.entries(content.values ?? {})) this.handle.put(parameter, value);
      for (const [set, rows] of Object.entries(content.rows)) this.handle.fill(set, rows);
      await this.handle.run();
    } catch (problem) {
      places.delete(this);
      if (problem.status === undefined) console.error(problem);
      this.tell(`Charts cannot be shown. ${ofProblem(problem)}`);
    }
  }
}
