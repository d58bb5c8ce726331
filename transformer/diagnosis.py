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
# Two Transformers learn from the same sentences, and soon you will see their losses. One of the two is well. The other has a mistake in one line, and in use it will not get a single answer right. Which of the two do you think has the lower loss?
#
# You are the doctor on this page. Three patients come in, each with one wrong line. You examine them with small instruments that you can carry over to a model of your own. Then six patients wait for you alone. All their bugs were found in somebody's public code.

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
# from transformer.views.evidence import markdown_table
#
# torch.set_num_threads(1)  # on models this small, a second thread only waits

# %% [markdown]
# ## A task that shows everything
#
# People write 14 July 1989 as 14.07.89, and computers as 89-07-14. Our patients learn to turn the first form into the second: they read `140789` and write `890714`. Half of the people leave the year out. Then the source is `1407`, filled up with padding, and the answer is `0714`.


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
# The tokens are those of chapter 0: 0 is padding, 1 begins a target, 2 ends it, and 3 to 12 are the digits. The models are chapter 0's, too, with two layers on each side. The loss and the loop are chapter 14's, and the learning rate is the paper's of [chapter 12](12_optimizer.ipynb): it rises for 50 updates and then falls with the root of their number.


# %%
def loss_of(model, source, target):
    """Nats a token: source (n, S), target (n, T) with its begin and end marks."""
    scores, gold = model(source, target[:, :-1]), target[:, 1:]
    return F.cross_entropy(scores.flatten(0, 1), gold.flatten(), ignore_index=0)


def training(model, batch, updates, loss=loss_of):
    """Train on batch(), a new one each time; yield the loss after each update."""
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for update in range(1, updates + 1):
        rate = 0.0375 * min(update**-0.5, update * 50**-1.5)
        optimizer.param_groups[0]["lr"] = rate
        error = loss(model, *batch())
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        yield error.item()


# %% [markdown]
# `museum.exhibit` builds a model under its name, with its first weights. We train two of them. (`eval()` switches dropout off: a task this small does not need it.)

# %% tags=["active-ipynb"]
# losses = {}
#
#
# def trained(name, updates):
#     torch.manual_seed(27)  # the same dates for everybody
#     model = museum.exhibit(name)["model"].eval()
#     losses[name] = list(training(model, lambda: dates(32), updates))
#     return model
#
#
# healthy = trained("healthy", updates=180)
# ada = trained("Ada", updates=180)
# views.patients({"model 1": losses["healthy"], "model 2": losses["Ada"]})

# %% [markdown]
# *The lower curve belongs to a model that learns faster and ends with a loss many times smaller. (Each point is a mean of ten updates, and the axis is logarithmic.)*
#
# Could the lower one simply have learned its dates by heart? Hardly. Every update draws 32 new dates, and most dates with a year never come twice. (A day without a year comes back some ten times.) So which model would you send to the doctor? Let both write 300 dates by themselves.

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
# first, second = answers(healthy), answers(ada)
# print("model 1:", count_right(first), "of 300 right")
# print("model 2:", count_right(second), "of 300 right")
# rows = zip(asked[:4], right, first, second)
# markdown_table(["asked", "right", "model 1", "model 2"], rows)

# %% [markdown]
# Model 1 is well, and merely young: it still mixes up digits, and a longer training brings more of its dates right ([evidence 27.2](evidence/27_diagnosis.ipynb)). Model 2, with the lower loss, has not one right. She is the patient, and her name is Ada.
#
# ## Ada: the loss is wonderful
#
# **The complaint.** "My loss is lower than anybody's, and new dates come at every update. Yet I cannot write one date. And please don't tell me about the causal mask. I have looked at it three times, and it is right."
#
# **The examination.** When a model writes, the rest of the answer does not exist yet. So in training no row of scores may know it. The test of [chapter 14](14_training.ipynb) changed the last token. Here we change every token of the target in turn, and note which rows of scores move. The result is a square table: a row for each row of scores, and a column for each changed token.


# %%
@torch.no_grad()
def moves(model, source, read):
    """By how much row t of the scores moves with each token that is read: (T, T)."""
    before = model(source, read)
    columns = []
    for place in range(read.shape[1]):
        changed = read.clone()
        digit = changed[:, place] - 3
        changed[:, place] = (digit + 5) % 10 + 3  # another digit
        after = model(source, changed)
        columns.append((after - before).abs().amax(dim=(0, 2)))
    return torch.stack(columns, dim=1)


