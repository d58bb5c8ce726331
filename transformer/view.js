"use strict";
// Where attention looks: choose layer and head, point at a word, follow decoding step by step.
// Plain JavaScript and SVG; view.html holds the page, transformer/visualization.py puts both and the weights together.
//
// Weights come in thousandths, pair[kind][layer][head][row][column]. A row is a word that looks, a column a word that
// is looked at. Row t of decoder and cross is the step that writes target word t; the decoder's column t is what that
// step read last: the word before it, or the begin mark.

const KINDS = {
  encoder: {label: "encoder (source to source)", rows: pair => pair.source, columns: pair => pair.source},
  decoder: {label: "decoder (target to target)", rows: pair => pair.target,
            columns: pair => ["<s>", ...pair.target.slice(0, -1)]},
  cross: {label: "cross (target to source)", rows: pair => pair.target, columns: pair => pair.source},
};
const LEAST = 10;           // lines and numbers below 1 % are left out
const THICKEST = 14;        // pixels of a line of 100 %
const PAUSE = 900;          // milliseconds between two steps while playing

// The weights of one head, or for head "mean" the mean over all heads of the layer.
function weightsOf(pair, kind, layer, head) {
  const heads = pair[kind][layer];
  if (head !== "mean") return heads[head];
  return heads[0].map((row, r) => row.map((_, c) => heads.reduce((sum, w) => sum + w[r][c], 0) / heads.length));
}

// How many rows are there after so many decoding steps: the encoder has read everything before the first.
function rowsAfter(pair, kind, step) {
  return kind === "encoder" ? pair.source.length : step;
}

// Is a column there after so many steps? The decoder has read the words before the last one written, and of that one
// the first pieces if it has several: then, and only then, its own column has weight.
function columnIsThere(kind, weights, step, column) {
  return kind !== "decoder" || column < step || (column === step && weights[step - 1][column] > 0);
}

function percent(weight) {
  return weight < LEAST ? "" : `${Math.round(weight / 10)} %`;
}

// "its" looks at: cat 83 %, ball 9 % (the five largest).
function sentenceOf(word, row, columns) {
  const looks = row.map((weight, c) => [weight, columns[c]]).filter(([weight]) => weight >= LEAST);
  looks.sort((a, b) => b[0] - a[0]);
  return `“${word}” looks at: ` + looks.slice(0, 5).map(([weight, column]) => `${column} ${percent(weight)}`).join(", ");
}

