"""What `transformer bench` measures, and with which sizes."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from transformer.core.names import did_you_mean
from transformer.fast.model import TransformerConfig

BIG = dict(d_model=1024, d_ff=4096, h=16)
UPDATES = (
    20  # of training in a round, whatever the model: one hiccup decides a short round
)
# sizes, target tokens in a batch
TRAINING = {
    "T1": (dict(vocab_size=8000), 2048),
    "T2": (dict(vocab_size=8000, N=3, d_model=256, d_ff=1024, h=4), 4096),
    "small": (dict(vocab_size=10_000, N=4, d_model=128, d_ff=256, h=4), 4096),
}
ON_A_GPU = {
    "base": (dict(vocab_size=37_000), 25_000),
    "big": (dict(vocab_size=37_000, **BIG), 25_000),
}
DECODING = {"T3": 1, "T4": 4}  # beam
PARTS = [
    *TRAINING,
    *ON_A_GPU,
    *DECODING,
    "levers",
    "learning",
    "memory",
    "attention",
    "products",
]
QUICK = dict(vocab_size=60, N=1, d_model=16, d_ff=32, h=2)


@dataclass(frozen=True)
class EndlessConfig(TransformerConfig):
    """Its end mark is the padding mark, which no search may write: so all outputs are as long."""

    eos_id: int = 0

    def __post_init__(self) -> None:
        """Nothing is checked: other configurations need three different marks."""


@dataclass
class Bench:
    """Speed and memory of this package beside torch.nn.Transformer, Marian and CTranslate2, in one
    run.
    """

    parts: tuple[str, ...] = ()
    """some of `PARTS` (where none is named: all that the device can do, but not learning, an hour
    more)
    """
    quick: bool = False
    """tiny sizes and one round, to see that it works"""
    rounds: int = 3
    """rounds of training (at most three of decoding)"""
    clock: str = "wall"
    """wall, or cpu: seconds of the processor, where others use the machine, too"""
    device: str = "auto"
    """cpu or cuda"""
    compile: bool = False
    """torch.compile on both sides (it needs a compiler)"""
    record: Path | None = None
    """write all figures into this file, as JSON"""

    def __post_init__(self) -> None:
        wrong = next((part for part in self.parts if part not in PARTS), None)
        if wrong is not None:
            raise ValueError(
                f"there is no part {wrong}{did_you_mean(wrong, PARTS)}: choose from "
                f"{', '.join(PARTS)}"
            )
        if self.clock not in ("wall", "cpu"):
            raise ValueError(f"the clock is wall or cpu, not {self.clock}")
        if self.rounds < 1:
            raise ValueError(f"rounds must be 1 or more, not {self.rounds}")
        if self.quick:
            self.rounds = 1

    @property
    def seconds(self) -> Callable[[], float]:
        """The clock's function."""
        return time.process_time if self.clock == "cpu" else time.perf_counter

    def sizes(self, part: str) -> tuple[dict, int, int]:
        """Sizes of the model, target tokens in a batch, and updates in a round."""
        return (
            (QUICK, 64, 2) if self.quick else (*{**TRAINING, **ON_A_GPU}[part], UPDATES)
        )
