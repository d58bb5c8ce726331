// Byte-pair encoding as `transformer.data.Tokenizer` does it: texts to token ids and back.

// White space is Unicode's, as in the library that learned the merges; JavaScript's own \s differs.
const [LETTER, SPACE] = ["\\p{L}\\p{N}_", "\\p{White_Space}"];
const PRE_TOKEN = new RegExp(` ?[${LETTER}]+| ?[^${SPACE}${LETTER}]|${SPACE}+(?![^${SPACE}])|${SPACE}+`, "gu");
const WORD = new RegExp(`[${LETTER}]+|[^${LETTER}${SPACE}\x1c-\x1f]`, "gu");

// A text as models read it: one blank for each run of Unicode's white space, none at the ends, and
// no byte order mark before it.
export function normalised(text) {
  return text.replace(/^\ufeff/, "").split(/[\p{White_Space}\x1c-\x1f]+/u).filter(word => word).join(" ");
}

// The letter that stands for each byte in a vocabulary: printable ones for themselves, others from 256 on.
function lettersOfBytes() {
  const printable = byte => (byte > 32 && byte < 127) || (byte > 160 && byte < 256 && byte !== 173);
  let next = 256;
  return Array.from({length: 256}, (_, byte) => String.fromCodePoint(printable(byte) ? byte : next++));
}

// [word, where it begins, where it ends] of each word of a text.
export function placesOf(text) {
  return Array.from(text.matchAll(WORD), match => [match[0], match.index, match.index + match[0].length]);
}

export class Tokenizer {
  // types: the texts of all ids, in letters of bytes. merges: [left id, right id], the first merged first.
  constructor({types, merges, pad, bos, eos}) {
    const letters = lettersOfBytes(), id = new Map(types.map((type, i) => [type, i]));
    Object.assign(this, {types, pad, bos, eos, size: types.length});
    const byteOf = new Map(letters.map((letter, byte) => [letter, byte]));
    this.idOfByte = letters.map(letter => id.get(letter));
    this.bytes = types.map((type, i) =>
      [pad, bos, eos].includes(i) ? [] : Array.from(type, letter => byteOf.get(letter)));
    this.merges = new Map(merges.map(([left, right], rank) =>
      [left * this.size + right, {rank, id: id.get(types[left] + types[right])}]));
  }

  // Merge the pair that was learned first, the leftmost one, as long as there is one.
  merge(ids) {
    for (;;) {
      let best = null, place = -1;
      for (let i = 0; i + 1 < ids.length; i++) {
        const merge = this.merges.get(ids[i] * this.size + ids[i + 1]);
        if (merge && (best === null || merge.rank < best.rank)) [best, place] = [merge, i];
      }
      if (best === null) return ids;
      ids.splice(place, 2, best.id);
    }
  }

  // Token ids of a text, without marks at its ends.
  encode(text) {
    const parts = (" " + text).match(PRE_TOKEN) ?? [], encoder = new TextEncoder();
    return parts.flatMap(part => this.merge(Array.from(encoder.encode(part), byte => this.idOfByte[byte])));
  }

  // The text of ids with the space before it; marks are left out.
  raw(ids) {
    const bytes = Uint8Array.from(ids.flatMap(id => this.bytes[id]));
    return new TextDecoder("utf-8", {ignoreBOM: true}).decode(bytes);
  }

  decode(ids) {
    return this.raw(ids).replace(/^ /, "");
  }

  // The words of token ids, the end mark included, and for each token the index of its word. White space with a token
  // of its own belongs to the word after it.
  words(ids) {
    const raw = this.raw(ids), places = placesOf(raw), words = places.map(([word]) => word);
    if (ids.at(-1) === this.eos) words.push("</s>");
    if (!words.length) words.push("");
    const groups = ids.map((id, i) => {
      if (id === this.eos) return words.length - 1;
      const last = this.raw(ids.slice(0, i + 1)).length - 1;
      return Math.min(places.filter(([,, end]) => end <= last).length, words.length - 1);
    });
    return {words, groups};
  }
}
