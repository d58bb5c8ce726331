"""`transformer bench`: one part after the other, printed as they come, and kept with what is needed
to judge them.
"""

import os
import time
import warnings
from importlib.metadata import version

import torch

from transformer.bench import parts
from transformer.bench.learning import bundled_learning
from transformer.bench.levers import measure_levers
from transformer.bench.peers import EPSILON, NEEDS, available
from transformer.bench.settings import DECODING, ON_A_GPU, TRAINING, Bench
from transformer.bench.tables import WORDS, shown
from transformer.core.files import git_commit, prepare_folder
from transformer.core.records import write_rows
from transformer.fast.model import TransformerConfig
from transformer.hardware import allow_tf32, choose_device
from transformer.runs.folder import hardware_in_words
from transformer.speed import SEED

# {part: function of (the settings, the part, the device) -> rows}
MEASURED = {
    **dict.fromkeys([*TRAINING, *ON_A_GPU], parts.measure_training),
    **dict.fromkeys(DECODING, parts.measure_decoding),
    "levers": lambda b, part, device: measure_levers(
        *b.sizes("small"), b.rounds, device, b.seconds
    ),
    "learning": lambda b, part, device: bundled_learning(b.quick),
    "memory": parts.measure_memory,
    "attention": parts.measure_attention,
    "products": lambda b, part, device: parts.measure_products(
        TransformerConfig(**b.sizes("T1")[0]), b.sizes("T1")[1], device, b.seconds
    ),
}


def asked_for(b: Bench, device) -> list[str]:
    """The parts to measure."""
    return list(b.parts) or [
        part
        for part in MEASURED
        if part != "learning" and (part not in ON_A_GPU or device.type == "cuda")
    ]


def measured_part(b: Bench, part: str, device: torch.device) -> list[dict]:
    """The rows of one part, printed; none where the GPU's memory is too small for it."""
    try:
        rows = [{"part": part, **row} for row in MEASURED[part](b, part, device) if row]
        print(shown(part, rows), flush=True)
        return rows
    except torch.cuda.OutOfMemoryError:
        print(
            f"{part} is left out: it does not fit into this GPU's memory\n",
            flush=True,
        )
        return []


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
        measured += measured_part(b, part, device)
        if device.type == "cuda":
            torch.cuda.empty_cache()  # "memory" and "attention" are processes of their own
        about = {
            "command": command,
            **circumstances(b, device),
            "minutes": round((time.monotonic() - started) / 60, 1),
        }
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
    return {
        "commit": git_commit(),
        "hardware": hardware_in_words(device),
        "threads": torch.get_num_threads(),
        "load_average": load,
        **versions,
        "clock": b.clock,
        "seed": SEED,
        "rounds": b.rounds,
        "epsilon_ls": EPSILON,
        "compiled": b.compile,
        "quick": b.quick,
    }
