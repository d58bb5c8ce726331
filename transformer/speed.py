# ---
# jupyter:
#   jupytext:
#     formats: notebooks/20_/ipynb,transformer//py:percent
# ---

# %% [markdown]
# # Speed
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/annotated-attention/blob/main/notebooks/20_speed.ipynb)
#
# The modules of Section 3 read as the paper does. [Notebook 11](11_hardware.ipynb) made a finished model faster without touching
# them. Was it worth it? Here one lever after the other is pulled, on your machine. Then the whole is set beside torch's own
# Transformer, Hugging Face's Marian and CTranslate2, on the same work and in the same minutes. On the way your model moves into CTranslate2, which is made for serving.

# %% tags=["active-ipynb"]
# import sys
#
# if "google.colab" in sys.modules:
#     %pip install -q git+https://github.com/OWNER/annotated-attention

# %%
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

# %%
from transformer.attention import MultiHeadAttention, causal_mask, scaled_dot_product_attention
from transformer.data import Tokenizer, collate, encode_pairs
from transformer.corpora import read_corpus
from transformer.decoding import beam_search, greedy_search
from transformer.hardware import (
    accelerate,
    allow_tf32,
    autocast,
    choose_device,
    choose_precision,
    compile_stacks,
    loss_scaler,
    matmul_precision,
    packed_linear,
    packed_weights,
    peak_memory,
    shared_caches,
    training_flops,
    wait_for,
)
from transformer.model import Transformer, TransformerConfig
from transformer.optimizer import adam, learning_rate, set_learning_rate
from transformer.positions import SinusoidalPositions
from transformer.stacks import Residual
from transformer.training import Objective, batch_seed, endless_batches, update_weights, validation_loss
from transformer.translation import bundled_folder, hardware_in_words
from transformer.files import git_commit, prepare_folder, write_json

# %% [markdown]
# The next cell holds what only the pictures and checks below need. It does not become part of the module.

# %% tags=["active-ipynb"]
# from itertools import islice
#
# from transformer import plotting
# from transformer.files import data_folder
# from transformer.decoding import translate
# from transformer.translation import SENTENCES, load
#
# torch.set_num_threads(1)            # one core: then time is work
# cpu = torch.device("cpu")

# %% [markdown]
# ## What makes a comparison fair
#
# A speed alone says little: the machine may be busy, cold or throttled. A *ratio* of two speeds says more, if both sides
#
# - get the **same work**: same sizes, same batches, dropout in the same places, every real target token counted once and padding never;
# - **take turns**, round by round, so that whatever else the machine does hits both;
# - are judged by the **median** of the rounds, the first being left out (memory is fetched then, and kernels are chosen).
#
# The work: random ids, of about thirty tokens a sentence. A batch has lengths of its own, and rows that differ a little.

# %%
SEED, EPSILON, RATE, LENGTH, EXTRA = 2017, 0.1, 1e-4, 30, 20


def draw_batches(vocab_size, tokens, count, device, spread=0.18):
    """Batches of about so many real target tokens: random ids, 25 to 35 a sentence on average.

    spread: how far a sentence's length may lie from its batch's average, as a part of it; 0.18 makes 15% padding.
    """
    chance = torch.Generator().manual_seed(SEED)

    def ids(mean):
        n = torch.randint(round((1 - spread) * mean), round((1 + spread) * mean) + 1, (), generator=chance).item()
        return torch.randint(3, vocab_size, (n - 1,), generator=chance).tolist()

    batches = []
    for _ in range(count):
        mean = torch.randint(25, 36, (), generator=chance).item()
        pairs = [([*ids(mean), 2], [1, *ids(mean), 2]) for _ in range(max(1, round(tokens / mean)))]
        batches.append(collate(pairs).to(device))
    return batches


# %%
def real_tokens(batch):
    """Target tokens that count in the loss."""
    return int((batch.gold != 0).sum())


def flops_of(c, batch):
    """FLOPs of an update on a batch's real tokens; see `transformer.hardware.training_flops`."""
    lengths = zip((batch.source != 0).sum(dim=1).tolist(), (batch.gold != 0).sum(dim=1).tolist())
    return sum(training_flops(c, S, T) for S, T in lengths)


# %% tags=["active-ipynb"]
# small = dict(vocab_size=4000, d_model=128, d_ff=512, N=2, h=4)
# batches = draw_batches(4000, 600, 8, cpu)
# for batch in batches[:4]:
#     print(f"source {tuple(batch.source.shape)}  target {tuple(batch.gold.shape)}  real target tokens {real_tokens(batch)}"
#           f"  padding {1 - real_tokens(batch) / batch.gold.numel():.0%}")

# %% [markdown]
# ## The peers
#
# Each system holds a model and can do up to three things: `update` it on a batch, search `greedy`, and search with a `beam` (torch's has
# no beam search, CTranslate2 does not train). What the peers share is what their users write: logits of the whole batch, torch's cross-entropy with smoothing, torch's Adam as it comes.

# %%
class System(nn.Module):
    """What the peers share: a loss from logits, and an update as their users write it."""

    rate = RATE

    def prepare(self, precision="fp32"):
        """Before the first update."""
        self.precision = precision
        self.optimizer = torch.optim.Adam(self.parameters(), lr=RATE, betas=(0.9, 0.98), eps=1e-9)
        return self.train()

    def loss(self, batch):
        """Label-smoothed cross-entropy, summed over real target tokens, in nats."""
        logits, gold = self.logits(batch).flatten(0, 1).float(), batch.gold.flatten()
        return F.cross_entropy(logits, gold, label_smoothing=EPSILON, ignore_index=0, reduction="sum")

    def update(self, batch, tokens):
        """One update; returns the loss per real target token."""
        self.optimizer.zero_grad()
        with autocast(batch.source.device, self.precision):
            loss = self.loss(batch) / tokens
        loss.backward()
        set_learning_rate(self.optimizer, self.rate)
        self.optimizer.step()
        return loss.item()


# %% [markdown]
# This package comes twice: as Section 3 reads, and as `transformer train` and `transformer translate` run it.

# %%
class Plain(System):
    """This package as Section 3 of the paper reads, without any lever."""

    def __init__(self, c):
        super().__init__()
        self.model = Transformer(c)

    def logits(self, batch):
        return self.model(batch.source, batch.decoder_input)

    def greedy(self, source):
        return greedy_search(self.model, source, EXTRA)

    def beam(self, source):
        return [best[0].tokens for best in beam_search(self.model, source, 4, extra=EXTRA)]


