# ---
# jupyter:
#   jupytext:
#     formats: notebooks/27_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # 27 · Why does my Transformer not learn?
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/27_diagnosis.ipynb)
#
# *For whoever has written a Transformer. Reading takes about 25 minutes, running half a minute. Chapters [0](00_first_transformer.ipynb) and [14](14_training.ipynb) come before it.*
#
# Two Transformers learn from the same sentences, and soon you will see their losses. One of the two is well. The other has a mistake in one line, and in use it will not get a single answer right. Which of the two do you think has the lower loss?
#
# You are the doctor on this page. Three patients come in, each with one wrong line. You examine them with small instruments that you can carry over to a model of your own. Afterwards there is a museum of 24 more patients, whose bugs were all found in somebody's public code.

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
import math

import torch
import torch.nn.functional as F

# %% tags=["active-ipynb"]
# import transformer
# from transformer import views
# from transformer.doctor import museum
# from transformer.first_transformer import shown, write
# from transformer.views.evidence import markdown_table
#
# torch.set_num_threads(1)  # on models this small, a second thread only waits

# %% [markdown]
# ## A task that shows everything
#
# People write Christmas Eve of 1987 as 24.12.87, and computers as 87-12-24. Our patients learn to turn the first form into the second: they read `241287` and write `871224`. Half of the people leave the year out. Then the source is `2412`, filled up with padding, and the answer is `1224`.


# %%
def date():
    """A day as people write it, and with the year first."""
    day, month = torch.randint(1, 29, ()).item(), torch.randint(1, 13, ()).item()
    year = f"{torch.randint(0, 100, ()).item():02}"
    if torch.rand(()) < 0.5:  # half of us leave the year out
        year = ""
    return f"{day:02}{month:02}{year}", f"{year}{month:02}{day:02}"


def encode(pairs):
    """Pairs of digits -> sources (n, 6), targets with their marks (n, 8); 0 is padding."""
    source = torch.zeros(len(pairs), 6, dtype=torch.long)
    target = torch.zeros(len(pairs), 8, dtype=torch.long)
    for i, (asked, answer) in enumerate(pairs):
        source[i, : len(asked)] = torch.tensor([int(digit) + 3 for digit in asked])
        tokens = [1, *(int(digit) + 3 for digit in answer), 2]  # begin, digits, end
        target[i, : len(tokens)] = torch.tensor(tokens)
    return source, target


def dates(n):
    """n dates as tokens: sources (n, 6), targets (n, 8)."""
    return encode([date() for _ in range(n)])


# %% [markdown]
# The tokens are those of chapter 0: 0 is padding, 1 begins a target, 2 ends it, and 3 to 12 are the digits. The models are chapter 0's, too, with two layers on each side. Loss and loop are chapter 14's.


# %%
def loss_of(model, source, target):
    """Nats a token: source (n, S), target (n, T) with its begin and end marks."""
    scores, gold = model(source, target[:, :-1]), target[:, 1:]
    return F.cross_entropy(scores.flatten(0, 1), gold.flatten(), ignore_index=0)


def training(model, batch, updates, loss=loss_of):
    """Train on batch(), a new one each time; yield the loss after each update."""
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for update in range(1, updates + 1):
        rate = 0.0375 * min(update**-0.5, update * 50**-1.5)  # warm-up, then the root
        optimizer.param_groups[0]["lr"] = rate
        error = loss(model, *batch())
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        yield error.item()


# %% [markdown]
# `museum.exhibit` builds a patient under its name. (`eval()` switches dropout off: a task this small does not need it.)

# %% tags=["active-ipynb"]
# torch.manual_seed(27)
# losses = {}
#
#
# def trained(name, updates):
#     model = museum.exhibit(name)["model"].eval()
#     losses[name] = list(training(model, lambda: dates(32), updates))
#     return model
#
#
# healthy = trained("healthy", updates=200)
# ada = trained("Ada", updates=200)
# views.patients({"model 1": losses["healthy"], "model 2": losses["Ada"]})

# %% [markdown]
# *Every update has dates that were never seen before, so that these losses are as honest as held-out ones. The lower curve learns faster and ends lower.*
#
# Which one would you send to the doctor? Let both write dates by themselves.

