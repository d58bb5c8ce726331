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
# *For whoever has written a Transformer. Reading takes about 40 minutes, half of them in a museum, and running half a minute. Chapters [0](00_first_transformer.ipynb) and [14](14_training.ipynb) come before it.*
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
import torch
import torch.nn.functional as F

# %% tags=["active-ipynb"]
# import math
#
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
# *Every update draws its dates anew, though a day without a year comes back some ten times. The lower curve learns faster and ends lower.*
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
# **The complaint.** "I learned for a while, and then my loss hardly fell any more. I write faultless dates. They say that mine are wrong."

# %% tags=["active-ipynb"]
# ben = trained("Ben", updates=140)
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
        if p.requires_grad and (p.grad is None or not p.grad.any()):
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
# **The complaint.** "My loss hardly falls any more, either, and I write days that nobody asked for. Everybody says that I have what Ben has. But I do read my source! Ask me for a day without a year, and I answer without a year."

# %% tags=["active-ipynb"]
# cleo = trained("Cleo", updates=200)
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
# ### What a loss cannot pass
#
# Ben and Cleo could be told apart without any instrument, by the height that their losses cannot pass. There are 12 · 28 days and 100 years in our dates. Whoever knows the calendar and not the date pays $\ln(12 \cdot 28)$ nats for a day, and $\ln 100$ more for a year. With the end marks a pair of answers, one without and one with its year, has 5 + 7 tokens. Whoever does not even know whether there is a year pays $\ln 2$ more for each answer.

# %% tags=["active-ipynb"]
# day, year = math.log(12 * 28), math.log(100)
# floors = {
#     "knows the calendar": (2 * day + year + 2 * math.log(2)) / 12,
#     "and the length": (2 * day + year) / 12,
# }
# curves = {name: losses[name] for name in ("Ben", "Cleo")}
# views.patients(curves, floors)

# %% [markdown]
# *The dashed lines are bounds, Ben's above and Cleo's below: without a word of the source neither loss can pass its line. In these few updates neither has come to rest.*
#
# Work out such a line for a task of your own. What does it cost to know how your targets look in general, and nothing of the source? If a loss comes to rest above this line, ask first whether the source arrives.

# %% [markdown]
# ## Pulse and temperature
#
# Two quick tests belong to every examination, and both are known from chapter 14. A model that has learned nothing should not know anything: its **first loss** is near that of a guess, $\ln V$, or some nats above it, if one matrix both reads and writes the tokens. And it should be able to learn a batch of two dates **by heart**. Here they are with the three instruments in one function, for any model of this page.


# %%
def by_heart(model, source, target, loss=loss_of):
    """The loss after 40 updates on one and the same batch; the model stays as it was."""
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    *_, last = training(model, lambda: (source, target), 40, loss)
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
        "loss after 40 updates on one batch": by_heart(model, source, target, loss),
    }


# %% [markdown]
# None of these tests needs a trained model. So a new model can be examined before you wait for its first epoch. This is what they see in our three patients as they were before their training, beside the healthy model.

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
# Read the table by column. Later tokens move Ada's scores, no source moves Ben's, and padding moves Cleo's. Cleo's zero in the row of sources is her own disease once more: the sources of this examination are equally long and have no padding, and her mask lets her read nothing else. The last row tells the healthy model from nobody here, because two dates are few enough for anybody; it catches models that cannot learn at all.
#
# ## The whole examination in one call
#
# Our instruments know the dates, and there are more kinds of disease than six. The package has a complete examination for *any* callable `model(source, target)` that gives scores: yours, `nn.Transformer`'s, or one of the library transformers. It needs no corpus, and makes up its own sentences. Here it is with Cleo. (`learn=False` leaves out the part in which it trains the patient, which takes up to a minute.)

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

# %% [markdown]
# ## The museum
#
# Here are 24 models of chapter 0's size, with one wrong line each. Each of these bugs was reported in public, and the fold under an exhibit names the report, the wrong line and the right one. The complaints are in our words, and the models are ours. (What their owners say of losses and answers is what such a model does when it learns our dates: [evidence 27.2](evidence/27_diagnosis.ipynb).)
#
# Take an exhibit, use the instruments, and make up your mind before you open the fold. Where they see nothing, try `checkup`; some exhibits bring a loss or a reference of their own, and it looks at these, too.

# %% tags=["active-ipynb"]
# number = 1  # change me
# patient = museum.exhibit(number)
# torch.manual_seed(0)
# for what, figure in examine(
#     patient["model"].eval(), patient.get("loss", loss_of)
# ).items():
#     print(f"{what:36} {figure:.3g}")
# # print(transformer.checkup(**patient, learn=False))

