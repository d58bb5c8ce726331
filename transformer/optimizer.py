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
# from torch.nn.utils import parameters_to_vector, vector_to_parameters
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
# The steepest direction sets the limit, and every other direction pays for it. A Transformer has millions of weights, and nothing makes them all equally steep. We want a rate for each weight.

# %% [markdown]
# ## Adam gives each weight its own rate
#
# Adam (Kingma and Ba, 2015) remembers two things about each weight. The first is $m$, a running mean of its gradients $g$. A single gradient comes from a single batch and is partly chance. In $m$ chance partly cancels, and what the batches agree on remains. To follow such a mean is called **momentum**, and is older than Adam. The second is $v$, a running mean of the squares $g^2$. Its root says how large the gradients of this weight usually are. Adam divides the first by the second:
#
# $$m \leftarrow \beta_1 m + (1-\beta_1)\, g, \qquad v \leftarrow \beta_2 v + (1-\beta_2)\, g^2, \qquad
# \theta \leftarrow \theta - rate \cdot \frac{\hat m}{\sqrt{\hat v} + \epsilon}$$
#
# In a running mean old values fade, and after about $1/(1-\beta)$ updates they are mostly gone: ten for $m$ and fifty for $v$, with the paper's $\beta_1 = 0.9$ and $\beta_2 = 0.98$. Both means begin at zero, so at first they are too small: after $t$ equal gradients, $m$ is only $(1-\beta_1^t)\, g$. Dividing by this factor repairs it, and a hat marks the repaired mean: $\hat m = m / (1-\beta_1^t)$ and $\hat v = v / (1-\beta_2^t)$. The tiny $\epsilon$ keeps a weight whose gradients are all zero from dividing zero by zero.
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
    """Adam's steps under these gradients, as parts of the rate; negative steps make p larger.

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
# Now let Adam race against plain descent, and against momentum alone. Each of the three runners has 40 steps. In each valley each tries the same 121 rates, and keeps the best: the rate with which its last ten steps are nearest to the bottom, on average. There are three valleys: ours, one that is a hundred times as steep across, and the steep one turned by 45 degrees, so that it runs along the diagonal. In which of them will Adam win?

# %% tags=["active-ipynb"]
# def walk(runner, point, gradient_of, rate):
#     path, m, v = [point], 0, 0
#     for step in range(1, 41):
#         g = gradient_of(point)
#         if runner == "plain descent":
#             point = point - rate * g
#         elif runner == "momentum":
#             m = 0.9 * m + 0.1 * g
#             point = point - rate * m
#         else:
#             point, m, v = adam_update(point, g, m, v, step, rate)
#         path.append(point)
#     return torch.stack(path)
#
#
# def steep_gradient(point):
#     return gradient(point, steep=5000.0)
#
#
# def turned_gradient(point):
#     """Turn the point into the straight valley, and the gradient there back."""
#     x, y = point
#     along, across = (x + y) / 2**0.5, (y - x) / 2**0.5
#     g_along, g_across = steep_gradient(torch.stack([along, across]))
#     return torch.stack([g_along - g_across, g_along + g_across]) / 2**0.5
#
#
# start = torch.tensor([-10.0, 1.0])
# turned_start = torch.tensor([-11.0, -9.0]) / 2**0.5  # (-10, 1), turned
# valleys = {
#     "our valley": (start, gradient),
#     "100 times as steep": (start, steep_gradient),
#     "100 times as steep, turned": (turned_start, turned_gradient),
# }
# rates = torch.logspace(-5, 1, 121).tolist()  # 0.00001 to 10, 20 for each factor of 10
#
#
# def distance(path):
#     away = path[-10:].norm(dim=1).mean()  # the last ten points
#     return away.nan_to_num(float("inf"))  # at high rates a runner leaves the valley
#
#
# best = {
#     (runner, valley): min((walk(runner, *place, rate) for rate in rates), key=distance)
#     for runner in ("plain descent", "momentum", "Adam")
#     for valley, place in valleys.items()
# }
# views.downhill(best)

# %% [markdown]
# *Each panel shows the 40 steps (dots) of a runner at its best rate, from the ring towards the bottom (+), and the distance that remains. Each row is a valley: in the second only Adam arrives, and in the third nobody does.*
#
# In our valley momentum is as good as Adam: across the valley its gradients take turns and cancel, and along the valley they add up. In the second valley the steepness again allows only tiny rates, and momentum is stuck near its start. Adam takes exactly the path that it took before. The steepness of a weight is a size, and the size cancels.
#
# The third valley shows the limit of the idea. Adam has a rate for each *weight*, and not for each direction. In the turned valley both weights are equally steep, and the division cannot tell the directions apart.
#
# Is torch's Adam, which the rest of the book uses, the same as ours? We give it the paper's $\beta_2 = 0.98$ instead of torch's 0.999. With 0.999, $v$ remembers a thousand updates, and after some large gradients a weight makes short steps for very long ([evidence 12.4](evidence/12_optimizer.ipynb)).

# %%
ADAM = {"lr": 0.0, "betas": (0.9, 0.98), "eps": 1e-9}  # Section 5.3; lr is set later


def adam(model: nn.Module) -> torch.optim.Optimizer:
    """Adam with the paper's settings for the parameters of a model."""
    return torch.optim.Adam(model.parameters(), **ADAM)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Give every group of parameters this learning rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate


