/* User interface functions that the dashboard and the HTML reports share: theme, elements, numbers, files and tabs.
   This is a script and not a module, so that a report can contain it. ui_chart.js and ui_table.js add charts
   and tables.

   window.locbUi:
     currentTheme()                 "light" or "dark"
     onThemeChange(listener)        calls listener(theme) after each change; returns a function that removes listener
     bindThemeButton(button)        makes a button switch the theme; the browser stores the choice
     create(tag, attributes, ...children)   returns a new element; children are elements or text, never HTML
     setContent(element, ...children)       replaces the children of an element
     byId(id)                       returns the element with an id
     formatNumber(value, digits)    returns "0.123"; "–" if the value is missing
     formatCount(value)             returns "1,234"
     formatPercent(value)           returns "12%" for 0.12
     formatTime(seconds)            returns a Unix time as time of day, with the date unless it is today
     formatClock(seconds)           returns a Unix time as time of day
     download(file, content)        saves text, rows (as CSV), a Blob or a data URL as a file
     toCsv(rows)                    returns rows as CSV text
     bindTabs(nav, onShow)          makes links to #name and #name/rest show the section with the id panel-name,
                                    and calls onShow(name, rest) after each change */
(() => {
  "use strict";
  const THEME_KEY = "locb-theme";
  const MISSING = "–";
  const darkScheme = window.matchMedia("(prefers-color-scheme: dark)");
  const themeListeners = new Set();

  // Theme

  function storedTheme() {
    try {
      return localStorage.getItem(THEME_KEY);
    } catch {
      return null; // the page was opened from disk, or storage is disabled
    }
  }

  function applyTheme(theme) {
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  }

  function currentTheme() {
    return document.documentElement.dataset.theme ?? (darkScheme.matches ? "dark" : "light");
  }

  function notifyThemeListeners() {
    for (const listener of themeListeners) listener(currentTheme());
  }

  function onThemeChange(listener) {
    themeListeners.add(listener);
    return () => themeListeners.delete(listener);
  }

  function setTheme(theme) {
    applyTheme(theme);
    try {
      localStorage.setItem(THEME_KEY, theme);
    } catch {
      // The choice is not stored.
    }
    notifyThemeListeners();
  }

  function bindThemeButton(button) {
    const other = () => (currentTheme() === "dark" ? "light" : "dark");
    const update = () => {
      button.textContent = other() === "dark" ? "Dark" : "Light";
      button.setAttribute("aria-label", `Switch to ${other()} theme`);
    };
    button.addEventListener("click", () => setTheme(other()));
    onThemeChange(update);
    update();
  }

  applyTheme(storedTheme());
  darkScheme.addEventListener("change", notifyThemeListeners);

  // Elements

  const present = (children) => children.flat().filter((child) => child !== null && child !== undefined);
  const byId = (id) => document.getElementById(id);

  function create(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name === "className" ? "class" : name, value === true ? "" : String(value));
    }
    element.append(...present(children));
    return element;
  }

  function setContent(element, ...children) {
    element.replaceChildren(...present(children));
    return element;
  }

  // Numbers and times

  function formatNumber(value, digits = 3) {
    if (value === null || value === undefined || Number.isNaN(value)) return MISSING;
    return value.toLocaleString("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits })
      .replace(/^-/, "−");
  }

  function formatCount(value) {
    return formatNumber(value, 0);
  }

  function formatPercent(value) {
    if (value === null || value === undefined) return MISSING;
    return `${formatNumber(100 * value, value > 0 && value < 0.1 ? 1 : 0)}%`;
  }

  const CLOCK_FORMAT = { hour: "2-digit", minute: "2-digit", second: "2-digit" };

  function formatClock(seconds) {
    return new Date(1000 * seconds).toLocaleTimeString("en-GB", CLOCK_FORMAT);
  }

  function formatTime(seconds) {
    if (seconds === null || seconds === undefined) return MISSING;
    const [date, now] = [new Date(1000 * seconds), new Date()];
    if (date.toDateString() === now.toDateString()) return formatClock(seconds);
    const year = date.getFullYear() === now.getFullYear() ? undefined : "numeric";
    return date.toLocaleString("en-GB", { day: "numeric", month: "short", year, ...CLOCK_FORMAT });
  }

  // Files

  function toCsv(rows) {
    const names = [...new Set(rows.flatMap(Object.keys))];
    const cell = (value) => {
      const text = value === null || value === undefined ? "" : String(value);
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    return [names, ...rows.map((row) => names.map((name) => row[name]))]
      .map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
  }

  function download(file, content) {
    const data = Array.isArray(content) ? toCsv(content) : content;
    const isUrl = typeof data === "string" && data.startsWith("data:");
    const blob = data instanceof Blob ? data : new Blob([data], { type: "text/csv" });
    const url = isUrl ? data : URL.createObjectURL(blob);
    const link = create("a", { href: url, download: file });
    document.body.append(link);
    link.click();
    link.remove();
    if (!isUrl) setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  // Tabs

  function decode(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }

  function bindTabs(nav, onShow = () => {}) {
    const links = [...nav.querySelectorAll("a[href^='#']")];
    const names = links.map((link) => link.getAttribute("href").slice(1));
    const panels = names.map((name) => byId(`panel-${name}`));

    function showCurrent() {
      const [, name, rest] = location.hash.match(/^#([^/]*)(?:\/(.*))?$/s) ?? [null, names[0], undefined];
      const current = Math.max(0, names.indexOf(name));
      links.forEach((link, index) => {
        if (index === current) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
      });
      const previous = panels.findIndex((panel) => !panel.hidden);
      panels.forEach((panel, index) => (panel.hidden = index !== current));
      onShow(names[current], rest === undefined ? null : decode(rest));
      // After a click on a link outside the tabs, move the focus to the heading of the new panel.
      if (previous !== current && !nav.contains(document.activeElement) && document.activeElement !== document.body) {
        panels[current].querySelector("h1, h2")?.focus();
      }
      window.dispatchEvent(new Event("resize"));
    }

    window.addEventListener("hashchange", showCurrent);
    showCurrent();
  }

  window.locbUi = {
    MISSING, currentTheme, onThemeChange, bindThemeButton, create, setContent, byId, formatNumber, formatCount,
    formatPercent, formatTime, formatClock, download, toCsv, bindTabs,
  };
})();
