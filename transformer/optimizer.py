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
# The gradient tells every weight which way is down. It does not say how far to go. If you multiply it by a small number, the **learning rate**, you have plain gradient descent. The paper does something less plain. Its optimizer is called Adam, and its learning rate begins near zero, climbs for 4,000 updates, and then falls for the rest of the training. Why Adam, why the fall, and why the slow start? Let us walk down a valley, first badly.

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
# from transformer.views import plotting
#
# torch.set_num_threads(1)  # on models this small, a second thread only waits

# %% [markdown]
# ## One rate does not fit all weights
#
# A model of two weights, $x$ and $y$, has the loss $\frac12 (x^2 + 50\,y^2)$. It is a valley: steep across, in $y$, and nearly flat along, in $x$. Its lowest point is $(0, 0)$, and we start at $(-10, 1)$. The gradient is $(x, 50y)$, so a step of plain descent with rate $r$ takes $x$ to $(1 - r)\,x$ and $y$ to $(1 - 50 r)\,y$.
#
# Which rate would you choose? Across the valley, $r = 0.02$ is perfect: $1 - 50 r = 0$, and the first step ends on the floor. But along the valley each step covers only 2% of the distance that is left. A larger rate is faster along the valley. Above $r = 0.04$, however, $1 - 50r$ is below $-1$, and each step across ends further from the floor than it began.

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
# rates = (0.02, 0.039, 0.041)
# views.valley({f"rate {rate}": descend(rate) for rate in rates})

# %% [markdown]
# *Each path has 40 steps: the first is slow, the second is as fast as plain descent can safely be and still does not arrive, and the third, with a rate only a little larger, leaves the valley.*
#
# The steepest direction sets the limit, and every other direction pays for it. Here one direction is fifty times as steep as the other. A Transformer has millions of weights, and it would be a strange accident if one rate suited them all. What we want is a rate for each weight.

# %% [markdown]
# ## Adam gives each weight its own rate
#
# Adam (Kingma and Ba, 2015) remembers two things about each weight. The first is $m$, a running mean of its gradients $g$. A single gradient comes from a single batch and is partly chance. In a mean over about ten updates chance partly cancels, and what the batches agree on remains. This idea is older than Adam and is called **momentum**. The second is $v$, a running mean of the squares $g^2$. Its root says how large the gradients of this weight usually are. Adam divides the first by the second:
#
# $$m \leftarrow \beta_1 m + (1-\beta_1)\, g, \qquad v \leftarrow \beta_2 v + (1-\beta_2)\, g^2, \qquad
# \theta \leftarrow \theta - rate \cdot \frac{\hat m}{\sqrt{\hat v} + \epsilon}$$
#
# Both means begin at zero, and are too small at first: after $t$ equal gradients, $m$ is only $(1-\beta_1^t)\, g$. The hats mend that: $\hat m = m / (1-\beta_1^t)$ and $\hat v = v / (1-\beta_2^t)$. The tiny $\epsilon$ keeps a weight whose gradients are all zero from dividing zero by zero.
#
# Do the first update with a pencil, for a gradient of 4. With the paper's $\beta_1 = 0.9$ and $\beta_2 = 0.98$, $m = 0.1 \cdot 4 = 0.4$ and $\hat m = 0.4/0.1 = 4$. Likewise $v = 0.02 \cdot 16 = 0.32$ and $\hat v = 0.32/0.02 = 16$. The ratio is $4/\sqrt{16} = 1$, so the weight moves by the whole rate. Now do it for a gradient of 0.004. What changes?


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


# %%
def step_lengths(
    gradients: list[float], beta_2: float = 0.98, epsilon: float = 1e-9
) -> list[float]:
    """Adam's steps under these gradients, as parts of the rate; negative ones go up."""
    p = m = v = 0.0
    lengths = []
    for step, gradient in enumerate(gradients, 1):
        new, m, v = adam_update(p, gradient, m, v, step, 1.0, (0.9, beta_2), epsilon)
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
# Nothing changes. **The size of a gradient cancels, and what remains is whether gradients agree.** While they agree, the weight moves by the whole rate, however small they are. Where they take turns, the steps shrink to a twentieth of the rate and take turns as well. In the valley we want both. Along it the gradients are small and always say the same. Across it they are large, and change their sign whenever the path crosses the floor.
#
# The rate has become a length: no matter how steep the valley is, 40 steps of at most 0.3 make 12 at most. The way is 10, so let us give Adam a rate of 0.3.