# %% tags=["active-ipynb"]
# point = start.clone().requires_grad_()
# optimizer = torch.optim.Adam([point], **ADAM)
# set_learning_rate(optimizer, 0.3)
# for _ in range(40):
#     point.grad = gradient(point.detach())
#     optimizer.step()
# torchs, ours = point.detach(), walk("Adam", start, gradient, rate=0.3)[-1]
# print(f"torch's Adam ends at ({torchs[0]:.4f}, {torchs[1]:.4f})")
# print(f"our Adam     ends at ({ours[0]:.4f}, {ours[1]:.4f})")
# assert torch.allclose(torchs, ours, atol=1e-4)

# %% [markdown]
# ## Why must the rate fall?
#
# A batch's gradient is partly chance, so we now add random numbers to the gradient of our first valley. We send 200 walkers down by plain descent, and 200 by Adam, once at a constant rate, and once at a rate that falls from step 40 on. Which of the four crowds will settle at the bottom?

# %% tags=["active-ipynb"]
# def noisy_gradient(point):
#     return gradient(point) + 5 * torch.randn_like(point)
#
#
# def crowd(rates, by_adam):
#     """The mean distance of 200 walkers from the bottom, after each step."""
#     torch.manual_seed(0)
#     points, m, v = start.expand(200, 2), 0, 0
#     distances = []
#     for step, rate in enumerate(rates, 1):
#         g = noisy_gradient(points)
#         if by_adam:
#             points, m, v = adam_update(points, g, m, v, step, rate)
#         else:
#             points = points - rate * g
#         distances.append(points.norm(dim=1).mean().item())
#     return distances
#
#
# crowds = {}
# for name, rate, by_adam in (("plain descent", 0.02, False), ("Adam", 0.3, True)):
#     constant = [rate] * 1000
#     falling = [rate * min(1, (40 / step) ** 0.5) for step in range(1, 1001)]
#     crowds[name] = {
#         "the rate stays": crowd(constant, by_adam),
#         "the rate falls": crowd(falling, by_adam),
#     }
# views.walkers(crowds)

# %% [markdown]
# *Compare the solid curves with the dashed ones: at a constant rate both crowds stay away from the bottom, and at a falling rate both come nearer.*
#
# So a falling rate is not a special need of Adam. At the bottom every batch pushes a walker somewhere, and the slope pulls it back. At a constant rate the pushes never become smaller. Our second rate falls with the root of the step, as the paper's will, and ends at a fifth of the first. The distances end at about a half. Why not a fifth? At a fifth of the rate the slope, too, pulls back five times as slowly. So five times as many pushes add up, and random pushes add up with the root of their number: $\sqrt 5 / 5 = 0.45$.
#
# A large rate suits the long way down, and a small rate suits the end.

