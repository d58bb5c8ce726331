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
# The paper ends with pictures of heads: one bridges a long distance, one finds what "its" refers to, one follows
# the structure of a sentence. At the end you will have three such heads of a trained model, scores of each, and for two of them experiments that show what the translation takes from them. The bundled corpus
# makes this possible: the grammar that wrote its sentences also wrote down which noun each "its" stands for. Reading takes
# about 30 minutes, running it half a minute.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     %pip install -q git+https://github.com/OWNER/annotated-attention

# %%
from dataclasses import replace

import torch

from transformer.attention import padding_mask
from transformer.core.checks import check_choice, check_place
from transformer.models.gold import determiners, references
from transformer.models.maps import KINDS, all_maps

# %% tags=["active-ipynb"]
# # what only pictures and checks need: not part of the module
# import functools
#
# from transformer import Transformer, load, translate
# from transformer.core.records import read_rows, under
# from transformer.corpora import read_aligned, read_bundled
# from transformer.data import collate, encode_pairs
# from transformer.models import gold
# from transformer.models.maps import attention_maps
# from transformer.models.pretrained import bundled_folder
# from transformer.models.recording import cache, edit
# from transformer.views import circuit, heads, plotting
# from transformer.views.pages import view
#
# model, tokenizer = load()  # the model that comes with the package
# validation, test = read_bundled("validation")[:400], read_bundled("test")[:400]

# %% [markdown]
# ## One word changed
#
# English "its" becomes *sein* or *ihr* in German, depending on the gender of the noun that it stands for. The dog,
# *der Hund*, is masculine and loses *seinen Ball*; the cat, *die Katze*, is feminine and loses *ihren Ball*. We change
# one word, and draw where "its" looks in each of the encoder's eight heads (labels are layer.head).

# %% tags=["active-ipynb"]
# pair = [
#     "The old cat near the school lost its ball.",
#     "The old dog near the school lost its ball.",
# ]
# german = translate(model, tokenizer, pair)
# print(*german, sep="\n")
# maps = attention_maps(model, tokenizer, list(zip(pair, german)))
# heads.of_word(maps, "its", ["The old cat ...", "The old dog ..."]);

# %% [markdown]
# In head 1.3 the dark square lies on "cat" in one sentence and on "dog" in the other, and the German changes
# from *ihren* to *seinen*. Is the head the reason? We change what the head puts out. All that the model computes on its way has a name, and `edit` puts something else
# in its place, for as long as a block lasts and for this thread alone. (Text, figures and results count layers and heads from 1; functions take them from 0.)

# %% [markdown]
# We use three changes: a head is *silent* (it puts out zeros), one of its rows is *turned* to a place of our
# choice (it gets that place's value), or a vector from elsewhere is *pasted* into a row. A sentence with
# both animals is then translated as it is, and with head 1.3 turned: the row of "its" looks at "dog".


# %%
def silent(head):
    """An edit of "...heads": this head, counted from 0, puts out zeros."""

    def change(heads):  # (B, h, T, d_v)
        check_place("head", head, heads.shape[1])
        heads[:, head] = 0.0
        return heads

    return change


def turned(head, rows, columns):
    """An edit of "...weights": row rows[b] of this head looks at columns[b].

    rows: (B,), one for each sentence; columns: (B, S), weights that sum to 1.
    """

    def change(weights):  # (B, h, T, S)
        check_place("head", head, weights.shape[1])
        weights[torch.arange(len(rows)), head, rows] = columns
        return weights

    return change


def pasted(head, rows, vectors):
    """An edit of "...heads": in row rows[b] this head puts out vectors[b], (B, d_v)."""

    def change(heads):  # (B, h, T, d_v)
        check_place("head", head, heads.shape[1])
        heads[torch.arange(len(rows)), head, rows] = vectors
        return heads

    return change


