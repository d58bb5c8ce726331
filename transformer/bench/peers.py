"""The systems that are compared: this package twice, torch.nn.Transformer twice, Marian,
CTranslate2 twice.

Each holds a model and can do up to two things: `update` it on a batch, and `search`, greedily or
with a beam (torch's has no beam search, CTranslate2 does not train). What the peers share is what
their users write: logits of the whole batch, torch's cross-entropy with smoothing, torch's Adam as
it comes.
"""

import importlib.util
import os
import tempfile
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from transformer.attention import causal_mask
from transformer.fast import FAST
from transformer.fast.loss import ChunkedLoss, SmoothedLoss
from transformer.fast.model import Parts, Transformer, TransformerConfig
from transformer.fast.packed import compile_stacks
from transformer.fast.positions import SinusoidalPositions
from transformer.fast.search import beam_search, greedy_search
from transformer.fast.training import fused_adam
from transformer.hardware import autocast, loss_scaler
from transformer.models.export import export_ctranslate2
from transformer.optimizer import adam, set_learning_rate
from transformer.runs.update import Objective, update_weights
from transformer.speed import SEED, real_tokens

EPSILON = 0.1  # of label smoothing
RATE = 1e-4
EXTRA = 20  # tokens written beyond the source's length


class System(nn.Module):
    """What the peers share: a loss from logits, and an update as their users write it."""

    rate = RATE

    def prepare(self, precision: str = "fp32"):
        """Before the first update."""
        self.precision = precision
        self.optimizer = torch.optim.Adam(
            self.parameters(), lr=RATE, betas=(0.9, 0.98), eps=1e-9
        )
        return self.train()

    def loss(self, batch):
        """Label-smoothed cross-entropy, summed over real target tokens, in nats."""
        logits = self.logits(batch).flatten(0, 1).float()
        return F.cross_entropy(
            logits,
            batch.gold.flatten(),
            label_smoothing=EPSILON,
            ignore_index=0,
            reduction="sum",
        )

    def update(self, batch) -> float:
        """One update; returns the loss per real target token."""
        self.optimizer.zero_grad()
        with autocast(batch.source.device, self.precision):
            loss = self.loss(batch) / real_tokens(batch)
        loss.backward()
        set_learning_rate(self.optimizer, self.rate)
        self.optimizer.step()
        return loss.item()


LEVERS = ("similar lengths", "loss in chunks", "attention", "dropout", "fused Adam")


class Ours(System):
    """This package with some of `LEVERS` pulled: none, as Section 3 of the paper reads, or all, as
    `transformer train` and `transformer translate` run it. (Lengths are the batches' affair.)
    """

    seed = SEED  # of dropout
    fixed: bool | None = None  # caches of one shape in searches; None: as `translate`

    def __init__(self, c: TransformerConfig, pulled=()):
        super().__init__()
        self.pulled = pulled
        fast = {
            part: getattr(FAST, part)
            for part in ("attention", "dropout")
            if part in pulled
        }
        self.model = Transformer(c, Parts(**fast))

    def prepare(self, precision="fp32"):
        loss = ChunkedLoss if "loss in chunks" in self.pulled else SmoothedLoss
        self.objective = Objective(self.model, loss(EPSILON), precision)
        self.optimizer = (fused_adam if "fused Adam" in self.pulled else adam)(
            self.model
        )
        self.scaler = loss_scaler(next(self.parameters()).device, precision)
        return self.train()

    def update(self, batch):
        return update_weights(
            self.objective,
            self.optimizer,
            self.scaler,
            [(self.seed, batch)],
            real_tokens(batch),
            self.rate,
        )[0].item()

    def logits(self, batch):
        return self.model(batch.source, batch.decoder_input)

    def search(self, source, beam=1):
        if beam == 1:
            return greedy_search(self.model, source, EXTRA, fixed=self.fixed)
        found = beam_search(self.model, source, beam, extra=EXTRA, fixed=self.fixed)
        return [best[0].tokens for best in found]


class Torch(System):
    """torch.nn.Transformer with tied embeddings times sqrt(d_model) and sinusoids around it, which
    it has not.

    It has no cache either: to write one more token, it computes all the earlier ones again. Its
    attention has biases; they cost next to nothing.
    """

    def __init__(self, c: TransformerConfig):
        super().__init__()
        self.c = c
        self.dropout = nn.Dropout(c.P_drop)
        self.embedding = nn.Embedding(c.vocab_size, c.d_model)
        self.positions = SinusoidalPositions(c.max_positions, c.d_model)
        nn.init.normal_(self.embedding.weight, std=c.d_model**-0.5)
        self.model = nn.Transformer(
            c.d_model, c.h, c.N, c.N, c.d_ff, c.P_drop, batch_first=True
        )
        papers_dropout(self.model)

    def embed(self, tokens):
        return self.dropout(
            self.positions(self.embedding(tokens) * self.c.d_model**0.5)
        )

    def encode(self, source):
        return self.model.encoder(
            self.embed(source), src_key_padding_mask=source == self.c.pad_id
        )

    def states(self, target, memory, source):
        unseen = ~causal_mask(target.shape[1], target.device)
        return self.model.decoder(
            self.embed(target),
            memory,
            unseen,
            tgt_is_causal=True,
            memory_key_padding_mask=source == self.c.pad_id,
        )

    def logits(self, batch):
        states = self.states(
            batch.decoder_input, self.encode(batch.source), batch.source
        )
        return F.linear(states, self.embedding.weight)

    @torch.no_grad()
    def search(self, source, beam=1):
        """Greedy only: all positions anew at each step; the memory is computed once."""
        self.eval()
        memory = self.encode(source)
        output = torch.full((len(source), 1), self.c.bos_id, device=source.device)
        for _ in range(source.shape[1] + EXTRA):
            logits = F.linear(
                self.states(output, memory, source)[:, -1], self.embedding.weight
            )
            logits[:, self.c.pad_id] = -torch.inf
            output = torch.cat([output, logits.argmax(dim=-1, keepdim=True)], dim=1)
        return output[:, 1:].tolist()


