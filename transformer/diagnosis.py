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
# *For whoever has written a Transformer. Reading takes about 40 minutes, and running half a minute. Chapters [0](00_first_transformer.ipynb) and [14](14_training.ipynb) come before it.*
#
# Two Transformers learn from the same sentences. One of them is well. The other has a mistake in a single line. You will see the losses of both, and then say which one should go to the doctor.
#
# You are the doctor on this page. Three patients come in, each with one wrong line. You examine them with small instruments that you can carry over to a model of your own. Then six patients wait for you alone, and you look for their wrong lines. All these bugs were found in somebody's public code.

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
# import transformer
# from transformer import views
# from transformer.doctor import museum
# from transformer.first_transformer import shown, write
# from transformer.language import CausalStack, LanguageConfig
# from transformer.views.evidence import markdown_table
#
# torch.set_num_threads(1)  # on models this small, a second thread only waits

# %% [markdown]
# ## A task that shows everything
#
# People write 14 July 1989 as 14.07.89, and computers as 89-07-14. Our patients learn to turn the first form into the second: they read `140789` and write `890714`. Half of the people leave the year out. Then the source is `1407`, filled up with padding, and the answer is `0714`.
#
# The tokens are those of chapter 0: 0 is padding, 1 begins a target, 2 ends it, and 3 to 12 are the digits. The models are chapter 0's, too, with two layers on each side. The loss and the loop are chapter 14's. The learning rate follows the paper's rule from [chapter 12](12_optimizer.ipynb): it rises for 50 updates, and then falls with the root of their number.


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


def loss_of(model, source, target):
    """Nats a token: source (n, S), target (n, T) with its begin and end marks."""
    scores, gold = model(source, target[:, :-1]), target[:, 1:]
    return F.cross_entropy(scores.flatten(0, 1), gold.flatten(), ignore_index=0)


def training(model, batch, updates, loss=loss_of):
    """Train on batch(), a new one each time; yield the loss after each update."""
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for update in range(1, updates + 1):
        rate = 0.0375 * min(update**-0.5, update * 50**-1.5)  # at most 0.0053
        optimizer.param_groups[0]["lr"] = rate
        error = loss(model, *batch())
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        yield error.item()


# %% [markdown]
# The package has a museum of broken models. `museum.exhibit(name)["model"]` builds one of them with its first weights. We train two models on the same dates.

# %% tags=["active-ipynb"]
# losses = {}
#
#
# def trained(name):
#     torch.manual_seed(27)  # the same dates for everybody
#     model = museum.exhibit(name)["model"]
#     losses[name] = list(training(model, lambda: dates(32), updates=300))
#     return model.eval()
#
#
# model_1, model_2 = trained("model 1"), trained("model 2")
# views.patients(losses)

# %% [markdown]
# *Follow both curves to their right ends: model 2 learns faster, and its loss becomes many times smaller than that of model 1. (Each point is a mean of ten updates, and the axis is logarithmic.)*
#
# Could model 2 simply have learned its dates by heart? Hardly. Every update draws 32 new dates, and most dates with a year never come twice. So which of the two would you send to the doctor? Let both write 300 new dates by themselves.

# %% tags=["active-ipynb"]
# source, target = dates(300)
# asked = [shown(row) for row in source]
# right = [shown(row) for row in target[:, 1:]]
#
#
# def answers(model):
#     """What a model writes for each of the 300 sources, a token at a time."""
#     return [shown(row) for row in write(model, source, longest=7)[:, 1:]]
#
#
# def count_right(written):
#     return sum(answer == wanted for answer, wanted in zip(written, right))
#
#
# first, second = answers(model_1), answers(model_2)
# print("model 1:", count_right(first), "of 300 right")
# print("model 2:", count_right(second), "of 300 right")
# rows = zip(asked[:4], right, first, second)
# markdown_table(["asked", "right", "model 1", "model 2"], rows)

# %% [markdown]
# Model 1 is well, and after so short a training it still mixes up a few digits. Model 2, with the far lower loss, has not one date right. Model 2 is the patient, and her name is Ada.
#
# ## Ada: the loss is wonderful
#
# **The complaint.** "My loss is lower than anybody's, and new dates come at every update. Yet I cannot write one date. And please don't tell me about the causal mask. I have looked at it three times, and it is right."
#
# **The examination.** When a model writes, the rest of the answer does not exist yet. So in training no row of scores may depend on it. We test this directly: change one token of the target, and note which rows of scores move. Doing so for each token in turn fills a square table, with a row for each row of scores and a column for each changed token.


# %%
@torch.no_grad()
def moves(model, source, read):
    """By how much row t of the scores moves with each token that is read: (T, T)."""
    before = model(source, read)
    columns = []
    for place in range(read.shape[1]):
        changed = read.clone()
        digit = changed[:, place] - 3
        changed[:, place] = (digit + 5) % 10 + 3  # another digit, also for a mark
        after = model(source, changed)
        columns.append((after - before).abs().amax(dim=(0, 2)))
    return torch.stack(columns, dim=1)


# %% [markdown]
# A row may move when a token is changed that it has already read. It must not move for a later one, and we paint such squares red. If Ada cheats, where will they be?

