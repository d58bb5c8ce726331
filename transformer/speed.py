# ---
# jupyter:
#   jupytext:
#     formats: notebooks/20_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # Speed
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/20_speed.ipynb)
#
# The modules of Section 3 read as the paper does. [Notebook 11](11_hardware.ipynb) built the same
# model from faster parts without touching them. Was it worth it? Here each lever is left out in turn, on your
# machine. Then the whole is set beside torch's own Transformer, Hugging Face's Marian and CTranslate2,
# on the same work and in the same minutes. On the way your model moves into CTranslate2, which is made
# for serving.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     %pip install -q git+https://github.com/OWNER/annotated-attention

# %%
import statistics
import time
from functools import partial

import torch

from transformer.data import collate
from transformer.hardware import wait_for

# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# import importlib.util
# import tempfile
# from pathlib import Path
#
# from transformer import plotting
# from transformer.bench.harness import rows_of, updates_of
# from transformer.bench.learning import train
# from transformer.bench.levers import measure_levers
# from transformer.bench.parts import measure_products
# from transformer.bench.peers import make_systems
# from transformer.bench.tables import shown, table
# from transformer.corpora import read_corpus
# from transformer.data import Tokenizer, encode_pairs
# from transformer.search import translate
# from transformer.experiments.records import read_rows
# from transformer.export import export_ctranslate2, translate_there, type_names
# from transformer.files import data_folder
# from transformer.model import TransformerConfig
# from transformer.translation import SENTENCES
# from transformer.pretrained import bundled_folder, load
#
# torch.set_num_threads(1)            # one core: then time is work
# cpu = torch.device("cpu")

# %% [markdown]
# ## What makes a comparison fair
#
# A speed alone says little: the machine may be busy, cold or throttled. A *ratio* of two speeds says
# more, if both sides
#
# - get the **same work**: same sizes, same batches, dropout in the same places, every real target token
#   counted once and padding never;
# - **take turns**, round by round, so that whatever else the machine does hits both, and a round is long
#   enough that one hiccup does not decide it;
# - are judged by the **median** of the rounds' ratios, the first round being left out (memory is fetched
#   then, and kernels are chosen).
#
# The work: random ids, of about thirty tokens a sentence. A batch has lengths of its own, and rows that
# differ a little.

# %%
SEED = 2017


def draw_batches(vocab_size: int, tokens: int, count: int, device, spread=0.18):
    """Batches of about so many real target tokens: random ids, 25 to 35 a sentence.

    spread: how far a sentence's length may lie from its batch's average, as a part of
    that; 0.18 makes 15% padding.
    """
    chance = torch.Generator().manual_seed(SEED)

    def draw(low, high):
        return torch.randint(low, high + 1, (), generator=chance).item()

    def ids(mean):
        n = draw(round((1 - spread) * mean), round((1 + spread) * mean))
        return torch.randint(3, vocab_size, (n - 1,), generator=chance).tolist()

    batches = []
    for _ in range(count):
        mean = draw(25, 35)
        pairs = []
        for _ in range(max(1, round(tokens / mean))):
            pairs.append(([*ids(mean), 2], [1, *ids(mean), 2]))
        batches.append(collate(pairs).to(device))
    return batches


# %%
def real_tokens(batch) -> int:
    """Target tokens that count in the loss."""
    return int((batch.gold != 0).sum())


# %% tags=["active-ipynb"]
# small = dict(vocab_size=4000, d_model=128, d_ff=512, N=2, h=4)
# batches = draw_batches(4000, 600, 10, cpu)
# for batch in batches[:4]:
#     real = real_tokens(batch)
#     print(f"source {tuple(batch.source.shape)}  target {tuple(batch.gold.shape)}  "
#           f"real target tokens {real}  padding {1 - real / batch.gold.numel():.0%}")

# %% [markdown]
# ## Taking turns
#
# A stopwatch for one piece of work. A GPU works on while Python goes ahead, so we wait for it on both sides.

# %%
def seconds_of(work, device, clock=time.perf_counter):
    """Seconds of work(), by a clock, a GPU's work waited for; and what it returned."""
    wait_for(device)
    started = clock()
    done = work()
    wait_for(device)
    return max(1e-9, clock() - started), done


# %% [markdown]
# Each round begins with the next system, so that nobody is first, or last, in every round.

