"""The parts of `transformer bench`, but for levers and learning, which have files of their own."""

from functools import partial

import torch
import torch.nn.functional as F

from transformer.bench.harness import compare, in_a_process, precisions, updates_of
from transformer.bench.peers import EXTRA, SEARCHES, TRAINED, available, make_systems
from transformer.bench.settings import DECODING, Bench, EndlessConfig
from transformer.core.records import flatten
from transformer.fast.attention import scaled_dot_product_attention
from transformer.fast.model import TransformerConfig
from transformer.fast.packed import PackedLinear, packed
from transformer.hardware import (
    autocast,
    choose_precision,
    matmul_precision,
    peak_memory,
)
from transformer.speed import SEED, draw_batches, in_turns, real_tokens, seconds_of

LENGTH = 30  # tokens of a sentence to translate


def measure_training(b: Bench, part: str, device: torch.device) -> list[dict]:
    """Tokens a second of every system in training a part's model."""
    sizes, tokens, updates = b.sizes(part)
    c = TransformerConfig(**sizes, P_drop=0.1)
    batches = draw_batches(c.vocab_size, tokens, updates * b.rounds, device)
    works = {}
    for name, system in make_systems(c, available(TRAINED), device, b.compile).items():
        work = updates_of(system.prepare(choose_precision(device)), batches, updates)
        works.update({(name, precision): work for precision in precisions(device)})
    tokens = sum(real_tokens(batch) for batch in batches)
    places = sum(batch.gold.numel() for batch in batches)
    shared = flatten(
        {
            "kind": "dropout",
            "model": sizes,
            "P_drop": c.P_drop,
            "updates_a_round": updates,
            "batch_tokens": round(tokens / len(batches)),
            "padding": round(1 - tokens / places, 3),
        }
    )
    return [{**shared, **row} for row in compare(works, b.rounds, device, b.seconds)]


def decoding_works(systems: dict, source, beam: int, device: torch.device) -> dict:
    """{(system, precision): what decodes the source with it}."""

    def work(system):
        def decode(number):
            with autocast(device, choose_precision(device)):
                return sum(map(len, system.search(source, beam)))

        return decode

    return {
        (name, precision): work(system)
        for name, system in systems.items()
        for precision in precisions(device)
        if not (name.startswith("ctranslate2") and precision == "medium")
    }


def measure_decoding(b: Bench, part: str, device: torch.device) -> list[dict]:
    """Tokens a second of every system in decoding 64 sentences of 30 tokens to 50 tokens each.

    Every output has fifty tokens: the end mark is one that no search may write. Before the clock
    starts, this package lays out its weights, as `translate` does once for all its sentences.
    """
    sizes = b.sizes("T1")[0]
    c = EndlessConfig(**sizes)
    beam = DECODING[part]
    sentences, length = (4, 5) if b.quick else (64, LENGTH)
    chance = torch.Generator().manual_seed(SEED)
    source = torch.randint(3, c.vocab_size, (sentences, length), generator=chance).to(
        device
    )
    systems = make_systems(c, searching(beam, device), device)
    systems["fast"].model = packed(systems["fast"].model)
    works = decoding_works(systems, source, beam, device)
    shared = flatten(
        {
            "model": sizes,
            "beam": beam,
            "sentences": sentences,
            "tokens_each": length + EXTRA,
        }
    )
    return [
        {**shared, **row} for row in compare(works, min(3, b.rounds), device, b.seconds)
    ]


def searching(beam: int, device) -> list[str]:
    """The systems that search like this; CTranslate2 would need CUDA libraries of its own on a GPU."""
    return [
        name
        for name in available(SEARCHES)
        if (beam == 1 or name != "torch")
        and (device.type == "cpu" or not name.startswith("ctranslate2"))
    ]


def measure_memory(b: Bench, part: str, device: torch.device) -> list[dict | None]:
    """Peak memory of every system in training T1, each in a process of its own."""
    sizes, tokens, _ = b.sizes("T1")
    return [
        in_a_process(memory_of, name, sizes, tokens, str(device))
        for name in available()
    ]


def memory_of(name: str, sizes: dict, tokens: int, device: str) -> dict:
    """Peak memory of three updates: in all, and above what the process held before the model was
    made (GiB).
    """
    if name == "marian":
        import transformers  # noqa: F401     not counted as the model's
    device = torch.device(device)
    before = peak_memory(device)
    system = make_systems(TransformerConfig(**sizes), [name], device)[name]
    system.prepare(choose_precision(device))
    for batch in draw_batches(sizes["vocab_size"], tokens, 3, device):
        system.update(batch)
    peak = peak_memory(device)
    return {
        "system": name,
        "peak_gib": round(peak, 3),
        "above_start_gib": round(peak - before, 3),
    }


