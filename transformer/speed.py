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
# The modules of Section 3 read as the paper does, and [notebook 11](11_hardware.ipynb) built the same model from faster parts. Was it worth
# it? This notebook compares speeds fairly: the package without and with its faster parts, torch's own Transformer, Hugging Face's Marian and
# CTranslate2, on the same work and in the same minutes. At the end you will know what each faster part gives on your machine, whether it costs quality, and how
# to move your model into CTranslate2, which is made for serving. Reading takes about 20 minutes, running it half a minute.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     # This book has no address yet. Upload its wheel: python -m pip wheel --no-deps .
#     from google.colab import files
#
#     wheel = next(iter(files.upload()))
#     %pip install -q {wheel}

# %%
import statistics
import time
from functools import partial

import torch

from transformer.data import Batch, collate
from transformer.hardware import wait_for

# %% tags=["active-ipynb"]
# # what only pictures, measurements and checks need: not part of the module
# import importlib.util
# import tempfile
# from pathlib import Path
#
# from transformer import load
# from transformer.bench.harness import rows_of, updates_of
# from transformer.bench.learning import train
# from transformer.bench.levers import measure_levers
# from transformer.bench.parts import measure_products
# from transformer.bench.peers import make_systems
# from transformer.bench.tables import shown, table
# from transformer.core.records import read_rows
# from transformer.corpora import read_corpus
# from transformer.data import encode_pairs
# from transformer.fast.model import TransformerConfig
# from transformer.models.export import export_ctranslate2, translate_there, type_names
# from transformer.models.search import translate
# from transformer.views import comparisons, plotting
#
# torch.set_num_threads(1)  # one core: then time is work
# cpu = torch.device("cpu")

# %% [markdown]
# ## What makes a comparison fair?
#
# A speed alone says little: the machine may be busy, cold or throttled. A *ratio* of two speeds says more, if both sides
#
# - get the **same work**: same sizes, same batches, dropout in the same places; every real target token counts once and padding never;
# - **take turns**, round by round, so that whatever else the machine does hits both, and a round is long enough that one hiccup does not
#   decide it: here at least 20 updates of training;
# - are judged by the **median** of the rounds' ratios. A first round, in which memory is fetched and kernels are chosen, does not count.
#
# The work is random ids, about thirty tokens a sentence. Each batch has a length of its own, and its rows differ a little.

# %%
SEED = 2017


def draw_batches(
    vocab_size: int, tokens: int, count: int, device: torch.device, spread: float = 0.18
) -> list[Batch]:
    """Batches of about so many real target tokens: random ids, on average 25 to 35 a
    sentence.

    spread: how far a sentence's length may lie from its batch's average, as a part of
    that; 0.18 makes about 15% padding, less where a batch has few sentences.
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
            pairs.append(([*ids(mean), 2], [1, *ids(mean), 2]))  # 1 begins, 2 ends
        batches.append(collate(pairs).to(device))
    return batches


def real_tokens(batch: Batch) -> int:
    """Target tokens that count in the loss."""
    return int((batch.gold != 0).sum())


# %% tags=["active-ipynb"]
# small = dict(vocab_size=4000, d_model=64, d_ff=256, N=2, h=4)
# batches = draw_batches(4000, 200, 60, cpu)
# for batch in batches[:3]:
#     real = real_tokens(batch)
#     print(
#         f"source {tuple(batch.source.shape)}  target {tuple(batch.gold.shape)}  "
#         f"real target tokens {real}  padding {1 - real / batch.gold.numel():.0%}"
#     )
# padding = 1 - sum(map(real_tokens, batches)) / sum(b.gold.numel() for b in batches)
# assert 0.1 < padding < 0.2
# print(f"padding in all batches: {padding:.0%}")

# %% [markdown]
# A stopwatch waits for the GPU before and after, because a GPU works on while Python goes ahead. Each round begins with the next system, so that nobody
# is first, or last, in every round.


# %%
def seconds_of(work, device: torch.device, clock=time.perf_counter) -> tuple:
    """Seconds of work(), by a clock, a GPU's work waited for; and what it returned."""
    wait_for(device)
    started = clock()
    done = work()
    wait_for(device)
    return max(1e-9, clock() - started), done


def in_turns(
    works: dict, rounds: int, device: torch.device, clock=time.perf_counter
) -> dict[str, list[float]]:
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


def times_as_fast(ours: list[float], theirs: list[float]) -> float:
    """How many times as fast: the median of the ratios of rounds.

    Two speeds of a round are of the same minute.
    """
    return statistics.median(a / b for a, b in zip(ours, theirs))


