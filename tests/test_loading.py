"""torch's own ways to load weights: shared matrices stay one, tables are what they should be."""

import copy
import pickle

import pytest
import torch

from transformer import Transformer, TransformerConfig
from transformer.fast.loading import ties_of

SIZES = TransformerConfig(50, d_model=16, d_ff=32, N=1, h=2)
SOURCE, TARGET = torch.tensor([[5, 6, 7, 2]]), torch.tensor([[1, 8, 9]])


def whole():
    return Transformer(SIZES).eval()


def emptied():
    with torch.device("meta"):
        model = whole()
    return model.to_empty(device="cpu")


@pytest.mark.parametrize("made", [whole, emptied])
@pytest.mark.parametrize("assign", [True, False])
@pytest.mark.parametrize(
    "copied", [lambda m: m, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
@torch.no_grad()
def test_loaded_weights_are_tied_and_compute_the_same(made, assign, copied):
    trained, model = Transformer(SIZES).eval(), copied(made())
    state = {name: weights.clone() for name, weights in trained.state_dict().items()}
    model.load_state_dict(state, assign=assign)
    assert ties_of(model) == ties_of(trained)
    assert torch.equal(model(SOURCE, TARGET), trained(SOURCE, TARGET))


def test_weights_that_are_not_shared_are_refused():
    state = Transformer(SIZES).state_dict()
    state["output.weight"] = state["output.weight"] + 1
    with pytest.raises(
        ValueError, match="output.weight and embedding.weight are one matrix"
    ):
        whole().load_state_dict(state, assign=True)


def test_a_part_that_was_replaced_is_not_tied_any_more():
    """As the output of a classifier; a part of another model's weights fits, too."""

    class Classifier(Transformer):
        def __init__(self, config):
            super().__init__(config)
            self.output = torch.nn.Linear(config.d_model, 3)

    config = TransformerConfig(50, d_model=8, d_ff=8, N=1, h=2)
    model = Classifier(config)
    copy.deepcopy(model).load_state_dict(Classifier(config).state_dict())
    part = {"embedding.weight": torch.ones(50, 8)}
    assert "output.weight" in model.load_state_dict(part, strict=False).missing_keys
    assert (model.embedding.weight == 1).all()
    assert model.output.weight.shape == (3, 8)


def test_loading_leaves_torchs_generator_alone():
    model, state = whole(), Transformer(SIZES).state_dict()
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    model.load_state_dict(state)
    assert torch.equal(torch.rand(3), expected)


@torch.no_grad()
def test_tables_of_an_emptied_model_are_computed_again():
    trained, model = Transformer(SIZES).eval(), emptied()
    model.load_state_dict(trained.state_dict())
    assert torch.equal(model.positions.table, trained.positions.table)
