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
# The gradient tells every weight which way is down. It does not say how far to go. If you multiply it by a small number, the **learning rate**, you have plain gradient descent. The paper's optimizer is called Adam, and its learning rate begins near zero, climbs for 4,000 updates, and then falls for the rest of the training. Why Adam, why the fall, and why the slow start? Let us begin with a valley, and walk down it badly.

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
# from transformer.core.records import table
#
# torch.set_num_threads(1)  # on models this small, a second thread only waits

# %% [markdown]
# ## One rate does not fit all weights
#
# A model of two weights, $x$ and $y$, has the loss $\frac12 (x^2 + 50\,y^2)$. It is a valley: steep across, in $y$, and nearly flat along, in $x$. Its lowest point is $(0, 0)$, and we start at $(-10, 1)$. The gradient is $(x, 50y)$, so a step of plain descent with rate $r$ takes $x$ to $(1 - r)\,x$ and $y$ to $(1 - 50 r)\,y$.
#
# Which rate would you choose? Across the valley, $r = 0.02$ is perfect: $1 - 50 r = 0$, and the first step ends on the floor. But along the valley each step covers only 2% of the distance that is left. Above $r = 0.04$, however, $1 - 50r$ is below $-1$, and each step across ends further from the floor than it began.

# %% tags=["active-ipynb"]
# def gradient(point, steep=50.0):
#     return point * torch.tensor([1.0, steep])
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
# rates = (0.02, 0.039, 0.041)
# views.valley({f"rate {rate}": descend(rate) for rate in rates})

# %% [markdown]
# *Each path has 40 steps: at rate 0.02 it is slow, at 0.039 it goes furthest and still does not arrive, and at 0.041, only a little more, it leaves the valley.*
#
# The steepest direction sets the limit, and every other direction pays for it. Among the millions of weights of a Transformer it would be a strange accident if one rate suited all. We want a rate for each weight.

# %% [markdown]
# ## Adam gives each weight its own rate
#
# Adam (Kingma and Ba, 2015) remembers two things about each weight. The first is $m$, a running mean of its gradients $g$. A single gradient comes from a single batch and is partly chance. In $m$ chance partly cancels, and what the batches agree on remains. To follow such a mean is called **momentum**, and is older than Adam. The second is $v$, a running mean of the squares $g^2$. Its root says how large the gradients of this weight usually are. Adam divides the first by the second:
#
# $$m \leftarrow \beta_1 m + (1-\beta_1)\, g, \qquad v \leftarrow \beta_2 v + (1-\beta_2)\, g^2, \qquad
# \theta \leftarrow \theta - rate \cdot \frac{\hat m}{\sqrt{\hat v} + \epsilon}$$
#
# A running mean remembers about $1/(1-\beta)$ values. With the paper's $\beta_1 = 0.9$ and $\beta_2 = 0.98$ these are ten for $m$ and fifty for $v$. Both means begin at zero, so at first they are too small: after $t$ equal gradients, $m$ is only $(1-\beta_1^t)\, g$. Dividing by this factor repairs it, and a hat marks the repaired mean: $\hat m = m / (1-\beta_1^t)$ and $\hat v = v / (1-\beta_2^t)$. The tiny $\epsilon$ keeps a weight whose gradients are all zero from dividing zero by zero.
#
# Do the first update with a pencil, for a gradient of 4: $m = 0.1 \cdot 4 = 0.4$ and $\hat m = 0.4/0.1 = 4$. Likewise $v = 0.02 \cdot 16 = 0.32$ and $\hat v = 0.32/0.02 = 16$. The ratio is $4/\sqrt{16} = 1$, so the weight moves by the whole rate. Now do it for a gradient of 0.004. What changes?


# %%
def adam_update(p, gradient, m, v, step, rate, betas=(0.9, 0.98), epsilon=1e-9):
    """One update of Adam (Kingma and Ba, 2015) with the paper's settings (Section 5.3).

    p, gradient, m, v: numbers, or tensors of one shape; m and v are 0 before step 1.
    Returns the new p, m and v.
    """
    beta_1, beta_2 = betas
    m = beta_1 * m + (1 - beta_1) * gradient
    v = beta_2 * v + (1 - beta_2) * gradient**2
    m_hat = m / (1 - beta_1**step)
    v_hat = v / (1 - beta_2**step)
    return p - rate * m_hat / (v_hat**0.5 + epsilon), m, v