# %% [markdown]
# A row may move when a token is changed that it has already read. It must not move for a later one, and we paint such squares red. If Ada cheats, where will red squares be?

# %% tags=["active-ipynb"]
# one_source, one_target = encode([("140789", "890714")])
# read = one_target[:, :-1]  # the begin mark and six digits
# names = ["begin", *"890714"]
# tables = {
#     "healthy": moves(healthy, one_source, read) > 1e-3,
#     "Ada": moves(ada, one_source, read) > 1e-3,
# }
# views.moved(tables, names)

# %% [markdown]
# *Look above the diagonal: in the healthy model all squares are white, and in Ada all are red, because every row moves with every later token.*
#
# **What it means.** Every row sees the whole answer, the token that it is asked for included. That is a leak. A missing mask would be one reason. But *any* operation that mixes rows can leak. Which operations mix rows? Attention does, and so does every careless change of shape.
#
# Ada's attention has four heads, whose results are in a tensor of shape `(B, h, T, d_k)`. So each token has four pieces, one from each head. To join the heads, a token needs its own four pieces side by side. We can watch where the pieces go, if instead of real numbers each piece holds the place of its token.

# %% tags=["active-ipynb"]
# places = torch.arange(7).view(1, 1, 7, 1).expand(1, 4, 7, 1)  # (B, h, T, d_k)
# joined = {
#     "transpose, then flatten": places.transpose(1, 2).flatten(2)[0],  # (T, h)
#     "reshape alone (Ada)": places.reshape(1, 7, 4)[0],
# }
# views.joined(joined, names)

# %% [markdown]
# *Each row should be made of four pieces of its own token, as on the left; on the right the row of "begin" gets pieces of four different tokens.*
#
# Twelve pieces are red. After the second layer all of the triangle was, because each layer hands on what the layer before has mixed.
#
# `reshape` takes the numbers as they are in memory, and there all tokens of the first head come before the second head. The shape is right, nothing crashes, and the pieces are somebody else's. The mask worked all the time. Only, what came out of it was dealt out wrongly.
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
# **The complaint.** "My loss is high, and it falls more and more slowly. Still, I write faultless dates. They say that mine are wrong."

# %% tags=["active-ipynb"]
# ben = trained("Ben", updates=120)
# bens = answers(ben)
# print("Ben:", count_right(bens), "of 300 right")
# print("different answers:", len(set(bens)))
# markdown_table(["asked", "right", "Ben"], zip(asked[:4], right, bens))

# %% [markdown]
# What Ben writes is a real day. It is the same day for everybody.
#
# **The examination.** Chapter 14 had the test for a model that may not read its source: give each date another date's source. Before you look: what should happen to the loss of a healthy model, and what to Ben's?


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
# A wrong source is a disaster for the healthy model, and changes nothing at all for Ben. He ignores his source. Now we know *what* is wrong, but not *where*. A second instrument points to the place: after one backward pass, which parameters have received no gradient?


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
# The whole encoder gets no gradient, and everything else gets one. So the encoder's result goes nowhere. Who should have read it? The cross-attention of each decoder layer should, and its weights tell what it looks at: one column for each token that it can see.

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
# cleo = trained("Cleo", updates=120)
# cleos = answers(cleo)
# fitting = sum(len(answer) == len(wanted) for answer, wanted in zip(cleos, right))
# print("Cleo:", count_right(cleos), "of 300 right")
# print("of the right length:", fitting, "of 300")
# markdown_table(["asked", "right", "Cleo"], zip(asked[:4], right, cleos))

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
#         compared[name] = {}
#         for kind, given in sources.items():
#             compared[name][kind] = loss_of(model, given, target).item()
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
# short_source, short_target = encode([("1407", "0714")])
# looks = {}
# with torch.no_grad():
#     for name, model in {"healthy": healthy, "Cleo": cleo}.items():
#         model(short_source, short_target[:, :5])  # reads "begin 0 7 1 4"
#         weights = model.decoder.layers[-1].cross_attention.weights  # (1, h, 5, 6)
#         looks[name] = weights[0].mean(dim=0)
# views.source_looks(looks, [*"1407", "pad", "pad"], written=[*"0714", "end"])

