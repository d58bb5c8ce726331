"""The malformed calls of the campaign (faults.py): each kind is a function that draws one."""

import math
import re
from functools import cache

import torch
from fault_cases import SIZES, Case
from fault_damage import NUMBERS, VALUES, some_text

from transformer.core.scores import bleu
from transformer.core.weights import load_weights
from transformer.corpora import CORPORA, read_corpus, register_corpus
from transformer.corpora.tokenizer import Tokenizer
from transformer.data import collate, encode_pairs, pad
from transformer.fast.convolution import ConvolutionConfig
from transformer.fast.model import Transformer, TransformerConfig
from transformer.fast.recurrence import RecurrenceConfig
from transformer.fast.search import beam_search, greedy_search
from transformer.models.checkpoint import average_checkpoints
from transformer.models.evaluation import evaluate
from transformer.models.families import build, parameters_of
from transformer.models.pretrained import load
from transformer.models.search import Batching, translate, translate_n_best
from transformer.parsing import gold_tree, linearize, read_back
from transformer.runs.batches import token_batches
from transformer.runs.training import TrainingConfig, train
from transformer.views.pages import view


@cache
def parts(home):
    """(model, tokenizer, pairs) of the run; nobody changes them."""
    model, tokenizer = load(home / "run")
    return (
        model,
        tokenizer,
        encode_pairs(tokenizer, [("A cat.", "Eine Katze."), ("Yes.", "Ja.")]),
    )


def fields_of(config, chance):
    """Some settings of a configuration with values that may not suit them."""
    names = list(config.__dataclass_fields__)
    found = {
        name: chance.choice(VALUES)
        for name in chance.sample(names, chance.randrange(1, 4))
    }
    if config is TrainingConfig:
        return found
    return {name: value for name, value in SIZES.items() if name in names} | found


def configure(chance, home):
    """A configuration; what is taken must make a model, or at least be counted."""
    config = chance.choice(
        [
            TransformerConfig,
            TransformerConfig,
            RecurrenceConfig,
            ConvolutionConfig,
            TrainingConfig,
        ]
    )
    settings = fields_of(config, chance)

    def call():
        c = config(**settings)
        if config is TrainingConfig:
            texts = [name for name, value in vars(c).items() if isinstance(value, str)]
            return "" if texts == ["precision"] else "a string"
        if parameters_of(c) < 10**6:
            model = build(c).eval()
            ids = torch.tensor([[c.bos_id, c.eos_id]])
            out = greedy_search(model, ids, 2)
            return "" if len(out) == 1 else "no output"
        return ""

    return Case("configure", f"{config.__name__} {settings}", call=call)


def broken_model(chance, home):
    """The run's model with a weight that is no number."""
    model, tokenizer = load(home / "run")
    weight = chance.choice(list(model.parameters()))
    bad = chance.choice([math.nan, math.inf, 1e38])
    with torch.no_grad():
        weight.view(-1)[chance.randrange(weight.numel())] = bad
    return model, tokenizer, bad


def searched(model, source, way, beam, alpha, extra, n_best):
    """What is wrong with a search from ids."""
    found = (
        greedy_search(model, source, extra)
        if way == 2
        else beam_search(model, source, beam, alpha, extra, n_best)
    )
    return "" if len(found) == len(source) and all(found) else "no output"


def search(chance, home):
    """A search with settings, sentences, or a model that may not suit it."""
    model, tokenizer, pairs = parts(home)
    texts = [some_text(chance) for _ in range(chance.randrange(4))]
    beam, alpha, extra = (
        chance.choice([good, good, chance.choice(NUMBERS)]) for good in (3, 0.6, 5)
    )
    n_best = chance.choice([1, 2, chance.choice(NUMBERS)])
    bad = chance.random() < 0.2
    if bad:
        model, tokenizer, _ = broken_model(chance, home)
    way = chance.randrange(4)
    if chance.random() < 0.1:
        texts = chance.choice([texts + [None], "text", texts + [3], [b"a"], None])

    def by_texts():
        how = Batching(extra=extra)
        if way == 0:
            found = translate(model, tokenizer, texts, beam, alpha, how)
        else:
            lists = translate_n_best(model, tokenizer, texts, n_best, beam, alpha, how)
            found = [entries[0].text for entries in lists]
            if any(not math.isfinite(e.score) for entries in lists for e in entries):
                return "a score that is no number"
        return "" if len(found) == len(texts) else f"{len(found)} outputs"

    def by_ids():
        source = pad([source for source, _ in pairs], 0)
        return searched(model, source, way, beam, alpha, extra, n_best)

    told = f"way {way}, {texts!r}, {beam}, {alpha}, {extra}, {n_best}, {bad}"
    return Case("searches", told, call=by_texts if way < 2 else by_ids)


def tokenize(chance, home):
    """A vocabulary to learn, texts to encode, ids to decode, a file to load."""
    _, tokenizer, _ = parts(home)
    way = chance.randrange(4)
    texts = [some_text(chance) for _ in range(chance.randrange(1, 5))]
    size = chance.choice([300, 300, *VALUES])
    ids = [chance.choice([5, 299, *VALUES]) for _ in range(3)]
    if chance.random() < 0.15:
        texts = chance.choice([["a" * 10**6], "text", [None], [1], [], None, [b"a"]])

    def call():
        if way == 0:
            Tokenizer.train(texts, size)
        elif way == 1:
            encoded = tokenizer.encode_all(texts)
            for text, row in zip(texts, encoded):
                if tokenizer.decode(row) != text:
                    return "another text"
        elif way == 2:
            tokenizer.decode(ids)
        else:
            for text in texts if isinstance(texts, list) else [texts]:
                tokenizer.encode(text)
        return ""

    return Case(
        "tokenizers", f"way {way}, {str(texts)[:200]!r}, {size}, {ids}", call=call
    )


