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
# The paper trained on eight P100 GPUs (Section 5.2). You may have one GPU, a laptop, or a session in Colab. This notebook
# finds out what there is, counts the arithmetic that a Transformer needs, computes how long a run will take, and makes those
# changes that pay most without touching the model's mathematics.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     %pip install -q git+https://github.com/OWNER/annotated-attention

# %%
import os
import re
import time
import types
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import distributed
from torch.autograd.function import once_differentiable

from transformer.attention import KeyValueCache, MultiHeadAttention, scaled_dot_product_attention
from transformer.embeddings import Embedding
from transformer.model import Transformer
from transformer.stacks import Residual

# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# from torch.utils.flop_counter import FlopCounterMode
#
# from transformer import plotting
# from transformer.model import TransformerConfig, encoder_layer
#
# torch.manual_seed(0);

# %% [markdown]
# ## Which device?
#
# Torch names three that matter here: `cuda` (NVIDIA's GPUs, and AMD's under ROCm), `mps` (Apple's), `cpu`.

# %%
def choose_device(name="auto"):
    """A torch device from its name; auto is cuda, else mps, else cpu. ValueError where there is no such device."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        if name.split(":")[0] not in ("cpu", "cuda", "mps"):
            raise ValueError
        if name == "cuda" and "LOCAL_RANK" in os.environ:  # each of torchrun's processes has a GPU of its own
            name = f"cuda:{os.environ['LOCAL_RANK']}"
        return torch.empty(1, device=name).device
    except (RuntimeError, AssertionError, ValueError):
        raise ValueError(f"there is no device {name!r} here: choose cpu, cuda or mps, or leave it at auto") from None


# %% tags=["active-ipynb"]
# device = choose_device()
# print("this notebook runs on:", device, torch.cuda.get_device_name() if device.type == "cuda" else "")

# %% [markdown]
# No GPU? All notebooks run on a CPU too. Colab lends you a GPU under *Runtime, Change runtime type*.
#
# ## How precise must a number be?
#
# A number in fp32 takes 4 bytes. GPUs multiply 2-byte numbers several times faster. There are two kinds. **fp16** has 5 bits
# for the exponent: below $3 \cdot 10^{-8}$ everything becomes 0, and many gradients are smaller. **bf16** has the exponent of
# fp32 and fewer digits: nothing vanishes, all is rougher.

# %% tags=["active-ipynb"]
# small = torch.tensor([1e-3, 1e-6, 1e-8, 1e-10])
# for kind in (torch.float32, torch.bfloat16, torch.float16):
#     print(f"{str(kind):15s}", [f"{x:.5g}" for x in small.to(kind).tolist()], " next after 1:", 1 + torch.finfo(kind).eps)

# %% [markdown]
# fp16 loses the two smallest. bf16 keeps all four, but its next number after 1 is 1.0078: between the two there is none.
#
# So bf16 where the GPU has it. Otherwise fp16, with a trick: multiply the loss by a large number, so that gradients do not
# vanish, and divide the gradient again before the update (**loss scaling**). The weights themselves stay in fp32 either
# way; only products are done in short numbers ("autocast"). A CPU stays with fp32 unless you ask for bf16; further down
# you see whether yours gains by it.

# %%
# what products multiply; "medium" is explained below
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "medium": torch.float32}


def choose_precision(device, name="auto"):
    """fp32, bf16, fp16 or medium for a device; auto is bf16 on a GPU that has it, fp16 on an older GPU, fp32 elsewhere."""
    if name == "auto" and device.type == "cuda":
        return "bf16" if torch.cuda.get_device_capability(device) >= (8, 0) else "fp16"
    if name != "auto" and name not in PRECISIONS:
        raise ValueError(f"unknown precision {name!r}: choose one of auto, {', '.join(PRECISIONS)}")
    return "fp32" if name == "auto" else name


# %%
def autocast(device, precision):
    """Inside this block matrix products are done in a precision of `choose_precision`."""
    if PRECISIONS[precision] == torch.float32:
        return nullcontext()
    return torch.autocast(device.type, PRECISIONS[precision])


# %%
def autocast_off(device):
    """Inside this block autocast is off, and products keep the precision of their inputs; on mps there is nothing to switch off."""
    return torch.autocast(device.type, enabled=False) if device.type in ("cpu", "cuda") else nullcontext()


def loss_scaler(device, precision):
    """The scale for losses in fp16 (it finds its size by itself); in other precisions it is 1 and does nothing."""
    return torch.amp.GradScaler(device.type, enabled=precision == "fp16")


# %% [markdown]
# One more switch. On NVIDIA's GPUs since 2020 even an fp32 product can round its inputs (**TF32**: 10 bits after the point
# instead of 23) and be several times as fast. That is enough for training, and the commands switch it on:

# %%
def allow_tf32():
    """Let fp32 matrix products on a CUDA GPU round their inputs to TF32; a CPU computes as before."""
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True


# %% [markdown]
# A CPU, too, has more than one library for fp32 products: the one that torch was built with (MKL or OpenBLAS), and oneDNN.
# Torch takes the first, and after `torch.set_float32_matmul_precision("medium")` the second. On some CPUs oneDNN is faster and
# as exact; on others it rounds to bf16 inside. So it is off unless asked for (`--precision medium`);
# [notebook 20](20_speed.ipynb) measures it.

# %%
@contextmanager
def matmul_precision(name):
    """Inside this block torch's switch for fp32 products stands at "medium" or "highest"; other names leave it as it is."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name if name in ("medium", "highest") else before)
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
def attention_flops(c, T, S):
    """FLOPs of one multi-head attention: T queries over S keys of one sentence (Section 3.2.2)."""
    d_k, d_v = c.d_k or c.d_model // c.h, c.d_v or c.d_model // c.h
    projections = T * c.d_model * c.h * d_k + S * c.d_model * c.h * (d_k + d_v) + T * c.h * d_v * c.d_model
    return 2 * (projections + T * S * c.h * (d_k + d_v))  # scores, then the mixture of values


