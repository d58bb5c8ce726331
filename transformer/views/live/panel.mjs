// One sentence: its box (text, translation, steps) and its figure (a picture of attention, and the weight that is
// changed). What both sentences share stands in page.mjs.
import {element} from "./kit.mjs";
import {drawHeads, drawLines, drawMatrix, layHeads, layLines, layMatrix, percent, sentenceOf, shown,
        writeWords} from "./pictures.mjs";
import {placesOf} from "./tokenizer.mjs";
import {goldLinks, isThere, matched, verdicts, weightsOf} from "./words.mjs";

const PAUSE = 900;          // milliseconds between two steps while playing
const WAIT = 150;           // milliseconds without a key before what was typed is translated

const DRAG = 120;           // pixels up or down that change a weight by 100 %
const PRESS = 4;            // pixels before a press becomes a drag

// Write a text, with the words marked that another text has not; what is written is not read out again.
export function writeMarked(root, text, other, name) {
  if (root.written === `${text}\n${other}`) return;
  root.written = `${text}\n${other}`;
  const [before, now] = [other, text].map(side => placesOf(side).map(([word]) => word)), kept = matched(before, now);
  root.replaceChildren();
  writeWords(root, text, i => kept[i] < 0 ? name : null);
}

export class Panel {
  constructor(page, number, boxes, figures) {
    Object.assign(this, {page, number, row: null, column: null, point: null, step: Infinity, key: null, timer: null});
    const copy = (id, parent) => {
      parent.append(document.getElementById(id).content.cloneNode(true));
      return parent.lastElementChild;
    };
    this.box = copy("box", boxes);
    this.figure = copy("figure", figures);
    this.parts = {};
    this.box.setAttribute("aria-label", `Sentence ${number + 1}`);
    this.figure.setAttribute("aria-label", `Attention in sentence ${number + 1}`);
    for (const root of [this.box, this.figure]) {
      for (const part of root.querySelectorAll("[data-is]")) this.parts[part.dataset.is] = part;
    }
    this.listen();
    this.pick(Math.min(number, page.data.sentences.length - 1));
  }

  listen() {
    const {pick, text, previous, next, play, picture, slider, force} = this.parts;
    const {sentences, source, target} = this.page.data;
    sentences.forEach((entry, i) => element("option", pick, shown(entry.source), {value: i}));
    element("option", pick, "your own", {value: "", disabled: ""});
    text.lang = source;
    this.parts.output.lang = target;
    text.readOnly = !this.page.engine;
    pick.addEventListener("change", () => this.pick(Number(pick.value)));
    text.addEventListener("input", () => this.onText());
    previous.addEventListener("click", () => this.goTo(this.now - 1));
    next.addEventListener("click", () => this.goTo(this.now + 1));
    play.addEventListener("click", () => this.play());
    picture.addEventListener("pointermove", event => this.onMove(event));
    picture.addEventListener("pointerdown", event => this.onGrab(event));
    for (const kind of ["pointerup", "pointercancel"]) picture.addEventListener(kind, () => { this.grabbed = null; });
    picture.addEventListener("pointerleave", () => this.onPoint(null));
    picture.addEventListener("focusin", event => this.choose(event.target));
    picture.addEventListener("click", event => this.onClick(event.target));
    picture.addEventListener("keydown", event => this.onKey(event));
    slider.addEventListener("input", () => this.page.turn(this, slider.value / 100));
    force.addEventListener("click", () => this.page.turn(this, 1));
  }

  remove() {
    this.pause();
    this.box.remove();
    this.figure.remove();
  }

  // Sentences and their translations

  pick(number) {
    this.entry = this.page.data.sentences[number];
    this.parts.text.value = this.entry.source;
    this.parts.pick.value = number;
    this.page.forget(this);
    this.renew();
  }

