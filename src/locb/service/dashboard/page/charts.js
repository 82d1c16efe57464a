/* Charts of the page. The service builds the files that draw the charts, and caches them. Until they are available,
   each chart shows a message. Numbers and tables do not need these files. */

import { request } from "./api.js";
import { formatProblem } from "./notices.js";

const ui = window.locbUi;
const { create, setContent } = ui;
const PREPARING = "Preparing charts, which takes a few seconds and is necessary only once. Numbers and tables are "
  + "available.";
const waiting = new Set(); // charts that wait for the files
let specifications = null;

function loadScript(source) {
  return new Promise((resolve, reject) => {
    document.head.append(create("script", { src: source, onload: resolve, onerror: reject }));
  });
}

async function loadFiles() {
  for (;;) {
    try {
      const files = await request("/page/charts.json"); // null while the files are being built
      if (files) {
        await loadScript("/page/vega.js");
        ui.themes = files.themes;
        return files.charts;
      }
    } catch (problem) {
      if (problem.status === 500) throw problem;
    }
    waiting.forEach((chart) => chart.showMessage(PREPARING));
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

function getSpecifications() {
  specifications ??= loadFiles();
  return specifications;
}

getSpecifications().catch(() => {}); // starts loading; each chart reports a failure

/* Chart in an element of the page. Call show() whenever there is new content. */
export class Chart {
  constructor(element, name, options = {}) {
    Object.assign(this, { element, name, options, drawn: null, latest: null, busy: false });
  }

  showMessage(message) {
    if (!this.drawn) setContent(this.element, message ? create("p", { className: "empty" }, message) : null);
  }

  /* content: {rows, params, label, summary} as in ui_chart.js, or {empty: message} if there is nothing to draw. */
  show(content) {
    this.latest = content;
    if (!this.busy) this.drawLatest();
  }

  async drawLatest() {
    this.busy = true;
    while (this.latest) {
      const content = this.latest;
      this.latest = null;
      if (content.empty !== undefined) this.clear(content.empty);
      else await this.draw(content);
    }
    this.busy = false;
  }

  clear(message) {
    this.drawn?.remove();
    this.drawn = null;
    this.showMessage(message);
  }

  async draw({ rows, params, label, summary }) {
    try {
      waiting.add(this);
      const specs = await getSpecifications();
      waiting.delete(this);
      if (!this.drawn) {
        const options = { name: this.name, ...this.options, rows, params, label, summary };
        this.drawn = await ui.drawChart(this.element, specs[this.name], options);
        return;
      }
      this.drawn.describe(label, summary);
      for (const [name, value] of Object.entries(params ?? {})) this.drawn.setParam(name, value);
      for (const [name, values] of Object.entries(rows)) this.drawn.setRows(name, values);
      await this.drawn.render();
    } catch (problem) {
      waiting.delete(this);
      if (problem.status === undefined) console.error(problem);
      this.showMessage(`Charts are not available. ${formatProblem(problem)}`);
    }
  }
}
