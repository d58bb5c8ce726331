// The page: what is chosen for both sentences, the changes to the model, and the model itself.
import {element, fit} from "./kit.mjs";
import {Model} from "./model.mjs";
import {Panel} from "./panel.mjs";
import {options, shown} from "./pictures.mjs";
import {bytesOf, tensorsOf} from "./tensors.mjs";
import {Tokenizer} from "./tokenizer.mjs";
import {KINDS, replay, run} from "./words.mjs";

const LABELS = {encoder: "encoder: source on source", decoder: "decoder: target on target",
                cross: "cross: target on source"};
const $ = id => document.getElementById(id);

// The tokens of a word, and the number of its side's tokens.
function tokensOf({groups}, word) {
  return groups.flatMap((group, token) => group === word ? [token] : []);
}

export class Page {
  constructor(data, weights) {
    const {sentences, config, beam} = data, N = config?.N ?? sentences[0].maps.cross.length;
    this.data = data;
    this.edits = [];
    this.panels = [];
    this.heads = config?.h ?? sentences[0].maps.cross[0].length;
    this.engine = config ? {model: new Model(config, tensorsOf(data.tensors, bytesOf(weights))),
                            tokenizer: new Tokenizer(data.tokenizer), alpha: data.alpha} : null;
    this.choice = {kind: "cross", layer: N - 1, head: "mean", picture: "lines", look: "raw",
                   search: sentences[0].target ? "given" : beam};
    this.layOut(N);
    const shown = data.shown ?? sentences.length;
    for (let i = 0; i < (shown === 2 ? 2 : 1); i++) this.addPanel();
    this.draw();
    if (data.start) this.begin(data.start);
  }

  // One word of the first sentence looks only at another; the step is the first at which that changes the translation.
  begin({layer, head, row, column}) {
    const [panel] = this.panels;
    this.choose({kind: "encoder", layer, head});
    Object.assign(panel, {row, column});
    this.turn(panel, 1);
    const tokens = ({likely}) => likely.map(step => step.find(({written}) => written)?.text);
    const [now, before] = [panel.result, panel.plain].map(tokens);
    const step = now.findIndex((text, t) => text !== before[t]);
    if (step >= 0) panel.goTo(step + 1);
  }

