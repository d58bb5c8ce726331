"""`transformer bench`: one part after the other, printed as they come, and kept with what is needed
to judge them.
"""

import os
import time
import warnings
from importlib.metadata import version

import torch

from transformer.bench.learning import bundled_learning
from transformer.bench.levers import measure_levers
from transformer.bench.parts import (
    measure_attention,
    measure_decoding,
    measure_memory,
    measure_products,
    measure_training,
)
from transformer.bench.peers import EPSILON, NEEDS, available
from transformer.bench.settings import DECODING, ON_A_GPU, PARTS, Bench
from transformer.bench.tables import WORDS, shown
from transformer.experiments.records import flatten, write_rows
from transformer.files import git_commit, prepare_folder
from transformer.hardware import allow_tf32, choose_device
from transformer.model import TransformerConfig
from transformer.runs import hardware_in_words
from transformer.speed import SEED


def measure(b: Bench, part: str):
    """One part's figures."""
    if part in DECODING:
        return measure_decoding(b, part)
    if part == "learning":
        return bundled_learning(b.quick)
    if part == "memory":
        return measure_memory(b)
    if part == "attention":
        return measure_attention(b)
    device = choose_device(b.device)
    if part == "levers":
        return measure_levers(*b.sizes("small"), b.rounds, device, b.seconds)
    if part == "products":
        sizes, tokens, _ = b.sizes("T1")
        return measure_products(TransformerConfig(**sizes), tokens, device, b.seconds)
    return {"kind": "dropout", **measure_training(b, part)}


def asked_for(b: Bench, device) -> list[str]:
    """The parts to measure."""
    return list(b.parts) or [part for part in PARTS if part != "learning"
                             and (part not in ON_A_GPU or device.type == "cuda")]


def long_rows(part: str, figures) -> list[dict]:
    """A part's figures as rows of a record, with the settings that they share."""
    if isinstance(figures, list):
        return [{"part": part, **row} for row in figures if row]
    shared = flatten({name: value for name, value in figures.items() if name != "rows"})
    return [{"part": part, **shared, **row} for row in figures["rows"]]


def run_bench(b: Bench, command: str = "") -> list[dict]:
    """Measure the parts that a `Bench` names, printing as they come; the rows of the record,
    written where it says.
    """
    # nn.Transformer's encoder uses them
    warnings.filterwarnings("ignore", "The PyTorch API of nested tensors")
    device, started, measured = choose_device(b.device), time.monotonic(), []
    if b.record is not None:
        prepare_folder(b.record.parent, "--record")
    if device.type == "cuda":
        allow_tf32()
    for name in NEEDS:
        if not available([name]):
            print(f"{WORDS[name]} is left out: pip install {NEEDS[name]} brings it\n")
    for part in asked_for(b, device):
        try:
            rows = long_rows(part, measure(b, part))
            measured += rows
            print(shown(part, rows), flush=True)
        except torch.cuda.OutOfMemoryError:
            print(f"{part} is left out: it does not fit into this GPU's memory\n", flush=True)
        if device.type == "cuda":
            torch.cuda.empty_cache()  # "memory" and "attention" are processes of their own
        about = {"command": command, **circumstances(b, device),
                 "minutes": round((time.monotonic() - started) / 60, 1)}
        rows = [{**about, **row} for row in measured]
        # after every part: a run that is stopped keeps what it has
        if b.record is not None and rows:
            write_rows(b.record, rows)
    print(f"{about['hardware']}; {about['minutes']} minutes")
    return rows


def circumstances(b: Bench, device) -> dict:
    """What a figure needs beside it to be judged."""
    packages = ["torch", *sorted({NEEDS[name] for name in NEEDS if available([name])})]
    versions = {package: version(package).partition("+")[0] for package in packages}
    load = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    return {"commit": git_commit(), "hardware": hardware_in_words(device),
            "threads": torch.get_num_threads(), "load_average": load, **versions,
            "clock": b.clock, "seed": SEED, "rounds": b.rounds, "epsilon_ls": EPSILON,
            "compiled": b.compile, "quick": b.quick}