# %% tags=["active-ipynb"]
# source, target = dates(300)
# headings = ["asked", "right", "model 1", "model 2"]
#
#
# def written(*models):
#     """What models write by themselves, beside what is right: rows of a table."""
#     answers = [write(model, source, longest=7) for model in models]
#     columns = [source, target[:, 1:], *(answer[:, 1:] for answer in answers)]
#     return [[shown(row) for row in rows] for rows in zip(*columns)]
#
#
# rows = written(healthy, ada)
# for place, name in enumerate(headings[2:], start=2):
#     print(f"{name}: {sum(row[1] == row[place] for row in rows)} of 300 right")
# markdown_table(headings, rows[:4])

# %% [markdown]
# The lower curve is the patient's. Her name is Ada.
#
# ## Ada: the loss is wonderful
#
# **The complaint.** "My loss is lower than anybody's, on dates that I have never seen. Yet I cannot write one date. And please don't tell me about the causal mask. I have looked at it three times, and it is right."
#
# **The examination.** When a model writes, the rest of the answer does not exist yet. So in training no row of scores may know it. The test of [chapter 14](14_training.ipynb) changed the last token. Here we change every token of the target in turn, and note which rows of scores move. Each column of the result belongs to a changed token.


# %%
@torch.no_grad()
def moves(model, source, read):
    """By how much row t of the scores moves with each token that is read: (T, T)."""
    before = model(source, read)
    columns = []
    for place in range(read.shape[1]):
        changed = read.clone()
        changed[:, place] = (changed[:, place] + 4) % 10 + 3  # some other digit
        after = model(source, changed)
        columns.append((after - before).abs().amax(dim=(0, 2)))
    return torch.stack(columns, dim=1)


# %% [markdown]
# In a healthy model only the rows from a token on may move. Where do you expect Ada's red squares?

# %% tags=["active-ipynb"]
# one_source, one_target = encode([("241287", "871224")])
# read = one_target[:, :-1]  # the begin mark and six digits
# names = ["begin", *"871224"]
# tables = {
#     "healthy": moves(healthy, one_source, read) > 1e-3,
#     "Ada": moves(ada, one_source, read) > 1e-3,
# }
# views.moved(tables, names)

# %% [markdown]
# *A filled square says that the row's scores move with the column's token. In the healthy model everything above the diagonal is white; in Ada the red squares are answers that she reads off.*
#
# **What it means.** Nearly every row sees the whole answer, the token that it is asked for included. That is a leak. The mask is not the only place where one can come from: *any* operation that mixes rows can leak. Which operations mix rows? Attention does, and so does every careless change of shape.
#
# Ada's attention has four heads, whose results stand in a tensor of shape `(B, h, T, d_k)`. To join the heads, each token needs its own four pieces side by side. We can watch where the pieces go, if instead of real numbers each piece holds the place of its token.

# %% tags=["active-ipynb"]
# places = torch.arange(7).view(1, 1, 7, 1).expand(1, 4, 7, 1)  # (B, h, T, d_k)
# joined = {
#     "transpose, then flatten": places.transpose(1, 2).flatten(2)[0],  # (T, h)
#     "reshape alone (Ada)": places.reshape(1, 7, 4)[0],
# }
# views.joined(joined, names)

# %% [markdown]
# *Each row should be made of four pieces of its own token, as on the left. On the right the first row gets pieces of four different tokens, and red pieces come from behind the row.*
#
# `reshape` takes the numbers as they are in memory, and there all tokens of the first head come before the second head. The shape is right, nothing crashes, and the pieces are somebody else's. The mask worked all the time. Its result was dealt out wrongly afterwards.
#
# **The remedy.**
#
# ```diff
# - return x.reshape(B, T, h * d_k)
# + return x.transpose(1, 2).flatten(2)
# ```
#
# With this line Ada is the healthy model. Her wrong line was in a public implementation ([jsbaan/transformer-from-scratch#6](https://github.com/jsbaan/transformer-from-scratch/issues/6)), whose test passed in spite of it: the model had to copy its source, and learned to put up with the shuffle.

# %% [markdown]
# ## Ben: a stopped clock
#
# **The complaint.** "I learned for a while, and then my loss would not fall any more. I write faultless dates. They say that mine are wrong."

# %% tags=["active-ipynb"]
# ben = trained("Ben", updates=160)
# rows = written(ben)
# print(f"Ben: {sum(row[1] == row[2] for row in rows)} of 300 right")
# print("different answers:", len({row[2] for row in rows}))
# markdown_table(["asked", "right", "Ben"], rows[:4])