# %% tags=["active-ipynb"]
# a, b = [100.0, 40.0, 90.0], [50.0, 20.0, 30.0]  # the machine was busy in round 2
# assert times_as_fast(a, b) == 2.0
# print(
#     "medians",
#     statistics.median(a),
#     "and",
#     statistics.median(b),
#     "have the ratio 3; the median of the rounds' ratios is",
#     times_as_fast(a, b),
# )

# %% [markdown]
# ## Who takes part
#
# The systems are built in `transformer/bench/peers.py`:
#
# - **This package**, twice: *plain*, as Section 3 reads, and *as it runs* by `transformer train` and `transformer translate`.
# - **torch.nn.Transformer**, with the embeddings, positions and output layer that it lacks, and without what the paper does not have (dropout on attention weights and hidden units, a norm after each stack; the biases of its attention stay). It has no cache, so to write one more token it computes all earlier ones
#   again. It takes part twice: with torch's Adam as it comes, and *tuned*, with the fused one.
# - **Marian** as Hugging Face has it, the model behind a thousand translators on its hub, with caches and tied embeddings.
# - **CTranslate2**, made for serving translations on CPUs, in fp32 (in `transformer bench` also with weights in 8 bits, which round more). It does not train.

# %% [markdown]
# Here is a small contest of 10 updates a round among the first four; Marian and CTranslate2 come with the record below. The clock counts only seconds that the processor spent on this program. ("highest"
# is torch's name for its usual fp32 products.)

# %% tags=["active-ipynb"]
# c = TransformerConfig(**small, P_drop=0.1)
# contest = make_systems(c, ("plain", "fast", "torch", "tuned"), cpu)
# works = {
#     (name, "highest"): updates_of(system.prepare(), batches, count=10)
#     for name, system in contest.items()
# }
# rates = in_turns(works, 3, cpu, time.process_time)
# print(shown("live", rows_of(rates)))
# assert all(min(values) > 0 for values in rates.values())

# %% [markdown]
# "x torch" is the median of the rounds' ratios. With a model this small and three rounds, expect the second digit to change from run to run. That each system computes the same loss, and the same gradient of the embedding, from the same weights is among the package's tests (`tests/test_bench.py`).

# %% [markdown]
# ## What does each lever give?
#
# The package pulls five *levers*: batches of **similar lengths** (here equal ones, without padding: the best that sorting can give, [10](10_data.ipynb)); the
# **loss in chunks**, which never holds the whole table of logits, **attention** by torch's kernel (both [11](11_hardware.ipynb)); **dropout** from 16 random bits an entry (on a CPU), where torch draws a longer number; and **fused Adam**, which updates all weights in one operation ([12](12_optimizer.ipynb) has Adam itself). All are pulled, and then each is left out once. What is lost without a lever is what it gives on top of the others. The last row adds bf16 (on a CPU, short sentences then leave torch's kernel for attention). `over_all` and `over_none` are the medians of the rounds' ratios to all levers and to none; differences below a tenth are noise with three rounds.

# %% tags=["active-ipynb"]
# levers = measure_levers(small, 200, 10, 3, cpu, time.process_time)
# print(table("levers", levers))
# plotting.bars(
#     {row["lever"].replace(" ", "\n"): row["over_all"] for row in levers},
#     "",
#     "speed, where 1 is all levers",
#     "speed with all levers, and with one left out",
#     ax=plotting.new_axes(7.5, 3.5),
# )
# assert [row["lever"] for row in levers][:2] == ["none", "all"]

# %% [markdown]
# In the saved run one lever stands out of the noise: without the loss in chunks a sixth of the speed is lost. What the other levers give is less than a tenth. (The losses need not multiply to that of "none": levers can stand in for one another, and rounds are noisy. Why equal lengths give no more where 12% is padding, we have not measured.) The last bar lies below the second: bf16 makes a model this small slower, although large products are faster in it (a section
# below shows them); what takes the time we have not separated. All bars depend on sizes and machine: one expects more from the loss in chunks where there are more types, and from attention in longer sentences (figures at the end). So time a few updates yourself.

# %% [markdown]
# ## Does it still learn the same?
#
# Each fast form equals the plain one within rounding (notebook 11 and the tests), but for dropout, which draws other bits, and the batches; these two are the same on both sides here. What becomes of a rounding in training? A small model is trained three times on the same
# batches with the same entries dropped: the plain way, the plain way with *one* of its weights moved by a millionth before the start, and the fast
# way. How far are the losses of the last two from the first?

