# ---
# jupyter:
#   jupytext:
#     formats: notebooks/11_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 5.2 Hardware
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/11_hardware.ipynb)
#
# The paper trained on eight P100 GPUs (Section 5.2): the base model for 12 hours, 0.4 seconds an update, and the big model for three and a half
# days, 1.0 seconds an update. You may have one GPU, a laptop, or a session in Colab. At the end you will know what your machine
# multiplies in a second, how many multiplications and how much memory a Transformer needs, and so how long a run will take; and you will have seen two processes train one model
# together. Reading takes about 25 minutes, running it half a minute.

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
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from sys import platform
from typing import Literal

import torch

from transformer.model import TransformerConfig as PlainConfig

# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# import tempfile
# from functools import partial
#
# import torch.nn.functional as F
# from torch.multiprocessing import spawn
# from torch.utils.flop_counter import FlopCounterMode
#
# from transformer import Transformer, TransformerConfig
# from transformer.core.records import read_rows
# from transformer.fast import FAST
# from transformer.fast.projected import projected_loss
# from transformer.teaching import toys
# from transformer.teaching.measuring import turns
# from transformer.views import plotting
#
# torch.manual_seed(0);

# %% [markdown]
# ## Which device?
#
# Torch names three that matter here: `cuda` (NVIDIA's GPUs, and AMD's), `mps` (Apple's), `cpu`.


# %%
def choose_device(name: str = "auto") -> torch.device:
    """A torch device from its name; auto is cuda, else mps, else cpu.

    ValueError where there is no such device.
    """
    if name == "auto":
        name = "mps" if torch.backends.mps.is_available() else "cpu"
        name = "cuda" if torch.cuda.is_available() else name
    try:
        if name.split(":")[0] not in ("cpu", "cuda", "mps"):
            raise ValueError
        if name == "cuda" and "LOCAL_RANK" in os.environ:  # one for each process
            name = f"cuda:{os.environ['LOCAL_RANK']}"
        return torch.empty(1, device=name).device
    except (RuntimeError, AssertionError, ValueError):
        raise ValueError(
            f"there is no device {name!r} here: choose cpu, cuda or mps, "
            "or leave it at auto"
        ) from None


# %% tags=["active-ipynb"]
# device = choose_device()
# gpu = torch.cuda.get_device_name() if device.type == "cuda" else ""
# print("this notebook runs on:", device, gpu)

# %% [markdown]
# Colab lends you a GPU under *Runtime, Change runtime type*.
#
# ## How precise must a number be?
#
# A number in fp32 takes 4 bytes. GPUs multiply 2-byte numbers several times faster. There are two kinds. **fp16** has 5 bits
# for the exponent: below $3 \cdot 10^{-8}$ everything becomes 0, and gradients can be smaller. **bf16** has the exponent of
# fp32 and fewer digits: nothing vanishes, all is rougher.

# %% tags=["active-ipynb"]
# small = torch.tensor([1e-3, 1e-6, 1e-8, 1e-10])
# for kind in (torch.float32, torch.bfloat16, torch.float16):
#     numbers = [f"{x:.5g}" for x in small.to(kind).tolist()]
#     print(f"{str(kind):15s}", numbers, " next after 1:", 1 + torch.finfo(kind).eps)

# %% [markdown]
# fp16 loses the two smallest numbers. bf16 keeps all four, but its next number after 1 is 1.0078.
#
# So on a GPU training takes bf16 where there is bf16, else fp16 with *loss scaling*: the loss is multiplied by a large number, so that
# gradients do not vanish, and the gradient is divided by it again before the update. The weights themselves stay in fp32 either
# way, and only products are done in short numbers ("autocast"). A CPU and Apple's GPU stay with fp32 unless you ask.

# %%
PRECISIONS = {  # what products multiply; "medium" is explained below
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "medium": torch.float32,
}
Precision = Literal["auto", "fp32", "bf16", "fp16", "medium"]


def choose_precision(device: torch.device, name: str = "auto") -> str:
    """fp32, bf16, fp16 or medium for a device.

    auto is bf16 on a GPU that has it, fp16 on an older GPU, and fp32 elsewhere.
    """
    if name == "auto" and device.type == "cuda":
        return "bf16" if torch.cuda.get_device_capability(device) >= (8, 0) else "fp16"
    if name not in ("auto", *PRECISIONS):
        known = ", ".join(PRECISIONS)
        raise ValueError(f"unknown precision {name!r}: choose one of auto, {known}")
    return "fp32" if name == "auto" else name