# %% [markdown]
# What Ben writes is a real day of a real year. It is the same day for everybody.
#
# **The examination.** Chapter 14 had the test for a model that may not read its source: give each date another date's source. Before you look, what should the loss do in a healthy model, and what in Ben?


# %%
@torch.no_grad()
def use_of_source(model, source, target):
    """By how much the loss rises when each target gets another's source."""
    other = source.roll(1, dims=0)
    return (loss_of(model, other, target) - loss_of(model, source, target)).item()


# %% tags=["active-ipynb"]
# print(f"healthy: {use_of_source(healthy, source, target):+.2f} nats per token")
# print(f"Ben:     {use_of_source(ben, source, target):+.2f} nats per token")

# %% [markdown]
# A wrong source is a disaster for the healthy model, and nothing at all for Ben. His source is ignored. Now we know *what* is wrong, but not *where*. A second instrument points to the place: after one backward pass, which parameters have received no gradient?


# %%
def without_gradient(model, source, target, loss=loss_of):
    """The names of the parameters that one backward pass leaves without a gradient."""
    model.zero_grad(set_to_none=True)
    loss(model, source, target).backward()
    silent = []
    for name, p in model.named_parameters():
        if p.grad is None or not p.grad.any():
            silent.append(name)
    model.zero_grad(set_to_none=True)
    return silent


# %% tags=["active-ipynb"]
# silent = without_gradient(ben, source, target)
# parts = {name.split(".")[0] for name in silent}
# print(len(silent), "parameters get no gradient; all of them are in", *parts)
# print("the healthy model has", len(without_gradient(healthy, source, target)))

# %% [markdown]
# **What it means.** The whole encoder is silent, and nothing else. So its result goes nowhere. Who should have read it? The second attention of each decoder layer, and there is Ben's wrong line: it looks at the target once more.
#
# **The remedy.**
#
# ```diff
# - x = self.residuals[1](x, lambda x: self.cross_attention(x, x, mask))
# + x = self.residuals[1](x, lambda x: self.cross_attention(x, memory, source_mask))
# ```
#
# This line, too, was in a public tutorial ([keitakurita/Practical_NLP_in_PyTorch#1](https://github.com/keitakurita/Practical_NLP_in_PyTorch/issues/1)). Nothing crashes, because the shapes agree.
#
# ## Cleo: the same complaint, another disease
#
# **The complaint.** "I write real days as well, and they are wrong as well. Everybody says that I have what Ben has. But I do read my source! Ask me for a day without a year, and I answer without a year."

# %% tags=["active-ipynb"]
# cleo = trained("Cleo", updates=160)
# rows = written(cleo)
# print(f"Cleo: {sum(row[1] == row[2] for row in rows)} of 300 right")
# lengths = sum(len(row[1]) == len(row[2]) for row in rows)
# print(f"of the right length: {lengths} of 300")
# markdown_table(["asked", "right", "Cleo"], rows[:4])

# %% [markdown]
# **The examination.** Cleo is right about the lengths. So the test of the strange source must find something in her. But *what* does she read? We ask more precisely: the strange source may come from any other date, or only from a date of the same length.

# %% tags=["active-ipynb"]
# long = source[:, 5] > 0  # with a year
# same_length = source.clone()
# same_length[long] = source[long].roll(1, dims=0)
# same_length[~long] = source[~long].roll(1, dims=0)
# sources = {
#     "its own source": source,
#     "any other date's": source.roll(1, dims=0),
#     "one of the same length": same_length,
# }
# compared = {}
# with torch.no_grad():
#     for name, model in {"healthy": healthy, "Ben": ben, "Cleo": cleo}.items():
#         compared[name] = {
#             kind: loss_of(model, given, target).item()
#             for kind, given in sources.items()
#         }
# views.other_sources(compared)

# %% [markdown]
# *Compare the three bars of each model. Cleo suffers from a source of another length, and from one of the same length she suffers nothing.*
#
# Of a source Cleo knows only how long it is. Short sources are filled up with padding, so perhaps the padding is what she reads. That is quickly tested: three more zeros behind a source are no news, and no score may move.


# %%
@torch.no_grad()
def padding_moves(model, source, read):
    """By how much scores move, at most, when three paddings are put behind the source."""
    padded = F.pad(source, (0, 3))
    return (model(padded, read) - model(source, read)).abs().max().item()


