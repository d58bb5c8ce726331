"""The malformed commands of the campaign (faults.py): each kind is a function that draws one.

It gets a folder with a copy of a small finished run in it, `run`, and two files, own.en and own.de,
all free to be damaged.
"""

import contextlib
import io
import json
import math
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch

from transformer import cli
from transformer.core.weights import load_weights
from transformer.corpora import read_corpus
from transformer.models.pretrained import load

SIZES = dict(vocab_size=300, d_model=16, d_ff=32, N=1, h=2, max_positions=150)
SPEED = dict(updates=4, batch_tokens=300, warmup=4, save_every=2, keep=2)
NUMBERS = [
    0,
    -1,
    1,
    2,
    3,
    7,
    10**5,
    2**31,
    2**63 - 1,
    2**63,
    2**64,
    10**30,
    -(2**63),
    0.5,
    -0.5,
    1.5,
    1e-300,
    1e38,
    1e300,
    math.nan,
    math.inf,
    -math.inf,
]
VALUES = [
    *NUMBERS,
    None,
    True,
    False,
    "",
    "a",
    "3",
    "nan",
    [],
    [1],
    {},
    {"a": 1},
    "\udce9",
]
TEXTS = [
    "",
    " ",
    "\t",
    "\x00",
    "\x1b[31m",
    "a\nb",
    "a\r\nb",
    "</s>",
    "<pad> <s>",
    "\u202eabc",
    "\ufeffbom",
    "e\u0301" * 20,
    "👩‍👧",
    "东京",
    "نص عربي",
    "'; --",
    "$(true)",
    "-",
    "--beam",
    "a" * 2000,
    "word " * 200,
    "Ω" * 120,
    "\u0300" * 50,
    "\ud800",
    "a\udce9b",
    "%s{}",
]
WORDS = [
    "",
    "-1",
    "0",
    "1",
    "2",
    "1.5",
    "1e300",
    "1e-300",
    "nan",
    "inf",
    "-inf",
    "abc",
    "None",
    "True",
    "[]",
    "{}",
    " ",
    "ü",
    "\udcff",
    "cpu",
    "own.en",
    "run",
    "/dev/null",
    "/proc/self",
    "/nowhere/at/all",
    "a" * 300,
    str(2**31),
    str(2**63),
    str(2**64),
    str(10**30),
    "--",
    "x=y",
]


@dataclass
class Case:
    """A command with its standard input (None: closed), or a call."""

    kind: str
    told: str
    arguments: list | None = None
    stdin: bytes | None = b""
    call: Callable | None = None
    wrong: Callable = lambda out: ""  # what is wrong with a result, in words
    prepared: bool = True  # its options are those of the program


def command(name):
    """Run a command of this process, quietly."""
    sys.argv = ["transformer", *map(str, name)]
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        cli.main()


def options(settings):
    return [
        word
        for name, value in settings.items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]


def make_home(folder):
    """The folder that cases start from, with a finished run."""
    pairs = read_corpus("bundled", "validation")[:40]
    for name, sentences in zip(("own.en", "own.de"), zip(*pairs)):
        (folder / name).write_text(
            "".join(s + "\n" for s in sentences), encoding="utf8"
        )
    command(
        [
            "train",
            *FILES(folder),
            "--folder",
            folder / "run",
            *options({**SIZES, **SPEED}),
        ]
    )
    write_gpt2(folder / "theirs", [source for source, _ in pairs])
    (folder / "said").write_text(said(folder), encoding="utf8")
    return folder


