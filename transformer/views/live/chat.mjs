// The chat of notebook 21: turns with a language model, and where the words of an answer looked.
import {goOn, read} from "./search.mjs";
import {normalised} from "./tokenizer.mjs";
import {joinPieces} from "./words.mjs";

// A turn is {question, answer}: token ids, the marks among them, as the model reads them.
export class Chat {
  constructor(model, tokenizer, longest) {
    Object.assign(this, {model, tokenizer, longest});
    this.begin();
  }

  // Forget all that was said.
  begin() {
    this.turns = [];
    this.forgetState();
  }

  forgetState() {
    Object.assign(this, {read: [], state: this.model.start([])});
  }

  // The turn that a text begins; where the positions do not suffice, the oldest turns are forgotten.
  say(text) {
    const {bos_id, eos_id, pad_id, max_positions} = this.model.config;
    const question = [...this.tokenizer.encode(normalised(text)), eos_id], room = max_positions - this.longest - 1;
    if (question.length > room) {
      throw new Error(`The question has ${question.length} tokens, and the model has positions for ${room}.`);
    }
    const before = () => this.turns.flatMap(turn => [...turn.question, ...turn.answer]);
    while (before().length + question.length > room) this.turns.shift();
    this.readAll([...before(), ...question]);
    const written = goOn(this.model, this.state, this.longest, [pad_id, bos_id]);
    this.read.push(bos_id, ...written.slice(0, -1));
    if (written.at(-1) !== eos_id) written.push(eos_id);
    this.turns.push({question, answer: [bos_id, ...written]});
    return this.turns.at(-1);
  }

  // Read what the state has not yet; begin anew where it has read something else.
  readAll(ids) {
    if (!this.read.every((id, i) => id === ids[i])) this.forgetState();
    for (const id of ids.slice(this.read.length)) this.model.read(id, this.state);
    this.read = ids;
  }
}

// Words of what one side said, its marks among them, and for each token the number of its word.
export function wordsOf(tokenizer, ids) {
  if (ids[0] !== tokenizer.bos) return tokenizer.words(ids);
  const {words, groups} = tokenizer.words(ids.slice(1));
  return {words: ["<s>", ...words], groups: [0, ...groups.map(group => group + 1)]};
}

// Where the words of an answer looked: maps[layer][head], a row for each of its words, a column for each word of all
// that was said, itself included. before: what both sides had said, token ids of each.
export function looksOf(model, tokenizer, before, answer) {
  const source = before.flat(), {weights} = read(model, source, answer.slice(1)), columns = [];
  const sides = [...before, answer].map(ids => wordsOf(tokenizer, ids)), {words, groups} = sides.at(-1);
  let C = 0;
  for (const side of sides) {
    for (const group of side.groups) columns.push(C + group);
    C += side.words.length;
  }
  return weights.decoder.map(heads => heads.map(rows =>
    joinPieces(rows.slice(source.length), groups.slice(1), columns, words.length, C)));
}
