// Three pictures of attention: lines between words, a matrix, an overview of all heads. Each is laid out once for its
// words, and drawn anew when weights, steps or the choice change. A view is {rows, columns: words, weights, hasRow,
// hasColumn: functions, row, column: chosen or null, links, right: {row: true or false}}.
import {element} from "./kit.mjs";
import {placesOf} from "./tokenizer.mjs";

const LEAST = 0.01;         // lines and numbers below 1 % are left out
const THICKEST = 14;        // pixels of a line of 100 %
const SVG = "http://www.w3.org/2000/svg";

// Text with its invisible signs made visible: none of them may turn the words around it.
export function shown(text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, sign =>
    `⟨U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

// Write a text. Each word stands in an element of the name that nameOf(its number) gives, or, for null, in none.
export function writeWords(root, text, nameOf) {
  let at = 0;
  const made = placesOf(text).map(([word, start, end], i) => {
    root.append(shown(text.slice(at, start)));
    at = end;
    return nameOf(i) ? element(nameOf(i), root, shown(word)) : root.append(shown(word));
  });
  root.append(shown(text.slice(at)));
  return made;
}

export function options(select, entries, value) {
  select.replaceChildren();
  for (const [key, text] of entries) element("option", select, text, {value: key});
  select.value = value;
}

export function percent(weight) {
  return weight < LEAST ? "" : `${Math.round(100 * weight)} %`;
}

// its looks at: cat 83 %, ball 9 % (the five largest).
export function sentenceOf(word, row, columns) {
  const looks = Array.from(row, (weight, c) => [weight, columns[c]]).filter(([weight]) => weight >= LEAST);
  looks.sort((a, b) => b[0] - a[0]);
  return `“${shown(word)}” looks at: ` +
    looks.slice(0, 5).map(([weight, column]) => `${shown(column)} ${percent(weight)}`).join(", ");
}

function verdictOf(right, row) {
  return row in right ? (right[row] ? " ✓" : " ✗") : "";
}

// Lines

function wordButton(parent, word, key, number, count) {
  const button = element("button", parent, "", {type: "button", [`data-${key}`]: number,
                                                "aria-label": `${shown(word)}, word ${number + 1} of ${count}`});
  element("span", button, shown(word), {class: "word"});
  element("span", button, "", {class: "percent"});
}

export function layLines(root, {rows, columns}) {
  const sides = element("div", root, "", {class: "lines"});
  const left = element("div", sides, "", {class: "side rows", role: "toolbar", "aria-orientation": "vertical",
                                          "aria-label": "Words that look"});
  const svg = document.createElementNS(SVG, "svg"), height = Math.max(rows.length, columns.length);
  svg.setAttribute("viewBox", `0 0 100 ${height}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  svg.style.height = `calc(${height} * var(--row))`;
  sides.append(svg);
  const right = element("div", sides, "", {class: "side columns", role: "toolbar", "aria-orientation": "vertical",
                                           "aria-label": "Words looked at"});
  rows.forEach((word, r) => wordButton(left, word, "row", r, rows.length));
  columns.forEach((word, c) => wordButton(right, word, "column", c, columns.length));
}

function line(svg, r, c, weight, gold) {
  if (weight < LEAST && !gold) return;
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", `M0,${r + 0.5} C50,${r + 0.5} 50,${c + 0.5} 100,${c + 0.5}`);
  path.setAttribute("stroke-width", gold ? 2 : (THICKEST * weight).toFixed(2));
  if (gold) path.setAttribute("class", "gold");
  svg.append(path);
}

function markWord(button, {chosen, there, first, text}) {
  button.disabled = !there;
  button.tabIndex = first ? 0 : -1;
  button.setAttribute("aria-pressed", chosen);
  button.lastChild.textContent = text;
}

export function drawLines(root, view) {
  const {weights, hasRow, hasColumn, row, column, links, right} = view, svg = root.querySelector("svg");
  const most = row === null ? -1 : weights[row].indexOf(Math.max(...weights[row]));
  root.querySelectorAll("[data-row]").forEach((button, r) => {
    const text = row === null && column !== null ? percent(weights[r][column]) : "";
    markWord(button, {chosen: r === row, there: hasRow(r), first: r === (row ?? 0), text: text + verdictOf(right, r)});
  });
  root.querySelectorAll("[data-column]").forEach((button, c) => {
    const text = row === null ? "" : percent(weights[row][c]);
    markWord(button, {chosen: c === column, there: hasColumn(c), first: c === (column ?? 0), text});
    button.classList.toggle("most", c === most);
  });
  svg.replaceChildren();
  const drawn = (r, c) => hasRow(r) && (row === null ? column === null || c === column : r === row);
  weights.forEach((own, r) => own.forEach((weight, c) => drawn(r, c) && line(svg, r, c, weight, false)));
  for (const [r, c] of links) if (drawn(r, c) && hasColumn(c)) line(svg, r, c, 0, true);
}

