"""Images as tokens: patches, equal to `transformers`' ViT, trained by the loop; digits drawn."""

import builtins
import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from transformer.core.checks import check_patch
from transformer.corpora.digits import DIGIT_SPLITS, WRITERS, read_digits
from transformer.data import collate
from transformer.experiments import images as runs
from transformer.fast.loss import SmoothedLoss
from transformer.fast.model import Parts
from transformer.images import (
    ConvolutionalClassifier,
    ConvolutionalConfig,
    ImageConfig,
    VisionConfig,
    VisionTransformer,
    accuracy,
    as_drawings,
    as_ids,
    as_images,
    as_pairs,
    draw,
    from_patches,
    patches,
    position_similarity,
    shifted,
)
from transformer.language import LanguageConfig, LanguageModel, Sampler
from transformer.models.families import FAMILIES, register
from transformer.models.pretrained import load_model, save
from transformer.runs.training import TrainingConfig, train

pytestmark = pytest.mark.usefixtures("seed", "one_thread")
C = VisionConfig(d_model=16, d_ff=24, N=2, h=4, P_drop=0.0)
TRAINING = TrainingConfig(
    updates=60,
    batch_tokens=16 * 64,
    warmup=10,
    lr_scale=0.3,
    validate_every=60,
    precision="fp32",
)


def randomized(model):
    """Every parameter random, so that a zero hides nothing."""
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(std=0.3)
    return model.eval()


def grey(*shape, levels=17):
    return torch.randint(levels, shape)


# Patches


@pytest.mark.parametrize("p", [1, 2, 4, 8])
def test_patches_with_a_matrix_are_a_convolution(p):
    images = torch.randn(3, 8, 16, dtype=torch.float64)
    linear = torch.nn.Linear(p * p, 5, dtype=torch.float64)
    kernel = linear.weight.reshape(5, 1, p, p)
    convolved = F.conv2d(
        images[:, None], kernel, linear.bias, stride=p
    )  # (B, 5, H / p, W / p)
    torch.testing.assert_close(
        linear(patches(images, p)),
        convolved.flatten(2).transpose(1, 2),
        rtol=1e-12,
        atol=1e-12,
    )


@pytest.mark.parametrize("p", [1, 2, 3, 6])
def test_back_from_patches(p):
    images = torch.randn(2, 6, 12)
    assert torch.equal(from_patches(patches(images, p), 12), images)


def test_a_patch_is_a_square_of_neighbours():
    cut = patches(torch.arange(16).reshape(1, 4, 4), 2)[0].tolist()
    assert cut == [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]


# `transformers` with our weights


@torch.no_grad()
def as_vit(library, model):
    """Their ViT with our weights."""
    c = model.config
    config = library.ViTConfig(
        hidden_size=c.d_model,
        num_hidden_layers=c.N,
        num_attention_heads=c.h,
        intermediate_size=c.d_ff,
        hidden_act="gelu",
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        layer_norm_eps=1e-12,
        image_size=c.size,
        patch_size=c.patch,
        num_channels=1,
        qkv_bias=True,
        num_labels=c.classes,
    )
    other = library.ViTForImageClassification(config)
    for p in other.parameters():
        p.normal_(std=0.3)
    put_vit(other.vit, model)
    other.classifier.load_state_dict(linear(model.output))
    return other.eval()


def linear(own):
    return {"weight": own.weight, "bias": own.bias}


def norm(own):
    return {"weight": own.gain, "bias": own.bias}


def put_vit(vit, model):
    """Embeddings, layers and last norm of ours, whatever this version calls them."""
    state, c = vit.state_dict(), model.config
    embedding = model.embedding.weight.reshape(c.d_model, 1, c.patch, c.patch)
    mine = {
        "embeddings.cls_token": model.class_token[None, None],
        "embeddings.position_embeddings": model.positions.table[None],
        "embeddings.patch_embeddings.projection.weight": embedding,
        "embeddings.patch_embeddings.projection.bias": model.embedding.bias,
    }
    parts = {"layernorm": norm(model.encoder.final_norm)}
    old = "encoder.layer.0.attention.attention.query.weight" in state
    names = OLD if old else NEW
    for i, layer in enumerate(model.encoder.layers):
        own = layer.self_attention
        modules = (
            own.W_Q,
            own.W_K,
            own.W_V,
            own.W_O,
            layer.feed_forward.W_1,
            layer.feed_forward.W_2,
        )
        for name, module in zip(names, modules):
            parts[name.format(i)] = linear(module)
        for name, residual in zip(names[6:], layer.residuals):
            parts[name.format(i)] = norm(residual.norm)
    for name, weights in parts.items():
        mine |= {f"{name}.{key}": value for key, value in weights.items()}
    assert set(mine) == set(state), set(mine) ^ set(state)
    vit.load_state_dict(mine)


