"""Speed and memory of this package beside torch.nn.Transformer and Hugging Face's Marian, in one run.

    python tools/bench.py                      everything; writes data/runs/bench.json (make bench)
    python tools/bench.py T1 T3 --result ""    some parts, only printed
    python tools/bench.py --quick --result ""  everything with tiny sizes, to see that it works
    python tools/bench.py --clock cpu          seconds of the processor, where others use the machine, too

T1, T2, small   training: real target tokens a second, with dropout and without (on a GPU also: base, big)
T3, T4          decoding with T1's model, greedily and with a beam of 4: 64 sentences of 30 tokens to 50 tokens each
memory          the most memory of some updates of T1, each system in a process of its own
attention       attention over 512 to 8,192 positions, forwards and backwards: written out, and torch's kernel
products        matrix products of T1's shapes by every route that torch has, and which part of the fastest T1 reaches

All systems get the same batches, take turns, and the median of the rounds counts; the first round warms up. A batch has
lengths of its own and about 15% padding. The peers are what their users would write: torch's Adam as it comes, logits
of the whole batch, label smoothing 0.1. Dropout is in the paper's places everywhere: nn.Transformer's on attention
weights and inside the network is switched off, as are its final norms. Biases of attention stay on. Before the clock of
T3 and T4 starts, this package lays out its weights for decoding, as `translate` does once for all sentences.
"medium" is torch.set_float32_matmul_precision("medium"): oneDNN multiplies. Marian needs pip install -e '.[bench]'.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from transformer.attention import causal_mask, scaled_dot_product_attention  # noqa: E402
from transformer.data import collate  # noqa: E402
from transformer.decoding import beam_search, greedy_search  # noqa: E402
from transformer.hardware import (  # noqa: E402
    accelerate,
    allow_tf32,
    autocast,
    choose_device,
    choose_precision,
    compile_stacks,
    loss_scaler,
    packed_linear,
    packed_weights,
    peak_memory,
    training_flops,
    wait_for,
)
from transformer.model import Transformer, TransformerConfig  # noqa: E402
from transformer.optimizer import adam  # noqa: E402
from transformer.positions import SinusoidalPositions  # noqa: E402
from transformer.training import Objective, update_weights  # noqa: E402
from transformer.translation import git_commit, hardware_in_words, write_json  # noqa: E402

SEED, EPSILON, RATE, LENGTH, EXTRA = 2017, 0.1, 1e-4, 30, 20
BIG = dict(d_model=1024, d_ff=4096, h=16)
TRAINING = {"T1": (dict(vocab_size=8000), 2048),  # sizes, target tokens in a batch
            "T2": (dict(vocab_size=8000, N=3, d_model=256, d_ff=1024, h=4), 4096),
            "small": (dict(vocab_size=10_000, N=4, d_model=128, d_ff=256, h=4), 4096)}
ON_A_GPU = {"base": (dict(vocab_size=37_000), 25_000), "big": (dict(vocab_size=37_000, **BIG), 25_000)}
DECODING = {"T3": 1, "T4": 4}  # beam
PARTS = [*TRAINING, *ON_A_GPU, *DECODING, "memory", "attention", "products"]
QUICK = dict(vocab_size=60, N=1, d_model=16, d_ff=32, h=2)


# The systems. Each holds a model and can: `update` it on a batch, search `greedy`, and with a `beam`.

class System(nn.Module):
    """What the peers share: a loss from logits, and an update as their users write it."""

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
        self.optimizer.zero_grad()
        with autocast(batch.source.device, self.precision):
            loss = self.loss(batch) / tokens
        loss.backward()
        self.optimizer.step()
        return loss.item()


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


class Fast(Plain):
    """This package as `transformer train` and `transformer translate` run it."""

    def __init__(self, c):
        super().__init__(c)
        accelerate(self.model)

    def prepare(self, precision="fp32"):
        self.objective, self.optimizer = Objective(self.model, EPSILON, precision), adam(self.model)
        self.scaler = loss_scaler(next(self.parameters()).device, precision)
        return self.train()

    def update(self, batch, tokens):
        return update_weights(self.objective, self.optimizer, self.scaler, [(SEED, batch)], tokens, RATE)[0]


class Torch(System):
    """torch.nn.Transformer with tied embeddings times sqrt(d_model) and sinusoids around it."""

    def __init__(self, c):
        super().__init__()
        self.c, self.dropout = c, nn.Dropout(c.P_drop)
        self.embedding = nn.Embedding(c.vocab_size, c.d_model)
        self.positions = SinusoidalPositions(c.max_positions, c.d_model)
        nn.init.normal_(self.embedding.weight, std=c.d_model**-0.5)
        self.model = nn.Transformer(c.d_model, c.h, c.N, c.N, c.d_ff, c.P_drop, batch_first=True)
        self.model.encoder.norm = self.model.decoder.norm = None
        for layer in [*self.model.encoder.layers, *self.model.decoder.layers]:
            layer.dropout.p = layer.self_attn.dropout = 0.0
            if hasattr(layer, "multihead_attn"):
                layer.multihead_attn.dropout = 0.0

    def embed(self, tokens):
        return self.dropout(self.positions(self.embedding(tokens) * self.c.d_model**0.5))

    def states(self, target, memory, source):
        unseen = ~causal_mask(target.shape[1], target.device)
        return self.model.decoder(self.embed(target), memory, unseen, tgt_is_causal=True,
                                  memory_key_padding_mask=source == self.c.pad_id)

    def logits(self, batch):
        memory = self.model.encoder(self.embed(batch.source), src_key_padding_mask=batch.source == self.c.pad_id)
        return F.linear(self.states(batch.decoder_input, memory, batch.source), self.embedding.weight)

    @torch.no_grad()
    def greedy(self, source):
        """It has no cache: each step computes all positions again; the memory is computed once."""
        self.eval()
        memory = self.model.encoder(self.embed(source), src_key_padding_mask=source == self.c.pad_id)
        output = torch.full((len(source), 1), self.c.bos_id, device=source.device)
        for _ in range(source.shape[1] + EXTRA):
            logits = F.linear(self.states(output, memory, source)[:, -1], self.embedding.weight)
            logits[:, self.c.pad_id] = -torch.inf
            output = torch.cat([output, logits.argmax(dim=-1, keepdim=True)], dim=1)
        return output[:, 1:].tolist()


class Marian(System):
    """Hugging Face's MarianMTModel, decoding by its `generate`."""

    def __init__(self, c):
        super().__init__()
        os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
        from transformers import MarianConfig, MarianMTModel

        both = {f"{side}_{name}": value for side in ("encoder", "decoder")
                for name, value in (("layers", c.N), ("ffn_dim", c.d_ff), ("attention_heads", c.h))}
        self.model = MarianMTModel(MarianConfig(
            vocab_size=c.vocab_size, d_model=c.d_model, **both, dropout=c.P_drop, attention_dropout=0.0,
            activation_dropout=0.0, activation_function="relu", scale_embedding=True, pad_token_id=c.pad_id,
            bos_token_id=c.bos_id, eos_token_id=c.eos_id, decoder_start_token_id=c.bos_id, forced_eos_token_id=None,
            max_position_embeddings=c.max_positions))
        self.c = c

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