# %% tags=["active-ipynb"]
# healthy, ada = model_1, model_2
# one_source, one_target = encode([("140789", "890714")])
# read = one_target[:, :-1]  # the begin mark and six digits
# names = ["begin", *"890714"]
# tables = {
#     "healthy": moves(healthy, one_source, read) > 1e-3,
#     "Ada": moves(ada, one_source, read) > 1e-3,
# }
# views.moved(tables, names)

# %% [markdown]
# *A dark or red square says that a row of scores has moved. Above the diagonal all squares of the healthy model are white and all of Ada's are red: each of her rows moves with every later token.*
#
# **What it means.** Every row sees the whole answer, including the token that it is asked for. That is a leak. A missing mask would be one reason. But *any* operation that mixes rows can leak. Which operations mix rows? Attention does, and so does every careless change of shape.
#
# Ada's attention has four heads, whose results are in a tensor of shape `(B, h, T, d_k)`. So each token has four pieces, one from each head. To join the heads, the four pieces of one token must be put side by side. We can watch where the pieces go if each piece holds, instead of real numbers, the place of its token.

# %% tags=["active-ipynb"]
# places = torch.arange(7).view(1, 1, 7, 1).expand(1, 4, 7, 1)  # (B, h, T, d_k)
# joined = {
#     "transpose, then flatten": places.transpose(1, 2).flatten(2)[0],  # (T, h)
#     "reshape alone (Ada)": places.reshape(1, 7, 4)[0],
# }
# views.joined(joined, names)

# %% [markdown]
# *Read row by row: on the left each row is made of four pieces of its own token; on the right the row of "begin" gets pieces of four different tokens, three of them from later ones.*
#
# `reshape` takes the numbers as they are in memory, and there all tokens of the first head come before the second head. The shape is right, nothing crashes, and the pieces belong to other tokens. Twelve pieces here come from later tokens. The next layer mixes the rows once more, and after two layers the leak fills the whole triangle of the picture before. The mask is innocent: it worked, and the shuffle came after it.
#
# So why does Ada write nonsense? In training she took each answer from the rows behind. When she writes, nothing is behind the last row. Moreover, the shuffle depends on the number of tokens, so it changes with every token that she adds.
#
# **The remedy.**
#
# ```diff
# - return x.reshape(B, T, h * d_k)
# + return x.transpose(1, 2).flatten(2)
# ```
#
# Does she recover? You have already seen it. Both models have read the same dates, and both began with the same weights:

# %% tags=["active-ipynb"]
# before = {name: museum.exhibit(name)["model"] for name in ("healthy", "Ada")}
# pairs = zip(before["healthy"].parameters(), before["Ada"].parameters())
# assert all(torch.equal(p, q) for p, q in pairs)
# print("both began with the same weights")

# %% [markdown]
# So model 1 *is* Ada with her line mended. This wrong line was in a public implementation ([jsbaan/transformer-from-scratch#6](https://github.com/jsbaan/transformer-from-scratch/issues/6)). Its test passed in spite of it: the model had to copy its source, and learned to put up with the shuffle.

# %% [markdown]
# ## Ben: a stopped clock
#
# **The complaint.** "My loss is high, and it falls more and more slowly. Still, I write faultless dates. They say that mine are wrong."

# %% tags=["active-ipynb"]
# ben = trained("Ben")
# bens = answers(ben)
# for name in ("model 1", "Ben"):
#     print(f"{name}, the last ten losses: {sum(losses[name][-10:]) / 10:.2f}")
# print("Ben:", count_right(bens), "of 300 right")
# print("different answers:", len(set(bens)))
# markdown_table(["asked", "right", "Ben"], zip(asked[:4], right, bens))

# %% [markdown]
# What Ben writes is a real day, but it is the same day for everybody. Like a stopped clock he is right only for whoever asks for that day.
#
# **The examination.** Perhaps Ben does not read his source. To find out, we give each date the source of another date. Before you look: should the scores of a healthy model move, and should Ben's?


# %%
@torch.no_grad()
def source_moves(model, source, read, steps=1):
    """By how much scores move, at most, with the source of so many dates before."""
    other = source.roll(steps, dims=0)
    return (model(other, read) - model(source, read)).abs().max().item()


# %% tags=["active-ipynb"]
# read = target[:, :-1]
# print(f"healthy: scores move by up to {source_moves(healthy, source, read):.2f}")
# print(f"Ben:     scores move by up to {source_moves(ben, source, read):.2f}")

# %% [markdown]
# Another source changes everything for the healthy model, and nothing at all for Ben. He ignores his source. Now we know *what* is wrong, but not *where*. A second instrument points to the place: after one backward pass, which parameters have received no gradient?


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
# The whole encoder gets no gradient, and everything else gets one. So the encoder's result goes nowhere. Who should have read it? The cross-attention of each decoder layer should. Its weights have a column for each token that it can see. (Our models keep their weights in the attribute `weights`; in your own, return them or print their shape.)

# %% tags=["active-ipynb"]
# for name, model in {"healthy": healthy, "Ben": ben}.items():
#     model(source, target[:, :-1])  # six tokens of the source, seven of the target
#     weights = model.decoder.layers[0].cross_attention.weights
#     print(f"{name}: the cross-attention sees {weights.shape[-1]} tokens")

