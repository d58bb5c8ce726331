"""Attention weights between words: recorded token by token, joined word by word, labelled."""

from dataclasses import dataclass
from fnmatch import filter as filter_names
from textwrap import shorten

import torch
import torch.nn.functional as F

from transformer.core.checks import check_choice, check_sentences
from transformer.corpora.tokenizer import WORD
from transformer.data import collate, encode_pairs
from transformer.models.recording import cache, names

KINDS = ("encoder", "decoder", "cross")
MOST = 100  # sentence pairs whose weights are held at a time


@dataclass(frozen=True)
class AttentionMaps:
    """Attention weights of one sentence pair between words, by kind of attention.

    encoder: (N, h, S, S), rows and columns are source words. decoder: (N, h, T, T) and cross:
    (N, h, T, S): row t is the step that produced target word t. Each side's last word is the end
    mark; a decoder column t is the step that read target word t - 1 (column 0: the begin mark).
    """

    source: list
    target: list
    encoder: torch.Tensor
    decoder: torch.Tensor
    cross: torch.Tensor

    def __repr__(self) -> str:
        """Both sentences, and of each kind its layers, heads, rows and columns."""
        lines = [f"AttentionMaps: {short(self.source)} -> {short(self.target)}"]
        for kind in KINDS:
            N, h, rows, columns = getattr(self, kind).shape
            lines.append(f"  {kind:8}{N} layers, {h} heads, {rows} x {columns} words")
        return "\n".join(lines)

    @property
    def read(self):
        """Labels of the decoder's columns."""
        return ["<s>", *self.target[:-1]]

    def labels(self, kind):
        """(columns, rows) of a kind of attention: what is looked at, and what looks."""
        check_choice("kind", kind, KINDS)
        rows = self.source if kind == "encoder" else self.target
        return (self.read if kind == "decoder" else self.source), rows


def short(words: list) -> str:
    """A sentence of words in at most sixty characters."""
    return shorten(" ".join(words), 60, placeholder=" ...")


def as_thousandths(maps: AttentionMaps) -> dict:
    """Maps as plain lists and whole numbers: nobody can see a smaller difference."""
    weights = {
        kind: (getattr(maps, kind) * 1000).round().int().tolist() for kind in KINDS
    }
    return {"source": maps.source, "target": maps.target, **weights}


def attention_name(kind: str, layer: int | str = "*") -> str:
    """What `cache` and `edit` call an attention: its kind is one of `KINDS`, layers from 0.

    `attention_name("cross", 1) + ".weights"` are the weights of one, and without a layer
    those of all.
    """
    check_choice("kind", kind, KINDS)
    stack = "encoder" if kind == "encoder" else "decoder"
    return f"{stack}.{layer}.{'cross' if kind == 'cross' else 'self'}_attention"


def words_and_groups(tokenizer, text):
    """The words of a text with the end mark, and for each of its tokens the index of its word."""
    words = WORD.findall(text)
    return [*words, "</s>"], torch.tensor(
        [*tokenizer.word_of_each_piece(text), len(words)]
    )


def join_pieces(weights, rows, columns, count=-1):
    """Token-by-token weights (..., R, C) to word by word.

    rows (R,) and columns (C,) name each token's word, count is the number of these in
    columns (-1: as many as are named). Pieces of a row's word are averaged, of a
    column's summed: rows that summed to 1 still do.
    """
    weights = weights.float()  # of a model in another precision
    row = F.one_hot(rows).float()  # (R, number of words)
    column = F.one_hot(columns, count).float()
    pieces = row.sum(dim=0).clamp(
        min=1
    )  # a word without a piece of its own has a row of zeros
    return (row / pieces).T @ weights @ column


def maps_of_pair(layers, source, target) -> AttentionMaps:
    """The maps of one pair from its token-by-token weights; padding is cut away.

    source and target: words, and the word of each token.
    """
    (source_words, s), (target_words, t) = source, target
    S, T, words = len(s), len(t), len(source_words)
    # the begin mark, then each token one step later
    read = torch.cat([torch.zeros(1, dtype=torch.long), t[:-1] + 1])
    read = read.clamp(
        max=len(target_words) - 1
    )  # white space at the end: with the last word
    return AttentionMaps(
        source_words,
        target_words,
        join_pieces(layers["encoder"][:, :, :S, :S], s, s, words),
        join_pieces(layers["decoder"][:, :, :T, :T], t, read, len(target_words)),
        join_pieces(layers["cross"][:, :, :T, :S], t, s, words),
    )


@torch.no_grad()
def weights_by_kind(model, tokenizer, pairs) -> dict[str, torch.Tensor]:
    """{kind: (B, N, h, rows, columns)}: weights between tokens, of a model that reads pairs.

    ValueError for a model without attention in one of these places.
    """
    patterns = {kind: f"{attention_name(kind)}.weights" for kind in KINDS}
    missing = [kind for kind in KINDS if not filter_names(names(model), patterns[kind])]
    if missing:
        raise ValueError(
            f"this model has no attention of the kind {', '.join(missing)}: maps are "
            "those of a Transformer"
        )
    encoded = encode_pairs(tokenizer, pairs)
    longest = model.config.max_positions
    check_sentences([source for source, _ in encoded], longest, "source")
    check_sentences([target[1:] for _, target in encoded], longest, "target")
    batch = collate(encoded, model.config.pad_id)
    batch = batch.to(next(model.parameters()).device)
    with cache(model.eval(), *patterns.values(), device="cpu") as seen:
        model(batch.source, batch.decoder_input)
    return {
        kind: torch.stack([seen[name] for name in filter_names(seen, pattern)], dim=1)
        for kind, pattern in patterns.items()
    }


def attention_maps(model, tokenizer, pairs) -> list:
    """`AttentionMaps` of each (source, target) sentence pair; the target is read, not generated."""
    pairs = list(pairs)
    if not pairs:
        return []
    if len(pairs) > MOST:
        raise ValueError(
            f"weights of at most {MOST} sentences at a time, not {len(pairs)}: "
            "choose some, or go through them with `all_maps`"
        )
    layers, found = weights_by_kind(model, tokenizer, pairs), []
    for i, pair in enumerate(pairs):
        both = tokenizer, getattr(tokenizer, "of_targets", tokenizer)
        sides = map(words_and_groups, both, pair)
        of_pair = {
            kind: weights[i] for kind, weights in layers.items()
        }  # (N, h, rows, columns)
        found.append(maps_of_pair(of_pair, *sides))
    return found


def all_maps(model, tokenizer, pairs, size=50) -> list:
    """`attention_maps` for many pairs, a few at a time."""
    found, pairs = [], list(pairs)
    for start in range(0, len(pairs), size):
        found += attention_maps(model, tokenizer, pairs[start : start + size])
    return found
