# ---
# jupyter:
#   jupytext:
#     formats: notebooks/25_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # Published weights
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/25_imported.ipynb)
#
# Thousands of trained models can be downloaded as folders for `transformers`, a library of the company Hugging Face (with an s; this book's package is `transformer`). With the program Marian the University of Helsinki trained over a thousand translators, between many pairs of languages (Tiedemann and Thottingal, 2020); below, *Marian* means these models as `transformers` computes them. GPT-2 is a language model (Radford et al., 2019). We put such weights into this book's classes and check that they compute what `transformers` computes. At the end you will know what such a folder holds, how these models differ from the paper's, and how `transformer import` makes one of ours. Reading takes about 35 minutes, running it half a minute.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     # This book has no address yet. Upload its wheel: python -m pip wheel --no-deps .
#     from google.colab import files
#
#     wheel = next(iter(files.upload()))
#     %pip install -q {wheel}

# %% [markdown]
# **No published weights were loaded on the machine that executed this notebook; it has no network.** The folders below have the published form and random numbers. The section "From the command line" says how to do the same with a folder that you download.

# %%
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.core.files import existing, read_json
from transformer.core.protocol import About
from transformer.core.weights import (
    check_fit,
    load_parameters,
    load_weights,
    weights_in,
)
from transformer.embeddings import Projection
from transformer.fast.embeddings import Embedding
from transformer.fast.model import Parts, Positions, Transformer, TransformerConfig
from transformer.feed_forward import FeedForward
from transformer.language import (
    GPT2,
    GeluFeedForward,
    LanguageConfig,
    LanguageModel,
    biased,
)
from transformer.models.pieces import (
    GPT2Pieces,
    SentencePieces,
    gpt2_pieces,
    languages_in,
    marian_pieces,
)
from transformer.positions import frequencies

# %% tags=["active-ipynb"]
# # what only pictures, measurements and checks need: not part of the module
# import importlib.util
# import json
# import os
# import struct
# import tempfile
# import warnings
#
# from safetensors.torch import save_file
#
# from transformer import load, save, translate
# from transformer.corpora import read_corpus
# from transformer.fast.search import greedy_search
# from transformer.language import Sampler, generate
# from transformer.models.families import parameters_of, register
# from transformer.positions import sinusoids
# from transformer.views import plotting
#
# os.environ["HF_HUB_OFFLINE"] = "1"  # the library transformers looks for nothing online
# HAS_TRANSFORMERS = importlib.util.find_spec("transformers") is not None
# torch.set_num_threads(1)  # matrices as small as these gain nothing from a second core
# torch.manual_seed(0);

# %% [markdown]
# ## What is not in the paper
#
# Marian's Transformer has three parts that the paper's has not (the order of positions and the marks come later): biases in the four matrices of each attention, a bias for each type in front of the softmax, and in most models another function between
# the two layers of the position-wise networks, $x \cdot \sigma(x)$ in place of $\max(0, x)$. [Notebook 08](08_model.ipynb) builds its model from parts that are handed in, so none of that notebook's classes has to change. Attention takes
# `bias=True` already (`biased`, from [21](21_language.ipynb)); two parts are new:


# %%
class SiluFeedForward(FeedForward):
    """`FeedForward` with x sigmoid(x) in place of max(0, x).

    That is SiLU (Elfwing et al., 2018), which Marian calls swish.
    """

    def forward(self, x: Tensor) -> Tensor:
        return self.W_2(F.silu(self.W_1(x)))


class BiasedOutput(Projection):
    """The scores of all types with a bias for each, x E^T + b."""

    def __init__(self, embedding: Embedding):
        super().__init__(embedding)
        self.bias = nn.Parameter(torch.zeros(len(embedding.weight)))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


# %% [markdown]
# A model that is saved has to be built from the same parts when it is loaded. Its configuration therefore has a class of its own, and the name of its kind, `marian`, leads to a function
# that builds it. (`register` below connects the name with the class and the function. In the package `transformer/core/protocol.py` has done so already; here the name must mean what the cells of this notebook define.)
#
# `opus-mt-en-de`, the English-German translator, has the paper's sizes: six layers, $d_{model} = 512$, eight heads, $d_{ff} = 2048$. Its vocabulary has 58,101 types.


# %%
@dataclass(frozen=True)
class MarianConfig(TransformerConfig):
    """A Transformer with biases in attention and at the output, and its activation."""

    activation: Literal["silu", "relu", "gelu"] = "silu"  # of the networks


NETWORKS = {"silu": SiluFeedForward, "relu": FeedForward, "gelu": GeluFeedForward}


def marian(config: MarianConfig, parts: Parts | None = None) -> Transformer:
    """The Transformer of a config, from Marian's parts where none are given."""
    own = Parts(biased, NETWORKS[config.activation], output=BiasedOutput)
    return Transformer(config, parts or own)


# %% tags=["active-ipynb"]
# register("marian", marian, MarianConfig)
# paper, helsinki = TransformerConfig(58_101), MarianConfig(58_101)
# few, many = parameters_of(paper), parameters_of(helsinki)
# print(f"the paper's base with 58,101 types: {few / 1e6:.2f} million parameters")
# print(
#     f"the same with Marian's parts:      {many / 1e6:.2f} million, {many - few:,} more"
# )
# # a bias of each type; 6 layers with 1 attention, 6 with 2, with 4 matrices each
# assert many - few == 58_101 + 6 * 3 * 4 * 512

# %% [markdown]
# ## The same layers under other names
#
# The file `model.safetensors` is a list of tensors, each with a name and a shape. The names are those of the attributes of somebody's Python classes. So the first thing that importing needs is a table of
# renamings. Nearly every module has two tensors, a weight and a bias, and it is enough to write down the modules. (The shared matrix and the output's bias follow below. A trap in the names: `final_layer_norm` is the last norm of a *layer*.)