# %% tags=["active-ipynb"]
# sentence = "The old cat that saw the dog lost its ball."
# tokens = [tokenizer.decode([i]).strip() for i in tokenizer.encode(sentence)]
# row = torch.tensor([tokens.index("its")])
# column = torch.zeros(1, len(tokens) + 1)  # one more: the end mark
# column[0, tokens.index("dog")] = 1.0
# before = translate(model, tokenizer, [sentence])[0]
# turn = turned(2, row, column)
# with edit(model, {"encoder.0.self_attention.weights": turn}):  # head 1.3
#     after = translate(model, tokenizer, [sentence])[0]
# print(before, after, sep="\n")
# changed = set(after.split()) - set(before.split())
# assert changed == {"seinen"} and translate(model, tokenizer, [sentence])[0] == before
# print("one head turned, one word changed:", *changed)

# %% [markdown]
# One row of one head decides between *ihren* and *seinen*, in one sentence that was picked by hand.
#
# ## What a row and a column mean
#
# The model works on pieces of words, and the grammar's notes are about words. `attention_maps` averages the rows of a
# word's pieces and adds the weights *on* its pieces, so each row still sums to 1.
#
# Many pictures of decoders are off by one. When the decoder reads word $t-1$, it produces word $t$. We label a
# row with the word **produced** there, and the columns of its self-attention with what it has **read**.
#
# The page below holds the model: type a sentence, switch a head off, or make a word look elsewhere.

# %% tags=["active-ipynb"]
# both = maps[0]
# for kind in KINDS:
#     rows = getattr(both, kind).sum(dim=-1)
#     assert torch.allclose(rows, torch.ones(rows.shape), atol=1e-5)
# # a word in pieces sees its own first pieces, one column to the right: so 2, not 1
# assert both.decoder.triu(2).abs().max() == 0
# print("every row sums to 1; no step of the decoder sees a later word")
# view(model, tokenizer, pair)

# %% [markdown]
# On GitHub no page runs; the picture leads to one that does.
#
# [![The page: a sentence, its translation with one word marked as changed, and below them where the word "its" looks](../data/live.png)](https://owner.github.io/annotated-attention/live.html)

# %% [markdown] tags=["question-31"]
# ## Which word does "its" refer to?
#
# The noun that "its" refers to is called its *antecedent*. For every "its" the candidates are all nouns of the sentence but the one that is owned, and we see which one gets the largest weight: in the encoder (from "its" to the noun), in the decoder
# (from the step that writes *ihren* to the German noun), or across (from that step to the English noun). "His" and "her"
# are left out, because English has decided there already. The paper's Figure 4 shows two such heads. We compare with four
# guesses: any candidate, the nearest before the pronoun, the first of the sentence, and the *likeliest owner*, the
# candidate that in training is most often the antecedent where it could be.

# %% [markdown]
# In this grammar the antecedent is always the subject of the clause that "its" stands in (of an infinitive, of the clause that governs it).


# %%
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
# validation_maps = all_maps(model, tokenizer, [(e.source, e.target) for e in validation])
# found = {kind: link_accuracy(validation_maps, validation, kind) for kind in KINDS}
# titles = {f"{kind}: antecedent found": table for kind, table in found.items()}
# heads.table(titles, largest=1.0)
# shares = gold.owner_shares(read_bundled("train"))
# guesses = link_baselines(validation)
# guesses["likeliest owner"] = gold.likeliest_owner(validation, shares)
# print(
#     f"{len(references(validation))} times its; guesses:",
#     {name: round(right, 2) for name, right in guesses.items()},
# )
# owners = sum(share > 0 for share in shares.values())
# print(f"in training {owners} of {len(shares)} candidate nouns are ever the owner")

# %% [markdown]
# Head 1.3 of the encoder stands out, but the likeliest owner is nearly as good a guess: in this grammar few nouns own
# anything. The head is in the *first* layer, where each vector holds a word and its place and nothing about the
# sentence, so it can only go by which words the nouns are and by where they stand.
#
# In the decoder 2.4 finds the German noun most often, in 77% of 43 cases. That is little evidence: the first noun of the sentence is right in 72%, and chance in 53%, since later nouns are not yet written.

# %% [markdown]
# ## The agreement head
#
# The ending of a German possessive agrees with the noun *behind* it: *ihr**en** Ball*, *ihr**e** Tasche*; articles
# agree in the same way. English says nothing of that noun's gender. So we look, as for the paper's Figure 5, for a head that links each
# article and each possessive to the noun behind it.