# %%
def forward_flops(c, S, T):
    """FLOPs of one pass over a sentence pair of S and T tokens through a model of `TransformerConfig` c.

    Matrix products only; a causal mask saves none here, as in most programs. A configuration that has a method of this
    name counts for itself: those of notebooks 01 and 02.
    """
    if hasattr(c, "forward_flops"):
        return c.forward_flops(S, T)
    encoder = attention_flops(c, S, S) + 4 * S * c.d_model * c.d_ff
    decoder = attention_flops(c, T, T) + attention_flops(c, T, S) + 4 * T * c.d_model * c.d_ff
    return c.N * (encoder + decoder) + 2 * T * c.d_model * c.vocab_size


# %%
def training_flops(c, S, T):
    """FLOPs of training on one pair: the backward pass needs two products for each of the forward pass."""
    return 3 * forward_flops(c, S, T)


# %% [markdown]
# Why three times? For $y = xW$ the backward pass needs the gradient with respect to $x$ and the one with respect to $W$, a
# product as large as the first each. Torch can count, too:

# %% tags=["active-ipynb"]
# def counted_by_torch(c, S, T):
#     model = Transformer(c)
#     with FlopCounterMode(display=False) as counter:
#         model(torch.ones(1, S, dtype=torch.long), torch.ones(1, T, dtype=torch.long)).sum().backward()
#     return counter.get_total_flops()
#
# tiny = TransformerConfig.preset("tiny", vocab_size=1000)
# print(f"formula {training_flops(tiny, 20, 25):,}  torch {counted_by_torch(tiny, 20, 25):,}")
# assert training_flops(tiny, 20, 25) == counted_by_torch(tiny, 20, 25)

# %% [markdown]
# Where does the work go? The base model with 37,000 types, for sentences of 10 to 2,000 tokens:

# %% tags=["active-ipynb"]
# base, lengths = TransformerConfig.preset("base", vocab_size=37_000), [10, 30, 100, 300, 1000, 2000]
# scores = {n: 2 * 3 * base.N * n * n * base.h * 128 / forward_flops(base, n, n) for n in lengths}
# output = {n: 2 * n * base.d_model * base.vocab_size / forward_flops(base, n, n) for n in lengths}
# plotting.lines(lengths, {"scores and mixtures of values (n²)": scores.values(), "output projection": output.values()},
#                "tokens a sentence", "share of all FLOPs", log="x", markers=True);

# %% [markdown]
# For sentences of 30 tokens the famous $n^2$ is hardly worth mentioning (1%), and the output projection is three tenths of
# everything. Only beyond a thousand tokens does the $n^2$ cost more than the output. The rest, not drawn, is the projections
# of the heads and the position-wise networks.
#
# ## How fast is this machine?
#
# Multiply two large matrices and look at the clock. Hardly anything gets closer to what the machine can do; a model reaches a part of it.

# %%
def matmul_rate(device, precision="fp32", n=None, rounds=5):
    """FLOPs a second of an n x n matrix product in a precision: the best of some rounds (n: 512 on a CPU, else 8,192)."""
    n = n or (512 if device.type == "cpu" else 8192)
    x = torch.randn(n, n, generator=torch.Generator().manual_seed(0)).to(device, PRECISIONS[precision])
    best = float("inf")
    with matmul_precision(precision):
        for _ in range(rounds + 1):  # the first one warms up
            wait_for(device)
            started = time.perf_counter()
            x @ x
            wait_for(device)
            best = min(best, time.perf_counter() - started)
    return 2 * n**3 / best


def wait_for(device):
    """Wait until a GPU has done what it was given: it works while Python goes on."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


# %% tags=["active-ipynb"]
# rate = matmul_rate(device, choose_precision(device))
# print(f"{rate / 1e9:,.0f} GFLOP/s in {choose_precision(device)}, {torch.get_num_threads()} threads on a CPU")

# %% [markdown]
# Newer CPUs have instructions that multiply bf16 numbers (AVX512-BF16, AMX); older ones imitate them, slowly. Which kind is
# yours? `precision_hint` multiplies each way, and says so where another precision is at least 1.5 times as fast. Training gains
# less than products do (notebook 20), but it is worth a try; `transformer train` prints the same hint.

# %%
def precision_hint(device, precision="auto"):
    """A sentence for whoever trains in fp32 on a CPU that multiplies another way at 1.5 times the rate or more; otherwise "". """
    if device.type != "cpu" or choose_precision(device, precision) != "fp32":
        return ""
    rate = matmul_rate(device, rounds=2)
    for name in ("bf16", "medium"):
        ratio = matmul_rate(device, name, rounds=2) / rate
        if ratio >= 1.5:
            return f"this CPU multiplies {ratio:.1f} times as fast with --precision {name} as in fp32: try it"
    return ""


# %% tags=["active-ipynb"]
# print(precision_hint(torch.device("cpu")) or "nothing to try: no other way is 1.5 times as fast as fp32 on this CPU")

# %% [markdown]
# ## How long would the paper's run take here?
#
# The paper's base model: 100,000 updates, 25,000 tokens a side each. At 30 tokens a sentence that is 833 pairs an update.

# %%
UTILISATION = 1 / 3  # the part of a machine's rate that a whole training loop reaches: a guess, about what published runs of the paper's models come to


def estimate_seconds(c, updates, batch_tokens, rate, utilisation=UTILISATION, length=30):
    """Seconds for a training run on hardware that multiplies matrices at `rate` FLOPs a second, of which `utilisation` is reached."""
    pairs = batch_tokens / length
    return updates * pairs * training_flops(c, length, length) / (rate * utilisation)


# %% tags=["active-ipynb"]
# days = {"here": estimate_seconds(base, 100_000, 25_000, rate) / 86_400}
# for name, peak in (("P100 (2016), 9.5 TFLOP/s", 9.5e12), ("8 of them", 76e12), ("H100, bf16, 989 TFLOP/s", 989e12)):
#     days[name] = estimate_seconds(base, 100_000, 25_000, peak) / 86_400
# print("\n".join(f"{name:26s} {d:8.2f} days" for name, d in days.items()))

# %% [markdown]
# A CPU would need many months, or years, even one that reaches twice that share (notebook 20). For eight P100 we get 0.44 days, and the paper's own figure is 12 hours: our guess of
# a third is a little too high, and 29% would fit. Its FLOPs in Table 2, $3.3 \cdot 10^{18}$, are counted generously, as time times the hardware's
# rate. Ours count the products alone:

# %% tags=["active-ipynb"]
# ours = 100_000 * 25_000 / 30 * training_flops(base, 30, 30)
# print(f"products: {ours:.2e} FLOPs; 12 h on 8 P100 at 9.5 TFLOP/s: {12 * 3600 * 8 * 9.5e12:.2e}; ratio {ours / (12 * 3600 * 76e12):.0%}")

# %% [markdown]
# That ratio is called **model FLOPs utilisation**: which part of the hardware's power went into the products that the
# model needs. While training, the loop of notebook 14 shows it, with this meter:

# %%
class Meter:
    """Counts target tokens and FLOPs; `read` gives what was done a second."""

    def __init__(self, config, peak):
        self.config, self.peak = config, peak  # peak: FLOPs a second of all processes together
        self.tokens = self.flops = 0
        self.started = time.perf_counter()

    def add(self, pairs, source_tokens, target_tokens):
        """One update: so many pairs, with so many real tokens in all on either side."""
        self.tokens += target_tokens
        self.flops += pairs * training_flops(self.config, source_tokens / pairs, target_tokens / pairs)

    def read(self):
        """{"tokens_per_second", "utilisation"} since the beginning, or since `restart`."""
        seconds = max(1e-9, time.perf_counter() - self.started)
        return {"tokens_per_second": round(self.tokens / seconds), "utilisation": round(self.flops / seconds / self.peak, 3)}

    def restart(self):
        self.tokens, self.flops, self.started = 0, 0, time.perf_counter()


# %%
def peak_memory(device):
    """The most memory used so far, in GiB: of the GPU where there is one, otherwise of this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**30
    if Path("/proc/self/status").is_file():  # Linux; getrusage would add what the process that started this one had used
        return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text(encoding="utf8"))[1]) / 2**20
    try:
        import resource
    except ImportError:  # Windows
        return float("nan")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**30  # macOS counts bytes