def step_lengths(gradients, **settings) -> list:
    """Adam's steps under these gradients, as parts of the rate; negative ones go up.

    gradients: a number for each update, or a tensor; settings: betas and epsilon.
    """
    p = m = v = 0.0
    lengths = []
    for step, gradient in enumerate(gradients, 1):
        new, m, v = adam_update(p, gradient, m, v, step, rate=1.0, **settings)
        lengths.append(p - new)
        p = new
    return lengths


# %% tags=["active-ipynb"]
# histories = {
#     "always 4": [4.0] * 40,
#     "always 0.004": [0.004] * 40,
#     "4 and -4 in turn": [4.0, -4.0] * 20,
# }
# print("update                 1      2      3     39     40")
# for name, gradients in histories.items():
#     lengths = step_lengths(gradients)
#     shown = lengths[:3] + lengths[-2:]
#     print(f"{name:17}", *(f"{length:6.2f}" for length in shown), " of the rate")

# %% [markdown]
# Nothing changes. **The size of a gradient cancels, and what remains is whether gradients agree.** While they agree, the weight moves by the whole rate, however small they are. Where they take turns, the steps shrink to a twentieth of the rate.
#
# So Adam's rate is a length. The way down our valley is 10, and 40 steps of 0.3 make 12, so we give Adam a rate of 0.3. (For plain descent, too, we knew the valley.) Momentum is a part of Adam, so we try it alone as well, at 0.05, a good rate for it. Finally we turn the valley by 45 degrees, so that it runs along the diagonal. Will Adam do as well there?

# %% tags=["active-ipynb"]
# def momentum(rate, gradient, start):
#     point, m = start, 0
#     path = [point]
#     for _ in range(40):
#         m = 0.9 * m + 0.1 * gradient(point)
#         point = point - rate * m
#         path.append(point)
#     return torch.stack(path)
#
#
# def descend_by_adam(rates, gradient, start):
#     point, m, v = start, 0, 0
#     path = [point]
#     for step, rate in enumerate(rates, 1):
#         point, m, v = adam_update(point, gradient(point), m, v, step, rate)
#         path.append(point)
#     return torch.stack(path)
#
#
# def diagonal_gradient(point):
#     x, y = point
#     along = (x + y) / 2  # the point is along * (1, 1) + across * (-1, 1)
#     across = (y - x) / 2
#     return torch.stack([along - 50 * across, along + 50 * across])
#
#
# start = torch.tensor([-10.0, 1.0])
# turned_start = (-10 * torch.tensor([1.0, 1.0]) + torch.tensor([-1.0, 1.0])) / 2**0.5
# straight = descend_by_adam([0.3] * 40, gradient, start)
# diagonal = descend_by_adam([0.3] * 40, diagonal_gradient, turned_start)
# paths = {  # and whether the valley is turned
#     "momentum alone": (momentum(0.05, gradient, start), False),
#     "Adam": (straight, False),
#     "Adam, valley turned": (diagonal, True),
# }
# views.descents(paths)

# %% [markdown]
# *After 40 steps momentum alone and Adam nearly reach the bottom (+) of the straight valley, and in the turned valley Adam is left behind.*
#
# The third path shows the limit of the idea. Adam has a rate for each *weight*, and not for each direction. In the turned valley both weights are equally steep. Adam ends further from the bottom than plain descent at 0.039. Which of the two valleys a Transformer resembles we have not measured.
#
# If momentum alone does so well, what is the division good for? Make the valley a hundred times as steep across. Momentum would now leave it, unless its rate is a hundred times smaller. We give it 0.007, close to the largest safe rate. Adam keeps its rate. And is torch's Adam, which the rest of the book uses, the same as ours?

# %% tags=["active-ipynb"]
# def steeper(point):
#     return gradient(point, steep=5000.0)
#
#
# point = start.clone().requires_grad_()
# optimizer = torch.optim.Adam([point], lr=0.3, betas=(0.9, 0.98), eps=1e-9)
# for _ in range(40):
#     point.grad = gradient(point.detach())
#     optimizer.step()
# ends = {
#     "momentum, 100 times as steep": momentum(0.007, steeper, start)[-1],
#     "Adam, 100 times as steep": descend_by_adam([0.3] * 40, steeper, start)[-1],
#     "Adam": straight[-1],
#     "torch's Adam": point.detach(),
# }
# for name, end in ends.items():
#     print(f"{name:28} ends at x = {end[0]:7.4f}, y = {end[1]:7.4f}")
# assert torch.allclose(point, straight[-1], atol=1e-4)

