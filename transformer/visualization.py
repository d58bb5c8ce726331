# ---
# jupyter:
#   jupytext:
#     formats: notebooks/19_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # Attention made visible (Figures 3 to 5)
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/19_visualization.ipynb)
#
# The paper ends with pictures: heads that bridge a long distance, heads that find what "its" refers to, heads that follow
# the structure of a sentence. Pictures picked by hand prove little. Here the corpus knows the right answers (its grammar
# wrote them down), so heads can be **scored**: chosen on one set of sentences, measured on another, next to a plain guess.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     %pip install -q git+https://github.com/OWNER/annotated-attention

# %%
from dataclasses import dataclass

import torch

from transformer.attention import record_attention
from transformer.data import WORD, collate, encode_pairs


# %% [markdown]
# The looks below use the model that comes with the package, trained on the bundled corpus with the demo's recipe.

# %% tags=["active-ipynb"]
# from transformer import plotting
# from transformer.data import Tokenizer, data_folder, read_bundled
# from transformer.decoding import translate
# from transformer.model import Transformer
#
# folder = data_folder() / "models" / "bundled"
# model, tokenizer = Transformer.from_pretrained(folder), Tokenizer.load(folder / "tokenizer.json")
# validation, test = read_bundled("validation")[:250], read_bundled("test")[:250]
# print(translate(model, tokenizer, ["The old cat behind the school lost its ball."])[0])

# %% [markdown]
# ## From tokens to words
#
# The model works on pieces of words; people and the gold annotation work on words. Which piece belongs to which word is
# known from the tokenizer. Punctuation marks count as words, and so does the end mark `</s>`.

# %%
def words_and_groups(tokenizer, text):
    """The words of a text with the end mark, and for each of its tokens the index of its word."""
    words = WORD.findall(text)
    return [*words, "</s>"], torch.tensor([*tokenizer.word_of_each_piece(text), len(words)])


# %% [markdown]
# A row of weights says where one piece looks. If a word has several pieces, its row is the mean of theirs. If the word
# looked *at* has several pieces, their weights are added, because looking at any of them is looking at the word. This
# way each row still sums to 1.

# %%
def join_pieces(weights, rows, columns):
    """Token-by-token weights (..., R, C) to word by word: pieces of a row's word are averaged, of a column's summed.

    rows (R,) and columns (C,) name each token's word; rows that summed to 1 still do.
    """
    row = torch.nn.functional.one_hot(rows).float()  # (R, number of words)
    column = torch.nn.functional.one_hot(columns).float()
    return (row / row.sum(dim=0)).T @ weights @ column


# %% tags=["active-ipynb"]
# example = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])
# joined = join_pieces(example, torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]))      # rows 0 and 1 are one word; so are columns 1 and 2
# print(joined)
# assert torch.allclose(joined, torch.tensor([[0.3, 0.7], [0.2, 0.8]]))

# %% [markdown]
# ## Which row is which step?
#
# This is where many pictures go wrong. The decoder reads the target shifted by one: when it reads word $t-1$, it produces
# word $t$. We label a row with the word that is **produced** there, so row $t$ shows what the model looked at while it
# chose word $t$. The columns of the decoder's self-attention are what it has **read**: the begin mark, then the words.

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

    @property
    def read(self):
        """Labels of the decoder's columns."""
        return ["<s>", *self.target[:-1]]


# %%
def kind_of(name):
    """encoder, decoder or cross, from the name of an attention module in a Transformer."""
    if name.startswith("encoder."):
        return "encoder"
    return "cross" if name.endswith("cross_attention") else "decoder"


# %% [markdown]
# The target is given, not generated: the question is where the model looks while it writes *these* words. (Translation
# scores are never measured this way; alignment always is.)

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
    read = read.clamp(max=len(target_words) - 1)  # white space at the end counts with the last word read
    return AttentionMaps(source_words, target_words,
                         join_pieces(layers["encoder"][:, :, :S, :S], s, s),
                         join_pieces(layers["decoder"][:, :, :T, :T], t, read),
                         join_pieces(layers["cross"][:, :, :T, :S], t, s))


# %%
def all_maps(model, tokenizer, pairs, size=50):
    """`attention_maps` for many pairs, a few at a time."""
    return [maps for start in range(0, len(pairs), size) for maps in attention_maps(model, tokenizer, pairs[start:start + size])]


# %% [markdown]
# One sentence, all heads of the last cross-attention. Rows are German words as they are produced, columns English words:

# %% tags=["active-ipynb"]
# sentence = "The old cat behind the school lost its ball."
# german = translate(model, tokenizer, [sentence])[0]
# maps = attention_maps(model, tokenizer, [(sentence, german)])[0]
# last = maps.cross[-1]
# plotting.heatmaps([(f"head {i + 1}", last[i], maps.source, maps.target) for i in range(len(last))],
#                   across=4, width=3, height=3.2, largest=1.0);