# %%
MARIAN_ENCODER = {
    "self_attn.q_proj": "self_attention.W_Q",
    "self_attn.k_proj": "self_attention.W_K",
    "self_attn.v_proj": "self_attention.W_V",
    "self_attn.out_proj": "self_attention.W_O",
    "self_attn_layer_norm": "residuals.0.norm",
    "fc1": "feed_forward.W_1",
    "fc2": "feed_forward.W_2",
    "final_layer_norm": "residuals.1.norm",
}
MARIAN_DECODER = {
    **MARIAN_ENCODER,
    "encoder_attn.q_proj": "cross_attention.W_Q",
    "encoder_attn.k_proj": "cross_attention.W_K",
    "encoder_attn.v_proj": "cross_attention.W_V",
    "encoder_attn.out_proj": "cross_attention.W_O",
    "encoder_attn_layer_norm": "residuals.1.norm",
    "final_layer_norm": "residuals.2.norm",
}


# %%
def renamings(
    modules: dict[str, str], theirs: str = "", ours: str = ""
) -> dict[str, list[str]]:
    """{their tensor: our tensors} of modules that have a weight and a bias.

    Norms have a gain where theirs have a weight. theirs, ours: what stands before.
    """
    table = {}
    for there, here in modules.items():
        for end in ("weight", "bias"):
            own = "gain" if "norm" in here and end == "weight" else end
            # GPT-2 has one module for several of ours: names separated by spaces
            names = [f"{ours}{name}.{own}" for name in here.split()]
            table[f"{theirs}{there}.{end}"] = names
    return table


def marian_table(N: int) -> dict[str, list[str]]:
    """{their tensor: our tensors} of N layers in each stack."""
    table = {}
    for side, modules in (("encoder", MARIAN_ENCODER), ("decoder", MARIAN_DECODER)):
        for n in range(N):
            layer = f"{side}.layers.{n}."
            table |= renamings(modules, f"model.{layer}", layer)
    return table


# %% tags=["active-ipynb"]
# layer = [(theirs, *ours) for theirs, ours in marian_table(1).items()]
# print(f"{'in the file':53}  here")
# for theirs, ours in layer:
#     if theirs.startswith("model.decoder") and "_proj" not in theirs:
#         print(f"{theirs:53}  {ours}")
# print(
#     f"and {sum('_proj' in theirs for theirs, _ in layer)} tensors of attention, and "
#     f"the encoder's of norms and network; {len(layer)} in all, with one layer each"
# )
# assert len({ours for _, ours in layer}) == len(layer)

# %% [markdown]
# ## A folder to work with
#
# Besides the weights a Marian folder holds `config.json`, one model of SentencePiece for each side, and `vocab.json`, which gives every piece its number. SentencePiece is a program that cuts sentences into pieces; in the models used here each has a probability (more below). We make such a folder. The library `tokenizers` learns the pieces from
# the bundled corpus, and the cell writes them in SentencePiece's form, a protocol buffer: a list of fields with the number 1, one for each piece, in which field 1 is the piece's text and field 2 the logarithm of its probability. (How the bytes of a field are written can be skipped.)

# %% tags=["active-ipynb"]
# def field(number, content):
#     """A field that holds bytes; its length goes out in groups of seven bits."""
#     length, n = [], len(content)
#     while n > 127:
#         length, n = [*length, n & 127 | 128], n >> 7
#     return bytes([number << 3 | 2, *length, n]) + content  # kind 2: a length, bytes
#
#
# def learned_pieces(sentences, types):
#     """[(piece, log of its probability)] of a unigram model."""
#     from tokenizers import Tokenizer, models, pre_tokenizers, trainers
#
#     cut = Tokenizer(models.Unigram())
#     cut.pre_tokenizer = pre_tokenizers.Metaspace()
#     cut.train_from_iterator(
#         sentences, trainers.UnigramTrainer(vocab_size=types, show_progress=False)
#     )
#     found = json.loads(cut.to_str())["model"]["vocab"]
#     return sorted(found)
#
#
# folder = Path(tempfile.mkdtemp(), "opus")
# folder.mkdir()
# pairs = read_corpus("bundled", "train")[:2000]
# vocabulary = {"</s>": 0, "<unk>": 1}
# for side, sentences in zip(("source", "target"), zip(*pairs)):
#     pieces = learned_pieces(sentences, 300)
#     content = b""
#     for piece, score in pieces:
#         number = bytes([2 << 3 | 5]) + struct.pack("<f", score)  # kind 5: a float32
#         content += field(1, field(1, piece.encode()) + number)
#         vocabulary.setdefault(piece, len(vocabulary))
#     (folder / f"{side}.spm").write_bytes(content)

# %% tags=["active-ipynb"]
# # what config.json says; the weights are random
# vocabulary["<pad>"] = len(vocabulary)
# (folder / "vocab.json").write_text(json.dumps(vocabulary))
# V, d, d_ff, N = len(vocabulary), 32, 64, 2
# said = {
#     "model_type": "marian",
#     "vocab_size": V,
#     "d_model": d,
#     "scale_embedding": True,
#     "activation_function": "swish",
#     "max_position_embeddings": 100,
#     "pad_token_id": V - 1,
#     "decoder_start_token_id": V - 1,
#     "eos_token_id": 0,
# }
# for side in ("encoder", "decoder"):
#     said |= {f"{side}_layers": N, f"{side}_ffn_dim": d_ff, f"{side}_attention_heads": 4}
# (folder / "config.json").write_text(json.dumps(said))
# own = dict(marian(MarianConfig(V, d, d_ff, N, 4)).named_parameters())
# shapes = {theirs: own[ours].shape for theirs, (ours,) in marian_table(N).items()}
# shapes |= {"model.shared.weight": (V, d), "final_logits_bias": (1, V)}
# tensors = {name: 0.3 * torch.randn(shape) for name, shape in shapes.items()}
# tensors["lm_head.weight"] = tensors["model.shared.weight"].clone()
# save_file(tensors, folder / "model.safetensors", {"format": "pt"})
# for path in sorted(folder.iterdir()):
#     print(f"{path.name:20} {path.stat().st_size:8,} bytes")