# %%
def autocast(device: torch.device, precision: str):
    """Inside this block matrix products are done in one of `PRECISIONS`."""
    if PRECISIONS[precision] == torch.float32:
        return nullcontext()
    return torch.autocast(device.type, PRECISIONS[precision])


def loss_scaler(device: torch.device, precision: str) -> torch.amp.GradScaler:
    """The scale for losses in fp16, which finds its size by itself; otherwise 1."""
    return torch.amp.GradScaler(device.type, enabled=precision == "fp16")


# %% [markdown]
# One more switch. On NVIDIA's GPUs since 2020 even an fp32 product can round its inputs (**TF32**: 10 bits after the point
# instead of 23) and be several times as fast. That is enough for training, and `transformer train` switches it on, unless fp32 is asked for by name:


# %%
def allow_tf32() -> None:
    """Let fp32 products on a CUDA GPU round to TF32; a CPU computes as before."""
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True


# %% [markdown]
# On a CPU torch has two libraries for fp32 products. The second is used after `torch.set_float32_matmul_precision("medium")`. On some CPUs it is faster and
# as exact; on others it rounds to bf16 inside. So it is off unless asked for (`--precision medium`);
# [notebook 20](20_speed.ipynb) measures it.


# %%
@contextmanager
def matmul_precision(name: str) -> Iterator[None]:
    """Inside this block torch's switch for fp32 products stands at this name.

    That is "medium" or "highest"; other names leave it as it is.
    """
    before = torch.get_float32_matmul_precision()
    new = name if name in ("medium", "highest") else before
    torch.set_float32_matmul_precision(new)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


# %% [markdown]
# ## How much arithmetic is a Transformer?
#
# Nearly all of it is matrix products. The product of an $a \times b$ and a $b \times c$ matrix takes $a \cdot b \cdot c$
# multiplications and as many additions: $2abc$ floating-point operations (FLOPs). So we can count on paper, part by part.


# %%
def attention_flops(c, T: float, S: float) -> float:
    """FLOPs of one multi-head attention: T queries over S keys (Section 3.2.2)."""
    d_k, d_v = c.d_k or c.d_model // c.h, c.d_v or c.d_model // c.h
    queries_and_output = T * c.d_model * c.h * (d_k + d_v)
    keys_and_values = S * c.d_model * c.h * (d_k + d_v)
    scores_and_mixture = T * S * c.h * (d_k + d_v)
    return 2 * (queries_and_output + keys_and_values + scores_and_mixture)


# %%
def forward_flops(c, S: float, T: float, parameters: int = 0) -> float:
    """FLOPs of one pass over a pair of S and T tokens through a model of config c.

    Matrix products only; a causal mask saves none here, as in most programs. Where c
    has a method of this name, that one counts. Of kinds not known here, half of the
    parameters are taken to multiply each source token, and half each target token.
    """
    if hasattr(c, "forward_flops"):
        return c.forward_flops(S, T)
    if not isinstance(c, PlainConfig):
        return parameters * (S + T)
    encoder = attention_flops(c, S, S) + 4 * S * c.d_model * c.d_ff
    decoder = attention_flops(c, T, T) + attention_flops(c, T, S)
    decoder += 4 * T * c.d_model * c.d_ff
    return c.N * (encoder + decoder) + 2 * T * c.d_model * c.vocab_size


# %%
def training_flops(c, S: float, T: float, parameters: int = 0) -> float:
    """FLOPs of training on one pair: the backward pass needs twice the forward's."""
    return 3 * forward_flops(c, S, T, parameters)


# %% [markdown]
# Training takes three times the forward pass: for $y = xW$ the backward pass needs the gradient with respect to $x$ and the one with respect
# to $W$, and each of them is a product as large as the first. Torch can count, too:

# %% tags=["active-ipynb"]
# def counted_by_torch(c, S, T):
#     model = Transformer(c)
#     with FlopCounterMode(display=False) as counter:
#         source, target = (torch.ones(1, n, dtype=torch.long) for n in (S, T))
#         model(source, target).sum().backward()
#     return counter.get_total_flops()
#
#
# tiny = TransformerConfig.preset("tiny", vocab_size=1000)
# formula, torchs = training_flops(tiny, 20, 25), counted_by_torch(tiny, 20, 25)
# print(f"formula {formula:,}  torch {torchs:,}")
# assert formula == torchs
# print("every product is counted")

