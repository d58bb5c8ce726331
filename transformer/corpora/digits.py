"""Handwritten digits, 1,797 images of 8 x 8 pixels, as they come with scikit-learn (CC BY 4.0).

They stand in the order in which people wrote them, one filled-in form after another: 14 blocks with
nearly the same row of digits. The splits are cut between blocks. The data's description counts 13
writers, so that one may have filled two forms; it does not say which.

E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning
Repository (1998), https://doi.org/10.24432/C50P49.
"""

import torch

WRITERS = (
    0,
    130,
    256,
    386,
    516,
    646,
    776,
    915,
    1029,
    1157,
    1287,
    1415,
    1545,
    1667,
    1797,
)
DIGIT_SPLITS = {"train": (0, 1029), "validation": (1029, 1287), "test": (1287, 1797)}


def read_digits(split: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Images (n, 8, 8), grey levels 0 (paper) to 16 (ink), and what they show (n,), both int64.

    ModuleNotFoundError, saying what to install, without scikit-learn.
    """
    if split not in DIGIT_SPLITS:
        raise ValueError(
            f"the digits have no split {split!r}: choose one of "
            f"{', '.join(DIGIT_SPLITS)}"
        )
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "the digits come with scikit-learn, which is not installed: pip install scikit-learn",
            name=error.name,
        ) from None
    first, end = DIGIT_SPLITS[split]
    found = load_digits()
    return (
        torch.from_numpy(found.images[first:end]).long(),
        torch.from_numpy(found.target[first:end]).long(),
    )