# %% [markdown]
# Every number is random, also biases and norms, which begin as zeros and ones in training: a bias that somebody forgot to copy would not show among zeros. The last tensor, `lm_head.weight`, is the shared matrix again, as in many published files.
#
# ## Sines and cosines in another order
#
# Section 3.5 of the paper puts the sine and the cosine of a frequency side by side. Marian puts all sines into the first half of the vector and all cosines into the second. The next cell puts our table into that order and, by `interleaved`, back. (That the library has this order is checked below, with its own states.)


# %%
def interleaved(d_model: int) -> Tensor:
    """Marian's places of our numbers: 0, 3, 1, 4, 2, 5 for d_model = 6."""
    return torch.arange(d_model).unflatten(0, (2, -1)).T.flatten()


# %% tags=["active-ipynb"]
# table = sinusoids(60, 32)
# halves = torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)
# places, positions = (
#     [n if n % 8 == 0 else "" for n in range(size)] for size in (32, 60)
# )
# panels = [
#     ("Marian: sines, then cosines", halves, places, positions),
#     ("the paper: sine and cosine by turns", table, places, positions),
# ]
# labels = ("place in the vector", "position", "value")
# plotting.heatmaps(panels, labels=labels, largest=1.0, width=3.6, height=3.2)
# assert torch.equal(halves[:, interleaved(32)], table)
# print("sorted into halves and back: the same table")

# %% [markdown]
# Positions are added to the embeddings, and each sub-layer's output to that, so all vectors between layers have Marian's order. Reordering the weights is enough. Suppose that two places are exchanged in every vector. A matrix is stored as (out, in): if the two
# columns of each matrix that reads vectors are exchanged, and the two rows of each that writes them, with their biases, all products stay what they were. The rows of the embedding matrix are vectors, so its columns are exchanged. A norm's mean and variance do not depend on the order; its gain and bias are exchanged, too. What is inside the heads
# and inside the networks stays as it is. A small check with a norm and a network:

# %% tags=["active-ipynb"]
# order = interleaved(d)
# x, W_1, W_2 = torch.randn(5, d), torch.randn(d_ff, d), torch.randn(d, d_ff)
# gain, bias = torch.randn(2, d)
# theirs = (F.layer_norm(x, (d,), gain, bias) @ W_1.T).relu() @ W_2.T
# normed = F.layer_norm(x[:, order], (d,), gain[order], bias[order])
# ours = (normed @ W_1[:, order].T).relu() @ W_2[order].T
# difference = (theirs[:, order] - ours).abs().max()
# print(
#     f"the same numbers in another order: they differ by {difference:.0e}, "
#     f"the largest is {ours.abs().max():.0f}"
# )
# assert torch.allclose(theirs[:, order], ours, atol=1e-3)

# %% [markdown]
# The next function knows by a tensor's name what reads and what writes.


# %%
def marian_change(names: list[str], tensor: Tensor, d_model: int) -> list[Tensor]:
    """Their tensor as ours: in another order, where an axis is d_model's."""
    module, _, end = names[0].rpartition(".")
    reads = module.endswith(("W_Q", "W_K", "W_V", "W_1"))  # d_model numbers each
    if reads and end == "bias":
        return [tensor]
    axis = 1 if reads else 0  # the columns of what reads, the rows of what writes
    order = interleaved(d_model).expand(tensor.shape[axis])  # an error if not d_model
    return [tensor.index_select(axis, order)]


# %% [markdown]
# ## Each tensor is used once
#
# A name that is missing must not leave a random matrix behind, and one that is left over says that the model has a part which ours lacks. Both are refused:


# %%
def renamed(
    tensors: dict[str, Tensor],
    table: dict[str, list[str]],
    change: Callable,
    where: Path,
) -> dict[str, Tensor]:
    """Tensors by our names, each of theirs used once.

    change(our names, tensor) -> ours. ValueError where one is missing, left over or of
    another shape.
    """
    if missing := table.keys() - tensors.keys():
        raise ValueError(
            f"{where} lacks the tensor {min(missing)}, which its "
            "config.json asks for: copy the folder again"
        )
    if left := tensors.keys() - table.keys():
        raise ValueError(
            f"{where} holds the tensor {min(left)}, for which there is "
            "no place here: import another model"
        )
    found = {}
    for theirs, ours in table.items():
        try:
            parts = change(ours, tensors[theirs].float())
            found |= dict(zip(ours, parts, strict=True))
        except (IndexError, RuntimeError, ValueError):
            shape = tuple(tensors[theirs].shape)
            raise ValueError(
                f"{where}: {theirs} has the shape {shape}, which its "
                "config.json does not fit: copy both again"
            ) from None
    return found


# %% [markdown]
# ## One matrix with several names
#
# The paper shares one matrix between the embeddings of both languages and the output ([06](06_embeddings.ipynb)), and so do these models. Which of its names stands in a file depends on the version that wrote it: `model.shared.weight`,
# `lm_head.weight`, or several of them. So whichever names a file has are taken, and their tensors have to be equal.
#
# Some tensors need no copy because they can be computed: the table of sines, and GPT-2's causal masks. Where a file holds them all the same, they are left out and reported, as are further copies of the matrix.

