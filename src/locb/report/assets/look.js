/* What the service's page and the HTML reports do alike; a plain script, so that a report may hold it in itself.

   window.look:
     themes                      {light: {config, colours}, dark: …} of chart_theme.THEMES; set it first
     theme()                     "light" or "dark", as it is shown now
     onTheme(f)                  f(theme) whenever that changes
     themeSwitch(button)         makes a button change it; the choice is kept for this browser
     make(tag, attributes, ...children)   an element; children are elements or text, never HTML
     put(element, ...children)   instead of what is in it
     chart(element, spec, {rows, values, label, summary, name, actions, click, indent, entry})
                                 draws a Vega-Lite specification; a promise of a handle:
                                   .update(set, rows)  other rows of a named data set (all of them)
                                   .set(parameter, value)  of the specification's params
                                   .fill(set, rows), .put(parameter, value), .run()  the same, several in one drawing
                                   .describe(label, summary)  the text alternative
                                   .remove()
                                 rows: {set: rows}; values: {parameter: value};
                                 label and summary: what the chart is, and what it shows, in words;
                                 a parameter "columns" is that of a legend, by the width of the box, of which
                                 indent, in pixels, is not the legend's: it begins where the marks do;
                                 entry: pixels of its widest entry;
                                 name: of files; actions: false leaves the buttons out; click(datum) for marks
     table(element, columns, rows, {caption, sort, onSort, key, empty, tall})
                                 a table whose headings sort; a handle: .update(rows), .sorted(name, direction);
                                 rows: null while they are not known yet
                                 columns: [{name, title, number, value(row), show(row), sort: false, way}]; show gives
                                 text or an element; way: the only direction there is.
                                 onSort(name, direction): rows come sorted from elsewhere
     tabs(nav, show)             links to #name (or #name/rest) of a nav show the sections panel-name;
                                 show(name, rest) after each change
     download(file, content)     text, or rows as CSV; a Blob or a data URL too
     csv(rows)                   rows as text
     number(value, digits), share(value), count(value)   as they are written everywhere
     time(seconds), clock(seconds)   a moment, with its day unless it is today; the time of day alone */