# %% tags=["active-ipynb"]
# def descend_by_adam(rates, gradient, start):
#     point, m, v = start, 0, 0
#     path = [point]
#     for step, rate in enumerate(rates, 1):
#         point, m, v = adam_update(point, gradient(point), m, v, step, rate)
#         path.append(point)
#     return torch.stack(path)
#
#
# c = math.sqrt(0.5)
# turn = torch.tensor([[c, -c], [c, c]])  # turn @ point: turned by 45 degrees
#
#
# def turned_gradient(point):
#     """The gradient of the same valley, when it runs along the diagonal."""
#     return turn @ gradient(turn.T @ point)
#
#
# start = torch.tensor([-10.0, 1.0])
# straight = descend_by_adam([0.3] * 40, gradient, start)
# turned = descend_by_adam([0.3] * 40, turned_gradient, turn @ start)
# turned_back = turned @ turn  # only to draw both paths in one valley
# views.valley({"Adam": straight, "Adam, in the turned valley": turned_back})

# %% [markdown]
# *Compare the upper path with the paths before: Adam swings across the floor a few times, and after 40 steps it is nearly at the bottom; below, in a valley that runs along the diagonal, the same Adam ends only a little further than plain descent at the slow rate of 0.02.*
#
# The lower path shows the limit of the idea. Adam has a rate for each *weight*. When the valley runs along one weight, that helps. When it runs along the diagonal, both weights are equally steep, and Adam has nothing to tell them apart by. It ends at $x = -3.7$, behind plain descent at 0.039.
#
# The rest of the book uses torch's Adam. Is it the same? It walks down the same valley:

# %% tags=["active-ipynb"]
# point = start.clone().requires_grad_()
# optimizer = torch.optim.Adam([point], lr=0.3, betas=(0.9, 0.98), eps=1e-9)
# for _ in range(40):
#     point.grad = gradient(point.detach())
#     optimizer.step()
# for name, end in {"our Adam": straight[-1], "torch's": point.detach()}.items():
#     print(f"{name} ends at x = {end[0]:.4f}, y = {end[1]:.4f}")
# assert torch.allclose(point, straight[-1], atol=1e-4)

# %% [markdown]
# We give it the paper's settings. Their $\beta_2 = 0.98$ is smaller than the usual 0.999, so that $v$ forgets sooner ([evidence 12.4](evidence/12_optimizer.ipynb)). The rate is 0 here because the training loop sets it before every update.

# %%
ADAM = dict(lr=0.0, betas=(0.9, 0.98), eps=1e-9)  # Section 5.3


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
# In the valley above, plain descent slowed down by itself: near the bottom gradients are small, and so are its steps. Adam throws the size of the gradients away. And with batches, both have a second reason to stay restless. What happens at the bottom, when what is left of the gradient is mostly the chance of the batch? We add random numbers to the gradient of the valley, as batches would, and let 200 walkers go down. Will they settle?

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
# constant = [0.3] * 400
# falling = [0.3 * min(1, (40 / step) ** 0.5) for step in range(1, 401)]
# curves = {
#     "the rate stays at 0.3": mean_distance(constant),
#     "falls from step 40 on": mean_distance(falling),
# }
# labels = ("step", "mean distance from the bottom")
# ax = plotting.lines(range(401), curves, *labels, log="y")
# views.picture(
#     ax,
#     "Both curves come down from 10 to below 1 in about 60 steps; then the constant "
#     "rate stays near 0.7, and the falling rate goes on down to 0.4.",
# )

# %% [markdown]
# *Look at the right half: with a constant rate the walkers stop coming nearer, and with a falling rate they go on.*
#
# At the bottom all that is left of the gradients is chance. Adam divides by their size, so chance alone keeps the walkers moving, and only a smaller rate makes their steps shorter. A large rate suits the long way down, and a small rate suits the end. The fall of the paper's rate gives both.

# %% [markdown]
# ## Why start slowly?
#
# The fall makes sense. But why does the rate begin near zero, where the way is longest? Look at the first update again. Whatever its gradient, the weight moves by the whole rate, in a direction that a single batch suggested. Adam is boldest when it knows least.
#
# How bold is Adam later? We train a small Transformer at a low constant rate and take the mean of $|\hat m| / \sqrt{\hat v}$ over its weights. That mean is 1 when all weights move by the whole rate. The model is an encoder of four layers with the paper's normalisation after each sum ([post-norm](03_stacks.ipynb)). It reads six digits and writes them backwards.

# %% tags=["active-ipynb"]
# def backwards_loss(model):
#     digits = torch.randint(3, 13, (16, 6))  # ids 3 to 12; 0 to 2 are special
#     logits = model.output(model.encode(digits))  # the decoder is not used
#     return nn.functional.cross_entropy(logits.flatten(0, 1), digits.flip(1).flatten())
#
#
# def train(rates, seed, norm_first=False):
#     """One update for each rate; yields the loss and the optimizer after each."""
#     torch.manual_seed(seed)
#     sizes = dict(d_model=64, d_ff=128, N=4, h=4, P_drop=0.0, norm_first=norm_first)
#     model = Transformer(TransformerConfig(13, **sizes))
#     optimizer = adam(model)
#     for rate in rates:
#         set_learning_rate(optimizer, rate)
#         loss = backwards_loss(model)
#         optimizer.zero_grad()
#         loss.backward()
#         optimizer.step()
#         yield loss.item(), optimizer