// Matrix

export function layMatrix(root, {rows, columns}) {
  const frame = element("div", root, "", {class: "matrix"});
  const table = element("table", frame, "", {role: "grid", "aria-label": "Rows look, columns are looked at"});
  const head = element("tr", table);
  element("td", head, "", {"aria-label": "words"});
  columns.forEach(word => element("span", element("th", head, "", {scope: "col"}), shown(word), {class: "word"}));
  rows.forEach((word, r) => {
    const line = element("tr", table);
    element("th", line, "", {scope: "row"});
    columns.forEach((_, c) =>
      element("i", element("td", line, "", {"data-row": r, "data-column": c, role: "gridcell"})));
  });
}

function markCell(cell, r, c, {rows, columns, weights, hasRow, hasColumn, row, column}) {
  const there = hasRow(r) && hasColumn(c);
  cell.firstChild.style.opacity = there ? weights[r][c] : 0;
  cell.tabIndex = r === (row ?? 0) && c === (column ?? 0) ? 0 : -1;
  cell.classList.toggle("cross", r === row || c === column);
  cell.setAttribute("aria-selected", r === row && c === column);
  const words = `${shown(rows[r])} on ${shown(columns[c])}`;
  cell.setAttribute("aria-label", there ? `${words}: ${Math.round(100 * weights[r][c])} %` : `${words}: not yet`);
}

export function drawMatrix(root, view) {
  const lines = [...root.querySelectorAll("tr")].slice(1);
  lines.forEach((line, r) => {
    line.firstChild.textContent = shown(view.rows[r]) + verdictOf(view.right, r);
    line.classList.toggle("away", !view.hasRow(r));
    [...line.children].slice(1).forEach((cell, c) => {
      markCell(cell, r, c, view);
      cell.classList.toggle("gold", view.links.some(([row, column]) => row === r && column === c));
    });
  });
}

// All heads

export function layHeads(root, layers, nameOf) {
  const frame = element("div", root, "", {class: "heads"});
  frame.style.setProperty("--heads", layers[0].length);
  layers.forEach((heads, layer) => heads.forEach((_, head) => {
    const one = element("div", frame, "", {class: "head"});
    const button = element("button", one, "", {type: "button", "data-layer": layer, "data-head": head});
    element("canvas", button, "", {width: 120, height: 120, "aria-hidden": "true"});
    element("span", button, `${layer + 1}.${head + 1}`);
    element("small", button, nameOf(layer, head));
    const label = element("label", one);
    element("input", label, "", {type: "checkbox", "data-switch": `${layer} ${head}`,
                                 "aria-label": `Head ${layer + 1}.${head + 1} is on`});
    label.append(" on");
  }));
}

function paint(canvas, weights, hasRow, hasColumn) {
  const pen = canvas.getContext("2d"), {width, height} = canvas, R = weights.length, C = weights[0].length;
  pen.clearRect(0, 0, width, height);
  pen.fillStyle = getComputedStyle(canvas).color;
  weights.forEach((row, r) => row.forEach((weight, c) => {
    pen.globalAlpha = hasRow(r) && hasColumn(c) ? Math.min(1, weight) : 0;
    pen.fillRect(c * width / C, r * height / R, width / C, height / R);
  }));
}

export function drawHeads(root, layers, {hasRow, hasColumn}, isOff, chosen) {
  root.querySelectorAll(".head").forEach(one => {
    const button = one.querySelector("button"), [layer, head] = [button.dataset.layer, button.dataset.head].map(Number);
    const off = isOff(layer, head);
    button.setAttribute("aria-pressed", chosen(layer, head));
    one.querySelector("input").checked = !off;
    one.classList.toggle("off", off);
    paint(one.querySelector("canvas"), layers[layer][head], hasRow, hasColumn);
  });
}