# %%
MATRICES = (
    "model.shared.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
)
COMPUTED = re.compile(
    r"model\.(en|de)coder\.embed_positions\.weight"
    r"|h\.\d+\.attn\.(bias|masked_bias)"
)


def take_matrix(
    tensors: dict[str, Tensor], names: Iterable[str], shape: tuple, where: Path
) -> tuple[Tensor, list[str]]:
    """The matrix that has several names; names of its copies and of what is computed.

    All of these are taken out of tensors. ValueError where the matrix is missing, or
    its copies differ.
    """
    copies = {name: tensors.pop(name) for name in names if name in tensors}
    E, *others = copies.values() or [torch.empty(0)]
    if tuple(E.shape) != shape:
        raise ValueError(
            f"{where} has no embeddings of the shape {shape}, which its "
            "config.json says: copy both again"
        )
    if not all(torch.equal(E, other) for other in others):
        raise ValueError(
            f"{where}: source, target and output do not share one matrix, "
            "as they must here: import another model"
        )
    computed = [name for name in tensors if COMPUTED.fullmatch(name)]
    for name in computed:
        del tensors[name]
    return E.float(), [*computed, *list(copies)[1:]]


# %% [markdown]
# ## A begin mark, and the scale
#
# **Marks.** Marian's decoder begins with the padding mark; it has no other begin mark. In this book padding, begin and end mark must be three different ids (`TransformerConfig` checks it), because code that finds padding by its id would take the begin mark for padding. So the vocabulary gets **one type more than the published one**, a begin mark whose embedding is a copy of padding's. This begin mark must not get a share of the softmax. Its bias at the output is $-10{,}000$, so far below the other logits that its softmax is exactly 0 in float32, and the probabilities of all other types stay what they were.

# %% [markdown]
# **The scale.** The paper multiplies embeddings by $\sqrt{d_{model}}$, and so do most Marian models. GPT-2 does not, but our `Embedding` always does. With $E / \sqrt{d_{model}}$ as our matrix the input is right, but the logits, which use the same matrix, become
# too small by that factor. The last norm before them has a gain $g$ and a bias $\beta$ of its own, and both can be multiplied by $\sqrt{d}$, where $d = d_{model}$. With $z$ for a vector before gain and bias: $(\sqrt{d}\, g \odot z + \sqrt{d}\, \beta)\, (E/\sqrt{d})^\top = (g \odot z + \beta)\, E^\top$ (the output's own bias is added after that). The last norm is `decoder.final_norm` in GPT-2, and the third norm of the decoder's last layer in a Marian model.

# %%
NEVER = -1e4  # the logit's bias of a type that is not to be written


def with_marks(E: Tensor, bias: Tensor, marks: Tensor) -> dict[str, Tensor]:
    """Embeddings with rows for marks of ours, which are read and never written."""
    return {
        "embedding.weight": torch.cat([E, marks]),
        "output.bias": F.pad(bias, (0, len(marks)), value=NEVER),
    }


def move_scale(found: dict[str, Tensor], norm: str) -> None:
    """Unscaled embeddings E as ours, E / sqrt(d): the last norm takes over the root."""
    root = math.sqrt(found["embedding.weight"].shape[1])
    found["embedding.weight"] = found["embedding.weight"] / root
    for name in (f"{norm}.gain", f"{norm}.bias"):
        found[name] = found[name] * root


# %% [markdown]
# ## What is refused
#
# A configuration says more than sizes. Marian can put the norms in front of the sub-layers, or one over the embeddings; some models have a vocabulary for each language. The model that our table fills has none of these (some are switches of [notebook 08](08_model.ipynb), not used here) and would silently compute something else, so each that we know of is refused; the last three rows are of GPT-2's configuration. An entry that neither the tables nor the functions below name is not looked at, and is noticed only if it changes a tensor's name or shape.

# %%
REFUSED = {  # name in config.json: what our model has, and what others have instead
    "normalize_before": (False, "norms in front of its sub-layers (pre-norm)"),
    "add_final_layer_norm": (False, "a norm at the end of each stack"),
    "normalize_embedding": (False, "a norm over its embeddings"),
    "static_position_embeddings": (True, "positions that are learned"),
    "share_encoder_decoder_embeddings": (True, "a vocabulary for each language"),
    "tie_word_embeddings": (True, "an output matrix of its own"),
    "layer_norm_epsilon": (1e-5, "another epsilon in its norms"),
    "scale_attn_weights": (True, "attention that is not scaled"),
    "scale_attn_by_inverse_layer_idx": (False, "attention scaled layer by layer"),
}
PAIRS = {
    "encoder_layers": "decoder_layers",
    "encoder_ffn_dim": "decoder_ffn_dim",
    "encoder_attention_heads": "decoder_attention_heads",
    "vocab_size": "decoder_vocab_size",
}


# %%
def check_said(said: dict) -> None:
    """ValueError for a configuration that is not imported."""
    for name, (ours, others) in REFUSED.items():
        if said.get(name, ours) != ours:
            raise ValueError(f"it has {others} ({name}: {said[name]})")
    for name, other in PAIRS.items():
        if said.get(other) not in (None, said.get(name)):
            raise ValueError(
                f"its stacks differ ({name}: {said.get(name)}, {other}: {said[other]})"
            )


def marian_config(said: dict) -> MarianConfig:
    """Our configuration for theirs: one more type, the begin mark."""
    check_said(said)
    activation = said["activation_function"].replace("swish", "silu")
    if said["decoder_start_token_id"] not in range(said["vocab_size"]):
        raise ValueError("decoder_start_token_id is no type of its vocabulary")
    frequencies(said["d_model"])  # ValueError for an odd one
    return MarianConfig(
        said["vocab_size"] + 1,
        said["d_model"],
        said["encoder_ffn_dim"],
        said["encoder_layers"],
        said["encoder_attention_heads"],
        P_drop=said.get("dropout", 0.1),
        pad_id=said["pad_token_id"],
        max_positions=said["max_position_embeddings"],
        bos_id=said["vocab_size"],
        eos_id=said["eos_token_id"],
        activation=activation,
    )