  onText() {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => {
      const text = this.parts.text.value.replace(/\s+/g, " ").trim(), known = this.page.data.sentences;
      const number = known.findIndex(entry => entry.source === text);
      this.entry = known[number] ?? {source: text};
      this.parts.pick.value = number < 0 ? "" : number;
      this.page.forget(this);
      this.renew();
    }, WAIT);
  }

  // Another sentence: nothing is chosen, all steps are shown.
  renew() {
    this.pause();
    Object.assign(this, {row: null, column: null, point: null, step: Infinity, plain: null});
    this.compute();
    this.draw();
  }

  compute() {
    const edits = this.page.editsOf(this), start = performance.now(), {error} = this.parts;
    try {
      this.result = this.page.run(this.entry, edits);
      this.time = performance.now() - start;
      this.plain = edits.length ? this.plain ?? this.page.run(this.entry, []) : this.result;
      error.textContent = "";
    } catch (problem) {
      if (!this.result) throw problem;
      this.plain = this.result;
      error.textContent = problem.message;
    }
    this.links = this.entry.gold ? goldLinks(this.entry.gold, this.result.sides) : null;
  }

  // Steps

  // The step that is shown: the last one, however many there will be, where no other is asked for.
  get now() {
    return Math.min(this.step, this.result.steps);
  }

  goTo(step) {
    const {kind} = this.page.choice, {steps, sides} = this.result;
    this.pause();
    this.step = step < steps ? Math.max(step, 1) : Infinity;
    if (kind !== "encoder") Object.assign(this, {row: sides[kind].rows.groups[this.now - 1], column: null});
    this.draw();
  }

  pause() {
    clearTimeout(this.timer);
    this.timer = null;
    this.parts.play.textContent = "Play";
  }

  play() {
    if (this.timer !== null) return this.pause();
    this.goTo(this.now < this.result.steps ? this.now + 1 : 1);
    if (this.now >= this.result.steps) return undefined;
    this.parts.play.textContent = "Pause";
    this.timer = setTimeout(() => {
      this.timer = null;
      this.play();
    }, PAUSE);
    return undefined;
  }

  // What is chosen and pointed at

  // {row, column} of an element in the picture; null where it has none.
  placeOf(target) {
    const {row, column} = target?.closest?.("[data-row], [data-column]")?.dataset ?? {};
    if (row === undefined && column === undefined) return null;
    return {row: row === undefined ? null : Number(row), column: column === undefined ? null : Number(column)};
  }

  onPoint(target) {
    const place = this.placeOf(target);
    if (JSON.stringify(place) === JSON.stringify(this.point)) return;
    this.point = place;
    this.draw();
  }

  onMove(event) {
    if (!event.buttons) this.grabbed = null;
    if (this.grabbed) this.onDrag(event);
    else if (event.pointerType === "mouse") this.onPoint(event.target);
  }

  // A cell of the matrix can be dragged where its weight can be changed. A finger drags the cell that is chosen;
  // elsewhere it scrolls.
  onGrab({target, pointerType, button, clientY}) {
    const {kind, layer, head} = this.page.choice, {row, column} = this.placeOf(target) ?? {};
    if (row === undefined || column === undefined || !target.closest("td") || button) return;
    if (!this.page.engine || head === "mean") return;
    if (pointerType !== "mouse" && (row !== this.row || column !== this.column)) return;
    const weight = weightsOf(this.result.maps.raw, kind, layer, head)[row][column];
    this.grabbed = {target, y: clientY, weight, share: null};
  }

  onDrag({pointerId, clientY}) {
    const {grabbed} = this, way = grabbed.y - clientY;
    if (grabbed.share === null) {
      if (Math.abs(way) < PRESS) return;
      this.parts.picture.setPointerCapture(pointerId);
      this.choose(grabbed.target);
    }
    const share = Math.round(100 * Math.min(Math.max(grabbed.weight + way / DRAG, 0), 1)) / 100;
    if (share === grabbed.share) return;
    grabbed.share = share;
    this.page.turn(this, share);
  }

  choose(target) {
    const place = this.placeOf(target);
    if (!place) return;
    this.row = place.row ?? this.row;
    this.column = place.column ?? this.column;
    this.point = null;
    this.draw();
  }

  onClick(target) {
    const head = target.closest("[data-head]"), toggle = target.closest("[data-switch]");
    if (toggle) this.page.toggle(...toggle.dataset.switch.split(" ").map(Number));
    else if (head) this.page.choose({layer: Number(head.dataset.layer), head: Number(head.dataset.head)});
    else this.choose(target);
  }

  // Arrow keys move between words or cells; Escape chooses nothing.
  onKey(event) {
    const place = this.placeOf(event.target);
    if (event.key === "Escape") {
      Object.assign(this, {row: null, column: null, point: null});
      return this.draw();
    }
    const [down, right] = {ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1],
                           Home: [-1e6, -1e6], End: [1e6, 1e6]}[event.key] ?? [];
    if (!place || down === undefined) return undefined;
    event.preventDefault();
    return this.moveTo(place, down, right, event.key.length < 5);
  }

  moveTo({row, column}, down, right, toEdge) {
    const {rows, columns} = this.view(), within = (n, words, has) => {
      let last = words.length - 1;
      while (last > 0 && !has(last)) last--;
      return Math.min(Math.max(n, 0), last);
    };
    const {hasRow, hasColumn} = this.view();
    if (row !== null) row = within(row + (toEdge && column !== null ? 0 : down), rows, hasRow);
    if (column !== null) column = within(column + (row === null ? down : right), columns, hasColumn);
    const wanted = [row === null ? ":not([data-row])" : `[data-row="${row}"]`,
                    column === null ? ":not([data-column])" : `[data-column="${column}"]`].join("");
    this.parts.picture.querySelector(`${wanted}`)?.focus();
  }

  // Drawing

  view() {
    const {kind, layer, head, look} = this.page.choice, {sides, maps} = this.result, side = sides[kind];
    const chosen = this.point ?? this, weights = weightsOf(maps[look], kind, layer, head);
    const within = (n, words) => n !== null && n < words.length ? n : null, links = this.links?.[kind] ?? [];
    return {rows: side.rows.words, columns: side.columns.words, weights, links,
            row: within(chosen.row, side.rows.words), column: within(chosen.column, side.columns.words),
            hasRow: r => isThere(kind, side.rows, r, this.now), right: verdicts(links, weights),
            hasColumn: c => kind !== "decoder" || isThere(kind, side.columns, c, this.now)};
  }

  draw() {
    const {steps} = this.result, {status, previous, next} = this.parts;
    this.drawTexts();
    this.drawLikely();
    status.textContent = `step ${this.now} of ${steps}`;
    previous.disabled = this.now <= 1;
    next.disabled = this.now >= steps;
    const view = this.view();
    this.drawPicture(view);
    this.drawEditor(view);
  }

  drawTexts() {
    const {output, label, before, reference} = this.parts, {result, plain, entry} = this;
    const text = result.text ?? entry.target;
    writeMarked(output, text, plain.text ?? text, "mark");
    const changed = text !== (plain.text ?? text);
    label.textContent = changed ? "before: " : this.page.engine ? `in ${Math.ceil(this.time)} ms` : "";
    writeMarked(before, changed ? plain.text : "", text, "del");
    reference.textContent = "";
    if (entry.gold) {
      const same = entry.gold.target === text;
      reference.textContent = same ? "✓ as in the corpus" : `✗ the corpus has: ${shown(entry.gold.target)}`;
    }
  }

  drawLikely() {
    const {likely} = this.parts, step = this.result.likely?.[this.now - 1] ?? [];
    likely.replaceChildren();
    for (const {text, chance, written} of step) {
      const item = element("li", likely, "", written ? {class: "written"} : {});
      element("span", item, shown(text.replace(/^ /, "")) || "(space)", {class: "word"});
      element("i", item).style.width = `${100 * chance}%`;
      element("span", item, chance < 0.0005 ? "<0.1 %" : `${(100 * chance).toFixed(1)} %`, {class: "percent"});
      if (written) element("span", item, "written", {class: "hidden"});
    }
  }

  drawPicture(view) {
    const {picture} = this.parts, {choice, data} = this.page, {kind, look} = choice;
    const layers = this.result.maps[look][kind];
    const key = JSON.stringify([choice.picture, kind, view.rows, view.columns]);
    if (key !== this.key) {
      const focus = this.placeOf(picture.contains(document.activeElement) ? document.activeElement : null);
      picture.replaceChildren();
      if (choice.picture === "lines") layLines(picture, view);
      if (choice.picture === "matrix") layMatrix(picture, view);
      if (choice.picture === "heads") {
        layHeads(picture, layers, (layer, head) => data.names[`${kind} ${layer + 1}.${head + 1}`] ?? "");
      }
      this.key = key;
      if (focus) this.moveTo(focus, 0, 0, false);
    }
    if (choice.picture === "lines") drawLines(picture, view);
    if (choice.picture === "matrix") drawMatrix(picture, view);
    if (choice.picture === "heads") {
      drawHeads(picture, layers, view, (layer, head) => this.page.isOff(layer, head),
                (layer, head) => layer === choice.layer && head === choice.head);
    }
  }

  // The chosen weight in words, and what can be done with it.
  drawEditor({rows, columns, weights, row, column}) {
    const {reading, slider, value, force} = this.parts, {choice, engine} = this.page;
    const ready = engine && choice.head !== "mean" && row !== null && column !== null && choice.picture !== "heads";
    reading.textContent = row !== null ? sentenceOf(rows[row], weights[row], columns)
      : column !== null ? `What looks at “${shown(columns[column])}”?` : "Choose a word to see where it looks.";
    slider.disabled = force.disabled = !ready;
    this.parts.what.textContent = !engine ? "" : ready ? `“${shown(rows[row])}” on “${shown(columns[column])}”`
      : choice.head === "mean" ? "Choose one head to change a weight."
      : "Choose two words to change a weight.";
    const weight = ready ? weightsOf(this.result.maps.raw, choice.kind, choice.layer, choice.head)[row][column] : 0;
    if (document.activeElement !== slider) slider.value = Math.round(100 * weight);
    value.textContent = ready ? percent(weight) || "0 %" : "";
  }
}
