# ---
# jupyter:
#   jupytext:
#     formats: notebooks/12_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 12 · Optimizer
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/12_optimizer.ipynb)
#
# *Section 5.3 of the paper. Reading takes about 20 minutes, running half a minute.*
#
# The gradient tells every weight which way is down. It does not say how far to go. If you multiply it by a small number, the **learning rate**, you have plain gradient descent, and for a Transformer that is not enough. The paper uses an optimizer called Adam, and a learning rate that begins near zero, climbs for 4,000 updates, and then falls for the rest of the training. Why so complicated? Let us walk down a valley, first badly.

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
import torch
from torch import nn

from transformer.core.checks import check_from_one

# %% tags=["active-ipynb"]
# import math
#
# from transformer import Transformer, TransformerConfig, views
# from transformer.views import plotting
#
# torch.set_num_threads(1)  # on models this small, a second thread only waits

# %% [markdown]
# ## One rate does not fit all weights
#
# A model of two weights, $x$ and $y$, has the loss $\frac12 (x^2 + 50\,y^2)$. It is a valley: steep across, in $y$, and nearly flat along, in $x$. Its lowest point is $(0, 0)$, and we start at $(-10, 1)$. The gradient is $(x, 50y)$, so a step of plain descent with rate $r$ takes $x$ to $(1 - r)\,x$ and $y$ to $(1 - 50 r)\,y$.
#
# Which rate would you choose? Across the valley, $r = 0.02$ is perfect: $1 - 50 r = 0$, and one step ends at the bottom. But along the valley it makes 2% of the way a step. A larger rate is faster along, but as soon as $1 - 50r$ is below $-1$, each step across overshoots by more than the one before. That happens at $r = 0.04$.

# %% tags=["active-ipynb"]
# def gradient(point):
#     return point * torch.tensor([1.0, 50.0])
#
#
# def descend(rate, steps=40):
#     point = torch.tensor([-10.0, 1.0])
#     path = [point]
#     for _ in range(steps):
#         point = point - rate * gradient(point)
#         path.append(point)
#     return torch.stack(path)
#
#
# views.valley({"rate 0.02": descend(0.02), "rate 0.041": descend(0.041)})

# %% [markdown]
# *Above, 40 steps have not made half of the way; below, a rate twice as large leaves the valley.*
#
# The steepest direction sets the limit, and every other direction pays for it. A Transformer has millions of weights. What it needs is a rate for each.

# %% [markdown]
# ## Adam divides by what it is used to
#
# Adam (Kingma and Ba, 2015) keeps two running means for each weight: $m$, of its gradients $g$, and $v$, of their squares. It moves the weight by the ratio of $m$ to the root of $v$, times the rate:
#
# $$m \leftarrow \beta_1 m + (1-\beta_1)\, g, \qquad v \leftarrow \beta_2 v + (1-\beta_2)\, g^2, \qquad
# \theta \leftarrow \theta - rate \cdot \frac{\hat m}{\sqrt{\hat v} + \epsilon}$$
#
# Both means begin at zero, and are too small at first: after $t$ equal gradients, $m$ is only $(1-\beta_1^t)\, g$. The hats mend that: $\hat m = m / (1-\beta_1^t)$ and $\hat v = v / (1-\beta_2^t)$. And the tiny $\epsilon$ keeps a weight whose gradients are all zero from dividing zero by zero.
#
# Do the first update with a pencil, for a gradient of 4. With the paper's $\beta_1 = 0.9$ and $\beta_2 = 0.98$, $m = 0.1 \cdot 4 = 0.4$ and $\hat m = 0.4/0.1 = 4$. Likewise $v = 0.02 \cdot 16 = 0.32$ and $\hat v = 0.32/0.02 = 16$. The ratio is $4/\sqrt{16} = 1$, so the weight moves by the whole rate. Now do it for a gradient of 0.004. What changes?


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
# histories = {
#     "always 4": [4.0] * 5,
#     "always 0.004": [0.004] * 5,
#     "4 and -4 in turn": [4.0, -4.0, 4.0, -4.0, 4.0],
# }
# for name, gradients in histories.items():
#     parts = (f"{length:6.2f}" for length in step_lengths(gradients))
#     print(f"{name:17}", *parts, " of the rate")

# %% [markdown]
# Nothing changes. **The size of a gradient cancels, and what remains is whether gradients agree.** While they do, the weight moves by the whole rate, however small they are. Where they take turns, the weight takes a few short steps forth and back. In the valley that is just what we want: along it the gradients are small and agree, and across it they are large and disagree.

