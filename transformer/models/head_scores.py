"""Scores of attention heads against what the bundled corpus's grammar knows (19).

Maps are `AttentionMaps`, with a row and a column for each word.
"""

from dataclasses import replace

import torch

from transformer.core.checks import check_choice
from transformer.models.gold import determiners, references
from transformer.models.maps import KINDS, all_maps

# Which noun a pronoun looks at


def link(maps, kind, english, german):
    """Weights of the pronoun's row over its candidates, and the antecedent's place.

    The weights are (N, h, candidates); the place is one among the candidates.
    """
    check_choice("kind", kind, KINDS)
    row = english if kind == "encoder" else german
    column = german if kind == "decoder" else english
    nouns = list(column.candidates)
    shift = 0
    if kind == "decoder":
        nouns = [noun for noun in nouns if noun < row.index]  # it sees what is written
        shift = 1  # its column 0 is the begin mark
    weights = getattr(maps, kind)[:, :, row.index, [noun + shift for noun in nouns]]
    return weights, nouns.index(column.antecedent)


def link_hits(maps, examples, kind="encoder"):
    """(example, does "its" look most at its antecedent, of the candidates: (N, h))."""
    hits = []  # references gives the example's number, "its", and the German word
    for i, english, german in references(examples):
        weights, place = link(maps[i], kind, english, german)
        hits.append((i, (weights.argmax(dim=-1) == place).float()))
    return hits


def link_accuracy(maps, examples, kind):
    """How often "its" looks most at its antecedent, of the candidate nouns: (N, h)."""
    return torch.stack([hit for _, hit in link_hits(maps, examples, kind)]).mean(dim=0)


def link_baselines(examples) -> dict:
    """How often three guesses name the antecedent of "its".

    A blind one, the candidate nearest before it, and the first candidate.
    """
    its = [english for _, english, _ in references(examples)]
    chance = nearest = first = 0
    for p in its:
        chance += 1 / len(p.candidates)
        before = [candidate for candidate in p.candidates if candidate < p.index]
        nearest += max(before, default=None) == p.antecedent
        first += min(p.candidates) == p.antecedent
    guesses = {"chance": chance, "nearest noun": nearest, "first noun": first}
    return {name: hits / len(its) for name, hits in guesses.items()}


# Which noun a determiner looks at


def agreement_hits(maps, examples):
    """(example, does an article or possessive look most at its own noun: (N, h))."""
    hits = []
    for i, example in enumerate(examples):
        for determiner, noun in determiners(example):
            rows = maps[i].encoder[:, :, determiner]
            hits.append((i, (rows.argmax(dim=-1) == noun).float()))
    return hits


# Alignment


def alignment_error_rate(predicted, gold) -> float:
    """AER = 1 - 2 |A and G| / (|A| + |G|) over all sentences (Och and Ney, 2003).

    predicted, gold: for each sentence a set of (source word, target word); all gold
    links are sure. 0 is perfect, 1 the worst.
    """
    hits = sum(len(a & g) for a, g in zip(predicted, gold, strict=True))
    return 1 - 2 * hits / sum(len(a) + len(g) for a, g in zip(predicted, gold))


def best_source_words(cross):
    """Each target word's most looked at source word: (..., T, S) -> (..., T - 1).

    End marks are left out.
    """
    return cross[..., :-1, :-1].argmax(dim=-1)


def cross_head_errors(maps, gold):
    """Alignment error of every cross-attention head, (N, h).

    Each target word is linked to its largest weight.
    """
    chosen = [best_source_words(m.cross) for m in maps]  # (N, h, T - 1) each
    N, h = chosen[0].shape[:2]
    errors = torch.zeros(N, h)
    for n in range(N):
        for i in range(h):
            links = [{(s, t) for t, s in enumerate(c[n, i].tolist())} for c in chosen]
            errors[n, i] = alignment_error_rate(links, gold)
    return errors