# %% [markdown]
# ## Why start slowly?
#
# Why does the rate begin near zero, where the way is longest? Whatever its first gradient, a weight moves by the whole rate, in a direction that a single batch suggested. Adam is boldest when it knows least.
#
# How bold is Adam later? We train a small Transformer at a low constant rate. In each update a weight moves by $|\hat m| / \sqrt{\hat v}$ of the rate, and we take the mean over all weights. The model, an encoder of four layers, reads six digits and writes them backwards.

# %% tags=["active-ipynb"]
# def backwards_loss(model):
#     digits = torch.randint(3, 13, (16, 6))  # ids 3 to 12; 0 to 2 are special
#     logits = model.output(model.encode(digits))  # chapter 8 calls it `score`
#     return nn.functional.cross_entropy(logits.flatten(0, 1), digits.flip(1).flatten())
#
#
# def new_model(norm_first=False):  # True: pre-norm, chapter 3
#     sizes = dict(d_model=64, d_ff=128, N=4, h=4, P_drop=0.0, norm_first=norm_first)
#     model = Transformer(TransformerConfig(13, **sizes))
#     model.decoder = None  # we train only the encoder
#     return model
#
#
# def loss_and_gradient(model):
#     """The loss of a new batch, and the gradients of all weights in one long vector."""
#     loss = backwards_loss(model)
#     weights = list(model.parameters())
#     # with materialize_grads, weights that are not used get zeros
#     gradients = torch.autograd.grad(loss, weights, materialize_grads=True)
#     return loss.item(), parameters_to_vector(gradients)
#
#
# def train(rates, seed, norm_first=False):
#     """One update for each rate; yields the loss and the mean step / rate."""
#     torch.manual_seed(seed)
#     model = new_model(norm_first)
#     p, m, v = parameters_to_vector(model.parameters()).detach(), 0, 0
#     for step, rate in enumerate(rates, 1):
#         loss, g = loss_and_gradient(model)
#         new, m, v = adam_update(p, g, m, v, step, rate)
#         used = v > 0  # not the rows of ids that never occur
#         yield loss, ((new - p).abs()[used].mean() / rate).item()
#         p = new
#         vector_to_parameters(p, model.parameters())
#
#
# bold = [mean_step for _, mean_step in train([0.0005] * 100, seed=0)]
# chance = step_lengths(torch.randn(100, 2000))  # 100 updates of 2,000 weights
# noise = [lengths.abs().mean().item() for lengths in chance]
# views.boldness(bold, noise)

# %% [markdown]
# *Follow the solid curve from the left: the first step is the whole rate, and after twenty updates the mean step is a quarter of it. The dashed curve belongs to weights whose gradients are nothing but random numbers.*
#
# Why does the dashed curve level off at 0.19? In $m$ random numbers cancel, though never completely. Because older gradients fade slowly, $m$ is as steady as a plain mean of $(1+\beta_1)/(1-\beta_1) = 19$ numbers. Such a mean has a spread of $1/\sqrt{19} = 0.23$, and without its sign it is 0.8 of that on average: 0.18.
#
# Up to update 80 or so the model's steps are a little longer than this. So its batches agree a little, but most of a gradient is chance. Only at first there is nothing to average, and chance moves the weights by nearly the whole rate.
#
# Now we have a suspect: the first steps are too bold, and the rate should be small until Adam knows more. But the boldness is gone after some twenty updates, and the paper's slow start, its **warm-up**, takes 4,000.

# %% [markdown]
# ## Does a Transformer need warm-up?
#
# Our plan with warm-up is a small copy of the paper's: the rate climbs in a straight line for 100 updates, to a peak of 0.005, and then falls with the root of the update. The peak is seven times the paper's, so that a small model gets into trouble. Our plan without warm-up has the peak's rate in the first 100 updates, and then the other's rates.
#
# We try both plans with the paper's [post-norm](03_stacks.ipynb) and with pre-norm, which most of today's models have. We say that a training has learned the task if its loss over the last ten of 250 updates is below 0.5. Which of the four combinations will fail?
#
# The cell runs one training of each. Nineteen others, each with other random numbers, come from a record ([evidence 12.1](evidence/12_optimizer.ipynb)).