  layOut(N) {
    const {choice, data} = this, numbers = n => Array.from({length: n}, (_, i) => [i, i + 1]);
    options($("kind"), KINDS.map(kind => [kind, LABELS[kind]]), choice.kind);
    options($("layer"), numbers(N), choice.layer);
    const searches = [[1, "greedy"], [data.beam > 1 ? data.beam : 4, `beam of ${data.beam > 1 ? data.beam : 4}`]];
    if (data.sentences.some(entry => entry.target)) searches.push(["given", "given translation"]);
    options($("search"), searches, choice.search);
    for (const id of ["kind", "layer", "head", "picture", "look", "search"]) {
      $(id).addEventListener("change", () => this.choose({[id]: $(id).value}));
    }
    $("still").textContent = data.still && `${data.still} It shows what Python recorded, and nothing can be changed.`;
    document.body.classList.toggle("recorded", !this.engine);
    $("silent").addEventListener("click", () => this.toggle(choice.layer, choice.head));
    $("second").addEventListener("click", () => this.onSecond());
    $("undo").addEventListener("click", () => this.setEdits([]));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  addPanel() {
    this.panels.push(new Panel(this, this.panels.length, $("boxes"), $("figures")));
  }

  onSecond() {
    if (this.panels.length === 1) this.addPanel();
    else {
      const last = this.panels.pop();
      last.remove();
      this.forget(last);
    }
    this.draw();
  }

  // Another layer, head, picture, ...: numbers where they are numbers.
  choose(change) {
    const before = {...this.choice};
    for (const [name, value] of Object.entries(change)) this.choice[name] = isNaN(value) ? value : Number(value);
    for (const panel of this.panels) {
      if (before.kind !== this.choice.kind) Object.assign(panel, {row: null, column: null});
      if (before.search !== this.choice.search) Object.assign(panel, {plain: null}).compute();
    }
    this.draw();
  }

  // The result of an entry under some edits; a translation that is given is read where it was asked for.
  run(entry, edits) {
    if (!this.engine) return replay(entry.maps);
    const {source: text, target: given} = entry, {search} = this.choice;
    return run(this.engine, {text, given, search: search === "given" && !given ? this.data.beam : search}, edits);
  }

  // Changes: a head that is off concerns all sentences, a weight the one whose words it names.

  editsOf(panel) {
    return this.edits.filter(edit => edit.silent || edit.panel === panel);
  }

  setEdits(edits) {
    this.edits = edits;
    for (const panel of this.panels) panel.compute();
    this.draw();
  }

  // Another sentence has other words.
  forget(panel) {
    this.edits = this.edits.filter(edit => edit.panel !== panel);
    if (this.panels.includes(panel)) this.drawEdits();
  }

  isOff(layer, head) {
    const {kind} = this.choice;
    return this.edits.some(edit => edit.silent && edit.kind === kind && edit.layer === layer && edit.head === head);
  }

  toggle(layer, head) {
    const {kind} = this.choice, name = `${kind} ${layer + 1}.${head + 1} off`;
    const others = this.edits.filter(edit => edit.name !== name);
    this.setEdits(this.isOff(layer, head) ? others : [...others, {kind, layer, head, silent: true, name}]);
  }

  // Give the weight that is chosen in a panel another value.
  turn(panel, share) {
    const {kind, layer, head} = this.choice, {row, column} = panel, {rows, columns} = panel.result.sides[kind];
    const where = `${kind} ${layer + 1}.${head + 1}`;
    const words = `${shown(rows.words[row])} on ${shown(columns.words[column])}`;
    const others = this.edits.filter(edit => edit.panel !== panel || edit.where !== where || edit.row !== row);
    const name = `${where}: ${words} ${Math.round(100 * share)} %`;
    this.setEdits([...others, {panel, kind, layer, head, share, row, where, name, rows: tokensOf(rows, row),
                               columns: tokensOf(columns, column)}]);
  }

  // Drawing

  drawEdits() {
    $("edits").replaceChildren();
    for (const edit of this.edits) {
      const words = {type: "button", "aria-label": `Take back: ${edit.name}`};
      const button = element("button", element("li", $("edits")), `${edit.name} ✕`, words);
      button.addEventListener("click", () => this.setEdits(this.edits.filter(other => other !== edit)));
    }
    $("undo").disabled = !this.edits.length;
  }

  drawHeadChoice() {
    const {kind, layer, head} = this.choice, heads = Array.from({length: this.heads}, (_, i) => {
      const name = this.data.names[`${kind} ${layer + 1}.${i + 1}`];
      return [i, `${i + 1}${name ? `: ${name}` : ""}${this.isOff(layer, i) ? " (off)" : ""}`];
    });
    options($("head"), [["mean", "mean of all"], ...heads], head);
    $("kind").value = kind;
    $("layer").value = layer;
    $("silent").disabled = head === "mean" || !this.engine;
    $("silent").setAttribute("aria-pressed", head !== "mean" && this.isOff(layer, head));
  }

  draw() {
    this.drawEdits();
    this.drawHeadChoice();
    $("second").textContent = this.panels.length > 1 ? "Remove the second sentence" : "Add a second sentence";
    document.body.classList.toggle("two", this.panels.length > 1);
    for (const panel of this.panels) panel.draw();
  }
}

// The data of a page with what its address asks for after the #: sentences that come first, and a start.
export function asked(data, hash) {
  if (hash.length < 2 || !data.config) return data;
  const {sentences, start} = JSON.parse(decodeURIComponent(hash.slice(1)));
  const same = entry => other => other.source === entry.source;
  const wanted = sentences.map(entry => data.sentences.find(same(entry)) ?? entry);
  const others = data.sentences.filter(entry => !wanted.some(same(entry)));
  return {...data, sentences: [...wanted, ...others], shown: wanted.length, start};
}

export function startPage() {
  fit();
  const data = asked(JSON.parse($("data").textContent), location.hash);
  return new Page(data, $("weights").textContent);
}
