"""A whole model as one graph, of torch.export or of ONNX, for batches and lengths of any size."""

import importlib.util
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from transformer.core.checks import check_sentences, check_texts
from transformer.core.files import new_folder
from transformer.core.protocol import check_plain
from transformer.core.state import EncoderDecoder
from transformer.core.white_space import is_blank, normalised
from transformer.data import pad
from transformer.fast.model import Transformer
from transformer.models.checkpoint import plain

INPUTS = ("source", "target")  # token ids (B, S) and (B, T), int64
OUTPUT = "logits"  # (B, T, V)
ONE_FILE = 1_500_000_000  # bytes; larger weights stand in a file beside ONNX's graph
NEEDED = ("onnx", "onnxscript")  # by torch, to write ONNX
EXTRA = (
    "pip install 'annotated-attention[onnx]'"  # brings these, and what runs the file
)


def check_graph(model: nn.Module) -> None:
    """ValueError for a model that is not written down as a graph, and for a torch that cannot."""
    check_plain(model)
    if not (isinstance(model, Transformer) and isinstance(model, EncoderDecoder)):
        raise ValueError(
            f"a graph is written of a Transformer that reads source and target, and "
            f"this is a {type(model).__name__}: export it by torch.export itself"
        )
    if not hasattr(torch.export.Dim, "DYNAMIC"):
        raise ValueError(
            f"torch {torch.__version__} cannot write a graph for batches of any size: "
            "install torch 2.6 or newer"
        )


def example(model: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """A small batch of ids, source and target, of different lengths: the sizes are examples."""
    device = next(model.parameters()).device
    longest = model.config.max_positions
    sizes = ((3, min(7, longest)), (3, min(5, longest)))
    source, target = (
        torch.full(size, model.config.bos_id, device=device) for size in sizes
    )
    return source, target


def check_logits_of(model: Any) -> None:
    """ValueError for a subclass whose call does not give logits for source and target."""
    source, target = example(model)
    try:
        with torch.no_grad():
            found = model(source, target)
    except Exception as error:
        raise no_graph(model, error) from error
    sizes = (*target.shape, model.config.vocab_size)
    if not isinstance(found, torch.Tensor) or found.shape != sizes:
        raise no_graph(model, "its forward gives something else")


def no_graph(model: nn.Module, reason: object) -> ValueError:
    """The ValueError for a model that cannot be written as a graph of these inputs."""
    first = str(reason).strip().partition("\n")[0]
    return ValueError(
        f"a graph has source and target as inputs and logits (B, T, V) as output, and "
        f"{type(model).__name__} does not compute these ({first}): export it by "
        "torch.export itself"
    )


@contextmanager
def traced(model: nn.Module) -> Iterator[None]:
    """Around what writes a model down, in evaluation mode: ValueError where torch cannot."""
    model.eval()
    check_logits_of(model)
    with torch.no_grad():
        try:
            yield
        except OSError:  # of the disk
            raise
        except Exception as error:
            raise no_graph(model, error) from error


def any_sizes() -> tuple[dict, ...]:
    """Batch and length of each input, which may be any."""
    free = torch.export.Dim.DYNAMIC
    return tuple({0: free, 1: free} for _ in INPUTS)


def exported(model: nn.Module) -> Any:
    """A Transformer as a `torch.export.ExportedProgram`: source ids (B, S) and target ids (B, T) ->
    logits (B, T, V), for every B, S and T that the model itself takes.

    `exported(model).module()(source, target)` computes it; `torch.export.save` writes it. The model
    is left in evaluation mode. Raises ValueError for another model, for a subclass that computes
    something else or cannot be traced, and for a torch before 2.6.
    """
    model = plain(model)
    check_graph(model)
    with traced(model):
        return torch.export.export(
            model, example(model), dynamic_shapes=any_sizes(), strict=False
        )


def export_torch(model: nn.Module, folder: Path | str) -> None:
    """Write `exported(model)` as model.pt2 into a new folder.

    It is read without this package: `torch.export.load("model.pt2").module()(source, target)`.
    """
    with new_folder(folder) as made:
        torch.export.save(exported(model), made / "model.pt2")


def check_onnx() -> None:
    """ModuleNotFoundError (a sentence) where torch cannot write ONNX."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ModuleNotFoundError(
            f"the export to ONNX needs {' and '.join(missing)}: "
            f"{EXTRA}, then run this again"
        )


def export_onnx(model: nn.Module, folder: Path | str) -> None:
    """Write a Transformer as model.onnx into a new folder: inputs source (B, S) and target (B, T),
    int64, output logits (B, T, V).

    Weights of more than 1.5 GB stand in model.onnx.data beside it. Raises what `exported` raises,
    FileExistsError where the folder is there, ModuleNotFoundError (a sentence) without onnx.
    """
    model = plain(model)
    check_graph(model)
    check_onnx()
    settings: dict[str, Any] = {"dynamo": True, "input_names": list(INPUTS)}
    settings |= {"output_names": [OUTPUT], "dynamic_shapes": any_sizes()}
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    known = inspect.signature(torch.onnx.export).parameters
    settings |= {"external_data": size > ONE_FILE, "verbose": False}
    settings = {name: value for name, value in settings.items() if name in known}
    with new_folder(folder) as made, traced(model):
        path = str(made / "model.onnx")
        torch.onnx.export(model, example(model), path, **settings)


def greedy_of_graph(
    logits: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    config: Any,
    tokenizer: Any,
    sentences: list[str],
    extra: int = 50,
) -> list[str]:
    """Greedy translations by a graph: logits(source (B, S), target (B, T)) -> (B, T, V).

    One sentence at a time, and without caches: it shows that a graph is all that a translator needs.
    config: the model's, for marks and positions. White space is treated as in `translate`.
    """
    found = []
    for text in map(normalised, check_texts(sentences)):
        source = [*tokenizer.encode(text), config.eos_id]
        check_sentences([source], config.max_positions)
        ids = pad([source], config.pad_id)
        output = [config.bos_id]
        limit = min(len(source) + extra, config.max_positions)
        while output[-1] != config.eos_id and len(output) <= limit:
            scores = logits(ids, torch.tensor([output]))[0, -1]
            scores[config.pad_id] = -torch.inf
            output.append(int(scores.argmax()))
        found.append("" if is_blank(text) else tokenizer.decode(output[1:]))
    return found


def in_onnxruntime(folder: Path | str) -> Callable:
    """The graph in a folder of `export_onnx`, on this CPU: (source, target) -> logits, tensors.

    ModuleNotFoundError (a sentence) without onnxruntime.
    """
    if importlib.util.find_spec("onnxruntime") is None:
        raise ModuleNotFoundError(
            f"running ONNX needs onnxruntime: {EXTRA}, then run this again"
        )
    import onnxruntime

    path = str(Path(folder) / "model.onnx")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])

    def logits(*ids: torch.Tensor) -> torch.Tensor:
        feed = {name: side.cpu().numpy() for name, side in zip(INPUTS, ids)}
        return torch.from_numpy(session.run([OUTPUT], feed)[0])

    return logits