# %% [markdown]
# Where does the work go? The base model with 37,000 types, for sentences of 10 to 2,000 tokens:

# %% tags=["active-ipynb"]
# base = TransformerConfig.preset("base", vocab_size=37_000)
# lengths = [10, 30, 100, 300, 1000, 2000]
# square, output = "scores and mixtures of values (n²)", "output projection"
# shares = {square: [], output: []}
# attentions, d_k = 3 * base.N, base.d_model // base.h  # in each pair of layers three
# for n in lengths:
#     total = forward_flops(base, n, n)
#     shares[square].append(attentions * 2 * n * n * base.h * (d_k + d_k) / total)
#     shares[output].append(2 * n * base.d_model * base.vocab_size / total)
# title = "the square counts in long sentences only"
# axes = ("tokens a sentence", "share of all FLOPs")
# plotting.lines(lengths, shares, *axes, title, log="x", markers=True);

# %% [markdown]
# For sentences of 30 tokens the $n^2$ of attention is 1% of all work, and the output projection is three tenths of it. Only
# beyond a thousand tokens does the $n^2$ cost more than the output. The rest, not drawn, is the projections of the heads and the
# position-wise networks.
#
# A rule of thumb says $6 N D$ for training: six FLOPs for each of $N$ parameters (here $N$ is not the number of layers) and each of $D$ tokens, because each parameter takes part in
# one multiplication and one addition a token forwards, and twice as many backwards. How close is it for the base model's 63.0 million?

# %% tags=["active-ipynb"]
# for n in (30, 1000):
#     exact = training_flops(base, n, n)
#     print(
#         f"{n:5,} tokens a side: exact {exact:.3g}, 6ND {6 * 63.0e6 * n:.3g} "
#         f"({6 * 63.0e6 * n / exact:.0%})"
#     )

# %% [markdown]
# Here $D$ counts the target's tokens. The encoder sees as many source tokens instead; the embedding matrix multiplies only at the output. The rule leaves out the $n^2$, which is why it falls behind on long sentences.
#
# ## How fast is this machine?
#
# The function below multiplies a large matrix by itself and looks at the clock (1 GFLOP/s is a billion FLOPs a second, 1 TFLOP/s a thousand of these). Little gets closer to what the machine can do; a model
# reaches a part of this rate.


# %%
def matmul_rate(
    device: torch.device, precision: str = "fp32", n: int | None = None, rounds: int = 5
) -> float:
    """FLOPs a second of an n x n matrix product in a precision, the best of rounds.

    n: 512 on a CPU, else 8,192, where it is not given.
    """
    n = n or (512 if device.type == "cpu" else 8192)
    x = torch.randn(n, n, generator=torch.Generator().manual_seed(0))
    x = x.to(device, PRECISIONS[precision])
    best = float("inf")
    with matmul_precision(precision):
        for _ in range(rounds + 1):  # the first one warms up
            wait_for(device)
            started = time.perf_counter()
            x @ x
            wait_for(device)
            best = min(best, time.perf_counter() - started)
    return 2 * n**3 / best