# %% [markdown]
# *Each row shows where a model looks while it writes one token, dark for much: the healthy model looks at digits, and Cleo at the padding and at nothing else.*
#
# **What it means.** Cleo's mask is the wrong way round. It hides the digits, and shows the padding. A source with a year has no padding, so that Cleo sees nothing at all, and this nothing tells her that there is a year. (Our attention gives nothing where everything is hidden. In other programs such a row may be NaN, or an even look at everything, and this patient would be another.)
#
# How can a mask get turned round? Even within one library, True has two meanings:
#
# | mask | True means |
# |---|---|
# | of this book | may be looked at |
# | `attn_mask` of `F.scaled_dot_product_attention` | may be looked at |
# | `key_padding_mask` of `nn.MultiheadAttention` | must not be looked at |
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
# Not one of these instruments needs a trained model. The shapes and masks of a new model are already right or wrong, and so its scores move where they must and must not. That saves hours: you can examine a model before you train it.
#
# To the instruments of this page we add two that take one look each. A model that has learned nothing should not know anything, so that its **first loss** is not far below a guess, which costs $\ln V$, here 2.6 nats. (It may be some nats above, where one matrix both reads and writes the tokens; [chapter 14](14_training.ipynb) says why.) And the scores of a healthy model usually have both **signs**; where all have one, something may have been cut off behind the last layer. (This is a hint and no law: a model that returns the logarithms of probabilities has negative scores alone, and is well.)
#
# The test of the strange source, too, gets a form that looks at scores instead of losses, because the loss of a new model says little.


# %%
@torch.no_grad()
def source_moves(model, source, read, steps=1):
    """By how much scores move, at most, with the source of so many dates before."""
    other = source.roll(steps, dims=0)
    return (model(other, read) - model(source, read)).abs().max().item()


@torch.no_grad()
def below_zero(model, source, read):
    """The share of scores that are negative."""
    return (model(source, read) < 0).float().mean().item()


# %% [markdown]
# All instruments look at eight dates, short and long in turn. So each date's neighbour in the batch has another length, and the neighbour after that has the same length. `LIMITS` says for each instrument what a healthy model shows. A *change* is the largest change of any score.

# %%
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
# Ben's scores move with no source at all, and 24 of his parameters get no gradient. Cleo's move with a source of another length, and with one of the same length they do not: what she said of herself is true. Her second red line is the padding that she reads. And why does padding move Ada's scores? Her wrong line is in the encoder, too. There the shuffle deals out pieces of padding to the digits.
#
# The first loss and the signs find none of the three. They are for other patients.

# %% tags=["active-ipynb"]
# found = {}
# for name, figures in seen.items():
#     found[name] = set()
#     for line, (least, most) in LIMITS.items():
#         if not least <= figures[line] <= most:
#             found[name].add(line)
# no_source = {
#     "change by a source of another length",
#     "change by a source of the same length",
# }
# assert found["healthy"] == set()
# assert found["Ada"] == {"change by later tokens", "change by more padding"}
# assert found["Ben"] == no_source | {"parameters without a gradient"}
# assert found["Cleo"] == {
#     "change by a source of the same length",
#     "change by more padding",
# }
# print("each patient is found before its first update")

# %% [markdown]
# ## Six in the waiting room
#
# These six come with a complaint and a chart, and you are alone with them.
#
# | exhibit | its owner says |
# |---|---|
# | 1 | "The loss was next to nothing at the very first update. I have never seen a model that begins so well." |
# | 2 | "The loss is very low, and what it writes by itself is worthless. The heads are joined with a transpose; I asked Ada." |
# | 3 | "The same sentence gets one answer on Monday and another on Tuesday." |
# | 4 | "It learns, but a friend's model of the same size learns better." |
# | 5 | "The first loss is $\ln V$ to two digits, just as the books say. Since then it has hardly moved." |
# | 6 | "The same sentence gets one answer on Monday and another on Tuesday. I have read what you did with 3, and it does not help." |

# %% tags=["active-ipynb"]
# seen = {}
# for number in range(1, 7):
#     patient = museum.exhibit(number)
#     loss = patient.get("loss", loss_of)  # some come with a loss of their own
#     seen[number] = examine(patient["model"].eval(), loss)
# views.charts(seen, LIMITS)