# %% [markdown]
# **What it means.** A source has six tokens, and Ben's cross-attention sees seven. These are the seven of the target: it looks at the target once more, instead of at the source.
#
# **The remedy.**
#
# ```diff
# - self.cross_attention(x, x, mask)
# + self.cross_attention(x, memory, source_mask)
# ```
#
# This line, too, was in a public tutorial ([keitakurita/Practical_NLP_in_PyTorch#1](https://github.com/keitakurita/Practical_NLP_in_PyTorch/issues/1)). Nothing crashes, because the shapes agree.
#
# ## Cleo: the same complaint, another disease
#
# **The complaint.** "My loss is high, too, and I write days that nobody asked for. Everybody says that I have what Ben has. But I do read my source! Ask me for a day without a year, and I answer without a year."

# %% tags=["active-ipynb"]
# cleo = trained("Cleo")
# cleos = answers(cleo)
# fitting = sum(len(answer) == len(wanted) for answer, wanted in zip(cleos, right))
# print("Cleo:", count_right(cleos), "of 300 right")
# print("of the right length:", fitting, "of 300")
# markdown_table(["asked", "right", "Cleo"], zip(asked[:4], right, cleos))

# %% [markdown]
# **The examination.** Cleo is right about the lengths, so she must read something in her source. *What* does she read? We compare two strange sources: that of any other date, and that of a date of the same length. This time we look at the loss, which also says how much harm is done.

# %% tags=["active-ipynb"]
# long = source[:, 5] > 0  # with a year
# same_length = source.clone()
# same_length[long] = source[long].roll(1, dims=0)
# same_length[~long] = source[~long].roll(1, dims=0)
# sources = {
#     "its own source": source,
#     "any other date's": source.roll(1, dims=0),
#     "another of the same length": same_length,
# }
# compared = {}
# with torch.no_grad():
#     for name, model in {"healthy": healthy, "Ben": ben, "Cleo": cleo}.items():
#         compared[name] = {}
#         for kind, given in sources.items():
#             compared[name][kind] = loss_of(model, given, target).item()
# views.other_sources(compared)

# %% [markdown]
# *Compare the three bars of each model. Every strange source hurts the healthy model and none hurts Ben; Cleo is hurt by a source of another length, and not at all by one of the same length.*
#
# With a strange source the healthy model is even worse than Ben. It is sure of a wrong answer, and that costs more than Ben's careful guess. Cleo is different from both: all that she knows of a source is its length. Short sources are filled up with padding, so perhaps the padding is what she reads. That is quickly tested. Three more zeros behind a source carry no news, so no score may move.


# %%
@torch.no_grad()
def padding_moves(model, source, read):
    """By how much scores move, at most, when three paddings are put behind the source."""
    padded = F.pad(source, (0, 3))
    return (model(padded, read) - model(source, read)).abs().max().item()


# %% tags=["active-ipynb"]
# print(f"healthy: {padding_moves(healthy, source, read):.4f}")
# print(f"Ben:     {padding_moves(ben, source, read):.4f}")
# print(f"Cleo:    {padding_moves(cleo, source, read):.4f}")

# %% [markdown]
# Only Cleo's scores move. Now we can open her up. Here is where the decoder's last layer looks, while it answers a day without a year.

# %% tags=["active-ipynb"]
# short_source, short_target = encode([("1407", "0714")])
# looks = {}
# with torch.no_grad():
#     for name, model in {"healthy": healthy, "Cleo": cleo}.items():
#         model(short_source, short_target[:, :5])  # reads "begin 0 7 1 4"
#         weights = model.decoder.layers[-1].cross_attention.weights  # (1, h, 5, 6)
#         looks[name] = weights[0].mean(dim=0)
# views.source_looks(looks, [*"1407", "pad", "pad"], written=[*"0714", "end"])

# %% [markdown]
# *Each row shows where a model looks while it writes one token, dark for much (a mean over the four heads): the healthy model looks at digits only, and Cleo at the padding only. (Each row adds up to 1, so even "end" must look somewhere.)*
#
# **What it means.** Cleo's mask is the wrong way round. It hides the digits and shows the padding. A source with a year has no padding at all. Then Cleo sees nothing, and from this she can tell that there is a year. (When everything is hidden, our attention returns zeros. Other programs return NaN, or look at everything alike; there Cleo would have other complaints.)
#
# How can a mask get turned round? Even within one library, True has two meanings:
#
# |mask|True means|
# |---|---|
# |of this book|may be looked at|
# |`attn_mask` of `F.scaled_dot_product_attention`|may be looked at|
# |`key_padding_mask` of `nn.MultiheadAttention`|must not be looked at|
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
# ## A chart before the first update
#
# Not one of these instruments needs a trained model. Wiring and masks are right or wrong from the beginning, so the scores of a new model already move where they must and must not. So examine a model before you train it.
#
# To the instruments above we add two numbers. The first is the **first loss**. An untrained model cannot do better than a guess, which costs $\ln 13 = 2.6$ nats among 13 tokens. A first loss below 2 therefore means that the model sees its answer. A loss somewhat above the guess is no illness: in our models one matrix both reads and writes the tokens, and they begin by repeating what they have read ([chapter 14](14_training.ipynb)). Above 10 we would ask questions.
#
# The second is the **share of scores below zero**. Healthy scores usually have both signs. Where all have one sign, something may have been cut off behind the last layer. (No law: logarithms of probabilities are all negative, and healthy.)
#
# All instruments look at eight dates, short and long in turn. So one step back in the batch is a source of another length, and two steps back is a source of the same length. `LIMITS` says for each line what a healthy model shows. A *change* is the largest change of any score.


