/* What all reports do: their data, the theme, and tables that sort and can be saved.

   window.report:
     data                     what the page holds for its scripts
     choice(name, usual)      what the address says after #, or what is usual
     choose(name, value)      keeps a choice in the address; null is the usual one
     inWords(names)           "a, b and c" */
(() => {
  "use strict";
  const { make } = look;
  const data = JSON.parse(document.getElementById("data").textContent);
  look.themes = data.themes;

  const button = document.getElementById("theme");
  button.hidden = false;
  look.themeSwitch(button);

  // Choices in the address, so that a view can be sent to somebody

  const choices = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");

  function choice(name, usual) {
    return choices.get(name) ?? usual;
  }

  function choose(name, value) {
    if (value === null) choices.delete(name);
    else choices.set(name, value);
    history.replaceState(null, "", choices.size ? `#${choices}` : location.pathname + location.search);
  }

  window.addEventListener("hashchange", () => {
    if (location.hash.includes("=")) location.reload();
  });

  function inWords(names) {
    return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
  }

  // Tables

  /* A cell as a number, whose interval does not count; null for a dash. */
  function number(text) {
    const value = Number.parseFloat(text.replaceAll(",", "").replace("−", "-"));
    return Number.isNaN(value) ? null : value;
  }

  function sortable(holder) {
    const name = holder.dataset.table;
    const old = holder.querySelector("table");
    const columns = [...old.tHead.rows[0].cells].map((head, place) => {
      const isNumber = head.classList.contains("number");
      return {
        name: String(place), title: head.textContent, number: isNumber,
        value: (row) => (isNumber ? number(row[place]) : row[place]), show: (row) => row[place],
      };
    });
    const rows = [...old.tBodies[0].rows].map((line) => [...line.cells].map((cell) => cell.textContent));
    look.table(holder, columns, rows, { caption: old.caption.textContent, className: old.className });
    const table = holder.querySelector("table");
    table.tHead.addEventListener("click", () => table.classList.remove("first")); // it was the best, not any first
    if (!(name in data.tables)) return;
    const save = () => look.download(`${name}.csv`, data.tables[name]);
    holder.append(make("div", { className: "under" },
      make("button", { type: "button", className: "button plain small", onclick: save }, "Save the data",
        make("span", { className: "visually-hidden" }, ` (CSV): ${old.caption.textContent}`))));
  }

  document.querySelectorAll("[data-table]").forEach(sortable);
  window.report = { data, choice, choose, inWords };
})();