# %% tags=["active-ipynb"]
# others = (
#     {"normalize_before": True},
#     {"normalize_embedding": True},
#     {"share_encoder_decoder_embeddings": False},
#     {"decoder_layers": 1},
#     {"activation_function": "selu"},
# )
# for other in others:
#     try:
#         marian_config({**said, **other})
#         raise AssertionError(other)
#     except ValueError as error:
#         print(error)
# print("and this one is taken:", marian_config(said).activation)

# %% [markdown]
# What is left is to put the steps together: configuration, the shared matrix, the table, the marks, the scale.


# %%
def from_marian(
    c: MarianConfig, said: dict, tensors: dict[str, Tensor], where: Path
) -> tuple:
    """(weights by our names, names of ignored tensors) of a Marian folder."""
    tensors, start = dict(tensors), said["decoder_start_token_id"]
    V, order = c.vocab_size - 1, interleaved(c.d_model)
    E, ignored = take_matrix(tensors, MATRICES, (V, c.d_model), where)
    E = E[:, order]
    bias = tensors.pop("final_logits_bias", torch.zeros(1, V)).float().flatten()
    change = partial(marian_change, d_model=c.d_model)
    found = renamed(tensors, marian_table(c.N), change, where)
    found |= with_marks(E, bias, E[start : start + 1])
    if not said.get("scale_embedding", False):
        move_scale(found, f"decoder.layers.{c.N - 1}.residuals.2.norm")
    return found, ignored


# %% tags=["active-ipynb"]
# where = folder / "model.safetensors"
# found, ignored = from_marian(marian_config(said), said, tensors, where)
# own = dict(marian(marian_config(said)).named_parameters())
# assert found.keys() == own.keys()
# print(f"{len(tensors)} tensors became {len(found)}, {len(ignored)} ignored")
# wrongs = {"model.more.weight": torch.ones(3)}, {"lm_head.weight": torch.ones(V, d)}
# for wrong in wrongs:
#     try:
#         from_marian(marian_config(said), said, {**tensors, **wrong}, Path("the file"))
#         raise AssertionError(wrong)
#     except ValueError as error:
#         print(error)

# %% [markdown]
# ## Two models that cut, one vocabulary
#
# The pieces of SentencePiece's *unigram* model have probabilities, and of all ways to cut a sentence the likeliest is taken (Kudo, 2018); the byte pairs of [notebook 10](10_data.ipynb) are merged in a fixed order instead. A space is part of the piece after it and shows as ▁. The ids of Marian are not those of SentencePiece: the pieces of both models are looked up in one `vocab.json`, and a piece that is not there is `<unk>`. English goes through the one, German through the other.
#
# `transformer/models/pieces.py` reads the two `.spm` files and hands their pieces to the library `tokenizers`, so SentencePiece itself is not needed. (Models other than unigram are refused.) The tokenizer that `marian_pieces` returns has the methods of our `Tokenizer`, and `of_targets` for the other side:

# %% tags=["active-ipynb"]
# tokenizer = marian_pieces(folder)
# pair = "The old cat sees the house.", "Die alte Katze sieht das Haus."
# for cut, text in zip((tokenizer, tokenizer.of_targets), pair):
#     ids = cut.encode(text)
#     print(" ".join(cut.types[i] for i in ids), ids)
#     assert cut.decode(ids) == text
# print(
#     f"{tokenizer.vocab_size} types; an end mark that somebody types is cut into",
#     [tokenizer.types[i] for i in tokenizer.encode("</s>")],
# )
# assert tokenizer.eos_id not in tokenizer.encode("</s>")

# %% [markdown]
# `tests/test_imported.py` trains SentencePiece on the bundled corpus and finds the ids of `MarianTokenizer`, of the library `transformers`, for 300 pairs of sentences and for some strange texts (without typed marks).

# %% [markdown]
# ## GPT-2
#
# With learned positions and the parts `GPT2` of [notebook 21](21_language.ipynb) (biases in attention, GELU by tanh), the language model of that notebook has GPT-2's form. Besides the names (`wte` and `wpe` are embeddings and positions, `c_attn` and `c_fc` read, `c_proj` writes) and byte pairs, three things are new. Matrices are
# stored transposed, as $(in, out)$. Those of queries, keys and values stand side by side in one. And there is one mark only, `<|endoftext|>`, which stands between two texts. **Our vocabulary gets two types more**: padding, whose embedding is zero, and a begin mark, whose embedding is a copy of that mark's. Of its tokenizer only types and merges are read; one that cuts texts in another way is refused. GPT-2's output has no bias; ours has one for the sake of these two, 0 for all other types.


# %%
@dataclass(frozen=True)
class GPT2Config(LanguageConfig):
    """A language model of GPT-2's form."""

    positions: Positions = "learned"  # sines, learned vectors, or turned q and k


gpt2 = partial(LanguageModel, parts=replace(GPT2, output=BiasedOutput))
GPT2_BLOCK = {
    "ln_1": "residuals.0.norm",
    "attn.c_attn": "self_attention.W_Q self_attention.W_K self_attention.W_V",
    "attn.c_proj": "self_attention.W_O",
    "ln_2": "residuals.1.norm",
    "mlp.c_fc": "feed_forward.W_1",
    "mlp.c_proj": "feed_forward.W_2",
}