# %%
@torch.no_grad()
def below_zero(model, source, read):
    """The share of scores that are negative."""
    return (model(source, read) < 0).float().mean().item()


MANY = float("inf")
LIMITS = {  # what a healthy model shows: at least, and at most
    "first loss": (2, 10),
    "change by later tokens": (0, 0.001),
    "change by a source of another length": (0.001, MANY),
    "change by a source of the same length": (0.001, MANY),
    "change by more padding": (0, 0.001),
    "parameters without a gradient": (0, 0),
    "share of scores below zero": (0.1, 0.9),
}
EIGHT = [
    ("1407", "0714"),
    ("140789", "890714"),
    ("2512", "1225"),
    ("251297", "971225"),
    ("0306", "0603"),
    ("030684", "840603"),
    ("1908", "0819"),
    ("190852", "520819"),
]


def examine(model, loss=loss_of):
    """Put all instruments to a model: {line of LIMITS: what was seen}."""
    source, target = encode(EIGHT)
    read = target[:, :-1]
    seen = [
        loss(model, source, target).item(),
        moves(model, source, read).triu(1).max().item(),  # above the diagonal
        source_moves(model, source, read, steps=1),
        source_moves(model, source, read, steps=2),
        padding_moves(model, source, read),
        len(without_gradient(model, source, target, loss)),
        below_zero(model, source, read),
    ]
    return dict(zip(LIMITS, seen))


# %% [markdown]
# Here are the three patients as they were *before* their training, beside the healthy model. In brackets is what a healthy model shows. Which lines will be red in Cleo's column, and which in Ben's?

# %% tags=["active-ipynb"]
# seen = {}
# for name in ["healthy", "Ada", "Ben", "Cleo"]:
#     seen[name] = examine(museum.exhibit(name)["model"].eval())
# views.charts(seen, LIMITS)

# %% [markdown]
# *Read each column downwards: red is outside of what a healthy model shows, and no two patients have the same red lines.*
#
# Ben's scores move with no source at all, and 24 of his parameters get no gradient: the encoder's. Cleo's scores move with a source of another length and not with one of the same length, and they move with padding. So what she said of herself is true. And why does padding move Ada's scores? All attention of her model joins its heads by `reshape`, the encoder's too, and there the shuffle deals out pieces of padding to the digits.

# %% [markdown]
# ## Six in the waiting room
#
# These six come with a complaint and a chart, and you are alone with them. Each of them is the model below, with *one of its ten lettered lines* written differently. You see only the healthy lines.
#
# ```python
# # in every attention
# weights = scores.masked_fill(~mask, smallest).softmax(dim=-1)  # a
# return x.transpose(1, 2).flatten(2)  # b: joins the heads
# # in every norm
# mean, deviation = x.mean(dim=-1, keepdim=True), x.std(dim=-1, keepdim=True)  # c
# # in the model: embed, then forward
# x = self.embedding(tokens) * scale + self.positions[: tokens.shape[1]]  # d
# source_mask = (source != 0)[:, None, None, :]  # e
# memory = self.encoder(self.embed(source), source_mask)  # f
# mask = torch.ones(T, T, dtype=torch.bool).tril()  # g
# x = self.decoder(self.embed(target), memory, mask, source_mask)  # h
# return x @ self.embedding.weight.T  # i
# # in the loss
# scores, gold = model(source, target[:, :-1]), target[:, 1:]  # j
# ```
#
# |exhibit|its owner says|
# |---|---|
# |1|"The loss was next to nothing at the very first update. I have never seen a model that begins so well."|
# |2|"The loss is very low, and what it writes by itself is worthless. The heads are joined as Ada's should be, and each row of weights adds up to 1."|
# |3|"The same sentence gets one answer on Monday and another on Tuesday. I have printed the memory: its rows for the words are the same on both days."|
# |4|"It learns, and it reads its source. But a friend's model of the same size learns better. I have compared how we call the decoder: letter for letter the same."|
# |5|"The first loss is $\ln V$ to two digits, just as the books say. Since then it has hardly moved."|
# |6|"The same sentence gets one answer on Monday and another on Tuesday. I have read what you did with 3, and it does not help."|

# %% tags=["active-ipynb"]
# seen = {}
# for number in range(1, 7):
#     patient = museum.exhibit(number)
#     loss = patient.get("loss", loss_of)  # some come with a loss of their own
#     seen[number] = examine(patient["model"].eval(), loss)
# views.charts(seen, LIMITS)

# %% [markdown]
# *Red is outside of what a healthy model shows: exhibits 1, 3, 4 and 5 have one red line each, exhibit 2 has two, and exhibit 6 has none.*
#
# A red line names a symptom. Which line of *code* can cause this symptom, and no other red line with it? For example, line g cannot be the one in exhibit 2: whatever a causal mask does, it does not make padding matter. Write a letter for each of the first five.