# %% tags=["active-ipynb"]
# read = target[:, :-1]
# print(f"healthy: {padding_moves(healthy, source, read):.4f}")
# print(f"Ben:     {padding_moves(ben, source, read):.4f}")
# print(f"Cleo:    {padding_moves(cleo, source, read):.4f}")

# %% [markdown]
# Only Cleo's scores move. Now we can open her up. Here is where the decoder's last layer looks, while it answers a day without a year.

# %% tags=["active-ipynb"]
# short_source, short_target = encode([("2412", "1224")])
# looks = {}
# with torch.no_grad():
#     for name, model in {"healthy": healthy, "Cleo": cleo}.items():
#         model(short_source, short_target[:, :5])  # reads "begin 1 2 2 4"
#         weights = model.decoder.layers[-1].cross_attention.weights  # (1, h, 5, 6)
#         looks[name] = weights[0].mean(dim=0)
# views.source_looks(looks, [*"2412", *["pad"] * 2])

# %% [markdown]
# *Each row shows where one place of the answer looks, dark for much. The healthy model looks at the digits; Cleo looks at the padding and at nothing else.*
#
# **What it means.** Cleo's mask has the wrong sense. It hides the words, and shows the padding. In this book True means "may be looked at". For the `key_padding_mask` of `nn.MultiheadAttention` True means "must be ignored", while in `F.scaled_dot_product_attention`, from the same library, True means "takes part". Whoever moves a mask from one to the other has to turn it round.
#
# **The remedy.**
#
# ```diff
# - source_mask = (source == 0)[:, None, None, :]
# + source_mask = (source != 0)[:, None, None, :]
# ```
#
# Masks of the wrong sense have stood in a tutorial of the library itself ([pytorch/tutorials#719](https://github.com/pytorch/tutorials/issues/719)).
#
# ### A plateau is a measurement
#
# Ben and Cleo could have been told apart without any instrument, by the height at which their losses stop. There are 12 · 28 days and 100 years in our dates. Whoever knows the calendar and not the date pays $\ln(12 \cdot 28)$ nats for a day, and $\ln 100$ more for a year. With the end marks a pair of answers, one without and one with its year, has 5 + 7 tokens. Whoever does not even know whether there is a year pays $\ln 2$ more for each answer.

# %% tags=["active-ipynb"]
# day, year = math.log(12 * 28), math.log(100)
# floors = {
#     "knows the calendar": (2 * day + year + 2 * math.log(2)) / 12,
#     "and the length": (2 * day + year) / 12,
# }
# curves = {name: losses[name] for name in ("Ben", "Cleo")}
# views.patients(curves, floors, log=False)

# %% [markdown]
# *Follow the curves to the right: each of the two sinks towards a dashed line of its own. Cleo's is lower by just what the length is worth.*
#
# Work out such a line for a task of your own. What does it cost to know how your targets look in general, and nothing of the source? A loss that rests on this line says that the source does not arrive.

# %% [markdown]
# ## Pulse and temperature
#
# Two quick tests belong to every examination, and both are known from chapter 14. A model that has learned nothing should not know anything: its **first loss** is near that of a guess, $\ln V$, or some nats above it, if one matrix both reads and writes the tokens. And it should be able to learn eight dates **by heart**. Here they are with the three instruments in one function, for any model of this page.


# %%
def by_heart(model, source, target, loss=loss_of):
    """The loss after 60 updates on one and the same batch; the model stays as it was."""
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    *_, last = training(model, lambda: (source, target), 60, loss)
    model.load_state_dict(kept)
    return last


@torch.no_grad()
def source_moves(model, source, read):
    """By how much scores move, at most, when each target gets another's source."""
    other = source.roll(1, dims=0)
    return (model(other, read) - model(source, read)).abs().max().item()


def examine(model, loss=loss_of):
    """All instruments of this page: {what was looked at: what was seen}."""
    source, target = encode([("241287", "871224"), ("010203", "030201")])
    read = target[:, :-1]
    return {
        "first loss": loss(model, source, target).item(),
        "later tokens move scores by": moves(model, source, read).triu(1).max().item(),
        "another source moves them by": source_moves(model, source, read),
        "padding moves them by": padding_moves(model, source, read),
        "parameters without a gradient": len(
            without_gradient(model, source, target, loss)
        ),
        "loss after 60 updates on one batch": by_heart(model, source, target, loss),
    }


