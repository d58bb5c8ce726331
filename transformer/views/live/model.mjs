// The Transformer of notebook 08 and the language model of notebook 21, one token at a time. Parameters have the names
// that they have in Python.
//
// A look is what one run changes and keeps: {edits, record}. An edit is {kind, layer, head, silent: true}, the head
// puts out zeros, or {kind, layer, head, rows, columns, share}: these rows give these columns that share of their
// attention, and the others keep their proportions. Kinds are encoder, decoder and cross; layers, heads, rows (tokens
// that look) and columns (tokens looked at) count from 0.
import {softmax} from "./numbers.mjs";
import {add, layerNorm, linear} from "./tensors.mjs";

// Weights of a row after the edits that concern it.
export function turned(weights, columns, share) {
  const there = columns.filter(column => column < weights.length);
  if (!there.length) return weights;
  const rest = weights.reduce((sum, weight, c) => there.includes(c) ? sum : sum + weight, 0);
  const others = weights.length - there.length;
  return weights.map((weight, c) => {
    if (there.includes(c)) return (others ? share : 1) / there.length;
    return (1 - share) * (rest > 0 ? weight / rest : 1 / others);
  });
}

// Where a run keeps weights and norms: record.weights[kind][layer][head][row], a number for each column.
export function newRecord({N, h}) {
  const empty = () => Array.from({length: N}, () => Array.from({length: h}, () => []));
  const kinds = () => ({encoder: empty(), decoder: empty(), cross: empty()});
  return {weights: kinds(), norms: kinds()};
}

export class Model {
  constructor(config, tensors) {
    Object.assign(this, {config, tensors, angles: new Map()});
  }

  linear(name, x) {
    return linear(this.tensors[`${name}.weight`], x, this.tensors[`${name}.bias`]);
  }

  norm(name, x) {
    return layerNorm(x, this.tensors[`${name}.gain`], this.tensors[`${name}.bias`]);
  }

  // Sines and cosines of a position (notebook 07), d numbers.
  sinusoids(position, d) {
    const key = `${position} ${d}`;
    if (!this.angles.has(key)) {
      this.angles.set(key, Float32Array.from({length: d}, (_, i) => {
        const angle = position * 10000 ** (-(i - i % 2) / d);
        return i % 2 ? Math.cos(angle) : Math.sin(angle);
      }));
    }
    return this.angles.get(key);
  }

  embed(name, token, position) {
    const {data, shape: [, d]} = this.tensors[`${name}.weight`] ?? this.tensors["embedding.weight"];
    const x = data.slice(token * d, (token + 1) * d).map(value => value * Math.sqrt(d));
    if (this.config.positions === "rotary") return x;
    if (this.config.positions === "sinusoidal") return add(x, this.sinusoids(position, d));
    return add(x, this.tensors["positions.table"].data.slice(position * d, (position + 1) * d));
  }

  // Heads of queries or keys, turned by their position where positions are rotary and attention is to oneself.
  rotate(kind, x, position, d) {
    if (this.config.positions !== "rotary" || kind === "cross") return x;
    const table = this.sinusoids(position, d), y = new Float32Array(x.length);
    for (let i = 0; i < x.length; i += 2) {
      const sin = table[i % d], cos = table[i % d + 1];
      y[i] = cos * x[i] - sin * x[i + 1];
      y[i + 1] = sin * x[i] + cos * x[i + 1];
    }
    return y;
  }

  // The sub-layer f with what stands around it: LayerNorm(x + f(x)), or the later x + f(LayerNorm(x)).
  residual(name, x, f) {
    if (this.config.norm_first) return add(x, f(this.norm(`${name}.norm`, x)));
    return this.norm(`${name}.norm`, add(x, f(x)));
  }

  feedForward(name, x) {
    const hidden = this.linear(`${name}.W_1`, x).map(value => Math.max(0, value));
    return this.linear(`${name}.W_2`, hidden);
  }

  // Add a token's keys and values to those that are held.
  hold(kind, name, held, x) {
    const k = this.linear(`${name}.W_K`, x), d = this.width(name);
    held.k.push(this.rotate(kind, k, held.k.length, d));
    held.v.push(this.linear(`${name}.W_V`, x));
  }

  // Width of a head's keys.
  width(name) {
    return this.tensors[`${name}.W_Q.weight`].shape[0] / this.config.h;
  }

  // How long the vector is that each head would add for each held token with weight 1 (Kobayashi et al., 2020).
  lengths(name, held, head) {
    const {data, shape: [n, m]} = this.tensors[`${name}.W_O.weight`], d = m / this.config.h;
    held.lengths ??= Array.from({length: this.config.h}, () => []);
    for (let c = held.lengths[head].length; c < held.v.length; c++) {
      const v = this.share(held.v[c], d, head);
      let squares = 0;
      for (let i = 0; i < n; i++) {
        let sum = 0;
        for (let j = 0; j < d; j++) sum += v[j] * data[i * m + head * d + j];
        squares += sum * sum;
      }
      held.lengths[head].push(Math.sqrt(squares));
    }
    return held.lengths[head];
  }