SYSTEMS = {"plain": Plain, "fast": Fast, "torch": Torch, "marian": Marian}
WORDS = {"plain": "this package, plain", "fast": "this package, as it runs", "torch": "torch.nn.Transformer",
         "marian": "Marian (transformers)"}


def available():
    """The systems that can be made here."""
    return [name for name in SYSTEMS if name != "marian" or importlib.util.find_spec("transformers")]


# What they work on

def draw_batches(vocab_size, tokens, count, device):
    """Batches of about so many real target tokens: random ids, lengths of 25 to 35 on average, within a fifth of it."""
    chance = torch.Generator().manual_seed(SEED)

    def ids(mean):
        n = torch.randint(round(0.82 * mean), round(1.18 * mean) + 1, (), generator=chance).item()
        return torch.randint(3, vocab_size, (n - 1,), generator=chance).tolist()

    batches = []
    for _ in range(count):
        mean = torch.randint(25, 36, (), generator=chance).item()
        batches.append(collate([([*ids(mean), 2], [1, *ids(mean), 2]) for _ in range(max(1, round(tokens / mean)))]))
    return [batch.to(device) for batch in batches]


def real_tokens(batch):
    """Target tokens that count in the loss."""
    return int((batch.gold != 0).sum())


def flops_of(c, batch):
    """FLOPs of an update on a batch's real tokens; see `transformer.hardware.training_flops`."""
    lengths = zip((batch.source != 0).sum(dim=1).tolist(), (batch.gold != 0).sum(dim=1).tolist())
    return sum(training_flops(c, S, T) for S, T in lengths)