# %% tags=["active-ipynb"]
# diagnoses = {1: ..., 2: ..., 3: ..., 4: ..., 5: ...}  # for example 1: "a"
# museum.check(diagnoses)

# %% [markdown]
# <details><summary><b>Exhibit 1.</b> Diagnosis</summary>
#
# The line is *j*. The target is not shifted: the model is asked for the token that it has just read, and a model whose one matrix reads and writes knows how to repeat. The model itself is well.
#
# ```diff
# - scores, gold = model(source, target), target
# + scores, gold = model(source, target[:, :-1]), target[:, 1:]
# ```
#
# Reported in [Kyubyong/transformer#94](https://github.com/Kyubyong/transformer/issues/94).
# </details>
#
# <details><summary><b>Exhibit 2.</b> Diagnosis</summary>
#
# The line is *c*. The norm takes mean and deviation over the tokens of a sentence, instead of over the numbers of one token. So every token gets to know something about all others, later ones and padding included. (When such a model writes its first token there is only one row, and the deviation of one row is not even a number.)
#
# ```diff
# - mean, deviation = x.mean(dim=1, keepdim=True), x.std(dim=1, keepdim=True)
# + mean, deviation = x.mean(dim=-1, keepdim=True), x.std(dim=-1, keepdim=True)
# ```
#
# Reported in [jadore801120/attention-is-all-you-need-pytorch#17](https://github.com/jadore801120/attention-is-all-you-need-pytorch/issues/17).
# </details>
#
# <details><summary><b>Exhibit 3.</b> Diagnosis</summary>
#
# The line is *h*. The encoder knows which tokens are padding, or the memory would differ, too. The decoder does not know, and looks at the padding in the memory. On Tuesday a longer sentence in the batch brought more padding.
#
# ```diff
# - x = self.decoder(self.embed(target), memory, mask, everything)
# + x = self.decoder(self.embed(target), memory, mask, source_mask)
# ```
#
# Reported in [keras-team/keras-io#1046](https://github.com/keras-team/keras-io/issues/1046).
# </details>
#
# <details><summary><b>Exhibit 4.</b> Diagnosis</summary>
#
# The line is *f*. The 24 parameters without a gradient are the encoder's, as with Ben. But the source moves the scores, so the memory does arrive, and the decoder's call is right. It arrives detached, and no gradient passes back. The decoder has to make do with an encoder that never learns.
#
# ```diff
# - memory = self.encoder(self.embed(source), source_mask).detach()
# + memory = self.encoder(self.embed(source), source_mask)
# ```
#
# Reported in [lucidrains/CoCa-pytorch#6](https://github.com/lucidrains/CoCa-pytorch/issues/6).
# </details>
#
# <details><summary><b>Exhibit 5.</b> Diagnosis</summary>
#
# The line is *i*. No score is negative: the model ends with a softmax, and the loss makes another. Its scores are between 0 and 1, and no answer can become much likelier than any other.
#
# ```diff
# - return (x @ self.embedding.weight.T).softmax(dim=-1)
# + return x @ self.embedding.weight.T
# ```
#
# Reported in [bkitano/llama-from-scratch#5](https://github.com/bkitano/llama-from-scratch/issues/5).
# </details>

# %% [markdown]
# ## The whole examination in one call
#
# Exhibit 6 has a clean chart, and it is ill. Why does no instrument see it? All of them read the same eight dates together, before and after. None asks whether a date needs its neighbours.
#
# The package asks more. `transformer.checkup` puts seventeen checks to *any* callable `model(source, target)` that gives scores: yours, `nn.Transformer`'s, or a library's. It needs no corpus, because it makes up its own sentences. Here is its whole report on exhibit 6. Changes of scores are in units of their spread, the standard deviation within a row of scores.

# %% tags=["active-ipynb"]
# number = 6  # change me: 1 to 24
# report = transformer.checkup(**museum.exhibit(number), learn=False)
# rows = []
# for finding in report.findings:
#     verdict = f"**{finding.verdict}**" if finding in report.found else finding.verdict
#     rows.append([verdict, finding.organ, finding.asks, finding.seen])
# markdown_table(["verdict", "check", "what it asks", "what it saw"], rows)

# %% [markdown]
# *A bold verdict is a finding: the scores of a sentence depend on the other sentences in the batch, even where one of these is empty.*
#
# Three checks were "not examined": they need your loss, your way of adding up gradients over several batches, or a second model that should give the same scores. You hand these over as `checkup(model, loss=..., accumulate=..., reference=...)`. Without `learn=False`, four more checks train the model for up to a minute: on pure chance, on one batch, and on two easy tasks. `print(report)` adds to each finding what it means, and which chapter to read.
#
# <details><summary><b>Exhibit 6.</b> Diagnosis</summary>
#
# The line is *b*. Where the heads are joined, the axes of heads and of sentences change places. The sizes fit, and the numbers go to other sentences.
#
# ```diff
# - return x.flatten(0, 1).view(h, B, T, d_k).permute(1, 2, 0, 3).reshape(B, T, -1)
# + return x.transpose(1, 2).flatten(2)
# ```
#
# Reported in [gazelle93/Transformer-Various-Positional-Encoding#1](https://github.com/gazelle93/Transformer-Various-Positional-Encoding/issues/1).
# </details>
#
# **And if your model has no encoder?** Most language models are a decoder alone. Give it a source that it ignores. The check "source" must then complain, and the other checks mean what they say. We try it with a small decoder of [chapter 21](21_language.ipynb), and with the same decoder wired backwards.