# %% [markdown]
# None of these tests needs a trained model, and so a new model can be examined before you wait for its first epoch. This is what they see in our three patients as they were before their training, beside the healthy model.

# %% tags=["active-ipynb"]
# names = ["healthy", "Ada", "Ben", "Cleo"]
# seen = []
# for name in names:
#     torch.manual_seed(27)
#     seen.append(examine(museum.exhibit(name)["model"].eval()))
# rows = [[what, *(f"{each[what]:.3g}" for each in seen)] for what in seen[0]]
# markdown_table(["", *names], rows)

# %% tags=["active-ipynb"]
# healthy_seen, ada_seen, ben_seen, cleo_seen = seen
# assert healthy_seen["later tokens move scores by"] < 1e-4
# assert ada_seen["later tokens move scores by"] > 0.1
# assert ben_seen["another source moves them by"] < 1e-4
# assert cleo_seen["padding moves them by"] > 0.1
# print("each patient is found before its first update")

# %% [markdown]
# ## The whole examination in one call
#
# Our instruments know the dates, and twenty kinds of disease are more than six. The package has a complete examination for *any* callable `model(source, target)` that gives scores: yours, `nn.Transformer`'s, or one of the library transformers. It needs no corpus, and makes up its own sentences. Here it is with Cleo. (`learn=False` leaves out the part in which it trains the patient, which takes up to a minute.)

# %% tags=["active-ipynb"]
# report = transformer.checkup(museum.exhibit("Cleo")["model"], learn=False)
# print(report)

# %% [markdown]
# The worst comes first: what was seen, what it means, and which chapter to read. For a model of your own, say `checkup(model, loss=my_loss, ids=(pad, begin, end))`, and the loss is examined, too. The same examination is a test:
#
# ```python
# from transformer import assert_healthy
#
#
# def test_my_model_is_healthy():
#     assert_healthy(build_model())
# ```
#
# and a command, which can write its report as a page with pictures:
#
# ```
# transformer checkup mine.py:build_model --html report.html
# ```
#
# Can you trust it? Before its thresholds were set, 38 broken models and 14 healthy ones were divided into two halves. On the half that set nothing it found all 19 bugs, and it had one false alarm in seven healthy models. The rule behind that alarm was changed, and three healthy models that nothing had seen before raised none ([evidence 27.1](evidence/27_diagnosis.ipynb)).
#
# ## First aid
#
# | symptom | examination | remedy | read |
# |---|---|---|---|
# | the loss is better than you can explain | change later tokens: do earlier scores move? | the causal mask; heads joined or cut without a transpose | [8](08_model.ipynb), [14](14_training.ipynb) |
# | the first loss is far below $\ln V$ | is it asked for the token that it has just read? | shift the target | [14](14_training.ipynb) |
# | the first loss is far above $\ln V$ | how large are the numbers of a new embedding? | begin with a deviation of $1/\sqrt{d_\text{model}}$ | [6](06_embeddings.ipynb) |
# | the loss does not move | learn one batch by heart; scores of one sign only? | no softmax and no ReLU on the scores | [13](13_regularization.ipynb) |
# | a part never learns | which parameters get no gradient? | `ModuleList`, not a list; no `detach` | [14](14_training.ipynb) |
# | always the same answer | give it other sources | let cross-attention read the memory | [8](08_model.ipynb) |
# | the loss rests on a plateau | what does it cost to know no source? | look at the way from the source to the decoder | [14](14_training.ipynb) |
# | other answers in another batch | more padding; a sentence alone, and among others | the padding mask; axes of batch and time | [4](04_attention.ipynb), [8](08_model.ipynb) |
# | other answers at every call | two passes after `eval()` | dropout as a module, not as a function | [13](13_regularization.ipynb) |
# | suddenly NaN | a source of padding alone; half precision | no $-\infty$ and no $-10^9$ in masks | [4](04_attention.ipynb), [11](11_hardware.ipynb) |
# | the order of words changes nothing | exchange two tokens of the source | add a position to each *token* | [7](07_positions.ipynb) |
# | another loss with other batch sizes | one batch of eight against two unequal parts | divide by tokens, not by batches | [14](14_training.ipynb) |