# Measuring

@contextmanager
def matmul_precision(name):
    """Inside this block fp32 products are done at "highest" or "medium" precision."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def seconds_of(work, device, clock):
    wait_for(device)
    started = clock()
    work()
    wait_for(device)
    return clock() - started


def in_turns(works, rounds, device, clock):
    """{row: tokens a second in each round}; works: {(system, matmul precision): function of the round -> tokens}."""
    rates = {row: [] for row in works}
    for number in range(-1, rounds):  # the first one warms up
        for (system, precision), work in works.items():
            with matmul_precision(precision):
                wait_for(device)
                started = clock()
                tokens = work(max(0, number))
                wait_for(device)
                seconds = max(1e-9, clock() - started)
            if number >= 0:
                rates[system, precision].append(tokens / seconds)
    return rates


def rows_of(rates):
    """The table's rows: median tokens a second, and how that compares with the peers at the same matmul precision."""
    middle = {row: statistics.median(values) for row, values in rates.items()}
    rows = []
    for (system, precision), values in rates.items():
        row = {"system": system, "matmul": precision, "tokens_per_second": round(middle[system, precision], 1),
               "rounds": [round(value, 1) for value in values]}
        row.update({f"over_{peer}_{other}": round(middle[system, precision] / middle[peer, other], 3)
                    for peer, other in middle if peer in ("torch", "marian") and system in ("plain", "fast")})
        rows.append(row)
    return rows


def precisions(device):
    """Matmul precisions to compare: on a GPU products are bf16 anyway."""
    return ("highest", "medium") if device.type == "cpu" else ("highest",)


def make_systems(c, names, device, compiled):
    """The named systems, each from the same seed."""
    made = {}
    for name in names:
        torch.manual_seed(SEED)
        made[name] = SYSTEMS[name](c).to(device)
        if compiled and name == "fast":
            compile_stacks(made[name].model)
        elif compiled and name != "plain":
            made[name].model.compile(dynamic=True)
    return made


def measure_training(sizes, tokens, P_drop, options):
    """Tokens a second of every system in training."""
    c = TransformerConfig(**sizes, P_drop=P_drop)
    device, updates = options.device, 1 if options.device.type == "cpu" else 20
    batches = draw_batches(c.vocab_size, tokens, updates * options.rounds, device)
    counts = [real_tokens(batch) for batch in batches]
    systems = make_systems(c, available(), device, options.compile)
    for system in systems.values():
        system.prepare(choose_precision(device))

    def work(system):
        def train(number):
            own = range(number * updates, (number + 1) * updates)
            for i in own:
                system.update(batches[i], counts[i])
            return sum(counts[i] for i in own)
        return train

    works = {(name, precision): work(system) for name, system in systems.items() for precision in precisions(device)}
    rows = rows_of(in_turns(works, options.rounds, device, options.clock))
    flops = sum(flops_of(c, batch) for batch in batches) / sum(counts)  # a real target token
    for row in rows:
        row["gflops_per_second"] = round(row["tokens_per_second"] * flops / 1e9, 2)
    places = sum(batch.gold.numel() for batch in batches)
    return {"model": sizes, "batch_tokens": round(sum(counts) / len(counts)),
            "padding": round(1 - sum(counts) / places, 3), "P_drop": P_drop, "rows": rows}


def measure_decoding(sizes, beam, options):
    """Tokens a second of every system in decoding: no output ends before the limit."""
    c = TransformerConfig(**sizes, eos_id=0)  # padding, which no search writes
    device = options.device
    sentences, length = (4, 5) if options.quick else (64, LENGTH)
    chance = torch.Generator().manual_seed(SEED)
    source = torch.randint(3, c.vocab_size, (sentences, length), generator=chance).to(device)
    systems = make_systems(c, [n for n in available() if beam == 1 or n != "torch"], device, compiled=False)

    def work(system):
        def decode(number):
            with autocast(device, choose_precision(device)):
                outputs = system.greedy(source) if beam == 1 else system.beam(source)
            return sum(map(len, outputs))
        return decode

    works = {(name, precision): work(system) for name, system in systems.items() for precision in precisions(device)}
    with packed_weights(systems["fast"].model):
        rates = in_turns(works, min(3, options.rounds), device, options.clock)
    return {"model": sizes, "beam": beam, "sentences": sentences, "tokens_each": length + EXTRA, "rows": rows_of(rates)}


# In a process of its own