# %% tags=["active-ipynb"]
# for weights, rows, columns in [(maps.encoder, maps.source, maps.source), (maps.decoder, maps.target, maps.read), (maps.cross, maps.target, maps.source)]:
#     assert weights.shape[2:] == (len(rows), len(columns))
#     assert torch.allclose(weights.sum(dim=-1), torch.ones(weights.shape[:3]), atol=1e-5)
# assert maps.decoder.triu(2).abs().max() == 0          # no later word; a second piece may look at its word's first

# %% [markdown] tags=["question-17"]
# ## What does it mean to give the encoder's output to the decoder?
#
# It means that each step of the decoder asks the source sentence a question (cross-attention): its query comes from what
# has been written so far, keys and values from the encoder. If that is so, a German word should look at the English word
# it translates. Take the largest weight of each row as a link, and compare with the links the grammar wrote down.

# %%
def best_source_words(cross):
    """For each target word the source word with the largest weight, end marks left out: (..., T, S) -> (..., T - 1)."""
    return cross[..., :-1, :-1].argmax(dim=-1)


# %% [markdown]
# The usual figure is the alignment error rate. With $A$ the links found and $G$ the gold links,
# $\mathrm{AER} = 1 - \frac{2\,|A \cap G|}{|A| + |G|}$: 0 is perfect, 1 means nothing in common.

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
    return torch.tensor([[alignment_error_rate([{(s, t) for t, s in enumerate(c[n, i].tolist())} for c in chosen], gold)
                          for i in range(h)] for n in range(N)])


# %% [markdown]
# A guess that knows nothing: word order is the same in both languages, so target word $t$ belongs to source word $tS/T$.

