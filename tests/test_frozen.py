"""Frozen: logits, losses, gradients, updates, searches, ids, and what mistakes are told.

The expected values stand in tests/frozen.json; a change that is meant to change them writes them
anew with `python tests/test_frozen.py --write` and says why. Weights are filled by their names, so
neither the order nor the rule of initialisation matters; the batches of an epoch are not frozen.
Numbers agree to 1e-9 (float64), all else exactly.
"""

import contextlib
import io
import json
import math
import os
import re
import shutil
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from unittest import mock
from zlib import crc32

import pytest
import torch

# What may move: a later commit may edit this block, down to the next line, and nothing below
import transformer.cli as command_line
from transformer import (
    TrainingConfig,
    Transformer,
    TransformerConfig,
    beam_search,
    cache,
    encode_pairs,
    greedy_search,
    load,
    read_corpus,
    train,
    translate,
    translate_n_best,
)
from transformer.data import collate
from transformer.fast import FAST
from transformer.fast.convolution import ConvolutionalEncoderDecoder, ConvolutionConfig
from transformer.fast.loss import SmoothedLoss
from transformer.fast.recurrence import RecurrenceConfig, RecurrentEncoderDecoder
from transformer.optimizer import learning_rate
from transformer.regularization import label_smoothing_loss
from transformer.runs.training import validation_loss


def loss_of(model, batch, epsilon):
    """The loss that training makes small: summed over real target tokens, in nats."""
    return model.loss(batch, SmoothedLoss(epsilon))


def fast(config):
    """A Transformer of the fast parts."""
    return Transformer(config, FAST)


@contextlib.contextmanager
def record_attention(model):
    """The weights of all calls, by the names of the modules."""
    record = {}
    with cache(model, "*.weights") as seen:
        yield record
    for name in seen:
        stack, rest = name.removesuffix(".weights").split(".", 1)
        record[f"{stack}.layers.{rest}"] = seen.calls(name)


# ----------------------------------------------------------------------------------------------

EXPECTED = Path(__file__).with_name("frozen.json")
SOURCES = [[3, 5, 7, 8, 2], [9, 2], [11, 10, 9, 8, 7, 6, 2], [4, 4, 6, 2]]
TARGETS = [[1, 12, 5, 2], [1, 2], [1, 4, 4, 9, 17, 20, 3, 5, 2], [1, 8, 7, 19, 2]]
PAIRS = list(zip(SOURCES, TARGETS))
SIZES = dict(vocab_size=23, P_drop=0.0, max_positions=30)
BASE = TransformerConfig(d_model=16, d_ff=24, N=2, h=4, **SIZES)
TRANSFORMERS = {
    "post-norm": BASE,
    "pre-norm": replace(BASE, norm_first=True),
    "untied": replace(BASE, tie_embeddings=False),
    "learned": replace(BASE, positions="learned"),
    "d_k": replace(BASE, d_k=3, d_v=5),
    "all": replace(
        BASE,
        norm_first=True,
        tie_embeddings=False,
        positions="learned",
        d_k=6,
        d_v=2,
        N=1,
    ),
}


def filled(model):
    """The model at float64, every parameter filled with numbers that its name decides."""
    for name, p in model.double().named_parameters():
        generator = torch.Generator().manual_seed(crc32(name.encode()))
        noise = torch.randn(p.shape, generator=generator, dtype=torch.float64)
        centre = 1.0 if name.endswith(("gain", "original0")) else 0.0
        p.data = centre + noise * (0.1 if p.dim() == 1 else p.shape[-1] ** -0.5)
    return model.eval()


def models():
    """{name: model} of every family and switch."""
    found = {name: Transformer(c) for name, c in TRANSFORMERS.items()}
    found["fast"] = fast(BASE)
    found["fast, pre-norm, untied"] = fast(
        replace(BASE, norm_first=True, tie_embeddings=False)
    )
    found["gru"] = RecurrentEncoderDecoder(RecurrenceConfig(d_model=12, N=2, **SIZES))
    found["lstm"] = RecurrentEncoderDecoder(
        RecurrenceConfig(d_model=12, N=1, cell="lstm", **SIZES)
    )
    found["no attention"] = RecurrentEncoderDecoder(
        RecurrenceConfig(d_model=12, N=1, attention=False, **SIZES)
    )
    found["convolution"] = ConvolutionalEncoderDecoder(
        ConvolutionConfig(d_model=12, N=2, k=3, **SIZES)
    )
    return {name: filled(model) for name, model in found.items()}


