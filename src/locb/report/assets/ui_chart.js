/* Charts from Vega-Lite specifications. Adds to window.locbUi:

     themes     {light: {config, colours}, dark: …}, the value of THEMES in chart_theme.py; set it before drawing
     drawChart(element, spec, {rows, params, label, summary, name, actions, onClick, legendIndent, legendEntryWidth})
       element: replaced content; spec: Vega-Lite specification
       rows: {name of a dataset: rows}; params: {name of a parameter of the specification: value}
       label: what the chart is; summary: what it shows; together they are the text alternative
       name: base name of downloaded files; actions: false omits the download buttons
       onClick(datum): called after a click on a mark
       legendIndent: width in pixels that is not available to the legend; legendEntryWidth: width of an entry in pixels
       If the specification has a parameter "columns", drawChart sets it to the number of legend columns that fit.
     returns a promise of an object with
       setRows(dataset, rows), setParam(parameter, value)   take effect with the next render()
       render()                      draws the chart
       update(dataset, rows)         calls setRows and render
       describe(label, summary)      sets the text alternative
       remove()                      removes the chart */
(() => {
  "use strict";
  const ui = window.locbUi;
  const { create, setContent, currentTheme, onThemeChange } = ui;

  // Tooltip

  const tooltip = create("div", { className: "tooltip", hidden: true });

  /* Replaces Vega's own tooltip, which needs inline styles that the content security policy forbids. */
  function showTooltip(_, event, __, value) {
    if (value === null || value === undefined || value === "") {
      tooltip.hidden = true;
      return;
    }
    const pairs = typeof value === "object" ? Object.entries(value) : [["", String(value)]];
    setContent(tooltip, create("dl", {}, pairs.flatMap(([name, text]) =>
      [create("dt", {}, name), create("dd", {}, String(text))])));
    if (!tooltip.isConnected) document.body.append(tooltip);
    tooltip.hidden = false;
    const left = Math.min(event.clientX + 14, window.innerWidth - tooltip.offsetWidth - 8);
    const below = event.clientY + 14;
    const overflows = below + tooltip.offsetHeight > window.innerHeight - 8;
    tooltip.style.left = `${Math.max(8, left)}px`;
    tooltip.style.top = `${overflows ? event.clientY - tooltip.offsetHeight - 10 : below}px`;
  }

  // Specification

  /* Replaces the colours of a specification with those of a theme. */
  function recolour(value, colours) {
    if (typeof value === "string") return colours[value] ?? value;
    if (Array.isArray(value)) return value.map((item) => recolour(item, colours));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) =>
      [name, name === "values" || name === "datasets" ? inner : recolour(inner, colours)]));
  }

  const countColumns = (box, { indent, entryWidth }) =>
    Math.max(1, Math.floor((box.clientWidth - indent) / entryWidth));

  // Vega adds a key to each row object and rejects rows that already have this key.
  const copyRows = (rows) => rows.map((row) => ({ ...row }));

  async function embed(box, spec, { rows, params, legend }) {
    const { config = {}, colours = {} } = ui.themes?.[currentTheme()] ?? {};
    const { config: fileConfig, ...bare } = recolour(spec, colours);
    const datasets = Object.fromEntries(Object.entries(rows).map(([name, values]) => [name, copyRows(values)]));
    const values = { ...params, columns: countColumns(box, legend) };
    const complete = {
      ...bare,
      params: bare.params?.map((param) => (param.name in values ? { ...param, value: values[param.name] } : param)),
      datasets: { ...bare.datasets, ...datasets },
      ...(ui.themes ? {} : { config: fileConfig }),
    };
    const { view } = await window.vegaEmbed(box, complete, {
      config, ast: true, actions: false, defaultStyle: false, tooltip: showTooltip, renderer: "canvas",
      mode: "vega-lite", logLevel: 1, // errors only: empty data sets cause warnings
    });
    return view;
  }

  // Chart

  function createDownloadButtons(chart) {
    const firstRows = () => Object.values(chart.rows).find((rows) => rows.length) ?? [];
    const saveData = () => ui.download(`${chart.name}.csv`, firstRows());
    const saveImage = async () => ui.download(`${chart.name}.png`, await chart.view.toImageURL("png", 2));
    const button = (onclick, text, format) =>
      create("button", { type: "button", className: "button ghost small", onclick }, text,
        create("span", { className: "visually-hidden" }, ` (${format}): `,
          create("span", { className: "chart-label" }, chart.label)));
    return create("span", { className: "row" },
      button(saveData, "Save data", "CSV"), button(saveImage, "Save image", "PNG"));
  }

  async function drawChart(element, spec, options = {}) {
    const chart = {
      rows: { ...options.rows }, params: { ...options.params }, label: options.label ?? "Chart",
      name: options.name ?? "chart", view: null, removed: false,
      legend: { indent: options.legendIndent ?? 0, entryWidth: options.legendEntryWidth ?? 125 },
    };
    const box = create("div", { className: "chart", role: "img" });
    const summaryLine = create("p");
    const footer = create("div", { className: "chart-footer" }, summaryLine,
      options.actions === false ? null : createDownloadButtons(chart));
    setContent(element, box, footer);

    function describe(label, summary) {
      chart.label = label ?? chart.label;
      box.setAttribute("aria-label", summary ? `${chart.label}. ${summary}` : chart.label);
      summaryLine.textContent = summary ?? "";
      for (const span of footer.querySelectorAll(".chart-label")) span.textContent = chart.label;
      footer.hidden = !summary && options.actions === false;
    }

    function setRows(name, rows) {
      chart.rows[name] = rows;
      chart.view.data(name, copyRows(rows));
    }

    function setParam(name, value) {
      chart.params[name] = value;
      chart.view.signal(name, value);
    }

    async function render() {
      await chart.view.resize().runAsync(); // resize: the height of the legend can change
      // A scrolling box must be reachable by keyboard.
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }

    async function redraw() {
      const inner = create("div");
      const view = await embed(setContent(box, inner).firstChild, spec, chart);
      if (chart.removed) return view.finalize();
      chart.view?.finalize();
      chart.view = view;
      if (options.onClick) {
        view.addEventListener("click", (_, item) => item?.datum && options.onClick(item.datum));
      }
      return render();
    }

    describe(chart.label, options.summary);
    await redraw();
    const removeListener = onThemeChange(redraw);
    // Vega adapts to its box when the size of the window changes. The box also changes when its panel is shown.
    let width = box.clientWidth;
    const sizes = new ResizeObserver(() => {
      if (box.clientWidth === width || !box.clientWidth) return;
      width = box.clientWidth;
      window.dispatchEvent(new Event("resize"));
      if (spec.params?.some(({ name }) => name === "columns")) {
        chart.view.signal("columns", countColumns(box, chart.legend));
      }
      render();
    });
    sizes.observe(box);
    return {
      get view() {
        return chart.view;
      },
      describe,
      setRows,
      setParam,
      render,
      update(name, rows) {
        setRows(name, rows);
        return render();
      },
      remove() {
        chart.removed = true;
        removeListener();
        sizes.disconnect();
        chart.view.finalize();
        tooltip.hidden = true;
        setContent(element);
      },
    };
  }

  Object.assign(ui, { themes: null, drawChart });
})();