def memory_of(name, options):
    """Peak memory of three updates of T1: in all, and above what the process held before the model was made (GiB)."""
    sizes, tokens = T1(options)
    if name == "marian":
        import transformers  # noqa: F401     not counted as the model's
    before, device = peak_memory(options.device), options.device
    system = make_systems(TransformerConfig(**sizes), [name], device, False)[name].prepare(choose_precision(device))
    for batch in draw_batches(sizes["vocab_size"], tokens, 3, device):
        system.update(batch, real_tokens(batch))
    peak = peak_memory(device)
    return {"system": name, "peak_gib": round(peak, 3), "above_start_gib": round(peak - before, 3)}


def attention_of(form, n, options):
    """Seconds and peak memory of attention forwards and backwards over n positions: 1 sentence, 8 heads, d_k = 64."""
    before, device = peak_memory(options.device), options.device
    torch.manual_seed(SEED)
    kernel = F.scaled_dot_product_attention
    q, k, v = (torch.randn(1, 8, n, 64, device=device, requires_grad=True) for _ in range(3))

    def once():
        with autocast(device, choose_precision(device)):
            output = kernel(q, k, v) if form == "kernel" else scaled_dot_product_attention(q, k, v)[0]
        output.sum().backward()

    seconds = min(seconds_of(once, device, options.clock) for _ in range(3))
    return {"form": form, "n": n, "seconds": round(seconds, 5),
            "above_start_gib": round(peak_memory(device) - before, 3)}


