"""The malformed commands of the campaign (faults.py): each kind is a function that draws one.

It gets a folder with a copy of a small finished run in it, `run`, and two files, own.en and own.de,
all free to be damaged.
"""

import contextlib
import io
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass

from fault_damage import (
    WORDS,
    damage_bytes,
    damage_file,
    damage_json,
    damage_tensors,
    some_bytes,
    some_text,
    write_gpt2,
)

from transformer import cli
from transformer.core.weights import load_weights
from transformer.corpora import read_corpus
from transformer.models.pretrained import load

SIZES = dict(vocab_size=300, d_model=16, d_ff=32, N=1, h=2, max_positions=150)
SPEED = dict(updates=4, batch_tokens=300, warmup=4, validate_every=2, keep=2)


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
            "lr_scale",
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
        [*SPEED, "d_model", "seed", "corpus", "folder", "family", "lr_scale"],
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


ON_A_RUN = [
    TRANSLATE,
    ["train", "--resume", *RUN, "--updates", "5"],
    EVALUATE,
    ATTEND,
    [*EVALUATE, "--average", "1"],
    [*TRAIN, *RUN],
]


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
    words = chance.choice(ON_A_RUN)
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
