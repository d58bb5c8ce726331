"""A model's folder: what is saved comes back, of every kind, and what is damaged is named."""

import dataclasses
import json
import re
from dataclasses import replace
from functools import partial

import pytest
import torch

from transformer.core.files import write_file
from transformer.core.protocol import About
from transformer.core.weights import count_parameters, load_parameters, load_weights
from transformer.fast import FAST
from transformer.fast.attention import (
    MultiHeadAttention,
    kernel_attention,
    scaled_dot_product_attention,
)
from transformer.fast.convolution import ConvolutionConfig
from transformer.fast.model import Parts, Transformer, TransformerConfig
from transformer.fast.recurrence import RecurrenceConfig
from transformer.hardware import choose_device
from transformer.models.export import check_exportable
from transformer.models.families import (
    FAMILIES,
    Family,
    build,
    build_fast,
    family_of,
    register,
)
from transformer.models.pretrained import (
    handed_parts,
    load,
    load_model,
    read_config,
    save,
)
from transformer.runs.experiment import Experiment
from transformer.stacks import LayerNorm

SIZES = dict(vocab_size=50, d_model=16, N=2, P_drop=0.0, max_positions=40)
PAPER = TransformerConfig(d_ff=32, h=4, **SIZES)
CONFIGS = {
    "paper": PAPER,
    "pre-norm": dataclasses.replace(PAPER, norm_first=True),
    "learned": dataclasses.replace(PAPER, positions="learned"),
    "untied": dataclasses.replace(PAPER, tie_embeddings=False),
    "free heads": dataclasses.replace(PAPER, d_k=3, d_v=5),
    "recurrence": RecurrenceConfig(cell="lstm", **SIZES),
    "convolution": ConvolutionConfig(k=5, **SIZES),
}


def model_of(config=PAPER):
    torch.manual_seed(1)
    return build(config).eval()


@pytest.mark.parametrize("name", CONFIGS)
def test_a_saved_model_comes_back_exactly(name, tmp_path):
    model, folder = model_of(CONFIGS[name]), tmp_path / "new" / "folder"
    model.about = About("de", "fr", 7, 1.25)
    save(model, folder)
    again = load_model(folder)
    assert (
        again.config == model.config
        and not again.training
        and type(again) is type(model)
    )
    assert again.about == model.about and family_of(again) == family_of(model)
    source, target = torch.randint(8, 50, (2, 6)), torch.randint(8, 50, (2, 5))
    assert torch.equal(again(source, target), model(source, target))
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json",
        "model.safetensors",
    ]


def test_the_bundled_model_knows_its_languages_and_search():
    model, tokenizer = load()
    assert model.about == About("en", "de", 4, 0.6) and type(model) is Transformer
    assert tokenizer.vocab_size == model.config.vocab_size


def test_what_torch_compile_stands_around_is_saved(tmp_path):
    model = model_of()
    save(torch.compile(model, backend="eager"), tmp_path)
    assert load_model(tmp_path).state_dict().keys() == model.state_dict().keys()


def test_a_part_that_was_handed_in_is_not_forgotten(tmp_path):
    """Other parts than the one it was saved with do not stand in for it."""
    cosine = partial(
        MultiHeadAttention,
        attend=lambda q, k, v, mask: scaled_dot_product_attention(q, k / 2, v, mask),
    )
    save(Transformer(PAPER, Parts(attention=cosine)), tmp_path)
    with pytest.raises(
        ValueError,
        match="was built with a part handed in .*, and load was given none like it",
    ):
        load_model(tmp_path, parts=Parts())
    assert load_model(tmp_path, parts=Parts(attention=cosine)).config == PAPER


class NoPositions(torch.nn.Module):
    def __init__(self, max_positions, d_model):
        super().__init__()

    def forward(self, x, start=0):
        return x