# %% tags=["active-ipynb"]
# def descend_by_adam(rate, gradient, start, steps=40):
#     point, m, v = torch.tensor(start), 0, 0
#     path = [point]
#     for step in range(1, steps + 1):
#         point, m, v = adam_update(point, gradient(point), m, v, step, rate)
#         path.append(point)
#     return torch.stack(path)
#
#
# straight = descend_by_adam(0.3, gradient, (-10.0, 1.0))
# c = math.sqrt(0.5)
# turn = torch.tensor([[c, c], [-c, c]])  # by 45 degrees: the same valley, turned
# turned = descend_by_adam(
#     0.3, lambda point: gradient(point @ turn.T) @ turn, (-11 * c, -9 * c)
# )
# views.valley({"Adam": straight, "Adam, if the valley is turned": turned @ turn.T})

# %% [markdown]
# *Compare the upper path with the two before: in 40 steps Adam swings across a few times and is at the bottom. Below, the valley runs between the two weights (and is turned back for the picture): there Adam gets no further than careful plain descent did.*
#
# The lower path shows the limit of the idea. Adam has a rate for each *weight*. If the valley runs along one weight, that helps. If it runs between two, both weights are equally steep, and Adam has nothing to tell them apart by. So Adam is a good bet and not a law.
#
# Torch has an Adam of its own, which the rest of the book uses. Is ours the same? Five weights look for the lowest point of $\sum_i (\theta_i - i)^4$:

# %% tags=["active-ipynb"]
# theirs = torch.zeros(5, dtype=torch.float64, requires_grad=True)
# optimizer = torch.optim.Adam([theirs], lr=0.1, betas=(0.9, 0.98), eps=1e-9)
# p, m, v = theirs.detach().clone(), 0, 0
# for step in range(1, 11):
#     p, m, v = adam_update(p, 4 * (p - torch.arange(5)) ** 3, m, v, step, rate=0.1)
#     optimizer.zero_grad()
#     ((theirs - torch.arange(5)) ** 4).sum().backward()
#     optimizer.step()
# print("after ten updates:", ", ".join(f"{weight:.3f}" for weight in p))
# print(f"largest difference from torch's: {(p - theirs).abs().max():.0e}")
# assert torch.allclose(p, theirs, rtol=0, atol=1e-9)

# %%
ADAM = dict(lr=0.0, betas=(0.9, 0.98), eps=1e-9)  # Section 5.3; the loop sets the rate


def adam(model: nn.Module) -> torch.optim.Optimizer:
    """Adam with the paper's settings for the parameters of a model."""
    return torch.optim.Adam(model.parameters(), **ADAM)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Give every group of parameters this learning rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate


# %% [markdown]
# ## How long should it remember?
#
# Most people leave $\beta_2$ at 0.999. The paper has 0.98, without giving a reason. What is the difference? A running mean remembers about $1/(1-\beta)$ values: $m$ ten, and $v$ fifty with the paper's $\beta_2$ and a thousand with the usual one. Imagine that the gradients of a weight suddenly shrink to a tenth:

# %% tags=["active-ipynb"]
# shrinking = [1.0] * 300 + [0.1] * 600
# lengths = {f"β₂ = {b}": step_lengths(shrinking, beta_2=b) for b in (0.98, 0.999)}
# labels = ("update", "length of the step / rate")
# ax = plotting.lines(range(1, 901), lengths, *labels)
# views.picture(
#     ax,
#     "Steps of the whole rate up to update 300, then of a sixth; with 0.98 they are "
#     "back at the whole rate after 200 more updates, with 0.999 at a fifth after 600.",
# )

# %% [markdown]
# *Follow the two curves after update 300: with the paper's 0.98 the steps recover, and with 0.999 they stay short.*
#
# $m$ forgets the large gradients soon, and $v$ late. Until then a small $m$ is divided by a large root. So 0.98 adapts faster, and its price is a $v$ that rests on fewer gradients and fluctuates more. Which of the two serves a Transformer better, this book has not tested.

# %% [markdown]
# ## Why start slowly?
#
# Look at the first update again. Whatever its gradient, *every* weight moves by the whole rate, in a direction that a single batch suggested. Adam is boldest when it knows least. How bold is it later? We train a small Transformer and take the mean of $|\hat m| / \sqrt{\hat v}$ over all its weights, which is 1 when they all move by the whole rate. The model is the encoder of four layers with the paper's normalisation after each sum ([post-norm](03_stacks.ipynb)). It reads six digits and writes them backwards.