# %%
def in_turns(works: dict, rounds: int, device, clock=time.perf_counter) -> dict:
    """{name: tokens a second in each round}.

    works: {name: function of the round's number that returns how many tokens it did}.
    Round -1 warms up and does not count.
    """
    rates = {name: [] for name in works}
    order = list(works)
    for number in range(-1, rounds):
        for name in order:
            work = partial(works[name], number)
            seconds, tokens = seconds_of(work, device, clock)
            if number >= 0:
                rates[name].append(tokens / seconds)
        order.append(order.pop(0))
    return rates


# %%
def times_as_fast(ours: list[float], theirs: list[float]) -> float:
    """How many times as fast: the median of the ratios of rounds.

    Two speeds of a round are of the same minute.
    """
    return statistics.median(a / b for a, b in zip(ours, theirs))


# %% [markdown]
# ## The peers
#
# These take part (built in `transformer/bench/peers.py`):
#
# - **This package**, twice: as Section 3 reads, and as `transformer train` and `transformer translate` run it.
# - **torch.nn.Transformer**, with the embeddings, positions and output layer that it lacks, and without
#   what the paper has not: dropout on attention weights and hidden units, a norm after each stack. It has
#   no cache: to write one more token, it computes all the earlier ones again. In training it stands there
#   twice: with torch's Adam as it comes, and "tuned", with the fused one.
# - **Marian**, as Hugging Face's library has it, the model behind a thousand translators on its hub. It
#   has caches, and tied embeddings.
# - **CTranslate2**, made for serving translations on CPUs, which does not train: once in fp32 as all the
#   others, and once with weights in 8 bits, which round more.

# %% [markdown]
# A small contest, here and now. Few rounds of a small model: expect the second digit to change when you
# run it again.

# %% tags=["active-ipynb"]
# c = TransformerConfig(**small, P_drop=0.1)
# contest = make_systems(c, ("plain", "fast", "torch", "tuned"), cpu)
# works = {(name, "highest"): updates_of(system.prepare(), batches, count=2)
#          for name, system in contest.items()}
# live = rows_of(in_turns(works, 5, cpu))
# print(shown("live", live))

# %% [markdown]
# "x torch" is the median of the ratios of single rounds, not the ratio of the two medians beside it. That
# each system computes the same loss from the same weights, and the same gradient of the embedding, is
# among the tests of this package (`tests/test_bench.py`).
#
# ## Your model in CTranslate2
#
# CTranslate2 takes a model's weights in its own format, and the paper's architecture is among those that
# it runs. So our weights fit, matrix by matrix, with queries, keys and values in one
# (`transformer/export.py`). Does it say the same? The bundled model, moved there, translates some
# sentences greedily; both must write the same. (Without CTranslate2 the cell says how to get it.)

# %% tags=["active-ipynb"]
# model, tokenizer = load()
# if importlib.util.find_spec("ctranslate2"):
#     with tempfile.TemporaryDirectory() as place:
#         there = Path(place, "bundled")
#         export_ctranslate2(model, type_names(tokenizer), there)
#         theirs = translate_there(there, tokenizer, SENTENCES["bundled"])
#     print("\n".join(theirs))
#     assert theirs == translate(model, tokenizer, SENTENCES["bundled"], beam=1)
# else:
#     print("pip install ctranslate2, then run this cell again")

# %% [markdown]
# A beam may differ now and then: CTranslate2 divides a hypothesis's score by its length to the power 0.6,
# the paper by $((5 + length) / 6)^{0.6}$ (notebook 15).
#
# ## Each lever left out
#
# Which part of the gain comes from what? All levers are pulled, and then each of them is left out once:
# batches of *similar lengths* (here equal ones, without padding: the best that sorting can give, notebook
# 10); the *loss in chunks*, which never holds the whole table of logits, and *attention* by torch's kernel
# (notebook 11); *fused Adam*, one kernel for all weights (notebook 12). What the package loses without a lever is what that
# lever gives to it. The last row adds *bf16* to all of them.

# %% tags=["active-ipynb"]
# levers = measure_levers(small, 600, 2, 5, cpu, time.perf_counter)
# print(table("levers", levers))
# plotting.bars({row["lever"].replace(" ", "\n"): row["over_all"] for row in levers},
#               ylabel="speed over all levers'",
#               title="Each lever left out once, here")

# %% [markdown]
# The bars depend on sizes and machine. With more types the loss in chunks gains; with longer sentences
# attention does (part "attention" below). Where the CPU has no instructions for bf16, the last row is the
# slowest. That is why nothing here is taken for granted, and `transformer train` only gives a hint.