# %% [markdown]
# *One red line names the illness of exhibits 1, 3, 4 and 5; exhibit 2 has two red lines, and exhibit 6 has none.*
#
# Make up your mind: what is ill? Write your diagnosis of the first five, each as one of the words *future*, *padding*, *source*, *gradients*, *output* and *loss*. (A word may be used twice or never.) The cell says which are right, and the folds say why.

# %% tags=["active-ipynb"]
# diagnoses = {1: ..., 2: ..., 3: ..., 4: ..., 5: ...}
# museum.check(diagnoses)

# %% [markdown]
# <details><summary><b>Exhibit 1.</b> Diagnosis</summary>
#
# The word is *loss*. The target is not shifted: the model is asked for the token that it has just read, and a model whose one matrix reads and writes knows how to repeat. The model itself is well.
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
# The word is *future*, as with Ada, but the line is another. The norm takes mean and deviation over the tokens of a sentence, instead of over the numbers of one token. So every token gets to know something about all others, those behind it and the padding included.
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
# The word is *padding*. The encoder knows which tokens are padding. The decoder does not, and looks at the padding in the memory. On Tuesday there was a longer sentence in the batch, and so more padding.
#
# ```diff
# - x = self.decoder(x, memory, mask, everything)
# + x = self.decoder(x, memory, mask, source_mask)
# ```
#
# Reported in [keras-team/keras-io#1046](https://github.com/keras-team/keras-io/issues/1046).
# </details>
#
# <details><summary><b>Exhibit 4.</b> Diagnosis</summary>
#
# The word is *gradients*. The encoder's output is detached, so that no gradient passes back. The decoder has to make do with an encoder that never learns.
#
# ```diff
# - memory = self.encode(source).detach()
# + memory = self.encode(source)
# ```
#
# Reported in [lucidrains/CoCa-pytorch#6](https://github.com/lucidrains/CoCa-pytorch/issues/6).
# </details>
#
# <details><summary><b>Exhibit 5.</b> Diagnosis</summary>
#
# The word is *output*. The model ends with a softmax, and the loss makes another. Its scores are between 0 and 1, and no answer can become much likelier than any other.
#
# ```diff
# - return scores.softmax(dim=-1)
# + return scores
# ```
#
# Reported in [bkitano/llama-from-scratch#5](https://github.com/bkitano/llama-from-scratch/issues/5).
# </details>

# %% [markdown]
# ## The whole examination in one call
#
# Exhibit 6 has a clean chart, and it is ill. So our instruments are not all that there are. The package has sixteen, for *any* callable `model(source, target)` that gives scores: yours, `nn.Transformer`'s, or one of the library transformers. It needs no corpus, and makes up its own sentences. (`learn=False` leaves out four more tests, in which the patient is trained for up to a minute.)

# %% tags=["active-ipynb"]
# report = transformer.checkup(museum.exhibit(6)["model"], learn=False)
# for finding in report.found:
#     print(f"{finding.verdict}: {finding.organ}. Seen: {finding.seen}.")

# %% [markdown]
# The first finding says it: a sentence's scores depend on what else is in the batch. On Tuesday exhibit 6 was asked in other company. The second finding has the same cause, because an empty sentence is a neighbour, too. `print(report)` gives all sixteen lines, says what a finding means, and names the chapter to read.

# %% [markdown]
# <details><summary><b>Exhibit 6.</b> Diagnosis</summary>
#
# The word is *neighbours*. Where the heads are joined, the axes of heads and of sentences change places. The sizes fit, and the numbers go to other sentences.
#
# ```diff
# - x.flatten(0, 1).view(h, B, T, d_k).permute(1, 2, 0, 3).reshape(B, T, -1)
# + x.transpose(1, 2).flatten(2)
# ```
#
# Reported in [gazelle93/Transformer-Various-Positional-Encoding#1](https://github.com/gazelle93/Transformer-Various-Positional-Encoding/issues/1).
# </details>