# %% tags=["active-ipynb"]
# def backwards_loss(model):
#     digits = torch.randint(3, 13, (16, 6))  # ids 3 to 12; 0 to 2 are special
#     logits = model.output(model.encode(digits))
#     return nn.functional.cross_entropy(logits.flatten(0, 1), digits.flip(1).flatten())
#
#
# def boldness(optimizer, step):
#     parts = []
#     for state in optimizer.state.values():
#         m_hat = state["exp_avg"] / (1 - 0.9**step)  # torch's name of m
#         v_hat = state["exp_avg_sq"] / (1 - 0.98**step)
#         parts.append((m_hat.abs() / (v_hat.sqrt() + 1e-9)).flatten())
#     return torch.cat(parts).mean().item()
#
#
# def train(rates, seed, norm_first=False):
#     torch.manual_seed(seed)
#     sizes = dict(d_model=64, d_ff=128, N=4, h=4, P_drop=0.0, norm_first=norm_first)
#     model = Transformer(TransformerConfig(13, **sizes))
#     optimizer = adam(model)
#     losses, bold = [], []
#     for step, rate in enumerate(rates, 1):
#         set_learning_rate(optimizer, rate)
#         loss = backwards_loss(model)
#         optimizer.zero_grad()
#         loss.backward()
#         optimizer.step()
#         losses.append(loss.item())
#         bold.append(boldness(optimizer, step))
#     return losses, bold

# %% tags=["active-ipynb"]
# _, bold = train([0.0005] * 100, seed=0)
# ax = plotting.lines(range(1, 101), {"": bold}, "update", "mean step / rate")
# ax.set_ylim(0, 1.05)
# views.picture(ax, f"The mean step is 1.00 of the rate first and {bold[-1]:.2f} last.")

# %% [markdown]
# *Follow the curve from the left: the first step is the whole rate, and after twenty updates it is a quarter, because gradients of different batches disagree.*
#
# So a rate that is right for the fiftieth update may be far too large for the first. The remedy is a **warm-up**: let the rate begin near zero and grow, until $m$ and $v$ have seen enough. Equation 3 of the paper does that with two terms, of which the smaller one counts:
#
# $$lrate = d_{model}^{-0.5} \cdot \min(step^{-0.5},\; step \cdot warmup^{-1.5})$$
#
# For the first $warmup$ updates the second term is smaller, and the rate grows in a straight line. After them the first one is smaller, and the rate falls with the root of the step. At step $= warmup$ both are equal, so the peak is $(d_{model} \cdot warmup)^{-0.5}$. The paper's $d_{model} = 512$ and $warmup = 4000$ make that $1/\sqrt{2{,}048{,}000} = 0.0007$.


# %%
def learning_rate(
    step: int, d_model: int = 512, warmup: int = 4000, lr_scale: float = 1.0
) -> float:
    """lr_scale * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5) (equation 3).

    step counts updates of the weights, from 1; lr_scale is 1 in the paper. Raises
    ValueError for a step, a width or a warmup below 1.
    """
    check_from_one(step=step, d_model=d_model, warmup=warmup)
    return lr_scale * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def peak_rate(d_model: int = 512, warmup: int = 4000, lr_scale: float = 1.0) -> float:
    """The largest `learning_rate`, at step = warmup: lr_scale * (d_model * warmup)^-0.5.

    ValueError for sizes below 1.
    """
    check_from_one(d_model=d_model, warmup=warmup)
    return lr_scale * (d_model * warmup) ** -0.5


# %% tags=["active-ipynb"]
# steps = range(200, 100_001, 200)
# paper = [learning_rate(step) for step in steps]
# cosine = []
# for step in steps:
#     done = max(0, step - 4000) / (100_000 - 4000)  # of the way after the warm-up
#     wave = (1 + math.cos(math.pi * done)) / 2  # from 1 down to 0
#     cosine.append(min(step / 4000, 1) * wave * peak_rate())
# schedules = {"the paper": paper, "cosine": cosine}
# ax = plotting.lines(steps, schedules, "update", "learning rate")
# ax.xaxis.set_major_formatter("{x:,.0f}")
# views.picture(
#     ax,
#     "Both rates climb to 0.0007 at update 4,000; the paper's falls steeply at first "
#     "and ends at 0.00014, the cosine falls slowly at first and ends at 0.",
# )

# %% [markdown]
# *The first 4,000 updates are the same: today's models mostly keep the warm-up and replace what comes after it, for example by half a cosine wave that ends at zero.*
#
# A cosine must know in advance when training will end, and the paper's curve need not. Either counts *updates*. (**Not in the paper:** `lr_scale`. For small models the formula's peak can be too high, and we multiply it by a number that is found by trying.)

# %% [markdown]
# ## Does a Transformer need warm-up?
#
# Now the test. Three models have the same peak of 0.005. The first has a warm-up of 100 updates. The second gets the peak's rate at once. The third does, too, but normalises *before* each sub-layer (pre-norm). Each is trained from three starts, 250 updates long. Which of them will learn to write six digits backwards?

# %% tags=["active-ipynb"]
# warm = [learning_rate(step, 64, 100, 0.4) for step in range(1, 251)]
# at_once = [max(warm)] * 100 + warm[100:]
# plans = {
#     "warm-up": (warm, False),
#     "no warm-up": (at_once, False),
#     "no warm-up, pre-norm": (at_once, True),
# }
# runs = {
#     name: torch.tensor([train(rates, seed, first)[0] for seed in range(3)])
#     for name, (rates, first) in plans.items()
# }
# views.starts(runs, level=math.log(10))