function start(pairs) {
  const $ = id => document.getElementById(id);
  const state = {kind: "cross", layer: pairs[0].cross.length - 1, head: "mean", row: null, step: pairs[0].target.length};
  let pair = pairs[0], timer = null;

  function element(name, text, parent) {
    const made = document.createElement(name);
    made.textContent = text;
    parent.append(made);
    return made;
  }

  function options(select, entries, value) {
    select.replaceChildren();
    for (const [key, text] of entries) element("option", text, select).value = key;
    select.value = value;
  }

  // New words on both sides: after another sentence or another kind of attention was chosen.
  function layOut() {
    $("rows").replaceChildren();
    $("columns").replaceChildren();
    const rows = KINDS[state.kind].rows(pair), columns = KINDS[state.kind].columns(pair);
    rows.forEach((word, r) => {
      const button = element("button", word, element("div", "", $("rows")));
      button.setAttribute("aria-label", `${word}, word ${r + 1} of ${rows.length}`);
      button.dataset.row = r;
    });
    for (const word of columns) {
      const item = element("li", "", $("columns"));
      element("span", "", item).className = "percent";
      element("span", word, item).className = "word";
    }
    $("lines").setAttribute("viewBox", `0 0 100 ${Math.max(rows.length, columns.length)}`);
    $("lines").style.height = `calc(${Math.max(rows.length, columns.length)} * var(--row))`;
    $("left").textContent = state.kind === "encoder" ? "source word" : "target word written";
    $("right").textContent = state.kind === "decoder" ? "target word read" : "source word";
    $("steps").hidden = state.kind === "encoder";
    draw();
  }

  // What depends on layer, head, word and step.
  function draw() {
    const weights = weightsOf(pair, state.kind, state.layer, state.head);
    const rows = KINDS[state.kind].rows(pair), columns = KINDS[state.kind].columns(pair);
    const there = rowsAfter(pair, state.kind, state.step), chosen = state.row === null ? null : weights[state.row];
    $("rows").querySelectorAll("button").forEach((button, r) => {
      button.disabled = r >= there;
      button.tabIndex = r === (state.row ?? 0) ? 0 : -1;
      button.setAttribute("aria-pressed", r === state.row);
    });
    $("columns").querySelectorAll("li").forEach((item, c) => {
      item.classList.toggle("away", !columnIsThere(state.kind, weights, state.step, c));
      item.classList.toggle("most", chosen !== null && chosen[c] === Math.max(...chosen));
      item.firstChild.textContent = chosen === null ? "" : percent(chosen[c]);
    });
    $("lines").replaceChildren();
    for (let r = 0; r < there; r++) {
      if (state.row === null || r === state.row) weights[r].forEach((weight, c) => line(r, c, weight));
    }
    $("reading").textContent = chosen === null ? "Choose a word on the left to see where it looks."
      : sentenceOf(rows[state.row], chosen, columns);
    $("step").textContent = `decoding step ${state.step} of ${pair.target.length}`;
    $("written").textContent = pair.target.slice(0, state.step).join(" ");
    $("previous").disabled = state.step <= 1;
    $("next").disabled = state.step >= pair.target.length;
  }

  function line(r, c, weight) {
    if (weight < LEAST) return;
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", `M0,${r + 0.5} C50,${r + 0.5} 50,${c + 0.5} 100,${c + 0.5}`);
    path.setAttribute("stroke-width", (THICKEST * weight / 1000).toFixed(2));
    $("lines").append(path);
  }

  function choose(row) {
    state.row = row;
    draw();
  }

  // To a step between 1 and the last one; its word is chosen, because that is the one being written.
  function goTo(step) {
    state.step = Math.min(Math.max(step, 1), pair.target.length);
    choose(state.step - 1);
  }

  function pause() {
    clearInterval(timer);
    timer = null;
    $("play").textContent = "Play";
  }

  function play() {
    if (timer !== null) return pause();
    goTo(state.step < pair.target.length ? state.step + 1 : 1);
    $("play").textContent = "Pause";
    timer = setInterval(() => state.step < pair.target.length ? goTo(state.step + 1) : pause(), PAUSE);
  }

  // Arrow keys move between the words that are there; Escape shows all of them again.
  function onKey(event) {
    const last = rowsAfter(pair, state.kind, state.step) - 1, row = Number(event.target.dataset.row);
    const to = {ArrowDown: Math.min(row + 1, last), ArrowUp: Math.max(row - 1, 0), Home: 0, End: last}[event.key];
    if (to !== undefined) $("rows").querySelectorAll("button")[to].focus();
    if (event.key === "Escape") choose(null);
    if (to !== undefined || event.key === "Escape") event.preventDefault();
  }

  function onWord(event) {
    const row = event.target.dataset.row;
    if (row !== undefined && !event.target.disabled && Number(row) !== state.row) choose(Number(row));
  }

  function onSentence() {
    pause();
    pair = pairs[$("sentence").value];
    Object.assign(state, {row: null, step: pair.target.length});
    layOut();
  }

  function onKind() {
    pause();
    Object.assign(state, {kind: $("kind").value, row: null, step: pair.target.length});
    layOut();
  }

  options($("sentence"), pairs.map((p, i) => [i, p.source.slice(0, -1).join(" ")]), 0);
  $("sentence").parentNode.hidden = pairs.length === 1;
  options($("kind"), Object.entries(KINDS).map(([kind, {label}]) => [kind, label]), state.kind);
  options($("layer"), pair.cross.map((_, n) => [n, n + 1]), state.layer);
  options($("head"), [["mean", "all heads, mean"], ...pair.cross[0].map((_, i) => [i, i + 1])], state.head);
  $("sentence").addEventListener("change", onSentence);
  $("kind").addEventListener("change", onKind);
  $("layer").addEventListener("change", () => { state.layer = Number($("layer").value); draw(); });
  $("head").addEventListener("change", () => { state.head = $("head").value; draw(); });
  $("rows").addEventListener("pointermove", onWord);        // words may move under a resting pointer: no pointerover
  $("rows").addEventListener("focusin", onWord);
  $("rows").addEventListener("click", onWord);
  $("rows").addEventListener("keydown", onKey);
  $("previous").addEventListener("click", () => { pause(); goTo(state.step - 1); });
  $("next").addEventListener("click", () => { pause(); goTo(state.step + 1); });
  $("play").addEventListener("click", play);
  layOut();
}

// Outside a page (a test that reads this file) there is nothing to start.
if (typeof document !== "undefined") start(JSON.parse(document.getElementById("pairs").textContent));