(() => {
  "use strict";
  const KEPT = "locb-theme";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const listeners = new Set();

  // Theme

  function kept() {
    try {
      return localStorage.getItem(KEPT);
    } catch {
      return null; // a page from disk, or a browser that keeps nothing
    }
  }

  function apply(choice) {
    if (choice === "light" || choice === "dark") document.documentElement.dataset.theme = choice;
  }

  function theme() {
    return document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
  }

  function changed() {
    for (const listener of listeners) listener(theme());
  }

  function onTheme(listener) {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  function setTheme(choice) {
    apply(choice);
    try {
      localStorage.setItem(KEPT, choice);
    } catch {
      // not kept then
    }
    changed();
  }

  function themeSwitch(button) {
    const tell = () => {
      const other = theme() === "dark" ? "light" : "dark";
      button.textContent = other === "dark" ? "Dark" : "Light";
      button.setAttribute("aria-label", `Show in ${other} colours`);
    };
    button.addEventListener("click", () => setTheme(theme() === "dark" ? "light" : "dark"));
    onTheme(tell);
    tell();
  }

  apply(kept());
  dark.addEventListener("change", changed);

  // Elements

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name === "className" ? "class" : name, value === true ? "" : String(value));
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  }

  function put(element, ...children) {
    element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  }

  // Figures in words

  const missing = "–";

  function number(value, digits = 3) {
    if (value === null || value === undefined || Number.isNaN(value)) return missing;
    return value.toLocaleString("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits })
      .replace(/^-/, "−");
  }

  function count(value) {
    return number(value, 0);
  }

  function share(value) {
    if (value === null || value === undefined) return missing;
    return `${number(100 * value, value > 0 && value < 0.1 ? 1 : 0)}%`;
  }

  const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit" };

  function clock(seconds) {
    return new Date(1000 * seconds).toLocaleTimeString("en-GB", CLOCK);
  }

  function time(seconds) {
    if (seconds === null || seconds === undefined) return missing;
    const [then, now] = [new Date(1000 * seconds), new Date()];
    if (then.toDateString() === now.toDateString()) return clock(seconds);
    const year = then.getFullYear() === now.getFullYear() ? undefined : "numeric";
    return then.toLocaleString("en-GB", { day: "numeric", month: "short", year, ...CLOCK });
  }

  // Files

  function csv(rows) {
    const names = [...new Set(rows.flatMap(Object.keys))];
    const cell = (value) => {
      const text = value === null || value === undefined ? "" : String(value);
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    return [names, ...rows.map((row) => names.map((name) => row[name]))]
      .map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
  }

  function download(file, content) {
    const text = Array.isArray(content) ? csv(content) : content;
    const isUrl = typeof text === "string" && text.startsWith("data:");
    const blob = text instanceof Blob ? text : new Blob([text], { type: "text/csv" });
    const url = isUrl ? text : URL.createObjectURL(blob);
    const link = make("a", { href: url, download: file });
    document.body.append(link);
    link.click();
    link.remove();
    if (!isUrl) setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  // Charts

  const tip = make("div", { className: "tip", hidden: true });

  /* Shows what a mark says, as text; Vega's own way needs styles that a strict page does not allow. */
  function showTip(_, event, __, value) {
    if (value === null || value === undefined || value === "") {
      tip.hidden = true;
      return;
    }
    const pairs = typeof value === "object" ? Object.entries(value) : [["", String(value)]];
    put(tip, make("dl", {}, pairs.flatMap(([name, told]) => [make("dt", {}, name), make("dd", {}, String(told))])));
    if (!tip.isConnected) document.body.append(tip);
    tip.hidden = false;
    const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
    const below = event.clientY + 14;
    const over = below + tip.offsetHeight > window.innerHeight - 8;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${over ? event.clientY - tip.offsetHeight - 10 : below}px`;
  }

  /* The same specification with the colours of a theme. */
  function recoloured(value, colours) {
    if (typeof value === "string") return colours[value] ?? value;
    if (Array.isArray(value)) return value.map((one) => recoloured(one, colours));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) =>
      [name, name === "values" || name === "datasets" ? one : recoloured(one, colours)]));
  }

  const columns = (box, { indent, entry }) => Math.max(1, Math.floor((box.clientWidth - indent) / entry));

  async function embed(box, spec, { rows, values, legend }) {
    const { config = {}, colours = {} } = look.themes?.[theme()] ?? {};
    const { config: own, ...bare } = recoloured(spec, colours); // its own look is that of charts in files
    const sets = Object.fromEntries(Object.entries(rows).map(([set, some]) => [set, copied(some)]));
    const given = { ...values, columns: columns(box, legend) };
    const params = bare.params?.map((one) => (one.name in given ? { ...one, value: given[one.name] } : one));
    const whole = { ...bare, params, datasets: { ...bare.datasets, ...sets }, ...(look.themes ? {} : { config: own }) };
    const { view } = await window.vegaEmbed(box, whole, {
      config, ast: true, actions: false, defaultStyle: false, tooltip: showTip, renderer: "canvas", mode: "vega-lite",
      logLevel: 1, // faults; empty data sets are none
    });
    return view;
  }

  function under(holder) {
    const data = () => Object.values(holder.rows).find((rows) => rows.length) ?? [];
    const save = () => look.download(`${holder.name}.csv`, data());
    const picture = async () => look.download(`${holder.name}.png`, await holder.view.toImageURL("png", 2));
    const button = (onclick, words, kind) =>
      make("button", { type: "button", className: "button plain small", onclick }, words,
        make("span", { className: "visually-hidden" }, ` (${kind}): `, make("span", { className: "of" }, holder.label)));
    return make("span", { className: "row" },
      button(save, "Save the data", "CSV"), button(picture, "Save the picture", "PNG"));
  }

  async function chart(element, spec, options = {}) {
    const holder = {
      rows: { ...options.rows }, label: options.label ?? "Chart", name: options.name ?? "chart",
      values: { ...options.values }, view: null, gone: false,
      legend: { indent: options.indent ?? 0, entry: options.entry ?? 125 },
    };
    const box = make("div", { className: "chart", role: "img" });
    const told = make("p");
    const foot = make("div", { className: "under" }, told, options.actions === false ? null : under(holder));
    put(element, box, foot);

    function describe(label, summary) {
      holder.label = label ?? holder.label;
      box.setAttribute("aria-label", summary ? `${holder.label}. ${summary}` : holder.label);
      told.textContent = summary ?? "";
      for (const one of foot.querySelectorAll(".of")) one.textContent = holder.label;
      foot.hidden = !summary && options.actions === false;
    }

    const fill = (name, rows) => {
      holder.rows[name] = rows;
      holder.view.data(name, copied(rows));
    };
    const set = (parameter, value) => {
      holder.values[parameter] = value;
      holder.view.signal(parameter, value);
    };
    // Measured anew: a legend may have more lines than before. A box that scrolls is reached by keyboard.
    const run = async () => {
      await holder.view.resize().runAsync();
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    };

    async function draw() {
      const inner = make("div");
      const view = await embed(put(box, inner).firstChild, spec, holder);
      if (holder.gone) return view.finalize();
      holder.view?.finalize();
      holder.view = view;
      if (options.click) {
        view.addEventListener("click", (_, item) => item?.datum && options.click(item.datum));
      }
      return run();
    }

    describe(holder.label, options.summary);
    await draw();
    const unwatch = onTheme(draw);
    // Vega measures its box when the window changes; a box also changes when its panel is shown.
    let width = box.clientWidth;
    const sizes = new ResizeObserver(() => {
      if (box.clientWidth === width || !box.clientWidth) return;
      width = box.clientWidth;
      window.dispatchEvent(new Event("resize"));
      if (spec.params?.some((one) => one.name === "columns")) {
        holder.view.signal("columns", columns(box, holder.legend));
      }
      run();
    });
    sizes.observe(box);
    return {
      get view() {
        return holder.view;
      },
      describe,
      fill,
      put: set,
      run,
      set(parameter, value) {
        set(parameter, value);
        return run();
      },
      update(name, rows) {
        fill(name, rows);
        return run();
      },
      remove() {
        holder.gone = true;
        unwatch();
        sizes.disconnect();
        holder.view.finalize();
        tip.hidden = true;
        put(element);
      },
    };
  }

  // Vega marks the rows it is given, and refuses them a second time.
  const copied = (rows) => rows.map((row) => ({ ...row }));

  // Tables

  function compare(a, b) {
    if (a === b) return 0;
    if (a === null || a === undefined) return -1;
    if (b === null || b === undefined) return 1;
    return typeof a === "string" || typeof b === "string"
      ? String(a).localeCompare(String(b), "en", { numeric: true }) : a - b;
  }

  function table(element, columns, rows, options = {}) {
    const valueOf = (column, row) => (column.value ? column.value(row) : row[column.name]);
    let [by, direction] = options.sort ?? [null, "ascending"];
    let shown = rows;
    const body = make("tbody");
    const empty = make("p", { className: "empty", hidden: true }, options.empty ?? "Nothing yet.");
    const heads = columns.map((column) => {
      const head = make("th", { scope: "col", className: column.number ? "number" : null });
      if (column.sort === false) head.append(column.title);
      else head.append(make("button", { type: "button", onclick: () => chosen(column) }, column.title));
      return head;
    });
    const whole = make("table", { className: options.className },
      options.caption ? make("caption", { className: "visually-hidden" }, options.caption) : null,
      make("thead", {}, make("tr", {}, heads)), body);
    // A box that scrolls is reached by keyboard, and says what it holds.
    const scroll = make("div", { className: options.tall ? "scroll tall" : "scroll", tabindex: "0", role: "region",
      "aria-label": options.caption ?? "Table" }, whole);
    put(element, scroll, empty);

    function chosen(column) {
      const first = column.way ?? (column.number ? "descending" : "ascending");
      const other = column.way ?? (direction === "ascending" ? "descending" : "ascending");
      sorted(column.name, by === column.name ? other : first);
      if (options.onSort) options.onSort(by, direction);
      else fill();
    }

    function sorted(name, way) {
      [by, direction] = [name, way];
      heads.forEach((head, place) => {
        if (columns[place].name === name) head.setAttribute("aria-sort", way);
        else head.removeAttribute("aria-sort");
      });
    }

    function cell(column, row, place) {
      const content = column.show ? column.show(row) : valueOf(column, row);
      const told = content instanceof Node ? content : content ?? missing;
      const attributes = { className: column.number ? "number" : null, scope: place === 0 ? "row" : null };
      return make(place === 0 ? "th" : "td", attributes, told);
    }

    function fill() {
      const column = columns.find((one) => one.name === by);
      const sign = direction === "ascending" ? 1 : -1;
      const ordered = options.onSort || !column ? shown
        : [...shown].sort((a, b) => sign * compare(valueOf(column, a), valueOf(column, b)));
      const held = body.contains(document.activeElement) ? document.activeElement.closest("tr")?.dataset.key : null;
      put(body, ordered.map((row) => {
        const line = make("tr", {}, columns.map((one, place) => cell(one, row, place)));
        if (options.key) line.dataset.key = options.key(row);
        return line;
      }));
      // Who stands on a row with the keyboard stays on it.
      if (held) [...body.rows].find((line) => line.dataset.key === held)?.querySelector("a, button")?.focus();
      scroll.hidden = !shown.length;
      empty.hidden = Boolean(shown.length);
    }

    if (by) sorted(by, direction);
    if (shown) fill();
    else scroll.hidden = true;
    return {
      sorted,
      update(next) {
        shown = next;
        fill();
      },
    };
  }

  // Tabs

  function tabs(nav, show = () => {}) {
    const links = [...nav.querySelectorAll("a[href^='#']")];
    const names = links.map((link) => link.getAttribute("href").slice(1));
    const panels = names.map((name) => document.getElementById(`panel-${name}`));

    function decoded(text) {
      try {
        return decodeURIComponent(text);
      } catch {
        return text;
      }
    }

    function go() {
      const [, name, rest] = location.hash.match(/^#([^/]*)(?:\/(.*))?$/s) ?? [null, names[0], undefined];
      const place = Math.max(0, names.indexOf(name));
      links.forEach((link, at) => {
        if (at === place) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
      });
      const before = panels.findIndex((panel) => !panel.hidden);
      panels.forEach((panel, at) => (panel.hidden = at !== place));
      show(names[place], rest === undefined ? null : decoded(rest));
      // Who came here by a link elsewhere on the page goes on at the panel's heading.
      if (before !== place && !nav.contains(document.activeElement) && document.activeElement !== document.body) {
        panels[place].querySelector("h1, h2")?.focus();
      }
      window.dispatchEvent(new Event("resize"));
    }

    window.addEventListener("hashchange", go);
    go();
  }

  const look = {
    themes: null, theme, onTheme, themeSwitch, make, put, chart, table, tabs, download, csv,
    number, count, share, clock, time,
  };
  window.look = look;
})();