OLD = [
    f"encoder.layer.{{}}.{name}"
    for name in (
        "attention.attention.query",
        "attention.attention.key",
        "attention.attention.value",
        "attention.output.dense",
        "intermediate.dense",
        "output.dense",
        "layernorm_before",
        "layernorm_after",
    )
]
NEW = [
    f"layers.{{}}.{name}"
    for name in (
        "attention.q_proj",
        "attention.k_proj",
        "attention.v_proj",
        "attention.o_proj",
        "mlp.fc1",
        "mlp.fc2",
        "layernorm_before",
        "layernorm_after",
    )
]


@pytest.mark.parametrize("patch", [1, 2, 4])
@torch.no_grad()
def test_equal_to_transformers_vit(patch, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    library = pytest.importorskip("transformers")
    model = randomized(VisionTransformer(replace(C, patch=patch)))
    other = as_vit(library, model)
    ids = as_ids(grey(5, 8, 8), C)
    ours, theirs = model(ids), other(as_images(ids, C)[:, None] / 16).logits
    assert ours.abs().max() > 0.5
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


# The models


@torch.no_grad()
def test_patches_moved_with_their_positions_change_nothing():
    model = randomized(VisionTransformer(replace(C, patch=1)))
    images, order = grey(4, 8, 8), torch.randperm(64)
    before = model(as_ids(images, C))
    mixed = images.flatten(1)[:, order].unflatten(1, (8, 8))
    assert (model(as_ids(mixed, C)) - before).abs().max() > 1e-3
    model.positions.table[1:] = model.positions.table[1:][order]
    torch.testing.assert_close(model(as_ids(mixed, C)), before, rtol=1e-5, atol=1e-5)


MODELS = [
    (VisionTransformer, C),
    (VisionTransformer, replace(C, patch=1, positions="sinusoidal")),
    (ConvolutionalClassifier, ConvolutionalConfig(channels=6, d_model=16, P_drop=0.0)),
]


@pytest.mark.parametrize("kind, config", MODELS)
def test_the_loop_trains_saves_and_loads_it(kind, config, tmp_path, monkeypatch):
    """Left half dark or right half: the loop of sentences learns it, and a folder keeps it."""
    images, digits = grey(64, 8, 8, levels=5), torch.arange(64) % 2
    images[digits == 0, :, :4] += 8
    images[digits == 1, :, 4:] += 8
    model = kind(config)
    log = train(model, as_pairs(images, digits, config), TRAINING, tmp_path / "run")
    assert log[-1]["loss"] < 1.5 and log[-1]["tokens"] == 60 * 16
    assert accuracy(model, images, digits) == 1.0
    assert accuracy(model, images, 1 - digits) == 0.0
    monkeypatch.setattr("transformer.models.families.FAMILIES", dict(FAMILIES))
    register("image", kind, type(config))
    save(model, tmp_path / "model")
    again, ids = load_model(tmp_path / "model"), as_ids(images, config)
    assert again.config == config and torch.equal(again(ids), model.eval()(ids))


@pytest.mark.parametrize("kind, config", MODELS)
def test_the_loss_is_the_cross_entropy_of_the_class(kind, config):
    model, images, digits = randomized(kind(config)), grey(6, 8, 8), torch.arange(6) + 4
    batch = collate(as_pairs(images, digits, config), config.pad_id)
    loss = model.loss(batch, SmoothedLoss(0.0, config.pad_id))
    expected = F.cross_entropy(model(as_ids(images, config)), digits, reduction="sum")
    torch.testing.assert_close(loss, expected)


@pytest.mark.parametrize("kind, config", MODELS)
def test_flops_are_counted(kind, config):
    model = kind(config).eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(as_ids(grey(1, 8, 8), config))
    assert config.forward_flops(64, 1) == pytest.approx(
        counter.get_total_flops(), rel=1e-9
    )


def test_parts_are_handed_in():
    model = VisionTransformer(C, Parts())
    names = {name for name, _ in model.named_parameters()}
    assert "encoder.layers.0.self_attention.W_Q.bias" not in names
    assert "encoder.final_norm.gain" in names
    post = VisionTransformer(replace(C, norm_first=False), Parts())
    assert "encoder.final_norm.gain" not in dict(post.named_parameters())


# Images


def test_ids_and_back():
    images = grey(3, 8, 8)
    ids = as_ids(images, C)
    assert ids.shape == (3, 64) and torch.equal(as_images(ids, C), images)
    assert ids.min() >= C.first_level and ids.max() < C.vocab_size == 30
    (source, target), *_ = as_pairs(images, torch.tensor([7, 0, 9]), C)
    assert source == ids[0].tolist() and target == [C.bos_id, 7]
    assert len({C.pad_id, C.bos_id, C.eos_id, *range(10)}) == 13


def test_shifts():
    image = torch.arange(9).reshape(1, 3, 3)
    assert shifted(image, 0, 0).equal(image)
    assert shifted(image, 1, 0)[0].tolist() == [[0, 0, 0], [0, 1, 2], [3, 4, 5]]
    assert shifted(image, 0, -1)[0].tolist() == [[1, 2, 0], [4, 5, 0], [7, 8, 0]]
    assert shifted(image, -1, 1)[0].tolist() == [[0, 3, 4], [0, 6, 7], [0, 0, 0]]


def test_similarity_of_positions():
    table = torch.tensor([[3.0, 4.0], [-6.0, -8.0], [4.0, -3.0]])
    expected = torch.tensor([[1.0, -1, 0], [-1, 1, 0], [0, 0, 1]])
    torch.testing.assert_close(position_similarity(table), expected)


def test_writers_stand_on_one_side():
    pytest.importorskip("sklearn")
    sizes = {split: read_digits(split)[0].shape for split in DIGIT_SPLITS}
    assert sizes == {
        "train": (1029, 8, 8),
        "validation": (258, 8, 8),
        "test": (510, 8, 8),
    }
    borders = {place for split in DIGIT_SPLITS.values() for place in split}
    assert (
        borders < set(WRITERS)
        and sum(size[0] for size in sizes.values()) == WRITERS[-1]
    )
    images, digits = read_digits("test")
    assert images.dtype == digits.dtype == torch.int64 and (
        images.min(),
        images.max(),
    ) == (0, 16)
    assert set(digits.tolist()) == set(range(10))


def test_drawings_are_learned():
    """Two images with a mark each: after some updates both are drawn as they are."""
    images, digits = grey(2, 8, 8).repeat(8, 1, 1), torch.tensor([3, 8]).repeat(8)
    c = LanguageConfig(
        C.vocab_size,
        d_model=32,
        d_ff=32,
        N=1,
        h=2,
        P_drop=0.0,
        positions="learned",
        max_positions=66,
        pad_id=C.pad_id,
        bos_id=C.bos_id,
        eos_id=C.eos_id,
    )
    pairs = as_drawings(images, digits, C)
    assert pairs[0][0] == [3] and len(pairs[0][1]) == 66 and pairs[0][1][-1] == C.eos_id
    model = LanguageModel(c)
    untrained = draw(model, digits, C)
    assert (
        untrained.shape == (16, 8, 8) and 0 <= untrained.min() and untrained.max() <= 16
    )
    train(
        model,
        pairs,
        replace(
            TRAINING,
            updates=150,
            validate_every=150,
            epsilon_ls=0.0,
            batch_tokens=8 * 66,
        ),
    )
    assert torch.equal(draw(model, digits[:2], C, Sampler(temperature=0)), images[:2])


# What is refused


@pytest.mark.parametrize(
    "call, said",
    [
        (
            lambda: patches(torch.zeros(1, 8, 8), 3),
            "8 x 8 pixels cannot be cut into patches of 3 x 3",
        ),
        (
            lambda: VisionTransformer(replace(C, patch=5)),
            "cannot be cut into patches of 5 x 5",
        ),
        (lambda: check_patch(8, 8, 0), "the side of a patch must be at least 1, not 0"),
        (
            lambda: as_ids(grey(2, 7, 8), C),
            "an image has 7 x 8 pixels, and the model reads 8 x 8",
        ),
        (
            lambda: as_ids(grey(8, 8), C),
            r"images must be \(B, height, width\), not of shape \(8, 8\)",
        ),
        (
            lambda: as_ids(grey(2, 8, 8) + 1.0, C),
            "pixels must be whole numbers from 0 to 16",
        ),
        (
            lambda: as_ids(grey(2, 8, 8) - 1, C),
            "pixels must be whole numbers from 0 to 16",
        ),
        (
            lambda: VisionTransformer(C)(torch.full((2, 49), 20)),
            "an image has 49 pixels, and",
        ),
        (
            lambda: VisionTransformer(C)(torch.full((1, 64), 30)),
            "pixels are the ids 13 to 29, not 30",
        ),
        (
            lambda: VisionTransformer(C)(torch.full((1, 64), 12)),
            "pixels are the ids 13 to 29, not 12",
        ),
        (lambda: ImageConfig(size=0), "size must be at least 1"),
        (
            lambda: VisionConfig(positions="rotary"),
            "positions must be 'learned' or 'sinusoidal'",
        ),
        (
            lambda: VisionTransformer(replace(C, h=3)),
            "d_model=16 does not divide by h=3",
        ),
        (
            lambda: read_digits("training"),
            "no split 'training': choose one of train, validation",
        ),
    ],
)
def test_what_cannot_be_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_without_scikit_learn_a_sentence_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def missing(name, *rest):
        if name.startswith("sklearn"):
            raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(
        ModuleNotFoundError, match="not installed: pip install scikit-learn"
    ):
        read_digits("test")


# The runs


def test_the_best_on_validation_is_chosen_and_the_first_of_equals():
    rows = [
        {
            "what": "curve",
            "family": "a",
            "images": n,
            "seed": seed,
            "rate": rate,
            "validation": found,
        }
        for n, seed, rate, found in (
            (32, 1, 0.3, 0.5),
            (32, 1, 0.1, 0.6),
            (32, 1, 0.2, 0.6),
            (64, 1, 0.3, 0.7),
            (32, 2, 0.3, 0.9),
        )
    ]
    assert runs.chosen([*rows, {"what": "shuffle", "seed": 1}], 1) == {
        "a": {32: 0.1, 64: 0.3}
    }


def test_moved_images_and_pixels_in_another_order():
    images, digits = grey(4, 8, 8) + 1, torch.arange(4)
    nine, labels = runs.moved(images, digits)
    assert nine.shape == (36, 8, 8) and torch.equal(nine[:4], images)
    assert torch.equal(labels, digits.repeat(9)) and len(nine.unique(dim=0)) == 36
    mixed = runs.mixed(images)
    assert not torch.equal(mixed, images) and torch.equal(runs.mixed(images), mixed)
    assert torch.equal(mixed.flatten(1).sort().values, images.flatten(1).sort().values)


def test_frequencies_and_distances():
    images, digits = torch.zeros(20, 8, 8, dtype=torch.int64), torch.arange(20) % 10
    images[10:, 0, 0] = 16
    p = runs.pixel_frequencies(images, digits, added=1.0)
    assert (
        p.shape == (10, 8, 8, 17)
        and p[3, 0, 0, 16] == 2 / 19
        and p[3, 5, 5, 0] == 3 / 19
    )
    torch.testing.assert_close(p.sum(dim=-1), torch.ones(10, 8, 8, dtype=torch.float64))
    assert runs.bits_by_themselves(p, images[:1], digits[:1]) == pytest.approx(
        (63 * math.log2(19 / 3) + math.log2(19 / 2)) / 64
    )
    near = runs.distances(images[:1] + 1, images)
    assert (
        near.tolist() == pytest.approx([1.0])
        and runs.distances(images[:1], images) == 0
    )


@pytest.mark.slow
def test_small_runs(monkeypatch, tmp_path):
    pytest.importorskip("sklearn")
    monkeypatch.setattr(runs, "UPDATES", 3)
    monkeypatch.setattr(runs, "WARMUP", 1)
    monkeypatch.setattr(runs, "DRAWING_UPDATES", 2)
    monkeypatch.setattr(runs, "DRAWN", 1)
    for family, setting in (
        (runs.SHIFTED, 0.003),
        (runs.CNN, 0.003),
        (runs.LOGISTIC, 1.0),
    ):
        (row,) = runs.curves({family: {32: setting}}, 1, tmp_path, "cpu")
        assert 0 < row["test"] < 1 and row["images"] == 32
    rows = runs.shuffle({runs.PLAIN: 0.003, runs.CNN: 0.003}, 1, tmp_path, "cpu")
    assert [row["mixed"] for row in rows] == [False, True, False, True]
    drawn, alone, tested = runs.drawings(0.003, 1, tmp_path / "drawings", "cpu")
    assert len(drawn["drawn"]) == 10 and drawn["bits"] > alone["bits"] > 0
    assert tested["distance"] > 0 == tested["copies"]