# %% tags=["active-ipynb"]
# model, tokenizer = load()
# sentences = encode_pairs(tokenizer, read_corpus("bundled", "train")[:3000])
# c = TransformerConfig(tokenizer.vocab_size, d_model=64, d_ff=128, N=2, h=4, P_drop=0.1)
#
#
# def losses(way, nudge=0.0):
#     _, found = train(way, 1, sentences, 100, c, nudge)
#     return torch.tensor(found)
#
#
# plain = losses("plain")
# apart = {
#     "plain, one weight moved": (losses("plain", 1e-6) - plain).abs(),
#     "fast": (losses("fast") - plain).abs(),
# }
# shown_apart = {way: far.clamp(min=1e-7) for way, far in apart.items()}
# plotting.lines(
#     range(1, 101),
#     shown_apart,
#     "update",
#     "distance from plain's loss, nats",
#     "both distances grow to hundredths of a nat",
#     log="y",
# )
# assert apart["fast"][:10].max() < 1e-4
# print(
#     f"largest distance of the fast way: {apart['fast'][:10].max():.0e} in the first "
#     f"ten updates, {apart['fast'][-10:].max():.0e} in the last ten"
# )

# %% [markdown]
# (Equal losses are drawn at $10^{-7}$; one step of fp32 is $10^{-6}$ above a loss of 8, and half of that below.) Both distances grow by powers of ten, the fast way's some twenty updates earlier; why, we have not separated. This training magnifies any
# difference, however small, so it makes no sense to ask whether the fast way's last loss *equals* the plain one's. What can be asked is whether the fast way is as good on average. `transformer bench learning` takes most of an hour: a
# small model learns the bundled corpus in four ways with six seeds, on the same batches with the same entries dropped, and all are scored on the same validation sentences.

# %% tags=["active-ipynb"]
# rows = read_rows("bench-learning")
# print(f"{rows[0]['command']}, commit {rows[0]['commit']}")
# for row in rows:
#     gaps = [a - b for a, b in zip(row["losses"], rows[0]["losses"])]
#     error = statistics.stdev(gaps) / len(gaps) ** 0.5
#     print(
#         f"{row['way']:14}validation loss {row['validation_loss']:.3f}; minus plain, "
#         f"seed by seed, {statistics.mean(gaps):+.3f} ± {error:.3f} (standard error)"
#     )

# %% [markdown]
# In fp32 and bf16 the fast way is better with some seeds and worse with others. At "medium" (explained below; the record does not say whether it was bf16 there) it is worse by about two standard errors. When three ways are compared with
# plain, one may get that far by chance, so six seeds do not settle it.
#
# ## How fast could it be?
#
# Almost all FLOPs are those of matrix products, so their rate is a ceiling. There is more than one way to multiply on a CPU. These are torch's on the shapes
# of a small model's forward and backward pass, with the relative error that each makes. "medium" uses the second library of [notebook 11](11_hardware.ipynb); "packed", too, with weights stored beforehand in the order it likes (without gradients only).
# `fp32_class` is True where the error is one of fp32.

# %% tags=["active-ipynb"]
# middle = TransformerConfig(4000, d_model=256, d_ff=1024, h=4)
# products = measure_products(middle, 600, cpu, time.process_time)
# print(table("products", products))
# assert products[0]["error"] < 1e-6 < products[-1]["error"]
# print("fp32 is exact to six digits, bf16 to two or three")

# %% [markdown]
# The error of bf16 is some ten thousand times as large. "medium" is another fp32 on some CPUs and bf16 on others, as its error tells (in the record below fp32). The package never sets it for you, and so the trainings below use "highest" on both sides where they say nothing else; the package's searches use "packed" whatever is set. In the record below "torch" has 112 GFLOP/s, and the fast base model, which takes this route, trains at 106 to 125: at its ceiling, as far as different minutes can tell. At "medium" (154) it trains at 126 to 154.
#
# ## Your model in CTranslate2
#
# CTranslate2 has a format of its own for weights, and the paper's architecture is among those that it runs, so ours fit matrix by matrix
# (`transformer/models/export.py`). The bundled model, moved there, must translate the same.