def write_gpt2(folder, sentences):
    """A GPT-2 of random numbers in the files that the library transformers writes."""
    from safetensors.torch import save_file
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    pieces = Tokenizer(models.BPE())
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.train_from_iterator(
        sentences,
        trainers.BpeTrainer(
            vocab_size=300,
            special_tokens=["<|endoftext|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
    )
    folder.mkdir()
    pieces.model.save(str(folder))
    d, V = 16, pieces.get_vocab_size()
    shapes = {
        "wte.weight": (V, d),
        "wpe.weight": (40, d),
        "h.0.attn.c_attn.weight": (d, 3 * d),
        "h.0.attn.c_attn.bias": (3 * d,),
        "h.0.attn.c_proj.weight": (d, d),
        "h.0.attn.c_proj.bias": (d,),
        "h.0.mlp.c_fc.weight": (d, 4 * d),
        "h.0.mlp.c_fc.bias": (4 * d,),
        "h.0.mlp.c_proj.weight": (4 * d, d),
        "h.0.mlp.c_proj.bias": (d,),
    }
    for norm in ("h.0.ln_1", "h.0.ln_2", "ln_f"):
        shapes |= {f"{norm}.weight": (d,), f"{norm}.bias": (d,)}
    save_file(
        {f"transformer.{name}": torch.randn(shape) for name, shape in shapes.items()},
        folder / "model.safetensors",
        {"format": "pt"},
    )
    (folder / "config.json").write_text(
        json.dumps(
            {
                "model_type": "gpt2",
                "vocab_size": V,
                "n_positions": 40,
                "n_embd": d,
                "n_layer": 1,
                "n_head": 2,
                "bos_token_id": 0,
                "eos_token_id": 0,
                "layer_norm_epsilon": 1e-5,
                "activation_function": "gelu_new",
            }
        )
    )


def said(folder):
    """What the run answers to a sentence."""
    out = io.TextIOWrapper(io.BytesIO(), "utf8")
    sys.argv = ["transformer", "translate", "A cat.", "--folder", str(folder / "run")]
    with contextlib.redirect_stdout(out):
        cli.main()
    out.flush()
    return out.buffer.getvalue().decode("utf8")


def FILES(folder):
    return ["--source-file", folder / "own.en", "--target-file", folder / "own.de"]


# What can be wrong with text, JSON and tensors


def some_text(chance):
    if chance.random() < 0.3:
        return "".join(
            chr(
                chance.choice(
                    [
                        chance.randrange(32, 127),
                        chance.randrange(0xD800),
                        chance.randrange(0xE000, 0x10FFFF),
                    ]
                )
            )
            for _ in range(chance.randrange(60))
        )
    return chance.choice(TEXTS)


def some_bytes(chance):
    known = [os.fsencode(text.replace("\ud800", "")) for text in TEXTS] + [
        b"\xff\xfe",
        b"\xe9",
    ]
    lines = [chance.choice(known) for _ in range(chance.randrange(6))]
    if chance.random() < 0.3:
        lines.append(chance.randbytes(chance.randrange(200)))
    return chance.choice([b"\n", b"\r\n", b"\n\n"]).join(lines) + chance.choice(
        [b"", b"\n"]
    )


def damage_bytes(chance, path):
    """Cut, flip, fill, or replace what a file holds; its first 8 bytes and its last, too."""
    content = bytearray(path.read_bytes())
    way = chance.randrange(5)
    if way == 0 or not content:
        content = content[: chance.randrange(len(content) + 1)]
    elif way == 1:
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    elif way == 2:
        start = chance.randrange(len(content))
        content[start : start + 8] = chance.randbytes(8)
    elif way == 3:
        content = bytearray(chance.randbytes(chance.randrange(300)))
    else:
        content += chance.randbytes(chance.randrange(1, 20))
    path.write_bytes(content)
    return f"bytes, way {way}"


def damage_json(chance, content):
    """A value inside replaced, taken away, or added; ([keys that lead there], content)."""
    place, parent, path = content, None, []
    while (
        isinstance(place, dict | list)
        and place
        and (parent is None or chance.random() < 0.8)
    ):
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = chance.choice(keys)
        parent, place = place, place[key]
        path.append(key)
    way = chance.randrange(4)
    if way == 0 or parent is None:
        return path, chance.choice([*VALUES, [content], {"a": content}])
    if way == 1 and isinstance(parent, dict):
        del parent[key]
    elif way == 2 and isinstance(parent, dict):
        parent[chance.choice(["extra", "Ω", "", "kind", "seed"])] = parent.pop(key)
    else:
        parent[key] = chance.choice(VALUES)
    return path, content


def damage_file(chance, path):
    """Damage a file of JSON; a few words that say how."""
    if chance.random() < 0.15:
        return damage_bytes(chance, path)
    if chance.random() < 0.08:
        deep = chance.choice(
            ["[" * 100_000, '{"a":' * 50_000 + "1" + "}" * 50_000, "NaN", ""]
        )
        path.write_text(deep)
        return f"text {deep[:10]}"
    before = path.read_text(encoding="utf8")
    if path.suffix == ".jsonl":
        before = before.splitlines()[0]
    where, content = damage_json(chance, json.loads(before))
    text = json.dumps(content)
    path.write_text(text + "\n" * (path.suffix == ".jsonl"))
    return f"{where[:4]}, {text[:120]}"


def damage_tensors(chance, path):
    """Damage the tensors of a safetensors file; the checksum goes or stays."""
    from safetensors.torch import save_file

    tensors, metadata = load_weights(path)[0], all_metadata(path)
    name = chance.choice(sorted(tensors))
    tensor, way = tensors[name].clone(), chance.randrange(9)
    bad = chance.choice([math.nan, math.inf, -math.inf, 1e38, -3e38])
    if way < 3:
        tensor.view(-1)[chance.randrange(tensor.numel())] = bad
    elif way == 3:
        tensor = torch.full_like(tensor, bad)
    elif way == 4:
        tensor = tensor.to(
            chance.choice([torch.int64, torch.bool, torch.complex64, torch.uint8])
        )
    elif way == 5:
        tensor = (
            tensor[None] if chance.random() < 0.5 else tensor.flatten()[:-1].clone()
        )
    elif way == 6:
        tensors["another"] = tensor.clone()
    elif way == 7:
        del tensors[name]
    else:
        tensors[f"{name}x"] = tensors.pop(name)
    if way < 6:
        tensors[name] = tensor
    kept = chance.random() < 0.5
    if not kept:
        metadata = without_checksum(metadata)
    save_file({k: v.contiguous() for k, v in tensors.items()}, path, metadata)
    return f"{name} way {way} {bad}, checksum {'kept' if kept else 'gone'}"


def all_metadata(path):
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return file.metadata() or {}


def without_checksum(metadata):
    """As an older version of the package wrote it."""
    said = json.loads(metadata.get("saved", json.dumps(metadata)))
    return {name: value for name, value in said.items() if name != "sha256"} or None


# What a command may have got wrong


def as_before(home):
    """A damaged folder must be refused, or answer as it did."""
    before = (home / "said").read_text(encoding="utf8")
    return lambda out: (
        "" if out == before else f"another answer: {out[:80]!r}, not {before[:80]!r}"
    )


def whole_model(folder):
    """Training that says it is done leaves a model of finite numbers."""

    def wrong(out):
        model, _ = load(folder)
        finite = all(p.isfinite().all() for p in model.parameters())
        return "" if finite else "weights that are not numbers"

    return wrong


def lines_for(count):
    return lambda out: (
        "" if out.count("\n") == count else f"{out.count(chr(10))} lines for {count}"
    )


# Kinds of commands

OWN = ["--source-file", "own.en", "--target-file", "own.de"]
RUN, BRIEF = ["--folder", "run"], ["--updates", "2", "--minutes", "0.02"]
TRANSLATE, EVALUATE = ["translate", "A cat.", *RUN], ["evaluate", *RUN, *OWN]
ATTEND = ["attend", "A cat.", *RUN, "--html", "page.html"]  # pictures take seconds
TRAIN = ["train", *OWN, *options({**SIZES, **SPEED})]
WITH_OPTIONS = {  # commands, and options that they have or might have
    "train": (
        [*TRAIN, "--folder", "new", *BRIEF],
        [
            *SIZES,
            *SPEED,
            "P_drop",
            "factor",
            "clip",
            "seed",
            "patience",
            "corpus",
            "epsilon_ls",
            "accumulate",
            "preset",
            "family",
            "source_file",
            "precision",
            "target_file",
            "source_language",
            "device",
            "folder",
            "d_k",
            "d_v",
            "k",
            "positions",
            "cell",
            "save_minutes",
            "reverse",
        ],
    ),
    "resume": (
        ["train", "--resume", *RUN, *BRIEF],
        [*SPEED, "d_model", "seed", "corpus", "folder", "family", "factor"],
    ),
    "evaluate": (
        EVALUATE,
        [
            "beam",
            "alpha",
            "average",
            "corpus",
            "split",
            "language",
            "record",
            "source_file",
            "device",
            "folder",
        ],
    ),
    "translate": (TRANSLATE, ["beam", "alpha", "n_best", "device", "folder"]),
    "attend": (ATTEND, ["output", "html", "folder"]),
    "chat": (
        ["chat"],
        ["temperature", "top_k", "top_p", "seed", "device", "folder", "html"],
    ),
    "export": (["export", *RUN], ["output", "folder"]),
    "bench": (["bench", "T9"], ["clock", "device", "rounds"]),
    "variations": (
        ["variations", "--rows", "Z"],
        ["seeds", "device", "folder", "workers"],
    ),
}


def option(chance, home, folder):
    """One option of a command with a value that may not suit it, or two."""
    kind = chance.choice(["train", *WITH_OPTIONS])
    words, names = WITH_OPTIONS[kind]
    chosen = [chance.choice(names) for _ in range(chance.choice([1, 1, 2]))]
    for name in chosen:
        words = [*words, f"--{name.replace('_', '-')}", chance.choice(WORDS)]
    wrong = (
        whole_model(folder / "new")
        if kind == "train" and "folder" not in chosen
        else None
    )
    return Case(
        "options",
        " ".join(words),
        words,
        prepared=False,
        wrong=wrong or (lambda out: ""),
    )


def sentence(chance, home, folder):
    """A sentence as an argument."""
    text = some_text(chance).replace("\x00", "")
    name = chance.choice(["translate", "translate", "attend"])
    words = [name, text, "--folder", "run"]
    if name == "attend" and chance.random() < 0.95:  # pictures take seconds
        words += ["--html", "page.html"]
    one = lines_for(1) if name == "translate" else lambda out: ""
    return Case(
        "sentences",
        f"{name} {text!r}",
        words,
        None if chance.random() < 0.2 else b"",
        wrong=one,
        prepared=False,
    )


def standard_input(chance, home, folder):
    """Lines on standard input, which may also be closed."""
    content = None if chance.random() < 0.1 else some_bytes(chance)
    words = ["translate", "--folder", "run", *chance.choice([[], ["--beam", "1"]])]
    count = 0 if not content else content.count(b"\n") + (not content.endswith(b"\n"))
    return Case("standard input", repr(content), words, content, wrong=lines_for(count))


def talk(chance, home, folder):
    """Lines that are said to the bot that comes along, or to a model of another kind."""
    content = None if chance.random() < 0.1 else some_bytes(chance)
    words = [
        "chat",
        *chance.choice([[], [], RUN, ["--temperature", "1", "--top-k", "3"]]),
    ]
    lines = (content or b"").decode("utf8", "replace").split("\n")
    said = [line for line in lines if line.strip()]
    return Case(
        "chat", f"{words[1:]} {content!r}", words, content, wrong=lines_for(len(said))
    )


def own_files(chance, home, folder):
    """Sentence files of any content."""
    for name in chance.sample(["own.en", "own.de"], chance.randrange(1, 3)):
        if chance.random() < 0.5:
            damage_bytes(chance, folder / name)
        else:
            (folder / name).write_bytes(some_bytes(chance))
    if chance.random() < 0.5:
        words = [*EVALUATE, "--beam", "1"]
        return Case("own files", " ".join(words), words)
    words = [*TRAIN, "--folder", "new"]
    return Case("own files", " ".join(words), words, wrong=whole_model(folder / "new"))


def configuration(chance, home, folder):
    """A damaged config.json, tokenizer.json, run.json or log.jsonl."""
    name = chance.choice(
        ["config.json", "config.json", "tokenizer.json", "run.json", "log.jsonl"]
    )
    how = damage_file(chance, folder / "run" / name)
    if name in ("run.json", "log.jsonl") or chance.random() < 0.2:
        resume = ["train", "--resume", *RUN, "--updates", "5", "--minutes", "0.05"]
        words = chance.choice([resume, EVALUATE])
        return Case("configurations", f"{name} {how} {words[0]}", words)
    now = (folder / "run" / "config.json").read_text("utf8", "replace")
    free = "'about'" in how or '"about"' not in now  # beam and alpha may be changed
    same = as_before(home) if not free else lambda out: ""
    return Case("configurations", f"{name} {how}", TRANSLATE, wrong=same)


def weights(chance, home, folder):
    """Damaged weights; a command must see it."""
    average = chance.random() < 0.2
    files = sorted((folder / "run" / "weights").iterdir())
    path = chance.choice(files) if average else folder / "run" / "model.safetensors"
    how = (damage_bytes if chance.random() < 0.4 else damage_tensors)(chance, path)
    words = (
        [*EVALUATE, "--average", "2"]
        if average
        else chance.choice(
            [
                TRANSLATE,
                [*TRANSLATE, "--beam", "1"],
                [*TRANSLATE, "--n-best", "3"],
                ATTEND,
                ["export", *RUN],
            ]
        )
    )
    return Case(
        "weights",
        f"{path.name} {how} {' '.join(words)}",
        words,
        wrong=lambda out: "damaged weights are taken",
    )


def checkpoint(chance, home, folder):
    """A damaged checkpoint; resuming must see it, or end with a whole model."""
    path = folder / "run" / "checkpoint.safetensors"
    if chance.random() < 0.6:
        from safetensors.torch import save_file

        tensors, metadata = load_weights(path)
        name = chance.choice(["progress", "progress", "progress", "config"])
        where, content = damage_json(chance, json.loads(metadata[name]))
        metadata[name] = json.dumps(content)
        if chance.random() < 0.1:
            del metadata[name]
        save_file(tensors, path, metadata)
        how = f"{name} {where} {str(content)[:200]}"
    else:
        how = (damage_bytes if chance.random() < 0.4 else damage_tensors)(chance, path)
    words = ["train", "--resume", *RUN, "--updates", "6"]
    return Case("checkpoints", how, words, wrong=whole_model(folder / "run"))


def run_folder(chance, home, folder):
    """A run's folder with files that lack, are folders, links, or come from somewhere else."""
    run = folder / "run"
    paths = sorted(path for path in run.rglob("*") if path.is_file())
    told = []
    for path in chance.sample(paths, chance.randrange(1, 4)):
        if not path.exists():
            continue
        way = chance.randrange(5)
        path.unlink()
        if way == 1:
            path.mkdir()
        elif way == 2:
            path.symlink_to(path)
        elif way == 3:
            path.symlink_to("nowhere")
        elif way == 4:
            other = chance.choice(paths)
            if other.is_file():
                shutil.copy(other, path)
        told.append(f"{path.name} {way}")
    if chance.random() < 0.2:
        shutil.rmtree(run / "weights", ignore_errors=True)
    words = chance.choice(
        [
            TRANSLATE,
            ["train", "--resume", *RUN, "--updates", "5"],
            EVALUATE,
            ATTEND,
            [*EVALUATE, "--average", "1"],
            [*TRAIN, *RUN],
        ]
    )
    same = as_before(home) if words[0] == "translate" else lambda out: ""
    return Case("folders", f"{told} {' '.join(words[:4])}", words, wrong=same)


def foreign_folder(chance, home, folder):
    """A damaged folder of GPT-2, which has no checksums: refused, or a model of finite numbers."""
    shutil.copytree(home / "theirs", folder / "theirs")
    names = [
        "config.json",
        "config.json",
        "vocab.json",
        "merges.txt",
        "model.safetensors",
    ]
    path = folder / "theirs" / chance.choice(names)
    if chance.random() < 0.1:
        path.unlink()
        how = "gone"
    elif path.suffix == ".json":
        how = damage_file(chance, path)
    elif path.suffix == ".safetensors" and chance.random() < 0.7:
        how = damage_tensors(chance, path)
    else:
        how = damage_bytes(chance, path)
    words = ["import", "theirs", "--output", "new"]
    return Case(
        "imports", f"{path.name} {how}", words, wrong=whole_model(folder / "new")
    )


COMMANDS = [
    option,
    option,
    sentence,
    standard_input,
    talk,
    own_files,
    configuration,
    configuration,
    weights,
    checkpoint,
    run_folder,
    foreign_folder,
]


def prepare(home, folder):
    """Fill the folder of a command."""
    shutil.copytree(home / "run", folder / "run")
    for name in ("own.en", "own.de"):
        shutil.copy(home / name, folder / name)
