"""The plain models of notebooks 01 and 02 equal the strong ones, and are right by themselves."""

import pytest
import torch
from helpers import SENTENCES, batch
from helpers import assert_close as close
from torch.nn import functional as F

from transformer import convolution, recurrence
from transformer.data import Batch
from transformer.fast.convolution import ConvolutionalEncoderDecoder, ConvolutionConfig
from transformer.fast.loss import SmoothedLoss
from transformer.fast.recurrence import RecurrenceConfig, RecurrentEncoderDecoder
from transformer.recurrence import blend

FAMILIES = {
    "recurrence": (
        recurrence.RecurrentEncoderDecoder,
        recurrence.RecurrenceConfig,
        RecurrentEncoderDecoder,
        RecurrenceConfig,
    ),
    "convolution": (
        convolution.ConvolutionalEncoderDecoder,
        convolution.ConvolutionConfig,
        ConvolutionalEncoderDecoder,
        ConvolutionConfig,
    ),
}
each_family = pytest.mark.parametrize("family", FAMILIES)
SIZES = dict(vocab_size=12, d_model=16, N=2, P_drop=0.0)


def plain_of(family):
    torch.manual_seed(3)
    model, config, _, _ = FAMILIES[family]
    return model(config(**SIZES)).double().eval()


def strong_of(family):
    torch.manual_seed(3)
    _, _, model, config = FAMILIES[family]
    return model(config(**SIZES)).double().eval()


def targets():
    torch.manual_seed(4)
    return torch.randint(3, 12, (len(SENTENCES), 5))


@each_family
def test_they_start_with_the_same_numbers(family):
    plain = plain_of(family).state_dict()
    strong = strong_of(family).state_dict()
    assert list(plain) == list(strong)
    for name in plain:
        assert torch.equal(plain[name], strong[name])


@each_family
def test_outputs_are_equal(family):
    plain, strong = plain_of(family), strong_of(family)
    close(plain(batch(), targets()), strong(batch(), targets()))
    memory = plain.encode(batch())
    close(memory, strong.encode(batch()))
    mask = plain.mask(batch())
    close(plain.states(targets(), memory, mask), strong.states(targets(), memory, mask))


@each_family
def test_losses_and_gradients_are_equal(family):
    plain, strong = plain_of(family), strong_of(family)
    target = F.pad(targets(), (1, 0), value=1)
    target[1, 4:] = 0
    logits = plain(batch(), target[:, :-1])
    loss = F.cross_entropy(
        logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0, reduction="sum"
    )
    others = strong.loss(Batch(batch(), target), SmoothedLoss(0.0))
    close(loss, others)
    loss.backward()
    others.backward()
    for one, other in zip(plain.parameters(), strong.parameters(), strict=True):
        close(one.grad, other.grad)


@each_family
def test_dropout_falls_on_the_same_numbers(family):
    outputs = []
    for kind, config in (FAMILIES[family][:2], FAMILIES[family][2:]):
        torch.manual_seed(3)
        model = kind(config(**{**SIZES, "P_drop": 0.3})).double().train()
        torch.manual_seed(5)
        outputs.append(model(batch(), targets()))
    close(*outputs)


@each_family
def test_padding_changes_nothing(family):
    model = plain_of(family)
    logits = model(batch(), targets())
    padded = model(F.pad(batch(), (0, 4)), F.pad(targets(), (0, 3)))
    close(padded[:, :5], logits)


@each_family
def test_a_batch_is_its_sentences(family):
    model, target = plain_of(family), targets()
    logits = model(batch(), target)
    for i, row in enumerate(SENTENCES):
        close(model(torch.tensor([row]), target[i : i + 1])[0], logits[i])


@each_family
def test_nothing_depends_on_later_words(family):
    model, target = plain_of(family), targets()
    later = target.clone()
    later[:, 3:] = later[:, 3:].flip(1) % 9 + 3
    close(model(batch(), later)[:, :3], model(batch(), target)[:, :3])


def test_where_nothing_may_be_looked_at_is_zero():
    scores = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    values = torch.randn(2, 4, 5, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[[True, False, True, False]], [[False] * 4]])
    context = blend(scores, values, mask)
    assert context[1].eq(0).all()
    close(context[0], scores[0, :, ::2].softmax(dim=-1) @ values[0, ::2])
    context.square().sum().backward()
    assert scores.grad[1].eq(0).all()
    assert values.grad[1].eq(0).all()
    assert scores.grad.isfinite().all()