# %%
def agreement_hits(maps, examples):
    """(example, does an article or possessive look most at its own noun: (N, h))."""
    hits = []
    for i, example in enumerate(examples):
        for determiner, noun in determiners(example):
            rows = maps[i].encoder[:, :, determiner]
            hits.append((i, (rows.argmax(dim=-1) == noun).float()))
    return hits


# %% tags=["active-ipynb"]
# hits = torch.stack([hit for _, hit in agreement_hits(validation_maps, validation)])
# pairs = [pair for example in validation for pair in determiners(example)]
# apart = torch.tensor([noun > determiner + 1 for determiner, noun in pairs])
# tables = {"all": hits.mean(dim=0), "a word between": hits[apart].mean(dim=0)}
# heads.table(
#     {f"noun found, {name}": table for name, table in tables.items()},
#     across=2,
#     largest=1.0,
# )
# print(f"{len(pairs)} articles and possessives, {apart.sum()} with a word between")

# %% [markdown]
# Head 2.1 finds the noun nearly always, also across adjectives: it does not just look at the next word.
#
# ## Chosen on validation, scored on others
#
# The best of many heads is partly lucky on the sentences that chose it. The figures below (but those by class of word) were measured on new
# sentences of the same grammar, none of them in the bundled files, by
# `python -m transformer.experiments.circuit`, which keeps them in `data/runs/circuit.json`. After
# ± stands half of a 95% interval. The *owner* is the noun that "its" stands for.
#
# In 500 of the sentences, which also hold a noun of the other stem, the model is given the German up to the possessive and writes the next word. That word
# has two parts, the stem (*sein* or *ihr*) and the ending. Each head is silenced in turn: what breaks?

# %% tags=["active-ipynb"]
# record = read_rows("circuit")
# circuit.looks(record)
# circuit.silent(record);

# %% [markdown]
# The likeliest owner is right more often than the head: a table of words is enough here. But what the model uses is the
# head. Head 1.3 carries the stem and not the ending. Without it the model writes *sein* nearly everywhere, which is still right
# in about half of the sentences. Head 2.1 carries the ending and not the stem. Head 2.4 of the *decoder*, which found the
# German noun in 77%, breaks neither when silent: such a score does not show that a head is used. Of all others one matters much, decoder 2.1 (both parts suffer), and what it does we have not studied.
#
# What else depends on the two? The next cell draws which German words come right in 500 test sentences, by class, and
# translates three of them, untouched and without head 2.1:

# %% tags=["active-ipynb"]
# circuit.by_class(record)
# sources = [e.source for e in test[:3]]
# untouched = translate(model, tokenizer, sources)
# with edit(model, {"encoder.1.self_attention.heads": silent(0)}):
#     broken = translate(model, tokenizer, sources)
# for sentences in zip(untouched, broken):
#     print(*sentences, sep="\n    2.1 silent: ")

# %% [markdown]
# The sentences keep their words and their order and lose their agreement: *das Orchester* becomes *die Orchester*. Head 1.3 matters to possessives (less than above: of these 201 only 64 come from "its").
#
# ## Turn each head: does the German follow?
#
# Silencing shows that a head is needed, not what it says. So in each head of the encoder the row of "its" is turned to another noun
# of the sentence: in 500 sentences to one that would need the other stem, in 500 to one that would need another
# ending. The German *follows* if it becomes exactly the possessive that the other noun would need.

# %% tags=["active-ipynb"]
# circuit.turned(record)
# for turn, head in (("owner", (1, 3)), ("owned", (2, 1))):
#     for row in circuit.pick(record, "turned", turn=turn):
#         chosen = (row["layer"], row["head"]) == head
#         assert row["follows"] > 0.8 if chosen else row["follows"] < 0.1
# print("the chosen heads are followed in over 80%, any other head in under 10%")

# %% [markdown]
# The possessive follows the two chosen heads and no other of the encoder. (Stems that "follow" untouched are the model's errors. With a silent head the model has to guess, and guesses follow in about half of the cases.)
#
# Where the stem does not follow head 1.3, there are two explanations: gender also travels elsewhere, or the other noun's value lacks it. To separate them, the next cell sorts the sentences by whether any "its" refers to
# that noun in training. And where turning failed, it *pastes* what the head puts out on average for owners of
# that stem (*sein* or *ihr*).

