# ---
# jupyter:
#   jupytext:
#     formats: notebooks/23_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # Images
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/23_images.ipynb)
#
# The paper's last section plans to carry the Transformer over to other inputs than text, images among them. Later the encoder read images as it reads sentences,
# cut into squares (Dosovitskiy et al., 2021, who called it the Vision Transformer, ViT). At the end of this notebook you will have built it from the layers of [03](03_stacks.ipynb) and trained it
# and a small convolutional network on handwritten digits. You will know what each loses when the pixels are shuffled, and how a language model of [21](21_language.ipynb) draws digits. Reading takes about 30 minutes, running it about a minute.

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
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.core.checks import check_image_ids, check_images, check_patch
from transformer.core.protocol import SequenceModel
from transformer.core.settings import check_sizes
from transformer.fast.attention import MultiHeadAttention
from transformer.fast.model import POSITIONS, Parts, initialize, stack
from transformer.hardware import attention_flops
from transformer.language import GeluFeedForward, LanguageModel, Sampler, generate
from transformer.stacks import LayerNorm

# %% tags=["active-ipynb"]
# # what only pictures, measurements and checks need: not part of the module
# import statistics
# import time
#
# from transformer.core.records import read_rows
# from transformer.core.weights import count_parameters
# from transformer.corpora.digits import DIGIT_SPLITS, WRITERS, read_digits
# from transformer.experiments.images import (
#     DRAWING,
#     chosen,
#     mixed,
#     moved,
#     pixel_frequencies,
#     training_of,
# )
# from transformer.models.recording import cache
# from transformer.runs.training import train
# from transformer.views import images as figures
# from transformer.views import plotting
#
# torch.set_num_threads(1)  # matrices as small as these gain nothing from a second core
# torch.manual_seed(0);

# %% [markdown]
# ## Digits, form by form
#
# scikit-learn brings 1,797 handwritten digits along (Alpaydin and Kaynak, 1998; CC BY 4.0), so nothing has to be downloaded. Each image has 8 x 8 pixels of 17 grey levels, from 0,
# paper, to 16. The images come in 14 blocks, and each block holds the same digits in nearly the same order: it is probably a form that somebody filled in. A writer's sevens resemble each other, and a network tested on writers
# that it learned from would look better than it is. So the splits are cut between blocks. (The data's description counts 13 writers. So one writer may have filled two forms, perhaps in different splits; it does not say who.)

# %% tags=["active-ipynb"]
# splits = {split: read_digits(split) for split in DIGIT_SPLITS}
# for split, (images, _) in splits.items():
#     begin, end = DIGIT_SPLITS[split]
#     blocks = sum(begin <= place < end for place in WRITERS)  # where blocks begin
#     print(f"{split:10} {len(images):5,} images, {blocks} blocks")
# borders = [place for split in DIGIT_SPLITS.values() for place in split]
# assert set(borders) <= set(WRITERS)
# pictures, digits = splits["train"]
# every = torch.cat([shown for _, shown in splits.values()])
# assert all(every[place : place + 17].equal(every[:17]) for place in WRITERS[:-1])
# print("all blocks begin with", *every[:17].tolist(), "and none is cut by a split")
# first = [(digits == digit).nonzero()[0].item() for digit in range(10)]
# test_first = [(splits["test"][1] == digit).nonzero()[0].item() for digit in range(10)]
# shown = torch.cat([pictures[first], splits["test"][0][test_first]])
# figures.grid(shown, [*range(10)] * 2, "A form of training above, one of test below");

# %% [markdown]
# ## An image as a sentence of squares
#
# Attention reads a sequence of vectors, so an image has to become one. A sequence of its pixels would do, but the cost of attention grows with the square of the length ([09](09_complexity.ipynb)), and an image of 224 x 224 has 50,176
# pixels. ViT cuts it into squares of $p \times p$ pixels, called *patches*, and takes each patch for a word: its pixels, one after another, are a vector of $p^2$ numbers.