# %% [markdown]
# For a model of your own, say `checkup(model, loss=my_loss, ids=(pad, begin, end))`, and the loss is examined, too. The same examination can be a test in your test file:
#
# ```python
# from transformer import assert_healthy
#
#
# def test_my_model_is_healthy():
#     assert_healthy(build_model())
# ```
#
# From a shell, `transformer checkup mine.py:build_model --html report.html` writes the report as a page with pictures.
#
# **Can you trust it?** A doctor who calls everybody ill misses nothing. So we built 38 ill models and 14 healthy ones. We set the limits of the examination with one half of them, and did not look at the other half. Then we opened the door. All 19 ill models of the other half were found. And one of the seven healthy models was called ill. It was torch's own `nn.Transformer`, with its norms first.
#
# What had it done? One of our tests puts an empty sentence into a batch. For this sentence torch gave scores that are not numbers (NaN). But the NaN stayed with the empty sentence: the others kept their scores, and training was not harmed. We had been looking for an empty sentence that spoils everybody else's gradient. So the alarm was false, and we changed the rule.
#
# A rule that was changed after the result proves nothing. So we let in three more healthy models that no rule had ever seen. None was called ill. That is little, and it is all that we know ([evidence 27.1](evidence/27_diagnosis.ipynb)): bugs of a kind that we did not collect may well be missed.
#
# ## Eighteen more
#
# The museum goes on. Each line is a complaint, in our words, and its fold has the diagnosis, the wrong line and the report. The models are ours, small, with one wrong line each. (That such models can behave as their owners say is measured, where the complaint tells of a training: [evidence 27.2](evidence/27_diagnosis.ipynb).) Guess first, or ask the instruments. Where they see nothing, take `checkup`. The cell below shows exhibit 7.

# %% tags=["active-ipynb"]
# number = 7  # change me
# patient = museum.exhibit(number)
# loss = patient.get("loss", loss_of)
# views.charts({number: examine(patient["model"].eval(), loss)}, LIMITS)
# # print(transformer.checkup(**patient, learn=False))

