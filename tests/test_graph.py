"""A model as one graph, of torch.export and of ONNX, computes what the model computes, at any size."""

import importlib.util

import pytest
import torch
from torch import nn

from transformer.fast import FAST
from transformer.fast.model import Parts, Transformer, TransformerConfig
from transformer.fast.recurrence import RecurrenceConfig, RecurrentEncoderDecoder
from transformer.language import LanguageConfig, LanguageModel
from transformer.models import graph
from transformer.models.graph import (
    export_onnx,
    export_torch,
    exported,
    greedy_of_graph,
    in_onnxruntime,
)
from transformer.models.pretrained import load
from transformer.models.search import translate

needs_graphs = pytest.mark.skipif(
    not hasattr(torch.export.Dim, "DYNAMIC"), reason="needs torch 2.6 or newer"
)
needs_onnx = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("onnx", "onnxscript", "onnxruntime"))),
    reason="onnx, onnxscript or onnxruntime is not installed",
)
SIZES = [(1, 1, 1), (1, 9, 4), (5, 2, 1), (5, 12, 30), (2, 40, 40)]
SETTINGS = [
    {},
    dict(norm_first=True, tie_embeddings=False),
    dict(positions="learned"),
    dict(positions="learned", norm_first=True, d_k=8),
    dict(positions="rotary"),
    dict(positions="rotary", norm_first=True),
]
SENTENCES = [
    "The old cat sleeps.",
    "",
    "Suddenly a new library in which the friendly girl smiles lost its roof.",
]


def model_of(parts=Parts(), **changes):
    torch.manual_seed(0)
    sizes = dict(d_model=16, d_ff=24, N=1, h=4, max_positions=40)
    return Transformer(TransformerConfig(50, **{**sizes, **changes}), parts).eval()


def ids(B, n):
    """Ids of B sentences of n tokens; the last of several is shorter."""
    rows = torch.randint(3, 50, (B, n))
    if B > 1 and n > 2:
        rows[-1, -2:] = 0
    return rows


def largest_difference(model, computed):
    """Of logits, over batches and lengths of many sizes."""
    found = []
    for B, S, T in SIZES:
        source, target = ids(B, S), ids(B, T)
        with torch.no_grad():
            difference = computed(source, target) - model(source, target)
        found.append(difference.abs().max().item())
    return max(found)


@pytest.mark.system
@needs_graphs
@pytest.mark.parametrize("changes", SETTINGS, ids=str)
def test_a_graph_is_the_model_at_any_size(changes):
    model = model_of(**changes)
    assert largest_difference(model, exported(model).module()) < 1e-6


@pytest.mark.system
@needs_graphs
def test_a_graph_of_fast_parts():
    model = model_of(FAST)
    assert largest_difference(model, exported(model).module()) < 1e-5


@pytest.mark.system
@needs_graphs
def test_a_written_graph_comes_back(tmp_path):
    model = model_of()
    export_torch(model, tmp_path / "there")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    program = torch.export.load(tmp_path / "there" / "model.pt2")
    assert largest_difference(model, program.module()) < 1e-6


@pytest.mark.system
@needs_graphs
def test_a_graph_is_all_that_a_translator_needs():
    model, tokenizer = load()
    logits = exported(model).module()
    found = greedy_of_graph(logits, model.config, tokenizer, SENTENCES)
    assert found == translate(model, tokenizer, SENTENCES, beam=1)


class Classifier(nn.Module):
    """One's own model around an encoder."""

    def __init__(self, model):
        super().__init__()
        self.model, self.output = model, nn.Linear(16, 3)

    def forward(self, source):
        real = (source != 0)[:, :, None]
        mean = (self.model.encode(source) * real).sum(dim=1) / real.sum(dim=1)
        return self.output(mean)


@needs_graphs
def test_an_encoder_in_a_model_of_ones_own():
    classifier = Classifier(model_of(positions="rotary")).eval()
    free = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    program = torch.export.export(
        classifier, (ids(3, 7),), dynamic_shapes=(free,), strict=False
    )
    for B, S in [(1, 1), (5, 12), (2, 40)]:
        source = ids(B, S)
        assert torch.allclose(program.module()(source), classifier(source), atol=1e-6)


class Classifying(Transformer):
    """Another forward, of the source alone."""

    def forward(self, source):
        return self.output(self.encode(source).mean(dim=1))


class Doubled(Transformer):
    """Another output."""

    def forward(self, source, target):
        return super().forward(source, target), source


class WithoutDecoder(Transformer):
    def __init__(self, config):
        super().__init__(config)
        del self.decoder


@needs_graphs
@pytest.mark.parametrize("kind", [Classifying, Doubled, WithoutDecoder])
def test_a_subclass_that_computes_something_else(kind, tmp_path):
    sizes = dict(d_model=16, d_ff=24, N=1, h=4, max_positions=40)
    model = kind(TransformerConfig(50, **sizes))
    said = (
        f"{kind.__name__} does not compute these .*: export it by torch.export itself"
    )
    with pytest.raises(ValueError, match=said):
        exported(model)
    with pytest.raises(ValueError, match=said):
        export_torch(model, tmp_path / "there")
    assert not list(tmp_path.iterdir())


@needs_onnx
@needs_graphs
def test_no_onnx_of_a_subclass_that_computes_something_else(tmp_path):
    sizes = dict(d_model=16, d_ff=24, N=1, h=4, max_positions=40)
    with pytest.raises(ValueError, match="Classifying does not compute these"):
        export_onnx(Classifying(TransformerConfig(50, **sizes)), tmp_path / "there")
    assert not list(tmp_path.iterdir())


@needs_onnx
@needs_graphs
@pytest.mark.parametrize("changes", SETTINGS, ids=str)
def test_onnx_is_the_model_at_any_size(changes, tmp_path):
    model = model_of(**changes)
    export_onnx(model, tmp_path / "there")
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["model.onnx"]
    assert largest_difference(model, in_onnxruntime(tmp_path / "there")) < 1e-5


@needs_onnx
@needs_graphs
def test_onnxruntime_translates_the_same(tmp_path):
    model, tokenizer = load()
    export_onnx(model, tmp_path / "there")
    logits = in_onnxruntime(tmp_path / "there")
    found = greedy_of_graph(logits, model.config, tokenizer, SENTENCES)
    assert found == translate(model, tokenizer, SENTENCES, beam=1)


@needs_graphs
def test_without_onnx_a_sentence_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(graph.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"annotated-attention\[onnx\]"):
        export_onnx(model_of(), tmp_path / "there")
    with pytest.raises(ModuleNotFoundError, match=r"annotated-attention\[onnx\]"):
        in_onnxruntime(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_left_alone(tmp_path):
    with pytest.raises(FileExistsError, match="is there already"):
        export_torch(model_of(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_has_no_graph(tmp_path):
    recurrent = RecurrentEncoderDecoder(RecurrenceConfig(50, 16, N=1))
    with pytest.raises(ValueError, match="this is a RecurrentEncoderDecoder"):
        exported(recurrent)
    language = LanguageModel(LanguageConfig(50, 16, 16, 1, 1))
    with pytest.raises(ValueError, match="this is a LanguageModel"):
        export_torch(language, tmp_path / "there")
    with pytest.raises(ValueError, match="hand in model.module"):
        exported(nn.parallel.DataParallel(model_of()))
    assert list(tmp_path.iterdir()) == []