# %% tags=["active-ipynb"]
# torch.manual_seed(27)
# decoder = CausalStack(LanguageConfig(13, d_model=64, d_ff=128, h=4, N=2))
#
#
# class Alone(torch.nn.Module):
#     def __init__(self, turn=False):
#         super().__init__()
#         self.decoder, self.turn = decoder, turn
#
#     def forward(self, source, target):  # tokens (B, T) -> scores (B, T, V)
#         if self.turn:  # the bug: the text is read from its end
#             return self.decoder(target.flip(1)).flip(1)
#         return self.decoder(target)
#
#
# for turn in (False, True):
#     findings = transformer.checkup(Alone(turn), learn=False).found
#     print("backwards:" if turn else "as it is:", *(f.organ for f in findings))

# %% [markdown]
# The healthy decoder has only the finding that we expected. The one that reads backwards is caught: it sees the future, and not the past. The training on two easy tasks needs a source, so keep `learn=False` for a decoder. In your test file, `assert_healthy(model)` from the package fails with the report wherever `checkup` finds something. From a shell, `transformer checkup mine.py:build_model --html report.html` writes the report as a page.
#
# **Can you trust it?** A doctor who calls everybody ill misses nothing. So we built ill and healthy models, set the limits with one half of them, and only then examined the other half ([evidence 27.1](evidence/27_diagnosis.ipynb)):
#
# |models that set no limit|called ill|
# |---|---|
# |19 ill ones|19|
# |7 healthy ones|1|
# |3 more healthy ones, after we had mended a rule|0|
#
# The false alarm was torch's own `nn.Transformer`. It gives NaN for an empty sentence, which harms no other sentence of the batch. Our rule now allows this. The trial is small, the check of sines is younger than it, and bugs of a kind that we did not collect may be missed.
#
# ## First aid
#
# |symptom|examination|remedy|read|
# |---|---|---|---|
# |the loss is better than you can explain|change later tokens: do earlier scores move?|the causal mask; heads joined or cut without a transpose|[8](08_model.ipynb), [14](14_training.ipynb)|
# |the first loss is far below $\ln V$|is the model asked for the token that it has just read?|shift the target|[14](14_training.ipynb)|
# |the loss does not move|are the scores of both signs? Can the model learn one batch by heart?|no softmax and no ReLU on the scores|[13](13_regularization.ipynb), [14](14_training.ipynb)|
# |a part never learns|which parameters get no gradient?|`ModuleList`, not a list; no `detach`|[14](14_training.ipynb)|
# |the loss stays high; answers have little to do with their questions|give each target another source|let cross-attention read the memory; turn the padding mask round|[8](08_model.ipynb), [14](14_training.ipynb)|
# |other answers in another batch|more padding; a sentence alone, and among others|the padding mask; axes of batch and time|[4](04_attention.ipynb), [8](08_model.ipynb)|
# |suddenly NaN|a source of padding alone; half precision|hide scores with the smallest number of their own type|[4](04_attention.ipynb), [11](11_hardware.ipynb)|
# |the loss jumps, or creeps|can it learn one batch by heart, at a third of the rate and at three times the rate?|warm-up; another peak|[12](12_optimizer.ipynb)|
# |everything above is in order|print ten pairs as the model gets them: do source and target belong together?|mend the data|[14](14_training.ipynb)|
#
# ## Eighteen more to look up
#
# These too are small models of ours with one wrong line each, sorted by symptom. An entry has the owner's words as we tell them, the wrong and the right code, and in brackets the check that finds it and the report. To examine one, put its number into the cell of the whole report.
#
# <details><summary><b>The loss is better than the answers.</b> Exhibits 9, 11 and 16</summary>
#
# - **Exhibit 9.** "My mask is a triangle, as in the paper." It is the other triangle: each row sees itself and what comes later. `torch.ones(T, T).triu()` → `torch.ones(T, T).tril()` (*future*, [hkproj/pytorch-transformer#19](https://github.com/hkproj/pytorch-transformer/issues/19))
# - **Exhibit 11.** "The more my sentences differ in length, the lower is my loss." Padding is asked for like any token, and is the easiest question of all. `F.cross_entropy(scores, gold)` → `F.cross_entropy(scores, gold, ignore_index=0)` (*loss*, [Lightning-Universe/lightning-transformers#266](https://github.com/Lightning-Universe/lightning-transformers/issues/266))
# - **Exhibit 16.** "Excellent in training, terrible in evaluation." The path for training forgets the causal mask. Whoever examines only evaluation finds nothing. `everything if self.training else triangle` → `triangle` (*future*, [keras-team/keras#23038](https://github.com/keras-team/keras/issues/23038))
# </details>
#
# <details><summary><b>The answers do not fit the questions.</b> Exhibits 7, 14 and 20</summary>
#
# - **Exhibit 7.** "The answers look perfect." The decoder is given zeros instead of the memory. As with Ben, the 24 parameters of the encoder get no gradient. Neither do the eight matrices of the cross-attention, because a product with zeros teaches nothing. `torch.zeros_like(self.encode(source))` → `self.encode(source)` (*source*, [kingnobro/IconShop#4](https://github.com/kingnobro/IconShop/issues/4))
# - **Exhibit 14.** "I do add positions." A colon is missing: every word gets the row behind the last position. This row changes with the length, so padding moves scores. `self.positions[tokens.shape[1]]` → `self.positions[: tokens.shape[1]]` (*order*, [DiffPoseTalk/DiffPoseTalk#20](https://github.com/DiffPoseTalk/DiffPoseTalk/issues/20))
# - **Exhibit 20.** "The right words, in any order." Positions are made, and never added. `self.dropout(x)` → `self.dropout(x + self.positions[: tokens.shape[1]])` (*order*, [Lightning-AI/pytorch-lightning#20099](https://github.com/Lightning-AI/pytorch-lightning/issues/20099))
# </details>
#
# <details><summary><b>The same question gets different answers.</b> Exhibits 10, 18 and 21</summary>
#
# - **Exhibit 10.** "The larger the batch, the smaller are my attention weights." The softmax runs over the sentences of the batch. `scores.softmax(dim=0)` → `scores.softmax(dim=-1)` (*neighbours*, [PetrochukM/PyTorch-NLP#2](https://github.com/PetrochukM/PyTorch-NLP/issues/2))
# - **Exhibit 18.** "My tests ask one sentence at a time, and pass." torch's layers take the first axis for time, unless they are told otherwise. `nn.TransformerEncoderLayer(d_model, h, d_ff)` → `nn.TransformerEncoderLayer(d_model, h, d_ff, batch_first=True)` (*neighbours*, [Exorust/TorchLeet#5](https://github.com/Exorust/TorchLeet/issues/5))
# - **Exhibit 21.** "Of course I called eval()." Dropout is called as a function, which does not know about `eval()`. `torch.dropout(weights, 0.1, True)` → `torch.dropout(weights, 0.1, self.training)` (*modes*, [pytorch/pytorch#124464](https://github.com/pytorch/pytorch/issues/124464))
# </details>
#
# <details><summary><b>Infinite, NaN, or an error.</b> Exhibits 8, 13 and 19</summary>
#
# - **Exhibit 8.** "It runs on my desk, and stops on the large machine." Half precision ends at 65,504. `masked_fill(~mask, -1e10)` → `masked_fill(~mask, torch.finfo(scores.dtype).min)` (*half*, [bentrevett/pytorch-seq2seq#191](https://github.com/bentrevett/pytorch-seq2seq/issues/191))
# - **Exhibit 13.** "The better my model becomes, the more often its loss is infinite." A probability is rounded to 0, and its logarithm is minus infinity. `scores.softmax(dim=-1).log()` → `scores.log_softmax(dim=-1)` (*loss*, [harvardnlp/annotated-transformer#115](https://github.com/harvardnlp/annotated-transformer/issues/115))
# - **Exhibit 19.** "It trained well for two hours. Then every number was NaN." An empty line becomes a source of padding alone. All its scores are forbidden, the softmax divides 0 by 0, and this one sentence spoils the gradient of its batch. `masked_fill(~mask, -math.inf).softmax(dim=-1)` → `masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1)` (*empty*, [pytorch/pytorch#24816](https://github.com/pytorch/pytorch/issues/24816))
# </details>
#
# <details><summary><b>It learns, but badly.</b> Exhibits 15, 22 and 24</summary>
#
# - **Exhibit 15.** "Four small batches give another model than one large batch." Each batch contributes its mean, so a token of a small batch counts for more. `loss / number_of_batches` → `loss * tokens_of_the_batch / tokens_of_all_batches` (*accumulation*, [meta-pytorch/torchtune#1875](https://github.com/meta-pytorch/torchtune/issues/1875))
# - **Exhibit 22.** "Everybody's first loss is about 5. Mine is about 50." An `nn.Embedding` begins with deviation 1. The same matrix makes the scores, which become far too large. `nn.Embedding(V, d_model)` → `nn.init.normal_(self.embedding.weight, std=d_model**-0.5)` (*start*, [pytorch/pytorch#3121](https://github.com/pytorch/pytorch/issues/3121))
# - **Exhibit 24.** "It does not become sure of anything." A ReLU cuts off all scores below zero, and their gradient. (Reported of a network for images.) `(x @ self.embedding.weight.T).relu()` → `x @ self.embedding.weight.T` (*output*, [huyng/tensorflow-vgg#13](https://github.com/huyng/tensorflow-vgg/issues/13))
# </details>
#
# <details><summary><b>Something is odd about the weights.</b> Exhibits 12, 17 and 23</summary>
#
# - **Exhibit 12.** "The file that I save is too small." Layers in a Python list are unknown to `parameters()`, to the file, and to `eval()`: their dropout never stops. `[DecoderLayer(*sizes) for _ in range(2)]` → `nn.ModuleList(DecoderLayer(*sizes) for _ in range(2))` (*gradients*, [maruya24/pytorch_robotics_transformer#3](https://github.com/maruya24/pytorch_robotics_transformer/issues/3))
# - **Exhibit 17.** "Published weights in my code give slightly different output." The root of the model's width stands where the root of a key's width should. `scores / math.sqrt(d_model)` → `scores / math.sqrt(q.shape[-1])` (*paper*, [jadore801120/attention-is-all-you-need-pytorch#42](https://github.com/jadore801120/attention-is-all-you-need-pytorch/issues/42))
# - **Exhibit 23.** "My encoder became three times as deep, and its file did not grow." The stack holds one layer several times. `Stack([EncoderLayer(*sizes)] * N)` → `Stack(EncoderLayer(*sizes) for _ in range(N))` (*sharing*, [espnet/espnet#1278](https://github.com/espnet/espnet/issues/1278))
# </details>