# %% [markdown]
# ### Too good to be true
#
# These owners are proud of their losses.
#
# **Exhibit 1: the first update was the best.** "The loss was next to nothing at the very first update. I have never seen a model that begins so well. It answers with what it has been given."
#
# <details><summary>Diagnosis</summary>
#
# The target is not shifted. The model is asked for the token that it has just read, and a model whose one matrix reads and writes knows how to repeat. The first loss, far below $\ln V$, gives it away.
#
# ```python
# # wrong
# scores, gold = model(source, target), target
# # right
# scores, gold = model(source, target[:, :-1]), target[:, 1:]
# ```
#
# Reported in [Kyubyong/transformer#94](https://github.com/Kyubyong/transformer/issues/94).
# </details>
#
# **Exhibit 2: I do have a mask.** "My causal mask is a triangle, as in the paper. The loss became excellent, and the answers are rubbish."
#
# <details><summary>Diagnosis</summary>
#
# It is the other triangle. Each row sees itself and everything behind it, and nothing before it.
#
# ```python
# # wrong
# mask = torch.ones(T, T, dtype=torch.bool).triu()
# # right
# mask = torch.ones(T, T, dtype=torch.bool).tril()
# ```
#
# Reported in [hkproj/pytorch-transformer#19](https://github.com/hkproj/pytorch-transformer/issues/19).
# </details>
#
# **Exhibit 3: better with longer batches.** "The more my sentences differ in length, the lower is my loss. Translations of long and short sentences are as good as they were." (For `checkup`.)
#
# <details><summary>Diagnosis</summary>
#
# Padding is asked for like any token. It is the easiest question there is, and the mean over all questions looks good.
#
# ```python
# # wrong
# F.cross_entropy(scores.flatten(0, 1), gold.flatten())
# # right
# F.cross_entropy(scores.flatten(0, 1), gold.flatten(), ignore_index=0)
# ```
#
# Reported in [Lightning-Universe/lightning-transformers#266](https://github.com/Lightning-Universe/lightning-transformers/issues/266).
# </details>
#
# **Exhibit 4: wonderful until I call eval().** "In training the loss is excellent. When I evaluate the same model, it is terrible. So I suspect my dropout." (For `checkup`.)
#
# <details><summary>Diagnosis</summary>
#
# Attention has two paths, and the one for training forgets the causal mask. Whoever examines the model in evaluation finds nothing.
#
# ```python
# # wrong
# mask = everything if self.training else triangle
# # right
# mask = triangle
# ```
#
# Reported in [keras-team/keras#23038](https://github.com/keras-team/keras/issues/23038).
# </details>
#
# **Exhibit 5: no normal norm.** "I wrote my own layer normalisation, and it runs. The loss is very low, and the translations are not what it promises."
#
# <details><summary>Diagnosis</summary>
#
# The norm takes mean and deviation over the tokens of a sentence, instead of over the numbers of one token. So every token gets to know something about all the others, those behind it included.
#
# ```python
# # wrong
# mean, deviation = x.mean(dim=1, keepdim=True), x.std(dim=1, keepdim=True)
# # right
# mean, deviation = x.mean(dim=-1, keepdim=True), x.std(dim=-1, keepdim=True)
# ```
#
# Reported in [jadore801120/attention-is-all-you-need-pytorch#17](https://github.com/jadore801120/attention-is-all-you-need-pytorch/issues/17).
# </details>

# %% [markdown]
# ### About something else
#
# What these patients write is well formed.
#
# **Exhibit 6: it has an answer to everything.** "It gives me one answer, whatever I ask."
#
# <details><summary>Diagnosis</summary>
#
# The decoder is given zeros instead of the memory. The encoder gets no gradient, and no source moves a score.
#
# ```python
# # wrong
# memory = torch.zeros_like(self.encode(source))
# # right
# memory = self.encode(source)
# ```
#
# Reported in [kingnobro/IconShop#4](https://github.com/kingnobro/IconShop/issues/4).
# </details>
#
# **Exhibit 7: the lazy half.** "It learns, but a friend's model of the same size learns better. Half of my parameters look as if they had just been made."
#
# <details><summary>Diagnosis</summary>
#
# The encoder's output is detached, so that no gradient passes back. The decoder has to make do with an encoder that never learns.
#
# ```python
# # wrong
# memory = self.encode(source).detach()
# # right
# memory = self.encode(source)
# ```
#
# Reported in [lucidrains/CoCa-pytorch#6](https://github.com/lucidrains/CoCa-pytorch/issues/6).
# </details>
#
# **Exhibit 8: the right words in any order.** "It knows which words belong in the answer, and it mixes them up." (For `checkup`.)
#
# <details><summary>Diagnosis</summary>
#
# Positions are made, and never added. Without them a source is a bag of words.
#
# ```python
# # wrong
# return self.dropout(x)
# # right
# return self.dropout(x + self.positions[: tokens.shape[1]])
# ```
#
# Reported in [Lightning-AI/pytorch-lightning#20099](https://github.com/Lightning-AI/pytorch-lightning/issues/20099).
# </details>
#
# **Exhibit 9: all in one place.** "I add positions, and I have checked their shapes. Yet 'dog bites man' and 'man bites dog' are the same to it."
#
# <details><summary>Diagnosis</summary>
#
# A colon is missing. Every word gets one and the same row, that behind the last position. This row changes with the length of the source, and so padding moves scores.
#
# ```python
# # wrong
# x + self.positions[tokens.shape[1]]
# # right
# x + self.positions[: tokens.shape[1]]
# ```
#
# Reported in [DiffPoseTalk/DiffPoseTalk#20](https://github.com/DiffPoseTalk/DiffPoseTalk/issues/20).
# </details>

