"""A model's folder: family, configuration, weights, tokenizer, and what else travels with it."""

import hashlib
import json
import math
import os
import re
import shlex
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from transformer.core.files import (
    data_folder,
    existing,
    parse_json,
    read_bpe,
    read_json,
    write_file,
    write_json,
)
from transformer.core.names import nearest
from transformer.core.protocol import (
    About,
    SequenceModel,
    check_plain,
    check_sequence_model,
)
from transformer.core.weights import (
    check_fit,
    check_numbers,
    load_parameters,
    load_weights,
    save_weights,
)
from transformer.corpora.tokenizer import PRE_TOKEN, SPECIALS, Tokenizer
from transformer.fast.attention import (
    kernel_attention,
    scaled_dot_product_attention,
)
from transformer.fast.dropout import BitDropout
from transformer.fast.packed import PackedLinear
from transformer.hardware import choose_device
from transformer.models.checkpoint import (
    WRAPPERS,
    check_buffers,
    named_weights,
    plain,
    plain_name,
)
from transformer.models.families import (
    build,
    family_named,
    family_of,
    parameters_of,
    registered,
    tokenizer_named,
)

FAST_PARTS = (BitDropout, PackedLinear)  # compute what those that they replace do

# The models that come with the package, by name, and what each knows
BUNDLED_MODELS = {
    "bundled": "sentences of this project's grammar, English to German",
    "tatoeba": "everyday sentences, English to German",
    "chat": "answers to questions about translations",
}


def bundled_folder(name: str = "bundled") -> Path:
    """The folder of one of the models in `BUNDLED_MODELS`."""
    return data_folder() / "models" / name


def folder_named(name: Path | str | None) -> Path:
    """A model's folder, or that of the model of this name in `BUNDLED_MODELS`; the bundled one where
    there is no name.

    FileNotFoundError, naming what comes with the package, for a name of neither; ValueError for
    what is no name.
    """
    if not isinstance(name, str | os.PathLike | None):
        raise ValueError(
            f"a model is named by its folder, not by itself ({type(name).__name__}): "
            "save(model, folder, tokenizer) first, and give the folder"
        )
    folder = Path(name or bundled_folder())
    if folder.exists():
        return folder
    if str(name) in BUNDLED_MODELS:
        return bundled_folder(str(name))
    raise unknown_name(folder)


def unknown_name(folder: Path) -> FileNotFoundError:
    """What to say of a name that is no folder: with the models that there are, the likeliest first,
    where it is like one of theirs; else they stand in a note of the error."""
    close = nearest(folder, BUNDLED_MODELS, n=1, cutoff=0.6)
    others = [known for known in BUNDLED_MODELS if known not in close]
    known = "; ".join(f"{n} ({BUNDLED_MODELS[n]})" for n in [*close, *others])
    if close:
        return FileNotFoundError(
            f"{folder} is not there (did you mean {close[0]}?): name the folder of a "
            f"trained model, or one that comes with the package: {known}"
        )
    error = FileNotFoundError(
        f"no file {folder / 'config.json'}: name the folder of a trained model"
    )
    error.add_note(f"Models that come with the package: {known}")
    return error


def memory() -> float:
    """Bytes of memory that this machine has; infinite where the system does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return math.inf


def check_memory(config) -> None:
    """ValueError where weights, gradients and Adam's two moments do not fit into memory."""
    needed, there = (16 * parameters_of(config) / 2**30, memory() / 2**30)
    if needed > there:
        raise ValueError(
            f"a model of {parameters_of(config):,} parameters needs {needed:,.0f} GiB "
            f"to train, and this machine has {there:,.0f}: choose smaller sizes"
        )


def save(
    model: nn.Module, folder: Path | str, tokenizer: Tokenizer | None = None
) -> None:
    """Write config.json, model.safetensors and, with a tokenizer, tokenizer.json.

    Without one, the tokenizer.json that is in the folder goes with the model. config.json comes
    last: a folder that has one is complete. ValueError for weights that are no usable numbers.
    """
    model = plain(model)
    check_plain(model)
    check_sequence_model(model)
    folder, family, parts = (
        Path(folder),
        family_of(model, own=True),
        handed_parts(model),
    )
    check_buffers(model)
    weights = named_weights(model)
    check_numbers(weights, "the model")
    said = {"config": json.dumps(asdict(model.config))}
    path = folder / "tokenizer.json"
    if tokenizer is not None:
        write_file(path, tokenizer.save)
    if path.is_file():
        said["tokenizer"] = content_hash(path)
    save_weights(weights, folder / "model.safetensors", said)
    write_json(
        folder / "config.json",
        {
            "kind": family,
            "about": asdict(model.about),
            "config": asdict(model.config),
            **({"handed": parts} if parts else {}),
        },
    )