# %% tags=["active-ipynb"]
# def boldness(optimizer):
#     steps = []
#     for state in optimizer.state.values():  # torch calls m exp_avg, and v exp_avg_sq
#         m_hat = state["exp_avg"] / (1 - 0.9 ** state["step"])
#         v_hat = state["exp_avg_sq"] / (1 - 0.98 ** state["step"])
#         begun = v_hat > 0  # a weight that never had a gradient does not move
#         steps.append(m_hat[begun].abs() / v_hat[begun].sqrt())
#     return torch.cat(steps).mean().item()
#
#
# bold = [boldness(optimizer) for _, optimizer in train([0.0005] * 100, seed=0)]
# random = step_lengths(list(torch.randn(100, 2000)))  # 2,000 weights at once
# noise = [lengths.abs().mean().item() for lengths in random]
# views.boldness(bold, noise)

# %% [markdown]
# *Follow the solid curve from the left: the first step is the whole rate, and after twenty updates the mean step is a quarter of it. The dashed curve belongs to weights whose gradients are nothing but random numbers.*
#
# The two curves are close. The gradients of different batches agree only a little more than random numbers would, so in the mean most of them cancels. Only at the beginning there is nothing to average yet, and chance moves the weights by the whole rate.
#
# Now we have a suspect: the first steps are too bold, and the rate should be small until $m$ and $v$ have formed. But the picture also makes trouble for this suspicion. The boldness is gone after some twenty updates, and the paper's slow start, its **warm-up**, takes 4,000. Let us see the paper's formula, and then put the suspect to the test.

# %% [markdown]
# ## Equation 3: up in a line, down with the root
#
# $$lrate = d_{model}^{-0.5} \cdot \min(step^{-0.5},\; step \cdot warmup^{-1.5})$$
#
# Of the two terms in the brackets the smaller one counts. Up to $step = warmup$ the second is smaller: the rate climbs in a straight line. From there on the first is smaller: the rate falls with the root of the step, slowly enough never to reach zero. Where the two meet is the peak, $(d_{model} \cdot warmup)^{-0.5}$. For the paper's $d_{model} = 512$ and $warmup = 4000$ that is $1/\sqrt{2{,}048{,}000} = 0.0007$.
#
# And what has the width of the model to do with it? The paper does not say. A likely reason, untested here: Adam moves each weight by the rate, whatever the width. A number in a wider model is a sum over more weights, so the same rate changes it more.


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
# ax = plotting.lines(steps, schedules, "update", "learning rate")
# ax.xaxis.set_major_formatter("{x:,.0f}")
# views.picture(
#     ax,
#     "Both rates climb to 0.0007 at update 4,000; the paper's falls steeply at first "
#     "and ends at 0.0002, the cosine falls slowly at first and ends at 0.",
# )

# %% [markdown]
# *The first 4,000 updates are the same: today's models mostly keep the warm-up and replace what comes after it, for example by half a cosine wave that ends at zero.*
#
# A cosine must know in advance when training will end. The paper's curve need not know. (**Not in the paper:** `lr_scale` multiplies the whole curve. For small models the formula alone rises too high.)

# %% [markdown]
# ## Does a Transformer need warm-up?
#
# Now the test. Three kinds of model have the same peak of 0.005. The first has a warm-up of 100 updates. The second has the peak's rate from the first update on, and after update 100 the same falling rate as the first. The third has the rates of the second, but normalises *before* each sub-layer (pre-norm). Each kind is trained from three random starts, for as long as there is something to see. Which of them will learn to write six digits backwards?

# %% tags=["active-ipynb"]
# warm = [learning_rate(step, 64, 100, 0.4) for step in range(1, 501)]
# at_once = [max(warm)] * 100 + warm[100:]
# plans = {
#     "warm-up": (warm[:250], False),
#     "no warm-up": (at_once, False),
#     "no warm-up, pre-norm": (at_once[:150], True),
# }
# runs = {name: [] for name in plans}
# for name, (rates, norm_first) in plans.items():
#     for seed in range(3):
#         losses = [loss for loss, _ in train(rates, seed, norm_first)]
#         runs[name].append(losses)
# views.starts(runs, level=math.log(10))

# %% [markdown]
# *Each line is a start, in red if it has not learned the task when it ends: with warm-up all three starts have learned it by update 250, and without warm-up none has. The pre-norm models, on the right, need no warm-up, and learn fastest.*
#
# Are the models in the middle late, or stuck? They were given 500 updates for this question. One start has learned the task by then, some 250 updates later than with warm-up. The other two have not. So the first hundred updates decide about the next few hundred, although after update 100 both plans have the same rates. At half the rate, more starts learn without it ([evidence 12.1](evidence/12_optimizer.ipynb)).