# %% tags=["active-ipynb"]
# sentences = [
#     "The old cat behind the school lost its ball.",
#     "She has not opened the window.",
#     "The doctor who bought the red car is old.",
#     "Why did the children sing?",
# ]
# if importlib.util.find_spec("ctranslate2"):
#     with tempfile.TemporaryDirectory() as place:
#         there = Path(place, "bundled")
#         export_ctranslate2(model, type_names(tokenizer), there)
#         theirs = translate_there(there, tokenizer, sentences)
#     print("\n".join(theirs))
#     assert theirs == translate(model, tokenizer, sentences, beam=1)
#     print("CTranslate2 writes what this package writes")
# else:
#     print("pip install ctranslate2, then run this cell again")

# %% [markdown]
# With a beam the two may differ, because CTranslate2 divides a hypothesis's score by its length to the power `length_penalty` (0.6 here; its default is 1), and the paper by $((5 + length) / 6)^{0.6}$
# ([15](15_decoding.ipynb)).

# %% [markdown]
# ## The recorded comparison
#
# The whole comparison takes hours now, so it is a command, `transformer bench` (or parts of it, such as `transformer bench T1 --rounds 4`). T1 trains the paper's base model with 8,000 types, T2 a smaller one ($N = 3$, $d_{model} = 256$) and "small" one of the Multi30k recipe's sizes, but with 10,000 types. T3 and T4 decode with T1's
# model, whose weights are random, to fifty tokens a sentence: greedily and with a beam of 4.
#
# **The record is of older code than the package's**: a round of training was a single update there, "tuned" and "8 bits" did not take part, and each lever was added to those before. Its rounds often differ by a third.

# %% tags=["active-ipynb"]
# rows = read_rows("bench")
# about = rows[0]
# print(f"{about['hardware']}; {about['minutes']} minutes, commit {about['commit']}")
#
#
# def rounds_of(part, system, precision):
#     wanted = (part, system, precision, "dropout")
#     for row in rows:
#         kind = row.get("kind", "dropout")
#         if (row["part"], row.get("system"), row.get("matmul"), kind) == wanted:
#             return row["rounds"]
#
#
# def ratios_to(peer, part, precision="highest"):
#     ours, theirs = rounds_of(part, "fast", precision), rounds_of(part, peer, "highest")
#     return theirs and [a / b for a, b in zip(ours, theirs)]
#
#
# training = {"T1": "training, base", "T2": "training, N = 3", "small": "training, small"}
# ratios = {}
# for part, name in {**training, "T3": "greedy search", "T4": "beam of 4"}.items():
#     for peer in ("plain", "torch", "marian", "ctranslate2"):
#         if found := ratios_to(peer, part):
#             ratios[f"{name}: {peer}"] = found
# title = "right of the line: the fast way is faster than the peer"
# comparisons.ratios(ratios, "times the peer's speed", title)
# assert all(min(ratios[f"{name}: torch"]) > 1 for name in training.values())
# print("with dropout, padded batches: faster than torch's module in every round")
# medium = [statistics.median(ratios_to("torch", part, "medium")) for part in training]
# print("with --precision medium: times torch's module", *(f"{x:.2f}" for x in medium))

# %% [markdown]
# A dot is a round, stroke and number are the median.
#
# - **Training** the base model is 1.3 times as fast as with torch's module, the middle one 1.5 times, the smallest 2.5 times, on padded batches. Beside its own plain classes it is 1.2, 1.7 and 2.1 times as fast (base in one round 0.87). With equally long sentences the record has 1.2, 1.5 and 1.6 times torch's speed (the smallest 0.85 in one round). Without dropout base gains nothing sure: 1.03, and 0.91 in one round. Marian is level at base, and slower at the two others. (Fused Adam is part of this: 1.16 for the smallest, below.)
# - At "medium", on that machine still fp32 (the second library), it trains faster still (the last line; torch's module at "highest").

# %% [markdown]
# - **Greedy search** is 11 times as fast as with torch's module, which has no cache, and 1.2 times as fast as with Marian, which has one; **beam search** 1.8 times as fast as Marian's. (Our weights are "packed" there, in the second library. With Marian at "medium", which takes that library, too, it is 1.1, in one round 0.96, and 1.5.)
# - **CTranslate2** is about as fast: the rounds lie on both sides of 1.
#
# On a GPU one part has been measured, with today's code: training the paper's base model, with 37,000 types, in bf16 at the paper's batch.

# %% tags=["active-ipynb"]
# gpu = read_rows("gpu-bench-base")
# print(f"{gpu[0]['hardware']}; target tokens a second in three rounds:")
# for row in gpu:
#     over = [
#         f"{row[f'over_{peer}_highest']:.2f} x {peer}"
#         for peer in ("torch", "tuned")
#         if row["system"] in ("plain", "fast")
#     ]
#     print(
#         f"{row['system']:7}",
#         *(f"{tokens:9,.0f}" for tokens in row["rounds"]),
#         ", ".join(over),
#     )