def gpt2_table(N: int) -> dict[str, list[str]]:
    """{their tensor: our tensors} of N layers; theirs without "transformer."."""
    table = renamings({"ln_f": "decoder.final_norm"})
    table["wpe.weight"] = ["positions.table"]
    for n in range(N):
        table |= renamings(GPT2_BLOCK, f"h.{n}.", f"decoder.layers.{n}.")
    return table


def gpt2_change(names: list[str], tensor: Tensor) -> list[Tensor]:
    """Their tensor as ours: matrices are transposed, and three in one are cut."""
    tensor = tensor.mT if names[0].endswith("weight") else tensor
    return list(tensor.chunk(len(names)))


# %%
def gpt2_config(said: dict) -> GPT2Config:
    """Our configuration for theirs: two more types, padding and a begin mark."""
    check_said(said)
    if said["activation_function"] != "gelu_new":
        raise ValueError("its activation_function is not gelu_new")
    V, d = said["vocab_size"], said["n_embd"]
    return GPT2Config(
        V + 2,
        d,
        said.get("n_inner") or 4 * d,
        said["n_layer"],
        said["n_head"],
        P_drop=said.get("resid_pdrop", 0.1),
        max_positions=said["n_positions"],
        pad_id=V,
        bos_id=V + 1,
        eos_id=said["eos_token_id"],
    )


def from_gpt2(
    c: GPT2Config, said: dict, tensors: dict[str, Tensor], where: Path
) -> tuple:
    """(weights by our names, names of ignored tensors) of a GPT-2 folder."""
    matrices, V = ("wte.weight", "lm_head.weight"), c.vocab_size - 2
    tensors = {name.removeprefix("transformer."): t for name, t in tensors.items()}
    E, ignored = take_matrix(tensors, matrices, (V, c.d_model), where)
    found = renamed(tensors, gpt2_table(c.N), gpt2_change, where)
    end = E[c.eos_id]  # stands between two texts: it is the begin mark, too
    found |= with_marks(E, torch.zeros(V), torch.stack([torch.zeros_like(end), end]))
    move_scale(found, "decoder.final_norm")
    return found, ignored


# %% tags=["active-ipynb"]
# register("gpt2", gpt2, GPT2Config)
# W = torch.randn(d, 3 * d)  # c_attn of one layer, as it is stored
# x = torch.randn(5, d)
# names = [f"W_{name}.weight" for name in "QKV"]
# three = gpt2_change(names, W)
# together = torch.cat([x @ W_own.T for W_own in three], dim=1)
# apart = (together - x @ W).abs().max()
# print(f"three products side by side, and one: they differ by {apart:.0e}")
# assert torch.allclose(together, x @ W, atol=1e-4)

# %% [markdown]
# ## A folder becomes a model
#
# Weights are read from `model.safetensors` only, a format that holds names, shapes and numbers. Older folders have a `pytorch_model.bin`, which is a *pickle*: a program that Python runs to get objects back, and that can do anything else as well.
# **This package opens none.** Where you trust a folder, `from_pretrained(FOLDER).save_pretrained(NEW)` of the library `transformers` writes the other form, best in a container or on a machine that holds nothing of value.


# %%
@dataclass(frozen=True)
class Imported:
    """A folder's model and tokenizer, and what became of the tensors of its file."""

    model: nn.Module
    tokenizer: SentencePieces | GPT2Pieces
    used: int
    ignored: list[str]


KINDS = {
    "marian": (marian_config, marian, from_marian, marian_pieces),
    "gpt2": (gpt2_config, gpt2, from_gpt2, gpt2_pieces),
}


def said_by(folder: Path) -> tuple:
    """(what config.json says, our configuration); ValueError where we have none."""
    path = existing(folder / "config.json", "name a folder of the library transformers")
    try:
        said = read_json(path)
        if said.get("model_type") not in KINDS:
            raise ValueError("the kinds that are imported are " + " and ".join(KINDS))
        return said, KINDS[said["model_type"]][0](said)
    except KeyError as error:
        reason = f"it does not say {error}"
    except (AttributeError, TypeError, ValueError) as error:
        reason = str(error)
    raise ValueError(f"{path} describes no model that can be imported: {reason}")


# %%
def import_folder(folder: Path | str) -> Imported:
    """The model in a Marian or GPT-2 folder; nothing is written.

    Raises FileNotFoundError or ValueError, in one sentence, for what cannot be ours.
    """
    folder = Path(folder)
    said, config = said_by(folder)
    path = weights_in(folder)
    _, build, weights_of, pieces_of = KINDS[said["model_type"]]
    tensors = load_weights(path)[0]
    found, ignored = weights_of(config, said, tensors, path)
    with torch.device("meta"):  # takes no memory, whatever sizes config.json names
        check_fit(dict(build(config).named_parameters()), found, path)
    tokenizer = pieces_of(folder)
    for name in ("vocab_size", "pad_id", "bos_id", "eos_id"):
        if getattr(tokenizer, name) != getattr(config, name):
            raise ValueError(
                f"{folder}: vocabulary and config.json do not fit, "
                f"{name} is another: copy both again"
            )
    model = build(config)
    load_parameters(model, found, path)
    model.about = About(*languages_in(folder))
    return Imported(model.eval(), tokenizer, len(tensors) - len(ignored), ignored)


# %% tags=["active-ipynb"]
# imported = import_folder(folder)
# print(f"{imported.used} tensors used, {len(imported.ignored)} ignored")
# model, c = imported.model, imported.model.config
# print(
#     f"{type(model).__name__}, {c.vocab_size} types, begin mark {c.bos_id}, "
#     f"padding {c.pad_id}, end mark {c.eos_id}"
# )