def papers_dropout(model: nn.Transformer) -> None:
    """Leave it the paper's dropout only, on the output of each sub-layer, and no norm after a
    stack.
    """
    model.encoder.norm = model.decoder.norm = None
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        layer.dropout.p = layer.self_attn.dropout = 0.0
        if hasattr(layer, "multihead_attn"):
            layer.multihead_attn.dropout = 0.0


class Tuned(Torch):
    """The same with what a user of torch has for one argument: fused Adam (and compiled, where that
    is asked for).
    """

    def prepare(self, precision="fp32"):
        super().prepare(precision)
        self.optimizer = fused_adam(self)
        return self


def marian_config(c: TransformerConfig):
    """The sizes of a `TransformerConfig` as Marian's."""
    from transformers import MarianConfig

    both = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (
            ("layers", c.N),
            ("ffn_dim", c.d_ff),
            ("attention_heads", c.h),
        )
    }
    return MarianConfig(
        vocab_size=c.vocab_size,
        d_model=c.d_model,
        **both,
        dropout=c.P_drop,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=c.pad_id,
        bos_token_id=c.bos_id,
        eos_token_id=c.eos_id,
        decoder_start_token_id=c.bos_id,
        forced_eos_token_id=None,
        max_position_embeddings=c.max_positions,
    )


class Marian(System):
    """Hugging Face's MarianMTModel, the model behind a thousand translators; it decodes by its
    `generate`.
    """

    def __init__(self, c: TransformerConfig):
        super().__init__()
        os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
        from transformers import MarianMTModel

        self.c = c
        self.model = MarianMTModel(marian_config(c))

    def logits(self, batch):
        return self.model(
            input_ids=batch.source,
            attention_mask=(batch.source != self.c.pad_id).long(),
            decoder_input_ids=batch.decoder_input,
            use_cache=False,
        ).logits

    @torch.no_grad()
    def search(self, source, beam=1):
        self.eval()
        self.model.final_logits_bias[:, self.c.pad_id] = -1e9  # padding is no token
        output = self.model.generate(
            input_ids=source,
            attention_mask=(source != self.c.pad_id).long(),
            num_beams=beam,
            do_sample=False,
            max_new_tokens=source.shape[1] + EXTRA,
        )
        return output[:, 1:].tolist()


class CTranslate2:
    """A model's copy in CTranslate2, on the CPU; made to write `EXTRA` tokens more than the source
    has, as the others.

    In 8-bit integers it rounds more than all the others, so it may find other tokens.
    """

    compute_type = "float32"

    def __init__(self, c: TransformerConfig):
        import ctranslate2

        self.names = [str(i) for i in range(c.vocab_size)]
        with tempfile.TemporaryDirectory() as place:
            export_ctranslate2(Transformer(c), self.names, Path(place, "model"))
            self.model = ctranslate2.Translator(
                str(Path(place, "model")),
                compute_type=self.compute_type,
                intra_threads=torch.get_num_threads(),
            )

    def to(self, device):
        return self

    def search(self, source, beam=1):
        length = source.shape[1] + EXTRA
        found = self.model.translate_batch(
            [[self.names[i] for i in row] for row in source.tolist()],
            beam_size=beam,
            length_penalty=0.6,
            min_decoding_length=length,
            max_decoding_length=length,
        )
        return [[int(name) for name in result.hypotheses[0]] for result in found]


class CTranslate2Int8(CTranslate2):
    """The same in 8-bit integers."""

    compute_type = "int8"


OURS = {"plain": Ours, "fast": partial(Ours, pulled=LEVERS)}
TRAINED = {**OURS, "torch": Torch, "tuned": Tuned, "marian": Marian}
SEARCHES = {
    **OURS,
    "torch": Torch,
    "marian": Marian,
    "ctranslate2": CTranslate2,
    "ctranslate2 int8": CTranslate2Int8,
}
NEEDS = {
    "marian": "transformers",
    "ctranslate2": "ctranslate2",
    "ctranslate2 int8": "ctranslate2",
}
SYSTEMS = {**TRAINED, **SEARCHES}


def available(names=TRAINED) -> list[str]:
    """Those of the named systems that can be made here."""
    return [
        name
        for name in names
        if name not in NEEDS or importlib.util.find_spec(NEEDS[name])
    ]


def make_systems(c: TransformerConfig, names, device, compiled: bool = False) -> dict:
    """The named systems, each from the same seed; compiled: those of them that somebody would
    compile.
    """
    made = {}
    for name in names:
        torch.manual_seed(SEED)
        made[name] = SYSTEMS[name](c).to(device)
        if compiled and name in (
            "fast",
            "tuned",
        ):  # both call their encoder and their decoder
            compile_stacks(made[name].model)
        elif compiled and name == "marian":
            made[name].model.compile(dynamic=True)
    return made