# %% [markdown]
# Momentum has covered less than a quarter of the way. Adam does not notice the change: the steepness of a weight is a size, and the size cancels. Torch's Adam takes the same path.
#
# We give it the paper's settings. Their $\beta_2 = 0.98$ is smaller than torch's 0.999, so that $v$ forgets large old gradients sooner ([evidence 12.4](evidence/12_optimizer.ipynb)).

# %%
ADAM = dict(
    lr=0.0, betas=(0.9, 0.98), eps=1e-9
)  # Section 5.3; the training loop sets the rate


def adam(model: nn.Module) -> torch.optim.Optimizer:
    """Adam with the paper's settings for the parameters of a model."""
    return torch.optim.Adam(model.parameters(), **ADAM)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Give every group of parameters this learning rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate


# %% [markdown]
# ## Why must the rate fall?
#
# Near the bottom the gradients are small. Plain descent slows down there by itself, because its steps shrink with the gradients. Adam throws their size away, and what is left of a gradient at the bottom is mostly chance. We add random numbers to the gradient of our straight valley, as batches would, and let 200 walkers go down with Adam. With one rate, will they settle?

# %% tags=["active-ipynb"]
# def noisy_gradient(point):
#     return gradient(point) + 5 * torch.randn_like(point)
#
#
# def mean_distance(rates):
#     """How far 200 walkers are from the bottom, on average, after each step."""
#     torch.manual_seed(0)
#     paths = descend_by_adam(rates, noisy_gradient, start.expand(200, 2))
#     return paths.norm(dim=-1).mean(dim=1)
#
#
# steps = range(1, 1001)
# curves = {
#     "the rate stays at 0.3": mean_distance([0.3 for step in steps]),
#     "it falls from step 40 on": mean_distance(
#         [0.3 * min(1, (40 / step) ** 0.5) for step in steps]
#     ),
# }
# views.walkers(curves)

# %% [markdown]
# *After step 50 the solid curve comes no nearer to the bottom, and the dashed one, whose rate falls, goes on coming nearer.*
#
# Chance alone keeps Adam's walkers moving, and only a smaller rate makes their steps shorter. The second rate falls with the root of the step, as the paper's will. It ends at a fifth of 0.3, and the walkers end at about half the distance. A large rate suits the long way down, and a small rate suits the end.

# %% [markdown]
# ## Why start slowly?
#
# Why does the rate begin near zero, where the way is longest? Whatever its first gradient, a weight moves by the whole rate, in a direction that a single batch suggested. Adam is boldest when it knows least.
#
# How bold is Adam later? We train a small Transformer at a low constant rate. In each update a weight moves by $|\hat m| / \sqrt{\hat v}$ of the rate, and we take the mean over all weights. The model is an encoder of four layers. It reads six digits and writes them backwards.

# %% tags=["active-ipynb"]
# def backwards_loss(model):
#     digits = torch.randint(3, 13, (16, 6))  # ids 3 to 12; 0 to 2 are special
#     logits = model.output(model.encode(digits))  # the decoder is not used
#     return nn.functional.cross_entropy(logits.flatten(0, 1), digits.flip(1).flatten())
#
#
# def new_model(N=4, norm_first=False):
#     sizes = dict(d_model=64, d_ff=128, N=N, h=4, P_drop=0.0, norm_first=norm_first)
#     return Transformer(TransformerConfig(13, **sizes))
#
#
# def train(rates, seed, norm_first=False):
#     """One update for each rate; yields the loss and the optimizer after each."""
#     torch.manual_seed(seed)
#     model = new_model(norm_first=norm_first)
#     optimizer = adam(model)
#     for rate in rates:
#         set_learning_rate(optimizer, rate)
#         loss = backwards_loss(model)
#         optimizer.zero_grad()
#         loss.backward()
#         optimizer.step()
#         if rate == 0:  # for an experiment below: only v forms, m stays at zero
#             for state in optimizer.state.values():
#                 state["exp_avg"].zero_()  # torch's name of m
#         yield loss.item(), optimizer
#
#
# def boldness(optimizer):
#     steps = []
#     for state in optimizer.state.values():  # exp_avg is m, exp_avg_sq is v
#         m_hat = state["exp_avg"] / (1 - 0.9 ** state["step"])
#         v_hat = state["exp_avg_sq"] / (1 - 0.98 ** state["step"])
#         used = v_hat > 0  # rows of ids that never occur have no gradient
#         steps.append(m_hat[used].abs() / v_hat[used].sqrt())
#     return torch.cat(steps).mean().item()
#
#
# bold = [boldness(optimizer) for _, optimizer in train([0.0005] * 100, seed=0)]
# chance = step_lengths(torch.randn(100, 2000))  # 100 updates of 2,000 weights
# noise = [lengths.abs().mean().item() for lengths in chance]
# views.boldness(bold, noise)

