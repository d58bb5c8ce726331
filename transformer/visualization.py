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
from contextlib import contextmanager

import torch

from transformer.attention import MultiHeadAttention
from transformer.data import WORD
from transformer.maps import KINDS, all_maps, kind_of
from transformer.scores import bleu
from transformer.search import translate


# %% [markdown]
# The looks below use the model that comes with the package, trained on the bundled corpus with the demo's recipe, for twice as many updates.

# %% tags=["active-ipynb"]
# import json
#
# from transformer import load, plotting
# from transformer.corpora import read_bundled
# from transformer.experiments.records import read_rows, under
# from transformer.figures import heads
# from transformer.maps import AttentionMaps, attention_maps
# from transformer.model import Transformer
# from transformer.pages import View, from_thousandths, view, view_page
#
# model, tokenizer = load()
# validation = read_bundled("validation")[:250]
# test = read_bundled("test")[:250]
# print(translate(model, tokenizer, ["The old cat behind the school lost its ball."])[0])

# %% [markdown]
# ## From tokens to words
#
# The model works on pieces of words; people and the gold annotation work on words. Which piece belongs to which word is
# known from the tokenizer. Punctuation marks count as words, and so does the end mark `</s>`. `attention_maps`
# (in `transformer/maps.py`) joins the pieces: if a word has several, its row is the mean of theirs; if the word looked *at* has several, their weights
# are added, because looking at any of them is looking at the word. This way each row still sums to 1.

# %% [markdown]
# ## Which row is which step?
#
# This is where many pictures go wrong. The decoder reads the target shifted by one: when it reads word $t-1$, it produces
# word $t$. We label a row with the word that is **produced** there, so row $t$ shows what the model looked at while it
# chose word $t$. The columns of the decoder's self-attention are what it has **read**: the begin mark, then the words.
#
# The target is given, not generated: the question is where the model looks while it writes *these* words. (Translation
# scores are never measured this way; alignment usually is.)

# %% [markdown]
# One sentence, all heads of the last cross-attention. Rows are German words as they are produced, columns English words:

# %% tags=["active-ipynb"]
# sentence = "The old cat behind the school lost its ball."
# german = translate(model, tokenizer, [sentence])[0]
# maps = attention_maps(model, tokenizer, [(sentence, german)])[0]
# last = maps.cross[-1]
# panels = [(f"head {i + 1}", last[i], *maps.labels("cross")) for i in range(len(last))]
# plotting.heatmaps(panels, across=4, width=3, height=3.2, largest=1.0,
#                   labels=("looked at", "produced"));

# %% [markdown]
# Bright is 1, dark 0. All four heads walk the same diagonal; they part only at the full stop.

# %% tags=["active-ipynb"]
# for kind in KINDS:
#     weights = getattr(maps, kind)
#     columns, rows = maps.labels(kind)
#     assert weights.shape[2:] == (len(rows), len(columns))
#     assert torch.allclose(weights.sum(dim=-1), torch.ones(weights.shape[:3]), atol=1e-5)
# assert maps.decoder.triu(2).abs().max() == 0  # no later word, save pieces of the same

# %% [markdown]
# ## An interactive view
#
# Pictures of every head fill pages, and most of it is never looked at. The other way round: one page on which you choose
# layer and head, point at a word, and see where it looks. `view` makes it: one HTML file with the words, the weights and a small
# script, which loads nothing, so that it works offline, in JupyterLab, in Colab and on a web site.

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
# for loads in ("<script src", "<link href", "@import", "fetch(", "https:"):
#     assert loads not in page

# %% [markdown] tags=["question-17"]
# ## What does it mean to give the encoder's output to the decoder?
#
# It means that each step of the decoder asks the source sentence a question (cross-attention): its query comes from what
# has been written so far, keys and values from the encoder. If that is so, a German word should look at the English word
# it translates. Take the largest weight of each row as a link, and compare with the links the grammar wrote down.

# %%
def best_source_words(cross):
    """Each target word's most looked at source word: (..., T, S) -> (..., T - 1).

    End marks are left out.
    """
    return cross[..., :-1, :-1].argmax(dim=-1)


