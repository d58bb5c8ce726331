"""The exhibits as chapter 27 shows them: under numbers, which give nothing away."""

import torch

from transformer.doctor.museum.small import EXHIBITS, Small

PATIENTS = {  # the three that the chapter works through
    "Ada": "heads-joined-by-view",
    "Ben": "own-memory",
    "Cleo": "wrong-sense",
}
WAITING = (  # the six that the chapter examines
    "not-shifted",
    "norm-over-positions",
    "memory-unmasked",
    "encoder-cut-off",
    "softmax-twice",
    "heads-and-batch",
)
UNNAMED = {"model 1": "healthy", "model 2": "Ada"}  # before the chapter says who is ill
# The line of the chapter's listing that is wrong in each of the first five.
LINES = {1: "j", 2: "c", 3: "h", 4: "f", 5: "i"}
OTHERS = (  # in no order, so that neighbours give no hint
    "empty-memory",
    "half-overflow",
    "wrong-triangle",
    "softmax-over-batch",
    "padding-in-loss",
    "plain-list",
    "log-of-zero",
    "one-position",
    "mean-of-means",
    "mask-off-in-training",
    "scale-of-model",
    "batch-as-time",
    "padded-row",
    "no-positions",
    "dropout-always",
    "wide-embedding",
    "one-layer-twice",
    "relu-on-logits",
)
NUMBERED = (*WAITING, *OTHERS)  # from 1 on


def name_of(number: int | str) -> str:
    """The exhibit behind a number or a patient's name; ValueError where there is none."""
    if number in PATIENTS:
        return PATIENTS[str(number)]
    if isinstance(number, int) and 1 <= number <= len(NUMBERED):
        return NUMBERED[number - 1]
    raise ValueError(
        f"there is no exhibit {number!r}: they have the numbers 1 to {len(NUMBERED)}, and "
        f'the names {", ".join(PATIENTS)} and "healthy"'
    )


def exhibit(number: int | str) -> dict:
    """A model with its first weights, and what `checkup` takes besides.

    number: 1 to 24, "Ada", "Ben", "Cleo", or "healthy"; "model 1" and "model 2" are two of
    these. ValueError for any other.
    """
    number = UNNAMED.get(str(number), number)
    name = "" if number == "healthy" else name_of(number)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return EXHIBITS[name].make() if name else {"model": Small()}


def check(answers: dict[int, str]) -> None:
    """Say which exhibits have their wrong line named: {number: letter of `LINES`}."""
    tried = {number: line for number, line in answers.items() if line is not ...}
    if not tried:
        print("not tried yet")
        return
    wrong = [number for number, line in tried.items() if LINES[number] != line]
    print(f"right: {len(tried) - len(wrong)} of {len(answers)}")
    if wrong:
        print("look again at exhibit", ", ".join(map(str, wrong)))