def made_of(part: nn.Module | None) -> tuple:
    """What a module computes by, weights aside: its class, plain numbers, how it attends.

    A user's own class may count something, so that its whole numbers are left out.
    """
    own, options = dict(vars(part)) if part is not None else {}, {}
    attend = own.get("attend")
    attend = getattr(attend, "before", attend)  # of attention that is being recorded
    while isinstance(attend, partial):
        options |= attend.keywords
        attend = attend.func
    attend = getattr(attend, "__func__", attend)
    if attend is kernel_attention:
        attend = scaled_dot_product_attention
    known = type(part).__module__.startswith(("transformer.", "torch."))
    state = "training", "p", "_is_torch_compile"
    plain = {
        name: value
        for name, value in own.items()
        if name not in state
        and isinstance(value, int | float | str if known else float | str)
    }
    return *map(named, (type(part), attend)), str(options), plain


def named(one: object) -> str:
    """Where a class or a function is from, and its name."""
    return f"{getattr(one, '__module__', '')}.{getattr(one, '__qualname__', type(one).__name__)}"


WHOLE = "the whole"


def handed_places(model: nn.Module) -> dict[str, str]:
    """What a model's family does not build from its configuration, so that it was handed in: each
    module's name, and its class. `FAST_PARTS` compute what they replace.
    """
    with torch.device("meta"):
        known = {
            name: made_of(part) for name, part in build(model.config).named_modules()
        }
    fast: tuple[str, ...] = ()
    handed: dict[str, str] = {}
    for full_name, part in model.named_modules():
        name = plain_name(full_name)
        if any(wrapper in vars(part)["_modules"] for wrapper in WRAPPERS):
            continue  # around a part, which computes the same
        if type(part) in FAST_PARTS:
            fast += (f"{name}.",)
        elif name not in known and any(
            name.startswith(f"{place}.") for place in handed
        ):
            continue  # inside of a part
        elif made_of(part) != known.get(name) and not name.startswith(fast):
            attend = vars(part).get("attend")
            how = f", {named(attend)}" if attend else ""
            handed[name or WHOLE] = f"{named(type(part))}{how}"
    return handed


def handed_parts(model: nn.Module) -> list[str]:
    """Such as "positions: mine.NoPositions": the `handed_places`, of equal parts the first."""
    first: dict[str, str] = {}
    for name, what in handed_places(model).items():
        first.setdefault(what, name)
    return [f"{name}: {what}" for what, name in first.items()]


def hash_of(saved: Any) -> str:
    """SHA-256 of what a file of JSON says, however it is laid out."""
    return hashlib.sha256(json.dumps(saved, sort_keys=True).encode()).hexdigest()


def content_hash(path: Path) -> str:
    """The `hash_of` what a file of JSON says, or SHA-256 of another file's bytes."""
    try:
        return hash_of(read_json(path))
    except ValueError:  # torchtext's SentencePiece models
        return hashlib.sha256(path.read_bytes()).hexdigest()


def read_config(path: Path) -> tuple:
    """(configuration, `About`) in a config.json.

    FileNotFoundError or ValueError where it is missing or damaged.
    """
    existing(path, "name the folder of a trained model")
    try:
        saved = read_json(path)
        known = saved["kind"] in registered()
    except (KeyError, TypeError, ValueError) as error:
        raise no_configuration(path, error) from None
    if not known:
        raise ValueError(
            f"the model in {path.parent} is of the family {saved['kind']!r}, which is not "
            "registered: import the module that registers it first (on the command line "
            f"--import); known are {', '.join(registered())}"
        )
    try:
        config = family_named(saved["kind"]).config
        said = About(**saved["about"])
        return config(**saved["config"]), said
    except (KeyError, TypeError, ValueError) as error:
        raise no_configuration(path, error) from None


def no_configuration(path: Path, error: Exception) -> ValueError:
    """The ValueError for a config.json that is damaged."""
    return ValueError(
        f"{path} is not a model's configuration ({error}): copy it again from the "
        "trained model"
    )


def handed_in(folder: Path) -> list[str]:
    """The `handed_parts` that the model in a folder was saved with; once only the first was kept."""
    saved = read_json(folder / "config.json").get("handed", [])
    return [saved] if isinstance(saved, str) else saved


def handed_in_words(folder: Path, parts: list[str]) -> str:
    """How the error for missing parts begins."""
    what = "a part" if len(parts) == 1 else "parts"
    return f"the model in {folder} was built with {what} handed in ({'; '.join(parts)})"


def wanted_parts(folder: Path, parts: Any) -> list[str]:
    """`handed_in`; ValueError where there are some, and none are given."""
    handed = handed_in(folder)
    if parts is None and handed:
        it = "it" if len(handed) == 1 else "them"
        raise ValueError(
            f"{handed_in_words(folder, handed)}: hand {it} to load, too, or register a "
            f"family of models that has {it} (CONTRIBUTING.md)"
        )
    return handed


