"""transformer bench: speed beside other libraries."""

from dataclasses import dataclass

import tyro

from transformer.bench.settings import Bench
from transformer.cli.options import words


@dataclass
class Speed(Bench):
    """Time this package beside torch.nn.Transformer, Marian and CTranslate2: same work, taking
    turns, medians."""

    parts: tyro.conf.Positional[tuple[str, ...]] = ()
    """T1 T2 small T3 T4 levers learning memory attention products, on a GPU also base and big
    (notebook 20); or all"""

    def __post_init__(self):
        """Nothing yet: `run` checks, so that a mistake is told like every other."""

    def run(self) -> None:
        from transformer.bench.run import run_bench

        run_bench(Bench(**vars(self)), words())