# %% tags=["active-ipynb"]
# circuit.reasons(record)

# %% [markdown]
# Nearly all failures are nouns for *ihr* to which no "its" refers in training. With
# the pasted vector the same sentences follow. So a clear sign at head 1.3 is enough: what these nouns hand over there does not say *ihr*, and without a sign the model writes *sein*.
#
# Turned to the *right* noun, the head also repairs nearly all of the model's wrong stems.

# %% [markdown] tags=["question-32"]
# ## What does one vector of the encoder hold?
#
# A *probe* is a small classifier that reads a property off a vector. If a linear one succeeds in sentences that
# training never showed, the property is there, in a form that the next layer could read. Ours is linear discriminant analysis.
#
# A probe may also learn by heart (Hewitt and Liang, 2019). In the last column a probe of layer 2 learns from shuffled labels. In the rows "made-up gender" each noun has a
# gender drawn by lot: a probe can learn that for nouns it has seen, and cannot guess it for others. In the rows "new noun" it learns from half of the nouns and is asked about the others, in "never owner" from those that "its" refers to in training. The first column always gives
# the answer that is most common in what the probe learned from.


# %%
@torch.no_grad()
def encoder_layers(model, source):
    """Source ids (B, S) -> vectors below and above layers, (N + 1, B, S, d_model)."""
    mask = padding_mask(source, model.config.pad_id)
    x = [model.embed(source)]
    for layer in model.encoder.layers:
        x.append(layer(x[-1], mask))
    return torch.stack(x)


def linear_probe(x, labels, unseen):
    """Labels for unseen vectors (m, d), from x (n, d) with labels (n,) of 0, 1, 2, ...

    Linear discriminant analysis: the label whose mean is nearest, measured in the
    spread that vectors have within a label, and corrected for how frequent it is.
    """
    counts = torch.bincount(labels).clamp(min=1)
    sums = torch.zeros(len(counts), x.shape[1]).index_add(0, labels, x)
    means = sums / counts[:, None]
    within = x - means[labels]
    spread = within.T @ within / len(x)
    spread += 1e-3 * spread.diagonal().mean() * torch.eye(len(spread))
    directions = torch.linalg.solve(spread, means.T)  # (d, labels)
    offsets = (counts / len(x)).log() - (means.T * directions).sum(dim=0) / 2
    return (unseen @ directions + offsets).argmax(dim=1)


# %% tags=["active-ipynb"]
# genders = gold.read_genders()
# train = read_bundled("train")
# training = [e for e in train if " its " in e.source][:1500]
# others = [
#     e
#     for split in ("validation", "test")
#     for e in read_bundled(split)
#     if " its " in e.source
# ]
# layers = functools.partial(encoder_layers, model)
# known, unseen = (
#     gold.labelled_vectors(layers, tokenizer, some, genders)
#     for some in (training, others)
# )
# found = {
#     name: gold.probe_accuracy(linear_probe, known[name], unseen[name]) for name in known
# }
# nouns, seen, new = sorted(genders), known["noun: gender"], unseen["noun: gender"]
# lots, shares = gold.made_up(genders), gold.owner_shares(train)
# owning = [noun for noun in nouns if shares.get(noun)]
# for name, table, mine, theirs in (
#     ("noun: made-up gender", lots, nouns, nouns),
#     ("new noun: gender", genders, nouns[::2], nouns[1::2]),
#     ("noun, never owner: gender", genders, owning, genders.keys() - owning),
#     ("new noun: made-up gender", lots, nouns[::2], nouns[1::2]),
# ):
#     found[name] = gold.probe_accuracy(
#         linear_probe,
#         gold.relabelled(seen, table, mine),
#         gold.relabelled(new, table, theirs),
#     )

# %% tags=["active-ipynb"]
# names = sorted(found, key=lambda name: (name.startswith("its"), name.startswith("the")))
# columns = ["most common", "embedding", "layer 1", "layer 2", "shuffled"]
# plotting.heatmap(
#     [found[name] for name in names],
#     columns,
#     names,
#     "share of words in new sentences\nwhose property a probe reads",
#     values=True,
#     largest=1.0,
#     labels=("what the probe reads", "word: property"),
# )
# print(
#     f"{len(others)} new sentences;",
#     {name: len(values) for name, (_, values, _) in unseen.items()},
# )
# assert found["its: gender of the owner"][1] < 0.7 < found["its: gender of the owner"][2]
# print("after layer 1 the vector of its holds the owner's gender, before it does not")