# %% [markdown]
# The usual figure is the alignment error rate. With $A$ the links found and $G$ the gold links,
# $\mathrm{AER} = 1 - \frac{2\,|A \cap G|}{|A| + |G|}$: 0 is perfect, 1 means nothing in common.

# %%
def alignment_error_rate(predicted, gold) -> float:
    """AER = 1 - 2 |A and G| / (|A| + |G|) over all sentences (Och and Ney, 2003).

    predicted, gold: for each sentence a set of (source word, target word); all gold
    links are sure. 0 is perfect, 1 the worst.
    """
    hits = sum(len(a & g) for a, g in zip(predicted, gold, strict=True))
    return 1 - 2 * hits / sum(len(a) + len(g) for a, g in zip(predicted, gold))


# %%
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


# %% [markdown]
# A guess that knows nothing: word order is the same in both languages, so target word $t$ belongs to source word $tS/T$.

# %%
def diagonal_error(maps, gold) -> float:
    """Alignment error of the guess that word order is the same: t to word t S / T."""
    links = []
    for m in maps:
        S, T = len(m.source) - 1, len(m.target) - 1
        links.append({(t * S // T, t) for t in range(T)})
    return alignment_error_rate(links, gold)


# %% tags=["active-ipynb"]
# validation_maps = all_maps(model, tokenizer, [(e.source, e.target) for e in validation])
# gold = [e.alignment for e in validation]
# errors = cross_head_errors(validation_maps, gold)
# heads.table(errors, title="alignment error on validation", largest=1.0)
# print(f"the diagonal: {diagonal_error(validation_maps, gold):.3f}")

# %% [markdown]
# Here dark is good: a small error. The last layer's heads show the alignment; those of the first do it less well, or do other work. Nobody
# told the model about alignment: it was only ever asked for the next German word.

# %% tags=["active-ipynb"]
# layer, head = divmod(errors.argmin().item(), errors.shape[1])
# e = next(e for e in test if "relative-object" in e.constructions)
# m = attention_maps(model, tokenizer, [(e.source, e.target)])[0]
# links = torch.zeros(len(m.target), len(m.source))
# links[[t for _, t in e.alignment], [s for s, _ in e.alignment]] = 1
# names = m.labels("cross")
# panels = [(f"layer {layer + 1}, head {head + 1}", m.cross[layer, head], *names),
#           ("gold", links, *names)]
# plotting.heatmaps(panels, across=2, width=4.2, height=4.2, largest=1.0,
#                   labels=("looked at", "produced"))
# words = sum(len(m.target) - 1 for m in validation_maps)
# linked = sum(len({t for _, t in links}) for links in gold)
# least = 1 - 2 * linked / (words + sum(map(len, gold)))
# print(f"German words: {words:,}; without a gold link: {words - linked}; "
#       f"least error possible: {least:.3f}")

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
def references(examples) -> list:
    """(index of the example, English `Pronoun`, German `Pronoun`) of every "its"."""
    found = []
    for i, example in enumerate(examples):
        words = WORD.findall(example.source)
        found += [(i, english, german) for english, german in example.pronouns
                  if words[english.index] == "its"]
    return found


# %% [markdown]
# "His" and "her" are left out: their German form follows from the English word alone, so nothing forces a head to look.
#
# The link may show in three places: in the encoder (from "its" to the noun), in the decoder (from the step that writes
# *ihren* to the German noun), or across (from that step to the English noun).

# %%
def link(maps, kind, english, german):
    """Weights of the pronoun's row over its candidates, and the antecedent's place.

    The weights are (N, h, candidates); the place is one among the candidates.
    """
    row = english if kind == "encoder" else german
    column = german if kind == "decoder" else english
    nouns = list(column.candidates)
    shift = 0
    if kind == "decoder":
        nouns = [noun for noun in nouns if noun < row.index]  # it sees what is written
        shift = 1  # its column 0 is the begin mark
    weights = getattr(maps, kind)[:, :, row.index, [noun + shift for noun in nouns]]
    return weights, nouns.index(column.antecedent)


# %%
def link_accuracy(maps, examples, kind):
    """How often "its" looks most at its antecedent, of the candidate nouns: (N, h)."""
    hits = []
    for i, english, german in references(examples):
        weights, place = link(maps[i], kind, english, german)
        hits.append((weights.argmax(dim=-1) == place).float())
    return torch.stack(hits).mean(dim=0)


# %% [markdown]
# Three guesses to compare with: any candidate, the nearest one before the pronoun, the first one of the sentence.

# %%
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


# %% tags=["active-ipynb"]
# tables = {kind: link_accuracy(validation_maps, validation, kind) for kind in KINDS}
# heads.table(tables, largest=1.0)
# print(len(references(validation)), "times its")
# for name, share in link_baselines(validation).items():
#     print(f"{name}: {share:.2f}")

# %% [markdown]
# One head of the encoder stands out: it finds the noun while the source is read. That suggests that the gender is in the vector of "its" before a word of German is written.
# But a head of the decoder finds the German noun in three of four cases, too. (The guesses printed are for English. The decoder sees only the nouns written so far, which are fewer, and 24 cases are few.) Which of them the model relies on no picture can tell.

# %% tags=["active-ipynb"]
# layer, head = divmod(tables["encoder"].argmax().item(), model.config.h)
# sentences = [sentence, "The dog behind the school lost its ball."]
# translations = translate(model, tokenizer, sentences)
# panels = attention_maps(model, tokenizer, list(zip(sentences, translations)))
# heads.one_a_panel(panels, [("encoder", layer, head)] * 2)
# print(*translations, sep="\n")

# %% [markdown]
# ## Chosen on validation, scored on test
#
# Choosing the best of many heads on the sentences you report is cheating: some head is always lucky. So layer and head
# are picked on validation, and the figure comes from test.

# %%
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
    alignment = {"layer": layer + 1, "head": head + 1, "error": found,
                 "diagonal": diagonal_error(scored_on, gold)}
    tables = {kind: link_accuracy(chosen_on, validation, kind) for kind in KINDS}
    kind = max(tables, key=lambda name: tables[name].max().item())
    layer, head = divmod(tables[kind].argmax().item(), errors.shape[1])
    accuracy = link_accuracy(scored_on, test, kind)[layer, head].item()
    pronoun = {"attention": kind, "layer": layer + 1, "head": head + 1,
               "count": len(references(test)), "accuracy": accuracy,
               **link_baselines(test)}
    return {"alignment": alignment, "pronoun": pronoun}


# %% tags=["active-ipynb"]
# scores = score_attention(model, tokenizer, validation, test)
# for name, figures in scores.items():
#     print(name)
#     for key, value in figures.items():
#         print(f"    {key}: {round(value, 3) if isinstance(value, float) else value}")

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


# %%
def look_back_accuracy(maps, examples):
    """How often a decoder head, writing a verb's second half, looks most at the first.

    (N, h); of all words before.
    """
    hits = []
    for i, first, second in separated_verbs(examples):
        row = maps[i].decoder[:, :, second, 1:second + 1]  # without the begin mark
        hits.append(row.argmax(dim=-1) == first)
    return torch.stack(hits).float().mean(dim=0)


# %% [markdown]
# Two guesses to compare with: any of the words before, and the second word of the sentence. (A German main clause has its verb in second place, after one word or several.) The picture shows
# the verb whose halves lie farthest apart, of those whose first half is *not* that second word.

# %% tags=["active-ipynb"]
# test_verbs = separated_verbs(test)
# test_maps = all_maps(model, tokenizer, [(e.source, e.target) for e in test])
# table = look_back_accuracy(validation_maps, validation)
# layer, head = divmod(table.argmax().item(), model.config.h)
# accuracy = look_back_accuracy(test_maps, test)[layer, head].item()
# chance = sum(1 / second for _, _, second in test_verbs) / len(test_verbs)
# second_word = sum(first == 1 for _, first, _ in test_verbs) / len(test_verbs)
# print(f"layer {layer + 1}, head {head + 1}, chosen on "
#       f"{len(separated_verbs(validation))} verbs of validation: "
#       f"right for {accuracy:.0%} of {len(test_verbs)} in test")
# print(f"guesses: always the sentence's second word {second_word:.0%}, "
#       f"any earlier word {chance:.0%}")

# %% tags=["active-ipynb"]
# others = [verb for verb in test_verbs if verb[1] != 1]  # not that second word
# i, first, second = max(others, key=lambda verb: verb[2] - verb[1])
# m = test_maps[i]
# panels = [("mean of all heads", m.decoder.mean(dim=(0, 1)), *m.labels("decoder")),
#           (f"layer {layer + 1}, head {head + 1}", m.decoder[layer, head],
#            *m.labels("decoder"))]
# plotting.heatmaps(panels, across=2, width=4.4, height=4.4, largest=1.0,
#                   labels=("read", "produced"))
# print(f"the halves: {m.target[first]} ... {m.target[second]}; "
#       f"words between: {second - first - 1}")

# %% [markdown]
# The row of the second half looks most at the first, far to the left, and little at the words between. A recurrent network would have had to carry the verb through every one of
# them. The mean of all heads hardly shows it. But the rows of the comma and of the question mark look there as well: perhaps the head does not know pairs, and just finds the main verb.

# %% tags=["active-ipynb"]
# assert accuracy > 3 * chance

# %% [markdown] tags=["question-08"]
# ## Do heads act like the filters of a CNN, each finding something else?
#
# Filters of a trained CNN differ from each other: one finds edges, another spots. For heads, compare the weights of each
# two heads over many sentences: cosine similarity, 1 where they look at the same places. Once before training, once after.

# %%
def head_similarity(maps, kind):
    """Cosine similarity of every two heads' weights, of all maps: (N * h, N * h)."""
    flat = torch.cat([getattr(m, kind).flatten(2) for m in maps], dim=-1)
    flat = flat.flatten(0, 1)  # (N * h, all weights)
    flat = flat / flat.norm(dim=-1, keepdim=True)
    return flat @ flat.T


# %% tags=["active-ipynb"]
# torch.manual_seed(0)
# pairs = [(e.source, e.target) for e in validation[:100]]
# untrained_maps = all_maps(Transformer(model.config), tokenizer, pairs)
# before = head_similarity(untrained_maps, "encoder")
# after = head_similarity(validation_maps[:100], "encoder")
# N, h = model.config.N, model.config.h
# names = [f"{n + 1}.{i + 1}" for n in range(N) for i in range(h)]
# panels = [("before training", before, names, names), ("after", after, names, names)]
# plotting.heatmaps(panels, across=2, width=3.6, height=3.4, values=True, largest=1.0,
#                   labels=("layer.head", "layer.head"));

# %% tags=["active-ipynb"]
# different = ~torch.eye(len(before), dtype=torch.bool)
# print(f"mean similarity of two heads: {before[different].mean():.2f} before training, "
#       f"{after[different].mean():.2f} after")
# assert after[different].mean() < before[different].mean()

# %% [markdown]
# Labels are layer.head. Before training heads differ by chance, each by about as much. Training moves them apart, some
# pairs far more than others. (A part of this is sharpness alone: two heads that look everywhere are alike. And it is the encoder's. The last cross-attention's four heads nearly coincide, as the first picture shows.) What does each look at? A simple profile: the share of weight on the word itself, its
# neighbours, the end mark. An even look at all $n$ words would give each place $1/n$, here about 0.08:

# %%
def head_profile(maps, kind="encoder"):
    """Share of weight on previous word, itself, next word, end mark: (N, h, 4)."""
    total = 0
    for m in maps:
        weights = getattr(m, kind)[:, :, :-1]  # the end mark's own row is left out
        words = weights[..., :-1]
        near = [words.diagonal(offset, -2, -1).sum(dim=-1) for offset in (-1, 0, 1)]
        total = total + torch.stack([*near, weights[..., -1].sum(dim=-1)], dim=-1)
    return total / sum(len(m.source) - 1 for m in maps)


# %% tags=["active-ipynb"]
# profile = head_profile(validation_maps[:100])
# places = ["previous", "itself", "next", "end mark"]
# plotting.heatmap(profile.flatten(0, 1), places, names, "Encoder: share of the weight",
#                  values=True, largest=1.0, labels=("place looked at", "layer.head"));

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
    """Share of each input word in each output word, (S, S).

    The product over layers of (mean of the heads + I) / 2.

    weights: (N, h, S, S) of a stack's self-attention.
    """
    identity = rollout = torch.eye(weights.shape[-1])
    for layer in weights.mean(dim=1):
        rollout = (layer + identity) / 2 @ rollout
    return rollout


# %% tags=["active-ipynb"]
# rollout = attention_rollout(maps.encoder)
# panels = [("last layer, mean of its heads", maps.encoder[-1].mean(dim=0)),
#           ("rollout", rollout)]
# panels = [(*panel, *maps.labels("encoder")) for panel in panels]
# plotting.heatmaps(panels, across=2, width=4, height=4, largest=1.0,
#                   labels=("input word", "output word"));

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
    rows = []
    for m in maps:
        rows.append(torch.special.entr(getattr(m, kind)).sum(dim=-1))  # (N, h, rows)
    return torch.cat(rows, dim=-1).mean(dim=-1)


# %%
def head_distance(maps):
    """Mean distance in words from a word to what it looks at in the encoder, (N, h).

    End marks are left out.
    """
    total = shares = 0
    for m in maps:
        weights = m.encoder[:, :, :-1, :-1]
        place = torch.arange(len(m.source) - 1)
        far = (place[:, None] - place).abs()
        total = total + (weights * far).sum(dim=(-2, -1))
        shares = shares + weights.sum(dim=(-2, -1))
    return total / shares


# %% tags=["active-ipynb"]
# entropy = head_entropy(validation_maps, "encoder")
# distance = head_distance(validation_maps)
# heads.table({"entropy, nats": entropy, "distance, words": distance}, across=2)
# blank = []  # one head that looks evenly at all words of each sentence
# for m in validation_maps:
#     even = torch.full_like(m.encoder[:1, :1], 1 / len(m.source))
#     blank.append(AttentionMaps(m.source, m.target, even, None, None))
# print(f"mean distance: {distance.mean():.2f} words; "
#       f"even weights: {head_distance(blank).item():.2f}")
# sets = {"before training": untrained_maps, "after": validation_maps[:100],
#         "even weights": blank[:100]}
# for name, some in sets.items():
#     found = head_entropy(some, "encoder")
#     print(f"entropy of the heads, {name}: {found.min():.2f} to {found.max():.2f}, "
#           f"mean {found.mean():.2f}")

# %% tags=["active-ipynb"]
# assert head_entropy(untrained_maps, "encoder").mean() > entropy.mean()
# even = torch.full((1, 1, 4, 4), 0.25)
# one = AttentionMaps(list("abcd"), list("abcd"), even, None, None)
# assert torch.allclose(head_entropy([one], "encoder"), torch.tensor(4.0).log())
# # three words: distances 0 1 2, 1 0 1, 2 1 0
# assert torch.allclose(head_distance([one]), torch.tensor(8 / 9))

# %% [markdown]
# Before training every head looks at everything, almost evenly. Training makes them sharper, some far more than others. Read the two pictures together: a head that looks
# evenly at all words has a distance of about 4 here, so the heads with the largest distance are just the broadest. Long ties like those of the paper's Figure 3
# do not show in a mean: the head that finds the noun for "its" has a middling one.

# %% [markdown]
# ## Which heads are needed?
#
# A picture shows where a head looks, not whether anybody uses it. So switch it off and translate. `MultiHeadAttention` has a place for the function that
# attends (notebook 04). Around it we put another that sets one head's output to zero, so the head adds nothing. All weights stay as they were, though later layers now read something that they never met in training.

# %%
@contextmanager
def without_head(attention, head):
    """Inside the block, one head of a `MultiHeadAttention` adds nothing."""
    before = attention.attend

    def all_but_one(q, k, v, mask=None):
        output, weights = before(q, k, v, mask)  # (B, h, T, d_v)
        here = torch.arange(output.shape[1], device=output.device) == head
        return output.masked_fill(here[:, None, None], 0.0), weights

    attention.attend = all_but_one
    try:
        yield
    finally:
        attention.attend = before


# %%
def head_costs(model, tokenizer, examples) -> dict:
    """BLEU that is lost with one head switched off, by kind of attention, (N, h) each.

    Greedy search; scored on the examples' targets.
    """
    sources = [e.source for e in examples]
    references = [e.target for e in examples]

    def score():
        return bleu(translate(model, tokenizer, sources, beam=1), references).score

    whole = score()
    costs = {kind: [] for kind in KINDS}
    for name, attention in model.named_modules():
        if isinstance(attention, MultiHeadAttention):
            row = []
            for head in range(attention.h):
                with without_head(attention, head):
                    row.append(whole - score())
            costs[kind_of(name)].append(row)
    return {kind: torch.tensor(rows) for kind, rows in costs.items()}


# %% tags=["active-ipynb"]
# costs = head_costs(model, tokenizer, validation[:60])
# every = torch.cat(list(costs.values()))
# layers = [f"{kind} {n + 1}" for kind, rows in costs.items() for n in range(len(rows))]
# plotting.heatmap(every, range(1, 1 + h), layers, "BLEU lost (colours end at 5)",
#                  values=True, largest=5, labels=("head switched off", "layer"))
# print(f"BLEU lost: median {every.median():.1f}, most {every.max():.1f}; "
#       f"{(every < 1).sum()} of {every.numel()} heads cost less than 1")

# %% [markdown]
# These are sixty sentences: differences of a point mean little, and switching a head off may even seem to help. But the
# costs are very uneven. One head of the encoder costs 34 points, no other more than five. It gives more than half of its weight to the two neighbours of a word (the profile above, 2.1). And what does the head cost that shows
# alignment best, head 4 of the last cross-attention? 0.3 points, perhaps because the other three show nearly the same. Among the dearer ones is head 4 of the first, whose alignment error is the worst of all. And a cheap head is not proven useless: another may do the
# same. Only switching off several at once would tell (exercise 3).

# %% tags=["active-ipynb"]
# assert every.max() > 2 * every.median()  # very uneven
# assert translate(model, tokenizer, [sentence]) == [german]  # every head is back

# %% [markdown]
# ## All heads on one page
#
# Last the whole model for one sentence (in the paper's Figure 5, two heads of it): a row a layer, a column a head. Rows and
# columns of a picture are words in order; a bright diagonal is a word looking at itself, one below it at the word before.

# %% tags=["active-ipynb"]
# heads.every(maps);

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
# for name in ("chosen_on", "scored_on", "error", "diagonal"):
#     print(f"{name}: {real[f'alignment.{name}']}")

# %% [markdown]
# The head was chosen on the first twelve sentences and scored on the other twelve, beside the diagonal. Here it is on two
# sentences, as the model translated them:

# %% tags=["active-ipynb"]
# layer, head = real["alignment.layer"] - 1, real["alignment.head"] - 1
# heads.one_a_panel(real_maps, [("cross", layer, head)] * 2, size=4.4);

# %% [markdown]
# Left, almost a diagonal, until the verb that German keeps for the end: for *schläft* this head has no one place, it looks at "is", a little at
# "sleeping", and at the end mark. Right, a translation that went wrong: *Gartenmänner* is put together from pieces and no German word, and "before he enters the
# house" became *vor dem Haus*, "in front of the house"; the untranslated "enters" still draws weight, most of it from the step that ends the sentence. The error rate is worse
# than the bundled model's. Why, twelve sentences of another kind do not tell. (The left one is among those on which the head was chosen.)
#
# The same numbers for each head as above, for the 16 heads of its encoder, and what each of its 48 costs when it is switched off:

# %% tags=["active-ipynb"]
# figures = {"entropy, nats": "encoder_entropy", "distance, words": "encoder_distance"}
# heads.table({name: torch.tensor(real[key]) for name, key in figures.items()}, across=2)
# lost = under(real, "bleu_lost_without_head")
# heads.table({f"{kind}: BLEU lost": torch.tensor(lost[kind]) for kind in lost})
# print(f"BLEU is lost on {real['bleu_lost_on']}")
# first = torch.stack([m.encoder[0].mean(dim=(0, 1)).max() for m in real_maps])
# shares = [f"{share:.0%}" for share in first.tolist()]
# print("share of the first layer's weight that lies on one word:", *shares)

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
# $1 - 2 \cdot 1 / (2 + 2) = 0.5$.

# %% tags=["active-ipynb"]
# assert alignment_error_rate([{(0, 0), (1, 1)}], [{(0, 0), (2, 1)}]) == 0.5
# assert alignment_error_rate([{(0, 0)}], [{(0, 0)}]) == 0.0

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