# %% [markdown]
# ## Is Adam's boldness to blame?
#
# Our suspect was Adam, whose first steps are bold and badly informed. There are two ways to help it, and a record of trainings tries them apart and together, from five starts each:
#
# - **Short first steps.** Rate number $t$ is $1 - 0.9^t$ of the peak's: a tenth, a fifth, and after some twenty updates nine tenths. This is a tiny warm-up, and what $m$ would do by itself if it had no hat.
# - **First form $v$.** For 100 batches the rate is zero. No weight moves, and $m$ is kept at zero, but $v$ collects its squares. Then training begins, with a $v$ that knows how large gradients are.
#
# If bold steps are the whole story, which dots will be green?

# %% tags=["active-ipynb"]
# rows = table("warmup")  # 250 updates each
# names = {
#     "no warm-up": "no warm-up",
#     "form v first": "v first, full steps",
#     "short first steps": "short steps",
#     "both": "v first, short steps",
#     "warm-up, 100 updates": "warm-up",
# }
# finishes = {name: rows[rows.plan == plan].loss for name, plan in names.items()}
# views.finishes(finishes, level=math.log(10))

# %% [markdown]
# *A dot is one start, green if it has learned the task by update 250: forming $v$ alone helps nobody, short first steps alone help two, and both together do what the warm-up does.*
#
# Our suspicion was half right. A $v$ that has formed is not enough, and short first steps are enough for two starts only. A model that has both does as well as with the long warm-up ([evidence 12.2](evidence/12_optimizer.ipynb)). The long warm-up, too, has both: its first steps are short, and while the rate is small, $v$ has time to form.
#
# The other half is the wiring. The pre-norm models had the same bold Adam, and all of them learned. Why is post-norm so easily hurt? Two papers disagree. Xiong et al. (2020) find that in a new post-norm model the gradients near the output are large, so that large steps there do damage. Liu et al. (2020) answer that Adam divides the size of gradients away. In their account a post-norm layer relies more on its sub-layers and less on the lane around them, so that small changes of many weights add up to a large change of the output, the more so the deeper the model. Our small measurement fits the second account without proving it ([evidence 12.3](evidence/12_optimizer.ipynb)). Today's models mostly avoid the question: they put the norms first, and keep a warm-up all the same.

# %% [markdown]
# ## What to keep
#
# - One rate for all weights is limited by the steepest direction; Adam gives each weight its own, by dividing out the size of its gradients, so that only their agreement counts.
# - Adam does not slow down by itself at the bottom, so the rate must fall; and it is boldest in its first steps, when it knows least, so the rate starts near zero: the warm-up.
# - Bold steps are only half of the reason: post-norm, the paper's wiring, is hurt by them at rates at which pre-norm is not, and why is disputed.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** A weight is the row of a rare word. Its first gradient is 3. The word is not in the second batch, so the second gradient is 0. How far does Adam move the weight in each of the two updates, as a part of the rate? ($\beta_1 = 0.9$, $\beta_2 = 0.98$; forget $\epsilon$.) What would plain descent do?
#
# <details><summary>Answer</summary>
#
# In the first update the weight moves by the whole rate. In the second, $m = 0.9 \cdot 0.3 = 0.27$ and $\hat m = 0.27 / 0.19 = 1.42$. Further, $v = 0.98 \cdot 0.18 = 0.176$ and $\hat v = 0.176 / 0.0396 = 4.45$. So the weight moves by $1.42 / \sqrt{4.45} = 0.67$ of the rate, in the old direction, although this batch said nothing about it. Plain descent would leave it where it is. And Adam goes on: `sum(step_lengths([3.0] + [0.0] * 60))` says that a single gradient carries the weight more than six rates far.
# </details>
#
# **2. In code.** Small weights make a smoother function, so one often lets every weight shrink a little in every update. The obvious way is to add `decay * p` to the gradient. Try it with a pencil, in the first update, for two weights of 1: the first has a gradient of 0.01, and the second of 10. How much further do they move for a `decay` of 0.1? Then write the update of AdamW (Loshchilov and Hutter, 2019), in which every weight shrinks by `rate * decay` of itself. You may call `adam_update`.

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
# Update number $u$ gets the rate of step $4u$. So the warm-up is over after 1,000 updates instead of 4,000, at the same peak of 0.0007. Until then every rate is four times too high, just where a high rate does harm. Later the rate falls as $(4u)^{-0.5}$, so from update 4,000 on it is half of what it should be, and training is slow to the end. The losses look plausible all the while, which makes the mistake hard to find.
# </details>
#
# **Next.** The weights now go down the training loss. [Chapter 13](13_regularization.ipynb) asks why that is not quite what we want.