# %% tags=["active-ipynb"]
# warm = [0.005 * min(step / 100, (100 / step) ** 0.5) for step in range(1, 251)]
# at_once = [0.005] * 100 + warm[100:]
# combinations = {  # the rates, and whether the norms come first
#     "warm-up": (warm, False),
#     "no warm-up": (at_once, False),
#     "pre-norm, warm-up": (warm, True),
#     "pre-norm, no warm-up": (at_once, True),
# }
# rows = table("warmup")  # the record: a row is a training, log.loss its losses
# runs = {}
# for name, (rates, norm_first) in combinations.items():
#     live = [loss for loss, _ in train(rates, 0, norm_first)]
#     others = rows[(rows.plan == name) & (rows.seed > 0)]["log.loss"].tolist()
#     title = name if norm_first else f"post-norm, {name}"
#     runs[title] = live, others
# views.starts(runs, level=math.log(10))  # guessing one of ten digits costs ln 10

# %% [markdown]
# *Each line is a training (means of ten updates), and the thick ones were run by the cell. Green has learned the task by update 250 and red has not: post-norm without warm-up fails in all twenty.*
#
# Pre-norm learns with and without warm-up. Post-norm learns in 18 of 20 trainings with warm-up, and in none without. Some red lines are still sinking. Of twenty such trainings that went on to update 500, three have learned by then. So most are not just late. (The models of chapters 6, 8 and 13 learn at such rates without warm-up. They have one layer, and this one has four.)

# %% [markdown]
# ## Is Adam's boldness to blame?
#
# In Adam's first updates both of its means are young. We can help each of them alone, and then both:
#
# - **Short steps** make up for the young $m$. We leave out its repair, the division by $1 - 0.9^t$. Then the first step is a tenth as long, the second a fifth, and after some twenty updates the repair would hardly matter.
# - **v first** makes up for the young $v$. For 100 batches no weight moves and $m$ stays at zero, but $v$ collects its squares. Then training begins.
#
# The cell writes Adam out once more, with these two switches. It prints the first step under each plan, and trains once with both remedies. Twenty trainings of each plan come from the record ([evidence 12.2](evidence/12_optimizer.ipynb)). If bold steps are the whole story, short steps alone will be as good as the long warm-up.

# %% tags=["active-ipynb"]
# def train_with_remedies(seed, short_steps, v_first):
#     """No warm-up, and two switches; yields the loss and the mean step / rate."""
#     torch.manual_seed(seed)
#     model = new_model()
#     p, m, v = parameters_to_vector(model.parameters()).detach(), 0, 0
#     waiting = 100 if v_first else 0
#     for _ in range(waiting):  # only v collects
#         _, g = loss_and_gradient(model)
#         v = 0.98 * v + 0.02 * g**2
#     for step, rate in enumerate(at_once, 1):
#         loss, g = loss_and_gradient(model)
#         m = 0.9 * m + 0.1 * g
#         v = 0.98 * v + 0.02 * g**2
#         m_hat = m if short_steps else m / (1 - 0.9**step)
#         v_hat = v / (1 - 0.98 ** (waiting + step))
#         move = m_hat / (v_hat**0.5 + 1e-9)
#         p = p - rate * move
#         vector_to_parameters(p, model.parameters())
#         yield loss, move[v > 0].abs().mean().item()
#
#
# remedies = {  # short steps, v first
#     "no warm-up": (False, False),
#     "v first": (False, True),
#     "short steps": (True, False),
#     "both": (True, True),
# }
# for name, switches in remedies.items():
#     _, first_step = next(train_with_remedies(0, *switches))
#     print(f"{name:11} first step: {first_step:.2f} of the rate")
#
# losses = [loss for loss, _ in train_with_remedies(0, short_steps=True, v_first=True)]
# here = sum(losses[-10:]) / 10
# names = {  # as the record calls the plans
#     "no warm-up": "no warm-up",
#     "v first": "v first, full steps",
#     "short steps": "short steps",
#     "both": "v first, short steps",
#     "long warm-up": "warm-up",
# }
# finishes = {name: rows[rows.plan == plan].loss for name, plan in names.items()}
# views.finishes(finishes, math.log(10), ringed={"both": here})