def trees(chance, home):
    """Brackets that are no trees."""
    bits = [
        "(",
        ")",
        "((",
        "S",
        "NP",
        " ",
        "(DT the)",
        "(NN cat)",
        "-NONE-",
        "(-NONE- *)",
        "_",
    ]
    text = "".join(chance.choice(bits) for _ in range(chance.randrange(30)))
    deep = chance.choice([0, 0, 0, 100, 399, 900, 10_000])
    text = "(S " * deep + text + ")" * deep if deep else text
    way = chance.randrange(2)

    def call():
        if way == 0:
            linearize(gold_tree(text))
        else:
            tree, _ = read_back(text, [("a", "DT"), ("b", "NN")])
            return "" if len(tree.leaves()) == 2 else "other leaves"
        return ""

    return Case("trees", f"way {way}, {text[:100]!r}", call=call)


# pairs of ids that no model should have to read
ROWS = [[], [([], [])], [([5], [1])], [([300], [1, 2])], [([5, 2], [1, -3, 2])]]


def forward(chance, home):
    """Batches of ids that a model cannot read."""
    model, tokenizer, pairs = parts(home)
    some = [3, 5, 299, 300, -1, 0, 2**40]
    ids = [chance.choices(some, k=chance.choice([1, 4, 200])) for _ in range(2)]
    shapes = [
        chance.choice([(2, 3, 4), (3,), (0, 3), (2, 0), (1, 2)]) for _ in range(2)
    ]
    way = chance.randrange(5)
    rows = chance.choice([pairs, *ROWS[:3], pairs + [([5] * 200, [1, 2])], *ROWS[3:]])
    size = chance.choice([100, *NUMBERS])

    def call():
        if way == 0:
            out = model(*(torch.tensor([row]) for row in ids))
            return "" if out.isfinite().all() else "not finite"
        if way == 1:
            model(*(torch.ones(shape, dtype=torch.long) for shape in shapes))
        elif way == 2:
            brief = TrainingConfig(updates=2, batch_tokens=50, warmup=2)
            log = train(Transformer(model.config), rows, brief)
            return "" if math.isfinite(log[-1]["loss"]) else "a loss that is no number"
        elif way == 3:
            collate(rows)
        else:
            found = sorted(i for batch in token_batches(rows, size) for i in batch)
            return "" if found == list(range(len(rows))) else "pairs are lost"
        return ""

    told = f"way {way}, {str(ids)[:150]} {str(rows)[:100]} {size} {shapes}"
    return Case("batches", told, call=call)


NOWHERE = ["", ".", "/", "/nowhere", "\x00", "a" * 300, "/dev/null", "\udce9"]


def register(name, paths):
    """Register a corpus, read it, and forget it."""
    known = dict(CORPORA)
    try:
        register_corpus(name, train=paths)
        read_corpus(name, "train")
    finally:
        CORPORA.clear()
        CORPORA.update(known)


def files(chance, home):
    """Folders, files and corpora that are not there or not what they should be."""
    there = [home, home / "own.en", home / "run", home / "run" / "run.json"]
    place = chance.choice([*NOWHERE, *there])
    way = chance.randrange(6)
    names = [
        chance.choice(
            ["bundled", "mine", "", "multi30k", "\udce9", *map(str, NUMBERS)]
        ),
        chance.choice(["train", "test", "", "exam"]),
    ]

    def call():
        if way == 0:
            model, _ = load(place)
        elif way == 1:
            load_weights(place)
        elif way == 2:
            average_checkpoints(chance.choice([place, [place], [], [place, place]]))
        elif way == 3:
            Tokenizer.load(place)
        elif way == 4:
            read_corpus(*names)
        else:
            register(names[0], chance.choice([(place,), (place, place), place]))
        return ""

    return Case("files", f"way {way}, {place!r}, {names}", call=call)


TO_VIEW = [
    "A cat.",
    "",
    [],
    ["A cat."] * 500,
    [None],
    3,
    [("a", "b", "c")],
    ("A cat.", "Eine Katze."),
    [("", "")],
]


def scored(chance, home):
    """Translations to score and sentences to view."""
    model, tokenizer, _ = parts(home)
    outputs, references = (
        [some_text(chance) for _ in range(chance.randrange(4))] for _ in range(2)
    )
    if chance.random() < 0.2:
        outputs = chance.choice(["text", [None], None, [3]])
    way = chance.randrange(3)
    many = chance.choice([outputs, references, *TO_VIEW])
    resamples = chance.choice([0, 0, 2, -1, 1])

    def call():
        if way == 0:
            found = bleu(outputs, references, resamples=resamples)
            return "" if 0 <= found.score <= 100.0001 else f"a score of {found.score}"
        if way == 1:
            found = evaluate(model, tokenizer, list(zip(references, references)), 1)
            return (
                "" if found["sentences"] == len(references) else "sentences are missing"
            )
        page = view(model, tokenizer, many).page
        return "not a number" if re.search(r"[\[,:]NaN[\],}]", page) else ""

    told = f"way {way}, {outputs!r:.100}, {references!r:.100}, {many!r:.60}"
    return Case("scores, views", told, call=call)


FUNCTIONS = [configure, search, tokenize, trees, forward, files, scored]