# %% [markdown]
# ### It depends on the company
#
# These patients answer differently in different company.
#
# **Exhibit 10: alone it is fine.** "Alone, a short sentence gets another translation than beside longer ones."
#
# <details><summary>Diagnosis</summary>
#
# The encoder knows which tokens are padding. The decoder does not, and looks at the padding in the memory.
#
# ```python
# # wrong
# x = self.decoder(x, memory, mask, everything)
# # right
# x = self.decoder(x, memory, mask, source_mask)
# ```
#
# Reported in [keras-team/keras-io#1046](https://github.com/keras-team/keras-io/issues/1046).
# </details>
#
# **Exhibit 11: two guests, one plate.** "With a batch of one everything is right. With a batch of two each answer has something of the other." (For exercise 2.)
#
# <details><summary>Diagnosis</summary>
#
# Where the heads are joined, the axes of heads and of sentences change places. The sizes fit, and the numbers go to other sentences.
#
# ```python
# # wrong
# x.flatten(0, 1).view(h, B, T, d_k).permute(1, 2, 0, 3).reshape(B, T, -1)
# # right
# x.transpose(1, 2).flatten(2)
# ```
#
# Reported in [gazelle93/Transformer-Various-Positional-Encoding#1](https://github.com/gazelle93/Transformer-Various-Positional-Encoding/issues/1).
# </details>
#
# **Exhibit 12: the more, the weaker.** "My attention weights get smaller with the batch size. With one sentence they are all 1." (For exercise 2.)
#
# <details><summary>Diagnosis</summary>
#
# The softmax runs along the first axis, which is that of the sentences. They share their attention with each other.
#
# ```python
# # wrong
# weights = scores.softmax(dim=0)
# # right
# weights = scores.softmax(dim=-1)
# ```
#
# Reported in [PetrochukM/PyTorch-NLP#2](https://github.com/PetrochukM/PyTorch-NLP/issues/2).
# </details>
#
# **Exhibit 13: the library did it.** "I use the library's own encoder layer, so it cannot be that. A sentence means something else beside other sentences." (For exercise 2.)
#
# <details><summary>Diagnosis</summary>
#
# torch's layers take the first axis for time, unless they are told otherwise. So the words of one place look at each other, across the batch.
#
# ```python
# # wrong
# layer = nn.TransformerEncoderLayer(d_model, h, d_ff)
# # right
# layer = nn.TransformerEncoderLayer(d_model, h, d_ff, batch_first=True)
# ```
#
# Reported in [Exorust/TorchLeet#5](https://github.com/Exorust/TorchLeet/issues/5).
# </details>
#
# **Exhibit 14: never twice the same.** "I ask twice, and get two answers. Of course I called `eval()`. All your instruments say that something is wrong."
#
# <details><summary>Diagnosis</summary>
#
# Dropout is called as a function, which does not know about `eval()`. When every needle moves, let the patient sit still first: call it twice with the same input.
#
# ```python
# # wrong
# weights = torch.dropout(weights, 0.1, True)
# # right
# weights = torch.dropout(weights, 0.1, self.training)
# ```
#
# Reported in [pytorch/pytorch#124464](https://github.com/pytorch/pytorch/issues/124464).
# </details>

