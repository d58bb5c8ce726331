# %% [markdown]
# # 3 Model architecture

# %%
import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import nn

from transformer.attention import KeyValueCache, MultiHeadAttention, causal_mask, padding_mask
from transformer.embeddings import Embedding
from transformer.feed_forward import FeedForward
from transformer.positions import LearnedPositions, SinusoidalPositions
from transformer.stacks import Decoder, DecoderLayer, Encoder, EncoderLayer, LayerNorm

# %% [markdown]
# ## Configuration

# %%
PRESETS = {
    "tiny": dict(d_model=128, d_ff=512, N=2, h=4, P_drop=0.1),
    "small": dict(d_model=256, d_ff=1024, N=3, h=4, P_drop=0.1),
    "base": dict(),
    "big": dict(d_model=1024, d_ff=4096, h=16, P_drop=0.3),
}


# %%
@dataclass(frozen=True)
class TransformerConfig:
    """The sizes of a Transformer, with the paper's names; the defaults are its base model (Table 3)."""

    vocab_size: int
    """types in the vocabulary that both languages share (the paper: about 37,000)"""
    d_model: int = 512
    """width of every token's vector between layers"""
    d_ff: int = 2048
    """hidden units of the position-wise network"""
    N: int = 6
    """layers in the encoder, and as many in the decoder"""
    h: int = 8
    """attention heads"""
    d_k: int | None = None
    """width of a head's queries and keys (d_model / h where not given)"""
    d_v: int | None = None
    """width of a head's values (d_model / h where not given)"""
    P_drop: float = 0.1
    """dropout on each sub-layer's output and on embeddings"""
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    """positional encoding: fixed sines, or one learned vector a position"""
    norm_first: bool = False
    """pre-norm, the later variant; the paper's is post-norm"""
    tie_embeddings: bool = True
    """one matrix for source, target and output, as in the paper; otherwise three"""
    max_positions: int = 1024
    """longest sentence in tokens"""
    pad_id: int = 0
    """token id that fills up short sentences"""
    bos_id: int = 1
    """token id that every target begins with"""
    eos_id: int = 2
    """token id that every sentence ends with"""

    def __post_init__(self):
        for name in ("vocab_size", "d_model", "d_ff", "N", "h", "max_positions"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if not 0 <= self.P_drop < 1:
            raise ValueError(f"P_drop must be at least 0 and below 1, not {self.P_drop}")
        if self.positions not in ("sinusoidal", "learned"):
            raise ValueError(f"positions must be 'sinusoidal' or 'learned', not {self.positions!r}")
        if max(self.pad_id, self.bos_id, self.eos_id) >= self.vocab_size:
            raise ValueError(f"pad_id, bos_id and eos_id must lie inside the vocabulary of {self.vocab_size} types")

    @classmethod
    def preset(cls, name, **changes):
        """A named size: "tiny", "small", or the paper's "base" and "big"; changes replace single fields."""
        if name not in PRESETS:
            raise ValueError(f"unknown preset {name!r}: choose one of {', '.join(PRESETS)}")
        return cls(**{**PRESETS[name], **changes})


# %% [markdown]
# ## Layers

# %%
def encoder_layer(c):
    """One encoder layer of a config."""
    return EncoderLayer(MultiHeadAttention(c.d_model, c.h, c.d_k, c.d_v), FeedForward(c.d_model, c.d_ff),
                        c.d_model, c.P_drop, c.norm_first)


# %%
def decoder_layer(c):
    """One decoder layer of a config."""
    return DecoderLayer(MultiHeadAttention(c.d_model, c.h, c.d_k, c.d_v),
                        MultiHeadAttention(c.d_model, c.h, c.d_k, c.d_v),
                        FeedForward(c.d_model, c.d_ff), c.d_model, c.P_drop, c.norm_first)


# %% [markdown]
# ## The whole model

# %%
class Transformer(nn.Module):
    """The encoder-decoder of Figure 1.

    forward(source (B, S), target (B, T)) -> logits (B, T, V): row t scores the token after
    target[:, :t + 1]. Token ids; padding is config.pad_id. Raises ValueError for a token id outside
    the vocabulary and for a sentence longer than config.max_positions.
    """

    def __init__(self, config):
        super().__init__()
        self.config = c = config
        self.embedding = Embedding(c.vocab_size, c.d_model)
        self.target_embedding = self.embedding if c.tie_embeddings else Embedding(c.vocab_size, c.d_model)
        self.output = self.embedding if c.tie_embeddings else Embedding(c.vocab_size, c.d_model)
        self.positions = (SinusoidalPositions if c.positions == "sinusoidal" else LearnedPositions)(c.max_positions, c.d_model)
        self.dropout = nn.Dropout(c.P_drop)
        self.encoder = Encoder([encoder_layer(c) for _ in range(c.N)], LayerNorm(c.d_model) if c.norm_first else None)
        self.decoder = Decoder([decoder_layer(c) for _ in range(c.N)], LayerNorm(c.d_model) if c.norm_first else None)
        initialize(self)

    def encode(self, source):
        """Source ids (B, S) -> memory (B, S, d_model)."""
        x = self.dropout(self.positions(self.embedding(source)))
        return self.encoder(x, padding_mask(source, self.config.pad_id))

    def decode(self, target, memory, source_mask, caches=None):
        """Target ids (B, T) over memory (B, S, d_model) -> logits (B, T, V).

        source_mask: `padding_mask` of the source. With caches (from `new_caches`), target holds only
        the tokens that are new since the last call, and the logits are theirs.
        """
        start = 0 if caches is None else caches[0][0].length
        x = self.dropout(self.positions(self.target_embedding(target), start))
        n = start + target.shape[1]
        mask = causal_mask(n, target.device)[start:]  # (T, n): rows of the new tokens
        x = self.decoder(x, memory, source_mask, mask, caches)
        return self.output.logits(x)

    def forward(self, source, target):
        if len(source) != len(target):
            raise ValueError(f"source has {len(source)} sentences and target {len(target)}: they must pair up")
        return self.decode(target, self.encode(source), padding_mask(source, self.config.pad_id))

    def new_caches(self):
        """Empty caches for `decode`, one pair a decoder layer: growing for itself, static for the memory."""
        return [(KeyValueCache(), KeyValueCache(static=True)) for _ in self.decoder.layers]

    def save_pretrained(self, folder, tokenizer=None):
        """Write config.json, model.safetensors and, where a tokenizer is given, tokenizer.json."""
        save_pretrained(self, folder, tokenizer)

    @classmethod
    def from_pretrained(cls, folder):
        """The model that `save_pretrained` wrote to folder, in evaluation mode."""
        return load_pretrained(cls, folder)


# %%
def initialize(model):
    """Xavier-uniform matrices and zero biases; embeddings keep N(0, 1 / d_model). The paper names no scheme."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


# %% [markdown]
# ## Counting parameters

# %%
def count_parameters(model):
    """Learned numbers in a model; a matrix used three times counts once."""
    return sum(p.numel() for p in model.parameters())


# %% [markdown]
# ## To a folder and back

# %%
def write_file(path, write):
    """Call write(temporary path) and rename to path, so that a reader never meets half a file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


# %%
def save_weights(tensors, path, metadata=None):
    """Named tensors to a safetensors file, through a temporary name."""
    from safetensors.torch import save_file

    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_file(path, lambda temporary: save_file(tensors, temporary, metadata))


# %%
def load_weights(path):
    """Named tensors and metadata of a safetensors file; ValueError where it is cut off or another kind of file."""
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise FileNotFoundError(f"no file {path}: train a model there first, or name another folder")
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}
    except SafetensorError as error:
        raise ValueError(f"{path} is not a whole safetensors file ({error}): copy it again, "
                         "or use an earlier checkpoint of the run") from None