# %% [markdown]
# (The ratios are medians of the rounds'.) Two peers began slowly, though a round before the first does not count, and "tuned" ended slowly: three rounds tell little. Beside the tuned module the fast way is 1.13 times as fast (1.09 to 1.36), and the plain classes are slower in two rounds.
#
# The CPU's record has more: levers (each added to those before it), the peak memory of training base, attention over $n$ positions (8 heads, forward and backward), and the products of the section above:

# %% tags=["active-ipynb"]
# def part(name):
#     return [row for row in rows if row["part"] == name]
#
#
# for name in ("levers", "memory", "attention", "products"):
#     print(shown(name, part(name)))

# %% [markdown]
# In the first table (the model called small above, larger than the live one) each row keeps the levers of the rows above it. Similar lengths and the loss in chunks gave most, and bf16 made this model faster. The batches' padding of 16% explains a factor of 1.2 of the 1.48 for similar lengths; the rest may be noise. Training the base model takes two thirds of the memory
# that torch's module takes. Over 8,192 positions torch's kernel for attention takes 0.2 GiB where the formula of notebook 04 ("naive") takes 6.2.
#
# So it was worth it: in the record training with dropout is 1.2 to 2.5 times as fast as with torch's module (not tuned there), and six seeds show no loss of quality in fp32 (95%: within 0.02 nats) from loss, attention and Adam.

# %% [markdown]
# ## Exercises
#
# Replace `...` by your own lines and run the cell; it says what is wrong, or "right".
#
# **1.** Torch's kernel never holds all scores. Write attention of one query that reads keys and values in blocks, and keeps only three things between blocks: the
# largest score $m$ so far, the sum of all $e^{score - m}$ so far, and the sum of the values, each times its $e^{score - m}$.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.speed import check_in_blocks
#
#
# def in_blocks(q, k, v, size):
#     """q (d_k,), k (n, d_k), v (n, d_v), positions of a block -> the output (d_v,)."""
#     ...
#
#
# check_in_blocks(in_blocks)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def in_blocks(q, k, v, size):
#     largest, total, blend = torch.tensor(-torch.inf), 0.0, torch.zeros(v.shape[1])
#     for i in range(0, len(k), size):
#         scores = k[i:i + size] @ q / len(q) ** 0.5
#         new = torch.maximum(largest, scores.max())
#         powers = torch.exp(scores - new)
#         shrink = torch.exp(largest - new)
#         total = total * shrink + powers.sum()
#         blend = blend * shrink + powers @ v[i:i + size]
#         largest = new
#     return blend / total
# ```
#
# This is called online softmax, and it is the heart of flash attention (Dao et al., 2022).
# </details>
#
# **2.** Write a step of decoding with a cache, for one head and a batch of sentences.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.speed import check_cached_step
#
#
# def cached_step(q, k, v, keys, values):
#     """New q, k, v (B, d) and held keys, values (B, t, d) -> the output (B, d) of the
#     query, and keys and values (B, t + 1, d) with the new ones at the end."""
#     ...
#
#
# check_cached_step(cached_step)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def cached_step(q, k, v, keys, values):
#     keys = torch.cat([keys, k[:, None]], dim=1)
#     values = torch.cat([values, v[:, None]], dim=1)
#     scores = keys @ q[:, :, None] / q.shape[1] ** 0.5
#     weights = scores.softmax(dim=1)
#     return (weights * values).sum(dim=1), keys, values
# ```
#
# Without the cache, step $t$ would compute $t$ keys and values instead of one.
# </details>
#
# **3.** CTranslate2's 8-bit form holds each row of a matrix as integers from $-127$ to $127$ and one number that scales them. Write it.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.speed import check_in_8_bits
#
#
# def in_8_bits(W):
#     """W (m, n) -> integers (m, n) of type torch.int8, and scales (m, 1)."""
#     ...
#
#
# check_in_8_bits(in_8_bits)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def in_8_bits(W):
#     largest = W.abs().amax(dim=1, keepdim=True)
#     scales = largest / 127
#     return (W / scales).round().to(torch.int8), scales
# ```
#
# A quarter of the bytes of fp32; each number is off by at most half a scale.
# </details>
#
# ## Next
#
# `transformer export --folder runs/multi30k --output exported` moves your own model into CTranslate2, once notebook 16's run is there. All notebooks stand in order in the
# [README](https://github.com/OWNER/annotated-attention#readme).