# %% [markdown]
# ## What to keep
#
# - A loss cannot tell success from a leak: let the model write by itself, and change what it must not see.
# - Most bugs of a Transformer crash nowhere, because the shapes agree. They show when you change something that must not matter, or something that must.
# - A new model can be examined before its first update, and the tests of this page fit into your test file.

# %% [markdown]
# ## Exercises
#
# **1. By hand.** A model has two heads, and the pieces of four tokens are joined by `reshape` alone. Write down from which tokens the two pieces of each of the four rows come. Each row is asked for the next token. Which rows see it after one layer?
#
# <details><summary>Answer</summary>
#
# In memory the first head's pieces come first, of tokens 1, 2, 3, 4, and then the second head's, of 1, 2, 3, 4 again. Row by row two of them are taken: row 1 gets tokens 1 and 2, row 2 gets 3 and 4, row 3 gets 1 and 2, and row 4 gets 3 and 4. So row 1 sees token 2, and row 2 sees token 3. Row 3 is asked for token 4 and does not see it yet. After one more layer it does: row 2 has token 4 by then, and row 3 gets a piece of row 2.
# </details>
#
# **2. By hand.** How low can Cleo's loss get? There are 12 · 28 days and 100 years in our dates, all equally likely, and half of all dates have a year. A short answer has five tokens, and a long answer has seven, because the end mark counts. Suppose that Cleo knows this calendar perfectly, and of her source only the length. How many nats per token must she pay? And how many must Ben pay, who does not even know the length? Compare both with the blue bars above.
#
# <details><summary>Answer</summary>
#
# One of 336 days costs $\ln 336 = 5.82$ nats, and one of 100 years costs $\ln 100 = 4.61$. A mean answer costs $5.82 + 4.61 / 2 = 8.12$ nats and has six tokens, which makes 1.35 nats per token. Ben has to guess as well whether there is a year. This costs him $\ln 2 = 0.69$ nats more for each answer, so that he pays $8.81 / 6 = 1.47$ nats per token.
#
# Both blue bars are above these figures, and neither training had come to its end. Work out such a figure for a task of your own: what does it cost to know how targets look in general, and nothing of the source? A loss that comes to rest there tells you that the source does not arrive.
# </details>
#
# **3. In code.** The chart of exhibit 6 was clean. Write the instrument that finds this illness: how much does any score of a sentence change when the sentence is read alone instead of beside the others?

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
# @torch.no_grad()
# def neighbours_move(model, source, read):
#     together = model(source, read)
#     changes = []
#     for i in range(len(source)):
#         alone = model(source[i : i + 1], read[i : i + 1])
#         changes.append((alone[0] - together[i]).abs().max().item())
#     return max(changes)
# ```
# </details>
#
# **4. In code.** Four of the exhibits 7 to 24 move your instrument. Find them. In two of them sentences are mixed, as in exhibit 6. How can you tell, without opening a fold, that the other two have something else?
#
# <details><summary>Solution</summary>
#
# ```python
# for number in range(7, 25):
#     model = museum.exhibit(number)["model"].eval()
#     change = neighbours_move(model, source[:8], target[:8, :-1])
#     if change > 0.001:
#         print(number, change)
# ```
#
# They are 10, 12, 18 and 21. Ask the same question twice, with the same neighbours: the scores of 12 and 21 move again. Their dropout does not stop in evaluation, and such a patient moves several instruments. So call a model twice with the same input before you examine it.
# </details>
#
# **5. To think about.** A colleague says: "I examine a model only if its loss looks strange." Another says: "I examine every model before its first update, and never again." Find a patient on this page whom the first colleague misses, and a mistake in [chapter 14](14_training.ipynb) that the second misses.
#
# <details><summary>Answer</summary>
#
# Ada's loss looks wonderful and not strange. The first colleague finds out when she has to write a date.
#
# In chapter 14 a line is lost from one of two files, and every English sentence is paired with its neighbour's translation. The model has no wrong line, and every instrument on it is content. Only after training does it show that a strange source costs this model nothing. So examine both: the new model's wiring, and what the trained model has learned to use.
# </details>
#
# **Next.** If your model is well, and still translates badly, look at its outputs as [chapter 16](16_translation.ipynb) does, or inside it with [chapter 19](19_visualization.ipynb).
