"""Models with parts inside torch's wrappers, of unknown kinds, with numbers of other libraries."""

import gzip
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    checkpoint_wrapper,
)

from transformer import (
    TrainingConfig,
    Transformer,
    TransformerConfig,
    bleu,
    load,
    save,
    train,
    translate,
)
from transformer.core.scores import Score
from transformer.corpora import read_parallel
from transformer.models.checkpoint import load_checkpoint, save_checkpoint

SIZES = TransformerConfig(300, d_model=16, d_ff=32, N=2, h=2)
PAIRS = [([5, 6, 7, 2], [1, 8, 9, 2]), ([6, 7, 2], [1, 9, 8, 2])]


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Transformer(SIZES).eval()


def compiled(model):
    model.encoder = torch.compile(model.encoder, backend="eager")
    return model


def compiled_whole(model):
    return torch.compile(model, backend="eager")


def checkpointed(model):
    for stack in (model.encoder, model.decoder):
        stack.layers[1] = checkpoint_wrapper(stack.layers[1])
    return model


def both(model):
    return compiled(checkpointed(model))


WRAPPED = [compiled, compiled_whole, checkpointed, both]


@pytest.mark.parametrize("wrap", WRAPPED)
def test_wrapped_parts_save_and_load_under_their_plain_names(model, wrap, tmp_path):
    expected = {name: p.detach().clone() for name, p in model.named_parameters()}
    save(wrap(model), tmp_path)
    loaded = dict(load_plain(tmp_path).named_parameters())
    assert loaded.keys() == expected.keys()
    for name, weights in expected.items():
        assert torch.equal(loaded[name], weights), name


def load_plain(folder):
    from transformer.models.pretrained import load_model

    return load_model(folder)


@pytest.mark.parametrize("wrap", [compiled, checkpointed, both])
def test_wrapped_parts_resume_a_plain_model_and_the_other_way(model, wrap, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    other = wrap(Transformer(SIZES))
    for there, here in ((model, other), (other, Transformer(SIZES))):
        save_checkpoint(path, there, stepped(there), {"update": 1})
        optimizer = torch.optim.Adam(here.parameters())
        assert load_checkpoint(path, here, optimizer) == {"update": 1}
        for one, same in zip(there.parameters(), here.parameters(), strict=True):
            assert torch.equal(one, same)
        assert len(optimizer.state) == len(list(here.parameters()))


def stepped(model):
    optimizer = torch.optim.Adam(model.parameters())
    sum(p.square().sum() for p in model.parameters()).backward()
    optimizer.step()
    return optimizer


class Around(nn.Module):
    """As DistributedDataParallel, DataParallel and others hold a model."""

    def __init__(self, module):
        super().__init__()
        self.module = module


@pytest.mark.parametrize("around", [Around, nn.DataParallel])
def test_a_model_inside_another_is_refused(model, around, tmp_path):
    with pytest.raises(ValueError, match="hand in model.module"):
        save(around(model), tmp_path)
    with pytest.raises(ValueError, match="hand in model.module"):
        translate(around(model), None, ["a"])


def test_a_model_of_an_unknown_kind_is_named(model, tmp_path):
    save(model, tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "kind": "mine"}))
    with pytest.raises(
        ValueError, match="of the family 'mine', which is not registered: import"
    ):
        load(tmp_path)


NUMBERS = [np.float64(0.25), np.float32(0.25), np.array(0.25), torch.tensor(0.25)]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: type(n).__name__)
def test_numbers_of_other_libraries_are_settings(number):
    assert type(replace(SIZES, P_drop=number).P_drop) is float
    assert replace(SIZES, P_drop=number).P_drop == 0.25
    assert type(TrainingConfig(epsilon_ls=number).epsilon_ls) is float


@pytest.mark.parametrize("number", [np.int64(4), np.int32(4), torch.tensor(4)])
def test_whole_numbers_of_other_libraries_are_sizes(number):
    assert type(replace(SIZES, N=number).N) is int
    assert type(TrainingConfig(updates=number).updates) is int
    assert replace(SIZES, norm_first=np.bool_(True)).norm_first is True


@pytest.mark.parametrize(
    "number", [np.float64(1.0), np.float64("nan"), np.array([0.1]), "0.1"]
)
def test_what_is_no_setting_is_refused(number):
    with pytest.raises(ValueError, match="P_drop must be"):
        replace(SIZES, P_drop=number)


# Files and scores

KINDS_OF_FILE = {
    "gzip": gzip.compress(b"a\nb\n"),
    "bzip2": b"BZh91AY&SY" + b"\xff" * 20,
    "xz": b"\xfd7zXZ\x00" + b"\xff" * 20,
    "zstd": b"\x28\xb5\x2f\xfd" + b"\xff" * 20,
    "zip": b"PK\x03\x04" + b"\xff" * 20,
}


@pytest.mark.parametrize("kind", KINDS_OF_FILE)
def test_packed_files_are_named(kind, tmp_path):
    for side in "ab":
        (tmp_path / side).write_bytes(KINDS_OF_FILE[kind])
    with pytest.raises(ValueError, match=f"holds {kind} data, no text: .*unpack it"):
        read_parallel(tmp_path / "a", tmp_path / "b")


def test_a_file_that_is_packed_twice_is_named(tmp_path):
    for side in "ab":
        packed = gzip.compress(gzip.compress(b"a\n"))
        (tmp_path / f"{side}.gz").write_bytes(packed)
    with pytest.raises(ValueError, match="holds gzip data once more"):
        read_parallel(tmp_path / "a.gz", tmp_path / "b.gz")


def test_a_score_is_a_number():
    score = bleu(["a b c d e"], ["a b c d f"])
    assert score == score.score
    assert score > 1
    assert json.loads(json.dumps({"bleu": score})) == {"bleu": score.score}
    assert f"{score:.1f}" == f"{score.score:.1f}"


def test_a_score_is_copied_whole():
    score = Score(41.5, "signature", margin=0.5)
    assert pickle.loads(pickle.dumps(score)) == score
    assert replace(score, signature="other").signature == "other"
    assert replace(score, score=40.0) == 40.0


def test_a_score_from_a_validator_is_written_into_the_log(model, tmp_path):
    settings = TrainingConfig(
        updates=2, warmup=2, batch_tokens=50, validate_every=1, precision="fp32"
    )
    train(
        model,
        PAIRS,
        settings,
        validate=lambda m: {"bleu": bleu(["a b c d"], ["a b c d"])},
        folder=tmp_path,
    )
    rows = [
        json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()
    ]
    assert rows[-1]["bleu"] == pytest.approx(100)