# %% [markdown]
# *Follow the solid curve from the left: the first step is the whole rate, and after twenty updates the mean step is a quarter of it. The dashed curve belongs to weights whose gradients are nothing but random numbers.*
#
# A mean over about ten random numbers is small, because most of them cancel: the dashed curve levels off a little below 0.2. The model's steps are at about 0.25 for a while. So batches agree a little, but most of a gradient is chance. Only in the first updates there is nothing to average yet, and chance moves the weights by nearly the whole rate.
#
# Now we have a suspect: the first steps are too bold, and the rate should be small until Adam knows more. But there is trouble. The boldness is gone after some twenty updates, and the paper's slow start, its **warm-up**, takes 4,000. We first test the suspect, and then come back to this number.

# %% [markdown]
# ## Does a Transformer need warm-up?
#
# Our plan with warm-up is a small copy of the paper's: the rate climbs in a straight line for 100 updates, to a peak of 0.005, and then falls with the root of the update. Our plan without warm-up has the peak's rate in the first 100 updates, and after them the same rates as the other.
#
# We try both plans with two wirings. The paper's is [post-norm](03_stacks.ipynb): it normalises after each sum. Most of today's models are **pre-norm**: they normalise before each sub-layer. In which of the four panels will all three starts learn to write six digits backwards?

# %% tags=["active-ipynb"]
# warm = [0.005 * min(step / 100, (100 / step) ** 0.5) for step in range(1, 251)]
# at_once = [0.005] * 100 + warm[100:]
# plans = {  # the rates, and whether the norms come first
#     "post-norm, warm-up": (warm, False),
#     "post-norm, no warm-up": (at_once, False),
#     "pre-norm, warm-up": (warm, True),
#     "pre-norm, no warm-up": (at_once, True),
# }
# runs = {name: [] for name in plans}
# for name, (rates, norm_first) in plans.items():
#     for seed in range(3):
#         losses = [loss for loss, _ in train(rates, seed, norm_first)]
#         runs[name].append(losses)
# views.starts(runs, level=math.log(10))  # guessing one of ten digits costs ln 10

# %% [markdown]
# *Each line is a start (means of ten updates), green if it has learned the task by update 250, and red if not: only post-norm without warm-up is red.*
#
# Pre-norm learns with and without warm-up. Post-norm waits for a while near 1.7, and then learns, if it had a warm-up. Without warm-up no start has learned by update 250. Are they late, or stuck? Of twenty such starts that went on to update 500, three have learned by then ([evidence 12.1](evidence/12_optimizer.ipynb)). So the first hundred updates decide about the next four hundred.
#
# We chose a high peak to see this. At half this peak, twelve of twenty post-norm starts learn without warm-up by update 250.

# %% [markdown]
# ## Is Adam's boldness to blame?
#
# In Adam's first updates both of its means are young. We can help each of them alone, and then both:
#
# - **Short steps** make up for the young $m$. Rate number $t$ is $1 - 0.9^t$ of the peak's: a tenth, a fifth, and after some twenty updates nine tenths.
# - **v first** makes up for the young $v$. For 100 batches the rate is zero. No weight moves, and $m$ is kept at zero, but $v$ collects its squares. Then training begins.
#
# If bold steps are the whole story, short steps are as good as the long warm-up, and "v first" adds nothing to them. What do you bet? The cell trains one start of the last plan. Twenty starts of each come from a record of the same trainings ([evidence 12.2](evidence/12_optimizer.ipynb)).

