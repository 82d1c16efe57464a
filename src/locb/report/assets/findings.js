/* Report of findings: charts, and filters that select claims by verdict and by data set. */
(() => {
  "use strict";
  const ui = window.locbUi;
  const { create, setContent, byId } = ui;
  const { data } = report;
  const claims = [...document.querySelectorAll(".claim")];
  const filters = byId("filters");
  const selected = { verdict: null, data: null };
  const summary = create("p", { className: "muted small", role: "status" });

  const matches = (claim, [name, value]) => value === null || claim.dataset[name] === value;

  function refresh() {
    const isFiltered = Object.values(selected).some((value) => value !== null);
    for (const claim of claims) claim.hidden = !Object.entries(selected).every((filter) => matches(claim, filter));
    for (const section of document.querySelectorAll("[data-section]")) {
      section.hidden = isFiltered && !section.querySelector(".claim:not([hidden])");
    }
    const shown = claims.filter((claim) => !claim.hidden).length;
    summary.textContent = isFiltered ? `Showing ${shown} of ${claims.length} claims, with their sections.`
      : `Showing all ${claims.length} claims.`;
    for (const button of filters.querySelectorAll("button")) {
      const value = button.dataset.value ?? null;
      button.setAttribute("aria-pressed", selected[button.dataset.name] === value);
    }
    window.dispatchEvent(new Event("resize")); // charts that become visible adapt to their width
  }

  function createButton(name, value, text, count) {
    return create("button", { type: "button", className: "button small", "data-name": name, "data-value": value,
      onclick: () => {
        selected[name] = value;
        refresh();
      } }, `${text} `, create("span", { className: "muted" }, String(count)));
  }

  function createFilter(name, label) {
    const values = [...new Set(claims.map((claim) => claim.dataset[name]))];
    if (values.length < 2) return null;
    return create("fieldset", {}, create("legend", {}, label), createButton(name, null, "All", claims.length),
      values.map((value) => createButton(name, value, value,
        claims.filter((claim) => claim.dataset[name] === value).length)));
  }

  function start() {
    if (filters) {
      filters.hidden = false;
      const controls = create("div", { className: "controls" },
        createFilter("verdict", "Verdict"), createFilter("data", "Data"));
      setContent(filters, controls, summary);
      refresh();
    }
    // A click on a link to a section that the filters hide removes the filters.
    document.addEventListener("click", (event) => {
      const link = event.target.closest?.("a[href^='#']");
      const target = link && byId(link.getAttribute("href").slice(1));
      if (target?.closest("[data-section][hidden]")) {
        selected.verdict = selected.data = null;
        refresh();
      }
    });
    return Promise.all(Object.entries(data.charts).map(([id, { title, description, name, spec, rows }]) =>
      ui.drawChart(byId(`chart-${id}`), spec, { rows: { rows }, label: `${title}. ${description}`, name })));
  }

  report.ready = start();
})();
