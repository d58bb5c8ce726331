# ---
# jupyter:
#   jupytext:
#     formats: notebooks/12_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 5.3 Optimizer
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/12_optimizer.ipynb)
#
# The gradient says in which direction each weight should move. The optimizer decides how far. The paper uses Adam
# with unusual settings, and a learning rate that first rises and then falls (Section 5.3). Both are a few lines. This
# notebook writes them out, checks them, and asks what the rise is good for.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     %pip install -q git+https://github.com/OWNER/annotated-attention

# %%
import torch
from torch import nn


# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# from transformer import plotting
# from transformer.model import Transformer, TransformerConfig
#
# torch.set_num_threads(1)  # the models below are so small that more only wait
# torch.manual_seed(0);

# %% [markdown]
# ## A rate that rises and falls
#
# Equation 3 of the paper:
#
# $$lrate = d_{model}^{-0.5} \cdot \min(step^{-0.5},\; step \cdot warmup^{-1.5})$$
#
# A step is one update of all weights. For the first $warmup$ steps the second term is smaller: the rate grows in a straight
# line. After that the first is smaller: the rate falls with the inverse square root of the step. The paper takes
# $warmup = 4000$.

# %%
def learning_rate(
        step: int, d_model: int = 512, warmup: int = 4000, factor: float = 1.0
) -> float:
    """factor * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5) (equation 3).

    step counts updates of the weights, from 1; factor is 1 in the paper. Raises
    ValueError for a step, a width or a warmup below 1.
    """
    if min(step, d_model, warmup) < 1:
        raise ValueError("step, d_model and warmup must be at least 1, "
                         f"not {step}, {d_model} and {warmup}")
    return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


# %% tags=["active-ipynb"]
# left, right = plotting.new_axes(5, 3.2, columns=2)
# steps = range(1, 30_001, 50)
# curves = {f"warmup {w:,}": [learning_rate(s, warmup=w) for s in steps]
#           for w in (4000, 2000, 8000)}
# plotting.lines(steps, curves, "update", "learning rate", "d_model = 512", ax=left)
# curves = {f"d_model {d}": [learning_rate(s, d) for s in steps]
#           for d in (512, 256, 1024)}
# plotting.lines(steps, curves, "update", "learning rate", "warmup = 4,000", ax=right);

# %% [markdown]
# A longer warm-up has a lower peak, but all warm-ups end on the same falling curve. A wider model has a lower rate
# throughout: twice the width divides it by $\sqrt 2$. At the peak both terms are equal, which gives a closed form:

# %%
def peak_rate(d_model: int = 512, warmup: int = 4000, factor: float = 1.0) -> float:
    """The largest `learning_rate`, at step = warmup: factor * (d_model * warmup)^-0.5.

    ValueError for sizes below 1.
    """
    if min(d_model, warmup) < 1:
        raise ValueError(
            f"d_model and warmup must be at least 1, not {d_model} and {warmup}")
    return factor * (d_model * warmup) ** -0.5


# %% tags=["active-ipynb"]
# # NBVAL_CHECK_OUTPUT
# print(f"base {peak_rate():.6f}, big {peak_rate(1024):.6f}")
# rates = [learning_rate(step) for step in range(1, 100_001)]
# assert rates.index(max(rates)) + 1 == 4000
# assert abs(max(rates) - peak_rate()) < 1e-12

# %% [markdown]
# ## The schedule counts updates, not batches
#
# Large batches do not fit in a small memory. Then the gradients of several batches are added up before one update.
# A common mistake counts each of these batches as a step. With four of them, the warm-up is over after 1,000 updates:

# %% tags=["active-ipynb"]
# # NBVAL_CHECK_OUTPUT
# for update in (500, 4000, 16_000):
#     right, wrong = learning_rate(update), learning_rate(4 * update)
#     print(f"update {update:6,}: right {right:.6f}, wrong {wrong:.6f}")

# %% [markdown]
# Early on the wrong rate is four times too high, later it is half of what it should be.

# %% [markdown]
# ## Adam
#
# Adam (Kingma and Ba, 2015) keeps two running means for each weight $\theta$, its *moments*: $m$ of its gradient $g$, and $v$ of
# $g^2$. In update number $t$ it moves the weight by the ratio of the first to the root of the second, times the rate:
#
# $$m \leftarrow \beta_1 m + (1-\beta_1) g, \qquad v \leftarrow \beta_2 v + (1-\beta_2) g^2, \qquad
# \theta \leftarrow \theta - rate \cdot \frac{m / (1-\beta_1^t)}{\sqrt{v / (1-\beta_2^t)} + \epsilon}$$
#
# So while a weight's gradients keep their sign and size, it moves about as far as the rate says, however large they are; gradients of changing sign cancel in $m$. Both means start at zero and are too small at
# first; the divisions by $1-\beta^t$ put that right.

