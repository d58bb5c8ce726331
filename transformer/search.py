"""Searches over many sentences: cut into batches of like length, answered in the order given."""

from dataclasses import dataclass

from transformer.checks import check_search
from transformer.data import pad
from transformer.decoding import beam_search, greedy_search, output_limit
from transformer.fast.packed import packed
from transformer.protocol import about


def check_sentences(encoded, max_positions):
    """ValueError, naming it, for a sentence that is longer than the model's positions."""
    for number, ids in enumerate(encoded, 1):
        if len(ids) > max_positions:
            raise ValueError(f"sentence {number} has {len(ids)} tokens, more than the model's "
                             f"{max_positions} positions: split it")


def chosen(model, beam: int | None, alpha: float | None) -> tuple[int, float]:
    """(beam, alpha), where not given those that travel with the model."""
    own = about(model)
    return own.beam if beam is None else beam, own.alpha if alpha is None else alpha


def in_batches(model, tokenizer, sentences, search, beam, extra, batch_tokens, progress):
    """search(model, source ids (B, S)) -> B results, on batches of sentences of like length;
    results in the order given."""
    if batch_tokens < 1:
        raise ValueError(f"batch_tokens must be at least 1, not {batch_tokens}")
    c, device = model.config, next(model.parameters()).device
    encoded = [[*ids, tokenizer.eos_id] for ids in tokenizer.encode_all(sentences)]
    check_sentences(encoded, c.max_positions)
    order = sorted(range(len(encoded)), key=lambda i: -len(encoded[i]))
    results, quick = [None] * len(encoded), packed(model)
    while order:
        longest = pad([encoded[order[0]]], c.pad_id)
        # positions in caches
        held = beam * (longest.shape[1] + output_limit(model, longest, extra).item())
        size = max(1, batch_tokens // held)
        rows, order = order[:size], order[size:]
        source = pad([encoded[i] for i in rows], c.pad_id).to(device)
        for i, result in zip(rows, search(quick, source)):
            results[i] = result
        progress(len(rows))
    return results


def translate(model, tokenizer, sentences, beam: int | None = None, alpha: float | None = None,
              extra=50, batch_tokens=16_000, progress=lambda n: None):
    """Translate a list of sentences (beam=1: greedily), batched by length, in the order given.

    beam, alpha: where not given those that travel with the model (`model.about`).
    batch_tokens: most positions whose keys and values a batch may hold, all beams counted (at N=6
    and d_model=512 one takes 25 kB in float32). progress(n) is called with the number of sentences
    done after each batch. Raises ValueError for a sentence longer than the model's positions, and
    for settings that `beam_search` refuses.
    """
    beam, alpha = chosen(model, beam, alpha)
    check_search(beam, alpha, n_best=1)

    def search(model, source):
        if beam == 1:
            return greedy_search(model, source, extra)
        return [best[0].tokens for best in beam_search(model, source, beam, alpha, extra)]

    outputs = in_batches(model, tokenizer, sentences, search, beam, extra, batch_tokens, progress)
    return [tokenizer.decode(tokens) for tokens in outputs]


@dataclass(frozen=True)
class Translation:
    """One entry of an n-best list: its text, and log P(Y | X) / lp(Y) in nats."""

    text: str
    score: float


def translate_n_best(model, tokenizer, sentences, n_best=4, beam: int | None = None,
                     alpha: float | None = None, extra=50, batch_tokens=16_000,
                     progress=lambda n: None):
    """For each sentence a list of its n_best `Translation`s, best first; the rest as in
    `translate`.

    A list is shorter where fewer outputs exist, and two entries read alike where only their pieces
    differ.
    """
    beam, alpha = chosen(model, beam, alpha)
    check_search(beam, alpha, n_best)

    def search(model, source):
        return beam_search(model, source, beam, alpha, extra, n_best)

    lists = in_batches(model, tokenizer, sentences, search, beam, extra, batch_tokens, progress)
    return [[Translation(tokenizer.decode(h.tokens), h.score) for h in some] for some in lists]
