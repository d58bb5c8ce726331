# %% [markdown]
# # Attention made visible (Figures 3-5)

# %%
from dataclasses import dataclass

import torch

from transformer.attention import record_attention
from transformer.data import WORD, collate, encode_pairs

# %% [markdown]
# ## The weights of one translation

# %%
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


# %%
def words_and_groups(tokenizer, text):
    """The words of a text with the end mark, and for each of its tokens the index of its word."""
    words = WORD.findall(text)
    return [*words, "</s>"], torch.tensor([*tokenizer.word_of_each_piece(text), len(words)])


# %%
def join_pieces(weights, rows, columns):
    """Token-by-token weights (..., R, C) to word by word: pieces of a row's word are averaged, of a column's summed.

    rows (R,) and columns (C,) name each token's word; rows that summed to 1 still do.
    """
    row = torch.nn.functional.one_hot(rows).float()  # (R, number of words)
    column = torch.nn.functional.one_hot(columns).float()
    return (row / row.sum(dim=0)).T @ weights @ column


# %%
def kind_of(name):
    """encoder, decoder or cross, from the name of an attention module in a Transformer."""
    if name.startswith("encoder."):
        return "encoder"
    return "cross" if name.endswith("cross_attention") else "decoder"


# %%
@torch.no_grad()
def attention_maps(model, tokenizer, pairs):
    """`AttentionMaps` of each (source, target) sentence pair; the target is read, not generated."""
    model.eval()
    batch = collate(encode_pairs(tokenizer, pairs), model.config.pad_id).to(next(model.parameters()).device)
    with record_attention(model) as record:
        model(batch.source, batch.decoder_input)
    layers = {kind: torch.stack([calls[0].cpu() for name, calls in record.items() if kind_of(name) == kind], dim=1)
              for kind in ("encoder", "decoder", "cross")}  # each (B, N, h, rows, columns)
    return [maps_of_pair({kind: weights[i] for kind, weights in layers.items()},
                         *(words_and_groups(tokenizer, text) for text in pair)) for i, pair in enumerate(pairs)]


# %%
def maps_of_pair(layers, source, target):
    """`AttentionMaps` of one pair from its token-by-token weights; padding is cut away."""
    (source_words, s), (target_words, t) = source, target
    S, T = len(s), len(t)
    read = torch.cat([torch.zeros(1, dtype=torch.long), t[:-1] + 1])  # the begin mark, then each token one step later
    return AttentionMaps(source_words, target_words,
                         join_pieces(layers["encoder"][:, :, :S, :S], s, s),
                         join_pieces(layers["decoder"][:, :, :T, :T], t, read),
                         join_pieces(layers["cross"][:, :, :T, :S], t, s))


# %%
def all_maps(model, tokenizer, pairs, size=50):
    """`attention_maps` for many pairs, a few at a time."""
    return [maps for start in range(0, len(pairs), size) for maps in attention_maps(model, tokenizer, pairs[start:start + size])]


# %% [markdown]
# ## Alignment

# %%
def best_source_words(cross):
    """For each target word the source word with the largest weight, end marks left out: (..., T, S) -> (..., T - 1)."""
    return cross[..., :-1, :-1].argmax(dim=-1)


# %%
def alignment_error_rate(predicted, gold):
    """AER = 1 - 2 |A and G| / (|A| + |G|) over all sentences (Och and Ney, 2003; all gold links are sure).

    predicted, gold: for each sentence a set of (source word, target word). 0 is perfect, 1 the worst.
    """
    hits = sum(len(a & g) for a, g in zip(predicted, gold, strict=True))
    return 1 - 2 * hits / sum(len(a) + len(g) for a, g in zip(predicted, gold))


# %%
def cross_head_errors(maps, gold):
    """Alignment error of every cross-attention head, (N, h), each target word linked to its largest weight."""
    chosen = [best_source_words(m.cross) for m in maps]  # (N, h, T - 1) each
    N, h = chosen[0].shape[:2]
    links = lambda n, i: [{(s, t) for t, s in enumerate(c[n, i].tolist())} for c in chosen]
    return torch.tensor([[alignment_error_rate(links(n, i), gold) for i in range(h)] for n in range(N)])


# %%
def diagonal_error(maps, gold):
    """Alignment error of the plain guess that word order is the same: target word t to source word t S / T."""
    lengths = [(len(m.source) - 1, len(m.target) - 1) for m in maps]
    return alignment_error_rate([{(t * S // T, t) for t in range(T)} for S, T in lengths], gold)


# %% [markdown]
# ## Which word does "its" refer to?

# %%
def pronoun_rows(maps, kind, english, german):
    """The pronoun's row of weights over the candidates, (N, h, candidates), and the place of the antecedent."""
    row, column = (english if kind == "encoder" else german), (german if kind == "decoder" else english)
    shift = 1 if kind == "decoder" else 0  # column 0 of the decoder is the begin mark
    seen = [c for c in column.candidates if kind != "decoder" or c < row.index]
    weights = getattr(maps, kind)[:, :, row.index][..., [c + shift for c in seen]]
    return weights, seen.index(column.antecedent)


# %%
def pronoun_head_accuracy(maps, examples, kind):
    """For every head of a kind, (N, h): how often the pronoun's largest weight among the candidate nouns is its antecedent's."""
    hits = [(weights.argmax(dim=-1) == place).float() for m, example in zip(maps, examples)
            for weights, place in [pronoun_rows(m, kind, *pair) for pair in example.pronouns]]
    return torch.stack(hits).mean(dim=0)


# %%
def pronoun_baselines(examples):
    """Accuracy of a blind guess among the candidates, and of the candidate nearest before the pronoun (English side)."""
    pronouns = [english for example in examples for english, _ in example.pronouns]
    nearest = [max((c for c in p.candidates if c < p.index), default=p.candidates[0]) == p.antecedent for p in pronouns]
    return {"chance": sum(1 / len(p.candidates) for p in pronouns) / len(pronouns), "nearest noun": sum(nearest) / len(nearest)}


# %% [markdown]
# ## Chosen on validation, scored on test

# %%
def best_place(figures, largest=True):
    """(layer, head) of the largest (or smallest) figure of an (N, h) table."""
    place = (figures if largest else -figures).argmax().item()
    return divmod(place, figures.shape[1])


# %%
def score_attention(model, tokenizer, validation, test):
    """Alignment error and pronoun accuracy of the heads that do best on validation, measured on test.

    validation, test: lists of `transformer.data.Example`. Layers and heads count from 1 in the result.
    """
    pairs = [[(e.source, e.target) for e in split] for split in (validation, test)]
    chosen_on, scored_on = (all_maps(model, tokenizer, p) for p in pairs)
    gold = [[e.alignment for e in split] for split in (validation, test)]
    layer, head = best_place(cross_head_errors(chosen_on, gold[0]), largest=False)
    result = {"alignment": {"layer": layer + 1, "head": head + 1,
                            "error": cross_head_errors(scored_on, gold[1])[layer, head].item(),
                            "diagonal": diagonal_error(scored_on, gold[1])}}
    tables = {kind: pronoun_head_accuracy(chosen_on, validation, kind) for kind in ("encoder", "decoder", "cross")}
    kind = max(tables, key=lambda name: tables[name].max().item())
    layer, head = best_place(tables[kind])
    result["pronoun"] = {"attention": kind, "layer": layer + 1, "head": head + 1,
                         "accuracy": pronoun_head_accuracy(scored_on, test, kind)[layer, head].item(),
                         **pronoun_baselines(test)}
    return result