# %% [markdown]
# The embedding already holds the word, mostly the place, and a noun's German gender: a probe reads it even off nouns that it never saw, where the made-up one fails. "Its" and "the" start without any knowledge of their nouns. After layer 1 "its" holds
# the gender of its owner, and even which noun that is; after layer 2 "its" and "the" both hold the gender of the noun
# behind them.
#
# What a probe reads need not be used. Nouns to which no "its" refers in training ("never owner") hold their gender; yet, with head 1.3 turned to them, nearly half of those for *ihr* do not bring *ihr*. After layer 1 the gender of its noun can be read off "the" in nine of ten cases, yet with head 2.1 silent four articles in ten go wrong.

# %% [markdown] tags=["question-17"]
# ## What does it mean to give the encoder's output to the decoder?
#
# Each step of the decoder asks the source sentence a question: the query comes from what has been written so far,
# keys and values from the encoder. If that is so, a German word should look at the English word that it
# translates. We take the largest weight of each row as a link and compare with the grammar's links by the
# *alignment error rate*. With $A$ the links found and $G$ the grammar's, it is
# $1 - 2\,|A \cap G| / (|A| + |G|)$; 0 is perfect, but here no head can get below 0.04: each word gets a link, and commas have none in $G$. Beside the heads stands a guess, the *diagonal*: that German keeps the
# order of the English words.


# %%
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