# %% [markdown]
# **The check.** The same folder goes into the library `transformers`, where that is installed, and both models get the same pair of sentences. The encoder's states are compared in our order of places, the logits without our begin mark. Then both write, the library without padding, which our search never writes, and the ids have to agree. (A model of random numbers may repeat itself, so the logits are the stronger check.) Both write
# greedily: with several hypotheses alive they could differ, because the library ranks them by another length penalty than Section 6.1's ([15](15_decoding.ipynb)).

# %% tags=["active-ipynb"]
# def compare_marian(model, tokenizer, folder):
#     """Largest differences of states and logits; do both write the same?"""
#     from transformers import MarianMTModel
#
#     c = model.config
#     other = MarianMTModel.from_pretrained(folder).eval()
#     source = torch.tensor([[*tokenizer.encode(pair[0]), c.eos_id]])
#     target = torch.tensor([tokenizer.of_targets.encode(pair[1])])
#     first = torch.tensor([[other.config.decoder_start_token_id]])
#     there = other(input_ids=source, decoder_input_ids=torch.cat([first, target], dim=1))
#     their_states = there.encoder_last_hidden_state[..., interleaved(c.d_model)]
#     logits = model(source, torch.cat([torch.tensor([[c.bos_id]]), target], dim=1))
#     written = other.generate(
#         source,
#         num_beams=1,
#         do_sample=False,
#         bad_words_ids=[[c.pad_id]],
#         max_new_tokens=source.shape[1] + 20,
#     )[0, 1:].tolist()
#     same = written == greedy_search(model, source, extra=20)[0]
#     return {
#         "states": their_states - model.encode(source),
#         "logits": logits[..., :-1] - there.logits,
#     }, same

# %% tags=["active-ipynb"]
# def checked(compare, *arguments):
#     """Run a comparison with `transformers`, or say why not."""
#     if not HAS_TRANSFORMERS:
#         return print("transformers is not installed: nothing to compare with")
#     with torch.no_grad(), warnings.catch_warnings():
#         warnings.simplefilter("ignore")
#         from transformers.utils import logging
#
#         logging.set_verbosity_error()
#         logging.disable_progress_bar()
#         differences, same = compare(*arguments)
#     for name, difference in differences.items():
#         print(f"{name} differ by at most {difference.abs().max():.0e}")
#         assert difference.abs().max() < 1e-5
#     print(f"both write the same: {same}")
#     assert same
#
#
# checked(compare_marian, model, imported.tokenizer, folder)

# %% [markdown]
# The same for GPT-2. The folder needs a vocabulary; 256 bytes and one mark are enough.

# %% tags=["active-ipynb"]
# from tokenizers import pre_tokenizers
#
# small = folder.parent / "gpt2"
# small.mkdir()
# letters = sorted(pre_tokenizers.ByteLevel.alphabet())
# types = {name: i for i, name in enumerate([*letters, "<|endoftext|>"])}
# (small / "vocab.json").write_text(json.dumps(types))
# (small / "merges.txt").write_text("#version: 0.2\n")
# settings = {
#     "model_type": "gpt2",
#     "vocab_size": 257,
#     "n_embd": d,
#     "n_layer": N,
#     "n_head": 4,
#     "n_positions": 64,
#     "activation_function": "gelu_new",
#     "bos_token_id": 256,
#     "eos_token_id": 256,
# }
# (small / "config.json").write_text(json.dumps(settings))
# shapes = {"wte.weight": (257, d), "wpe.weight": (64, d)}
# shapes |= {"ln_f.weight": d, "ln_f.bias": d}
# for n in range(N):
#     for name, sizes in {
#         "attn.c_attn": (d, 3 * d),
#         "attn.c_proj": (d, d),
#         "mlp.c_fc": (d, 4 * d),
#         "mlp.c_proj": (4 * d, d),
#     }.items():
#         shapes |= {f"h.{n}.{name}.weight": sizes, f"h.{n}.{name}.bias": sizes[1]}
#     for name in ("ln_1.weight", "ln_1.bias", "ln_2.weight", "ln_2.bias"):
#         shapes[f"h.{n}.{name}"] = d
# numbers = {name: 0.3 * torch.randn(shape) for name, shape in shapes.items()}
# save_file(numbers, small / "model.safetensors", {"format": "pt"})

# %% tags=["active-ipynb"]
# def compare_gpt2(model, folder):
#     """As above; a language model has no encoder's states."""
#     from transformers import GPT2LMHeadModel
#
#     other = GPT2LMHeadModel.from_pretrained(folder).eval()
#     V = other.config.vocab_size
#     read = torch.randint(0, V - 1, (2, 20))
#     logits = model(read)[..., :V] - other(read).logits
#     written = other.generate(
#         read,
#         do_sample=False,
#         max_new_tokens=20,
#         attention_mask=torch.ones_like(read),
#         pad_token_id=V - 1,
#     )[:, 20:].tolist()
#     return {"logits": logits}, generate(model, read, 20, Sampler(0.0)) == written
#
#
# speaker = import_folder(small)
# print(f"{speaker.used} tensors used, {type(speaker.model).__name__}")
# checked(compare_gpt2, speaker.model, small)

# %% [markdown]
# `tests/test_imported.py` repeats Marian's check with more sentences, padding, other activations and unscaled embeddings, and both after saving and loading.
#
# ## From the command line
#
# `transformer import FOLDER --output runs/opus` writes the three files that the other commands read (`config.json`, `model.safetensors`, `tokenizer.json`). In Python that is `import_folder`, as above, and `save`:

# %% tags=["active-ipynb"]
# save(imported.model, folder.parent / "ours", imported.tokenizer)
# model, tokenizer = load(folder.parent / "ours")
# print("random weights translate it as:", translate(model, tokenizer, [pair[0]])[0][:60])
# both = zip(model.parameters(), imported.model.parameters())
# assert all(torch.equal(read, written) for read, written in both)