# %% [markdown]
# *Red, as before, is outside of what a healthy model shows: exhibit 7 has the chart that Ben had.* (Change the number to see the others.)
#
# <details><summary><b>Exhibit 7.</b> "The answers look perfect, until you compare them with the questions."</summary>
#
# The decoder is given zeros instead of the memory. The encoder gets no gradient, and no source moves a score.
#
# ```diff
# - memory = torch.zeros_like(self.encode(source))
# + memory = self.encode(source)
# ```
#
# Reported in [kingnobro/IconShop#4](https://github.com/kingnobro/IconShop/issues/4).
# </details>
#
# <details><summary><b>Exhibit 8.</b> "On my desk all is well. On the large machine it stops at the first sentence."</summary>
#
# Forbidden scores are $-10^{10}$. Half precision ends at 65,504.
#
# ```diff
# - scores.masked_fill(~mask, -1e10)
# + scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
# ```
#
# Reported in [bentrevett/pytorch-seq2seq#191](https://github.com/bentrevett/pytorch-seq2seq/issues/191).
# </details>
#
# <details><summary><b>Exhibit 9.</b> "My mask is a triangle, as in the paper. The loss became excellent, and the answers are rubbish."</summary>
#
# It is the other triangle. Each row sees itself and everything behind it, and nothing before it.
#
# ```diff
# - mask = torch.ones(T, T, dtype=torch.bool).triu()
# + mask = torch.ones(T, T, dtype=torch.bool).tril()
# ```
#
# Reported in [hkproj/pytorch-transformer#19](https://github.com/hkproj/pytorch-transformer/issues/19).
# </details>
#
# <details><summary><b>Exhibit 10.</b> "The larger the batch, the smaller are my attention weights."</summary>
#
# The softmax runs along the first axis, which is that of the sentences. They share their attention with each other.
#
# ```diff
# - weights = scores.softmax(dim=0)
# + weights = scores.softmax(dim=-1)
# ```
#
# Reported in [PetrochukM/PyTorch-NLP#2](https://github.com/PetrochukM/PyTorch-NLP/issues/2).
# </details>
#
# <details><summary><b>Exhibit 11.</b> "The more my sentences differ in length, the lower is my loss. The answers are no better for it."</summary>
#
# Padding is asked for like any token. It is the easiest question there is, and the mean over all questions looks good.
#
# ```diff
# - F.cross_entropy(scores.flatten(0, 1), gold.flatten())
# + F.cross_entropy(scores.flatten(0, 1), gold.flatten(), ignore_index=0)
# ```
#
# Reported in [Lightning-Universe/lightning-transformers#266](https://github.com/Lightning-Universe/lightning-transformers/issues/266).
# </details>
#
# <details><summary><b>Exhibit 12.</b> "The file that I save is too small. When I load it again, my model is half a beginner."</summary>
#
# The decoder's layers are in a Python list. `parameters()` does not know them, and so no optimizer moves them, and no file has them.
#
# ```diff
# - self.layers = [DecoderLayer(*sizes) for _ in range(2)]
# + self.layers = nn.ModuleList(DecoderLayer(*sizes) for _ in range(2))
# ```
#
# Reported in [maruya24/pytorch_robotics_transformer#3](https://github.com/maruya24/pytorch_robotics_transformer/issues/3).
# </details>
#
# <details><summary><b>Exhibit 13.</b> "The better my model becomes, the more often its loss is infinite."</summary>
#
# The logarithm is taken of a probability. When the model is sure, some other probability is rounded to 0, and its logarithm is minus infinity.
#
# ```diff
# - log_p = scores.softmax(dim=-1).log()
# + log_p = scores.log_softmax(dim=-1)
# ```
#
# Reported in [harvardnlp/annotated-transformer#115](https://github.com/harvardnlp/annotated-transformer/issues/115).
# </details>
#
# <details><summary><b>Exhibit 14.</b> "I add positions, and I have checked their shapes. Yet seven answers of eight are wrong."</summary>
#
# A colon is missing. Every word gets one and the same row, that behind the last position. This row changes with the length of the source, and so padding moves scores.
#
# ```diff
# - x + self.positions[tokens.shape[1]]
# + x + self.positions[: tokens.shape[1]]
# ```
#
# Reported in [DiffPoseTalk/DiffPoseTalk#20](https://github.com/DiffPoseTalk/DiffPoseTalk/issues/20).
# </details>
#
# <details><summary><b>Exhibit 15.</b> "To save memory I add up the gradients of four small batches. The same data and the same seed now give another model."</summary>
#
# Each batch contributes its mean, so that a token of a small batch counts for more than a token of a large batch.
#
# ```diff
# - (loss(model, batch) / len(batches)).backward()
# + (loss(model, batch) * tokens_of(batch) / tokens_of_all).backward()
# ```
#
# Reported in [meta-pytorch/torchtune#1875](https://github.com/meta-pytorch/torchtune/issues/1875).
# </details>
#
# <details><summary><b>Exhibit 16.</b> "In training the loss is excellent. When I evaluate the same model, it is terrible. So I suspect my dropout."</summary>
#
# Attention has two paths, and the one for training forgets the causal mask. Whoever examines the model in evaluation finds nothing.
#
# ```diff
# - mask = everything if self.training else triangle
# + mask = triangle
# ```
#
# Reported in [keras-team/keras#23038](https://github.com/keras-team/keras/issues/23038).
# </details>
#
# <details><summary><b>Exhibit 17.</b> "I load published weights into my code. The output is fluent, and slightly different from the published one."</summary>
#
# Scores are divided by the root of $d_\text{model}$, instead of by the root of a key's width $d_k$. Training with this line hardly suffers. Weights that were trained with the right line do.
#
# ```diff
# - scores / math.sqrt(d_model)
# + scores / math.sqrt(q.shape[-1])
# ```
#
# Reported in [jadore801120/attention-is-all-you-need-pytorch#42](https://github.com/jadore801120/attention-is-all-you-need-pytorch/issues/42).
# </details>
#
# <details><summary><b>Exhibit 18.</b> "My layers are the library's own. My tests ask one sentence at a time and pass, and my users complain."</summary>
#
# torch's layers take the first axis for time, unless they are told otherwise. So the words of one place look at each other, across the batch.
#
# ```diff
# - layer = nn.TransformerEncoderLayer(d_model, h, d_ff)
# + layer = nn.TransformerEncoderLayer(d_model, h, d_ff, batch_first=True)
# ```
#
# Reported in [Exorust/TorchLeet#5](https://github.com/Exorust/TorchLeet/issues/5).
# </details>
#
# <details><summary><b>Exhibit 19.</b> "It trained well for two hours. Then every number was NaN."</summary>
#
# Forbidden scores are minus infinity. An empty line of a file becomes a source of padding alone. There every score is forbidden, the softmax divides 0 by 0, and one such sentence spoils the gradient of its whole batch.
#
# ```diff
# - scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
# + scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1).masked_fill(~mask, 0)
# ```
#
# Reported in [pytorch/pytorch#24816](https://github.com/pytorch/pytorch/issues/24816).
# </details>
#
# <details><summary><b>Exhibit 20.</b> "After all its training, one answer in six is right."</summary>
#
# Positions are made, and never added. Without them a source is a bag of words.
#
# ```diff
# - return self.dropout(x)
# + return self.dropout(x + self.positions[: tokens.shape[1]])
# ```
#
# Reported in [Lightning-AI/pytorch-lightning#20099](https://github.com/Lightning-AI/pytorch-lightning/issues/20099).
# </details>
#
# <details><summary><b>Exhibit 21.</b> "I ask twice, and get two answers. Of course I called eval()."</summary>
#
# Dropout is called as a function, which does not know about `eval()`. When every needle moves, let the patient sit still first: call it twice with the same input.
#
# ```diff
# - weights = torch.dropout(weights, 0.1, True)
# + weights = torch.dropout(weights, 0.1, self.training)
# ```
#
# Reported in [pytorch/pytorch#124464](https://github.com/pytorch/pytorch/issues/124464).
# </details>
#
# <details><summary><b>Exhibit 22.</b> "Everybody's first loss is about 5. Mine is about 50."</summary>
#
# An `nn.Embedding` begins with a deviation of 1. Where the same matrix makes the scores, these are $\sqrt{d_\text{model}}$ times too large, and the model begins by being sure of wrong answers.
#
# ```diff
# - nn.Embedding(V, d_model)
# + nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
# ```
#
# Reported in [pytorch/pytorch#3121](https://github.com/pytorch/pytorch/issues/3121).
# </details>
#
# <details><summary><b>Exhibit 23.</b> "I made my encoder three times as deep, and the file that I save did not grow."</summary>
#
# The stack holds one layer several times. What looks like depth is one layer that is applied again and again.
#
# ```diff
# - Stack([EncoderLayer(*sizes)] * N)
# + Stack(EncoderLayer(*sizes) for _ in range(N))
# ```
#
# Reported in [espnet/espnet#1278](https://github.com/espnet/espnet/issues/1278).
# </details>
#
# <details><summary><b>Exhibit 24.</b> "It learns, but it does not become sure of anything."</summary>
#
# A ReLU cuts off all scores below zero, and with them the gradient of the tokens that are not meant. (The report is about a network for images; a Transformer can have this line, too.)
#
# ```diff
# - return (x @ self.embedding.weight.T).relu()
# + return x @ self.embedding.weight.T
# ```
#
# Reported in [huyng/tensorflow-vgg#13](https://github.com/huyng/tensorflow-vgg/issues/13).
# </details>