# %%
class Fast(Plain):
    """This package as `transformer train` and `transformer translate` run it."""

    seed = SEED  # of dropout

    def __init__(self, c):
        super().__init__(c)
        accelerate(self.model)

    def prepare(self, precision="fp32"):
        self.objective, self.optimizer = Objective(self.model, EPSILON, precision), adam(self.model)
        self.scaler = loss_scaler(next(self.parameters()).device, precision)
        return self.train()

    def update(self, batch, tokens):
        return update_weights(self.objective, self.optimizer, self.scaler, [(self.seed, batch)], tokens, self.rate)[0]


# %% [markdown]
# **torch.nn.Transformer** has no embeddings, no positions and no output layer; its users add them, and so do we. It drops out
# attention weights and hidden units, which the paper does not, and ends its stacks with another norm: switched off, so that the work is the
# same. Biases in its attention stay on. They cost next to nothing.

# %%
class Torch(System):
    """torch.nn.Transformer with tied embeddings times sqrt(d_model) and sinusoids around it."""

    def __init__(self, c):
        super().__init__()
        self.c, self.dropout = c, nn.Dropout(c.P_drop)
        self.embedding = nn.Embedding(c.vocab_size, c.d_model)
        self.positions = SinusoidalPositions(c.max_positions, c.d_model)
        nn.init.normal_(self.embedding.weight, std=c.d_model**-0.5)
        self.model = nn.Transformer(c.d_model, c.h, c.N, c.N, c.d_ff, c.P_drop, batch_first=True)
        papers_dropout(self.model)

    def embed(self, tokens):
        return self.dropout(self.positions(self.embedding(tokens) * self.c.d_model**0.5))

    def states(self, target, memory, source):
        unseen = ~causal_mask(target.shape[1], target.device)
        return self.model.decoder(self.embed(target), memory, unseen, tgt_is_causal=True,
                                  memory_key_padding_mask=source == self.c.pad_id)

    def logits(self, batch):
        memory = self.model.encoder(self.embed(batch.source), src_key_padding_mask=batch.source == self.c.pad_id)
        return F.linear(self.states(batch.decoder_input, memory, batch.source), self.embedding.weight)

    def greedy(self, source):
        return search_again_and_again(self, source)


# %%
def papers_dropout(model):
    """Leave an nn.Transformer the paper's dropout only, on the output of each sub-layer, and no norm after a stack."""
    model.encoder.norm = model.decoder.norm = None
    for layer in [*model.encoder.layers, *model.decoder.layers]:
        layer.dropout.p = layer.self_attn.dropout = 0.0
        if hasattr(layer, "multihead_attn"):
            layer.multihead_attn.dropout = 0.0


# %% [markdown]
# It has no cache either: to write one more token, it computes all the earlier ones again.

# %%
@torch.no_grad()
def search_again_and_again(system, source):
    """Greedy search without a cache: all positions anew at each step; the memory is computed once."""
    system.eval()
    memory = system.model.encoder(system.embed(source), src_key_padding_mask=source == system.c.pad_id)
    output = torch.full((len(source), 1), system.c.bos_id, device=source.device)
    for _ in range(source.shape[1] + EXTRA):
        logits = F.linear(system.states(output, memory, source)[:, -1], system.embedding.weight)
        logits[:, system.c.pad_id] = -torch.inf
        output = torch.cat([output, logits.argmax(dim=-1, keepdim=True)], dim=1)
    return output[:, 1:].tolist()


# %% [markdown]
# **Marian**, as Hugging Face's library has it, is the model behind a thousand translators on its hub. It has caches, and tied embeddings.

# %%
def marian_config(c):
    """The sizes of a `TransformerConfig` as Marian's."""
    from transformers import MarianConfig

    both = {f"{side}_{name}": value for side in ("encoder", "decoder")
            for name, value in (("layers", c.N), ("ffn_dim", c.d_ff), ("attention_heads", c.h))}
    return MarianConfig(
        vocab_size=c.vocab_size, d_model=c.d_model, **both, dropout=c.P_drop, attention_dropout=0.0,
        activation_dropout=0.0, activation_function="relu", scale_embedding=True, pad_token_id=c.pad_id,
        bos_token_id=c.bos_id, eos_token_id=c.eos_id, decoder_start_token_id=c.bos_id, forced_eos_token_id=None,
        max_position_embeddings=c.max_positions)


# %%
class Marian(System):
    """Hugging Face's MarianMTModel, decoding by its `generate`."""

    def __init__(self, c):
        super().__init__()
        os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
        from transformers import MarianMTModel

        self.c, self.model = c, MarianMTModel(marian_config(c))

    def logits(self, batch):
        return self.model(input_ids=batch.source, attention_mask=(batch.source != self.c.pad_id).long(),
                          decoder_input_ids=batch.decoder_input, use_cache=False).logits

    @torch.no_grad()
    def search(self, source, beam):
        self.eval()
        self.model.final_logits_bias[:, self.c.pad_id] = -1e9  # padding is no token
        output = self.model.generate(input_ids=source, attention_mask=(source != self.c.pad_id).long(), num_beams=beam,
                                     do_sample=False, max_new_tokens=source.shape[1] + EXTRA)
        return output[:, 1:].tolist()

    def greedy(self, source):
        return self.search(source, 1)

    def beam(self, source):
        return self.search(source, 4)


# %% [markdown]
# ## The model in CTranslate2
#
# Those who serve translations on CPUs mostly do not run torch. **CTranslate2** is a library for this alone. It
# takes a model's weights in its own format, and the paper's architecture is among those that it runs. So our weights fit, matrix by
# matrix; that they are the same model is checked below. Queries, keys and values lie in one matrix there. It runs in fp32 here, like
# all the others on a CPU. (It also knows 8-bit integers, which round more; those are left out. When the bench runs on a GPU, CTranslate2 itself is left out: it would need CUDA libraries of its own.)

# %%
def put(spec, weight, bias=None):
    """Lay a weight, and a bias, into a part of CTranslate2's model."""
    spec.weight = weight.detach().float().cpu().numpy()
    if bias is not None:
        spec.bias = bias.detach().float().cpu().numpy()


def put_norm(spec, norm):
    """Lay a `LayerNorm`'s gain and bias into a part of CTranslate2's model."""
    spec.gamma, spec.beta = (p.detach().float().cpu().numpy() for p in (norm.gain, norm.bias))


# %%
def put_attention(spec, attention, norm):
    """One attention sub-layer: W_Q, W_K and W_V as one matrix; over the memory W_Q alone, W_K and W_V as one."""
    W_Q, W_K, W_V = (linear.weight for linear in (attention.W_Q, attention.W_K, attention.W_V))
    matrices = [torch.cat([W_Q, W_K, W_V])] if len(spec.linear) == 2 else [W_Q, torch.cat([W_K, W_V])]
    for part, matrix in zip(spec.linear, [*matrices, attention.W_O.weight]):
        put(part, matrix)
    put_norm(spec.layer_norm, norm)