# %% [markdown]
# ## The table of logits that nobody needs
#
# For 25,000 target tokens and 37,000 types the logits $z = x E^\top$ (decoder's output times embedding matrix) are 3.7 GB in
# fp32, their gradient as much again. Yet each row is needed for a moment only: for one number, the loss, and its gradient
# (the exercise of notebook 06):
#
# $$\frac{\partial\, loss}{\partial z} = \mathrm{softmax}(z) - q ,$$
#
# $q$ being 1 on the right token, or smoothed (notebook 13). So take some rows of $x$, compute their logits, loss *and* gradient
# at once, keep $\partial loss / \partial x$ and the sum of $\partial loss / \partial E$, and forget the logits.

# %%
def chunk_gradient(z, gold, epsilon):
    """Loss of logits z (n, V), summed, and its gradient (n, V).

    Targets: 1 - epsilon on gold (n,), and epsilon / V on every type (the label smoothing of notebook 13).
    """
    at_gold, mean, top = z.gather(1, gold[:, None])[:, 0], z.mean(dim=1), z.amax(dim=1)
    p = z.softmax(dim=1)
    log_sum = top - p.amax(dim=1).log()  # log of the sum of exponentials, from the largest entry
    loss = (log_sum - (1 - epsilon) * at_gold - epsilon * mean).sum()
    p -= epsilon / z.shape[1]
    p.scatter_add_(1, gold[:, None], p.new_full((len(gold), 1), epsilon - 1))
    return loss, p


# %% [markdown]
# A `torch.autograd.Function` is an operation whose backward pass is written by hand; `ctx` carries what `forward` keeps for it.

# %%
class ChunkedLoss(torch.autograd.Function):
    """The summed loss of x (n, d_model) projected by E (V, d_model), some rows at a time; see `projected_loss`."""

    @staticmethod
    def forward(ctx, x, E, gold, epsilon, rows, wanted):
        short = (x[:1] @ E[:1].T).dtype  # bf16 or fp16 inside `autocast`, otherwise x's own
        total, to_x, to_E = x.new_zeros(()), torch.empty_like(x), torch.zeros_like(E)
        with autocast_off(x.device):
            weight = E.to(short)
            for i in range(0, len(x), rows):
                part = x[i:i + rows].to(short)
                loss, gradient = chunk_gradient((part @ weight.T).to(x.dtype), gold[i:i + rows], epsilon)
                total = total + loss
                if not wanted:  # only the loss
                    continue
                gradient = gradient.to(short)
                to_x[i:i + rows] = gradient @ weight
                if short == E.dtype:
                    to_E.addmm_(gradient.T, part)
                else:
                    to_E += gradient.T @ part
        ctx.save_for_backward(to_x, to_E)
        return total

    @staticmethod
    def backward(ctx, gradient):
        to_x, to_E = ctx.saved_tensors
        return gradient * to_x, gradient * to_E, None, None, None, None


# %%
def projected_loss(x, E, gold, epsilon=0.1, pad_id=0):
    """Label-smoothed cross-entropy of the logits x E^T, summed over real tokens, without keeping the logits.

    x: (B, T, d_model), E: (V, d_model), gold: (B, T) ids -> a number, in nats; equal to
    `label_smoothing_loss` of notebook 13 with reduction="sum", gradients included. ValueError for an epsilon outside 0 to 1.
    """
    if not 0 <= epsilon <= 1:
        raise ValueError(f"epsilon must be between 0 and 1, not {epsilon}")
    real = gold != pad_id
    return ChunkedLoss.apply(x[real], E, gold[real], epsilon, chunk_rows(E), torch.is_grad_enabled())


