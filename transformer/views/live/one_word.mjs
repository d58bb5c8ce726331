// One word's attention over a sentence: its query, all keys, scores, weights and values, and the blend it receives.
import {element, fit, number, share, vector} from "./kit.mjs";
import {dot, product, softmax} from "./numbers.mjs";

const LONGEST = 12;            // words of a sentence

// The words of a sentence as {text, x}: known ones as the table writes them; the vector of others is all zeros.
export function readWords(text, known) {
  const table = new Map(Object.entries(known).map(([word, x]) => [word.toLowerCase(), {text: word, x}]));
  const width = Object.values(known)[0].length;
  return text.split(/\s+/).filter(Boolean).slice(0, LONGEST).map(written => {
    const bare = written.replace(/^[\p{P}\p{S}]+|[\p{P}\p{S}]+$/gu, "") || written;
    return table.get(written.toLowerCase()) ?? table.get(bare.toLowerCase()) ??
      {text: bare, x: Array(width).fill(0), unknown: true};
  });
}

// Everything that happens when the word at a place asks.
export function ask(words, place, {W_Q, W_K, W_V}) {
  const query = product(words[place].x, W_Q);
  const [keys, values] = [W_K, W_V].map(W => words.map(({x}) => product(x, W)));
  const scores = keys.map(key => dot(query, key) / Math.sqrt(key.length));
  const weights = Array.from(softmax(scores));
  return {query, keys, scores, weights, values, blend: product(weights, values)};
}

// 2 somebody + 1 deed: what a vector's numbers mean; "nothing" for zeros.
export function meaning(values, names, digits = 2) {
  const parts = values.map((value, i) => [number(value, digits, true), names[i]]).filter(([text]) => text !== "0");
  return parts.map(([text, name]) => `${text} ${name}`).join(" + ").replaceAll("+ −", "− ") || "nothing";
}

// What a query looks for: the names of its positive numbers.
export function wish(query, names) {
  return names.filter((_, i) => query[i] > 0).join(" and ") || "nothing";
}

// “his” takes 94 % from Tom and 6 % from dog, and receives 0.94 human + 0.06 animal.
export function summary(words, place, {weights, blend}, gives) {
  const order = weights.map((weight, i) => [weight, words[i].text]).sort((a, b) => b[0] - a[0]);
  const even = order[0][0] - order.at(-1)[0] < 1e-9;
  const [first, second] = order.map(([weight, word]) => `${share(weight)} from ${word}`);
  const from = even ? "the same from every word" :
    order.length > 1 && order[1][0] >= 0.01 ? `${first} and ${second}` : first;
  return `“${words[place].text}” takes ${from}, and receives ${meaning(blend, gives)}.`;
}

class OneWord {
  constructor(data) {
    Object.assign(this, data);
    const root = document.querySelector("main");
    this.choices = element("fieldset", root, "", {class: "words"});
    this.query = element("p", root, "", {class: "pill"});
    this.table = element("table", element("div", root, "", {class: "wide"}));
    this.result = element("p", root, "", {class: "result", role: "status"});
    const label = element("label", root, "Your sentence ", {class: "own"});
    this.input = element("input", label, "", {type: "text", value: this.sentence, autocomplete: "off",
                                              autocapitalize: "off", spellcheck: "false", maxlength: "80"});
    this.note = element("p", root, "", {class: "note", role: "status"});
    this.input.addEventListener("input", () => this.read());
    this.read();
  }

  read() {
    const words = readWords(this.input.value, this.known);
    const unknown = [...new Set(words.filter(word => word.unknown).map(({text}) => `“${text}”`))];
    this.note.textContent = !words.length ? "Type a word." : !unknown.length ?
      `It knows these words: ${Object.keys(this.known).join(", ")}.` :
      `${unknown.join(", ")}: unknown here, so all zeros, which asks for nothing and gives nothing. ` +
      `Known: ${Object.keys(this.known).join(", ")}.`;
    if (!words.length) return;
    this.words = words;
    const place = words.findIndex(({text}) => text === this.word);
    this.place = place < 0 ? Math.min(this.place ?? 0, words.length - 1) : place;
    this.layOut();
    this.choose(this.place);
  }

  // The words to choose from, and a row of the table for each.
  layOut() {
    const {choices, table, words} = this;
    choices.replaceChildren();
    table.replaceChildren();
    element("legend", choices, "Which word asks?");
    this.radios = words.map(({text}, i) => {
      const label = element("label", choices);
      const radio = element("input", label, "", {type: "radio", name: "word", value: i});
      element("span", label, text);
      radio.addEventListener("change", () => this.choose(i));
      return radio;
    });
    this.layHeads();
    const body = element("tbody", table);
    this.rows = words.map(({text}, i) => {
      const row = element("tr", body);
      element("th", row, text, {scope: "row"});
      const cells = {key: element("td", row), score: element("td", row)};
      const weight = element("div", element("td", row), "", {class: "weight"});
      Object.assign(cells, {bar: element("i", element("span", weight, "", {class: "track"})),
                            weight: element("span", weight), value: element("td", row)});
      row.addEventListener("click", () => this.choose(i));
      return {row, ...cells};
    });
    const foot = element("tr", element("tfoot", table));
    this.blendName = element("th", foot, "", {scope: "row", colspan: 4});
    this.blend = element("td", foot);
  }

  // What stands in each column.
  layHeads() {
    const {table, asks, gives} = this;
    const head = element("tr", element("thead", table));
    const heads = [["", ""], ["key", asks.join(", ")], ["score", `q · k / √${asks.length}`],
                   ["weight", "softmax of scores"], ["value", gives.join(", ")]];
    heads.forEach(([name, more]) => element("small", element("th", head, name, {scope: "col"}), more));
  }

  choose(place) {
    const {words, asks, gives} = this, result = ask(words, place, this);
    this.place = place;
    this.word = words[place].text;
    this.radios[place].checked = true;
    this.query.replaceChildren();
    element("b", this.query, `“${this.word}”`);
    this.query.append(` asks for ${wish(result.query, asks)}: its query is ${vector(result.query)}`);
    this.rows.forEach(({row, key, score, bar, weight, value}, i) => {
      row.classList.toggle("asks", i === place);
      key.textContent = vector(result.keys[i]);
      score.textContent = number(result.scores[i], 2);
      bar.style.width = `${100 * result.weights[i]}%`;
      weight.textContent = number(result.weights[i], 3);
      value.textContent = vector(result.values[i]);
    });
    this.blendName.textContent = `“${this.word}” receives the values, blended by these weights`;
    this.blend.textContent = vector(result.blend);
    this.result.textContent = summary(words, place, result, gives);
  }
}

export function startOneWord(data) {
  fit();
  return new OneWord(data);
}