def wait_for(device: torch.device) -> None:
    """Wait until a GPU has done what it was given: it works while Python goes on."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


# %% tags=["active-ipynb"]
# precision = choose_precision(device)
# rate = matmul_rate(device, precision, rounds=100)
# where = f"{torch.get_num_threads()} threads on a CPU" if device.type == "cpu" else gpu
# print(f"{rate / 1e9:,.0f} GFLOP/s in {precision}, {where or device}")

# %% [markdown]
# Not every product is as fast. The numbers must also be fetched from memory: a matrix of $n \times n$ times one of $n \times m$ takes $2n^2m$ FLOPs, and
# reads or writes $n^2 + 2nm$ numbers. The FLOPs for each number (or each byte) are called *arithmetic intensity*. Training multiplies weights with all tokens of a batch at once (large $m$);
# writing a translation multiplies the same weights with one token (small $m$). One matrix, times more and more vectors, on one thread:

# %% tags=["active-ipynb"]
# n, threads = 2048, torch.get_num_threads()
# weights = torch.randn(n, n).to(device, PRECISIONS[precision])
# products = {
#     m: partial(torch.mm, mat2=torch.randn(n, m).to(weights)) for m in (1, 64, 256)
# }
# torch.set_num_threads(1)  # `turns` takes the time of one thread
# times = turns(products, weights, seconds=1.5)
# torch.set_num_threads(threads)
# for m, seconds in times.items():
#     flops, best = 2 * n * n * m, min(seconds)
#     print(
#         f"{m:3} at once: {flops / (n * n + 2 * n * m):4.0f} FLOPs a number, "
#         f"{1e3 * best:6.2f} ms, {flops / best / 1e9:,.0f} GFLOP/s"
#     )
# assert min(times[256]) / 256 < min(times[1]) / 2
# print("one of 256 vectors takes under half of the time that it takes alone")

# %% [markdown]
# A single vector makes the processor fetch the whole matrix for two FLOPs a number, so the arithmetic probably waits; many vectors share what is fetched. This is one reason for large batches.
#
# Newer CPUs have instructions that multiply bf16 numbers (AVX512-BF16, AMX); older ones imitate them, slowly.
# `matmul_rate(device, "bf16")` and `matmul_rate(device, "medium")` tell what they gain on a machine.
# Training gains less than products do, and a small model may even lose ([notebook 20](20_speed.ipynb)).

# %% [markdown]
# ## How long would the paper's run take here?
#
# The paper's base model: 100,000 updates, 25,000 tokens a side each. We take 30 tokens a sentence, somewhat more than the 23 words of the paper's test sentences
# ([10](10_data.ipynb)); that makes 833 pairs an update.

# %%
# The part of a machine's rate that a whole training loop reaches: a guess, about what
# published runs of the paper's models come to
UTILISATION = 1 / 3


def estimate_seconds(
    c,
    updates: int,
    batch_tokens: int,
    rate: float,
    utilisation: float = UTILISATION,
    length: int = 30,
) -> float:
    """Seconds for a training run on hardware that multiplies matrices at `rate`.

    rate: FLOPs a second, of which the part `utilisation` is reached; length: tokens of
    a sentence.
    """
    pairs = batch_tokens / length
    return updates * pairs * training_flops(c, length, length) / (rate * utilisation)


# %% tags=["active-ipynb"]
# days = {"here": estimate_seconds(base, 100_000, 25_000, rate) / 86_400}
# peaks = {
#     "P100 (2016), 9.5 TFLOP/s": 9.5e12,
#     "8 of them": 76e12,
#     "H100, bf16, 989 TFLOP/s": 989e12,
# }
# for name, peak in peaks.items():
#     days[name] = estimate_seconds(base, 100_000, 25_000, peak) / 86_400
# print("\n".join(f"{name:26s} {d:8.2f} days" for name, d in days.items()))

# %% [markdown]
# With a third of the rate a CPU needs months. The lines for GPUs are forecasts, from the paper's figure for the P100 and the H100's data sheet. One H100 we have measured, for 200 updates of each model on random ids: 25,000 a side with padding, 22,150 target tokens without, and the fast parts below:

# %% tags=["active-ipynb"]
# for name in ("base", "big"):
#     (row,) = read_rows(f"gpu-{name}")
#     print(
#         f"{name:4} {row['seconds_per_update']:.3f} s an update, "
#         f"{row['utilisation']:.0%} of one large product's rate, "
#         f"{row['peak_memory_gib']:.1f} GiB; {row['updates_of_the_paper']:,} updates: "
#         f"{row['hours_of_the_paper']:.1f} hours"
#     )

# %% [markdown]
# Base reaches 12% of what this GPU does in one large product, which is 10% of the data sheet's rate and not a third: its run would take over three times as long as forecast. For eight P100
# 0.44 days come out, and the paper's own figure is 0.5 days (12 hours); this proves nothing, as our third was guessed from such runs. The FLOPs in its Table 2 for base, $3.3 \cdot 10^{18}$, are counted as time times the hardware's rate. Ours count the products alone. For both of the paper's models,
# the share of the hardware's rate that went into products is:

# %% tags=["active-ipynb"]
# big = TransformerConfig.preset("big", vocab_size=37_000)
# for name, c, updates, hours in (("base", base, 100_000, 12), ("big", big, 300_000, 84)):
#     products = updates * 25_000 / 30 * training_flops(c, 30, 30)
#     capacity = hours * 3600 * 8 * 9.5e12
#     print(
#         f"{name:4} {3600 * hours / updates:.2f} s an update, products {products:.2e} "
#         f"FLOPs, {products / capacity:.0%} of what the GPUs could do"
#     )

# %% [markdown]
# This share is called **model FLOPs utilisation**. Big reaches more of it than base; on our H100, too, it reaches more of one product's rate (26% and 12%). Its matrices are larger, which may be the reason; we have not tested that. (At the 0.4 seconds an update that the paper names, base has 31%.) While training, the loop of [notebook 14](14_training.ipynb) shows the utilisation, by this meter:


# %%
class Meter:
    """Counts target tokens and FLOPs; `read` gives what was done a second."""

    def __init__(self, config, peak: float, parameters: int = 0):
        self.config = config
        self.peak = peak  # FLOPs a second of all processes together
        self.parameters = parameters  # what kinds not known here are counted by
        self.restart()

    def restart(self) -> None:
        """Begin to count anew."""
        self.tokens = self.flops = 0
        self.started = time.perf_counter()

    def add(self, pairs: int, source_tokens: int, target_tokens: int) -> None:
        """One update: so many pairs, with so many real tokens in all on either side."""
        self.tokens += target_tokens
        source, target = source_tokens / pairs, target_tokens / pairs
        flops = training_flops(self.config, source, target, self.parameters)
        self.flops += pairs * flops

    def read(self) -> dict[str, float]:
        """{"tokens_per_second", "utilisation"} since the beginning, or `restart`."""
        seconds = max(1e-9, time.perf_counter() - self.started)
        return {
            "tokens_per_second": round(self.tokens / seconds),
            "utilisation": round(self.flops / seconds / self.peak, 3),
        }


# %% [markdown]
# ## How much memory?
#
# Two things fill it. The *state* has a fixed size: weights, gradients and Adam's two averages, 16 bytes a parameter in fp32. The *activations* are what the forward pass keeps for the
# backward pass, and grow with the batch. `saved_tensors_hooks` shows what torch keeps. On the `meta` device tensors have shapes but no numbers, so asking costs no memory. Here is the
# paper's batch of 25,000 tokens a side, in the base model, in sentences of 30 tokens and of 1,000:

# %% tags=["active-ipynb"]
# def kept_for_backward(model, ids, with_loss):
#     """Bytes that a forward pass keeps, besides the weights."""
#     kept = {}
#
#     def keep(tensor):
#         storage = tensor.untyped_storage()
#         kept[storage._cdata] = storage  # views of a tensor share its storage
#         return tensor
#
#     with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
#         x = model.states(ids, model.encode(ids), model.mask(ids))
#         if with_loss:
#             F.cross_entropy(model.output(x).flatten(0, 1), ids.flatten())
#     weights = {p.untyped_storage()._cdata for p in model.parameters()}
#     return sum(storage.nbytes() for key, storage in kept.items() if key not in weights)

# %% tags=["active-ipynb"]
# with torch.device("meta"):
#     model = Transformer(base)
# state = 16 * sum(p.numel() for p in model.parameters())
# print(f"state {state / 1e9:.1f} GB")
# for n in (30, 1000):
#     ids = torch.ones(25_000 // n, n, dtype=torch.long, device="meta")
#     layers, everything = (kept_for_backward(model, ids, loss) for loss in (False, True))
#     print(
#         f"sentences of {n:5,}: layers {layers / 1e9:6.1f} GB, "
#         f"{layers / 4 / (ids.numel() * 12):,.0f} numbers a token and layer; "
#         f"logits and loss {(everything - layers) / 1e9:.1f} GB"
#     )

# %% [markdown]
# The layers of the base model keep about ten thousand numbers a token and layer, so that theirs take nearly twelve times the memory of the state for this batch; the paper spread them over eight
# GPUs. In long sentences the tables of attention weights come on top, with numbers for each head and pair of positions. Logits and loss take nearly four times the state, and in the backward pass their gradient takes as much again.
# A batch that does not fit can be taken in parts, whose gradients are added up ("A batch in parts" below); and shorter numbers make most of the activations smaller.
#
# `peak_memory` tells what a run has needed; the progress bar of [notebook 14](14_training.ipynb) shows it.


# %%
def peak_memory(device: torch.device) -> float:
    """The most memory used so far, in GiB: of a CUDA GPU, otherwise of this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**30
    status = Path("/proc/self/status")  # Linux; getrusage adds what the parent had used
    found = status.is_file() and re.search(r"VmHWM:\s+(\d+)", status.read_text("utf8"))
    if found:
        return int(found[1]) / 2**20
    try:
        import resource
    except ImportError:  # Windows
        return float("nan")
    bytes_each = 1 if platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * bytes_each / 2**30