def chunk_rows(E):
    """Rows of logits over the types of E that are computed at once: 8 MiB of them on a CPU (they stay in its cache), else 512 MiB."""
    space = 8 * 2**20 if E.device.type == "cpu" else 512 * 2**20
    return max(1, space // (4 * len(E)))


# %% tags=["active-ipynb"]
# x, E, gold = torch.randn(40, 30, 128, requires_grad=True), torch.randn(8000, 128, requires_grad=True), torch.randint(0, 8000, (40, 30))
# def plain_loss(x, E, gold):
#     return F.cross_entropy((x @ E.T).flatten(0, 1), gold.flatten(), label_smoothing=0.1, ignore_index=0, reduction="sum")
# ours, plain = (torch.autograd.grad(f(x, E, gold), (x, E)) for f in (projected_loss, plain_loss))
# assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-4) for a, b in zip(ours, plain))

# %% [markdown]
# ## One product instead of three, and attention without a table
#
# From here to "Several processes" the same model is made faster and smaller. Nothing later needs the details:
# `accelerate(model)` switches attention, dropout and norms over, and each step has a check.
#
# In self-attention, queries, keys and values are three products with the same input. Laid side by side the three matrices
# are one, and one large product is quicker than three small ones. And torch has *kernels* (a kernel is a program for one
# operation) of the kind called *flash attention* (Dao et al., 2022), which never write the whole table of weights. Both change nothing in the
# result beyond rounding. The model's own code stays as the paper writes it; a finished model is switched over.

# %% [markdown]
# A kernel is not always quicker. With torch 2.13 on a two-core CPU and sentences of 16 to 128 tokens it took up to ten times as long as the formula at "medium",
# up to twice in bf16 (measured once, not recorded). So at "medium" and in bf16 the formula is used below 256 keys.

# %%
class PackedProduct(torch.autograd.Function):
    """x (..., d) times several weights (n_i, d) laid side by side -> (..., sum of n_i). The joined weight is not kept for backward but joined again."""

    @staticmethod
    def forward(ctx, x, *weights):
        ctx.save_for_backward(x, *weights)
        return F.linear(x, torch.cat(weights))

    @staticmethod
    def backward(ctx, gradient):
        x, *weights = ctx.saved_tensors
        to_x = gradient @ torch.cat(weights).to(gradient.dtype)
        to_weights = gradient.flatten(0, -2).T @ x.flatten(0, -2).to(gradient.dtype)
        return to_x, *to_weights.split([len(weight) for weight in weights])


# %%
def packed_projection(x, *linears):
    """Several linear maps of the same x as one product: x (..., d) -> one tensor for each of them."""
    if any("forward" in vars(linear) for linear in linears):  # inside `packed_weights` each uses its packed copy
        return [linear(x) for linear in linears]
    product = PackedProduct.apply(x, *(linear.weight for linear in linears))
    return product.split([linear.out_features for linear in linears], dim=-1)


# %%
def fast_forward(self, query, key, value, mask=None, cache=None):
    """`MultiHeadAttention.forward` with packed projections and torch's kernel; recording and caches take the plain way.

    Every query needs at least one key it may attend to.
    """
    if self.record is not None or cache is not None or self.W_Q.bias is not None or key is not value:
        return MultiHeadAttention.forward(self, query, key, value, mask, cache)
    if query is key:
        q, k, v = packed_projection(query, self.W_Q, self.W_K, self.W_V)
    else:
        q, (k, v) = self.W_Q(query), packed_projection(key, self.W_K, self.W_V)
    output = torch_attention(self.split(q), self.split(k), self.split(v), mask)
    return self.W_O(output.transpose(1, 2).flatten(2))


# %%
def torch_attention(q, k, v, mask):
    """Torch's kernel; on a CPU the formula of notebook 04 for fewer than 256 keys in bf16 or at "medium".

    There the kernel is the slower of the two (torch 2.13). Its backward pass in bf16 is slow at any length, so it gets fp32.
    """
    if q.device.type != "cpu":
        return F.scaled_dot_product_attention(q, k, v, mask)
    other = q.dtype == torch.bfloat16 or torch.get_float32_matmul_precision() == "medium"
    if other and k.shape[-2] < 256:
        return scaled_dot_product_attention(q, k, v, mask)[0]
    wide = torch.promote_types(q.dtype, torch.float32)
    with torch.autocast("cpu", enabled=False):
        return F.scaled_dot_product_attention(q.to(wide), k.to(wide), v.to(wide), mask).to(q.dtype)


# %% [markdown]
# On a CPU one more thing may cost more than it should: dropout. Torch draws a random number for each entry. But to keep an entry with probability 0.7 sixteen random
# bits are enough, and one draw of 64 bits gives four entries. What that is worth, notebook 20 measures; on some machines nothing.

# %%
def random_keep(x, p):
    """1 where dropout keeps an entry, in the shape of x: each is lost (0) with probability p, rounded to a multiple of 1/65,536."""
    bits = torch.empty((x.numel() + 3) // 4, dtype=torch.int64, device=x.device).random_(-2**63, None).view(torch.int16)
    keep = bits[:x.numel()].view(x.shape) >= round(p * 2**16) - 2**15
    return keep.view(torch.uint8)  # torch multiplies by bytes several times as fast as by booleans


# %%
class BitDropout(torch.autograd.Function):
    """Dropout from 16 random bits an entry: each is 0 with probability p, and else multiplied by 1/(1-p)."""

    @staticmethod
    def forward(ctx, x, p):
        keep = random_keep(x, p)
        ctx.save_for_backward(keep)
        ctx.scale = 1 / (1 - p)
        return (x * keep).mul_(ctx.scale)

    @staticmethod
    def backward(ctx, gradient):
        return (gradient * ctx.saved_tensors[0]).mul_(ctx.scale), None


# %%
def fast_dropout(self, x):
    """`nn.Dropout.forward`, by `BitDropout` on a CPU."""
    if not self.training or self.p in (0, 1) or x.device.type != "cpu":
        return F.dropout(x, self.p, self.training)
    return BitDropout.apply(x, self.p)


# %% tags=["active-ipynb"]
# dropped = BitDropout.apply(torch.ones(1000, 1000), 0.3)
# print(f"zero: {(dropped == 0).float().mean():.4f}, the others: {dropped.max():.4f}, mean: {dropped.mean():.4f}")

# %% [markdown]
# ## LayerNorm's gradient from its output
#
# To find gradients, autograd keeps what goes *into* each operation until the backward pass. What goes into a LayerNorm is the sum $x + y$ of a path and its
# sub-layer, which nobody needs again. What comes out, $z = g \odot n + b$, is kept anyway: it goes into the next matrix. And
# from $z$ the normalised vector can be recovered, $n = (z - b) / g$. That is all the gradient asks for, besides one number a row:
# the $1/\sqrt{\sigma^2 + \epsilon}$ by which the row was multiplied. So the sum need not be kept.
#
# This fails for a gain near 0: nothing can be recovered from what was multiplied by 0. Gains begin at 1; if any is below 0.05 in size, the plain way is taken.

# %%
class AddNorm(torch.autograd.Function):
    """LayerNorm(x + Dropout(y)), with dropout by `random_keep`; its gradients come from the output, and the sum is not kept."""

    @staticmethod
    def forward(ctx, x, y, gain, bias, eps, p):
        keep = random_keep(y, p) if p else None
        total = x + y if keep is None else torch.add(x, y * keep, alpha=1 / (1 - p))
        z, _, scale = torch.native_layer_norm(total, gain.shape, gain, bias, eps)
        ctx.save_for_backward(z, scale, gain, bias, keep)
        ctx.p = p
        return z

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        z, scale, gain, bias, keep = ctx.saved_tensors
        normal, ones = (z - bias).div_(gain), torch.ones_like(scale)
        # as if the rows had been normal before: mean 0, scale 1
        to_sum, to_gain, to_bias = torch.ops.aten.native_layer_norm_backward(
            gradient, normal, gain.shape, torch.zeros_like(scale), ones, gain, bias, [True, True, True])
        to_sum *= scale
        to_y = to_sum if keep is None else (to_sum * keep).mul_(1 / (1 - ctx.p))
        return to_sum, to_y, to_gain, to_bias, None, None


# %%
def fast_residual(self, x, sublayer):
    """`Residual.forward` by `AddNorm`, where a CPU trains post-norm."""
    p, gain = self.dropout.p if self.dropout.training else 0.0, self.norm.gain
    usual = x.device.type == "cpu" and gain.dtype in (torch.float32, torch.float64) and not self.norm_first and p < 1
    if not usual or not torch.is_grad_enabled() or torch.compiler.is_compiling() or gain.abs().min() < 0.05:
        return Residual.forward(self, x, sublayer)
    return AddNorm.apply(x, sublayer(x), gain, self.norm.bias, self.norm.eps, p)


# %% tags=["active-ipynb"]
# def saved_for_backward(module, x):
#     kept = {}
#     with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.setdefault(t.data_ptr(), t), lambda t: t):
#         module(x)
#     return sum(t.nbytes for t in kept.values()) / 2**20
#
# vectors, layer = torch.randn(64, 32, 256), encoder_layer(TransformerConfig(10, d_model=256, d_ff=1024, h=4, P_drop=0.0))
# plain = saved_for_backward(layer, vectors)
# for residual in layer.residuals:
#     residual.forward = types.MethodType(fast_residual, residual)
# print(f"saved for the backward pass: plain {plain:.1f} MiB, with AddNorm {saved_for_backward(layer, vectors):.1f} MiB")
# assert saved_for_backward(layer, vectors) < plain

# %% [markdown]
# The layer has two sums of 2 MiB, and saves one of them: its last output goes into no matrix here, so that it is kept for the gradient alone. In a stack the next layer keeps it anyway.

# %%
FASTER = {MultiHeadAttention: fast_forward, torch.nn.Dropout: fast_dropout, Residual: fast_residual}


def accelerate(model, kinds=tuple(FASTER)):
    """Switch a model's attention, dropout and norms over to the fast forms; same weights, same results within rounding.

    kinds: the classes to switch, some or all of `FASTER`. Dropout drops other entries than before, as with another seed.
    Returns the model.
    """
    # Torch 2.13 would take cuDNN's kernel on an H100. It plans anew for every shape of batch, and its gradients with a mask
    # can be NaN (pytorch issue 196678). This is a switch of the whole process.
    torch.backends.cuda.enable_cudnn_sdp(False)
    for module in model.modules():
        if type(module) in kinds:
            module.forward = types.MethodType(FASTER[type(module)], module)
    return model


# %% [markdown]
# What is it worth here? One forward and backward pass of a small model, with its loss, the plain way and the fast way, taking
# turns (without dropout, so that both losses must be equal):

# %% tags=["active-ipynb"]
# c = TransformerConfig(4000, d_model=128, d_ff=512, N=2, h=4, P_drop=0.0)
# model, tokens = Transformer(c), torch.randint(3, 4000, (32, 30))
# quick = accelerate(Transformer(c))
# quick.load_state_dict(model.state_dict())
# def plain_way():
#     return F.cross_entropy(model(tokens, tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten(), label_smoothing=0.1, reduction="sum")
# def fast_way():
#     states = quick.states(tokens[:, :-1], quick.encode(tokens), None)
#     return projected_loss(states, quick.output.weight, tokens[:, 1:])

# %% tags=["active-ipynb"]
# def seconds(loss_of):
#     started = time.perf_counter()
#     loss_of().backward()
#     return time.perf_counter() - started
#
# times = [(seconds(plain_way), seconds(fast_way)) for _ in range(4)][1:]                  # the first round warms up
# middle = sorted(plain / fast for plain, fast in times)[1]
# print(f"the fast way runs at {middle:.2f} times the plain way's speed; losses {plain_way().item():.3f} and {fast_way().item():.3f}")

# %% tags=["active-ipynb"]
# assert abs(plain_way().item() / fast_way().item() - 1) < 1e-5
# for a, b in zip(torch.autograd.grad(plain_way(), list(model.parameters())), torch.autograd.grad(fast_way(), list(quick.parameters()))):
#     assert torch.allclose(a, b, rtol=1e-3, atol=1e-3 * a.abs().max().item())

# %% [markdown]
# Above 1 the fast way is faster; below 1, as may happen with a model this small on a busy machine, it is not worth having. Notebook 20 measures larger models, and memory, with more care.
#
# A GPU has one more switch: `torch.compile` looks at the whole model and writes kernels for it. It needs a compiler, and a
# minute at the start, so it is a switch of the training command (`--compile`), off unless asked for.

# %%
def compile_stacks(model):
    """Let torch.compile write kernels for a model's encoder and decoder, for any batch size and length. Returns the model."""
    model.encoder.compile(dynamic=True)
    model.decoder.compile(dynamic=True)
    return model


# %% [markdown]
# ## Weights laid out for decoding
#
# A search (notebook 15) multiplies a few rows by the same weights, step after step. Each time, a CPU's library first copies
# the weights into the order in which its inner loop reads them. For thousands of rows that is hardly noticed; for 64 it can be. oneDNN, a library that comes with torch, can keep such a copy. It is out of date as soon as the weights change, so
# it is for decoding, not for training.

# %%
def packed_linear(weight, bias=None, rows=64):
    """The map x (..., n) -> x W^T + b (..., m) with weight (m, n) copied into oneDNN's order, the best for so many rows.

    Without gradients, and for inputs like the weight; otherwise it is torch's `F.linear`.
    """
    op, b = torch.ops.mkldnn._linear_pointwise, None if bias is None else bias.detach()
    packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), rows)
    return lambda x: F.linear(x, weight, bias) if torch.is_grad_enabled() or x.dtype != weight.dtype else op(x, packed, b, "none", [], "")