# %%
def diagonal_error(maps, gold):
    """Alignment error of the plain guess that word order is the same: target word t to source word t S / T."""
    lengths = [(len(m.source) - 1, len(m.target) - 1) for m in maps]
    return alignment_error_rate([{(t * S // T, t) for t in range(T)} for S, T in lengths], gold)


# %% tags=["active-ipynb"]
# validation_maps = all_maps(model, tokenizer, [(e.source, e.target) for e in validation])
# errors = cross_head_errors(validation_maps, [e.alignment for e in validation])
# plotting.heatmap(errors, [f"head {i + 1}" for i in range(errors.shape[1])], [f"layer {n + 1}" for n in range(errors.shape[0])],
#                  "alignment error on validation", values=True, largest=1.0, cell=0.8)
# print(f"the diagonal: {diagonal_error(validation_maps, [e.alignment for e in validation]):.3f}")

# %% [markdown]
# Dark is good. The last layer's heads carry the alignment; the first layer's do other work. Nobody told the model about
# alignment: it was only ever asked for the next German word.

# %% tags=["active-ipynb"]
# layer, head = divmod(errors.argmin().item(), errors.shape[1])
# e = next(e for e in test if "relative-object" in e.constructions)
# m = attention_maps(model, tokenizer, [(e.source, e.target)])[0]
# gold = torch.zeros(len(m.target), len(m.source))
# gold[[t for _, t in e.alignment], [s for s, _ in e.alignment]] = 1
# plotting.heatmaps([(f"layer {layer + 1}, head {head + 1}", m.cross[layer, head], m.source, m.target),
#                    ("gold", gold, m.source, m.target)], across=2, width=4.2, height=4.2, largest=1.0);

# %% [markdown]
# Left what the head does, right the gold links. Where German puts the verb last, the bright squares leave the diagonal.
#
# A surprise: German commas and the full stop often look somewhere else, and so may a first article. What comes next is
# clear there without the source, so nothing teaches the head where to look. Most of the remaining error is of this kind.

# %% [markdown] tags=["question-31"]
# ## Which word does "its" refer to?
#
# English "its" becomes "sein" or "ihr" in German, depending on the gender of the noun it stands for: *die Katze ...
# ihren Ball*, *der Hund ... seinen Ball*. The model can only get it right by finding that noun, often several words back and
# past other nouns. Is there a head that does it? For every "its", take the nouns it might refer to, and see which one gets
# the largest weight.

# %%
def references(examples):
    """(index of the example, English `Pronoun`, German `Pronoun`) of every "its"."""
    return [(i, english, german) for i, example in enumerate(examples) for english, german in example.pronouns
            if WORD.findall(example.source)[english.index] == "its"]


# %% [markdown]
# "His" and "her" are left out: their German form follows from the English word alone, so nothing forces a head to look.
#
# The link may show in three places: in the encoder (from "its" to the noun), in the decoder (from the step that writes
# *ihren* to the German noun), or across (from that step to the English noun).

# %%
def link(maps, kind, english, german):
    """Weights of the pronoun's row over its candidate nouns, (N, h, candidates), and the antecedent's place among them."""
    row, column = (english if kind == "encoder" else german), (german if kind == "decoder" else english)
    nouns = [c for c in column.candidates if kind != "decoder" or c < row.index]  # a decoder sees only what is written
    shift = 1 if kind == "decoder" else 0  # its column 0 is the begin mark
    return getattr(maps, kind)[:, :, row.index][..., [c + shift for c in nouns]], nouns.index(column.antecedent)


# %%
def link_accuracy(maps, examples, kind):
    """For every head of a kind, (N, h): how often "its" looks most at its antecedent, among the candidate nouns."""
    links = [link(maps[i], kind, english, german) for i, english, german in references(examples)]
    return torch.stack([(weights.argmax(dim=-1) == place).float() for weights, place in links]).mean(dim=0)


# %% [markdown]
# Three guesses to compare with: any candidate, the nearest one before the pronoun, the first one of the sentence.

# %%
def link_baselines(examples):
    """How often a blind guess, the candidate nearest before "its", and the first candidate are the antecedent."""
    its = [english for _, english, _ in references(examples)]
    nearest = [max((c for c in p.candidates if c < p.index), default=None) == p.antecedent for p in its]
    return {"chance": sum(1 / len(p.candidates) for p in its) / len(its), "nearest noun": sum(nearest) / len(its),
            "first noun": sum(min(p.candidates) == p.antecedent for p in its) / len(its)}


# %% tags=["active-ipynb"]
# tables = {kind: link_accuracy(validation_maps, validation, kind) for kind in ("encoder", "decoder", "cross")}
# names = [f"head {i + 1}" for i in range(model.config.h)], [f"layer {n + 1}" for n in range(model.config.N)]
# plotting.heatmaps([(kind, table, *names) for kind, table in tables.items()], across=3, width=3.4, height=2.2, values=True, largest=1.0)
# print(len(references(validation)), "times its;", {name: round(value, 2) for name, value in link_baselines(validation).items()})

# %% [markdown]
# One head of the encoder stands out: the noun is found while the source is read, before a word of German is written.
# By the time the decoder needs *sein* or *ihr*, the gender has been copied into the vector of "its".

# %% tags=["active-ipynb"]
# layer, head = divmod(tables["encoder"].argmax().item(), model.config.h)
# sentences = ["The old cat behind the school lost its ball.", "The dog behind the school lost its ball."]
# translations = translate(model, tokenizer, sentences)
# panels = [m for m in attention_maps(model, tokenizer, list(zip(sentences, translations)))]
# plotting.heatmaps([(t, m.encoder[layer, head], m.source, m.source) for t, m in zip(translations, panels)],
#                   across=2, width=4, height=4, largest=1.0);

# %% [markdown]
# ## Chosen on validation, scored on test
#
# Choosing the best of many heads on the sentences you report is cheating: some head is always lucky. So layer and head
# are picked on validation, and the figure comes from test.

# %%
def score_attention(model, tokenizer, validation, test):
    """Alignment error and "its" accuracy on test of the heads that do best on validation.

    validation, test: lists of `transformer.data.Example`. Layers and heads count from 1 in the result.
    """
    chosen_on, scored_on = (all_maps(model, tokenizer, [(e.source, e.target) for e in split]) for split in (validation, test))
    errors = cross_head_errors(chosen_on, [e.alignment for e in validation])
    gold = [e.alignment for e in test]
    layer, head = divmod(errors.argmin().item(), errors.shape[1])
    alignment = {"layer": layer + 1, "head": head + 1, "error": cross_head_errors(scored_on, gold)[layer, head].item(),
                 "diagonal": diagonal_error(scored_on, gold)}
    tables = {kind: link_accuracy(chosen_on, validation, kind) for kind in ("encoder", "decoder", "cross")}
    kind = max(tables, key=lambda name: tables[name].max().item())
    layer, head = divmod(tables[kind].argmax().item(), errors.shape[1])
    pronoun = {"attention": kind, "layer": layer + 1, "head": head + 1, "count": len(references(test)),
               "accuracy": link_accuracy(scored_on, test, kind)[layer, head].item(), **link_baselines(test)}
    return {"alignment": alignment, "pronoun": pronoun}


# %% tags=["active-ipynb"]
# scores = score_attention(model, tokenizer, validation, test)
# for name, figures in scores.items():
#     print(name, {key: round(value, 3) if isinstance(value, float) else value for key, value in figures.items()})

# %% tags=["active-ipynb"]
# assert scores["alignment"]["error"] < 0.3 < scores["alignment"]["diagonal"]
# assert scores["pronoun"]["accuracy"] > 0.8 > scores["pronoun"]["chance"]

# %% [markdown] tags=["question-08"]
# ## Do heads act like the filters of a CNN, each finding something else?
#
# Filters of a trained CNN differ from each other: one finds edges, another spots. For heads, compare the weights of each
# two heads over many sentences: cosine similarity, 1 where they look at the same places. Once before training, once after.

# %%
def head_similarity(maps, kind):
    """Cosine similarity of every two heads of a kind, (N * h, N * h), over all weights of all maps."""
    flat = torch.cat([getattr(m, kind).flatten(2) for m in maps], dim=-1).flatten(0, 1)  # (N * h, all weights)
    flat = flat / flat.norm(dim=-1, keepdim=True)
    return flat @ flat.T


# %% tags=["active-ipynb"]
# torch.manual_seed(0)
# pairs = [(e.source, e.target) for e in validation[:100]]
# untrained_maps = all_maps(Transformer(model.config), tokenizer, pairs)
# labels = [f"{n + 1}.{i + 1}" for n in range(model.config.N) for i in range(model.config.h)]
# before, after = head_similarity(untrained_maps, "encoder"), head_similarity(validation_maps[:100], "encoder")
# plotting.heatmaps([("before training", before, labels, labels), ("after", after, labels, labels)], across=2, width=3.6, height=3.4,
#                   values=True, largest=1.0);

# %% tags=["active-ipynb"]
# different = ~torch.eye(len(before), dtype=torch.bool)
# print(f"mean similarity of two heads: {before[different].mean():.2f} before training, {after[different].mean():.2f} after")
# assert after[different].mean() < before[different].mean()

# %% [markdown]
# Labels are layer.head. Before training heads differ by chance, each by about as much. Training moves them apart a little
# on average, and unevenly: some pairs become alike, others nearly unrelated. What does each look at? A simple profile: the share of weight on the word itself, its neighbours, the end mark.

# %%
def head_profile(maps, kind="encoder"):
    """Share of a head's weight on the previous word, the word itself, the next word and the end mark: (N, h, 4)."""
    rows = [torch.stack([*(getattr(m, kind)[:, :, :-1, :-1].diagonal(offset, -2, -1).sum(dim=-1) for offset in (-1, 0, 1)),
                         getattr(m, kind)[:, :, :-1, -1].sum(dim=-1)], dim=-1) for m in maps]  # (N, h, 4) each
    return torch.stack(rows).sum(dim=0) / sum(len(m.source) - 1 for m in maps)

# %% tags=["active-ipynb"]
# profile = head_profile(validation_maps[:100])
# plotting.heatmap(profile.flatten(0, 1), ["previous", "itself", "next", "end mark"], labels, "encoder heads",
#                  values=True, largest=1.0, cell=0.6);

# %% [markdown]
# So the answer is: somewhat. There are specialists for neighbours, as a CNN's filters are; but also heads that no filter
# of a fixed width could replace, such as the one for "its".

# %% [markdown]
# ## Checks
#
# The alignment error on a case small enough to count: two gold links, two found, one in common, so
# $1 - 2 \cdot 1 / (2 + 2) = 0.5$. And the labels: a weight put at a known place must come out under the right words.

# %% tags=["active-ipynb"]
# assert alignment_error_rate([{(0, 0), (1, 1)}], [{(0, 0), (2, 1)}]) == 0.5
# assert alignment_error_rate([{(0, 0)}], [{(0, 0)}]) == 0.0
# planted = {"encoder": torch.zeros(1, 1, 3, 3), "decoder": torch.zeros(1, 1, 3, 3), "cross": torch.zeros(1, 1, 3, 3)}
# planted["cross"][0, 0, 1, 0] = 1.0                                # the step that produced the second token looked at the first
# m = maps_of_pair(planted, (["Good", "day", "</s>"], torch.arange(3)), (["Guten", "Tag", "</s>"], torch.arange(3)))
# assert m.cross[0, 0, m.target.index("Tag"), m.source.index("Good")] == 1.0

# %% [markdown]
# ## Exercises
#
# **1.** Weights need not mean what they seem to mean. Which head of the last cross-attention is worst at alignment?
# Set `your_answer` to its number, counted from 1.

# %% tags=["active-ipynb"]
# your_answer = ...
# if your_answer is not ...:
#     assert errors[-1, your_answer - 1] == errors[-1].max()

# %% [markdown]
# <details><summary>Solution</summary>
#
# `your_answer = errors[-1].argmax().item() + 1`. A head with a large error need not be useless: it may look at the words
# around the one being translated.
# </details>
#
# **2.** Find a sentence of your own in which "its" is translated wrongly, with `translate` and the picture above. Try many
# nouns between "its" and its antecedent.

# %% [markdown]
# ## Next
#
# Back to the [README](../README.md) for the results in one table. In Colab each notebook imports the others' modules from
# the installed package; to change a module, clone the repository and install it with `pip install -e .`.