# %% [markdown]
# ## Faster parts
#
# The model's code stays as the paper writes it, and a model is built from parts ([notebook 08](08_model.ipynb)). `transformer.fast` has parts with the same
# parameters that give the same results within rounding, and never write the largest tables. One is attention by torch's *kernel* (a kernel is a program for one operation), of
# the kind called *flash attention* (Dao et al., 2022), which never holds the whole table of attention weights. The other is a loss that never holds the whole
# table of logits $z = x E^\top$.

# %% [markdown]
# Each row of logits is needed only briefly, for its loss and its gradient (an exercise of [notebook 06](06_embeddings.ipynb); $q$ is 1 on the right token, or
# smoothed as in [notebook 13](13_regularization.ipynb)):
#
# $$\frac{\partial\, loss}{\partial z} = \mathrm{softmax}(z) - q$$
#
# So this loss takes some rows of $x$, computes their logits, loss *and* gradient at once, and forgets the logits.
#
# What is it worth here? One forward and backward pass of a small model, with its loss, the plain way and the fast way, taking turns (without dropout, so that both losses must be equal within rounding; both parts together):

# %% tags=["active-ipynb"]
# c = TransformerConfig(4000, d_model=128, d_ff=512, N=2, h=4, P_drop=0.0)
# tokens = torch.randint(3, 4000, (32, 30))
# model, quick = Transformer(c), Transformer(c, FAST)
# quick.load_state_dict(model.state_dict())
# mask = torch.ones(32, 1, 1, 30, dtype=torch.bool)
#
#
# def plain_way():
#     logits = model(tokens, tokens[:, :-1]).flatten(0, 1)
#     return F.cross_entropy(
#         logits, tokens[:, 1:].flatten(), label_smoothing=0.1, reduction="sum"
#     )
#
#
# def fast_way():
#     states = quick.states(tokens[:, :-1], quick.encode(tokens), mask)
#     # a sum over tokens, smoothed by 0.1, as above
#     return projected_loss(states, quick.output.weight, tokens[:, 1:])