# %% [markdown]
# In the recorded run further down the levers were pulled one after the other, each row having those above
# it, too, with 10,000 types and larger batches. (It had one lever more, a faster dropout, which gained
# nothing and is gone.) There the loss in chunks gives a factor of 1.6, similar lengths 1.5 (its padding of
# 16% explains 1.2; the rest must be the machine), bf16 1.4, and attention (with queries, keys and values
# in one product) and fused Adam 1.1 to 1.2 each. Such figures shake by a tenth and more.

# %% [markdown]
# ## Does it still learn the same?
#
# Speed that costs quality is no gain. Each fast form equals the plain one within rounding (notebook 11 and
# the tests). What becomes of a rounding? Here a small model is trained three times on the same batches,
# with the same entries dropped: the plain way, the plain way with *one* of its weights moved by a
# millionth, and the fast way. How far are the losses of the last two from the first?

# %% tags=["active-ipynb"]
# tokenizer = Tokenizer.load(bundled_folder() / "tokenizer.json")
# sentences = encode_pairs(tokenizer, read_corpus("bundled", "train")[:3000])
# c = TransformerConfig(tokenizer.vocab_size, d_model=64, d_ff=128, N=2, h=4, P_drop=0.1)
#
# def losses(way, nudge=0.0):
#     _, found = train(way, 1, sentences, 100, c, nudge)
#     return torch.tensor(found)
#
# plain = losses("plain")
# apart = {"plain, one weight moved": (losses("plain", 1e-6) - plain).abs(),
#          "fast": (losses("fast") - plain).abs()}
# shown_apart = {way: far.clamp(min=1e-7) for way, far in apart.items()}
# plotting.lines(range(1, 101), shown_apart, "update", "distance from plain's loss",
#                log="y")
# assert apart["fast"][:10].max() < 1e-4

# %% [markdown]
# In the saved picture (distances in nats a token; those under $10^{-7}$ are drawn there) all three agree for some twenty-five updates to about two millionths. Then the fast way's distance climbs by powers of ten. That of the moved weight does so, too, but only after sixty;
# one weight is probably a smaller push than a rounding everywhere. In the end both lie mostly between some thousandths and a tenth.

# %% [markdown]
# Training at a high rate magnifies any difference, however small. So whether the fast way's last loss *equals* the plain one's is no sensible question. (In double precision the two
# ways stay together over fifty gentle updates, to seven digits; that is among the tests.) What can be asked is whether it is as good on average.
#
# So a small model learns the bundled corpus in each way, with six seeds, on the same batches, and with the same entries
# dropped. In the end all see the same validation sentences.

# %% [markdown]
# That takes most of an hour of a core, so it is a command: `transformer bench learning`. In the recorded run plain ends at 0.891, and the fast ways at 0.891 (fp32), 0.910 (medium) and
# 0.894 (bf16). Runs of plain that differ only in their seed lie up to 0.078 apart. Seed by seed, fp32 and bf16 lie on both sides of plain. "medium" is worse with four seeds of six,
# by 0.019 ± 0.009 in the mean. That is two deviations, and one way of three may reach them by chance. So six seeds do not settle it.

# %% [markdown]
# ## How fast could it be?
#
# Almost all the work is matrix products, so their rate is the ceiling. But which rate? There is more than one way to
# multiply. These are torch's routes on the shapes of a model's forward and backward pass, with the error that each makes.

# %% tags=["active-ipynb"]
# middle = TransformerConfig(4000, d_model=256, d_ff=1024, h=4)
# products = measure_products(middle, 600, cpu, time.perf_counter)
# print(table("products", products))
# assert products[0]["error"] < 1e-6 < products[-1]["error"]

# %% [markdown]
# Two things decide whether bf16 is a good bargain: its rate beside fp32's, and its error, some ten thousand times as large (whether training
# minds was asked above). Whether "medium" is another fp32 or a bf16 in disguise depends on the CPU; its error in the
# table tells. The package never sets it for you.

# %% [markdown]
# ## The whole table
#
# What follows takes an hour and more, so it is a command: `transformer bench` (or some parts of it, such as `transformer bench T1 --rounds 4`;
# "learning", an hour more, only where it is named). T1 is the
# paper's base model with 8,000 types, T2 a smaller one ($N = 3$, $d_{model} = 256$), "small" that of the Multi30k recipe with 10,000 types. A round of training is 4, 10 and
# 20 updates there, which take about the same time, because one hiccup decides a short round. (Only one update in the files below, which are older; nor had they the rows "tuned" and
# "8 bits".)

# %% [markdown]
# T3 and T4 decode with T1's model: greedy, and with a beam of 4, to fifty tokens each. Its weights are random there. In a trained model's search the hypotheses change places otherwise, and the figures may differ.

