"""Masks that would be taken for something else, and logits of no use."""

import pytest
import torch

from transformer.attention import causal_mask
from transformer.core.checks import check_mask, usable

PADDING = torch.tensor([[True, True, False], [True, True, True], [True, False, False]])
NEAR = torch.ones(3, 3).tril(1).triu(-1).bool()


def query(B, T):
    return torch.zeros(B, T, 8)


@pytest.mark.parametrize("mask", [PADDING, PADDING.flip(1), PADDING[[1, 0, 2]]])
def test_a_padding_mask_is_not_taken_for_one_of_positions(mask):
    with pytest.raises(ValueError, match=r"may be \(B, S\) or \(T, S\)"):
        check_mask(mask, query(3, 3))


def test_padding_of_longer_keys_is_not_taken_for_one_of_positions():
    mask = torch.arange(5) < torch.tensor([[5], [2], [4]])
    with pytest.raises(ValueError, match=r"write mask\[:, None, None\] for the first"):
        check_mask(mask, query(3, 3))


@pytest.mark.parametrize("B", [2, 4])
def test_a_padding_mask_of_another_number_is_refused(B):
    mask = torch.arange(5) < torch.arange(1, B + 1)[:, None]
    with pytest.raises(ValueError, match=r"goes in as mask\[:, None, None\]"):
        check_mask(mask, query(B, 3))


@pytest.mark.parametrize("shape", [(2, 4, 4), (4,), ()])
def test_a_mask_of_another_number_of_axes_is_refused(shape):
    with pytest.raises(ValueError, match=r"a mask is \(T, S\) or \(B, h, T, S\)"):
        check_mask(torch.ones(shape, dtype=torch.bool), query(2, 4))


@pytest.mark.parametrize(
    "mask",
    [
        None,
        causal_mask(3),
        causal_mask(5)[2:],  # the last three positions of five
        causal_mask(3) & NEAR,
        NEAR,
        torch.ones(3, 3).bool(),
        PADDING[:1],
        PADDING[:1].expand(3, 3),
        PADDING[:, None, None],
        PADDING[None, None],
        causal_mask(3) & PADDING[:, None, None],
    ],
)
def test_masks_that_can_mean_one_thing(mask):
    check_mask(mask, query(3, 3))


def test_a_mask_of_positions_for_another_number_of_sentences():
    check_mask(PADDING, query(2, 3))
    check_mask(PADDING, query(1, 3))


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf, -torch.inf, 1e19, -1e19])
def test_a_single_logit_that_is_no_usable_number_is_found(wrong):
    logits = torch.randn(3, 50)
    assert usable(logits)
    logits[1, 7] = wrong
    assert not usable(logits)


def test_no_logits_are_usable():
    assert usable(torch.empty(0, 50))