# %% tags=["active-ipynb"]
# def seconds(loss_of):
#     started = time.perf_counter()
#     loss_of().backward()
#     return time.perf_counter() - started
#
#
# times = [(seconds(plain_way), seconds(fast_way)) for _ in range(4)]
# middle = sorted(plain / fast for plain, fast in times[1:])[1]  # the first warms up
# losses = f"losses {plain_way().item():.3f} and {fast_way().item():.3f}"
# print(f"the fast way runs at {middle:.2f} times the plain way's speed; {losses}")

# %% tags=["active-ipynb"]
# assert abs(plain_way().item() / fast_way().item() - 1) < 1e-5
# plain_gradients = torch.autograd.grad(plain_way(), list(model.parameters()))
# fast_gradients = torch.autograd.grad(fast_way(), list(quick.parameters()))
# for a, b in zip(plain_gradients, fast_gradients):
#     assert torch.allclose(a, b, rtol=1e-3, atol=1e-3 * a.abs().max().item())
# print("same loss, same gradients")

# %% [markdown]
# ## Several processes
#
# Several GPUs usually each hold a copy of the model, work on a part of the batch, and add up the gradients before each update. All processes start from the same weights and make the same updates, so the copies never differ. The cell starts two
# processes on this computer, which train a small network in this way (`toys.work_together`: the gradients are added up by `all_reduce`), and then
# a single one that does the whole batch.

