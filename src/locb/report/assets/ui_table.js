/* Tables with sortable columns. Adds to window.locbUi:

     createTable(element, columns, rows, {caption, sort, onSort, key, empty, tall, className})
       columns: [{name, title, hint, number, value(row), show(row), sort, direction}]
                hint: tooltip of the heading
                number: whether the column is aligned to the right and sorted in descending order first
                value(row): returns the sort key, by default row[name]
                show(row): returns the content of the cell as text or an element, by default the sort key
                sort: false if the column cannot be sorted
                direction: the only direction in which the column can be sorted, by default both
       rows: array of objects; null while the rows are not loaded yet
       caption: text alternative; empty: text that replaces a table without rows
       tall: whether the table scrolls vertically; className: class of the table element
       sort: initial [name of a column, "ascending" or "descending"]
       onSort(name, direction): called instead of sorting, if the service sorts the rows
       key(row): identifies a row, so that the keyboard focus stays on the row after an update
     returns {update(rows), setSort(name, direction)} */
(() => {
  "use strict";
  const ui = window.locbUi;
  const { create, setContent } = ui;

  function compareValues(a, b) {
    if (a === b) return 0;
    if (a === null || a === undefined) return -1;
    if (b === null || b === undefined) return 1;
    return typeof a === "string" || typeof b === "string"
      ? String(a).localeCompare(String(b), "en", { numeric: true }) : a - b;
  }

  const valueOf = (column, row) => (column.value ? column.value(row) : row[column.name]);

  function createCell(column, row, index) {
    const content = column.show ? column.show(row) : valueOf(column, row);
    const attributes = { className: column.number ? "number" : null, scope: index === 0 ? "row" : null };
    return create(index === 0 ? "th" : "td", attributes, content instanceof Node ? content : content ?? ui.MISSING);
  }

  function createTable(element, columns, rows, options = {}) {
    let [sortName, direction] = options.sort ?? [null, "ascending"];
    let current = rows;
    const body = create("tbody");
    const empty = create("p", { className: "empty", hidden: true }, options.empty ?? "No data yet.");
    const headings = columns.map((column) => {
      const heading = create("th", { scope: "col", className: column.number ? "number" : null, title: column.hint });
      if (column.sort === false) heading.append(column.title);
      else heading.append(create("button", { type: "button", onclick: () => onClick(column) }, column.title));
      return heading;
    });
    const table = create("table", { className: options.className },
      options.caption ? create("caption", { className: "visually-hidden" }, options.caption) : null,
      create("thead", {}, create("tr", {}, headings)), body);
    // A scrolling box must be reachable by keyboard and needs a name.
    const scroll = create("div", { className: options.tall ? "scroll tall" : "scroll", tabindex: "0", role: "region",
      "aria-label": options.caption ?? "Table" }, table);
    setContent(element, scroll, empty);

    function onClick(column) {
      const first = column.direction ?? (column.number ? "descending" : "ascending");
      const reverse = column.direction ?? (direction === "ascending" ? "descending" : "ascending");
      setSort(column.name, sortName === column.name ? reverse : first);
      if (options.onSort) options.onSort(sortName, direction);
      else render();
    }

    function setSort(name, newDirection) {
      [sortName, direction] = [name, newDirection];
      headings.forEach((heading, index) => {
        if (columns[index].name === name) heading.setAttribute("aria-sort", newDirection);
        else heading.removeAttribute("aria-sort");
      });
    }

    function sortRows() {
      const column = columns.find(({ name }) => name === sortName);
      if (options.onSort || !column) return current;
      const sign = direction === "ascending" ? 1 : -1;
      return [...current].sort((a, b) => sign * compareValues(valueOf(column, a), valueOf(column, b)));
    }

    function render() {
      const focused = body.contains(document.activeElement) ? document.activeElement.closest("tr")?.dataset.key : null;
      setContent(body, sortRows().map((row) => {
        const line = create("tr", {}, columns.map((column, index) => createCell(column, row, index)));
        if (options.key) line.dataset.key = options.key(row);
        return line;
      }));
      if (focused) [...body.rows].find((line) => line.dataset.key === focused)?.querySelector("a, button")?.focus();
      scroll.hidden = !current.length;
      empty.hidden = Boolean(current.length);
    }

    if (sortName) setSort(sortName, direction);
    if (current) render();
    else scroll.hidden = true;
    return {
      setSort,
      update(newRows) {
        current = newRows;
        render();
      },
    };
  }

  ui.createTable = createTable;
})();
