"""Does the checkup name the organ that is broken? The museum and the healthy models, examined.

    python -m transformer.experiments.checkup                  what gives the figures
    python -m transformer.experiments.checkup --half tuning --record tuning.json

A row is one model at one seed: the checks that said broken, look, or not examined, and the seconds
of a processor without the learning part and, of healthy models, with it. How it is counted was written down first, in
data/runs/checkup.md.
"""

import time
from functools import partial
from pathlib import Path
from typing import Literal

import torch

from transformer.doctor.examination import CHECKS, checkup
from transformer.doctor.museum import EXHIBITS, HEALTHY, division, patient
from transformer.doctor.report import Report
from transformer.experiments.runner import Job, run_command, run_jobs

COMMAND = "python -m transformer.experiments.checkup"
HALVES = {
    "tuning": (division.TUNING, division.HEALTHY_TUNING, (0, 1, 2)),
    "figures": (division.FIGURES, division.HEALTHY_FIGURES, (10, 11, 12)),
    "fresh": ((), division.HEALTHY_FRESH, (20, 21, 22)),
}


def row_of(report: Report, seconds: list[float]) -> dict:
    """What is kept of an examination; seconds without learning, and with it where it was made."""
    row: dict = {
        verdict.replace(" ", "_"): [
            f.organ for f in report.findings if f.verdict == verdict
        ]
        for verdict in ("broken", "look", "not examined")
    }
    for finding in report.findings[len(CHECKS) :]:
        for name in ("right", "use", "loss", "known"):
            if name in finding.figures:
                value = round(finding.figures[name], 3)
                row[f"{finding.organ.replace(' ', '_')}.{name}"] = value
    names = ("seconds.without_learning", "seconds")
    return row | dict(zip(names, seconds))


def examine(name: str, seed: int) -> dict:
    """Build a model by its name and a seed, and examine it; a healthy one with learning, too."""
    reports, seconds = [], []
    for learn in (False, True)[: 1 + (name in HEALTHY)]:
        torch.manual_seed(seed)
        given = EXHIBITS[name].make() if name in EXHIBITS else patient(name)
        began = time.process_time()  # of this process, whoever else is at work
        reports.append(checkup(**given, learn=learn, seed=seed))
        seconds.append(round(time.process_time() - began, 2))
    return {"seed": seed, **row_of(reports[-1], seconds)}


def examine_all(name: str, seeds: tuple, folder: Path, device: str) -> list[dict]:
    """A row for each seed."""
    return [examine(name, seed) for seed in seeds]


def jobs_of(half: str) -> list[Job]:
    """One job for each model of a half."""
    exhibits, healthy, seeds = HALVES[half]
    jobs = []
    for name in (*exhibits, *healthy):
        organ = EXHIBITS[name].organ if name in EXHIBITS else ""
        known = {"model": name, "organ": organ, "half": half}
        jobs.append(Job(name, partial(examine_all, name, seeds), known, COMMAND))
    return jobs


def found(row: dict) -> bool:
    """Whether the organ of an exhibit was named; of a healthy model, whether any was."""
    named = [*row["broken"], *row["look"]]
    return row["organ"] in named if row["organ"] else bool(named)


def summary(rows: list[dict]) -> str:
    """How many exhibits were found, at how many seeds, and how many alarms were false."""
    lines = []
    for name in dict.fromkeys(row["model"] for row in rows):
        own = [row for row in rows if row["model"] == name]
        named = sorted({organ for row in own for organ in row["broken"] + row["look"]})
        count = f"{sum(map(found, own))} of {len(own)}"
        lines.append(
            f"{name:22} {own[0]['organ'] or '-':13} {count}  {', '.join(named)}"
        )
    exhibits = [row for row in rows if row["organ"]]
    healthy = [row for row in rows if not row["organ"]]
    lines.append(f"found: {sum(map(found, exhibits))} of {len(exhibits)}")
    lines.append(f"false alarms: {sum(map(found, healthy))} of {len(healthy)}")
    slowest = max(row.get("seconds") or 0 for row in rows)
    quick = max(row["seconds.without_learning"] for row in rows)
    lines.append(f"at most {slowest:.1f} s, without learning {quick:.1f} s")
    return "\n".join(lines)


def main(
    half: Literal["tuning", "figures", "fresh"] = "figures",
    folder: Path = Path("runs/checkup"),
    record: Path | None = None,
    workers: int = 1,
) -> None:
    """Examine every model of a half at three seeds.

    Args:
        half: the models that set thresholds, that give the figures, or that came afterwards
        folder: where a job leaves its result
        record: the file of results (data/runs/checkup.json where not given)
        workers: processes at the same time
    """
    kept = record or (folder / "tuning.json" if half == "tuning" else "checkup")
    rows = run_jobs(jobs_of(half), folder / half, ["cpu"] * workers, kept)
    print(summary(rows))


if __name__ == "__main__":
    run_command(main)