def digest(x):
    """Sum, norm, one number on which every entry has its own influence, and a few entries."""
    x = x.detach().double().flatten()
    each = torch.cos(torch.arange(len(x), dtype=torch.float64))
    return [
        x.sum().item(),
        x.norm().item(),
        (x * each).sum().item(),
        *x[:: max(1, len(x) // 3)][:4].tolist(),
    ]


# What is frozen: each function returns what is written into the file under its name


def computed():
    """Logits of real tokens, the smoothed and the plain loss, gradients."""
    batch, result = collate(PAIRS), {}
    for name, model in models().items():
        logits = model(batch.source, batch.decoder_input)[batch.decoder_input != 0]
        loss = loss_of(model, batch, 0.1)
        loss.backward()
        gradients = {key: digest(p.grad) for key, p in sorted(model.named_parameters())}
        plain = validation_loss(model, PAIRS)["validation_loss"]
        result[name] = {
            "logits": digest(logits),
            "loss": loss.item(),
            "plain": plain,
            "gradients": gradients,
        }
    return result


def updated():
    """Losses and weights of three updates by the loop; the corpus is one batch in any order."""
    settings, result = (
        TrainingConfig(
            updates=3, batch_tokens=500, warmup=4, validate_every=1, clip=20.0
        ),
        {},
    )
    for name, model in models().items():
        log = train(model, PAIRS, settings)
        weights = {key: digest(p) for key, p in sorted(model.named_parameters())}
        result[name] = {
            "weights": weights,
            "log": [[row["update"], row["tokens"], row["loss"]] for row in log],
        }
    return result


def searched():
    """Greedy and beam ids, padded sentences side by side."""
    source, result = collate(PAIRS).source, {}
    for name, model in models().items():
        lists = beam_search(model, source, beam=4, alpha=0.6, extra=6, n_best=3)
        result[name] = {
            "greedy": greedy_search(model, source, extra=6),
            "beam": [[[h.tokens, h.score] for h in hypotheses] for hypotheses in lists],
        }
    return result


def attended():
    """Every head's weights, by the names of the modules."""
    batch = collate(PAIRS[:2])
    model = filled(Transformer(BASE))
    with torch.no_grad(), record_attention(model) as record:
        model(batch.source, batch.decoder_input)
    return {
        name: [digest(weights) for weights in calls] for name, calls in record.items()
    }


def bundled():
    """The bundled model: what is loaded, and what it says to sentences of the test set."""
    model, tokenizer = load()
    source = [text for text, _ in read_corpus("bundled", "test")[::50]]
    ids = collate(
        [([*row, tokenizer.eos_id], [1]) for row in tokenizer.encode_all(source)]
    ).source
    n_best = translate_n_best(model, tokenizer, source[:6])
    return {
        "config": asdict(model.config),
        "parameters": sum(p.numel() for p in model.parameters()),
        "sums": {
            name: p.double().sum().item()
            for name, p in sorted(model.named_parameters())
        },
        "greedy": translate(model, tokenizer, source, beam=1),
        "beam": translate(model, tokenizer, source),
        "alpha": translate(model, tokenizer, source[:8], beam=3, alpha=1.6),
        "greedy ids": greedy_search(model, ids),
        "beam ids": [best[0].tokens for best in beam_search(model, ids)],
        "n-best, float32": [
            [[entry.text, entry.score] for entry in some] for some in n_best
        ],
    }


def tokenized():
    """Ids of the bundled tokenizer."""
    _, tokenizer = load()
    texts = [
        "The old cat sees the garden.",
        "Die Katze sieht ihren Garten nicht, weil sie schläft.",
        "Zwölf Boxkämpfer jagen Viktor quer über den Sylter Deich!",
        "naïve café, 東京, 🙂",
        "x" * 40,
        "",
        " two  spaces ",
        "1,234.5 %",
    ]
    encoded = [tokenizer.encode(text) for text in texts]
    result = {
        "ids": encoded,
        "texts": [tokenizer.decode(ids) for ids in encoded],
        "types": tokenizer.vocab_size,
        "marks": [tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id],
    }
    for split in ("train", "validation", "test", "hard"):
        pairs = [
            list(map(list, pair))
            for pair in encode_pairs(tokenizer, read_corpus("bundled", split))
        ]
        tokens = sum(len(ids) for pair in pairs for ids in pair)
        result[split] = [len(pairs), tokens, crc32(json.dumps(pairs).encode())]
    return result


def scheduled():
    """The learning rate by update: (d_model, warmup, factor), rates."""
    updates = (1, 2, 10, 399, 400, 401, 4000, 4001, 100_000)
    settings = ((512, 4000, 1.0), (256, 400, 0.5), (1024, 1, 2.0))
    return [[*c, [learning_rate(n, *c) for n in updates]] for c in settings]


def smoothed():
    """The label-smoothed loss of notebook 13, with its gradient."""
    logits = torch.randn(
        3, 5, 11, generator=torch.Generator().manual_seed(7), dtype=torch.float64
    ).requires_grad_()
    gold = torch.tensor([[3, 5, 1, 7, 2], [4, 2, 0, 0, 0], [10, 9, 8, 2, 0]])
    result = []
    for epsilon in (0.0, 0.1, 0.3):
        for reduction in ("mean", "sum", "none"):
            loss = label_smoothing_loss(logits, gold, epsilon, reduction=reduction)
            (gradient,) = torch.autograd.grad(loss.sum(), logits)
            result.append([epsilon, reduction, digest(loss), digest(gradient)])
    return result


# What the command line says

FILES = "--source-file own.en --target-file own.de"
TINY = (
    "--vocab-size 270 --d-model 16 --d-ff 16 --N 1 --h 2 --max-positions 60 --updates 2 "
    "--batch-tokens 200 --warmup 4 --validate-every 2 --seed 3"
)
MISTAKES = """
train --corpus multi31k
train --preset huge
train --P-drop 1.5
train --updates 0
train --updates many
train --minutes 0
train --epsilon-ls 1
train --vocab-size 100
train --d-model 30
train --h 0
train --precision fp7
train --no-such-option
train --device nonsense
train --source-file own.en
train --source-file none.en --target-file own.de
train --reverse FILES
train --source-file empty --target-file own.de TINY --folder new
train --source-file latin --target-file own.de TINY --folder new
train --source-file short --target-file own.de TINY --folder new
train --source-file long --target-file own.de TINY --folder new
train FILES TINY --folder run
train FILES --folder own.en
train --resume --folder nowhere
train --resume --folder run --corpus multi30k
train --resume --folder run --d-model 32 --updates 3
train --resume --folder damaged-checkpoint --updates 3
evaluate --split exam
evaluate --corpus multi30k --split hard
evaluate --alpha -1
evaluate --average 2
evaluate --reverse FILES
evaluate --folder run
evaluate --folder run FILES --average 9
evaluate --folder damaged-settings
translate Hello. --folder nowhere
translate Hello. --beam 0
translate Hello. --n-best 5
translate Hello. --alpha 11
translate Hello. --device cuda:99
translate LONG --folder run
translate --folder run
translate Hello. --folder damaged-weights
translate Hello. --folder no-weights
translate Hello. --folder damaged-config
translate Hello. --folder damaged-tokenizer
translate Hello. --folder other-config
attend
attend LONG --folder run
attend Hello. --folder run --output own.en
variations --rows Z
variations --corpus multi31k
bench T9
demo --folder run
fly
""".strip().splitlines()


def call(line, stdin=b""):
    """Run a command in this process: its exit status, and its last line on standard error."""
    line = line.replace("FILES", FILES).replace("TINY", TINY)
    arguments = ["word " * 70 if word == "LONG" else word for word in line.split()]
    error = io.StringIO()
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(error),
        mock.patch.object(sys, "argv", ["transformer", *arguments]),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin))),
    ):
        try:
            command_line.main()
            status = 0
        except SystemExit as stop:
            status = stop.code or 0
    # Left out is what depends on versions: a library's reasons, and what the parser prints
    said = (error.getvalue().splitlines() or [""])[-1]
    said = re.sub(r"(file|tokenizer|configuration|of a run) \(.*\)", r"\1 (...)", said)
    return [status, said if said.startswith("transformer: ") else ""]