# %% tags=["active-ipynb"]
# growth = [1 - 0.9**step for step in range(1, 251)]
# held = [0.0] * 100
# # Torch counts the held batches, too. After them m's hat no longer makes m larger,
# # so the first steps are short. For full steps we divide by what the hat would be.
# plans = {
#     "v first, full steps": held + [r / g for r, g in zip(at_once, growth)],
#     "short steps": [r * g for r, g in zip(at_once, growth)],
#     "v first, short steps": held + at_once,
# }
# last = "v first, short steps"
# losses = [loss for loss, _ in train(plans[last], seed=0)]
# here = {last: sum(losses[-10:]) / 10}
#
# rows = table("warmup")
# shown = ["no warm-up", *plans, "warm-up"]
# finishes = {name: rows[rows.plan == name].loss for name in shown}
# views.finishes(finishes, math.log(10), ringed=here)

# %% [markdown]
# *A dot is one start of post-norm, green if it has learned the task after 250 updates of training; the ring is the start that the cell has trained. Each remedy alone is worse than the long warm-up, and both together are as good.*
#
# Bold steps are not the whole story. Short steps bring nine of twenty starts to the goal, a formed $v$ only one, and both together eighteen, as many as the long warm-up. So both young means do harm. A formed $v$ alone hardly helps, because the first steps stay bold: the gradient of one batch is divided by its usual size instead of its own, and the weight still moves by about the whole rate. Why a formed $v$ helps short steps, we have not tested; a likely reason is that a $v$ of few gradients is itself partly chance.
#
# The long warm-up does both: its first steps are short, and while they are short, $v$ has time to form.

# %% [markdown]
# ## Why is post-norm so easily hurt?
#
# Pre-norm had the same bold Adam, and learned. We can look for the difference before any training. Take a new encoder and move every weight by 0.005, up or down at random. That is about what Adam's first update does at our peak. How far does the output move?

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def moved(N, norm_first, seed):
#     """How far the output of N new layers moves, as a part of its own length."""
#     torch.manual_seed(seed)
#     model = new_model(N, norm_first)
#     digits = torch.randint(3, 13, (64, 6))
#     before = model.encode(digits)
#     for weights in model.encoder.parameters():
#         weights += 0.005 * torch.randn_like(weights).sign()
#     return ((model.encode(digits) - before).norm() / before.norm()).item()
#
#
# layers = [1, 2, 4, 8, 16]
# curves = {
#     name: [sum(moved(N, norm_first, seed) for seed in range(5)) / 5 for N in layers]
#     for name, norm_first in (("post-norm", False), ("pre-norm", True))
# }
# views.moves(layers, curves)

# %% [markdown]
# *The same small move of all weights changes the output of post-norm more than that of pre-norm, and the more so the deeper the stack: with sixteen layers twice as much.*
#
# Liu et al. (2020) give this explanation: a post-norm layer relies more on its sub-layers and less on the lane around them, so that small changes of many weights add up. Our picture fits it without proving it, because with four layers the difference is only a third. [Evidence 12.3](evidence/12_optimizer.ipynb) has a rival explanation.

# %% [markdown]
# ## Equation 3, and the 4,000
#
# $$lrate = d_{model}^{-0.5} \cdot \min(step^{-0.5},\; step \cdot warmup^{-1.5})$$
#
# Up to $step = warmup$ the second term is the smaller one: the rate climbs in a straight line. From there on the first is smaller: the rate falls with the root of the step. Where the two meet is the peak, $(d_{model} \cdot warmup)^{-0.5}$. For the paper's $d_{model} = 512$ and $warmup = 4000$ that is $1/\sqrt{2{,}048{,}000} = 0.0007$.


# %%
def learning_rate(
    step: int, d_model: int = 512, warmup: int = 4000, lr_scale: float = 1.0
) -> float:
    """lr_scale * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5) (equation 3).

    step counts updates of the weights, from 1; lr_scale is 1 in the paper.
    """
    check_from_one(step=step, d_model=d_model, warmup=warmup)
    return lr_scale * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def peak_rate(d_model: int = 512, warmup: int = 4000, lr_scale: float = 1.0) -> float:
    """The largest `learning_rate`, at step = warmup: lr_scale * (d_model * warmup)^-0.5."""
    check_from_one(d_model=d_model, warmup=warmup)
    return lr_scale * (d_model * warmup) ** -0.5