# %%
def put_layer(spec, layer):
    """One encoder or decoder layer."""
    norms = [residual.norm for residual in layer.residuals]
    put_attention(spec.self_attention, layer.self_attention, norms[0])
    if hasattr(spec, "attention"):
        put_attention(spec.attention, layer.cross_attention, norms[1])
    put(spec.ffn.linear_0, layer.feed_forward.W_1.weight, layer.feed_forward.W_1.bias)
    put(spec.ffn.linear_1, layer.feed_forward.W_2.weight, layer.feed_forward.W_2.bias)
    put_norm(spec.ffn.layer_norm, norms[-1])


# %%
def ctranslate2_spec(model, names):
    """A model as CTranslate2's specification; names: one for each token id. ValueError for sizes it does not know."""
    from ctranslate2.specs import TransformerSpec, common_spec

    c = model.config
    if any(width not in (None, c.d_model // c.h) for width in (c.d_k, c.d_v)):
        raise ValueError(f"CTranslate2 knows heads of width d_model / h = {c.d_model // c.h} only, and this model has "
                         f"d_k={c.d_k}, d_v={c.d_v}: it cannot be exported")
    spec = TransformerSpec.from_config(c.N, c.h, pre_norm=c.norm_first, activation=common_spec.Activation.RELU)
    for side, stack in ((spec.encoder, model.encoder), (spec.decoder, model.decoder)):
        side.position_encodings.encodings = model.positions.table.detach().float().cpu().numpy()
        for part, layer in zip(side.layer, stack.layers):
            put_layer(part, layer)
        if c.norm_first:
            put_norm(side.layer_norm, stack.final_norm)
    put(spec.encoder.embeddings[0], model.embedding.weight)
    put(spec.decoder.embeddings, model.target_embedding.weight)
    put(spec.decoder.projection, model.output.weight)
    return with_vocabulary(spec, names, c)


# %% [markdown]
# It speaks in types ("▁the"), not in numbers, so it gets the vocabulary. The marks are ours: the caller ends the source with
# its end mark, as our tokenizer does.

# %%
def with_vocabulary(spec, names, c):
    """The specification with its vocabulary and marks."""
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    spec.config.bos_token = spec.config.decoder_start_token = names[c.bos_id]
    spec.config.eos_token, spec.config.unk_token = names[c.eos_id], names[c.pad_id]
    return spec


# %%
def export_ctranslate2(model, names, folder):
    """Write a model for CTranslate2 into a new folder, through a temporary one.

    names: one for each token id. FileExistsError where the folder is there; ModuleNotFoundError (a sentence) without CTranslate2.
    """
    if importlib.util.find_spec("ctranslate2") is None:
        raise ModuleNotFoundError("the export needs CTranslate2: pip install 'ctranslate2>=4.5', then run this again")
    if Path(folder).exists():
        raise FileExistsError(f"{folder} is there already: name a folder that is not")
    prepare_folder(Path(folder).parent, "--output")
    with tempfile.TemporaryDirectory(dir=Path(folder).parent) as temporary:
        spec = ctranslate2_spec(model, names)
        spec.validate()
        spec.optimize()
        made = Path(temporary, "model")
        made.mkdir()
        spec.save(str(made))
        made.rename(folder)


# %% [markdown]
# The tokenizer goes along. Whoever serves the model writes these few lines:

# %%
def type_names(tokenizer):
    """The name of each token id of a tokenizer, as CTranslate2 wants them."""
    return [tokenizer.bpe.id_to_token(i) for i in range(tokenizer.vocab_size)]


# %%
def translate_there(folder, tokenizer, sentences, beam=1):
    """Translations of sentences (list of str) by the CTranslate2 model in a folder, in fp32 on this CPU."""
    import ctranslate2

    names = type_names(tokenizer)
    ids = {name: i for i, name in enumerate(names)}
    there = ctranslate2.Translator(str(folder), compute_type="float32", intra_threads=torch.get_num_threads())
    sources = [[names[i] for i in [*tokenizer.encode(sentence), tokenizer.eos_id]] for sentence in sentences]
    found = there.translate_batch(sources, beam_size=beam, length_penalty=0.6, max_decoding_length=512)
    return [tokenizer.decode([ids[name] for name in result.hypotheses[0]]) for result in found]


# %% [markdown]
# Does it say the same? The bundled model, moved there, translates some sentences greedily; both must write the same. (Without
# CTranslate2 the cell says how to get it.)

# %% tags=["active-ipynb"]
# model, tokenizer = load()
# if importlib.util.find_spec("ctranslate2"):
#     with tempfile.TemporaryDirectory() as place:
#         export_ctranslate2(model, type_names(tokenizer), Path(place, "bundled"))
#         their_translations = translate_there(Path(place, "bundled"), tokenizer, SENTENCES["bundled"])
#     print("\n".join(their_translations))
#     assert their_translations == translate(model, tokenizer, SENTENCES["bundled"], beam=1)
# else:
#     print("pip install ctranslate2, then run this cell again")

# %% [markdown]
# A beam may differ now and then: CTranslate2 divides a hypothesis's score by its length to the power 0.6, the paper by $((5 + length) / 6)^{0.6}$
# (notebook 15). In the comparison below it is one more system, for decoding only.

# %%
class CTranslate2:
    """A model's copy in CTranslate2, which only decodes; made to write `EXTRA` tokens more than the source has, as the others are."""

    def __init__(self, model, device):
        import ctranslate2

        self.names = [str(i) for i in range(model.config.vocab_size)]
        with tempfile.TemporaryDirectory() as place:
            export_ctranslate2(model, self.names, Path(place, "model"))
            self.model = ctranslate2.Translator(str(Path(place, "model")), device=device.type, compute_type="float32",
                                                intra_threads=torch.get_num_threads())

    def search(self, source, beam):
        length = source.shape[1] + EXTRA
        found = self.model.translate_batch([[self.names[i] for i in row] for row in source.tolist()], beam_size=beam,
                                           length_penalty=0.6, min_decoding_length=length, max_decoding_length=length)
        return [[int(name) for name in result.hypotheses[0]] for result in found]

    def greedy(self, source):
        return self.search(source, 1)

    def beam(self, source):
        return self.search(source, 4)


# %%
TRAINED = {"plain": Plain, "fast": Fast, "torch": Torch, "marian": Marian}
WORDS = {"plain": "this package, plain", "fast": "this package, as it runs", "torch": "torch.nn.Transformer",
         "marian": "Marian (transformers)", "ctranslate2": "CTranslate2"}
NEEDS = {"marian": "transformers", "ctranslate2": "ctranslate2"}


def available(names=TRAINED):
    """Those of the named systems that can be made here."""
    return [name for name in names if name not in NEEDS or importlib.util.find_spec(NEEDS[name])]


# %%
def make_systems(c, names, device, compiled=False):
    """The named systems, each from the same seed."""
    made = {}
    for name in names:
        torch.manual_seed(SEED)
        if name == "ctranslate2":
            made[name] = CTranslate2(Transformer(c), device)
            continue
        made[name] = TRAINED[name](c).to(device)
        if compiled and name in ("fast", "torch"):  # both call their encoder and their decoder
            compile_stacks(made[name].model)
        elif compiled and name != "plain":
            made[name].model.compile(dynamic=True)
    return made


# %% [markdown]
# ## Taking turns
#
# In the tables every system that runs on torch stands twice on a CPU: with torch's switch for fp32 products at "highest" (its usual library) and
# at "medium" (oneDNN, see notebook 11). When it decodes, "as it runs" uses oneDNN for its large weights either way.

# %%
def seconds_of(work, device, clock):
    """Seconds of work(), by a clock, with a GPU's work waited for; and what it returned."""
    wait_for(device)
    started = clock()
    done = work()
    wait_for(device)
    return max(1e-9, clock() - started), done


# %%
def in_turns(works, rounds, device, clock=time.perf_counter):
    """{row: tokens a second in each round}; works: {(system, matmul precision): function of the round -> tokens}.

    Each round begins with the next one: nobody is first, or last, in every round.
    """
    rates, order = {row: [] for row in works}, list(works)
    for number in range(-1, rounds):  # the first one warms up
        for row in order:
            with matmul_precision(row[1] if device.type == "cpu" else "as it is"):  # a GPU keeps TF32
                seconds, tokens = seconds_of(partial(works[row], max(0, number)), device, clock)
            if number >= 0:
                rates[row].append(tokens / seconds)
        order.append(order.pop(0))
    return rates


# %%
def rows_of(rates):
    """The table's rows: median tokens a second, and how many times as fast as the peers: the median over rounds of the ratio in each."""
    rows = []
    for (system, precision), values in rates.items():
        row = {"system": system, "matmul": precision, "tokens_per_second": round(statistics.median(values), 1),
               "rounds": [round(value, 1) for value in values]}
        row.update({f"over_{peer}_{other}": round(statistics.median(a / b for a, b in zip(values, theirs)), 3)
                    for (peer, other), theirs in rates.items() if peer not in ("plain", "fast") and system in ("plain", "fast")})
        rows.append(row)
    return rows


# %%
def precisions(device):
    """Matmul precisions to compare: on a GPU products are short anyway."""
    return ("highest", "medium") if device.type == "cpu" else ("highest",)


# %%
def table(title, rows):
    """Rows of dicts as lines of text; lists are left out."""
    rows = [row for row in rows if row]
    names = [name for name, value in (rows[0] if rows else {}).items() if not isinstance(value, list)]
    cells = [names, *([str(row.get(name, "")) for name in names] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(names))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells)
    return "\n  ".join([title, *lines]) + "\n"


# %%
def shown(part, figures):
    """A part's tables; "x torch" is how many times as fast as torch.nn.Transformer, "m." its run at medium."""
    if isinstance(figures, list):
        return table(part, figures)
    kinds = figures if "dropout" in figures else {"": figures}
    return "\n".join(table(f"{part} {kind}".strip(), [short(row) for row in figure["rows"]]) for kind, figure in kinds.items())


def short(row):
    """A row for reading: one name, rounded ratios."""
    ratios = {name.replace("over_", "x ").replace("_highest", "").replace("_medium", " m."): f"{value:.2f}"
              for name, value in row.items() if name.startswith("over_")}
    return {"system": WORDS[row["system"]] + ", medium" * (row["matmul"] == "medium"),
            "tokens/s": f"{row['tokens_per_second']:,.0f}", **ratios}


# %% [markdown]
# A small contest, here and now. Few rounds of a small model: expect the second digit to change when you run it again.

# %% tags=["active-ipynb"]
# counts = [real_tokens(batch) for batch in batches]
# contest = make_systems(TransformerConfig(**small, P_drop=0.1), ("plain", "fast", "torch"), cpu)
# def updates_of(system):
#     def update(number):
#         system.update(batches[number], counts[number])
#         return counts[number]
#     return update
# works = {(name, "highest"): updates_of(system.prepare()) for name, system in contest.items()}
# live = rows_of(in_turns(works, 8, cpu))
# print(shown("live", {"rows": live}))

# %% [markdown]
# "x torch" is the median of the ratios of single rounds, not the ratio of the two medians beside it. That each system computes the same loss from the same weights, and the same gradient of the
# embedding, is among the tests of this package (`tests/test_speed.py`).
#
# ## Lever by lever
#
# Which part of the gain comes from what? Start from the plain package on batches drawn at random, and pull one lever after the other:
# batches of *similar lengths* (here equal ones, without padding: the best that sorting can give, notebook 10); the *loss in chunks*, *attention* (queries, keys
# and values in one product, and torch's kernel), *dropout* from 16 bits together with the norms' gradients from their outputs, and *bf16*, all of notebook 11;
# *fused Adam*, one kernel for all weights (notebook 12).

# %%
LEVERS = ("plain", "similar lengths", "loss in chunks", "attention", "dropout", "fused Adam", "bf16")


class Levered(Plain):
    """The plain package with the first so many of `LEVERS` pulled."""

    def __init__(self, c, count):
        super().__init__(c)
        self.pulled = LEVERS[:count]
        kinds = {"attention": [MultiHeadAttention], "dropout": [nn.Dropout, Residual]}
        accelerate(self.model, [kind for lever in kinds if lever in self.pulled for kind in kinds[lever]])

    def prepare(self):
        super().prepare("bf16" if "bf16" in self.pulled else "fp32")
        if "fused Adam" in self.pulled:
            self.optimizer = adam(self.model)
        return self

    def loss(self, batch):
        if "loss in chunks" not in self.pulled:
            return super().loss(batch)
        return Objective(self.model, EPSILON)(batch)


# %%
def measure_levers(sizes, tokens, rounds, device, clock=time.perf_counter):
    """Tokens a second with one lever after the other pulled: [{"lever", "tokens_per_second", "over_plain"}, ...]."""
    c = TransformerConfig(**sizes, P_drop=0.1)
    pools = [draw_batches(c.vocab_size, tokens, rounds, device, spread) for spread in (0.18, 0.0)]

    def work(system):
        def update(number):
            batch = pools["similar lengths" in system.pulled][number]
            system.update(batch, real_tokens(batch))
            return real_tokens(batch)
        return update

    works = {}
    for count in range(1, len(LEVERS) + 1):
        torch.manual_seed(SEED)
        works[LEVERS[count - 1], "highest"] = work(Levered(c, count).to(device).prepare())
    middle = {lever: statistics.median(values) for (lever, _), values in in_turns(works, rounds, device, clock).items()}
    return [{"lever": lever, "tokens_per_second": round(rate, 1), "over_plain": round(rate / middle["plain"], 3)}
            for lever, rate in middle.items()]


# %% tags=["active-ipynb"]
# levers = measure_levers(small, 600, 5, cpu)
# print(table("each row has the levers above it pulled, too", levers))
# plotting.bars({row["lever"].replace(" ", "\n"): row["over_plain"] for row in levers}, ylabel="speed over plain", title="One lever after the other, here")

# %% [markdown]
# The bars depend on sizes and machine. In the recorded run further down, with 10,000 types and larger batches, the loss in chunks gives a factor of 1.6, similar
# lengths 1.5 (its padding of 16% explains 1.2; the rest must be the machine), bf16 1.4, and attention and fused Adam 1.1 to 1.2 each. Dropout (with the norms) seemed to lose a little there: such figures shake by a tenth and more, and three
# rounds may show a loss where five elsewhere show a gain. With more types the loss in chunks gains; with longer sentences attention does (part "attention"). Where the CPU
# has no instructions for bf16, the last lever makes things worse. That is why nothing here is taken for granted, and `transformer train` only gives a hint.

# %% [markdown]
# ## Does it still learn the same?
#
# Speed that costs quality is no gain. Each fast form equals the plain one within rounding (notebook 11 and the tests). What becomes of a rounding? Here a
# small model is trained three times on the same batches, with the same entries dropped: the plain way, the plain way with *one* of its weights moved by a
# millionth, and the fast way. How far are the losses of the last two from the first?

# %% tags=["active-ipynb"]
# tokenizer = Tokenizer.load(bundled_folder() / "tokenizer.json")
# sentences = encode_pairs(tokenizer, read_corpus("bundled", "train")[:3000])
#
# def losses(name, nudge=0.0):
#     torch.manual_seed(1)
#     system, found = TRAINED[name](TransformerConfig(tokenizer.vocab_size, d_model=64, d_ff=128, N=2, h=4, P_drop=0.1)).prepare(), []
#     accelerate(system.model, [nn.Dropout])            # plain, too, draws its dropout the fast way here
#     system.model.decoder.layers[0].feed_forward.W_1.weight.data[0, 0] += nudge
#     for number, (*_, picked) in enumerate(islice(endless_batches(sentences, 400, seed=1), 100)):
#         batch = collate([sentences[i] for i in picked])
#         system.seed, system.rate = number, learning_rate(number + 1, 64, 60, 1.0)
#         torch.manual_seed(number)
#         found.append(system.update(batch, real_tokens(batch)))
#     return torch.tensor(found)

# %% tags=["active-ipynb"]
# plain = losses("plain")
# apart = {"plain, one weight moved": losses("plain", nudge=1e-6), "fast": losses("fast")}
# plotting.lines(range(1, 101), {name: (found - plain).abs().clamp(min=1e-7) for name, found in apart.items()}, "update",
#                "distance from plain's loss", log="y")
# assert (apart["fast"] - plain)[:10].abs().max() < 1e-4

# %% [markdown]
# In the saved picture (distances in nats a token; those under $10^{-7}$ are drawn there) all three agree for some twenty-five updates to about two millionths. Then the fast way's distance climbs by powers of ten. That of the moved weight does so, too, but only after sixty;
# one weight is probably a smaller push than a rounding everywhere. In the end both lie mostly between some thousandths and a tenth.

# %% [markdown]
# Training at a high rate magnifies any difference, however small. So whether the fast way's last loss *equals* the plain one's is no sensible question. (In double precision the two
# ways stay together over fifty gentle updates, to seven digits; that is among the tests.) What can be asked is whether it is as good on average.
#
# So a small model learns the bundled corpus in each way, with six seeds, on the same batches, and with the same entries
# dropped. In the end all see the same validation sentences.

# %%
WAYS = {"plain": ("plain", "fp32"), "fast": ("fast", "fp32"), "fast, medium": ("fast", "medium"), "fast, bf16": ("fast", "bf16")}


def learn(way, seed, training, validation, updates, c):
    """Validation loss (nats a target token) of a model of config c after so many updates in one of `WAYS`."""
    name, precision = WAYS[way]
    torch.manual_seed(seed)
    system, stream = TRAINED[name](c).prepare(precision), endless_batches(training, 400, seed)
    accelerate(system.model, [nn.Dropout])
    with matmul_precision(precision):
        for update in range(1, updates + 1):
            batch = collate([training[i] for i in next(stream)[2]], c.pad_id)
            system.rate = learning_rate(update, c.d_model, updates // 4, 0.5)
            system.seed = batch_seed(seed, update, 0)
            torch.manual_seed(system.seed)
            system.update(batch, real_tokens(batch))
    return validation_loss(system.model, validation)["validation_loss"]


# %%
def measure_learning(c, training, validation, updates, seeds=(1, 2, 3, 4, 5, 6)):
    """One row for each of `WAYS`: mean and deviation of the validation loss over seeds, and how far the mean is from plain's."""
    losses = {way: [learn(way, seed, training, validation, updates, c) for seed in seeds] for way in WAYS}
    return [{"way": way, "validation_loss": round(statistics.mean(found), 4), "deviation": round(statistics.stdev(found), 4),
             "minus_plain": round(statistics.mean(found) - statistics.mean(losses["plain"]), 4),
             "losses": [round(loss, 4) for loss in found]} for way, found in losses.items()]


# %% [markdown]
# That takes most of an hour of a core, so it is a command: `transformer bench learning`. In the recorded run plain ends at 0.891, and the fast ways at 0.891 (fp32), 0.910 (medium) and
# 0.894 (bf16). Runs of plain that differ only in their seed lie up to 0.078 apart. Seed by seed, fp32 and bf16 lie on both sides of plain. "medium" is worse with four seeds of six,
# by 0.019 ± 0.009 in the mean. That is two deviations, and one way of three may reach them by chance. So six seeds do not settle it.

# %% [markdown]
# ## How fast could it be?
#
# Almost all the work is matrix products, so their rate is the ceiling. But which rate? There is more than one way to
# multiply. These are torch's routes on the shapes of a model's forward and backward pass, with the error that each makes.

# %%
def routes(x, weight):
    """Every way of torch to compute x W^T in fp32, and bf16: {name: (matmul precision, function)}."""
    found = {"torch": ("highest", lambda: x @ weight.T), "medium": ("medium", lambda: x @ weight.T)}
    if x.device.type == "cpu" and torch.backends.mkldnn.is_available():
        packed = packed_linear(weight, rows=len(x))
        found["packed"] = "highest", lambda: packed(x)
    short, short_weight = x.bfloat16(), weight.bfloat16()
    found["bf16"] = "highest", lambda: short @ short_weight.T
    return found


# %%
def product_shapes(c, rows):
    """(m, k, n) of products in a model's forward pass over so many tokens, and of one gradient of a weight."""
    return [(rows, c.d_model, c.d_model), (rows, c.d_model, c.d_ff), (rows, c.d_ff, c.d_model),
            (rows, c.d_model, c.vocab_size), (c.d_ff, rows, c.d_model)]


# %%
def time_products(m, k, n, rounds, device, clock):
    """{route: (seconds, relative error)} of a product of (m, k) and (k, n); the routes take turns, the best round counts."""
    chance = torch.Generator().manual_seed(SEED)
    x, weight = (torch.randn(*shape, generator=chance).to(device) for shape in ((m, k), (n, k)))
    exact, ways = x.double() @ weight.double().T, routes(x, weight)
    times, errors = {name: [] for name in ways}, {}
    for _ in range(rounds + 1):
        for name, (precision, way) in ways.items():
            with matmul_precision(precision):
                seconds, product = seconds_of(way, device, clock)
            times[name].append(seconds)
            errors[name] = ((product - exact).norm() / exact.norm()).item()
    return {name: (min(times[name][1:]), errors[name]) for name in ways}


# %%
@torch.no_grad()
def measure_products(c, tokens, device, clock=time.perf_counter, rounds=5):
    """GFLOP/s and relative error of each route over `product_shapes`; fp32_class: with fp32's error."""
    shapes = product_shapes(c, int(tokens / 0.85))
    found = [time_products(*shape, rounds, device, clock) for shape in shapes]
    flops, rows = sum(2 * m * k * n for m, k, n in shapes), []
    for name in found[0]:
        error = max(some[name][1] for some in found)
        rows.append({"route": name, "gflops_per_second": round(flops / sum(some[name][0] for some in found) / 1e9, 1),
                     "error": float(f"{error:.2g}"), "fp32_class": error < 1e-5})
    return rows


# %% tags=["active-ipynb"]
# products = measure_products(TransformerConfig(4000, d_model=256, d_ff=1024, h=4), 600, cpu)
# print(table("products", products))
# assert products[0]["error"] < 1e-6 < products[-1]["error"]

# %% [markdown]
# Two things decide whether bf16 is a good bargain: its rate beside fp32's, and its error, some ten thousand times as large (whether training
# minds was asked above). Whether "medium" is another fp32 or a bf16 in disguise depends on the CPU; its error in the
# table tells. The package never sets it for you.

# %% [markdown]
# ## The whole table
#
# What follows takes half an hour, so it is a command: `transformer bench` (or some parts of it, such as `transformer bench T1 --rounds 4`;
# "learning", an hour more, only where it is named). T1 is the
# paper's base model with 8,000 types, T2 a smaller one ($N = 3$, $d_{model} = 256$), "small" that of the Multi30k recipe with 10,000 types. T3 and T4 decode with T1's model: greedy,
# and with a beam of 4. Its weights are random there. In a trained model's search the hypotheses change places otherwise, and the figures may differ.

# %%
BIG = dict(d_model=1024, d_ff=4096, h=16)
TRAINING = {"T1": (dict(vocab_size=8000), 2048),  # sizes, target tokens in a batch
            "T2": (dict(vocab_size=8000, N=3, d_model=256, d_ff=1024, h=4), 4096),
            "small": (dict(vocab_size=10_000, N=4, d_model=128, d_ff=256, h=4), 4096)}
ON_A_GPU = {"base": (dict(vocab_size=37_000), 25_000), "big": (dict(vocab_size=37_000, **BIG), 25_000)}
DECODING = {"T3": 1, "T4": 4}  # beam
PARTS = [*TRAINING, *ON_A_GPU, *DECODING, "levers", "learning", "memory", "attention", "products"]
QUICK = dict(vocab_size=60, N=1, d_model=16, d_ff=32, h=2)


# %%
@dataclass
class Bench:
    """Speed and memory of this package beside torch.nn.Transformer, Marian and CTranslate2, in one run."""

    parts: tuple[str, ...] = ()  # some of `PARTS` (where none is named: all that the device can do, but not learning, an hour more)
    quick: bool = False  # tiny sizes and one round, to see that it works
    rounds: int = 3  # rounds of training (at most three of decoding)
    clock: str = "wall"  # wall, or cpu: seconds of the processor, where others use the machine, too
    device: str = "auto"  # cpu or cuda
    compile: bool = False  # torch.compile on both sides (it needs a compiler)
    record: Path | None = None  # write all figures into this file, as JSON

    def __post_init__(self):
        wrong = next((part for part in self.parts if part not in PARTS), None)
        if wrong is not None:
            raise ValueError(f"there is no part {wrong}: choose from {', '.join(PARTS)}")
        if self.clock not in ("wall", "cpu"):
            raise ValueError(f"the clock is wall or cpu, not {self.clock}")
        if self.rounds < 1:
            raise ValueError(f"rounds must be 1 or more, not {self.rounds}")

    @property
    def seconds(self):
        """The clock's function."""
        return time.process_time if self.clock == "cpu" else time.perf_counter

    def sizes(self, part):
        """Sizes of the model and target tokens in a batch."""
        return (QUICK, 64) if self.quick else {**TRAINING, **ON_A_GPU}[part]


# %%
def measure_training(b, part, P_drop=0.1, spread=0.18):
    """Tokens a second of every system in training a part's model; b is a `Bench`."""
    sizes, tokens = b.sizes(part)
    c, device = TransformerConfig(**sizes, P_drop=P_drop), choose_device(b.device)
    updates, rounds = (1 if device.type == "cpu" else 20), 1 if b.quick else b.rounds
    batches = draw_batches(c.vocab_size, tokens, updates * rounds, device, spread)
    counts = [real_tokens(batch) for batch in batches]

    def work(system):
        def train(number):
            own = range(number * updates, (number + 1) * updates)
            for i in own:
                system.update(batches[i], counts[i])
            return sum(counts[i] for i in own)
        return train

    systems = make_systems(c, available(), device, b.compile)
    works = {(name, precision): work(system.prepare(choose_precision(device)))
             for name, system in systems.items() for precision in precisions(device)}
    rows = rows_of(in_turns(works, rounds, device, b.seconds))
    return {"model": sizes, "P_drop": P_drop, **described(c, batches, counts), "rows": rates_in_flops(c, batches, counts, rows)}


# %%
def described(c, batches, counts):
    """Average tokens of batches, and the part of their places that is padding."""
    return {"batch_tokens": round(sum(counts) / len(counts)),
            "padding": round(1 - sum(counts) / sum(batch.gold.numel() for batch in batches), 3)}


def rates_in_flops(c, batches, counts, rows):
    """Rows with their rate in GFLOP/s, counted on real tokens."""
    flops = sum(flops_of(c, batch) for batch in batches) / sum(counts)
    return [{**row, "gflops_per_second": round(row["tokens_per_second"] * flops / 1e9, 2)} for row in rows]


# %% [markdown]
# In decoding every output has fifty tokens: the end mark is one that no search may write. Before the clock starts, this package lays out its
# weights, as `translate` does once for all its sentences.

# %%
def measure_decoding(b, part):
    """Tokens a second of every system in decoding 64 sentences of 30 tokens to 50 tokens each."""
    c, beam, device = TransformerConfig(**b.sizes("T1")[0], eos_id=0), DECODING[part], choose_device(b.device)
    sentences, length = (4, 5) if b.quick else (64, LENGTH)
    source = torch.randint(3, c.vocab_size, (sentences, length), generator=torch.Generator().manual_seed(SEED)).to(device)
    names = [name for name in available(WORDS) if (beam == 1 or name != "torch") and (device.type == "cpu" or name != "ctranslate2")]
    systems = make_systems(c, names, device)

    def work(system):
        def decode(number):
            with autocast(device, choose_precision(device)):
                return sum(map(len, system.greedy(source) if beam == 1 else system.beam(source)))
        return decode

    works = {(name, precision): work(system) for name, system in systems.items()
             for precision in (precisions(device) if name != "ctranslate2" else ("highest",))}
    with packed_weights(systems["fast"].model), shared_caches(systems["fast"].model):
        rates = in_turns(works, 1 if b.quick else min(3, b.rounds), device, b.seconds)
    return {"model": b.sizes("T1")[0], "beam": beam, "sentences": sentences, "tokens_each": length + EXTRA, "rows": rows_of(rates)}


# %% [markdown]
# Peak memory is a property of a process: each system gets one of its own. So does attention over long inputs, which may die of it.

# %%
def in_a_process(function, **arguments):
    """What a function of this module returns in a new process, or None, with the reason on standard error, where that died."""
    program = "import json, sys; from transformer import speed; " \
              "print(json.dumps(getattr(speed, sys.argv[1])(**json.loads(sys.argv[2]))))"
    done = subprocess.run([sys.executable, "-c", program, function, json.dumps(arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{function}({arguments}) ended with status {done.returncode}. {done.stderr[-300:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


# %%
def memory_of(name, sizes, tokens, device):
    """Peak memory of three updates: in all, and above what the process held before the model was made (GiB)."""
    if name == "marian":
        import transformers  # noqa: F401     not counted as the model's
    device = torch.device(device)
    before = peak_memory(device)
    system = make_systems(TransformerConfig(**sizes), [name], device)[name].prepare(choose_precision(device))
    for batch in draw_batches(sizes["vocab_size"], tokens, 3, device):
        system.update(batch, real_tokens(batch))
    peak = peak_memory(device)
    return {"system": name, "peak_gib": round(peak, 3), "above_start_gib": round(peak - before, 3)}


# %%
def attention_of(form, n, device, clock="wall"):
    """Seconds and peak memory of attention forwards and backwards over n positions: 1 sentence, 8 heads, d_k = 64."""
    device = torch.device(device)
    before, kernel = peak_memory(device), F.scaled_dot_product_attention
    torch.manual_seed(SEED)
    q, k, v = (torch.randn(1, 8, n, 64, device=device, requires_grad=True) for _ in range(3))

    def once():
        with autocast(device, choose_precision(device)):
            output = kernel(q, k, v) if form == "kernel" else scaled_dot_product_attention(q, k, v)[0]
        output.sum().backward()

    seconds = min(seconds_of(once, device, Bench(clock=clock).seconds)[0] for _ in range(3))
    return {"form": form, "n": n, "seconds": round(seconds, 5), "above_start_gib": round(peak_memory(device) - before, 3)}


# %%
def bundled_learning(quick):
    """`measure_learning` on the bundled corpus, on the CPU: 1,000 updates."""
    tokenizer = Tokenizer.load(bundled_folder() / "tokenizer.json")
    training, validation = (encode_pairs(tokenizer, read_corpus("bundled", split)) for split in ("train", "validation"))
    sizes = QUICK if quick else dict(N=2, d_model=128, d_ff=256, h=4)
    c = TransformerConfig(**{**sizes, "vocab_size": tokenizer.vocab_size}, P_drop=0.1)
    return measure_learning(c, training, validation[:40] if quick else validation, 4 if quick else 1000)


# %%
def measure(b, part):
    """One part's figures."""
    device = choose_device(b.device)
    if part in DECODING:
        return measure_decoding(b, part)
    if part == "levers":
        return measure_levers(*b.sizes("small"), 1 if b.quick else b.rounds, device, b.seconds)
    if part == "learning":
        return bundled_learning(b.quick)
    if part == "memory":
        sizes, tokens = b.sizes("T1")
        return [in_a_process("memory_of", name=name, sizes=sizes, tokens=tokens, device=str(device)) for name in available()]
    if part == "attention":
        return [in_a_process("attention_of", form=form, n=n, device=str(device), clock=b.clock)
                for n in ((32, 64) if b.quick else (512, 1024, 2048, 4096, 8192)) for form in ("naive", "kernel")]
    if part == "products":
        sizes, tokens = b.sizes("T1")
        return measure_products(TransformerConfig(**sizes), tokens, device, b.seconds)
    return {"dropout": measure_training(b, part), "no_dropout": measure_training(b, part, P_drop=0.0),
            "similar_lengths": measure_training(b, part, spread=0.0)}


# %%
def fraction_of_peak(parts):
    """The part of the fastest fp32-class route of `products` that T1 reaches, by system; {} where either is missing."""
    if "T1" not in parts or "products" not in parts:
        return {}
    peak = max(row["gflops_per_second"] for row in parts["products"] if row["fp32_class"])
    return {kind: {f"{row['system']} {row['matmul']}": round(row["gflops_per_second"] / peak, 3)
                   for row in figure["rows"]} for kind, figure in parts["T1"].items()}


# %%
def run_bench(b, command=""):
    """Measure the parts that a `Bench` names, printing as they come; everything for the JSON, written where it says."""
    warnings.filterwarnings("ignore", "The PyTorch API of nested tensors")  # nn.Transformer's encoder uses them
    device, started, parts = choose_device(b.device), time.monotonic(), {}
    if b.record is not None:
        prepare_folder(b.record.parent, "--record")
    if device.type == "cuda":
        allow_tf32()
    for name in NEEDS:
        if not available([name]):
            print(f"{WORDS[name]} is left out: pip install {NEEDS[name]} brings it\n")
    for part in b.parts or [part for part in PARTS if part != "learning" and (part not in ON_A_GPU or device.type == "cuda")]:
        try:
            parts[part] = measure(b, part)
            print(shown(part, parts[part]), flush=True)
        except torch.cuda.OutOfMemoryError:
            print(f"{part} is left out: it does not fit into this GPU's memory\n", flush=True)
        if device.type == "cuda":
            torch.cuda.empty_cache()  # "memory" and "attention" are processes of their own
        result = {"command": command, **circumstances(b, device), "parts": parts,
                  "fraction_of_peak": fraction_of_peak(parts) if device.type == "cpu" else {},  # a GPU trains in bf16
                  "minutes": round((time.monotonic() - started) / 60, 1)}
        if b.record is not None:  # after every part: a run that is stopped keeps what it has
            write_json(b.record, result)
    print(f"{result['hardware']}; {result['minutes']} minutes")
    return result


# %%
def circumstances(b, device):
    """What a figure needs beside it to be judged."""
    from importlib.metadata import version

    versions = {name: version(package).partition("+")[0] for name, package in [("torch", "torch"), *(
        (package, package) for name, package in NEEDS.items() if available([name]))]}
    return {"commit": git_commit(), "hardware": hardware_in_words(device), "threads": torch.get_num_threads(),
            "load_average": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None, **versions,
            "clock": b.clock, "seed": SEED, "rounds": b.rounds, "epsilon_ls": EPSILON, "compiled": b.compile, "quick": b.quick}


# %% [markdown]
# ### What was measured
#
# The files that are read here were written by the commands that they name, on the machine that they name. "x torch" says how many
# times as fast this package is as `torch.nn.Transformer` (the median over the rounds), "m." compares with its run at medium. Of attention, "naive" is the formula of notebook 04
# and "kernel" is torch's; of the products, "packed" is oneDNN with the weight laid out beforehand. These two parts count the best round, not the median. The CPU of `bench.json` is not the one that ran the
# cells above: there bf16 is faster than fp32.

# %% tags=["active-ipynb"]
# files = sorted((data_folder() / "runs").glob("*bench*.json"))
# for path in files:
#     bench = json.loads(path.read_text(encoding="utf8"))
#     print(f"{path.name}: {bench['command']}\n{bench['hardware']}, {bench['minutes']} minutes, commit {bench['commit']}\n")
#     print("\n".join(shown(part, figures) for part, figures in bench["parts"].items()))
#     for kind, fractions in bench["fraction_of_peak"].items():
#         print(f"T1 {kind}, part of the fastest fp32 route:", ", ".join(f"{name} {value:.0%}" for name, value in fractions.items()))
# if not files:
#     print("not measured yet: transformer bench --record data/runs/bench.json")

# %% [markdown]
# Was it worth it? On the two threads of `bench.json`, with dropout, and each system at whichever of "highest" and "medium" was faster for it:
#
# - **Training** is 1.5 times as fast as with `torch.nn.Transformer` for T1, 1.8 times for T2, 2.7 times for "small"; over Marian 1.3, 2.0 and 2.3 times. Without "medium", as `transformer train` runs by itself, it is 1.3, 1.5 and 2.5 times torch's speed, and 1.0, 1.6 and 2.1 times Marian's. (Fused Adam
#   is a part of this; every user of torch can have it by one argument.)

# %% [markdown]
# - **Greedy search** is 11 times as fast as with torch's module, which keeps no keys and values. Marian keeps them: there it is 1.1 times (0.96 to 1.3 in single rounds). **Beam search**
#   is 1.5 times as fast as Marian's. From CTranslate2 neither differs by more than the rounds do (medians 1.1, and 0.85 with a beam; rounds 0.95 to 1.15, and 0.7 to 1.3). The beam search has become faster since (notebook 15).
# - **Memory** for training T1 is 0.67 times that of torch's module, counted above the start.

# %% [markdown]
# Is part of the gain cheaper dropout? Without any, the three are 1.2, 2.0 and 2.2 times: less for two, more for T2. With dropout and no padding on either side they are 1.4, 1.9 and 1.8. Rounds of
# one system often differ by a third, in places by a factor of two. The last lines above (each system's FLOPs a second on real tokens, as a part of the fastest fp32 route in
# "products") suffer from that, too. T1 without padding reaches as many FLOPs a second as bare products do, which cannot be: the machine was probably slower when those were measured, so these parts are too large.

# %% [markdown]
# "medium" speeds our training up by 8% to a third, and mostly slows torch's module in training, and our beam search, which lays out its weights by itself.
#
# What surprised us: the plain package, which copies its caches and packs no weights, reaches
# two thirds of CTranslate2's speed in beam search. What copying costs (notebook 11 found almost half the time) does not show here.

# %% [markdown]
# ## Exercises
#
# Replace `...` and run the cell; it stays silent when you are right.
#
# **1.** A batch has sentences of 10, 20 and 30 tokens. Which part of its places is padding? And if each length had a batch of its own?

# %% tags=["active-ipynb"]
# your_padding = ..., ...
# if your_padding[0] is not ...:
#     together = collate([([5] * 9 + [2], [1] + [5] * (n - 1) + [2]) for n in (10, 20, 30)])
#     assert abs(your_padding[0] - (1 - real_tokens(together) / together.gold.numel())) < 0.01 and your_padding[1] == 0

# %% [markdown]
# <details><summary>Solution</summary>
#
# `your_padding = 1 / 3, 0`: three rows of 30 places hold 60 tokens. A third of the work would be for nothing; that is why `transformer train` sorts by length.
# </details>
#
# **2.** Softmax and cross-entropy make a fifth of an update's time. You make them infinitely fast. How many times as fast does the update become?

# %% tags=["active-ipynb"]
# your_gain = ...
# if your_gain is not ...:
#     times = {"softmax and loss": 0.2, "all else": 0.8}
#     assert abs(your_gain - sum(times.values()) / times["all else"]) < 0.01

# %% [markdown]
# <details><summary>Solution</summary>
#
# `your_gain = 1.25`: what remains takes 0.8 of the time. This is Amdahl's law, and the reason why no single lever does it.
# </details>

# %% [markdown]
# ## Next
#
# Your model in CTranslate2: `transformer export --folder runs/multi30k --output exported` (once notebook 16's run is there). The way back to the beginning is the
# [README](https://github.com/OWNER/annotated-attention#readme), with all the notebooks in order.