def check_handed(folder: Path, handed: list[str], model: nn.Module) -> None:
    """ValueError where a model lacks some of the parts that it was saved with."""
    here = handed_places(model) if handed else {}
    if missing := [part for part in handed if part.partition(":")[0] not in here]:
        raise ValueError(
            f"{handed_in_words(folder, missing)}, and load was given none like it: hand "
            "to load what the model was built with"
        )


def load_model(folder: Path, parts: Any = None) -> SequenceModel:
    """The model in a folder, in evaluation mode, built from other parts where they are given."""
    return model_and_metadata(folder, parts)[0]


def model_and_metadata(folder: Path, parts: Any = None) -> tuple[SequenceModel, dict]:
    """See `load_model`; and what the file of the weights says of them."""
    config, model_about = read_config(folder / "config.json")
    handed = wanted_parts(folder, parts)
    path = folder / "model.safetensors"
    tensors, said = load_weights(path)
    now = json.loads(json.dumps(asdict(config)))
    saved = json.loads(said.get("config", "{}"))
    differ = any(now.get(name) != value for name, value in saved.items())
    if differ or not saved:  # sizes are believed only where the weights have them, too
        with torch.device("meta"):
            check_fit(dict(build(config, parts).named_parameters()), tensors, path)
    if differ:
        raise ValueError(
            f"{folder / 'config.json'} is not the configuration that {path} was saved "
            "with: copy both again from the trained model"
        )
    model = build(config, parts)
    check_handed(folder, handed, model)
    load_parameters(model, tensors, path, checked="sha256" in said)
    model.about = model_about
    return model.eval(), said


def read_tokenizer(path: Path) -> tuple[Any, Any]:
    """The tokenizer in a file, of the class that the file says it is, and what is in the file."""
    existing(path, "a model's folder needs the tokenizer it was trained with")
    try:
        text = path.read_text(encoding="utf8")
        saved = parse_json(text)
        kind = tokenizer_named(saved.get("kind", "bytes"))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is not a tokenizer ({error}): copy it again from the trained model"
        ) from None
    if issubclass(kind, Tokenizer):
        return kind(read_bpe(text, path, SPECIALS)), saved
    return kind.made_of(saved, path), saved


def load_tokenizer(folder: Path, config, metadata: dict | None = None) -> Tokenizer:
    """The tokenizer in a model's folder; ValueError where it is another model's.

    metadata: what the file of the weights says of them.
    """
    path = folder / "tokenizer.json"
    tokenizer, saved = read_tokenizer(path)
    if tokenizer.vocab_size != config.vocab_size:
        raise ValueError(
            f"{path} has {tokenizer.vocab_size} types and the model "
            f"{config.vocab_size}: use the tokenizer that was saved with this model"
        )
    known = (metadata or {}).get("tokenizer")
    if isinstance(tokenizer, Tokenizer):  # others are made here from a file's pieces
        check_expressions(saved, path)
    if known not in (None, hash_of(saved)):
        raise ValueError(
            f"{path} is not the tokenizer that was saved with this model: copy it "
            "again from the trained model"
        )
    return tokenizer


def check_expressions(saved: dict, path: Path) -> None:
    """ValueError where a saved tokenizer cuts words by another expression than this package's."""
    parts = {
        name: part
        for name, part in saved.items()
        if name not in ("model", "added_tokens")
    }
    expressions = re.findall(r'"Regex": ("(?:[^"\\]|\\.)*")', json.dumps(parts))
    if any(json.loads(expression) != PRE_TOKEN for expression in expressions):
        raise ValueError(
            f"{path} cuts words by another expression than this "
            "package: use the tokenizer that was saved with this model"
        )


def load(
    folder: Path | str | None = None,
    device: str | torch.device = "cpu",
    parts: Any = None,
) -> tuple[SequenceModel, Tokenizer]:
    """A trained model, in evaluation mode, and its tokenizer.

    folder: of a model that was trained or saved; or "bundled" (where not given), "tatoeba" or
    "chat", which come with the package. device: "cpu", "cuda", "mps", or "auto", the fastest there
    is. parts: what the model's class takes as `parts` (a `fast.model.Parts` of a Transformer), for a
    model that was saved with a part handed in. Raises FileNotFoundError or ValueError for a folder
    without a model, with an unfinished run, or with a damaged file, for a part that was handed in
    and is not here, and for a device that is not there.
    """
    folder, device = folder_named(folder), choose_device(str(device))
    unfinished = (folder / "checkpoint.safetensors").is_file()
    if unfinished and not (folder / "config.json").is_file():
        if not (folder / "run.json").is_file():  # of `train` alone
            raise ValueError(
                f"{folder} has no model yet: save(model, folder, tokenizer) writes it "
                "after train(...), which goes on with resume=True where it was stopped"
            )
        how = f"transformer train --resume --folder {shlex.quote(str(folder))}"
        raise ValueError(f"the run in {folder} is not finished; go on with: {how}")
    model, metadata = model_and_metadata(folder, parts)
    tokenizer = load_tokenizer(folder, model.config, metadata)
    return model.to(device), tokenizer