# %% tags=["active-ipynb"]
# steps = range(100, 40_001, 100)
# cosine = []
# for step in steps:
#     done = max(0, step - 4000) / (40_000 - 4000)  # of the way after the warm-up
#     wave = (1 + math.cos(math.pi * done)) / 2  # from 1 down to 0
#     cosine.append(min(step / 4000, 1) * wave * peak_rate())
# schedules = {"the paper": [learning_rate(step) for step in steps], "cosine": cosine}
# views.schedules(steps, schedules)

# %% [markdown]
# *The first 4,000 updates are the same: today's models mostly keep the warm-up, and many replace the paper's fall by half a cosine wave that ends at zero.*
#
# Why 4,000? The paper gives no reason, and our tests do not lead to this number: boldness is gone after twenty updates, and $v$ remembers fifty. But in this formula `warmup` sets the height, too. With a warm-up of 100 the paper's model would climb to $1/\sqrt{51{,}200} = 0.0044$, six times as high. So 4,000 chooses a low peak at least as much as a slow start. How much of either its model needs, we have not tested.
#
# **Not in the paper:** `lr_scale`, which multiplies the whole curve. Our rates above are the formula with a warm-up of 100 and an `lr_scale` of 0.4.

# %% [markdown]
# ## What to keep
#
# - One rate for all weights is limited by the steepest direction; Adam gives each weight its own, by dividing out the size of its gradients, so that only their agreement counts.
# - Adam does not slow down by itself at the bottom, so the rate must fall.
# - Adam is boldest in its first updates, when both of its means are young; a warm-up keeps the steps short until the means have formed, and post-norm, the paper's wiring, needs this at rates at which pre-norm does not.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** A weight belongs to the row of a rare word, in a matrix of embeddings that is used only for the input. Its first gradient is 3. The word is not in the second batch, so the second gradient is 0. How far does Adam move the weight in each of the two updates, as a part of the rate? ($\beta_1 = 0.9$, $\beta_2 = 0.98$; forget $\epsilon$.) What would plain descent do?
#
# <details><summary>Answer</summary>
#
# In the first update the weight moves by the whole rate. In the second, $m = 0.9 \cdot 0.3 = 0.27$ and $\hat m = 0.27 / 0.19 = 1.42$. Further, $v = 0.98 \cdot 0.18 = 0.176$ and $\hat v = 0.176 / 0.0396 = 4.45$. So the weight moves by $1.42 / \sqrt{4.45} = 0.67$ of the rate, in the old direction. Plain descent would leave it where it is.
# </details>
#
# **2. In code.** One often lets every weight shrink a little in every update. The obvious way is to add `decay * p` to the gradient. Try it with a pencil, in the first update, for two weights of 1: the first has a gradient of 0.01, and the second of 10. How much further do they move for a `decay` of 0.1? Then write the update of AdamW (Loshchilov and Hutter, 2019), in which every weight shrinks by `rate * decay` of itself.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.optimizer import check_adamw
#
#
# def adamw(p, gradient, m, v, step, rate, decay):
#     """The new p, m and v, with the betas and the epsilon of the paper."""
#     ...
#
#
# check_adamw(adamw)

# %% [markdown]
# <details><summary>Solution</summary>
#
# With a pencil, nothing happens: the gradients become 0.11 and 10.1, and both weights move by the whole rate as before, because the size of a gradient cancels. In later updates, too, the decay is divided by $\sqrt{v}$, so that weights with large gradients hardly shrink. AdamW keeps the decay out of $m$ and $v$:
#
# ```python
# def adamw(p, gradient, m, v, step, rate, decay):
#     moved, m, v = adam_update(p, gradient, m, v, step, rate)
#     shrunk = rate * decay * p
#     return moved - shrunk, m, v
# ```
# </details>
#
# **3. To think about.** Large batches do not fit into a small memory, so you add up the gradients of four batches and then make one update. By mistake your schedule counts *batches*, where it should count updates. What happens to the rate at the paper's settings: when is the peak, how high is it, and what is wrong with the rest?
#
# <details><summary>Answer</summary>
#
# Update number $u$ gets the rate of step $4u$. So the warm-up is over after 1,000 updates instead of 4,000, at the same peak of 0.0007. Until then every rate is four times too high, just where a high rate does harm. From update 1,000 to 4,000 the rate falls where it should climb. Later it falls as $(4u)^{-0.5}$, so from update 4,000 on it is half of what it should be.
# </details>
#
# **Next.** The weights now go down the training loss. [Chapter 13](13_regularization.ipynb) asks why that is not quite what we want.