# %%
def load_parameters(model, tensors, where):
    """Copy named tensors into a model's parameters; ValueError where names or shapes differ."""
    own = dict(model.named_parameters())
    for name in sorted(own.keys() | tensors.keys()):
        if name not in own or name not in tensors or own[name].shape != tensors[name].shape:
            here, there = (tuple(t[name].shape) if name in t else "nothing" for t in (own, tensors))
            raise ValueError(f"{where} is of another configuration: {name} is {there} in the file and {here} in the "
                             "model; use the config.json saved beside it")
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(tensors[name])


# %%
def save_pretrained(model, folder, tokenizer=None):
    """Write a model (and a tokenizer, anything with `save(path)`) to a folder, file by file."""
    folder = Path(folder)
    config = json.dumps(dataclasses.asdict(model.config), indent=2) + "\n"
    save_weights(dict(model.named_parameters()), folder / "model.safetensors")
    if tokenizer is not None:
        write_file(folder / "tokenizer.json", tokenizer.save)
    write_file(folder / "config.json", lambda temporary: temporary.write_text(config, encoding="utf8"))


# %%
def load_config(path):
    """The TransformerConfig in a config.json; FileNotFoundError or ValueError where it is missing or damaged."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"no file {path}: name the folder of a trained model")
    try:
        return TransformerConfig(**json.loads(Path(path).read_text(encoding="utf8")))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a model's configuration ({error}): copy it again from the trained model") from None


# %%
def load_pretrained(cls, folder):
    """Build cls from a folder's config.json and fill it from its model.safetensors."""
    folder = Path(folder)
    model = cls(load_config(folder / "config.json"))
    load_parameters(model, load_weights(folder / "model.safetensors")[0], folder / "model.safetensors")
    return model.eval()