# %% [markdown]
# *A dot is one training of post-norm, green if it has learned the task after 250 updates; the ring is the cell's. Each remedy alone is worse than the long warm-up, and both together are as good.*
#
# Bold steps are not the whole story. Short steps bring nine of twenty trainings to the goal, a formed $v$ only one, and both together eighteen, as many as the long warm-up. So both young means do harm. The printed steps show why a formed $v$ alone hardly helps: the first step is still three quarters of the rate. A likely reason why it helps the short steps is that a $v$ of few gradients is itself partly chance.
#
# The long warm-up offers both. Its first step is a hundredth of the peak's rate, and in its first hundred updates $v$ has time to form.
#
# Why is post-norm hurt, and pre-norm not? Xiong et al. (2020) blame gradients that are largest near the output. Liu et al. (2020) object that Adam divides by the size of gradients anyway. In their account a post-norm layer relies more on its sub-layers, so that small changes of many weights add up ([evidence 12.3](evidence/12_optimizer.ipynb) measures such changes).

# %% [markdown]
# ## Equation 3, and the 4,000
#
# $$lrate = d_{model}^{-0.5} \cdot \min(step^{-0.5},\; step \cdot warmup^{-1.5})$$
#
# Here a *step* is an update. Up to $step = warmup$ the second term is the smaller one: the rate climbs in a straight line. From there on the first is smaller: the rate falls with the root of the step. Where the two meet is the peak, $(d_{model} \cdot warmup)^{-0.5}$. For the paper's $d_{model} = 512$ and $warmup = 4000$ that is $1/\sqrt{2{,}048{,}000} = 0.0007$. What happens to the curve if you make the warm-up four times as short?


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
# updates = range(50, 20_001, 50)
# schedules = {
#     f"warm-up {warmup:,}": [learning_rate(step, warmup=warmup) for step in updates]
#     for warmup in (1000, 4000)
# }
# views.schedules(updates, schedules)

# %% [markdown]
# *A warm-up of 1,000 updates ends earlier and at twice the rate; after update 4,000 the two curves are one.*
#
# So `warmup` is one knob that sets two things: how long the rate climbs, and how high. A quarter of the length doubles the height. With a warm-up of 100, as long as ours, the paper's model would climb to $1/\sqrt{51{,}200} = 0.0044$, six times as high.
#
# This is half of the answer. Adam's youth asks for tens of slow updates, not for thousands: boldness is gone after twenty, and $v$ remembers fifty. But in this formula a short warm-up has a high peak, and height alone does harm. In our model half the height took post-norm without warm-up from 0 of 20 trainings to 12 ([evidence 12.1](evidence/12_optimizer.ipynb)). So 4,000 also chooses a low peak. The paper gives no reason for it, and its large model may need both.
#
# **Not in the paper:** `lr_scale`, which multiplies the whole curve: a second knob. Our rates above are the formula with a warm-up of 100 and an `lr_scale` of 0.4.

# %% [markdown]
# ## What to keep
#
# - One rate for all weights is limited by the steepest direction. Adam gives each weight its own, by dividing out the size of its gradients, so that only their agreement counts.
# - Gradients of batches are noisy. At a constant rate plain descent and Adam both stay away from the bottom, so the rate must fall.
# - Adam is boldest in its first updates, when both of its means are young. A warm-up keeps the steps short until the means have formed, and in equation 3 it also keeps the peak low. Post-norm, the paper's wiring, needs this at rates at which pre-norm does not.

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