def measure_attention(b: Bench, part: str, device: torch.device) -> list[dict | None]:
    """Attention over longer and longer inputs, by 04's formula and by torch's kernel, each in a
    process of its own.
    """
    lengths = (32, 64) if b.quick else (512, 1024, 2048, 4096, 8192)
    return [
        in_a_process(attention_of, form, n, str(device), b.seconds)
        for n in lengths
        for form in ("naive", "kernel")
    ]


def attention_of(form: str, n: int, device: str, clock) -> dict:
    """Seconds and peak memory of attention forwards and backwards over n positions: 1 sentence, 8
    heads, d_k = 64.
    """
    device = torch.device(device)
    before = peak_memory(device)
    torch.manual_seed(SEED)
    q, k, v = (
        torch.randn(1, 8, n, 64, device=device, requires_grad=True) for _ in range(3)
    )

    def once():
        with autocast(device, choose_precision(device)):
            if form == "kernel":
                output = F.scaled_dot_product_attention(q, k, v)
            else:
                output = scaled_dot_product_attention(q, k, v)[0]
        output.sum().backward()

    seconds = min(seconds_of(once, device, clock)[0] for _ in range(3))
    return {
        "form": form,
        "n": n,
        "seconds": round(seconds, 5),
        "above_start_gib": round(peak_memory(device) - before, 3),
    }


def routes(x: torch.Tensor, weight: torch.Tensor) -> dict:
    """Every way of torch to compute x W^T in fp32, and bf16: {name: function}."""

    def plain(precision):
        with matmul_precision(precision):
            return x @ weight.T

    found = {"torch": partial(plain, "highest"), "medium": partial(plain, "medium")}
    if x.device.type == "cpu" and torch.backends.mkldnn.is_available():
        linear = torch.nn.Linear(*weight.shape[::-1], bias=False)
        linear.weight.data = weight
        found["packed"] = partial(PackedLinear(linear, rows=len(x)), x)
    short, short_weight = x.bfloat16(), weight.bfloat16()
    found["bf16"] = lambda: short @ short_weight.T
    return found


def product_shapes(c: TransformerConfig, rows: int) -> list[tuple[int, int, int]]:
    """(m, k, n) of products in a model's forward pass over so many tokens, and of one gradient of a
    weight.
    """
    return [
        (rows, c.d_model, c.d_model),
        (rows, c.d_model, c.d_ff),
        (rows, c.d_ff, c.d_model),
        (rows, c.d_model, c.vocab_size),
        (c.d_ff, rows, c.d_model),
    ]


def time_products(m: int, k: int, n: int, rounds: int, device, clock) -> dict:
    """{route: (seconds, relative error)} of a product of (m, k) and (k, n); the best round of those
    in turn counts.
    """
    chance = torch.Generator().manual_seed(SEED)
    x = torch.randn(m, k, generator=chance).to(device)
    weight = torch.randn(n, k, generator=chance).to(device)
    exact, ways = x.double() @ weight.double().T, routes(x, weight)
    once = {name: lambda number, way=way: len(way()) for name, way in ways.items()}
    rates = in_turns(once, rounds, device, clock)  # rows a second
    return {
        name: (m / max(rates[name]), ((way() - exact).norm() / exact.norm()).item())
        for name, way in ways.items()
    }


@torch.no_grad()
def measure_products(c: TransformerConfig, tokens: int, device, clock, rounds: int = 5):
    """GFLOP/s and relative error of each route over `product_shapes`; fp32_class: with fp32's
    error.
    """
    shapes = product_shapes(c, int(tokens / 0.85))
    found = [time_products(*shape, rounds, device, clock) for shape in shapes]
    flops = sum(2 * m * k * n for m, k, n in shapes)
    rows = []
    for name in found[0]:
        error = max(some[name][1] for some in found)
        seconds = sum(some[name][0] for some in found)
        rows.append(
            {
                "route": name,
                "gflops_per_second": round(flops / seconds / 1e9, 1),
                "error": float(f"{error:.2g}"),
                "fp32_class": error < 1e-5,
            }
        )
    return rows
