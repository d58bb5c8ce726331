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

    number: 1 to 24, "Ada", "Ben", "Cleo", or "healthy". ValueError for any other.
    """
    name = "" if number == "healthy" else name_of(number)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return EXHIBITS[name].make() if name else {"model": Small()}


def check(answers: dict[int, str]) -> None:
    """Say which organs of exhibits are named rightly: {number: organ of `checkup`}."""
    tried = {number: organ for number, organ in answers.items() if organ is not ...}
    if not tried:
        print("not tried yet")
        return
    wrong = [n for n, organ in tried.items() if EXHIBITS[name_of(n)].organ != organ]
    print(f"right: {len(tried) - len(wrong)} of {len(answers)}")
    if wrong:
        print("look again at exhibit", ", ".join(map(str, wrong)))