# %% [markdown]
# A call costs some millionths of a second more than a plain product, so small weights gain nothing: they stay as they are.

# %%
PACKED = {torch.nn.Linear: "forward", Embedding: "logits"}  # the method that multiplies by the weight
SMALLEST_PACKED = 2**17  # entries of a weight


def is_compiled(model):
    """True where torch.compile was asked to take over some part of a model."""
    return any(module._compiled_call_impl for module in model.modules())


def can_pack(model):
    """True for fp32 weights on a CPU with oneDNN, unless torch.compile is at work: it lays out weights by itself."""
    return (torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
            and all(p.device.type == "cpu" and p.dtype == torch.float32 for p in model.parameters())
            and not is_compiled(model))


# %%
@contextmanager
def packed_weights(model):
    """Inside this block a model multiplies by packed copies of its large weights, where `can_pack`; same results within rounding.

    The weights must not change inside.
    """
    methods = [(module, PACKED[type(module)]) for module in model.modules()
               if type(module) in PACKED and module.weight.numel() >= SMALLEST_PACKED] if can_pack(model) else []
    methods = [(module, name) for module, name in methods if name not in vars(module)]
    for module, name in methods:
        setattr(module, name, packed_linear(module.weight, getattr(module, "bias", None)))
    try:
        yield model
    finally:
        for module, name in methods:
            delattr(module, name)


