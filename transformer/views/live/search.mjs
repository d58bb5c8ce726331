// Greedy and beam search of notebook 15 for one sentence, and a reading of what they found.
import {newRecord} from "./model.mjs";
import {softmax} from "./numbers.mjs";

const EXTRA = 50;           // most tokens that an output may have more than its source (Section 6.1)

// log P(next token), in nats; padding is no token.
export function logProbs(logits, pad) {
  const result = softmax(logits);
  for (let i = 0; i < result.length; i++) result[i] = Math.log(result[i]);
  result[pad] = -Infinity;
  return result;
}

// The places of the n largest values, largest first.
export function largest(values, n) {
  const places = [];
  for (let i = 0; i < values.length; i++) {
    if (places.length === n && !(values[i] > values[places[n - 1]])) continue;
    let at = places.length;
    while (at > 0 && values[i] > values[places[at - 1]]) at--;
    places.splice(at, 0, i);
    if (places.length > n) places.pop();
  }
  return places;
}

function limitOf(model, source) {
  return Math.min(source.length + EXTRA, model.config.max_positions);
}

// After the begin mark at each step the likeliest token but for those of `never`, until the end mark or `limit` tokens.
export function goOn(model, state, limit, never, look = {}) {
  const {bos_id, eos_id} = model.config, tokens = [];
  do {
    const logits = model.step(tokens.at(-1) ?? bos_id, state, look);
    for (const token of never) logits[token] = -Infinity;
    tokens.push(largest(logits, 1)[0]);
  } while (tokens.at(-1) !== eos_id && tokens.length < limit);
  return tokens;
}

export function greedy(model, source, look = {}) {
  return goOn(model, model.start(source, look), limitOf(model, source), [model.config.pad_id], look);
}

// The 2K best extensions of hypotheses {tokens, score, state}, best first.
function extensions(model, live, K, look) {
  const {bos_id, pad_id} = model.config;
  const all = live.flatMap(({tokens, score, state}) => {
    const scores = logProbs(model.step(tokens.at(-1) ?? bos_id, state, look), pad_id);
    return largest(scores, 2 * K).map(token => ({tokens: [...tokens, token], score: score + scores[token], state}));
  });
  return all.sort((a, b) => b.score - a.score).slice(0, 2 * K);
}

// The best output by log P / ((5 + |Y|) / 6)^alpha, with K hypotheses kept alive.
export function beam(model, source, K, alpha, look = {}) {
  const limit = limitOf(model, source), penalty = n => ((5 + n) / 6) ** alpha;
  let live = [{tokens: [], score: 0, state: model.start(source, look)}];
  let found = {tokens: [], score: -Infinity};
  while (live.length && found.score < live[0].score / penalty(limit)) {
    const best = extensions(model, live, K, look), length = best[0].tokens.length;
    const ended = ({tokens}) => tokens.at(-1) === model.config.eos_id || length >= limit;
    for (const {tokens, score} of best.slice(0, K).filter(ended)) {
      if (score / penalty(length) > found.score) found = {tokens, score: score / penalty(length)};
    }
    live = best.filter(one => !ended(one)).slice(0, K).map(one => ({...one, state: model.fork(one.state)}));
  }
  return found.tokens;
}

// Read source and target once: all weights, and for each step the five likeliest tokens [id, probability] and the
// probability of the token that is written.
export function read(model, source, target, edits = []) {
  const look = {edits, record: newRecord(model.config)}, state = model.start(source, look);
  const steps = target.map((token, t) => {
    const chances = softmax(model.step(t ? target[t - 1] : model.config.bos_id, state, look));
    chances[model.config.pad_id] = 0;
    return {likely: largest(chances, 5).map(id => [id, chances[id]]), chance: chances[token]};
  });
  return {...look.record, steps};
}
