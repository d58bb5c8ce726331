"""Exercises of the notebooks: functions to write, tried on inputs that the page does not show."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Number
from typing import Any

import numpy as np
import torch


def difference_of_tensors(yours: Any, right: torch.Tensor | np.ndarray) -> str | None:
    """`difference` where the right answer is a tensor."""
    if isinstance(yours, list | tuple):
        return f"it is a {type(yours).__name__}, and should be one tensor"
    yours, right = torch.as_tensor(yours), torch.as_tensor(right)
    if yours.shape != right.shape:
        return f"its shape is {tuple(yours.shape)}, and should be {tuple(right.shape)}"
    if not right.dtype.is_floating_point and yours.dtype != right.dtype:
        return f"it holds {yours.dtype}, and should hold {right.dtype}"
    close = torch.isclose(yours.double(), right.double(), 1e-4, 1e-5, equal_nan=True)
    if close.all():
        return None
    return f"{(~close).sum()} of its {close.numel()} numbers differ"


def difference(yours: Any, right: Any) -> str | None:
    """What sets an answer apart from the right one, in words; None where nothing does."""
    if isinstance(right, torch.Tensor | np.ndarray):
        return difference_of_tensors(yours, right)
    if isinstance(right, tuple | list):
        several = isinstance(yours, Sequence) or getattr(yours, "ndim", 0) > 0
        if not several or len(yours) != len(right):
            return f"it is {yours!r}, and should hold {len(right)} things"
        return next(
            (wrong for pair in zip(yours, right) if (wrong := difference(*pair))), None
        )
    if isinstance(right, Number) and not isinstance(
        right, Integral
    ):  # those exactly, below
        same = abs(float(yours) - float(right)) <= 1e-4 * abs(float(right)) + 1e-6
        return (
            None
            if same
            else f"it is {float(yours):.5g}, and should be {float(right):.5g}"
        )
    return None if yours == right else f"it is {yours!r}, and should be {right!r}"


def blank(function: Callable) -> bool:
    """Whether a function's body is still `...`."""
    code, empty = getattr(function, "__code__", None), (lambda: None).__code__
    return code is not None and len(code.co_code) <= len(empty.co_code)


@dataclass(frozen=True)
class Exercise:
    """A function to write. Called with a reader's function, it prints one line: "not tried yet",
    what is wrong and a hint, or "right"."""

    reference: Callable
    inputs: Callable[[], list[tuple]]  # the arguments of some calls
    hint: str

    def __call__(self, yours: Callable) -> None:
        print(self.verdict(yours))

    def verdict(self, yours: Callable) -> str:
        """What the call prints."""
        for given in self.inputs():
            try:
                answer = yours(*copy.deepcopy(given))
                if answer is ... or answer is None and blank(yours):
                    return "not tried yet"
                right = self.reference(*given)
                wrong = (
                    "it returns nothing"
                    if answer is None
                    else difference(answer, right)
                )
            except Exception as error:  # whatever a first try does wrong
                wrong = f"it stops with {type(error).__name__}: {error}"
            if wrong:
                return f"not yet: {wrong}. Hint: {self.hint}"
        return "right"


def normal(seed: int, *shape: int) -> torch.Tensor:
    """Normally distributed numbers, the same at every call."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def normals(seed: int, *shapes: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    """Tensors of normally distributed numbers, the same at every call."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)