# %% tags=["active-ipynb"]
# wide, few = torch.nn.Linear(512, 2048), torch.randn(64, 512)
# with torch.no_grad(), packed_weights(wide):
#     packed_output = wide(few)
# assert torch.allclose(packed_output, wide(few), atol=1e-5)

# %% tags=["active-ipynb"]
# def microseconds(rounds=3):
#     started = time.perf_counter()
#     for _ in range(rounds):
#         wide(few)
#     return 1e6 * (time.perf_counter() - started) / rounds
#
# with torch.no_grad():
#     plain_time = min(microseconds() for _ in range(60))
#     with packed_weights(wide):
#         packed_time = min(microseconds() for _ in range(60))
# print(f"64 rows times a weight of 512 x 2,048: plain {plain_time:.0f} microseconds, packed {packed_time:.0f}")

# %% [markdown]
# ## Hypotheses that share a cache
#
# A beam search (notebook 15) keeps the $K$ best unfinished translations of each sentence, its *hypotheses*. Each is a row of the batch, with its
# part of the key/value caches (notebook 04). At every step some are dropped and others go on in two ways, so rows are picked anew.
# (On a first reading, go on to "Several processes".)
#
# That copies the caches twice a token: to make room for a new position, and so that each row follows the hypothesis that it extends. At $d_{model} = 512$, with four hypotheses for each of 64 sentences, a profile showed almost half of the time in these copies.

# %% [markdown]
# But why move anything? A sentence's hypotheses can write side by side into *one* cache. What a hypothesis must not see, the words of the others, is
# hidden from it by a mask; and when hypotheses change places, only masks move. Attention then scores more keys than it needs, which
# is cheaper than the copies. Positions that no living hypothesis looks at are thrown out when the tensor is full. The keys and values of the source, the same for all
# hypotheses of a sentence, are there only once.

# %%
class SharedCache(KeyValueCache):
    """The keys and values of all hypotheses of a sentence together: k and v (G, h, n, d) for G sentences. Without gradients.

    `own` (G, K, n) says which of the n positions belong to each of a sentence's K hypotheses. Rows come sentence by sentence,
    one new position at a time: (G * K, h, 1, d); ValueError for more than one.
    """

    def __init__(self, static=False):
        super().__init__(static)
        self.steps, self.each, self.own = 0, 1, None

    @property
    def length(self):
        return super().length if self.static else self.steps

    def append(self, k, v):
        if self.static:
            return super().append(k, v)
        k, v = by_sentence(k, self.each), by_sentence(v, self.each)
        if self.own is None:
            self.own = torch.zeros(len(k), self.each, 0, dtype=torch.bool, device=k.device)
            self.k, self.v = (room(x[:, :, :0], 32 * self.each) for x in (k, v))
        if self.own.shape[2] + self.each > self.k.shape[2]:
            make_room(self)
        n, new = self.own.shape[2], torch.eye(self.each, dtype=torch.bool, device=k.device)
        self.own, self.steps = torch.cat([self.own, new.expand(len(k), -1, -1)], dim=2), self.steps + 1
        for memory, x in ((self.k, k), (self.v, v)):
            memory[:, :, n:n + self.each] = x
        return self.k[:, :, :n + self.each], self.v[:, :, :n + self.each]

    def select(self, rows):
        follow(self, rows)