def prepare(folder):
    """Sentence files, good and bad; a run, and copies of it, each damaged in its own way."""
    for name, content in {
        "own.en": b"a cat\na dog sleeps\nthe sun\n",
        "own.de": b"eine Katze\nein Hund\ndie Sonne\n",
        "empty": b"",
        "latin": b"a\nsch\xf6n\nb\n",
        "short": b"a\nb\n",
        "long": b"f\n" + b"q z " * 60 + b"\nb\n",  # the second is trained on
    }.items():
        (folder / name).write_bytes(content)
    assert call("train FILES TINY --folder run") == [0, ""]
    for name, file, damage in (
        (
            "damaged-checkpoint",
            "checkpoint.safetensors",
            lambda content: content[:-100],
        ),
        ("damaged-settings", "run.json", lambda content: b"{"),
        ("damaged-weights", "model.safetensors", lambda content: content[:-100]),
        ("no-weights", "model.safetensors", None),
        ("damaged-config", "config.json", lambda content: b"[]"),
        ("damaged-tokenizer", "tokenizer.json", lambda content: b"{}"),
        (
            "other-config",
            "config.json",
            lambda content: content.replace(b'"d_ff": 16', b'"d_ff": 32'),
        ),
    ):
        path = Path(shutil.copytree(folder / "run", folder / name)) / file
        content = path.read_bytes()
        path.unlink()
        if damage:
            path.write_bytes(damage(content))