def in_a_process(arguments, options):
    """Run this script with --child arguments; what it printed, or None where it died (of memory, say)."""
    more = ["--quick"] * options.quick + ["--device", str(options.device)] + ["--clock", options.clock_name]
    command = [sys.executable, __file__, *more, "--child", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def child(arguments, options):
    """What such a process does: memory SYSTEM, or attention FORM n."""
    kind, name, *rest = arguments
    print(json.dumps(memory_of(name, options) if kind == "memory" else attention_of(name, int(rest[0]), options)))


# Products

def routes(x, weight):
    """Every way of torch to compute x W^T in fp32, and bf16: {name: (matmul precision, function)}."""
    found = {"torch": ("highest", lambda: x @ weight.T), "medium": ("medium", lambda: x @ weight.T)}
    if x.device.type == "cpu" and torch.backends.mkldnn.is_available():
        packed = packed_linear(weight, rows=len(x))
        found["packed"] = "highest", lambda: packed(x)
    short, short_weight = x.bfloat16(), weight.bfloat16()
    found["bf16"] = "highest", lambda: short @ short_weight.T
    return found


@torch.no_grad()
def measure_products(options, rounds=5):
    """GFLOP/s and relative error of each route over the products of T1's forward and backward pass."""
    sizes, tokens = T1(options)
    c, rows = TransformerConfig(**sizes), int(tokens / 0.85)
    shapes = [(rows, c.d_model, c.d_model), (rows, c.d_model, c.d_ff), (rows, c.d_ff, c.d_model),
              (rows, c.d_model, c.vocab_size), (c.d_ff, rows, c.d_model)]  # the last: a gradient of a weight
    best, errors, flops = {}, {}, 0
    for m, k, n in shapes:
        chance = torch.Generator().manual_seed(SEED)
        x, weight = (torch.randn(*shape, generator=chance).to(options.device) for shape in ((m, k), (n, k)))
        exact, ways = x.double() @ weight.double().T, routes(x, weight)
        flops += 2 * m * k * n
        times = {name: [] for name in ways}
        for _ in range(rounds + 1):
            for name, (precision, way) in ways.items():
                with matmul_precision(precision):
                    times[name].append(seconds_of(way, options.device, options.clock))
        for name, (precision, way) in ways.items():
            with matmul_precision(precision):
                error = ((way() - exact).norm() / exact.norm()).item()
            best[name] = best.get(name, 0.0) + max(min(times[name][1:]), 1e-9)
            errors[name] = max(errors.get(name, 0.0), error)
    return [{"route": name, "gflops_per_second": round(flops / seconds / 1e9, 1), "error": float(f"{errors[name]:.2g}"),
             "fp32_class": errors[name] < 1e-5} for name, seconds in best.items()]


def T1(options):
    """Sizes and tokens of T1."""
    return (QUICK, 64) if options.quick else TRAINING["T1"]


# The parts, and what is printed

def measure(part, options):
    """One part's figures."""
    if part in DECODING:
        return measure_decoding(T1(options)[0], DECODING[part], options)
    if part == "memory":
        return [in_a_process(["memory", name], options) for name in available()]
    if part == "attention":
        lengths = (32, 64) if options.quick else (512, 1024, 2048, 4096, 8192)
        return [in_a_process(["attention", form, n], options) for n in lengths for form in ("naive", "kernel")]
    if part == "products":
        return measure_products(options)
    sizes, tokens = T1(options) if options.quick else {**TRAINING, **ON_A_GPU}[part]
    return {"dropout": measure_training(sizes, tokens, 0.1, options),
            "no_dropout": measure_training(sizes, tokens, 0.0, options)}


def table(title, rows):
    """Rows of dicts as lines of text; lists are left out."""
    rows = [row for row in rows if row]
    names = [name for name, value in (rows[0] if rows else {}).items() if not isinstance(value, list)]
    cells = [names, *([str(row.get(name, "")) for name in names] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(names))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells)
    return "\n  ".join([title, *lines]) + "\n"


def shown(part, figures):
    """A part's tables."""
    if part in ("memory", "attention", "products"):
        return table(part, figures)
    kinds = figures if "dropout" in figures else {"": figures}
    return "\n".join(table(f"{part} {kind}".strip(), [
        {"system": f"{WORDS[row['system']]}{', medium' * (row['matmul'] == 'medium')}",
         **{name: value for name, value in row.items() if name not in ("system", "matmul")}} for row in figure["rows"]])
        for kind, figure in kinds.items())


def fraction_of_peak(parts):
    """The part of the fastest fp32-class route of `products` that T1 reaches, by system; {} where either is missing."""
    if "T1" not in parts or "products" not in parts:
        return {}
    peak = max(row["gflops_per_second"] for row in parts["products"] if row["fp32_class"])
    return {kind: {f"{row['system']} {row['matmul']}": round(row["gflops_per_second"] / peak, 3)
                   for row in figure["rows"]} for kind, figure in parts["T1"].items()}


def versions():
    from importlib.metadata import version

    names = ["torch", *(["transformers"] if "marian" in available() else [])]
    return {name: version(name).partition("+")[0] for name in names}


def run(names, options):
    """Measure the named parts, printing as they come; everything for the JSON."""
    started, parts = time.monotonic(), {}
    for name in names:
        parts[name] = measure(name, options)
        print(shown(name, parts[name]), flush=True)
    fractions = fraction_of_peak(parts)
    if fractions:
        print("T1, part of the fastest fp32-class product:", json.dumps(fractions))
    return {"command": options.command, "commit": git_commit(), "hardware": hardware_in_words(options.device),
            "threads": torch.get_num_threads(), "load_average": round(os.getloadavg()[0], 2), **versions(),
            "clock": options.clock_name, "seed": SEED, "rounds": options.rounds, "epsilon_ls": EPSILON,
            "compiled": options.compile, "quick": options.quick, "parts": parts, "fraction_of_peak": fractions,
            "minutes": round((time.monotonic() - started) / 60, 1)}


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="tiny sizes, one round")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of training (three of decoding)")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--device", default="auto", help="cpu or cuda")
    parser.add_argument("--compile", action="store_true", help="torch.compile on both sides (it needs a compiler)")
    parser.add_argument("--result", default=str(ROOT / "data" / "runs" / "bench.json"), help="empty: only print")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in PARTS:
            parser.error(f"there is no part {name}: choose from {', '.join(PARTS)}")
    given = sys.argv[1:] if arguments is None else arguments
    options.command = " ".join(["python tools/bench.py", *(word or '""' for word in given)])
    options.clock_name = options.clock
    options.clock = time.process_time if options.clock == "cpu" else time.perf_counter
    options.device = choose_device(options.device)
    options.rounds = 1 if options.quick else options.rounds
    return options


def main():
    options = parse()
    if options.device.type == "cuda":
        allow_tf32()
    if options.child:
        child(options.child, options)
        return
    warnings.filterwarnings("ignore", "The PyTorch API of nested tensors")  # nn.Transformer's encoder uses them
    if "marian" not in available():
        print("Marian is left out: pip install -e '.[bench]' brings it\n")
    names = options.names or [name for name in PARTS if name not in ON_A_GPU or options.device.type == "cuda"]
    result = run(names, options)
    if options.result:
        write_json(Path(options.result), result)
    print(f"{result['hardware']}; {result['minutes']} minutes")


if __name__ == "__main__":
    main()
