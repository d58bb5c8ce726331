"""transformer variations: the rows of Table 3 in small."""

from dataclasses import dataclass
from pathlib import Path

from transformer.cli.options import words
from transformer.hardware import Precision


@dataclass
class Variations:
    """Train every row of Table 3 in small, one change at a time, and compare.

    Finished runs are skipped and interrupted ones go on, so the same command may be given as often
    as needed.
    """

    corpus: str = "multi30k"  # multi30k, bundled, ...; on wmt14 the paper's own sizes
    # groups (A B C D E big rates tuned endless data length schedule heads depth simple) or single
    # rows such as h=1 (Table 3 where not given)
    rows: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (1, 2, 3)  # each row is trained once with each seed
    folder: Path = Path("runs/variations")  # where the runs are kept
    # runs at the same time, each a process (one for each GPU where not given; on a CPU one, each
    # with one thread)
    workers: int | None = None
    device: str = "auto"  # cpu, cuda or mps; auto takes the fastest there is
    precision: Precision = "auto"  # as in train
    # the file of results, for data/runs (results.json in the folder where not given); runs that it
    # holds are not trained again
    record: Path | None = None

    def run(self) -> None:
        from transformer.experiments.runner import devices_for
        from transformer.experiments.table3 import base_of, choose, run_variations

        base, rows = base_of(self.corpus, self.precision), choose(self.rows)
        if not self.seeds:
            raise ValueError("--seeds needs at least one number")
        devices = devices_for(self.device, self.workers)
        run_variations(
            base, rows, self.seeds, self.folder, devices, words(), self.record
        )