# %% [markdown]
# ### What was measured
#
# The files that are read here were written by the commands that they name, on the machine that they name. "x torch" says how many
# times as fast this package is as `torch.nn.Transformer` (the median over the rounds), "m." compares with its run at medium. Of attention, "naive" is the formula of notebook 04
# and "kernel" is torch's; of the products, "packed" is oneDNN with the weight laid out beforehand. These two parts count the best round, not the median. The CPU of `bench.json` is not the one that ran the
# cells above: there bf16 is faster than fp32.

# %% tags=["active-ipynb"]
# for path in sorted((data_folder() / "runs").glob("*bench*.json")):
#     rows = read_rows(path)
#     print(f"{path.name}: {rows[0]['command']}\n{rows[0]['hardware']}, "
#           f"{rows[0]['minutes']} minutes, commit {rows[0]['commit']}\n")
#     for part in dict.fromkeys(row["part"] for row in rows):
#         print(shown(part, [row for row in rows if row["part"] == part]))

# %% [markdown]
# Was it worth it? On the two threads of `bench.json`, with dropout, and each system at whichever of "highest" and "medium" was faster for it:
#
# - **Training** is 1.5 times as fast as with `torch.nn.Transformer` for T1, 1.8 times for T2, 2.7 times for "small"; over Marian 1.3, 2.0 and 2.3 times. Without "medium", as `transformer train` runs by itself, it is 1.3, 1.5 and 2.5 times torch's speed, and 1.0, 1.6 and 2.1 times Marian's. (Fused Adam
#   is a part of this; every user of torch can have it by one argument.)

# %% [markdown]
# - **Greedy search** is 11 times as fast as with torch's module, which keeps no keys and values. Marian keeps them: there it is 1.1 times (0.96 to 1.3 in single rounds). **Beam search**
#   is 1.5 times as fast as Marian's. From CTranslate2 neither differs by more than the rounds do (medians 1.1, and 0.85 with a beam; rounds 0.95 to 1.15, and 0.7 to 1.3).
# - **Memory** for training T1 is 0.67 times that of torch's module, counted above the start.

# %% [markdown]
# Was part of the gain the cheaper dropout of that time? Without any, the three are 1.2, 2.0 and 2.2 times:
# less for two, more for T2. With dropout and no padding on either side they are 1.4, 1.9 and 1.8. Rounds of
# one system often differ by a third, in places by a factor of two.

# %% [markdown]
# "medium" speeds our training up by 8% to a third, and mostly slows torch's module in training, and our beam search, which lays out its weights by itself.
#
# What surprised us: the plain package, which copies its caches and packs no weights, reaches
# two thirds of CTranslate2's speed in beam search. What copying costs (notebook 11 found almost half the time) does not show here.

# %% [markdown]
# ## Exercises
#
# Replace `...` and run the cell; it stays silent when you are right.
#
# **1.** A batch has sentences of 10, 20 and 30 tokens. Which part of its places is padding? And if each length had a batch of its own?

# %% tags=["active-ipynb"]
# your_padding = ..., ...
# if your_padding[0] is not ...:
#     pairs = [([5] * 9 + [2], [1] + [5] * (n - 1) + [2]) for n in (10, 20, 30)]
#     together = collate(pairs)
#     padding = 1 - real_tokens(together) / together.gold.numel()
#     assert abs(your_padding[0] - padding) < 0.01 and your_padding[1] == 0

# %% [markdown]
# <details><summary>Solution</summary>
#
# `your_padding = 1 / 3, 0`: three rows of 30 places hold 60 tokens. A third of the work would be for nothing; that is why `transformer train` sorts by length.
# </details>
#
# **2.** Softmax and cross-entropy make a fifth of an update's time. You make them infinitely fast. How many times as fast does the update become?

# %% tags=["active-ipynb"]
# your_gain = ...
# if your_gain is not ...:
#     times = {"softmax and loss": 0.2, "all else": 0.8}
#     assert abs(your_gain - sum(times.values()) / times["all else"]) < 0.01

# %% [markdown]
# <details><summary>Solution</summary>
#
# `your_gain = 1.25`: what remains takes 0.8 of the time. This is Amdahl's law, and the reason why no single lever does it.
# </details>

# %% [markdown]
# ## Next
#
# Your model in CTranslate2: `transformer export --folder runs/multi30k --output exported` (once notebook 16's run is there). The way back to the beginning is the
# [README](https://github.com/OWNER/annotated-attention#readme), with all the notebooks in order.