# %% [markdown]
# ## First aid
#
# | symptom | examination | remedy | read |
# |---|---|---|---|
# | the loss is better than you can explain | change later tokens: do earlier scores move? | the causal mask; heads joined or cut without a transpose | [8](08_model.ipynb), [14](14_training.ipynb) |
# | the first loss is far below $\ln V$ | is the model asked for the token that it has just read? | shift the target | [14](14_training.ipynb) |
# | the loss does not move | are the scores of both signs? Can the model learn one batch by heart? | no softmax and no ReLU on the scores | [13](13_regularization.ipynb), [14](14_training.ipynb) |
# | a part never learns | which parameters get no gradient? | `ModuleList`, not a list; no `detach` | [14](14_training.ipynb) |
# | the loss stays high; answers have little to do with their questions | give each target another source | let cross-attention read the memory; turn the padding mask round | [8](08_model.ipynb), [14](14_training.ipynb) |
# | other answers in another batch | more padding; a sentence alone, and among others | the padding mask; axes of batch and time | [4](04_attention.ipynb), [8](08_model.ipynb) |
# | suddenly NaN | a source of padding alone; half precision | hide scores with the smallest number of their own type | [4](04_attention.ipynb), [11](11_hardware.ipynb) |

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
# **3. In code.** Exhibit 6 mixes the sentences of a batch, and none of the instruments that this page has written out sees it. Write one that does: the largest change of any score when a sentence is read alone instead of beside the others.

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
# **4. In code.** Four of the exhibits 7 to 24 move your instrument. Find them. In two of them sentences are mixed, as in exhibit 6. How can you tell, without a look into a fold, that the other two have something else?
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
# They are 10, 12, 18 and 21. Ask the same question twice, with the same neighbours: the scores of 12 and 21 move again. Their dropout does not stop in evaluation, and such a patient moves every instrument. So let a patient sit still before you examine it.
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
