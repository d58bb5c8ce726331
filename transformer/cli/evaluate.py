"""transformer evaluate: scores of a model on a test set."""

import json
from dataclasses import dataclass
from pathlib import Path

from transformer.core.files import prepare_folder
from transformer.runs.scoring import Scoring, score


@dataclass
class Evaluate(Scoring):
    """Translate or parse a test set with beam search, print all scores with signatures, save them
    beside your model."""

    # write the run's settings, log and all its scores into this file, for data/runs
    record: Path | None = None

    def run(self) -> None:
        if self.folder is None and self.record is not None:
            raise ValueError("--average and --record need the --folder of a run")
        if self.record is not None:
            prepare_folder(self.record.parent, "--record")
            if not (self.folder / "log.jsonl").is_file():
                raise ValueError(
                    f"--record is of a run with its log, and {self.folder} has none: "
                    "name the folder of a training"
                )
        print(json.dumps(score(self, {"trees": evaluate_trees}), indent=2))
        if self.record is not None:
            from transformer.core.records import write_rows
            from transformer.experiments.rows import record

            write_rows(self.record, [{"name": self.record.stem, **record(self.folder)}])


def evaluate_trees(*arguments) -> dict:
    """`evaluate_parser`, which needs nltk."""
    from transformer.runs.parsers import evaluate_parser

    return evaluate_parser(*arguments)