# %%
def patches(images: Tensor, p: int) -> Tensor:
    """Cut images (B, H, W) into squares of p x p pixels: (B, n, p * p), row by row.

    Raises ValueError where H or W does not divide by p.
    """
    B, H, W = images.shape
    check_patch(H, W, p)
    squares = images.reshape(B, H // p, p, W // p, p).transpose(2, 3)
    return squares.reshape(B, -1, p * p)


def from_patches(x: Tensor, width: int) -> Tensor:
    """What `patches` cut, put together again: (B, n, p * p) -> (B, H, width)."""
    B, n, pixels = x.shape
    p = round(pixels**0.5)
    squares = x.reshape(B, -1, width // p, p, p).transpose(2, 3)
    return squares.reshape(B, -1, width)


# %% tags=["active-ipynb"]
# cut = patches(pictures[first[:1]], 2)[0]  # (16, 4)
# names = [
#     f"{number}: {', '.join(map(str, pixels.tolist()))}"
#     for number, pixels in enumerate(cut[:4])
# ]
# figures.grid(cut.unflatten(1, (2, 2)), range(16), "A zero in 16 patches", across=4)
# print("patch and its pixels:", "; ".join(names))
# assert torch.equal(from_patches(patches(pictures, 2), 8), pictures)
# print("put together again, all images are as they were")

# %% [markdown]
# Where a language model looks up the embedding of a token, a patch is multiplied by a learned matrix. That is a convolution without overlap: a window of $p \times p$ that moves by $p$ pixels at a time.

# %% tags=["active-ipynb"]
# linear = nn.Linear(4, 6)
# convolution = nn.Conv2d(1, 6, kernel_size=2, stride=2)
# convolution.load_state_dict(
#     {"weight": linear.weight.reshape(6, 1, 2, 2), "bias": linear.bias}
# )
# with torch.no_grad():
#     ours = linear(patches(pictures / 16, 2))  # (B, 16, 6)
#     theirs = convolution(pictures[:, None] / 16).flatten(2).transpose(1, 2)
# difference = (ours - theirs).abs().max().item()
# assert difference < 1e-5
# print(f"patches times a matrix, and the convolution: they differ by {difference:.0e}")

# %% [markdown]
# ## The same loop
#
# The training loop of [14](14_training.ipynb) takes pairs of token ids, a source and a target. An image fits in: its 64 pixels are the source, and its class is a target of one token behind the begin mark. So saving, resuming, label smoothing and the schedule need no new code. The ids are first the classes 0 to 9, then padding, begin and end mark (10, 11, 12), then the 17 grey levels. They are for the loop alone; the models turn them back into grey levels from 0 to 1.


# %%
@dataclass(frozen=True)
class ImageConfig:
    """What there is to read: square images of grey levels, and their classes.

    Ids are first the classes, then padding, begin and end mark, then the grey levels.
    """

    size: int = 8  # pixels along each side
    levels: int = 17  # grey levels, 0 is paper
    classes: int = 10  # what an image may show
    d_model: int = 32  # width of what the logits are made of
    P_drop: float = 0.1  # dropout

    def __post_init__(self):
        check_sizes(self)

    @property
    def pad_id(self) -> int:
        return self.classes

    @property
    def bos_id(self) -> int:
        return self.classes + 1

    @property
    def eos_id(self) -> int:
        return self.classes + 2

    @property
    def first_level(self) -> int:
        return self.classes + 3

    @property
    def vocab_size(self) -> int:
        return self.first_level + self.levels

    @property
    def max_positions(self) -> int:
        return self.size**2


# %%
def as_ids(images: Tensor, c: ImageConfig) -> Tensor:
    """Grey levels (B, size, size) -> ids (B, size**2), row by row.

    Raises ValueError for images of another size, or with other levels.
    """
    return check_images(images, c.size, c.levels).flatten(1) + c.first_level


def as_images(ids: Tensor, c: ImageConfig) -> Tensor:
    """Ids (B, size**2) -> grey levels (B, size, size); ValueError for other ids."""
    check_image_ids(ids, c.size, c.first_level, c.vocab_size)
    return (ids - c.first_level).unflatten(1, (c.size, c.size))


def as_pairs(images: Tensor, digits: Tensor, c: ImageConfig) -> list:
    """Images and their classes (B,) as the pairs that `train` takes."""
    targets = [[c.bos_id, digit] for digit in digits.tolist()]
    return list(zip(as_ids(images, c).tolist(), targets, strict=True))


# %% tags=["active-ipynb"]
# c = ImageConfig()
# pairs = as_pairs(pictures, digits, c)
# source, target = pairs[first[7]]
# print("a seven as a pair: source", source[:16], "...  target", target)
# print(f"types: {c.classes} classes, 3 marks, {c.levels} grey levels: {c.vocab_size}")
# assert torch.equal(as_images(as_ids(pictures, c), c), pictures)
# try:
#     as_ids(pictures[:, :7], c)
# except ValueError as error:
#     print(error)

# %% [markdown]
# What reads an image has to turn it into one vector, from which the classes get their logits. All else can be shared. The loss is that of a translation whose target has one token, hence the axis that `[:, None]` adds.


# %%
class ImageModel(SequenceModel):
    """Ids of an image's pixels (B, size**2) -> logits of its class (B, classes).

    What stands below has states((B, size, size) from 0 to 1) -> (B, d_model), and
    `output`, which makes logits of them.
    """

    initial_state = step = None  # it writes nothing

    def __init__(self, config: ImageConfig):
        super().__init__()
        self.config = config
        self.output = nn.Linear(config.d_model, config.classes)

    def read(self, ids: Tensor) -> Tensor:
        c = self.config
        return self.states(as_images(ids, c) / (c.levels - 1))

    def forward(self, ids: Tensor) -> Tensor:
        return self.output(self.read(ids))

    def loss(self, batch, criterion: Callable) -> Tensor:
        """criterion(output, states, gold); the target is one token, the class."""
        return criterion(self.output, self.read(batch.source)[:, None], batch.gold)


# %% [markdown]
# ## The Vision Transformer
#
# The encoder gives a vector for each patch, and one is needed for the whole image. ViT puts a learned vector before the patches, the **class token**, as BERT does with a mark. It stands for no patch, attends to all patches in each
# layer, and what it has become at the top is classified. Positions are learned, one for each patch and one for this token. The layers are those of 03 with the parts that 21 handed in for BERT: biases in attention, GELU, and an $\epsilon$ of $10^{-12}$ in the norms. The norms come first, as in ViT's paper and in 21; **in "Attention Is All You Need" they come last.**

# %%
VIT = Parts(
    attention=partial(MultiHeadAttention, bias=True),
    feed_forward=GeluFeedForward,
    norm=partial(LayerNorm, eps=1e-12),
)


# %%
@dataclass(frozen=True)
class VisionConfig(ImageConfig):
    """The sizes of a `VisionTransformer`."""

    patch: int = 2  # pixels along the side of a square
    d_ff: int = 64  # hidden units of the position-wise network
    N: int = 3  # layers
    h: int = 4  # attention heads
    d_k: int | None = None  # width of a head's queries and keys (d_model / h)
    d_v: int | None = None  # width of a head's values (d_model / h)
    positions: Literal["learned", "sinusoidal"] = "learned"
    norm_first: bool = True  # pre-norm; the paper's is post-norm

    @property
    def squares(self) -> int:
        return (self.size // self.patch) ** 2

    def forward_flops(self, S: float, T: float) -> float:
        """What notebook 11 counts: an image, whose size is known."""
        n = 1 + self.squares
        layer = attention_flops(self, n, n) + 4 * n * self.d_model * self.d_ff
        ends = 2 * self.d_model * (self.size**2 + self.classes)
        return self.N * layer + ends


# %%
class VisionTransformer(ImageModel):
    """ViT (Dosovitskiy et al., 2021): squares as tokens, read by an encoder's layers.

    A learned token stands before them; what it has become is classified.
    """

    def __init__(self, config: VisionConfig, parts: Parts = VIT):
        super().__init__(config)
        c = config
        check_patch(c.size, c.size, c.patch)
        self.embedding = nn.Linear(c.patch**2, c.d_model)
        self.class_token = nn.Parameter(torch.randn(c.d_model) / c.d_model**0.5)
        add = parts.positions or POSITIONS[c.positions]
        self.positions = add(1 + c.squares, c.d_model)
        self.dropout = parts.dropout(c.P_drop)
        self.encoder = stack(c, parts, of_decoder=False)
        initialize(self)

    def tokens(self, x: Tensor) -> Tensor:
        """Images (B, size, size) -> class token and squares (B, 1 + n, d_model)."""
        squares = self.embedding(patches(x, self.config.patch))
        first = self.class_token.expand(len(x), 1, -1)
        return torch.cat([first, squares], dim=1)

    def states(self, x: Tensor) -> Tensor:
        x = self.dropout(self.positions(self.tokens(x)))
        return self.encoder(x)[:, 0]


# %% [markdown]
# Is it the published architecture? `tests/test_images.py` puts our weights, all of them random, biases and norms too, into the class of the library `transformers`, and finds the same logits to within $10^{-5}$.
#
# Only the table of positions can tell the model which patches are neighbours. If patches change places and the rows of the table change with them, the logits should stay. The next cell tries it with patches of one pixel and first weights, untrained:

# %% tags=["active-ipynb"]
# @torch.no_grad()
# def logits_of(model, images):
#     return model.eval()(as_ids(images, model.config))
#
#
# torch.manual_seed(0)
# model = VisionTransformer(VisionConfig(patch=1))
# order, few = torch.randperm(64), pictures[:50]
# shuffled = few.flatten(1)[:, order].reshape(few.shape)
# before, pixels_only = logits_of(model, few), logits_of(model, shuffled)
# with torch.no_grad():
#     table = model.positions.table
#     table[1:] = table[1:][order]
# both = logits_of(model, shuffled)
# print(
#     f"pixels moved, logits change by {(pixels_only - before).abs().max():.2f} "
#     f"(their standard deviation is {before.std():.2f})"
# )
# print(f"their positions, too:       by {(both - before).abs().max():.0e}")
# assert (both - before).abs().max() < 1e-5 < (pixels_only - before).abs().max()

# %% [markdown]
# ## A rival that knows what a neighbour is
#
# A convolutional network (CNN; convolutions over words are the matter of [02](02_convolution.ipynb)) has that knowledge built in. Each unit of a layer sees 3 x 3 neighbouring places of the layer below, and the same weights look at every place. Ours has three such layers; after two of them only the
# largest of each 2 x 2 outputs is kept, so that small shifts matter less. It has about as many parameters as the ViT, and
# `training_of` gives both the same training, with dropout and label smoothing: 300 updates of 64 images (or of all, where there are fewer), at a rate that rises and then falls to 0.


# %%
@dataclass(frozen=True)
class ConvolutionalConfig(ImageConfig):
    """The sizes of a `ConvolutionalClassifier`."""

    channels: int = 20  # of the first convolution; the others have twice as many

    def forward_flops(self, S: float, T: float) -> float:
        """What notebook 11 counts: an image, whose size is known."""
        c, pixels = self.channels, self.size**2
        convolutions = 9 * pixels * c + 9 * pixels * c * 2 * c + 9 * pixels * c * c
        return 2 * (
            convolutions
            + pixels // 16 * 2 * c * self.d_model
            + self.d_model * self.classes
        )


# %%
class ConvolutionalClassifier(ImageModel):
    """A small CNN: three convolutions of 3 x 3, each side halved after two of them."""

    def __init__(self, config: ConvolutionalConfig):
        super().__init__(config)
        c = config.channels
        self.first = nn.Conv2d(1, c, 3, padding=1)
        self.second = nn.Conv2d(c, 2 * c, 3, padding=1)
        self.third = nn.Conv2d(2 * c, 2 * c, 3, padding=1)
        self.joined = nn.Linear(2 * c * (config.size // 4) ** 2, config.d_model)
        self.dropout = nn.Dropout(config.P_drop)

    def states(self, x: Tensor) -> Tensor:
        x = self.first(x[:, None]).relu()  # (B, c, size, size)
        x = F.max_pool2d(self.second(x).relu(), 2)  # (B, 2 c, size / 2, size / 2)
        x = F.max_pool2d(self.third(x).relu(), 2)
        return self.dropout(self.joined(x.flatten(1)).relu())


# %%
@torch.no_grad()
def accuracy(model: ImageModel, images: Tensor, digits: Tensor) -> float:
    """The share of images (n, size, size) whose likeliest class is the right one."""
    logits = model.eval()(as_ids(images, model.config))
    return (logits.argmax(dim=1) == digits).double().mean().item()


# %% tags=["active-ipynb"]
# models = {}
# for name, kind, config in (
#     ("ViT", VisionTransformer, VisionConfig()),
#     ("CNN", ConvolutionalClassifier, ConvolutionalConfig()),
# ):
#     torch.manual_seed(1)
#     models[name] = kind(config)
#     began = time.time()
#     training = training_of(config, peak=0.003, seed=1)
#     train(models[name], as_pairs(pictures, digits, config), training)
#     flops = config.forward_flops(64, 1) / 1e6
#     print(
#         f"{name}: {count_parameters(models[name]):,} parameters, {flops:.1f} million "
#         f"FLOPs an image, {training.updates} updates in {time.time() - began:.0f} s"
#     )
#     for split, (images, gold) in splits.items():
#         print(f"   {split:10} {accuracy(models[name], images, gold):6.1%} right")
# assert accuracy(models["ViT"], *splits["test"]) > 0.85

# %% [markdown]
# Both know nearly all digits of the forms that they learned from, and lose some of the others, the ViT more. Here are twenty that the ViT gets wrong, drawn at random, and how many of each digit it gets wrong:

# %% tags=["active-ipynb"]
# images, gold = splits["test"]
# said = logits_of(models["ViT"], images).argmax(dim=1)
# wrong = (said != gold).nonzero()[:, 0]
# order = torch.randperm(len(wrong), generator=torch.Generator().manual_seed(1))
# wrong = wrong[order[:20]]
# titles = [f"{gold[i]} as {said[i]}" for i in wrong]
# figures.grid(images[wrong], titles, "Read by the ViT: the right digit, and as what")
# of_digits = enumerate(gold[said != gold].bincount())
# print(
#     f"{(said != gold).sum()} mistakes, by the right digit:",
#     ", ".join(f"{n} of {digit}" for digit, n in of_digits),
# )

# %% [markdown] tags=["question-29"]
# ## Is an image worth 16x16 words?
#
# The title of ViT's paper says that it is. A word is a patch of 16 x 16 pixels, and no convolution slides over the image. Its finding has two sides. Trained on a million images (ImageNet), without strong regularization, its models stay below convolutional networks of their size; trained on 300 million they are ahead. The authors' reading: without neighbours built in, more has to be learned from the data. Touvron et al. (2021) later reached the convolutional networks with a million images, by changing each image at random whenever it is shown, and by learning from a convolutional network's answers.
#
# Images that are moved a little are the simplest such change. In a second training set each digit also comes shifted by one pixel in all eight directions:


# %%
def shifted(images: Tensor, down: int, right: int) -> Tensor:
    """Images (B, H, W) moved by so many pixels, up and left if negative; 0 moves in."""
    H, W = images.shape[1:]
    padded = F.pad(images, (max(right, 0), max(-right, 0), max(down, 0), max(-down, 0)))
    top, left = max(-down, 0), max(-right, 0)
    return padded[:, top : top + H, left : left + W]


# %% tags=["active-ipynb"]
# nine, _ = moved(pictures[first[4:5]], digits[first[4:5]])
# figures.grid(nine, [""] * 9, "One four, and eight copies moved by a pixel", across=9)
# assert all((images > 0).any(dim=2).all() for images, _ in splits.values())
# print("every digit fills all eight rows")

# %% [markdown]
# `python -m transformer.experiments.images` trained each family on 32, 128, 512 and all 1,029 images with five seeds. For each family and size, the best of three learning rates (of logistic regression, three strengths of its penalty on large weights, of which the weakest always won) was chosen on the validation images with the first seed. The networks stand beside logistic regression: one matrix from 64 pixels to 10 logits. Two families were added later, for a reason given below: they learn from the shifts *up and down* and from those *to the sides* alone. What was expected of the first four was [written down first](../data/runs/images.md): the CNN ahead at every size; shifts help the ViT, and not past the CNN; logistic regression ahead of the ViT with 32 images, and behind both networks with all; the ViT at least at 90% with all.

# %% tags=["active-ipynb"]
# recorded = read_rows("images")
# best = chosen(recorded, seed=1)
# sizes = list(best["CNN"])
# curves = [row for row in recorded if row["what"] == "curve"]
#
#
# def scores_of(*place):
#     return [
#         100 * row["test"]
#         for row in curves
#         if (row["family"], row["images"], row["rate"]) == place
#     ]
#
#
# tested = {
#     family: [scores_of(family, n, rate) for n, rate in settings.items()]
#     for family, settings in best.items()
# }
# found = {
#     family: (
#         [statistics.mean(own) for own in several],
#         [statistics.stdev(own) for own in several],
#     )
#     for family, several in tested.items()
# }
# figures.accuracies(sizes, found, "The CNN needs the fewest images")
# print(f"{'images':20}", *(f"{n:>11,}" for n in sizes), "  % right on test")
# for family, (means, deviations) in found.items():
#     print(f"{family:20}", *(f"{m:5.1f} ± {d:3.1f}" for m, d in zip(means, deviations)))
# print("seeds:", len(tested["CNN"][0]))

# %% [markdown]
# The bars, and ± above, are the standard deviation over seeds. These differ in the images drawn, the first weights and the batches. (With all 1,029 images logistic regression has none of these.) Which differences are more than that noise? Two families are subtracted seed by seed, and a difference counts if its mean is larger than two standard errors (one stands after ±). With five seeds chance alone goes so far once in nine comparisons, so a single star is weak evidence.

# %% tags=["active-ipynb"]
# def difference(ours, theirs):
#     """Mean difference by seed, and its standard error."""
#     by_seed = [a - b for a, b in zip(ours, theirs)]
#     return statistics.mean(by_seed), statistics.stdev(by_seed) / len(by_seed) ** 0.5
#
#
# print(f"{'points of':40}", *(f"{n:>11,} " for n in sizes), "images")
# for family, other in (
#     ("ViT", "CNN"),
#     ("ViT, shifted", "CNN"),
#     ("logistic", "CNN"),
#     ("ViT, shifted", "ViT"),
#     ("logistic", "ViT"),
#     ("ViT, up and down", "ViT"),
#     ("ViT, to the sides", "ViT"),
#     ("ViT, to the sides", "ViT, up and down"),
#     ("ViT, shifted", "ViT, up and down"),
# ):
#     name = "logistic regression" if family == "logistic" else family
#     cells = [difference(*both) for both in zip(tested[name], tested[other])]
#     print(
#         f"{family} minus {other}".ljust(40),
#         *(
#             f"{mean:+5.1f} ± {error:3.1f}{'*' if abs(mean) > 2 * error else ' '}"
#             for mean, error in cells
#         ),
#     )
# print("* more than two standard errors")
# assert found["ViT"][0][-1] >= 90
# print("with all images, the mean of the ViT is at least the 90% that were expected")

# %% [markdown]
# The CNN is ahead of the ViT at every size, most where there are few images. Even the single matrix of logistic regression beats the ViT with 32 and 128 images, and with all 1,029, where both networks were expected to be ahead of it, the ViT is not. The curves of ViT and CNN do not cross; our largest set has a thousand images and our models 27,000 parameters. The published crossing lies between a million and 300 million images, with models of 86 million parameters and more. So: yes, with enough images, or a training that replaces them, as that of Touvron et al. Ours are on the side where the CNN leads. More updates were not tried, a ViT of twice the size once (96.5% on validation; ours 93.8% to 96.1%, by seed).

# %% [markdown]
# Images shifted in all directions, against what was expected, did not help: from 512 images on the ViT is worse with them. But every digit here fills all eight rows, so shifts up and down cut a row off and leave a blank one, as no test image has. We saw that afterwards, and tried the two added families, which have equally many copies. Shifts *to the sides* gain 6.8 and 5.4 points with 32 and 128 images, and nothing with more; shifts *up and down* cost 2.4 with all. The two were expected to differ from 512 images on: with all they do, barely, with 512 they do not.

# %% [markdown]
# So the direction is a part of it, and not all: from 512 images on, all eight directions cost more than up and down alone (last row; with 32 less). All images and their eight shifts are 9,261, of which 300 updates show each about twice, in place of 19 times; at three of the four sizes the largest rate tried was the best, and from 512 images on for the added families. More updates, larger rates and a CNN on shifts were not tried. The test images are from four forms.

# %% [markdown]
# ## Shuffled pixels
#
# Is it the neighbours that the CNN gains from? Take one permutation of the 64 pixels and apply it to every image, in training and in test. You could hardly read these digits, but no information is lost. A ViT whose patches are single pixels should do as well as before: the rows of its table of positions are random at the start, and as random in another order. What the CNN's windows of 3 x 3 see, however, are no longer neighbours.

# %% tags=["active-ipynb"]
# figures.grid(
#     torch.cat([pictures[first], mixed(pictures[first])]),
#     [*range(10)] * 2,
#     "Digits, and the same with one permutation of all pixels",
# )
# runs = [row for row in recorded if row["what"] == "shuffle"]
# for family in ("ViT", "CNN"):
#     plain, shuffled = (
#         [
#             100 * row["test"]
#             for row in runs
#             if row["family"] == family and row["mixed"] == how
#         ]
#         for how in (False, True)
#     )
#     mean, error = difference(shuffled, plain)
#     label = "ViT, 1 x 1" if family == "ViT" else family
#     print(
#         f"{label:12} {len(plain)} seeds: {statistics.mean(plain):.1f}% as they are, "
#         f"{statistics.mean(shuffled):.1f}% shuffled: {mean:+.1f} ± {error:.1f}"
#     )
#     if len(plain) >= 5:
#         assert (abs(mean) > 2 * error) == (family == "CNN")

# %% [markdown]
# The shuffle costs the CNN several points, and the ViT with patches of single pixels nothing beyond the noise of its runs, in which an effect of a point could hide. So a part of the CNN's lead seems to come from neighbours: this is one permutation, and no rate was tuned for shuffled pixels. The ViT here has single pixels, and the rate that was found for patches of 2 x 2. It reads fewer digits than the ViT above, and beside that one the shuffled CNN is about a point ahead.

# %% [markdown]
# ## What it sees
#
# The class token's attention says from which patches it takes, and how much. The rows of the picture are images, its columns the four heads of the first layer of the ViT trained above. The first numbers compare ink, a patch's mean grey level: its average weighted by attention, divided by its plain average; 1 is no preference. What the class token gives to itself is left out there, and printed by the side. "To one patch" is the largest weight of any patch, averaged over the test images; evenly spread it would be 6%:

# %% tags=["active-ipynb"]
# images = splits["test"][0]
# some = images[test_first[:4]]
# with cache(models["ViT"], "encoder.0.self_attention.weights") as seen:
#     logits_of(models["ViT"], some)
# weights = seen["encoder.0.self_attention.weights"]  # (4, h, 17, 17)
# of_class = weights[:, :, 0, 1:].unflatten(-1, (4, 4))
# figures.looks(some, of_class, "Where the class token looks, first layer")
# with cache(models["ViT"], "encoder.*.weights") as seen:
#     logits_of(models["ViT"], images)
# ink = patches(images, 2).float().mean(dim=-1)  # (B, 16)
# for name, weights in seen.items():
#     to_ink = (weights[:, :, 0, 1:] * ink[:, None]).sum(dim=-1)
#     share = to_ink / weights[:, :, 0, 1:].sum(dim=-1) / ink.mean(dim=1, keepdim=True)
#     heads = ", ".join(f"{head:.2f}" for head in share.mean(dim=0).tolist())
#     itself = weights[:, :, 0, 0].mean(dim=0)
#     one = weights[:, :, 0, 1:].amax(dim=-1).mean(dim=0)
#     to_itself = ", ".join(f"{head:.0%}" for head in itself)
#     to_one = ", ".join(f"{head:.0%}" for head in one)
#     print(
#         f"layer {int(name.split('.')[1]) + 1}: ink where it looks {heads}; "
#         f"to itself {to_itself}; to one patch {to_one}"
#     )

# %% [markdown]
# In these four images most heads give much of their weight to one or two patches, some to the same patch in several images. It is not a search for ink: on average no head looks at patches with much more of it than the image has, and some prefer those with little. (From the second layer on, what stands at a patch has taken in other patches, so that the ink under it says less.) Weights alone do not say what a head is for; notebook [19](19_visualization.ipynb) tests such guesses by silencing heads.

# %% [markdown]
# Has the model found out which positions are neighbours? ViT's paper shows that in a large model the learned vectors of near positions point the same way. The measure is the cosine of the angle between two of them. Each panel below holds 16 maps of 4 x 4, one of each position, at that position's place; a map shows the cosine with all positions, and its own is the red 1. If neighbours were alike, red would surround it.


# %%
def position_similarity(table: Tensor) -> Tensor:
    """Cosine of the angle between each two rows of a table (n, d_model): (n, n)."""
    rows = F.normalize(table, dim=-1)
    return rows @ rows.T


# %% tags=["active-ipynb"]
# torch.manual_seed(1)  # as above, so these are the first weights of that ViT
# new = VisionTransformer(VisionConfig()).positions.table.detach()  # where it began
# learned = models["ViT"].positions.table.detach()
# tables = {
#     "before training": new,
#     "after 300 updates": learned,
#     "what training added": learned - new,
# }
# places = torch.cartesian_prod(torch.arange(4), torch.arange(4)).float()
# gaps = torch.cdist(places, places)
# panels = []
# for name, table in tables.items():
#     similar = position_similarity(table[1:])  # without the class token's
#     near, far = similar[gaps == 1].mean(), similar[gaps > 2].mean()
#     print(f"{name:19} neighbours {near:+.2f}, more than two apart {far:+.2f}")
#     # the 16 maps of 4 x 4, each at the place of its position
#     panels.append((name, from_patches(similar[None], 16)[0], None, None))
# labels = "16 maps, one of each position", "", "cosine"
# for ax in plotting.heatmaps(panels, width=3.6, height=3.2, largest=1.0, labels=labels):
#     figures.separate(ax, 4, 16)

# %% [markdown]
# In this run there is nothing of the kind. Near positions are no more alike than distant ones, neither in the table nor in what training added to it. The published picture is of models that have read millions of images.

# %% [markdown] tags=["question-33"]
# ## How does a transformer draw?
#
# The way it writes: one token after another, and a grey level is a token like any other. A language model of notebook 21 reads the class as its prompt and then goes on with 64 pixels, row by row from the top left, each drawn from the probabilities that the model gives it. Parmar et al. (2018) drew
# with the Transformer in this way, and Chen et al. (2020) with a model like GPT-2. `DRAWING` is such a model with $d_{model} = 64$ and three layers. Its positions count pixels along the rows, so it has to learn which one stands below which. `as_drawings` makes the pairs, and `draw` asks for an image:


# %%
def as_drawings(images: Tensor, digits: Tensor, c: ImageConfig) -> list:
    """Pairs from which a `LanguageModel` learns to draw: the class, then the pixels."""
    ids = as_ids(images, c).tolist()
    return [
        ([digit], [c.bos_id, *row, c.eos_id])
        for digit, row in zip(digits.tolist(), ids, strict=True)
    ]


# %%
def draw(
    model: LanguageModel, digits: Tensor, c: ImageConfig, choose: Callable = Sampler()
) -> Tensor:
    """Draw an image of each class (B,), pixel by pixel: grey levels (B, size, size).

    Only grey levels are written, size**2 of them.
    """

    def choose_level(logits: Tensor) -> Tensor:
        return c.first_level + choose(logits[:, c.first_level :])

    prompts = torch.stack([digits, torch.full_like(digits, c.bos_id)], dim=1)
    rows = generate(model, prompts, c.size**2, choose_level)
    return as_images(torch.tensor(rows), c)


# %% tags=["active-ipynb"]
# torch.manual_seed(1)
# artist = LanguageModel(DRAWING)
# lessons = as_drawings(pictures, digits, c)
# training = training_of(
#     DRAWING,
#     peak=0.003,
#     seed=1,
#     updates=220,
#     batch_tokens=32 * (1 + 64 + 1),
#     epsilon_ls=0.0,
# )  # its probabilities will be drawn from
# began = time.time()
# log = train(artist, lessons, training)
# print(f"{count_parameters(artist):,} parameters, {time.time() - began:.0f} seconds")
# asked = torch.arange(10).repeat(3)
# drawn = draw(artist, asked, c)
# figures.grid(drawn, asked.tolist(), "Asked for, and drawn after 220 updates");

# %% [markdown]
# Who judges? One test: does a CNN, trained as above, that has never seen a drawing, read it as what was asked for? Beside the drawings stand the test images, which people drew, and images whose pixels are drawn independently, each grey level as often as the digit's training images have it at that pixel. (A small number, chosen on validation, is added to each count, so that no level gets probability 0.)
#
# Copying would be an easy way to be read. So we also measure the distance from the nearest training image, the root of the mean square of the pixels' differences, in grey levels. For comparison stands the distance of test images, from other blocks of the data. "Nearest 5%" is the distance below which one in twenty lies. Bits a pixel are what bits a character are in 21.

# %% tags=["active-ipynb"]
# judge = models["CNN"]
# print(
#     "after 220 updates, by the CNN of this page:",
#     f"{accuracy(judge, drawn, asked):.0%} of {len(drawn)} read as asked",
# )
# rows = [row for row in recorded if row["what"] == "drawing"]
# print("\nafter 1,000 updates, 500 drawings: read as asked by seed, means of the rest")
# for name in ("test images", "language model", "each pixel by itself"):
#     own = [row for row in rows if row["row"] == name]
#     read = ", ".join(f"{row['read']:.1%}" for row in own)
#     median, close, copies = (
#         statistics.mean(row[column] for row in own)
#         for column in ("distance", "distance.near", "copies")
#     )
#     bits = [row["bits"] for row in own if "bits" in row]
#     shown = f"; {statistics.mean(bits):.2f} bits a pixel" if bits else ""
#     print(
#         f"{name:21} {read}; distance: median {median:.2f}, "
#         f"nearest 5% {close:.2f}, equal to one {copies:.0%}{shown}"
#     )
# some_drawn = torch.tensor(next(row["drawn"] for row in rows if "drawn" in row))
# added = next(row["added"] for row in rows if "added" in row)
# p = pixel_frequencies(pictures, digits, added)  # (10, 8, 8, 17)
# alone = p.flatten(0, 2).multinomial(1).reshape(10, 8, 8)
# shown = torch.cat([some_drawn.unflatten(1, (8, 8)), alone])
# figures.grid(
#     shown, [*range(10)] * 3, "Drawn after 1,000 updates; last row: each pixel by itself"
# );

# %% [markdown]
# After 220 updates most drawings are no digits yet. (At first the language model learned from the shifted images, too, and 37% of its drawings after 1,000 updates were read as asked. [images.md](../data/runs/images.md) says what was changed after results were known, the rival's added number, too.)

# %% [markdown]
# About nine of ten drawings of the longer training are read as asked, and none equals a training image. Being read proves little by itself: of the images in which each pixel is drawn by itself, even more are read, where half had been expected. The other two measures tell them apart. On test images the
# language model needs fewer bits a pixel, so it has learned how pixels belong together, and its drawings lie nearer to digits that people drew, if not as near as test images do.
#
# Pixel by pixel is slow where images are large, 64 steps here and 50,176 for an image of 224 x 224. Other models begin with noise and refine all pixels at once (Ho et al., 2020).

# %% [markdown]
# ## Exercises
#
# Write each function in place of `...` and run the cell. The cell says "not tried yet", then what is wrong, then "right".
#
# **1.** A colour image has three numbers a pixel, (3, H, W). Cut it into patches whose vector holds all red numbers of the patch first, then green, then blue, as the weights of a convolution expect.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.images import check_colour_patches
#
#
# def colour_patches(image, p):
#     """(C, H, W) -> (n, C * p * p), patches row by row"""
#     ...
#
#
# check_colour_patches(colour_patches)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def colour_patches(image, p):
#     C, H, W = image.shape
#     squares = image.reshape(C, H // p, p, W // p, p)
#     squares = squares.permute(1, 3, 0, 2, 4)
#     return squares.reshape(-1, C * p * p)
# ```
#
# The axes of the place come first, then the colour, then the pixel within the patch.
# </details>
#
# **2.** A model may be helped by seeing an image several times, moved a little. Average the *probabilities* that `classify` (images (B, H, W) to logits (B, V)) gives for nine copies of an image, moved by -1, 0 or 1 pixels down and, independently, by -1, 0 or 1 to the right; 0 moves in.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.images import check_nine_looks
#
#
# def nine_looks(classify, image):
#     """classify, image (H, W) -> probabilities (V,)"""
#     ...
#
#
# check_nine_looks(nine_looks)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def nine_looks(classify, image):
#     H, W = image.shape
#     padded = F.pad(image, (1, 1, 1, 1))
#     looks = [padded[i:i + H, j:j + W] for i in range(3) for j in range(3)]
#     p = classify(torch.stack(looks)).softmax(dim=-1)
#     return p.mean(dim=0)
# ```
#
# The mean of logits could let one very sure look outvote eight others.
# </details>
#
# ## Next
#
# A patch of 16 x 16 pixels shortens the sequence, but attention still compares every patch with every other. The next notebook, on state space models, is about layers that do not.
