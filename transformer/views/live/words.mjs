// From tokens to words: what one run of the model leaves, as a page shows it.
import {beam, greedy, read} from "./search.mjs";
import {normalised, placesOf} from "./tokenizer.mjs";

export const KINDS = ["encoder", "decoder", "cross"];

// Token-by-token weights to R words by C words. Rows and columns name each token's word; pieces of a row's word are
// averaged, of a column's summed.
export function joinPieces(weights, rows, columns, R, C) {
  const joined = Array.from({length: R}, () => new Float64Array(C)), pieces = new Float64Array(R);
  weights.forEach((own, r) => {
    pieces[rows[r]]++;
    own.forEach((weight, c) => joined[rows[r]][columns[c]] += weight);
  });
  return joined.map((row, r) => row.map(weight => weight / Math.max(1, pieces[r])));
}

// Numbers of a row as shares of their sum.
export function shares(row) {
  const sum = row.reduce((total, value) => total + value, 0);
  return sum > 0 ? row.map(value => value / sum) : row;
}

// For each word of b the place of the same word in a, or -1: a longest common subsequence.
export function matched(a, b) {
  const best = Array.from({length: a.length + 1}, () => new Array(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      best[i][j] = a[i] === b[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
    }
  }
  const places = new Array(b.length).fill(-1);
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) places[j++] = i++;
    else if (best[i + 1][j] >= best[i][j + 1]) i++;
    else j++;
  }
  return places;
}

// Words and their tokens on both sides of each kind of attention. A row of decoder and cross is the step that writes
// a target word; a decoder's column is the word that was read last there, the begin mark first.
function sidesOf(source, target) {
  const last = target.words.length - 1;
  const written = {words: ["<s>", ...target.words.slice(0, -1)],
                   groups: [0, ...target.groups.slice(0, -1).map(group => Math.min(group + 1, last))]};
  return {encoder: {rows: source, columns: source}, decoder: {rows: target, columns: written},
          cross: {rows: target, columns: source}};
}

// All maps[kind][layer][head] of a record, word by word.
function mapsOf(record, sides, change) {
  return Object.fromEntries(KINDS.map(kind => {
    const {rows, columns} = sides[kind];
    return [kind, record[kind].map(heads => heads.map(weights => joinPieces(
      weights.map(change), rows.groups, columns.groups, rows.words.length, columns.words.length)))];
  }));
}

// Translate a text, or read the translation that is given, and look at everything.
export function run({model, tokenizer, alpha}, {text, given, search}, edits = []) {
  const mark = tokenizer.eos, source = [...tokenizer.encode(normalised(text)), mark], look = {edits};
  const ids = search === "given" ? [...tokenizer.encode(normalised(given)), mark]
    : search > 1 ? beam(model, source, search, alpha, look) : greedy(model, source, look);
  const {weights, norms, steps} = read(model, source, ids, edits);
  const sides = sidesOf(tokenizer.words(source), tokenizer.words(ids));
  const likely = steps.map(step => step.likely.map(([id, chance]) =>
    ({text: id === mark ? "</s>" : tokenizer.raw([id]), chance, written: id === ids[steps.indexOf(step)]})));
  return {sides, text: tokenizer.decode(ids), steps: ids.length, likely,
          maps: {raw: mapsOf(weights, sides, row => row), norms: mapsOf(norms, sides, shares)}};
}

// The same of weights that were recorded, in thousandths.
export function replay(maps) {
  const side = words => ({words, groups: words.map((_, i) => i)});
  const sides = sidesOf(side(maps.source), side(maps.target));
  const raw = Object.fromEntries(KINDS.map(kind => [kind, maps[kind].map(heads =>
    heads.map(head => head.map(row => row.map(weight => weight / 1000))))]));
  return {sides, text: null, steps: maps.target.length, likely: null, maps: {raw}};
}

// Weights of one head, or for head "mean" the mean of its layer.
export function weightsOf(maps, kind, layer, head) {
  const heads = maps[kind][layer];
  if (head !== "mean") return heads[head];
  return heads[0].map((row, r) => Array.from(row, (_, c) =>
    heads.reduce((sum, weights) => sum + weights[r][c], 0) / heads.length));
}

// Has a word of one side a token among the first so many steps?
export function isThere(kind, side, word, step) {
  return kind === "encoder" || side.groups.indexOf(word) < step;
}

// The links that the corpus knows, {kind: [[row, column], ...]}: an antecedent for each pronoun, and an alignment.
// They hold for the words that the translation shares with the corpus's own.
export function goldLinks(gold, sides) {
  const german = placesOf(gold.target).map(([word]) => word), own = sides.cross.rows.words;
  const places = matched(own, german), there = ([row, column]) => row >= 0 && column >= 0;
  return {
    encoder: gold.pronouns.map(([english]) => english),
    decoder: gold.pronouns.map(([, [word, noun]]) => [places[word], places[noun] < 0 ? -1 : places[noun] + 1])
      .filter(there),
    cross: gold.alignment.map(([english, word]) => [places[word], english]).filter(there),
  };
}

// For each row that has a link: does its largest weight lie on one?
export function verdicts(links, weights) {
  const found = {};
  for (const [row] of links) {
    const most = weights[row].indexOf(Math.max(...weights[row]));
    found[row] = links.some(([r, column]) => r === row && column === most);
  }
  return found;
}
