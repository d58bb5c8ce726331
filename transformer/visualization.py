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
import html
import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files

import torch

from transformer.attention import MultiHeadAttention, record_attention
from transformer.data import WORD, collate, encode_pairs
from transformer.search import translate
from transformer.scores import bleu
from transformer.files import write_file


# %% [markdown]
# The looks below use the model that comes with the package, trained on the bundled corpus with the demo's recipe, for twice as many updates.

# %% tags=["active-ipynb"]
# from transformer import plotting
# from transformer.data import Tokenizer
# from transformer.corpora import read_bundled
# from transformer.experiments.records import read_rows, under
# from transformer.files import data_folder
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
# scores are never measured this way; alignment usually is.)

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
#                   across=4, width=3, height=3.2, largest=1.0, labels=("looked at", "produced"));

# %% [markdown]
# Bright is 1, dark 0. All four heads walk the same diagonal; they part only at the full stop.

# %% tags=["active-ipynb"]
# for weights, rows, columns in [(maps.encoder, maps.source, maps.source), (maps.decoder, maps.target, maps.read), (maps.cross, maps.target, maps.source)]:
#     assert weights.shape[2:] == (len(rows), len(columns))
#     assert torch.allclose(weights.sum(dim=-1), torch.ones(weights.shape[:3]), atol=1e-5)
# assert maps.decoder.triu(2).abs().max() == 0          # no later word; a second piece may look at its word's first

# %% [markdown]
# ## An interactive view
#
# Pictures of every head fill pages, and most of it is never looked at. The other way round: one page on which you choose
# layer and head, point at a word, and see where it looks. It is one HTML file with the words, the weights and a small
# script (`view.js`, plain JavaScript and SVG). It loads nothing, so it works offline, in JupyterLab, in Colab and on a
# web site.
#
# Weights go in as thousandths: nobody can see a smaller difference, and it keeps the page small. A `<` in a text is
# written `\u003c`, because `</script>` in a sentence would end the script.

# %%
def as_thousandths(maps):
    """`AttentionMaps` as plain lists and whole numbers, for a file."""
    weights = {kind: (getattr(maps, kind) * 1000).round().int().tolist() for kind in ("encoder", "decoder", "cross")}
    return {"source": maps.source, "target": maps.target, **weights}


def from_thousandths(saved):
    """The `AttentionMaps` that `as_thousandths` wrote, each weight to 0.0005."""
    weights = {kind: torch.tensor(saved[kind]) / 1000 for kind in ("encoder", "decoder", "cross")}
    return AttentionMaps(saved["source"], saved["target"], **weights)


