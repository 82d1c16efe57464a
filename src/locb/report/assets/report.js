/* Code that all HTML reports share: data, theme, sortable tables.

   window.report:
     data                        data of the page
     getChoice(name, fallback)   returns a choice of the reader, which is in the address after #, or the fallback
     setChoice(name, value)      stores a choice in the address; the value null removes the choice
     joinNames(names)            returns "a, b and c" */
(() => {
  "use strict";
  const ui = window.locbUi;
  const { create } = ui;
  const data = JSON.parse(ui.byId("data").textContent);
  ui.themes = data.themes;

  const themeButton = ui.byId("theme");
  themeButton.hidden = false;
  ui.bindThemeButton(themeButton);

  // Choices of the reader are stored in the address, so that the view can be shared as a link.

  const choices = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");

  function getChoice(name, fallback) {
    return choices.get(name) ?? fallback;
  }

  function setChoice(name, value) {
    if (value === null) choices.delete(name);
    else choices.set(name, value);
    history.replaceState(null, "", choices.size ? `#${choices}` : location.pathname + location.search);
  }

  window.addEventListener("hashchange", () => {
    if (location.hash.includes("=")) location.reload();
  });

  function joinNames(names) {
    return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
  }

  // Tables

  /* Returns the number in a cell without its confidence interval; null if the cell has no number. */
  function parseCell(text) {
    const value = Number.parseFloat(text.replaceAll(",", "").replace("−", "-"));
    return Number.isNaN(value) ? null : value;
  }

  function makeSortable(holder) {
    const name = holder.dataset.table;
    const original = holder.querySelector("table");
    const columns = [...original.tHead.rows[0].cells].map((heading, index) => {
      const isNumber = heading.classList.contains("number");
      return {
        name: String(index), title: heading.textContent, number: isNumber,
        value: (row) => (isNumber ? parseCell(row[index]) : row[index]), show: (row) => row[index],
      };
    });
    const rows = [...original.tBodies[0].rows].map((line) => [...line.cells].map((cell) => cell.textContent));
    ui.createTable(holder, columns, rows, { caption: original.caption.textContent, className: original.className });
    const table = holder.querySelector("table");
    // The first row is highlighted because it is the best. After sorting, another row can be the first.
    table.tHead.addEventListener("click", () => table.classList.remove("highlight-first"));
    if (!(name in data.tables)) return;
    const save = () => ui.download(`${name}.csv`, data.tables[name]);
    holder.append(create("div", { className: "chart-footer" },
      create("button", { type: "button", className: "button ghost small", onclick: save }, "Save data",
        create("span", { className: "visually-hidden" }, ` (CSV): ${original.caption.textContent}`))));
  }

  document.querySelectorAll("[data-table]").forEach(makeSortable);
  window.report = { data, getChoice, setChoice, joinNames };
})();