# %%
def by_sentence(x, each):
    """(G * K, h, 1, d) -> (G, h, K, d) for K = `each` hypotheses a sentence."""
    if x.shape[2] != 1:
        raise ValueError(f"a SharedCache takes one new position at a time, not {x.shape[2]}")
    return x[:, :, 0].unflatten(0, (-1, each)).transpose(1, 2)


# %%
def make_room(cache):
    """Throw out the positions that no hypothesis looks at; leave room for as many as are kept, and 16 steps."""
    seen, K = cache.own.any(dim=1), cache.each
    most = int(seen.sum(dim=1).max())
    if most < seen.shape[1]:
        order = seen.byte().argsort(dim=1, descending=True, stable=True)[:, :most]  # (G, most), what is seen first
        cache.own = cache.own.gather(2, order[:, None].expand(-1, K, -1))
        cache.k, cache.v = positions_of(cache.k, order), positions_of(cache.v, order)
    cache.k, cache.v = (room(x[:, :, :most], most + 16 * K) for x in (cache.k, cache.v))


def room(x, more):
    """x (G, h, n, d) with room for more positions, which hold anything: (G, h, n + more, d)."""
    memory = x.new_empty(*x.shape[:2], x.shape[2] + more, x.shape[3])
    memory[:, :, :x.shape[2]] = x
    return memory


# %% [markdown]
# When a search selects rows, each hypothesis takes over the past of the one it extends: its row of `own`. Keys move only when sentences leave.

# %%
def follow(cache, rows):
    """`select` of a `SharedCache`; no keys move as long as every sentence stays, with as many hypotheses as each other."""
    sentences, counts = (rows // cache.each).unique_consecutive(return_counts=True)
    each = len(rows) // max(1, len(sentences))
    if (counts != each).any():  # not as many rows of each sentence: every row gets a place of its own
        sentences, each = rows // cache.each, 1
    if len(sentences) != len(cache.k) or (sentences != torch.arange(len(cache.k), device=rows.device)).any():
        cache.k, cache.v = cache.k.index_select(0, sentences), cache.v.index_select(0, sentences)
    if not cache.static:
        cache.own = cache.own.flatten(0, 1)[rows].unflatten(0, (len(sentences), each))
    cache.each = each


# %%
def positions_of(x, order):
    """Positions order (G, m) of x (G, h, n, d) -> (G, h, m, d)."""
    G, h, n, _ = x.shape
    start = torch.arange(G * h, device=x.device).view(G, h, 1) * n
    return x.flatten(0, 2).index_select(0, (start + order[:, None]).flatten()).view(G, h, order.shape[1], -1)


# %%
def shared_attention(self, query, key, value, mask=None, cache=None):
    """`MultiHeadAttention.forward` where the cache may be a `SharedCache`: a sentence's hypotheses are its queries, side by side."""
    if type(cache) is not SharedCache:
        return MultiHeadAttention.forward(self, query, key, value, mask, cache)
    q = by_sentence(self.split(self.W_Q(query)), cache.each)
    k, v = self.keys_and_values(key, value, cache)
    if not cache.static:
        mask = cache.own[:, None]
    elif mask is not None:
        mask = mask[::cache.each]  # a source's mask is the same for all its hypotheses
    with matmul_precision("highest"):  # for so few rows the quicker way
        output = scaled_dot_product_attention(q, k, v, mask)[0]  # (G, h, K, d_v)
    return self.W_O(output.transpose(1, 2).flatten(0, 1).flatten(1)[:, None])


# %% [markdown]
# As with the packed weights, a block of code says where: inside it the searches of a Transformer use such caches, on a CPU.

# %%
@contextmanager
def shared_caches(model):
    """Inside this block a Transformer on a CPU makes `SharedCache`s where it would make `KeyValueCache`s; same results within rounding.

    For searches: one new position at a time. Nothing changes for other models, with torch.compile, where attention is being recorded,
    and where somebody else has changed how it is computed.
    """
    attentions = [m for layer in model.decoder.layers for m in (layer.self_attention, layer.cross_attention)] if type(model) is Transformer else []
    usual = all(type(m) is MultiHeadAttention and m.record is None and m.W_Q.weight.device.type == "cpu"
                and getattr(m.forward, "__func__", None) in (MultiHeadAttention.forward, fast_forward) for m in attentions)
    if not attentions or not usual or "new_caches" in vars(model) or is_compiled(model):
        yield model
        return
    before = [vars(m).get("forward") for m in attentions]
    for m in attentions:
        m.forward = types.MethodType(shared_attention, m)
    model.new_caches = lambda: [(SharedCache(), SharedCache(static=True)) for _ in model.decoder.layers]
    try:
        yield model
    finally:
        del model.new_caches
        for m, forward in zip(attentions, before):
            del m.forward
            if forward is not None:
                m.forward = forward


# %% [markdown]
# The answers stay the same. Here are three hypotheses of each of two sentences, after one step that they share and one of their own:

# %% tags=["active-ipynb"]
# rows, new = torch.tensor([0, 0, 0, 1, 1, 1]), torch.tensor([5, 6, 7, 5, 6, 7])[:, None]
# with torch.no_grad(), shared_caches(model):
#     caches, memory, seen = model.new_caches(), model.encode(tokens[:2]), torch.ones(2, 1, 1, 30, dtype=torch.bool)
#     model.decode(tokens[:2, :1], memory, seen, caches)
#     for cache in sum(caches, ()):
#         cache.select(rows)
#     shared = model.decode(new, memory[rows], seen[rows], caches)
#     plain = model.decode(torch.cat([tokens[:2, :1][rows], new], dim=1), memory[rows], seen[rows])[:, -1:]
# assert torch.allclose(shared, plain, atol=1e-4)

# %% [markdown]
# ## Several processes
#
# The paper's eight GPUs each held a copy of the model, worked on a part of the batch, and averaged the gradients before
# each update. Torch does the same with one process a GPU, started by `torchrun`, which tells each process its number in
# the environment (they talk through a library: NCCL between GPUs, Gloo between CPUs). All processes start from the same
# weights and make the same updates, so the copies never differ.

# %%
def process_number():
    """This process's number among those that train together, from 0; 0 where there is one."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def process_count():
    """How many processes train together."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


# %%
@contextmanager
def processes(device):
    """Inside this block processes started by torchrun know each other; yields this one's device. Without torchrun: nothing."""
    if "LOCAL_RANK" not in os.environ:
        yield device
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    # the first process may prepare a corpus for hours; one that dies is torchrun's business, not this limit's
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=timedelta(days=1))
    together = False
    try:
        yield device
        distributed.barrier()  # leave together
        together = True
    finally:
        if together or device.type != "cuda":  # NCCL would wait here for the others, and they for this one; so torchrun ends them
            time.sleep(0.3)  # with torch 2.3 the next line could wait for ever: most likely for a Gloo thread that still holds a tensor
            distributed.destroy_process_group()