# %% [markdown]
# The paper takes $\beta_1 = 0.9$, as most do, but $\beta_2 = 0.98$ (usual is 0.999) and $\epsilon = 10^{-9}$ (usual is $10^{-8}$). What these two do is asked below.

# %%
def adam_update(p, gradient, m, v, step, rate, betas=(0.9, 0.98), epsilon=1e-9):
    """One update of Adam (Kingma and Ba, 2015) with the paper's settings (Section 5.3).

    p, gradient, m, v: numbers, or tensors of one shape; m and v are 0 before step 1.
    Returns the new p, m and v. Training uses `adam`, torch's own, with the same result.
    """
    beta_1, beta_2 = betas
    m = beta_1 * m + (1 - beta_1) * gradient
    v = beta_2 * v + (1 - beta_2) * gradient**2
    m_hat = m / (1 - beta_1**step)
    v_hat = v / (1 - beta_2**step)
    return p - rate * m_hat / (v_hat**0.5 + epsilon), m, v


# %% [markdown]
# Ten steps of this beside torch's own Adam, in float64. Five weights $\theta_i$ start at 0 and look for the lowest point of $\sum_i (\theta_i - i)^4$. The gradient of such a
# term is $4(\theta_i - i)^3$:

# %% tags=["active-ipynb"]
# theirs = torch.zeros(5, dtype=torch.float64, requires_grad=True)
# torchs = torch.optim.Adam([theirs], lr=0.1, betas=(0.9, 0.98), eps=1e-9)
# p, m, v = theirs.detach().clone(), 0, 0
# for step in range(1, 11):
#     gradient = 4 * (p - torch.arange(5)) ** 3  # by hand
#     p, m, v = adam_update(p, gradient, m, v, step, rate=0.1)
#     torchs.zero_grad()
#     ((theirs - torch.arange(5)) ** 4).sum().backward()
#     torchs.step()
# print(f"largest difference {(p - theirs).abs().max():.0e}")
# assert torch.allclose(p, theirs, rtol=0, atol=1e-9)

# %% [markdown]
# In training, torch does it for all weights at once. The rate is set before each update, so it starts at zero here.

# %%
ADAM = dict(lr=0.0, betas=(0.9, 0.98), eps=1e-9)  # Section 5.3; the loop sets the rate


def adam(model: nn.Module) -> torch.optim.Optimizer:
    """Adam with the paper's settings for the parameters of a model."""
    return torch.optim.Adam(model.parameters(), **ADAM)


# %%
def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Give every group of parameters this learning rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate


# %% [markdown]
# ## What $\beta_2 = 0.98$ does
#
# $\beta_2$ says how long $v$ remembers: about $1 / (1 - \beta_2)$ updates, so 50 in the paper and 1,000 with the usual
# 0.999. While gradients keep their size and sign, every step is as long as the rate. When they change, $v$ must catch up. Here
# they shrink to a tenth after 300 updates:

# %%
def step_lengths(
        gradients: list[float], beta_2: float = 0.98, epsilon: float = 1e-9
) -> list[float]:
    """How far Adam moves a weight under gradients, each time, as a part of the rate."""
    p = m = v = 0.0
    lengths = []
    for step, gradient in enumerate(gradients, 1):
        new, m, v = adam_update(p, gradient, m, v, step, 1.0, (0.9, beta_2), epsilon)
        lengths.append(p - new)
        p = new
    return lengths


# %% tags=["active-ipynb"]
# shrinking = [1.0] * 300 + [0.1] * 600
# lengths = {f"beta_2 = {beta_2}": step_lengths(shrinking, beta_2)
#            for beta_2 in (0.98, 0.999)}
# plotting.lines(range(1, 901), lengths, "update", "length of the step / rate")
# assert lengths["beta_2 = 0.98"][-1] > 0.9
# assert lengths["beta_2 = 0.999"][-1] < 0.5

# %% [markdown]
# $m$ forgets the large gradients within some ten updates, $v$ later; until then a small $m$ is divided by the root of a large $v$. With 0.98 the steps are nearly at full length again some 300 updates later; with 0.999 they are still short at the end. A
# short memory has its price: $v$ is a mean of fewer gradients, and jumps about more.
#
# $\epsilon$ keeps the division from going wrong where all gradients have been zero. It must stay far below $\sqrt{v}$, so below the gradients: in the
# first update the step is $g / (g + \epsilon)$ of the rate. At $g = 10^{-8}$ the paper's $10^{-9}$ leaves 91% of the
# step; torch's default of $10^{-8}$ leaves half.

# %% tags=["active-ipynb"]
# for epsilon, share in ((1e-9, 10 / 11), (1e-8, 1 / 2)):
#     assert abs(step_lengths([1e-8], epsilon=epsilon)[0] - share) < 1e-9