# %%
def view_page(maps):
    """The HTML page, complete in itself, that shows these `AttentionMaps`, one or several."""
    pairs = [as_thousandths(m) for m in maps]
    text = json.dumps(pairs, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    page, script = (files("transformer").joinpath(name).read_text(encoding="utf8") for name in ("view.html", "view.js"))
    return page.replace("{script}", script).replace("{pairs}", text)


# %% [markdown]
# In a notebook the page stands in a frame of its own: its styles and Jupyter's never meet, and several views on one page
# do not disturb each other. The frame may run its own script and nothing else: it cannot reach the notebook, and the page
# itself forbids its browser to load anything.

# %%
@dataclass(frozen=True)
class View:
    """An interactive page of attention: a notebook shows it, `save` writes it to a file. height in pixels."""

    page: str = field(repr=False)
    height: int

    def save(self, path):
        """Write the page to an HTML file that any browser opens."""
        write_file(path, lambda temporary: temporary.write_text(self.page, encoding="utf8"))

    def _repr_html_(self):
        return (f'<iframe srcdoc="{html.escape(self.page)}" title="Where attention looks" sandbox="allow-scripts" '
                f'style="width: 100%; max-width: 48rem; height: {self.height}px; border: 0"></iframe>'
                "<p><small>An interactive view. Nothing above this line? Then the notebook is shown without its scripts: "
                "trust it, or run the cell.</small></p>")


# %%
def view(model, tokenizer, sentences):
    """`View` of a sentence, a (source, target) pair, or a list of them; a target that is not given is translated.

    Raises ValueError for an empty list, and for a sentence longer than the model's positions.
    """
    entries = sentences if isinstance(sentences, list) else [sentences]
    if not entries:
        raise ValueError("no sentence to view: give one, or a list with at least one")
    pairs = [(entry, translate(model, tokenizer, [entry])[0]) if isinstance(entry, str) else entry for entry in entries]
    maps = attention_maps(model, tokenizer, pairs)
    return View(view_page(maps), 320 + 28 * max(len(words) for m in maps for words in (m.source, m.target)))


# %% tags=["active-ipynb"]
# view(model, tokenizer, [sentence, "The dog behind the school lost its ball."])

# %% [markdown]
# Three things to try. Choose *encoder* and go through the heads with the word "its" chosen: does one of them find the noun?
# (The scores further down know.) Choose *cross* and press Play: each German word is written, and the lines show what was
# looked at meanwhile. Choose *decoder*: how much weight goes to the begin mark, which says nothing?
#
# `view(...).save("attention.html")` writes the page to a file, and `transformer attend --html attention.html "..."` does
# it from the command line.

# %% tags=["active-ipynb"]
# page = view(model, tokenizer, (sentence, german)).page
# pairs = json.loads(page.split('id="pairs">')[1].split("</script>")[0])
# assert torch.allclose(from_thousandths(pairs[0]).cross, maps.cross, atol=0.00051)
# assert not any(word in page for word in ("<script src", "<link href", "@import", "fetch(", "https:"))

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
#                  "alignment error on validation", values=True, largest=1.0)
# print(f"the diagonal: {diagonal_error(validation_maps, [e.alignment for e in validation]):.3f}")

# %% [markdown]
# Here dark is good: a small error. The last layer's heads show the alignment; those of the first do it less well, or do other work. Nobody
# told the model about alignment: it was only ever asked for the next German word.

# %% tags=["active-ipynb"]
# layer, head = divmod(errors.argmin().item(), errors.shape[1])
# e = next(e for e in test if "relative-object" in e.constructions)
# m = attention_maps(model, tokenizer, [(e.source, e.target)])[0]
# gold = torch.zeros(len(m.target), len(m.source))
# gold[[t for _, t in e.alignment], [s for s, _ in e.alignment]] = 1
# plotting.heatmaps([(f"layer {layer + 1}, head {head + 1}", m.cross[layer, head], m.source, m.target),
#                    ("gold", gold, m.source, m.target)], across=2, width=4.2, height=4.2, largest=1.0, labels=("looked at", "produced"))
# words, linked = sum(len(m.target) - 1 for m in validation_maps), sum(len({t for _, t in e.alignment}) for e in validation)
# print(f"German words: {words:,}; without a gold link: {words - linked}; least error possible: {1 - 2 * linked / (words + sum(len(e.alignment) for e in validation)):.3f}")

# %% [markdown]
# Left what the head does, right the gold links. Where German puts the verb last, the bright squares leave the diagonal.
#
# German commas look somewhere else, and the gold has no link for them: English has no comma there. But we give each German word a link, so an error of 0 cannot be reached. The print says how near
# to it one may come.

# %% [markdown] tags=["question-31"]
# ## Which word does "its" refer to?
#
# English "its" becomes "sein" or "ihr" in German, depending on the gender of the noun it stands for: *die Katze ...
# ihren Ball*, *der Hund ... seinen Ball* (the paper's Figure 4 asks the same of an English text: its heads are two of the encoder's layer 5, chosen by hand). The model can only get it right every time by finding that noun, often several words back and
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
# One head of the encoder stands out: it finds the noun while the source is read. That suggests that the gender is in the vector of "its" before a word of German is written.
# But a head of the decoder finds the German noun in three of four cases, too. (The guesses printed are for English. The decoder sees only the nouns written so far, which are fewer, and 24 cases are few.) Which of them the model relies on no picture can tell.

# %% tags=["active-ipynb"]
# layer, head = divmod(tables["encoder"].argmax().item(), model.config.h)
# sentences = ["The old cat behind the school lost its ball.", "The dog behind the school lost its ball."]
# translations = translate(model, tokenizer, sentences)
# panels = attention_maps(model, tokenizer, list(zip(sentences, translations)))
# plotting.heatmaps([(f"encoder, layer {layer + 1}, head {head + 1}", m.encoder[layer, head], m.source, m.source) for m in panels],
#                   across=2, width=4, height=4, largest=1.0, labels=("looked at", "asks"))
# print(*translations, sep="\n")

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

# %% [markdown]
# These are 250 test sentences, and few times "its". On all thousand (README) the same head is right for 92% of 117, the first noun for 71%.

# %% [markdown]
# ## Across many words
#
# The paper's Figure 3 shows heads of the encoder that tie a verb to words far behind it. German grammar has such ties, which the decoder must write: in "Sie *machte* das alte
# Fenster *auf*", *machte* and *auf* together are "opened", and with *zu* in place of *auf* it would be "closed". The source still says "opened" when the second half is due. But has the first half been written,
# and which one? That only the decoder's own past tells. The gold links know these verbs: one English word (or both words of one, as in "woke up"), linked to two German ones far apart. (A few
# of them are reflexive verbs, *sich ... beeilen*, "hurry", of which the same is true.)

# %%
def separated_verbs(examples, apart=3):
    """(index of the example, first half, second half), each once: one English word, two German ones at least so many words apart."""
    found = set()
    for i, example in enumerate(examples):
        for source in {s for s, _ in example.alignment}:
            halves = sorted(t for s, t in example.alignment if s == source)
            if len(halves) == 2 and halves[1] - halves[0] >= apart:
                found.add((i, *halves))
    return sorted(found)


# %%
def look_back_accuracy(maps, examples):
    """For every decoder head, (N, h): how often, writing a verb's second half, it looks at the first most of all words before."""
    hits = [maps[i].decoder[:, :, second, 1:second + 1].argmax(dim=-1) == first  # column 0 is the begin mark
            for i, first, second in separated_verbs(examples)]
    return torch.stack(hits).float().mean(dim=0)


# %% [markdown]
# Two guesses to compare with: any of the words before, and the second word of the sentence. (A German main clause has its verb in second place, after one word or several.) The picture shows
# the verb whose halves lie farthest apart, of those whose first half is *not* that second word.

# %% tags=["active-ipynb"]
# validation_verbs, test_verbs = separated_verbs(validation), separated_verbs(test)
# table, test_maps = look_back_accuracy(validation_maps, validation), all_maps(model, tokenizer, [(e.source, e.target) for e in test])
# layer, head = divmod(table.argmax().item(), model.config.h)
# chance = sum(1 / second for _, _, second in test_verbs) / len(test_verbs)
# second_word = sum(first == 1 for _, first, _ in test_verbs) / len(test_verbs)            # counted from 0
# print(f"layer {layer + 1}, head {head + 1} (chosen on {len(validation_verbs)} verbs of validation): right for "
#       f"{look_back_accuracy(test_maps, test)[layer, head]:.0%} of {len(test_verbs)} in test")
# print(f"guesses: always the sentence's second word {second_word:.0%}, any earlier word {chance:.0%}")

# %% tags=["active-ipynb"]
# i, first, second = max((verb for verb in test_verbs if verb[1] != 1), key=lambda verb: verb[2] - verb[1])
# m = test_maps[i]
# plotting.heatmaps([("decoder, all heads of all layers: mean", m.decoder.mean(dim=(0, 1)), m.read, m.target),
#                    (f"layer {layer + 1}, head {head + 1}", m.decoder[layer, head], m.read, m.target)], across=2, width=4.4, height=4.4, largest=1.0,
#                   labels=("read", "produced"))
# print("the halves:", m.target[first], "...", m.target[second], "; words between:", second - first - 1)

# %% [markdown]
# The row of the second half looks most at the first, far to the left, and little at the words between. A recurrent network would have had to carry the verb through every one of
# them. The mean of all heads hardly shows it. But the rows of the comma and of the question mark look there as well: perhaps the head does not know pairs, and just finds the main verb.

# %% tags=["active-ipynb"]
# assert look_back_accuracy(test_maps, test)[layer, head] > 3 * chance

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
# Labels are layer.head. Before training heads differ by chance, each by about as much. Training moves them apart, some
# pairs far more than others. (A part of this is sharpness alone: two heads that look everywhere are alike. And it is the encoder's. The last cross-attention's four heads nearly coincide, as the first picture shows.) What does each look at? A simple profile: the share of weight on the word itself, its
# neighbours, the end mark. An even look at all $n$ words would give each place $1/n$, here about 0.08:

# %%
def head_profile(maps, kind="encoder"):
    """Share of a head's weight on the previous word, the word itself, the next word and the end mark: (N, h, 4)."""
    rows = [torch.stack([*(getattr(m, kind)[:, :, :-1, :-1].diagonal(offset, -2, -1).sum(dim=-1) for offset in (-1, 0, 1)),
                         getattr(m, kind)[:, :, :-1, -1].sum(dim=-1)], dim=-1) for m in maps]  # (N, h, 4) each
    return torch.stack(rows).sum(dim=0) / sum(len(m.source) - 1 for m in maps)

# %% tags=["active-ipynb"]
# profile = head_profile(validation_maps[:100])
# plotting.heatmap(profile.flatten(0, 1), ["previous", "itself", "next", "end mark"], labels, "encoder heads",
#                  values=True, largest=1.0);

# %% [markdown]
# So the answer is: somewhat. Some heads lean to the neighbours, as a CNN's filters must; but there are also heads that no
# narrow filter could replace, such as the one for "its".

# %% [markdown]
# ## Through all layers: attention rollout
#
# A weight of the second layer says which *vector* was looked at, and that vector is a mixture already. Rollout (Abnar and
# Zuidema, 2020) multiplies the layers: $R_n = \frac{1}{2}(\bar{A}_n + I)\,R_{n-1}$, with $\bar{A}_n$ the mean over the
# heads of layer $n$ and $I$ for the path around it. The halves are a convention, and values, feed-forward networks and
# norms are left out: an estimate of where information went, not a measurement.

# %%
def attention_rollout(weights):
    """Share of each input word in each output word, (S, S): the product over layers of (mean of the heads + I) / 2.

    weights: (N, h, S, S) of a stack's self-attention.
    """
    identity = rollout = torch.eye(weights.shape[-1])
    for layer in weights.mean(dim=1):
        rollout = (layer + identity) / 2 @ rollout
    return rollout


# %% tags=["active-ipynb"]
# rollout = attention_rollout(maps.encoder)
# plotting.heatmaps([("last layer, mean of its heads", maps.encoder[-1].mean(dim=0), maps.source, maps.source),
#                    ("rollout", rollout, maps.source, maps.source)], across=2, width=4, height=4, largest=1.0);

# %% [markdown]
# Even where the last layer looks elsewhere, the rollout's diagonal stays bright: the path around each layer alone keeps
# $2^{-N}$ of a word with the word. With even weights over $n$ words there is a closed form to compare with: $2^{-N} I$,
# and the rest spread evenly.

# %% tags=["active-ipynb"]
# n, N = 5, 3
# even = torch.full((N, 2, n, n), 1 / n)
# assert torch.allclose(attention_rollout(even), torch.eye(n) / 2**N + (1 - 1 / 2**N) / n)
# assert rollout.diagonal().min() >= 1 / 2**model.config.N

# %% [markdown]
# ## Broad or sharp, near or far
#
# Two numbers sum up a head. The entropy of its rows: $0$ where it always looks at one word, $\log n$ where it looks evenly
# at all $n$. And the distance, in words, to what it looks at; the end mark, where many heads rest, is left out of this one.

# %%
def head_entropy(maps, kind):
    """Mean entropy of a head's rows in nats, (N, h), over all words of all maps."""
    rows = [torch.special.entr(getattr(m, kind)).sum(dim=-1) for m in maps]  # (N, h, rows) each
    return torch.cat(rows, dim=-1).mean(dim=-1)


# %%
def head_distance(maps):
    """Mean distance in words from a word to what it looks at in the encoder, (N, h); end marks are left out."""
    total = shares = 0
    for m in maps:
        weights, place = m.encoder[:, :, :-1, :-1], torch.arange(len(m.source) - 1)
        total = total + (weights * (place[:, None] - place).abs()).sum(dim=(-2, -1))
        shares = shares + weights.sum(dim=(-2, -1))
    return total / shares


# %% tags=["active-ipynb"]
# entropy, distance = head_entropy(validation_maps, "encoder"), head_distance(validation_maps)
# plotting.heatmaps([("entropy, nats", entropy, *names), ("distance, words", distance, *names)], across=2, width=3.6, height=2.4, values=True)
# # one head that looks evenly at all words of each sentence
# blank = [AttentionMaps(m.source, m.target, torch.full_like(m.encoder[:1, :1], 1 / len(m.source)), None, None) for m in validation_maps]
# print(f"mean distance: {distance.mean():.2f} words; even weights: {head_distance(blank).item():.2f}")
# for name, some in {"before training": untrained_maps, "after": validation_maps[:100], "even weights": blank[:100]}.items():
#     found = head_entropy(some, "encoder")
#     print(f"entropy of the heads, {name}: {found.min():.2f} to {found.max():.2f}, mean {found.mean():.2f}")

# %% tags=["active-ipynb"]
# assert head_entropy(untrained_maps, "encoder").mean() > entropy.mean()
# one = AttentionMaps(list("abcd"), list("abcd"), torch.full((1, 1, 4, 4), 0.25), None, None)
# assert torch.allclose(head_entropy([one], "encoder"), torch.tensor(4.0).log())
# assert torch.allclose(head_distance([one]), torch.tensor(8 / 9))          # three words: distances 0 1 2, 1 0 1, 2 1 0

# %% [markdown]
# Before training every head looks at everything, almost evenly. Training makes them sharper, some far more than others. Read the two pictures together: a head that looks
# evenly at all words has a distance of about 4 here, so the heads with the largest distance are just the broadest. Long ties like those of the paper's Figure 3
# do not show in a mean: the head that finds the noun for "its" has a middling one.

# %% [markdown]
# ## Which heads are needed?
#
# A picture shows where a head looks, not whether anybody uses it. So switch it off and translate. A head's output enters
# through its rows of $W^O$ (columns, as torch stores the matrix): with zeros there it adds nothing. All other weights stay as they were, though later layers now read something that they never met in training.

# %%
@contextmanager
def without_head(attention, head):
    """Inside the block, one head of a `MultiHeadAttention` adds nothing: its columns of W_O are zero."""
    d_v = attention.W_O.weight.shape[1] // attention.h
    columns = attention.W_O.weight.data[:, head * d_v:(head + 1) * d_v]
    before = columns.clone()
    columns.zero_()
    try:
        yield
    finally:
        columns.copy_(before)


# %%
def head_costs(model, tokenizer, examples):
    """BLEU that is lost on examples with one head switched off, by kind of attention, (N, h) each; greedy search."""
    sources, references = [e.source for e in examples], [e.target for e in examples]

    def score():
        return bleu(translate(model, tokenizer, sources, beam=1), references).score

    whole, costs = score(), {"encoder": [], "decoder": [], "cross": []}
    for name, attention in model.named_modules():
        if isinstance(attention, MultiHeadAttention):
            costs[kind_of(name)].append([])
            for head in range(attention.h):
                with without_head(attention, head):
                    costs[kind_of(name)][-1].append(whole - score())
    return {kind: torch.tensor(rows) for kind, rows in costs.items()}


# %% tags=["active-ipynb"]
# costs = head_costs(model, tokenizer, validation[:60])
# every = torch.cat(list(costs.values()))
# plotting.heatmap(every, names[0], [f"{kind} {n + 1}" for kind, table in costs.items() for n in range(len(table))],
#                  "BLEU lost (colours end at 5)", values=True, largest=5)
# print(f"BLEU lost: median {every.median():.1f}, most {every.max():.1f}; {(every < 1).sum()} of {every.numel()} heads cost less than 1")

# %% [markdown]
# These are sixty sentences: differences of a point mean little, and switching a head off may even seem to help. But the
# costs are very uneven. One head of the encoder costs 34 points, no other more than five. It gives more than half of its weight to the two neighbours of a word (the profile above, 2.1). And what does the head cost that shows
# alignment best, head 4 of the last cross-attention? 0.3 points, perhaps because the other three show nearly the same. Among the dearer ones is head 4 of the first, whose alignment error is the worst of all. And a cheap head is not proven useless: another may do the
# same. Only switching off several at once would tell (exercise 3).

# %% tags=["active-ipynb"]
# assert every.max() > 2 * every.median()                                   # very uneven
# assert translate(model, tokenizer, [sentence]) == [german]                # every head is back

# %% [markdown]
# ## All heads on one page
#
# Last the whole model for one sentence (in the paper's Figure 5, two heads of it): a row a layer, a column a head. Rows and
# columns of a picture are words in order; a bright diagonal is a word looking at itself, one below it at the word before.

# %% tags=["active-ipynb"]
# everything = {kind: getattr(maps, kind) for kind in ("encoder", "decoder", "cross")}
# plotting.heatmaps([(f"{kind} {n + 1}.{i + 1}", weights[n, i], None, None) for kind, weights in everything.items()
#                    for n in range(len(weights)) for i in range(weights.shape[1])],
#                   across=model.config.h, width=1.8, height=1.8, largest=1.0);

# %% [markdown]
# Labels are layer.head. In the decoder the diagonal is what was read last, and right of it all is dark: those words are not
# written yet (of a word in several pieces, the first may be). In the cross-attention it is the word at the same place in
# the other language.

# %% [markdown]
# ## And beyond the small world?
#
# The bundled corpus is a small world with a strict grammar. Multi30k holds what people wrote under photographs. A model
# trained on it (notebook [16](16_translation.ipynb), 4 layers of 4 heads) is too large for the repository, so a command looked at it and left a file:
# `python -m transformer.experiments.attention --folder runs/multi30k-en-de-1`. The sentences are our own, 24 of them, aligned by hand in `data/aligned.tsv`.

# %% tags=["active-ipynb"]
# real = read_rows("multi30k-attention")[0]
# real_maps = [from_thousandths(saved) for saved in real["sentences"]]
# print({name: real[f"alignment.{name}"] for name in ("layer", "head", "error", "diagonal")})

# %% [markdown]
# The head was chosen on the first twelve sentences and scored on the other twelve, beside the diagonal. Here it is on two
# sentences, as the model translated them:

# %% tags=["active-ipynb"]
# layer, head = real["alignment.layer"] - 1, real["alignment.head"] - 1
# plotting.heatmaps([(f"layer {layer + 1}, head {head + 1}", m.cross[layer, head], m.source, m.target) for m in real_maps],
#                   across=2, width=4.4, height=4.4, largest=1.0, labels=("looked at", "produced"));

# %% [markdown]
# Left, almost a diagonal, until the verb that German keeps for the end: for *schläft* this head has no one place, it looks at "is", a little at
# "sleeping", and at the end mark. Right, a translation that went wrong: *Gartenmänner* is put together from pieces and no German word, and "before he enters the
# house" became *vor dem Haus*, "in front of the house"; the untranslated "enters" still draws weight, most of it from the step that ends the sentence. The error rate is worse
# than the bundled model's. Why, twelve sentences of another kind do not tell. (The left one is among those on which the head was chosen.)
#
# The same numbers for each head as above, for the 16 heads of its encoder, and what each of its 48 costs when it is switched off:

# %% tags=["active-ipynb"]
# heads, layers = ([f"{word} {n + 1}" for n in range(4)] for word in ("head", "layer"))
# plotting.heatmaps([(name, torch.tensor(real[key]), heads, layers) for name, key in
#                    (("entropy, nats", "encoder_entropy"), ("distance, words", "encoder_distance"))], across=2, width=3.4, height=2.6, values=True)
# lost = under(real, "bleu_lost_without_head")
# plotting.heatmap(torch.tensor([row for table in lost.values() for row in table]), heads, [f"{kind} {n + 1}" for kind in lost for n in range(4)],
#                  f"BLEU lost, {real['bleu_lost_on']}", values=True)
# first = torch.stack([m.encoder[0].mean(dim=(0, 1)).max() for m in real_maps])
# print("share of the first layer's weight that lies on one word:", [f"{share:.0%}" for share in first.tolist()])

# %% [markdown]
# Three things we did not expect. The heads of the encoder's first layer have an entropy near 0, and yet they cost next to nothing. Where
# do they look? Mostly at one article or the end mark, whatever word asks: choose *encoder*, layer 1 below. Those of the upper layers rest
# for a good part on the full stop and the end mark, perhaps because they have nothing to look for. And of the five heads that cost two BLEU or more, four are of the
# cross-attention. This is one model; the costs are of 200 sentences, the entropies of the 24, where heads look is seen in two. 3.4 against 2.4 is no order, and a few tenths are nothing.

# %% tags=["active-ipynb"]
# View(view_page(real_maps), 760)

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
# **1.** Weights need not mean what they seem to mean. Which head of the *first* cross-attention is worst at alignment?
# Set `your_answer` to its number, counted from 1, and look up what it costs to switch it off.

# %% tags=["active-ipynb"]
# your_answer = ...
# if your_answer is not ...:
#     assert errors[0, your_answer - 1] == errors[0].max()

# %% [markdown]
# <details><summary>Solution</summary>
#
# `your_answer = errors[0].argmax().item() + 1`. It costs more than most heads of cross-attention. So a head with a large error need not be useless: it may look at the words
# around the one being translated.
# </details>
#
# **2.** Find a sentence of your own in which "its" is translated wrongly, with `translate` and the picture above. Try many
# nouns between "its" and its antecedent.
#
# **3.** Switch off two heads of the last cross-attention at once, one `with without_head(model.decoder.layers[-1].cross_attention, 0)` inside another, translate `validation[:60]` greedily and score with `bleu`, as `head_costs` does. Does it
# cost more than the sum of both?

# %% [markdown]
# ## Next
#
# [20 Speed](20_speed.ipynb) asks how fast all this is; the [README](../README.md) has the results in one table. In Colab each notebook imports the others' modules from
# the installed package; to change a module, clone the repository and install it with `pip install -e .`.
