"""Are searches with caches of one shape right on a GPU, and how fast are they beside the growing
caches, the plain form, torch's layer and Marian?"""

import copy
from functools import partial
from pathlib import Path
from typing import Any

import torch

from transformer.bench.dispatch import dispatched
from transformer.bench.harness import rows_of
from transformer.bench.parts import decoding_works, searching
from transformer.bench.peers import make_systems
from transformer.bench.settings import EndlessConfig
from transformer.core.records import read_rows
from transformer.data import pad
from transformer.experiments.gpu_paths import random_pairs
from transformer.experiments.gpu_rounds import ROUNDS, sizes_of
from transformer.fast import FAST
from transformer.fast.model import Transformer, TransformerConfig
from transformer.fast.search import beam_search, greedy_search
from transformer.hardware import allow_tf32
from transformer.speed import SEED, in_turns

SEARCHING = ("plain", "fast", "torch", "marian")
BEAMS = (1, 4)


def path_of(beam: int) -> str:
    """The name that a search with caches of one shape has in the record of the check."""
    return f"search with fixed caches, beam {beam}"


def found_by(model: Any, source: torch.Tensor, beam: int, fixed: bool) -> list:
    """What a search writes: a list of ids a sentence."""
    if beam == 1:
        return greedy_search(model, source, 20, fixed=fixed)
    return [best.tokens for [best] in beam_search(model, source, beam, fixed=fixed)]


def check_searches(small: bool, device: str) -> list[dict]:
    """A row for each beam: are all outputs those of growing caches, token for token in fp64?"""
    sizes = dict(d_model=32, d_ff=64, N=1, h=2) if small else dict(N=2)
    torch.manual_seed(SEED)
    c = TransformerConfig(500 if small else 8000, tie_embeddings=False, **sizes)
    model = Transformer(c, FAST)
    pairs = random_pairs(8 if small else 64, c.vocab_size, longest=40)
    rows = []
    for beam in BEAMS:
        row: dict = {"path": path_of(beam), "passed": False}
        try:
            model = model.to(device).double()
            source = pad([ids for ids, _ in pairs], c.pad_id).to(device)
            growing, fixed = (found_by(model, source, beam, f) for f in (False, True))
            equal = sum(a == b for a, b in zip(growing, fixed, strict=True))
            row |= {"passed": equal == len(pairs), "equal": equal, "of": len(pairs)}
        except (RuntimeError, NotImplementedError, ValueError, TypeError) as error:
            row["reason"] = f"{type(error).__name__}: {str(error)[:300]}"
        rows.append(row)
    return rows


def both_ways(systems: dict, beam: int, check: Path) -> dict:
    """The systems, of which "fast" has caches of one shape and a copy of it growing ones, where the
    record of `check_searches` says that the outputs of the first are right; otherwise growing ones.
    """
    passed = {row["path"] for row in read_rows(check) if row["passed"]}
    growing = copy.copy(systems["fast"])
    growing.fixed, systems["fast"].fixed = False, path_of(beam) in passed
    return {**systems, "fast growing": growing} if systems["fast"].fixed else systems


def compared_on(source: torch.Tensor, systems: dict, beam: int, rounds: int) -> list:
    """Rows of systems that translate a source in turns; of this package's fast ones, what a search
    asks of the device, too (what a GPU replays is not counted)."""
    works = decoding_works(systems, source, beam, source.device)
    works = {name: work for name, work in works.items() if name[1] == "highest"}
    rows = rows_of(in_turns(works, rounds, source.device))
    for row in rows:
        if row["system"].startswith("fast"):
            once = partial(works[row["system"], "highest"], 0)
            row |= {"fixed": systems[row["system"]].fixed, **dispatched(once).totals()}
    return rows


def search_rounds(small: bool, check: Path, folder: Path, device: str) -> list[dict]:
    """Tokens a second in translating 64 and 256 sentences at once, greedily and with four
    hypotheses: base, all outputs of one length.

    check: the record of `check_searches`, without which caches of one shape are left out.
    """
    where = torch.device(device)
    allow_tf32()
    base = sizes_of("base", small)[0]
    c = EndlessConfig(
        base.vocab_size, d_model=base.d_model, d_ff=base.d_ff, N=base.N, h=base.h
    )
    rows = []
    for sentences in (4, 8) if small else (64, 256):
        chance = torch.Generator().manual_seed(SEED)
        shape = sentences, 5 if small else 30
        source = torch.randint(3, c.vocab_size, shape, generator=chance).to(where)
        for beam in BEAMS:
            names = [name for name in searching(beam, where) if name in SEARCHING]
            systems = both_ways(make_systems(c, names, where), beam, check)
            found = compared_on(source, systems, beam, 1 if small else ROUNDS)
            rows += [{"sentences": sentences, "beam": beam, **row} for row in found]
    return rows