# %% tags=["active-ipynb"]
# def trained_by(count, batch=512):
#     with tempfile.TemporaryDirectory() as folder:
#         spawn(toys.work_together, (count, folder, batch), nprocs=count)
#         return [torch.load(f"{folder}/{rank}.pt") for rank in range(count)]
#
#
# first, second = trained_by(2)
# (alone,) = trained_by(1)
# for name, weight in first["weights"].items():
#     assert torch.equal(weight, second["weights"][name])
# difference = max(
#     (first["weights"][name] - weight).abs().max().item()
#     for name, weight in alone["weights"].items()
# )
# assert difference < 1e-9
# print(
#     "both processes have the same weights; "
#     f"those of one process alone differ by {difference:.0e}"
# )
# for batch, ran in ((512, first), (4096, trained_by(2, 4096)[0])):
#     times = {part: ran[part] for part in ("computing", "waiting", "exchanging")}
#     share = times["exchanging"] / sum(times.values())
#     said = ", ".join(f"{ms:.1f} ms {part}" for part, ms in times.items())
#     print(f"batch of {batch:5,}, an update: {said} ({share:.0%} of it)")
#     (one,) = trained_by(1, batch)
#     print(f"                one process: {one['computing']:.1f} ms computing")

# %% [markdown]
# What is exchanged are all gradients, once an update, whatever the size of the batch; computing grows with the batch. So in a large batch the exchange is a smaller part of the time; for a small one two processes may even be slower than one. The process that is ready first waits for the other.

# %% [markdown]
# Torch does the same with one process a GPU, started by `torchrun`. The processes talk through a library: NCCL between GPUs, Gloo between CPUs.
# (On several machines `torchrun` is started on each, with the address of the first one, and a `--folder` on a disk that all of them see.)
#
# ```
# torchrun --nproc-per-node 2 -m transformer train --accumulate 2
# ```
#
# `--accumulate` is the number of batches whose gradients make one update; the processes share them out, so it must be a multiple of their
# number. The number of processes changes the time, and the result by roundings only (which grow in a long run, [20](20_speed.ipynb)).

# %% [markdown]
# ## A batch in parts
#
# **Parts of a batch add up to the batch**, but only if each part's loss is a *sum*, and the division by the number of target
# tokens comes at the end. The mean of the parts' means is another number as soon as the parts differ in length:

# %% tags=["active-ipynb"]
# x, E = torch.randn(40, 30, 128), torch.randn(8000, 128)
# gold = torch.randint(1, 8000, (40, 30))
# gold[torch.arange(30) >= torch.arange(40)[:, None]] = 0  # row n: n tokens, up to 30
# parts = slice(0, 20), slice(20, 40)
# losses = [projected_loss(x[rows], E, gold[rows]) for rows in parts]
# counts = [(gold[rows] != 0).sum() for rows in parts]
# whole = projected_loss(x, E, gold) / (gold != 0).sum()
# mean_of_means = (losses[0] / counts[0] + losses[1] / counts[1]) / 2
# assert torch.allclose(sum(losses) / sum(counts), whole)
# assert not torch.allclose(mean_of_means, whole)
# print(
#     f"whole {whole:.4f}, parts {sum(losses) / sum(counts):.4f}, "
#     f"mean of means {mean_of_means:.4f}"
# )

# %% [markdown]
# ## Exercises
#
# Replace `...` by your own lines and run the cell; it says what is wrong, or "right".
#
# **1.** How many bytes does training keep for a model with Adam? Count the state in fp32, and the activations, of which the forward pass keeps
# `kept` numbers for each token and layer.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.hardware import check_training_bytes
#
#
# def training_bytes(parameters, tokens, layers, kept, bytes_a_number):
#     """Bytes; bytes_a_number is that of the activations (4 or 2)."""
#     ...
#
#
# check_training_bytes(training_bytes)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def training_bytes(parameters, tokens, layers, kept, bytes_a_number):
#     state = 4 * 4 * parameters
#     activations = tokens * layers * kept
#     return state + activations * bytes_a_number
# ```
#
# Shorter activations (bf16) leave the state as it is, because weights and averages stay in fp32.
# </details>
#
# **2.** In one encoder layer, at which sentence length do scores and mixtures (the $n^2$ part) take as much arithmetic as everything
# else in the layer?

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.hardware import check_crossing
#
#
# def crossing(d_model, d_ff):
#     """The length n at which both parts are equal."""
#     ...
#
#
# check_crossing(crossing)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def crossing(d_model, d_ff):
#     projections = 8 * d_model**2
#     network = 4 * d_model * d_ff
#     square = 4 * d_model
#     return (projections + network) / square
# ```
#
# The first two grow with $n$, the last with $n^2$. For the base model they are equal at $n = 6\,d_{model} = 3072$.
# </details>

# %% [markdown]
# ## Next
#
# [12 Optimizer](12_optimizer.ipynb): how weights follow the gradient.
