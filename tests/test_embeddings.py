"""One matrix for input and output, against torch's nn.Embedding and nn.Linear."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from transformer import Transformer, TransformerConfig
from transformer.embeddings import Projection, softmax
from transformer.fast.embeddings import Embedding
from transformer.teaching.nouns import gradients_by_job, two_directions

V, D = 50, 16


@pytest.fixture
def embedding():
    torch.manual_seed(0)
    return Embedding(V, D).double()


def test_equals_torch_in_values_and_gradient(embedding):
    table, linear = nn.Embedding(V, D).double(), nn.Linear(D, V, bias=False).double()
    table.weight = linear.weight = nn.Parameter(embedding.weight.detach().clone())
    tokens, direction = (
        torch.randint(0, V, (2, 3)),
        torch.randn(2, 3, V, dtype=torch.float64),
    )
    ours = Projection(embedding)(embedding(tokens).tanh())
    theirs = linear((math.sqrt(D) * table(tokens)).tanh())
    assert torch.allclose(ours, theirs, rtol=0, atol=1e-9)
    (expected,) = torch.autograd.grad((theirs * direction).sum(), table.weight)
    (gradient,) = torch.autograd.grad((ours * direction).sum(), embedding.weight)
    assert torch.allclose(gradient, expected, rtol=0, atol=1e-9)


def test_equals_a_one_hot_product(embedding):
    tokens = torch.randint(0, V, (2, 3))
    rows = F.one_hot(tokens, V).double() @ embedding.weight
    assert torch.allclose(embedding(tokens), math.sqrt(D) * rows, rtol=0, atol=1e-9)


@pytest.mark.parametrize("d_model", [64, 512])
def test_sizes_at_the_start(d_model):
    """Scaled rows and the logits of vectors with variance 1 have variance 1, whatever the width."""
    torch.manual_seed(0)
    embedding = Embedding(2000, d_model)
    assert embedding.weight.var().item() == pytest.approx(1 / d_model, rel=0.05)
    assert embedding(torch.arange(2000)).var().item() == pytest.approx(1, rel=0.05)
    assert Projection(embedding)(
        torch.randn(100, d_model)
    ).var().item() == pytest.approx(1, rel=0.1)


def test_tied_gradient_is_the_sum_of_three_jobs():
    torch.manual_seed(0)
    config = TransformerConfig(V, d_model=D, d_ff=32, N=1, h=2, P_drop=0.0)
    tied = Transformer(config).double()
    source, target = torch.randint(3, V, (2, 2, 6))
    read, right = target[:, :-1], target[:, 1:].flatten()
    loss = F.cross_entropy(tied(source, read).flatten(0, 1), right)
    (whole,) = torch.autograd.grad(loss, tied.embedding.weight)
    parts = list(gradients_by_job(tied, source, target, pad_id=0).values())
    assert torch.allclose(whole, sum(parts), rtol=0, atol=1e-9)
    for part, tokens in zip(parts, (source, read)):
        assert part.norm(dim=1).nonzero().flatten().tolist() == tokens.unique().tolist()
    assert parts[2].norm(dim=1).gt(0).all()


def test_two_directions_hold_what_differs_most():
    torch.manual_seed(0)
    long, middling, _ = torch.eye(3)
    vectors = torch.randn(50, 3) * torch.tensor([5.0, 2.0, 0.1]) + 7
    first, second = two_directions(vectors)
    assert (first @ long).abs() > 0.95 and (second @ middling).abs() > 0.95
    assert (first @ second).abs() < 1e-5


@pytest.mark.parametrize("token", [V, -1, 10_000])
def test_a_token_outside_the_vocabulary_is_named(embedding, token):
    message = rf"token id {token} is outside the vocabulary of 50 types \(0 to 49\): .*tokenizer saved beside"
    with pytest.raises(ValueError, match=message):
        embedding(torch.tensor([[1, 2], [token, 3]]))


@pytest.mark.parametrize("shift", [0.0, 1000.0, -1000.0])
def test_softmax_equals_torch(shift):
    torch.manual_seed(0)
    logits = torch.randn(2, 3, V, dtype=torch.float64) + shift
    assert torch.allclose(softmax(logits), F.softmax(logits, dim=-1), rtol=0, atol=1e-9)
    assert torch.allclose(
        softmax(logits).sum(dim=-1), torch.ones(2, 3, dtype=torch.float64)
    )