  // A head's part of keys or values, which several heads may share.
  share(x, d, head) {
    const own = Math.floor(head * (x.length / d) / this.config.h);
    return x.subarray(own * d, (own + 1) * d);
  }

  weightsOf(q, held, d, head) {
    const query = q.subarray(head * d, (head + 1) * d);
    return softmax(held.k.map(keys => {
      const k = this.share(keys, d, head);
      let sum = 0;
      for (let i = 0; i < d; i++) sum += query[i] * k[i];
      return sum / Math.sqrt(d);
    }));
  }

  // One token's attention to all that is held: place is {kind, layer, name}, row its number.
  attend(place, x, held, row, {edits = [], record = null}) {
    const {kind, layer, name} = place, {h} = this.config, d = this.width(name);
    const q = this.rotate(kind, this.linear(`${name}.W_Q`, x), row, d);
    const size = this.tensors[`${name}.W_O.weight`].shape[1] / h, output = new Float32Array(h * size);
    for (let head = 0; head < h; head++) {
      const own = edits.filter(edit => edit.kind === kind && edit.layer === layer && edit.head === head);
      let weights = this.weightsOf(q, held, d, head);
      for (const edit of own) if (edit.rows?.includes(row)) weights = turned(weights, edit.columns, edit.share);
      if (record) {
        const lengths = this.lengths(name, held, head);
        record.weights[kind][layer][head][row] = weights;
        record.norms[kind][layer][head][row] = weights.map((weight, c) => weight * lengths[c]);
      }
      if (own.some(edit => edit.silent)) continue;
      weights.forEach((weight, c) => {
        const v = this.share(held.v[c], size, head);
        for (let i = 0; i < size; i++) output[head * size + i] += weight * v[i];
      });
    }
    return this.linear(`${name}.W_O`, output);
  }

  finish(stack, x) {
    return this.config.norm_first ? this.norm(`${stack}.final_norm`, x) : x;
  }

  check(length) {
    const {max_positions} = this.config;
    if (length > max_positions) throw new Error(`The sentence is longer than the model's ${max_positions} positions.`);
  }

  // Source ids with the end mark -> the memory, a vector a token.
  encode(source, look = {}) {
    this.check(source.length);
    let all = source.map((token, position) => this.embed("embedding", token, position));
    for (let layer = 0; layer < this.config.N; layer++) {
      const at = `encoder.layers.${layer}`, held = {k: [], v: []};
      const place = {kind: "encoder", layer, name: `${at}.self_attention`}, norm = `${at}.residuals.0.norm`;
      for (const x of all) this.hold("encoder", place.name, held, this.config.norm_first ? this.norm(norm, x) : x);
      all = all.map((x, row) => {
        const y = this.residual(`${at}.residuals.0`, x, z => this.attend(place, z, held, row, look));
        return this.residual(`${at}.residuals.1`, y, z => this.feedForward(`${at}.feed_forward`, z));
      });
    }
    return all.map(x => this.finish("encoder", x));
  }

  // A language model has no encoder, and no layer that looks at one.
  get hasEncoder() {
    return "encoder.layers.0.self_attention.W_Q.weight" in this.tensors;
  }

  // The state of a search that has read the source and written nothing.
  start(source, look = {}) {
    const memory = this.hasEncoder ? this.encode(source, look) : [];
    const layers = Array.from({length: this.config.N}, (_, layer) => {
      const held = {k: [], v: []};
      for (const x of memory) this.hold("cross", `decoder.layers.${layer}.cross_attention`, held, x);
      return {own: {k: [], v: []}, source: held};
    });
    const state = {length: 0, layers};
    if (!this.hasEncoder) for (const token of source) this.read(token, state, look);
    return state;
  }

  // A copy of a state that goes its own way; what is held is shared.
  fork({length, layers}) {
    return {length, layers: layers.map(({own, source}) => ({own: {k: [...own.k], v: [...own.v]}, source}))};
  }

  // Read the next token of the target: the state grows, and the vector comes back that the logits are made of.
  read(token, state, look = {}) {
    const row = state.length++;
    this.check(state.length);
    let x = this.embed("target_embedding", token, row);
    state.layers.forEach(({own, source}, layer) => {
      const at = `decoder.layers.${layer}`;
      x = this.residual(`${at}.residuals.0`, x, z => {
        this.hold("decoder", `${at}.self_attention`, own, z);
        return this.attend({kind: "decoder", layer, name: `${at}.self_attention`}, z, own, row, look);
      });
      if (this.hasEncoder) {
        x = this.residual(`${at}.residuals.1`, x, z =>
          this.attend({kind: "cross", layer, name: `${at}.cross_attention`}, z, source, row, look));
      }
      const last = `${at}.residuals.${this.hasEncoder ? 2 : 1}`;
      x = this.residual(last, x, z => this.feedForward(`${at}.feed_forward`, z));
    });
    return this.finish("decoder", x);
  }

  // Read the next token -> the logits of what follows.
  step(token, state, look = {}) {
    return linear(this.tensors["output.weight"] ?? this.tensors["embedding.weight"], this.read(token, state, look));
  }
}