def diagonal_error(maps, gold) -> float:
    """Alignment error of the guess that word order is the same: t to word t S / T."""
    links = []
    for m in maps:
        S, T = len(m.source) - 1, len(m.target) - 1
        links.append({(t * S // T, t) for t in range(T)})
    return alignment_error_rate(links, gold)


def score_attention(model, tokenizer, validation, test) -> dict:
    """Alignment error and "its" accuracy on test of the heads best on validation.

    validation, test: lists of `transformer.corpora.Example`. Layers and heads count
    from 1 in the result.
    """
    chosen_on = all_maps(model, tokenizer, [(e.source, e.target) for e in validation])
    scored_on = all_maps(model, tokenizer, [(e.source, e.target) for e in test])
    errors = cross_head_errors(chosen_on, [e.alignment for e in validation])
    gold = [e.alignment for e in test]
    layer, head = divmod(errors.argmin().item(), errors.shape[1])
    found = cross_head_errors(scored_on, gold)[layer, head].item()
    alignment = {
        "layer": layer + 1,
        "head": head + 1,
        "error": found,
        "diagonal": diagonal_error(scored_on, gold),
    }
    tables = {kind: link_accuracy(chosen_on, validation, kind) for kind in KINDS}
    kind = max(tables, key=lambda name: tables[name].max().item())
    layer, head = divmod(tables[kind].argmax().item(), errors.shape[1])
    accuracy = link_accuracy(scored_on, test, kind)[layer, head].item()
    pronoun = {
        "attention": kind,
        "layer": layer + 1,
        "head": head + 1,
        "count": len(references(test)),
        "accuracy": accuracy,
        **link_baselines(test),
    }
    return {"alignment": alignment, "pronoun": pronoun}


# Verbs in two parts


def separated_verbs(examples, apart=3) -> list:
    """(index of the example, first half, second half) of verbs in two parts, each once.

    One English word, two German ones at least so many words apart.
    """
    found = set()
    for i, example in enumerate(examples):
        for source in {s for s, _ in example.alignment}:
            halves = sorted(t for s, t in example.alignment if s == source)
            if len(halves) == 2 and halves[1] - halves[0] >= apart:
                found.add((i, *halves))
    return sorted(found)


def look_back_hits(maps, examples):
    """(example, does a decoder head look back from a verb's second half to its first).

    (N, h) each: whether that is where it looks most, of all words before.
    """
    hits = []
    for i, first, second in separated_verbs(examples):
        row = maps[i].decoder[:, :, second, 1 : second + 1]  # without the begin mark
        hits.append((i, (row.argmax(dim=-1) == first).float()))
    return hits


# Lengths and likeness


def norm_weighted(weights, v, W_O):
    """Shares by the length of what arrives, ||weight * (v W_O)||: (B, h, T, S).

    weights: (B, h, T, S); v: (B, h, S, d_v); W_O: (d_model, h * d_v), as in nn.Linear.
    """
    parts = W_O.unflatten(1, (v.shape[1], v.shape[3]))  # (d_model, h, d_v)
    lengths = torch.einsum("bhsv,mhv->bhsm", v, parts).norm(dim=-1)
    arriving = weights * lengths[:, :, None]
    return arriving / arriving.sum(dim=-1, keepdim=True)


def head_similarity(maps, kind, centred=True):
    """Cosine of every two heads' weights over all maps, (N * h, N * h).

    centred: of what the weights of a row have above or below their mean.
    """
    flat = []
    for m in maps:
        weights = getattr(m, kind)
        if centred:
            weights = weights - weights.mean(dim=-1, keepdim=True)
        flat.append(weights.flatten(2))
    flat = torch.cat(flat, dim=-1).flatten(0, 1)  # (N * h, all weights)
    flat = flat / flat.norm(dim=-1, keepdim=True)
    return flat @ flat.T


def shuffled(maps):
    """The same maps, with the encoder's weights of each row in random order."""
    order = torch.rand(maps.encoder.shape).argsort(dim=-1)
    return replace(maps, encoder=maps.encoder.gather(-1, order))