# %%
def sum_over_processes(number, device):
    """A number added up over all processes that train together; each gets the sum."""
    if process_count() == 1:
        return number
    total = torch.tensor(float(number), dtype=torch.float32 if device.type == "mps" else torch.float64, device=device)
    distributed.all_reduce(total)
    return total.item()


# %%
def copies_in_step(module):
    """A module whose gradients are averaged over all processes after each backward pass; alone, the module itself."""
    if process_count() == 1:
        return module
    # the only buffer, the table of sines, is the same everywhere
    return torch.nn.parallel.DistributedDataParallel(module, broadcast_buffers=False, gradient_as_bucket_view=True)


def without_exchange(module, more):
    """Inside this block a backward pass keeps its gradients to itself where more are to come."""
    return module.no_sync() if more and process_count() > 1 else nullcontext()


# %% [markdown]
# Two processes on this computer, without any GPU (on several machines `torchrun` is started on each, with the address
# of the first one, and a `--folder` on a disk that all of them see):
#
# ```
# torchrun --nproc-per-node 2 -m transformer train --accumulate 2
# ```
#
# `--accumulate` is the number of batches whose gradients make one update; the processes share them out (it must be a multiple of their number). So the number of
# processes changes the time, and not the result beyond rounding: the tests compare two processes with one, after several updates, in float64 to nine digits.

# %% [markdown]
# ## Checks
#
# **Parts of a batch add up to the batch**, but only if each part's loss is a *sum*, and the division by the number of target
# tokens comes at the end. The mean of the parts' means is another number as soon as the parts differ in length:

# %% tags=["active-ipynb"]
# gold = torch.randint(1, 8000, (40, 30)).masked_fill(torch.arange(30) >= torch.arange(40)[:, None], 0)      # row n: n tokens
# halves = [projected_loss(x[rows], E, gold[rows]) for rows in (slice(0, 20), slice(20, 40))]
# count = [(gold[rows] != 0).sum() for rows in (slice(0, 20), slice(20, 40))]
# whole = projected_loss(x, E, gold) / (gold != 0).sum()
# assert torch.allclose(sum(halves) / sum(count), whole) and not torch.allclose((halves[0] / count[0] + halves[1] / count[1]) / 2, whole)

# %% [markdown]
# **An accelerated model still decodes with a cache:** there it takes the plain way.

# %% tags=["active-ipynb"]
# with torch.no_grad():
#     memory, mask = quick.encode(tokens), torch.ones(32, 1, 1, 30, dtype=torch.bool)
#     cached = quick.decode(tokens[:, :1], memory, mask, quick.new_caches())
# assert torch.allclose(cached, model(tokens, tokens[:, :1]), atol=1e-4)

# %% [markdown]
# ## Exercises
#
# Replace `...` and run the cell; it stays silent when you are right.
#
# **1.** How many bytes of memory do the weights of the base model (63,045,632 parameters), their gradients and the two averages
# that Adam keeps of each gradient (notebook 12) take in fp32?

# %% tags=["active-ipynb"]
# your_bytes = ...
# if your_bytes is not ...:
#     assert your_bytes == sum(p.numel() * p.element_size() for p in Transformer(base).parameters()) * 4

# %% [markdown]
# <details><summary>Solution</summary>
#
# `your_bytes = 63_045_632 * 4 * 4`: four numbers for each parameter, four bytes each, 1.0 GB. The rest of a GPU's memory goes
# to what the forward pass keeps for the backward pass, and that grows with the batch.
# </details>
#
# **2.** In one encoder layer of the base model: at which sentence length do scores and mixtures (the $n^2$ part) take as much
# arithmetic as everything else in the layer?

# %% tags=["active-ipynb"]
# your_length = ...
# if your_length is not ...:
#     square, attention = 4 * your_length**2 * 512, attention_flops(base, your_length, your_length)
#     assert your_length > 0 and square == attention - square + 4 * your_length * 512 * 2048

# %% [markdown]
# <details><summary>Solution</summary>
#
# The projections take $8 n d^2$, the position-wise network $4 n d \cdot d_{ff} = 16 n d^2$, scores and mixtures $4 n^2 d$. They are
# equal at $n = 6 d$: `your_length = 3072`.
# </details>

# %% [markdown]
# ## Next
#
# [12 Optimizer](12_optimizer.ipynb): how weights follow the gradient. In Colab the next notebook imports this module from the
# installed package; to try changes of your own, clone the repository and install it with `pip install -e .`.
