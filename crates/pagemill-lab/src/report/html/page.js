"use strict";
// Folds away what is long and makes tables sortable. The page is complete without it.
(function () {
  var folds = Array.from(document.querySelectorAll("details[data-fold]"));
  var narrow = window.matchMedia("(max-width: 60rem)").matches;
  folds.forEach(function (each) {
    if (each.dataset.fold === "always" || narrow) each.open = false;
  });
  var opened = [];
  window.addEventListener("beforeprint", function () {
    opened = folds.filter(function (each) { return each.open === false; });
    opened.forEach(function (each) { each.open = true; });
  });
  window.addEventListener("afterprint", function () {
    opened.forEach(function (each) { each.open = false; });
  });
  function reveal() {
    var target = document.getElementById(location.hash.slice(1));
    var fold = target ? target.closest("details") : null;
    if (fold) fold.open = true;
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