def diagonal_error(maps, gold) -> float:
    """Alignment error of the guess that word order is the same: t to word t S / T."""
    links = []
    for m in maps:
        S, T = len(m.source) - 1, len(m.target) - 1
        links.append({(t * S // T, t) for t in range(T)})
    return alignment_error_rate(links, gold)


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


# %% tags=["active-ipynb"]
# scores = score_attention(model, tokenizer, validation, test)["alignment"]
# print({name: round(value, 3) for name, value in scores.items()})
# assert scores["error"] < 0.3 < scores["diagonal"]
# e = next(e for e in test if "relative-object" in e.constructions)
# m = attention_maps(model, tokenizer, [(e.source, e.target)])[0]
# links = torch.zeros(len(m.target), len(m.source))
# links[[t for _, t in e.alignment], [s for s, _ in e.alignment]] = 1
# n, head = scores["layer"], scores["head"]
# panels = [
#     (f"cross-attention, head {n}.{head}", m.cross[n - 1, head - 1]),
#     ("the grammar's links", links),
# ]
# panels = [(*panel, *m.labels("cross")) for panel in panels]
# plotting.heatmaps(
#     panels,
#     across=2,
#     width=4.2,
#     height=4.2,
#     largest=1.0,
#     labels=("looked at", "produced", "weight"),
# );

# %% [markdown]
# Where German puts the verb last, the dark squares leave the diagonal, as the grammar's links do.
# This head looks at the word that is translated, yet nouns hardly need it: with it silent, 99.3% of nouns come out right (99.5% untouched), and 95.9% of verbs, marks and other words (99.1%; `circuit.json`).
#
# ## Across many words (Figure 3)
#
# The paper's Figure 3 shows encoder heads that tie a verb to words far behind it. German has such ties inside the
# decoder: in *Sie machte das alte Fenster auf*, "opened" is *machte* and *auf* together. We take the verbs with two parts at least three words apart (two of the 46 are an infinitive with *mich* or *sich*), and see where the step that writes the second part looks. Two guesses: the second word, and any earlier word.


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


def look_back_hits(maps, examples):
    """(example, does a decoder head look back from a verb's second half to its first).

    (N, h) each: whether that is where it looks most, of all words before.
    """
    hits = []
    for i, first, second in separated_verbs(examples):
        row = maps[i].decoder[:, :, second, 1 : second + 1]  # without the begin mark
        hits.append((i, (row.argmax(dim=-1) == first).float()))
    return hits


# %% tags=["active-ipynb"]
# test_maps = all_maps(model, tokenizer, [(e.source, e.target) for e in test])
# back = look_back_hits(validation_maps, validation)
# n, head = divmod(
#     torch.stack([hit for _, hit in back]).mean(dim=0).argmax().item(), model.config.h
# )
# found = look_back_hits(test_maps, test)
# right = [hit[n, head].item() for _, hit in found]
# accuracy, margin = gold.share(right, [i for i, _ in found])
# verbs = separated_verbs(test)
# second = sum(first == 1 for _, first, _ in verbs) / len(verbs)
# chance = sum(1 / last for *_, last in verbs) / len(verbs)
# print(
#     f"decoder {n + 1}.{head + 1}: {accuracy:.0%} ± {margin:.0%} of {len(verbs)} "
#     f"verbs; always the second word {second:.0%}, any word {chance:.0%}"
# )
# i, first, last = max((v for v in verbs if v[1] != 1), key=lambda v: v[2] - v[1])
# print("the parts:", test_maps[i].target[first], "...", test_maps[i].target[last])
# ax = heads.one_a_panel([test_maps[i]], [("decoder", n, head)], size=5.0)[0]
# ax.set_title(
#     f"decoder {n + 1}.{head + 1}: “{test_maps[i].target[last]}” looks most at "
#     f"“{test_maps[i].target[first]}”",
#     fontsize=10,
# )
# assert accuracy > 3 * chance

# %% [markdown]
# Whether this head knows which parts belong together, or just finds the main verb, the score does not tell. Silent, it costs verbs, marks and other words 2.2 points (`circuit.json`).
#
# ## Sinks, and what a weight weighs
#
# The weights of a row add up to 1, whatever a head finds. We count how much of it
# falls on *marks*, which are punctuation and the end mark. And a weight is only one factor: what arrives is the weight
# $\alpha$ times the value, sent through $W_O$. Kobayashi et al. (2020) therefore compare the *norms* of these products,
# $\lVert \alpha\, v W_O \rVert$.


# %%
def norm_weighted(weights, v, W_O):
    """Shares by the length of what arrives, ||weight * (v W_O)||: (B, h, T, S).

    weights: (B, h, T, S); v: (B, h, S, d_v); W_O: (d_model, h * d_v), as in nn.Linear.
    """
    parts = W_O.unflatten(1, (v.shape[1], v.shape[3]))  # (d_model, h, d_v)
    lengths = torch.einsum("bhsv,mhv->bhsm", v, parts).norm(dim=-1)
    arriving = weights * lengths[:, :, None]
    return arriving / arriving.sum(dim=-1, keepdim=True)


# %% tags=["active-ipynb"]
# source = collate(encode_pairs(tokenizer, [(e.source, "") for e in validation])).source
# pieces = [[tokenizer.decode([i]).strip() for i in row] for row in source.tolist()]
# padding = source == model.config.pad_id
# found = [[piece in ("", ".", "?", ",") for piece in row] for row in pieces]
# marks = torch.tensor(found) & ~padding  # "" is the end mark, or padding
# words = ~marks & ~padding
# with torch.no_grad(), cache(model, "encoder.*") as seen:
#     model.encode(source)
# attentions = [f"encoder.{n}.self_attention" for n in range(2)]
# weights = [seen[f"{name}.weights"] for name in attentions]  # (B, h, S, S)
# values = [seen[f"{name}.values"] for name in attentions]  # (B, h, S, d_v)
# print(f"marks are {marks.sum() / (marks | words).sum():.0%} of the tokens")

# %% tags=["active-ipynb"]
# def on_marks(shares):
#     """How much of a word's row falls on marks, for each head: (B, h, S, S) -> (h,)."""
#     found = (shares * marks[:, None, None]).sum(dim=-1)  # (B, h, S)
#     return found.transpose(1, 2)[words].mean(dim=0)
#
#
# normed = [
#     norm_weighted(w, v, layer.self_attention.W_O.weight)
#     for w, v, layer in zip(weights, values, model.encoder.layers)
# ]
# tables = {"weight on marks": weights, "the same, norm-weighted": normed}
# heads.table(
#     {
#         name: torch.stack([on_marks(shares) for shares in layers])
#         for name, layers in tables.items()
#     },
#     across=2,
#     largest=0.5,
# );

# %% [markdown]
# Marks are 17% of the tokens and receive up to 38% of a head's weight. Places that draw weight in
# this way are called *sinks*. The values of marks are short: counting lengths, their share in the first layer falls by about a third.

# %% [markdown] tags=["question-08"]
# ## Do heads act like the filters of a CNN, each finding something else?
#
# To compare two heads one usually takes the cosine of their weights. It has a flaw: weights are positive, so even looks have a cosine near 1, and sharp ones a small one unless they meet on the same words. So we also subtract each row's mean, which leaves the
# correlation: 0 where the looks of two heads have nothing in common, however sharp they are.


# %%
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


# %% tags=["active-ipynb"]
# torch.manual_seed(0)
# sentences = [(e.source, e.target) for e in validation[:100]]
# untrained_maps = all_maps(Transformer(model.config), tokenizer, sentences)
# sides = {"before training": untrained_maps, "after": validation_maps[:100]}
# names = [f"{n + 1}.{i + 1}" for n in range(2) for i in range(4)]
# panels, apart = [], ~torch.eye(8, dtype=torch.bool)
# for kind in ("cosine", "cosine, rows shuffled", "correlation"):
#     for side, some in sides.items():
#         if "shuffled" in kind:
#             some = [shuffled(m) for m in some]
#         table = head_similarity(some, "encoder", centred=kind == "correlation")
#         print(f"{kind}, {side}: mean of two heads {table[apart].mean():.2f}")
#         if "shuffled" not in kind:
#             # none is below -0.02: drawn as 0
#             panels.append((f"{kind}, {side}", table.clamp(min=0), names, names))
# plotting.heatmaps(
#     panels,
#     across=2,
#     width=3.6,
#     height=3.4,
#     values=True,
#     largest=1.0,
#     labels=("layer.head", "layer.head"),
# );

# %% [markdown]
# By the cosine, training drives the heads apart. But it does so with shuffled rows as well, where nothing is left
# but how sharp the heads are. By the correlation untrained heads have little in common, and trained ones more.
#
# So: partly. No two heads correlate by more than 0.52, and two have a task that no other head
# of the encoder does, as silencing showed. But a filter weighs fixed offsets, and a head goes by words, too; and for the six other heads we found no task.

# %% [markdown]
# ## For and against reading attention
#
# - Jain and Wallace (2019, *Attention is not Explanation*) found, for recurrent classifiers, that very different
#   weights often give the same answer. Wiegreffe and Pinter
#   (2019, *Attention is not not Explanation*) answered that this depends on what one calls an explanation.
# - Clark et al. (2019) scored single heads of BERT: some find objects, determiners or coreferent mentions; many
#   rest on the separator.
# - Voita et al. (2019) pruned 38 of 48 encoder heads of a translator for 0.15 BLEU; heads with a clear role went
#   last. Michel et al. (2019) found that most heads can be removed one at a time cheaply.

# %% [markdown]
# ## And beyond the small world?
#
# The package brings a second model, which learned from everyday sentences that people wrote ([its card](../data/models/tatoeba/README.md)).
# It gets twelve owners whose German nouns are feminine, and twelve others:

# %% tags=["active-ipynb"]
# everyday, its_tokenizer = load("tatoeba")
# owners = {
#     "ihr": "cat mouse cow bee city church bank school family company newspaper army",
#     "sein": "dog bird horse fish country village house child elephant bear lion hotel",
# }
# frames = (
#     "The {} has lost its money.",
#     "The {} needs its own garden.",
#     "The {} is famous for its size.",
# )
# for stem, nouns in owners.items():
#     texts = [frame.format(noun) for noun in nouns.split() for frame in frames]
#     german = translate(everyday, its_tokenizer, texts)
#     articles = ("Die",) if stem == "ihr" else ("Der", "Das")
#     assert all(text.startswith(articles) for text in german)
#     print(*german[:3], sep="\n")
#     for form in ("sein", "ihr"):
#         count = sum(f" {form}" in text.lower() for text in german)
#         print(f"    a form of {form} in {count} of {len(texts)}; {stem} would be right")

# %% [markdown]
# It writes a form of *sein* every time. The next cell says in how many of 161,852 training pairs "its" stands, and that *sein* goes with it twice as often as *ihr*. Is that the reason, or the model's size? **We do not know.**
#
# Which English word a German word comes from, it did learn. One cross-attention head is chosen on twelve sentences of our
# own, aligned by hand, and scored on twelve others:

# %% tags=["active-ipynb"]
# card = read_rows(bundled_folder("tatoeba") / "card.json")[0]
# print({name: card[f"its.{name}"] for name in ("pairs", "sein", "ihr")})
# aligned, real = read_aligned(), read_rows("multi30k-attention")[0]
# maps = all_maps(everyday, its_tokenizer, [tuple(pair) for *pair, _ in aligned])
# links = [found for *_, found in aligned]
# errors = cross_head_errors(maps[:12], links[:12])
# layer, head = divmod(errors.argmin().item(), errors.shape[1])
# error = cross_head_errors(maps[12:], links[12:])[layer, head]
# guess = diagonal_error(maps[12:], links[12:])
# print(
#     f"alignment error of head {layer + 1}.{head + 1}: {error:.3f}, of Multi30k's "
#     f"best {real['alignment.error']}, of the diagonal {guess:.3f}"
# )
# m = maps[20]
# plotting.heatmap(
#     m.cross[layer, head],
#     *m.labels("cross"),
#     largest=1.0,
#     title=f"everyday sentences, head {layer + 1}.{head + 1}",
#     labels=("looked at", "produced"),
# )
# assert error < guess

# %% [markdown]
# *Zieht ... aus* translates "takes off", yet *aus* looks more at "before". Multi30k's figure, on the same twelve sentences, is that of [notebook 16](16_translation.ipynb)'s model. Of that model `python -m transformer.experiments.attention` also recorded what silencing each head costs:

# %% tags=["active-ipynb"]
# lost = under(real, "bleu_lost_without_head")
# table = [row for kind in KINDS for row in lost[kind]]
# names = [f"{kind} {n + 1}" for kind in KINDS for n in range(len(lost[kind]))]
# plotting.heatmap(
#     table,
#     range(1, 5),
#     names,
#     "Multi30k: BLEU lost, one head silent",
#     values=True,
#     labels=("head", "layer"),
# )
# print(real["bleu_lost_on"])

# %% [markdown]
# Of the five heads that cost two BLEU or more, four belong to the cross-attention. (On 200 sentences a few tenths may be chance.)

# %% [markdown]
# ## Exercises
#
# Replace `...` by your own lines and run the cell; it says what is wrong, or "right".
#
# **1.** A weight of the second layer says which *vector* was looked at, and that vector is a mixture already.
# Attention rollout (Abnar and Zuidema, 2020) multiplies the layers: $R_0 = I$ and
# $R_n = \frac{1}{2}(\bar{A}_n + I)\,R_{n-1}$, with $\bar{A}_n$ the mean over the heads of layer $n$, and $I$ for the residual path.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.visualization import check_rollout
#
#
# def rollout(weights):
#     """Weights (N, h, S, S) of a stack -> shares of each input word, (S, S)."""
#     ...
#
#
# check_rollout(rollout)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def rollout(weights):
#     found = identity = torch.eye(weights.shape[-1])
#     for layer in weights.mean(dim=1):
#         found = (layer + identity) / 2 @ found
#     return found
# ```
#
# Values, feed-forward networks and norms are left out, so it is an estimate.
# </details>
#
# **2.** A silent head puts out zeros, which the layers above never met in training. A gentler change lets the
# head look evenly at all words of its sentence, without padding. Write the change, and use it in place of
# `silent` on one sentence of $S$ tokens with its end mark: `edit(model, {"encoder.0.self_attention.weights": lambda weights: even_head(weights, 2, mask)})` changes head 1.3, with
# `mask = torch.ones(1, S, dtype=torch.bool)`.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.visualization import check_even_head
#
#
# def even_head(weights, head, mask):
#     """weights (B, h, S, S), mask (B, S): True for words -> changed weights."""
#     ...
#
#
# check_even_head(even_head)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def even_head(weights, head, mask):
#     even = mask / mask.sum(dim=1, keepdim=True)  # (B, S)
#     weights[:, head] = even[:, None]
#     return weights
# ```
# </details>
#
# ## Next
#
# [20 Speed](20_speed.ipynb) asks how fast all this is.
