/* The page of findings: its charts, and claims by verdict and by data. */
(() => {
  "use strict";
  const { make, put } = look;
  const { data } = report;
  const claims = [...document.querySelectorAll(".claim")];
  const filters = document.getElementById("filters");
  const chosen = { verdict: null, data: null };
  const told = make("p", { className: "quiet small", role: "status" });

  const fits = (claim, [name, value]) => value === null || claim.dataset[name] === value;

  function refresh() {
    const active = Object.values(chosen).some((value) => value !== null);
    for (const claim of claims) claim.hidden = !Object.entries(chosen).every((pair) => fits(claim, pair));
    for (const section of document.querySelectorAll("[data-section]")) {
      section.hidden = active && !section.querySelector(".claim:not([hidden])");
    }
    const shown = claims.filter((claim) => !claim.hidden).length;
    told.textContent = active ? `${shown} of ${claims.length} claims are shown, and the sections that hold them.`
      : `All ${claims.length} claims are shown.`;
    for (const button of filters.querySelectorAll("button")) {
      const value = button.dataset.value ?? null;
      button.setAttribute("aria-pressed", chosen[button.dataset.name] === value);
    }
    window.dispatchEvent(new Event("resize")); // charts that come back measure their boxes
  }

  function buttonFor(name, value, text, count) {
    const button = make("button", { type: "button", className: "button small", "data-name": name, "data-value": value,
      onclick: () => {
        chosen[name] = value;
        refresh();
      } }, `${text} `, make("span", { className: "quiet" }, String(count)));
    return button;
  }

  function buttons(name, label) {
    const values = [...new Set(claims.map((claim) => claim.dataset[name]))];
    if (values.length < 2) return null;
    return make("fieldset", {}, make("legend", {}, label), buttonFor(name, null, "All", claims.length),
      values.map((value) => buttonFor(name, value, value,
        claims.filter((claim) => claim.dataset[name] === value).length)));
  }

  function start() {
    if (filters) {
      filters.hidden = false;
      const both = make("div", { className: "controls" }, buttons("verdict", "Verdict"), buttons("data", "Data"));
      put(filters, both, told);
      refresh();
    }
    // A link to evidence must work whatever was filtered away.
    document.addEventListener("click", (event) => {
      const link = event.target.closest?.("a[href^='#']");
      const goal = link && document.getElementById(link.getAttribute("href").slice(1));
      if (goal?.closest("[data-section][hidden]")) {
        chosen.verdict = chosen.data = null;
        refresh();
      }
    });
    return Promise.all(Object.entries(data.charts).map(([name, { title, description: summary, name: file, spec, rows }]) =>
      look.chart(document.getElementById(`chart-${name}`), spec, {
        rows: { rows }, label: `${title}. ${summary}`, name: file,
      })));
  }

  report.ready = start();
})();
