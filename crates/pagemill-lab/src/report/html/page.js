"use strict";
// Folds away the contents on a phone, opens what a link leads to, makes tables sortable. The page is complete without it.
(function () {
  if (window.matchMedia("(max-width: 60rem)").matches) {
    document.querySelectorAll("details[data-fold]").forEach(function (each) { each.open = false; });
  }
  function reveal() {
    var target = document.getElementById(location.hash.slice(1));
    for (var at = target; at; at = at.parentElement) {
      if (at.tagName === "DETAILS") at.open = true;
    }
    if (target) target.scrollIntoView();
  }
  window.addEventListener("hashchange", reveal);
  reveal();
  function key(row, column) {
    var cell = row.cells[column];
    if (cell.dataset.value === undefined) return cell.textContent;
    return cell.dataset.value === "" ? Infinity : Number(cell.dataset.value);
  }
  function order(a, b) {
    if (typeof a === "number") { if (typeof b === "number") return a === b ? 0 : a - b; }
    return String(a).localeCompare(String(b));
  }
  function sort(table, column, title) {
    var down = title.getAttribute("aria-sort") === "ascending";
    Array.from(title.parentNode.cells).forEach(function (each) { each.removeAttribute("aria-sort"); });
    title.setAttribute("aria-sort", down ? "descending" : "ascending");
    var body = table.tBodies[0];
    var rows = Array.from(body.rows);
    rows.sort(function (a, b) { return (down ? -1 : 1) * order(key(a, column), key(b, column)); });
    rows.forEach(function (row) { body.appendChild(row); });
  }
  document.querySelectorAll("table[data-sort]").forEach(function (table) {
    Array.from(table.tHead.rows[0].cells).forEach(function (title, column) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = title.textContent;
      title.textContent = "";
      title.appendChild(button);
      button.addEventListener("click", function () { sort(table, column, title); });
    });
  });
})();