# %% [markdown]
# ### It hardly moves
#
# Their losses fall a little, or for a long time not at all.
#
# **Exhibit 15: a modest patient.** "The first loss is $\ln V$ to two digits, just as the books say. Since then it has hardly moved."
#
# <details><summary>Diagnosis</summary>
#
# The model ends with a softmax, and the loss makes another. Its scores lie between 0 and 1, and no answer can become much likelier than any other.
#
# ```python
# # wrong
# return scores.softmax(dim=-1)
# # right
# return scores
# ```
#
# Reported in [bkitano/llama-from-scratch#5](https://github.com/bkitano/llama-from-scratch/issues/5).
# </details>
#
# **Exhibit 16: it never says no.** "It learns, but it does not become sure of anything."
#
# <details><summary>Diagnosis</summary>
#
# A ReLU cuts off all scores below zero, and with them the gradient of the tokens that are not meant.
#
# ```python
# # wrong
# return (x @ self.embedding.weight.T).relu()
# # right
# return x @ self.embedding.weight.T
# ```
#
# Reported in [huyng/tensorflow-vgg#13](https://github.com/huyng/tensorflow-vgg/issues/13).
# </details>
#
# **Exhibit 17: a hot start.** "My first loss is near 50, and training begins by getting rid of it."
#
# <details><summary>Diagnosis</summary>
#
# An `nn.Embedding` begins with a deviation of 1. Where the same matrix makes the scores, these are $\sqrt{d_\text{model}}$ times too large, and the model begins by being sure of wrong answers.
#
# ```python
# # wrong
# nn.Embedding(V, d_model)
# # right
# nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
# ```
#
# Reported in [pytorch/pytorch#3121](https://github.com/pytorch/pytorch/issues/3121).
# </details>
#
# **Exhibit 18: smaller than it looks.** "The decoder's weights are the same at the end of training as they were at its beginning. And the file that I save is too small." (For `checkup`.)
#
# <details><summary>Diagnosis</summary>
#
# The decoder's layers stand in a Python list. `parameters()` does not know them, and so no optimizer moves them, and no file has them.
#
# ```python
# # wrong
# self.layers = [DecoderLayer(*sizes) for _ in range(2)]
# # right
# self.layers = nn.ModuleList(DecoderLayer(*sizes) for _ in range(2))
# ```
#
# Reported in [maruya24/pytorch_robotics_transformer#3](https://github.com/maruya24/pytorch_robotics_transformer/issues/3).
# </details>

# %% [markdown]
# ### It worked yesterday
#
# For these three you need `checkup`: they are well until something rare happens.
#
# **Exhibit 19: after two hours, NaN.** "It trained well for two hours. Then every number was NaN. There is an empty line in my file, but it is only one."
#
# <details><summary>Diagnosis</summary>
#
# Forbidden scores are minus infinity. In a source of padding alone every score is forbidden, the softmax divides 0 by 0, and one such sentence spoils the gradient of its whole batch.
#
# ```python
# # wrong
# scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
# # right
# scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1).masked_fill(~mask, 0)
# ```
#
# Reported in [pytorch/pytorch#24816](https://github.com/pytorch/pytorch/issues/24816).
# </details>
#
# **Exhibit 20: only on the large machine.** "On my desk all is well. In half precision it stops at the first sentence."
#
# <details><summary>Diagnosis</summary>
#
# Forbidden scores are $-10^{10}$. Half precision ends at 65,504.
#
# ```python
# # wrong
# scores.masked_fill(~mask, -1e10)
# # right
# scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
# ```
#
# Reported in [bentrevett/pytorch-seq2seq#191](https://github.com/bentrevett/pytorch-seq2seq/issues/191).
# </details>
#
# **Exhibit 21: too sure of itself.** "The better my model becomes, the more often its loss is infinite."
#
# <details><summary>Diagnosis</summary>
#
# The logarithm is taken of a probability. When the model is sure, some other probability is rounded to 0, and its logarithm is minus infinity.
#
# ```python
# # wrong
# log_p = scores.softmax(dim=-1).log()
# # right
# log_p = scores.log_softmax(dim=-1)
# ```
#
# Reported in [harvardnlp/annotated-transformer#115](https://github.com/harvardnlp/annotated-transformer/issues/115).
# </details>