# %% [markdown]
# ## What does warm-up buy?
#
# To find out, a loop that does nothing but follow a list of rates. The real one is in notebook 14.

# %%
def train_with_rates(model: nn.Module, loss_of, rates: list[float]) -> list[float]:
    """One update for each rate; loss_of(model) is the loss on a fresh batch.

    Returns the losses.
    """
    optimizer, losses = adam(model), []
    model.train()
    for rate in rates:
        set_learning_rate(optimizer, rate)
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

# %% [markdown]
# The task could not be easier: read six digits, and say them again. The model has six encoder layers of width 32, and no decoder is used. It
# sees the paper's formula with a warm-up of 50, or the same without the rise: the peak for the first 50 updates. So narrow a model and so short a warm-up make
# the formula's peak high, 0.025, where the paper's base model has 0.0007; a sixteenth of it is tried as well. Pre-norm (notebook 03) is tried without the rise only.

# %% tags=["active-ipynb"]
# def copying_loss(model):
#     digits = torch.randint(3, 13, (32, 6))
#     logits = model.output(model.encode(digits))
#     return nn.functional.cross_entropy(logits.flatten(0, 1), digits.flatten())
#
# runs, sizes = {}, dict(vocab_size=13, d_model=32, d_ff=64, N=6, h=4, P_drop=0.0)
# kinds = ("post-norm, warm-up", 1), ("post-norm, no rise", 50), ("pre-norm, no rise", 50)
# for factor in (1 / 16, 1.0):
#     for name, first in kinds:
#         torch.manual_seed(0)
#         config = TransformerConfig(**sizes, norm_first=name.startswith("pre"))
#         schedule = [learning_rate(max(step, first), 32, 50, factor)
#                     for step in range(1, 101)]
#         model = Transformer(config)
#         runs[factor, name] = train_with_rates(model, copying_loss, schedule)

# %% tags=["active-ipynb"]
# axes = plotting.new_axes(5, 3.2, columns=2, sharey=True)
# for ax, factor in zip(axes, (1 / 16, 1.0)):
#     curves = {name: run for (f, name), run in runs.items() if f == factor}
#     title = f"peak rate {peak_rate(32, 50, factor):.4f}"
#     plotting.lines(range(1, 101), curves, "update", "loss, nats", title, ax=ax)

# %% tags=["active-ipynb"]
# last = {key: sum(run[-10:]) / 10 for key, run in runs.items()}
# assert last[1.0, "post-norm, no rise"] > 2
# assert max(last[1.0, "post-norm, warm-up"], last[1.0, "pre-norm, no rise"]) < 0.5
# assert max(last[1 / 16, name] for name, _ in kinds) < 0.5

# %% [markdown]
# Left, at the low rate, all three learn, and the rise only costs time. Right, at the high one, the post-norm model
# without the rise is thrown off in its first updates. Its loss settles at $\ln 10 = 2.3$, which is guessing, and does not
# recover within a hundred updates. With the rise the loss comes near 0. Pre-norm survives without. (That is no fair contest: it starts lower, as its residual path
# carries the input unchanged to the top. There the output matrix is the embedding matrix, so each word tends to score highest with itself, and copying is the task.)

# %% [markdown]
# So in this small case warm-up does not make learning better in itself. It makes a high rate possible for a post-norm stack,
# and with it this one learns somewhat faster than with the low rate (one seed, one task). Why post-norm needs it, this does not show. Xiong et al. (2020) find
# the cause in the gradients at the start, which in a post-norm model are largest near the output (notebook 03). We did not test that here.

# %% [markdown]
# ## Exercises
#
# Replace `...` and run the cell; it stays silent when you are right.
#
# **1.** After which update has the rate fallen to a tenth of its peak? Write it for any warm-up.

# %% tags=["active-ipynb"]
# def back_to_a_tenth(warmup):
#     return ...
#
# for warmup in (1000, 4000):
#     if (update := back_to_a_tenth(warmup)) is not ...:
#         share = learning_rate(update, 512, warmup) / peak_rate(512, warmup)
#         assert update > warmup and abs(share - 0.1) < 1e-9

# %% [markdown]
# <details><summary>Solution</summary>
#
# `return 100 * warmup`: after the peak the rate falls with the inverse square root, and $\sqrt{100} = 10$. That is update
# 400,000 in the paper, which trained its base model for 100,000: it stopped at a fifth of the peak. (On the way up, the
# rate is a tenth of the peak at `warmup / 10`, but there it has not fallen.)
# </details>

# %% [markdown]
# ## Next
#
# [13 Regularization](13_regularization.ipynb) keeps the model from learning its training data by heart. In Colab the
# next notebook imports this module from the installed package; to try changes of your own, clone the repository and
# install it with `pip install -e .`.