class Gated(torch.nn.Module):
    """A feed-forward network of one's own, with other matrices."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.gate = torch.nn.Linear(d_model, d_ff)
        self.down = torch.nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.down(self.gate(x).sigmoid())


OWN_PARTS = {
    "attention": partial(
        MultiHeadAttention,
        attend=lambda q, k, v, mask: scaled_dot_product_attention(q, k / 2, v, mask),
    ),
    "positions": NoPositions,
    "norm": partial(LayerNorm, eps=0.5),
    "feed_forward": Gated,
}


@pytest.mark.parametrize("missing", OWN_PARTS)
def test_each_part_that_was_handed_in_is_wanted(missing, tmp_path):
    model = Transformer(PAPER, Parts(**OWN_PARTS))
    save(model, tmp_path)
    assert type(load_model(tmp_path, parts=Parts(**OWN_PARTS))) is Transformer
    given = {name: part for name, part in OWN_PARTS.items() if name != missing}
    place = {"norm": "residuals.0.norm", "attention": "self_attention"}
    with pytest.raises(
        ValueError, match=rf"with a part handed in \(.*{place.get(missing, missing)}: "
    ):
        load_model(tmp_path, parts=Parts(**given))
    with pytest.raises(ValueError, match="with parts handed in .*: hand them to load"):
        load_model(tmp_path)


def test_a_folder_that_names_one_part_loads(tmp_path):
    """As they were saved once, with the first alone."""
    model = Transformer(PAPER, Parts(positions=NoPositions, feed_forward=Gated))
    save(model, tmp_path)
    path = tmp_path / "config.json"
    saved = json.loads(path.read_text())
    path.write_text(json.dumps(saved | {"handed": saved["handed"][0]}))
    parts = Parts(positions=NoPositions, feed_forward=Gated)
    assert type(load_model(tmp_path, parts=parts)) is Transformer
    with pytest.raises(ValueError, match="with a part handed in"):
        load_model(tmp_path)


def test_a_folder_that_is_not_there_lists_them_in_a_note():
    with pytest.raises(FileNotFoundError, match="no file .*name the folder") as raised:
        load("runs/x")
    (note,) = raised.value.__notes__
    assert re.search("bundled .*; tatoeba .*; chat", note)


@pytest.mark.parametrize(
    "name, said",
    [
        (
            "tatoebq",
            "tatoebq is not there .did you mean tatoeba?.: name .*: tatoeba .every",
        ),
        ("Chat", "did you mean chat?.: .*: chat .*; bundled .*; tatoeba "),
    ],
)
def test_a_name_that_is_no_model_lists_those_there_are(name, said):
    with pytest.raises(FileNotFoundError, match=said.replace("?", "[?]")):
        load(name)


def test_a_model_is_no_name_of_one():
    model = Transformer(PAPER)
    with pytest.raises(ValueError, match="named by its folder, not by itself .Transf"):
        Experiment(init=model)
    with pytest.raises(ValueError, match="named by its folder, not by itself"):
        load(model)


@pytest.mark.parametrize(
    "model, config",
    [
        (TransformerConfig, Transformer),
        (PAPER, TransformerConfig),
        (Transformer, PAPER),
    ],
)
def test_a_family_of_something_else_is_refused(model, config):
    with pytest.raises(ValueError, match=r"register\('mine', model, config\) takes"):
        register("mine", model, config)
    assert "mine" not in FAMILIES


@pytest.mark.parametrize(
    "part, said",
    [
        (
            {"norm": torch.nn.LayerNorm(32)},
            "norm is made already: .*, LayerNorm or partial",
        ),
        ({"positions": NoPositions(8, 32)}, "positions is made already"),
        ({"feed_forward": None}, "feed_forward must be a class or a function"),
        ({"attention": 8}, "attention must be a class or a function"),
    ],
)
def test_a_part_that_makes_nothing_is_refused(part, said):
    with pytest.raises(ValueError, match=f"the part {said}"):
        Parts(**part)


def test_load_takes_no_other_names():
    with pytest.raises(TypeError, match="unexpected keyword argument 'part'"):
        load(part=Parts())


def test_a_device_is_chosen_by_its_name():
    model, _ = load(device="auto")
    assert next(model.parameters()).device == choose_device()
    with pytest.raises(
        ValueError, match="no device 'tpu' here: choose cpu, cuda or mps"
    ):
        load(device="tpu")


def test_what_nobody_has_said_is_the_papers(tmp_path):
    save(model_of(), tmp_path)
    assert read_config(tmp_path / "config.json") == (PAPER, About(None, None, 4, 0.6))


def test_a_model_with_weights_that_are_no_numbers_is_not_saved(tmp_path):
    model = model_of()
    with torch.no_grad():
        model.embedding.weight[7, 3] = float("nan")
    with pytest.raises(ValueError, match="the model: embedding.weight holds weights"):
        save(model, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_tied_matrix_is_saved_once(tmp_path):
    save(model_of(), tmp_path)
    tensors, _ = load_weights(tmp_path / "model.safetensors")
    assert set(tensors) == set(dict(model_of().named_parameters()))
    assert sum(tensor.numel() for tensor in tensors.values()) == count_parameters(
        model_of()
    )


@pytest.mark.parametrize("keep", [0, 3, 100, -1])
def test_a_truncated_weight_file(keep, tmp_path):
    save(model_of(), tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(
        ValueError,
        match=r"model.safetensors is not a whole safetensors file .*copy it again",
    ):
        load_model(tmp_path)


def test_a_file_that_is_not_safetensors(tmp_path):
    model = model_of()
    save(model, tmp_path)
    torch.save(model.state_dict(), tmp_path / "model.safetensors")
    with pytest.raises(
        ValueError, match="model.safetensors is not a whole safetensors file"
    ):
        load_model(tmp_path)


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            dict(d_ff=64),
            r"feed_forward.W_1.bias is \(32,\) in the file and \(64,\) in the model",
        ),
        (dict(N=1), r"layers.1.* in the file and nothing in the model"),
        (dict(N=3), r"layers.2.* is nothing in the file and"),
        (
            dict(positions="learned"),
            r"positions.table is nothing in the file and \(40, 16\) in the model",
        ),
    ],
)
def test_weights_of_another_configuration(changes, message, tmp_path):
    model = model_of()
    save(model, tmp_path)
    path = tmp_path / "config.json"
    saved = json.loads(path.read_text(encoding="utf8"))
    path.write_text(
        json.dumps({**saved, "config": {**saved["config"], **changes}}), encoding="utf8"
    )
    with pytest.raises(ValueError, match=f"and the model do not fit: .*{message}"):
        load_model(tmp_path)


def test_nothing_is_copied_where_something_does_not_fit():
    model, other = (
        model_of(),
        {name: torch.zeros_like(p) for name, p in model_of().named_parameters()},
    )
    del other[sorted(other)[-1]]
    before = [p.clone() for p in model.parameters()]
    with pytest.raises(ValueError, match="here and the model do not fit"):
        load_parameters(model, other, "here")
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), before))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}",
        "[1, 2]",
        "3",
        '{"vocab_size": 50}',
        '{"kind": "transformer", "config": {"vocab_size": 50, "colour": "red"}, "about": {}}',
        '{"kind": "transformer", "config": {"vocab_size": "many"}, "about": {}}',
        '{"kind": "transformer", "config": {"vocab_size": -1}, "about": {}}',
        '{"kind": "transformer", "config": {"vocab_size": 50}, "about": {"colour": "red"}}',
    ],
)
def test_a_damaged_configuration(text, tmp_path):
    save(model_of(), tmp_path)
    (tmp_path / "config.json").write_text(text, encoding="utf8")
    with pytest.raises(ValueError, match=r"config.json is not a model's configuration"):
        load_model(tmp_path)


def test_a_kind_that_nobody_registered(tmp_path):
    save(model_of(), tmp_path)
    text = '{"kind": "lamp", "config": {}, "about": {}}'
    (tmp_path / "config.json").write_text(text, encoding="utf8")
    with pytest.raises(
        ValueError, match="of the family 'lamp', which is not registered"
    ):
        load_model(tmp_path)


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors"])
def test_a_missing_file(missing, tmp_path):
    save(model_of(), tmp_path)
    (tmp_path / missing).unlink()
    with pytest.raises(FileNotFoundError, match=f"no file .*{missing}"):
        load_model(tmp_path)


def test_a_failed_write_leaves_the_old_file(tmp_path):
    def fail(temporary):
        temporary.write_text("half of the")
        raise OSError("no space left on device")

    path = tmp_path / "file"
    write_file(path, lambda temporary: temporary.write_text("old"))
    with pytest.raises(OSError, match="no space left"):
        write_file(path, fail)
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == [
        "file"
    ]


class OwnConfig(TransformerConfig):
    """Of a kind that a test registers."""


def inverted(q, k, v, mask=None):
    return scaled_dot_product_attention(-q, k, v, mask)


class Negative(MultiHeadAttention):
    def forward(self, *arguments, **more):
        return -super().forward(*arguments, **more)


@pytest.mark.parametrize(
    "parts, named",
    [
        (
            replace(FAST, attention=partial(Negative, attend=kernel_attention)),
            "encoder.layers.0.self_attention: .*Negative, .*",
        ),
        (
            Parts(norm=partial(LayerNorm, eps=0.5)),
            "encoder.layers.0.residuals.0.norm: .*LayerNorm",
        ),
        (
            Parts(attention=partial(MultiHeadAttention, attend=inverted)),
            r"encoder.layers.0.self_attention: .*, .*",
        ),
        (Parts(positions=lambda n, d: torch.nn.Identity()), "positions: .*Identity"),
    ],
)
def test_a_part_that_was_handed_in_is_not_lost_silently(parts, named, tmp_path):
    """Its class or function is no weight: without it another model would come back."""
    model = Transformer(PAPER, parts).eval()
    save(model, tmp_path)
    with pytest.raises(
        ValueError, match=rf"with a part handed in \({named}\): hand it to load"
    ):
        load_model(tmp_path)
    source, target = torch.randint(3, 50, (2, 3, 5))
    if parts.positions is None:  # the identity takes no second argument
        assert torch.equal(
            load_model(tmp_path, parts=parts)(source, target), model(source, target)
        )
    with pytest.raises(ValueError, match="a part that CTranslate2 does not know"):
        check_exportable(model)


def test_what_the_package_builds_itself_was_not_handed_in():
    for config in CONFIGS.values():
        assert handed_parts(build(config)) == handed_parts(build_fast(config)) == []


def test_a_kind_may_make_its_attention_anew(monkeypatch):
    class Own(MultiHeadAttention):
        def __init__(self, *sizes, **more):
            super().__init__(*sizes, **more)
            self.attend = self.inverted

        def inverted(self, q, k, v, mask=None):
            return inverted(q, k, v, mask)

    monkeypatch.setitem(
        FAMILIES,
        "own",
        Family(partial(Transformer, parts=Parts(attention=Own)), OwnConfig),
    )
    assert handed_parts(build(OwnConfig(d_ff=32, h=4, **SIZES))) == []


@dataclasses.dataclass(frozen=True)
class WidthsConfig(TransformerConfig):
    widths: tuple = (3, 4)

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "widths", tuple(self.widths))


def test_a_kind_of_ones_own_comes_back_with_tuples_and_counters(tmp_path, monkeypatch):
    class Counting(Transformer):
        steps = 0

        def loss(self, *arguments):
            self.steps += 1
            return super().loss(*arguments)

    monkeypatch.setitem(FAMILIES, "own", Family(Counting, WidthsConfig))
    model = build(WidthsConfig(d_ff=32, h=4, widths=(5, 6), **SIZES))
    model.steps += 1
    save(model, tmp_path)
    assert load_model(tmp_path).config == model.config
    model.temperature = 2.0  # is in no configuration
    save(model, tmp_path)
    with pytest.raises(ValueError, match="with a part handed in"):
        load_model(tmp_path)


def test_what_could_not_be_loaded_again_is_not_saved(tmp_path):
    with pytest.raises(
        ValueError,
        match="WidthsConfig belongs to no family of models: register it first",
    ):
        save(Transformer(WidthsConfig(d_ff=32, h=4, **SIZES)), tmp_path)
    model = model_of()
    model.register_buffer("scale", torch.ones(1))
    with pytest.raises(
        ValueError, match="scale is a buffer, and only parameters are saved"
    ):
        save(model, tmp_path)
    assert not list(tmp_path.iterdir())