def refused():
    """{mistake: exit status and sentence}."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            prepare(Path(folder))
            return {line: call(line, stdin=b"good\nsch\xf6n\n") for line in MISTAKES}
        finally:
            os.chdir(before)


SECTIONS = [
    computed,
    updated,
    searched,
    attended,
    bundled,
    tokenized,
    scheduled,
    smoothed,
    refused,
]


def as_written(value):
    """As JSON gives it back, numbers to twelve digits."""
    if isinstance(value, dict):
        return {key: as_written(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_written(part) for part in value]
    return float(f"{value:.12g}") if isinstance(value, float) else value


def differences(expected, found, path="", within=1e-9):
    """Lines that say what differs; a dict may have more entries than when the file was written."""
    if isinstance(expected, dict) and isinstance(found, dict):
        within = {key: 1e-4 if "float32" in key else within for key in expected}
        return [
            line
            for key in expected
            for line in differences(
                expected[key], found.get(key), f"{path}/{key}", within[key]
            )
        ]
    if (
        isinstance(expected, list)
        and isinstance(found, list)
        and len(expected) == len(found)
    ):
        return [
            line
            for i, pair in enumerate(zip(expected, found))
            for line in differences(*pair, f"{path}/{i}", within)
        ]
    if isinstance(expected, float) and isinstance(found, float):
        same = math.isclose(expected, found, rel_tol=within, abs_tol=within)
    else:
        same = expected == found
    return [] if same else [f"{path}: {expected!r} is {found!r} now"]


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_frozen(section):
    expected = json.loads(EXPECTED.read_text(encoding="utf8"))[section.__name__]
    assert differences(expected, as_written(section())) == []


def test_every_mistake_ends_with_status_2():
    expected = json.loads(EXPECTED.read_text(encoding="utf8"))["refused"]
    assert {status for status, _ in expected.values()} == {2}


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python tests/test_frozen.py --write")
    torch.set_num_threads(1)
    values = {section.__name__: as_written(section()) for section in SECTIONS}
    text = json.dumps(values, indent=0, ensure_ascii=False)
    text = re.sub(r"(?<=[\[\],])\n(?=[-\d\[\]n])|(?<=[\d\]])\n(?=\])", "", text)
    EXPECTED.write_text(text + "\n", encoding="utf8")