# %% [markdown]
# ### It works, and yet
#
# These learn their task, and something is not as it should be. All three are for `checkup`.
#
# **Exhibit 22: deep and small.** "Two layers or six, my encoder has the same number of parameters."
#
# <details><summary>Diagnosis</summary>
#
# The stack holds one layer several times. What looks like depth is one layer that is applied again and again.
#
# ```python
# # wrong
# Stack([EncoderLayer(*sizes)] * N)
# # right
# Stack(EncoderLayer(*sizes) for _ in range(N))
# ```
#
# Reported in [espnet/espnet#1278](https://github.com/espnet/espnet/issues/1278).
# </details>
#
# **Exhibit 23: almost the paper's.** "I load published weights into my code. The output is fluent, and slightly different from the published one."
#
# <details><summary>Diagnosis</summary>
#
# Scores are divided by the root of $d_\text{model}$, not of a key's width $d_k$. Whoever trains with this line hardly notices. Whoever loads weights that were trained without it does.
#
# ```python
# # wrong
# scores / math.sqrt(d_model)
# # right
# scores / math.sqrt(q.shape[-1])
# ```
#
# Reported in [jadore801120/attention-is-all-you-need-pytorch#42](https://github.com/jadore801120/attention-is-all-you-need-pytorch/issues/42).
# </details>
#
# **Exhibit 24: four small batches for a large one.** "To save memory I add up the gradients of small batches. The same data and the same seed now give another model."
#
# <details><summary>Diagnosis</summary>
#
# Each batch contributes its mean, so that a token of a small batch counts for more than one of a large batch.
#
# ```python
# # wrong
# (loss(model, batch) / len(batches)).backward()
# # right
# (loss(model, batch) * tokens_of(batch) / tokens_of_all).backward()
# ```
#
# Reported in [meta-pytorch/torchtune#1875](https://github.com/meta-pytorch/torchtune/issues/1875).
# </details>

# %% [markdown]
# ## What to keep
#
# - A loss cannot tell success from a leak: let the model write by itself, and change what it must not see.
# - Most bugs of a Transformer crash nowhere, because the shapes agree. They show when you change one thing that must not matter, or one that must.
# - A new model can be examined before its first update, and the tests of this page fit into your test file.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** A model has two heads, and the pieces of four tokens are joined by `reshape` alone. Write down from which tokens the two pieces of each of the four rows come. Which of the rows sees the token that it is asked for, which is the next one?
#
# <details><summary>Answer</summary>
#
# In memory the first head's pieces come first: tokens 1, 2, 3, 4, then the second head's, 1, 2, 3, 4. Row by row two of them are taken: row 1 gets tokens 1 and 2, row 2 gets 3 and 4, row 3 gets 1 and 2, and row 4 gets 3 and 4. So row 1 sees token 2, which it is asked for, and row 2 sees token 3. Row 3 is asked for token 4 and does not see it, but after one more layer it does: row 2 has it by then, and row 3 gets a piece of row 2.
# </details>
#
# **2. In code.** Some exhibits of the museum mix the sentences of a batch, and none of our instruments sees it. Write one that does: the largest change of any score when a sentence is read alone instead of beside the others. Then visit exhibits 11 to 13 with it.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.diagnosis import check_neighbours_move
#
#
# def neighbours_move(model, source, read):
#     """model, (B, S), (B, T) -> the largest change of a score, a number"""
#     ...
#
#
# check_neighbours_move(neighbours_move)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def neighbours_move(model, source, read):
#     together = model(source, read)
#     changes = []
#     for i in range(len(source)):
#         alone = model(source[i : i + 1], read[i : i + 1])
#         changes.append((alone[0] - together[i]).abs().max().item())
#     return max(changes)
# ```
#
# In exhibits 11 to 13 the change is far from zero, and in the healthy model it is rounding.
# </details>
#
# **3. In the museum.** Which organ of these five is ill? `checkup` calls the organs future, padding, neighbours, order, source, gradients, modes, output, start and loss. Use the page's instruments and yours from exercise 2 first.

# %% tags=["active-ipynb"]
# diagnoses = {5: ..., 7: ..., 9: ..., 13: ..., 15: ...}
# museum.check(diagnoses)

# %% [markdown]
# <details><summary>Answer</summary>
#
# 5 is "future", 7 is "gradients", 9 is "order" (and the padding moves, too), 13 is "neighbours", 15 is "output".
# </details>
#
# **4. To think about.** A colleague wants to save time: "I examine the *trained* model, and only if its loss looks strange." Find a patient in this book for whom this is too late, and one for whom an examination before training would have shown nothing.
#
# <details><summary>Answer</summary>
#
# Ada's loss does not look strange at all, and neither does that of exhibit 2; both could have been found before the first update. Exhibit 19 is well until an empty line arrives, and a model trained on slipped pairs, as in [chapter 14](14_training.ipynb), has no wrong line: only its trained form, given other sources, shows that something is amiss. So examine both, the new model's wiring and the trained model's habits.
# </details>
#
# **Next.** If your model is well, and still translates badly, look at its outputs as [chapter 16](16_translation.ipynb) does, or inside it with [chapter 19](19_visualization.ipynb).