# %% [markdown]
# *A thin line is one start; the middle panel is the verdict: without warm-up, none of the three models with the paper's wiring learns the task in this time.* With warm-up all three do. The pre-norm models need none.

# %% tags=["active-ipynb"]
# last = {name: losses[:, -10:].mean() for name, losses in runs.items()}
# assert last["no warm-up"] > last["warm-up"] + 0.5
# assert last["no warm-up, pre-norm"] < 0.5
# print("at this peak, post-norm learns with warm-up and not without it")

# %% [markdown]
# So warm-up lets a post-norm model have a higher rate. (With two more starts it is four of five against none, and at half the peak three of five learn without it; [evidence 12.1](evidence/12_optimizer.ipynb).)
#
# Is it Adam's boldness, then? We can let $v$ form first, with the weights held still, and then begin with the whole rate: no start learns. We can shorten the first twenty steps or so instead: two of five learn. If we do both, four of five learn, as with the long warm-up ([evidence 12.2](evidence/12_optimizer.ipynb)). So the boldness of the first steps is a part of the story. That pre-norm needs none of this is the other part, and why the place of the norms matters so much is disputed ([evidence 12.3](evidence/12_optimizer.ipynb)).
#
# *The package's version of Adam changes all weights in one call where torch can ([source](https://github.com/OWNER/annotated-attention/blob/main/transformer/fast/training.py)), with the same result, and it has [other schedules](https://github.com/OWNER/annotated-attention/blob/main/transformer/runs/schedules.py), the cosine among them.*

# %% [markdown]
# ## What to keep
#
# - One rate for all weights is limited by the steepest direction; Adam gives each weight a rate of its own, by dividing out the size of its gradients.
# - Adam's first steps are its largest and its worst informed, so the rate begins near zero and grows: the warm-up.
# - Post-norm, the paper's wiring, needs warm-up at rates at which pre-norm does not.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** A weight gets the gradient 2 in its first update and $-2$ in its second. How far, and in which direction, does Adam move it each time, as a part of the rate? ($\beta_1 = 0.9$, $\beta_2 = 0.98$; forget $\epsilon$.)
#
# <details><summary>Answer</summary>
#
# First, $\hat m = 2$ and $\hat v = 4$, so the weight moves down by the whole rate. Then $m = 0.9 \cdot 0.2 - 0.1 \cdot 2 = -0.02$, and $\hat m = -0.02 / (1 - 0.81) = -0.105$. All squares are 4, so $\hat v = 4$. The weight moves *up*, by $0.105/2 = 0.053$ of the rate. It does not go back to where it was: the first, badly informed step counts nearly twenty times as much as the second.
# </details>
#
# **2. In code.** Most models today use AdamW (Loshchilov and Hutter, 2019): besides Adam's step, each weight shrinks by `rate * decay` of itself, and this shrinking does not enter $m$ and $v$. Write one update.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.optimizer import check_adamw
#
#
# def adamw(p, gradient, m, v, step, rate, decay):
#     """The new p, m and v; betas are 0.9 and 0.98, epsilon 1e-9, steps count from 1."""
#     ...
#
#
# check_adamw(adamw)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def adamw(p, gradient, m, v, step, rate, decay):
#     m = 0.9 * m + 0.1 * gradient
#     v = 0.98 * v + 0.02 * gradient**2
#     m_hat = m / (1 - 0.9**step)
#     v_hat = v / (1 - 0.98**step)
#     p = p - rate * decay * p
#     return p - rate * m_hat / (v_hat**0.5 + 1e-9), m, v
# ```
#
# If `decay * p` were added to the gradient instead, it would be divided by $\sqrt{v}$ like everything else, and weights with large gradients would hardly shrink.
# </details>
#
# **3. To think about.** Large batches do not fit into a small memory, so you add up the gradients of four batches and then make one update. By mistake your schedule counts *batches*. What happens to the rate at the paper's settings: when is the peak, how high is it, and what is wrong with the rest?
#
# <details><summary>Answer</summary>
#
# Update number $u$ gets the rate of step $4u$. So the warm-up is over after 1,000 updates instead of 4,000, at the same peak of 0.0007. Until then every rate is four times too high, just where a high rate does harm. Later the rate falls as $(4u)^{-0.5}$, so from update 4,000 on it is half of what it should be, and training is slow to the end. The losses look plausible all the while, which makes the mistake hard to find.
# </details>
#
# **Next.** The weights now go down the training loss. [Chapter 13](13_regularization.ipynb) asks why that is not quite what we want.
