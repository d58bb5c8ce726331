"""The model of notebook 00 is the package's model, and does not look ahead."""

import pytest
import torch

from transformer import Transformer, TransformerConfig, first_transformer


@pytest.fixture
def both():
    torch.manual_seed(0)
    c = TransformerConfig(20, d_model=16, d_ff=24, h=2, N=2, P_drop=0.0)
    theirs = Transformer(c).double()
    ours = first_transformer.Transformer(20, 16, 24, 2, 2, 0.0).double()
    ours.load_state_dict(dict(theirs.named_parameters()))
    return ours, theirs


def test_equals_the_packages_transformer(both):
    ours, theirs = both
    source, target = first_transformer.examples(5)
    assert torch.allclose(
        ours(source, target), theirs(source, target), rtol=0, atol=1e-6
    )


def test_does_not_look_ahead(both):
    source, target = first_transformer.examples(4)
    changed = target.clone()
    changed[:, 5:] = 7
    before, after = both[0](source, target), both[0](source, changed)
    assert torch.equal(before[:, :5], after[:, :5]) and not torch.equal(before, after)


def test_examples_are_backwards():
    source, target = first_transformer.examples(50)
    for s, t in zip(source, target):
        assert first_transformer.shown(s) == first_transformer.shown(t)[::-1]
