"""Exercises of notebook 23: patches with colours, an image seen nine times."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from transformer.images import shifted
from transformer.teaching.exercises import Exercise, normal


def colour_patches(image: Tensor, p: int) -> Tensor:
    """torch's own columns of a convolution."""
    return nn.functional.unfold(image[None], p, stride=p)[0].T


check_colour_patches = Exercise(
    colour_patches,
    lambda: [(normal(1, 3, 6, 4), 2), (normal(2, 1, 4, 8), 4), (normal(3, 2, 3, 3), 1)],
    "cut H and W into (H / p, p) and (W / p, p), and bring the two axes that count patches first",
)


def nine_looks(classify: Callable, image: Tensor) -> Tensor:
    """The mean over all moves."""
    steps = (-1, 0, 1)
    looks = [shifted(image[None], down, right) for down in steps for right in steps]
    return classify(torch.cat(looks)).softmax(dim=-1).mean(dim=0)


def linear(seed: int, pixels: int, V: int) -> Callable:
    """Images to logits by a random matrix."""
    W = normal(seed, pixels, V)
    return lambda images: images.flatten(1) @ W


check_nine_looks = Exercise(
    nine_looks,
    lambda: [(linear(4, 30, 3), normal(5, 5, 6)), (linear(6, 16, 4), normal(7, 4, 4))],
    "pad the image by one pixel on each side; each of nine windows of its size is a moved image",
)