# %% [markdown]
# With a published model the commands are those below. On the web site Hugging Face the page of the English-German translator is called Helsinki-NLP/opus-mt-en-de; its weights have about 300 MB (where a page has `model.safetensors`, leave out `'*.bin'`). GPT-2's smallest model, with 124 million parameters, is openai-community/gpt2.
#
# ```
# pip install huggingface_hub
# python -c "from huggingface_hub import snapshot_download as get
# get('Helsinki-NLP/opus-mt-en-de', local_dir='opus-mt-en-de',
#     allow_patterns=['*.json', '*.spm', '*.txt', '*.safetensors', '*.bin'])"
# transformer import opus-mt-en-de --output runs/opus
# transformer translate "The old cat behind the school has lost its ball." --folder runs/opus
# transformer evaluate --corpus wmt14 --folder runs/opus  # BLEU on newstest2014
# transformer attend "The old cat has lost its ball." --folder runs/opus  # a picture
# transformer export --folder runs/opus --output opus.ct2  # for CTranslate2 (20)
# ```

# %% [markdown]
# Many folders have a pickle only, and `transformer import` says so. For a folder that you trust, this writes the other form:
#
# ```
# pip install transformers
# python -c "from transformers import MarianMTModel as M; M.from_pretrained('opus-mt-en-de').save_pretrained('opus')"
# cp opus-mt-en-de/*.spm opus-mt-en-de/vocab.json opus-mt-en-de/tokenizer_config.json opus
# transformer import opus --output runs/opus
# ```
#
# GPT-2's folder is imported by the same command (here into runs/gpt2). It is no chat bot, so `transformer chat` refuses it; `generate` goes on with a text:
#
# ```python
# import torch
# from transformer import load
# from transformer.language import Sampler, generate
#
# model, tokenizer = load("runs/gpt2")
# ids = torch.tensor([tokenizer.encode("The old cat")])
# print(tokenizer.decode(generate(model, ids, 40, Sampler(top_p=0.9))[0]))
# ```

# %% [markdown]
# With published folders none of these lines could be run here; `compare_marian` and `compare_gpt2` above could be given such a folder (untried). Imported models go through `train` like others, but label smoothing would ask our marks for probability, too, whose logit is $-10{,}000$: with $\epsilon_{ls} = 0.1$ each adds $1{,}000/V$ to the loss of a token (with 58,102 types 0.02). Beam and $\alpha$ are the paper's, 4 and 0.6; we have not tuned them, and the folder's own settings are not read.

# %% [markdown] tags=["question-35"]
# ## Is this what the published models are?
#
# For these two kinds, as far as the checks above go: folders of random numbers, with two layers of width 32, give the same logits here as in `transformers`, to within $10^{-5}$; every tensor is used once, and what is ignored is named. Not shown is that each published folder has this form. One of another form is refused, if its names, its shapes or the settings that we know of differ.
#
# Of the paper's model Marian keeps the stacks, the attention with biases added, the sinusoids in another order, the shared matrix and the place of the norms. GPT-2 keeps the attention, with biases, too, drops the encoder, moves the norms, learns its positions and has GELU.

# %% [markdown]
# The check does not say whether an imported model translates well; we have not measured that. Models of recent years differ in more parts, among them rotary positions ([21](21_language.ipynb)), heads that share keys and values, and gated networks; their folders would need their own tables, and are refused.

# %% [markdown]
# ## Exercises
#
# Replace `...` by your own lines and run the cell; it says what is wrong, or "right".
#
# **1.** Bring vectors from Marian's order into the paper's: the first half are sines, the second cosines, of the same frequencies. Do it without `interleaved`.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.imported import check_by_turns
#
#
# def by_turns(x):
#     """(n, d), a half of sines and a half of cosines -> (n, d), by turns"""
#     ...
#
#
# check_by_turns(by_turns)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def by_turns(x):
#     sines, cosines = x.chunk(2, dim=1)
#     pairs = torch.stack([sines, cosines], dim=2)
#     return pairs.flatten(1)
# ```
#
# The new axis stands last, so that flattening takes the two numbers of a frequency one after the other.
# </details>
#
# **2.** Cut GPT-2's `c_attn` into what one head $i$ of $h$ needs: its matrices of queries, keys and values, each $(d_{model}, d_k)$, so that `x @ W_q` are its queries.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.imported import check_head_of
#
#
# def head_of(W, h, i):
#     """(d_model, 3 d_model), number of heads, index -> three matrices (d_model, d_k)"""
#     ...
#
#
# check_head_of(head_of)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def head_of(W, h, i):
#     d_k = W.shape[0] // h
#     three = W.chunk(3, dim=1)
#     return [matrix[:, i * d_k:(i + 1) * d_k] for matrix in three]
# ```
#
# Queries of all heads come first, then the keys of all heads, then the values.
# </details>
#
# **3.** A model ends with a norm (gain $g$, bias $b$) and a matrix $E$ without a scale. Give a gain, a bias and a matrix for a model that multiplies embeddings by $\sqrt{d_{model}}$, so that embeddings and logits stay what they are.

# %% tags=["active-ipynb"]
# from transformer.teaching.exercises.imported import check_rescaled
#
#
# def rescaled(gain, bias, E):
#     """(d_model,), (d_model,), (V, d_model) -> the same shapes"""
#     ...
#
#
# check_rescaled(rescaled)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def rescaled(gain, bias, E):
#     root = math.sqrt(E.shape[1])
#     gain = gain * root
#     return gain, bias * root, E / root
# ```
#
# The bias needs the factor as well: it is added before the matrix is multiplied.
# </details>
#
# ## Next
#
# This is the last of the notebooks on what came after the paper. [Evidence pages](evidence) have the measurements of the others; an appendix, [90](90_vocabulary.ipynb), is about torchtext.
