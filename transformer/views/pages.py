"""A page that holds a model: one HTML file that translates what is typed, shows attention, and lets
heads be changed.

It loads nothing, so it works offline, in JupyterLab, in Colab and on a web site. The folder live/
has its JavaScript; the tests hold that to the same tokens and logits as Python's.
"""

import base64
import json
import math
from dataclasses import asdict
from urllib.parse import quote

import torch

from transformer.core.checks import check_sentences, sides_of
from transformer.core.protocol import check_plain, longest_source
from transformer.core.records import read_rows
from transformer.core.weights import count_parameters, load_weights
from transformer.core.white_space import normalised
from transformer.corpora import Example
from transformer.models.families import family_named
from transformer.models.maps import MOST, as_thousandths, attention_maps
from transformer.models.pretrained import bundled_folder, handed_parts
from transformer.models.search import translate
from transformer.views.turn import Turn, picture_of_lines, picture_of_turn
from transformer.views.widget import Widget, embedded, fill, live, png, script

LARGEST = 20_000_000  # parameters; the page of such a model has 53 MB
SHARED = (
    "kit",
    "numbers",
    "tensors",
    "tokenizer",
    "model",
    "search",
    "words",
    "pictures",
)
TITLE = "A model to take apart"
MODULES = {"page": (*SHARED, "panel", "page"), "chat": (*SHARED, "chat", "dialogue")}


# What the page holds


def why_still(model, family: str = "transformer") -> str:
    """Why a page that knows one family of models cannot compute this one; "" where it can."""
    if type(model.config) is not family_named(family).config or handed_parts(model):
        return "This model has parts that the page cannot compute."
    if (count := count_parameters(model)) > LARGEST:
        return (
            f"This model has {count / 1e6:.0f} million parameters; a page holds at most "
            f"{LARGEST / 1e6:.0f}."
        )
    return ""


def halves(model) -> str:
    """All parameters in half precision, one after the other, in base64."""
    parts = [p.detach().half().cpu().flatten() for p in model.parameters()]
    return base64.b64encode(torch.cat(parts).numpy().astype("<f2").tobytes()).decode()


def merges_of(tokenizer) -> dict:
    """A byte-pair encoding: the texts of its types, and its merges as pairs of ids."""
    bpe = tokenizer.bpe
    merges = json.loads(bpe.to_str())["model"]["merges"]
    pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in merges]
    return {
        "types": [bpe.id_to_token(i) for i in range(tokenizer.vocab_size)],
        "merges": [[bpe.token_to_id(piece) for piece in pair] for pair in pairs],
        "pad": tokenizer.pad_id,
        "bos": tokenizer.bos_id,
        "eos": tokenizer.eos_id,
    }


def engine_of(model, tokenizer) -> dict:
    """What a page has to know of a model and its tokenizer, besides `halves`."""
    shapes = [(name, list(p.shape)) for name, p in model.named_parameters()]
    return {
        "config": asdict(model.config),
        "tensors": shapes,
        "tokenizer": merges_of(tokenizer),
    }


def names_of(model) -> dict[str, str]:
    """{"encoder 1.3": what notebook 19 found this head to do}, for the bundled model only."""
    known = load_weights(bundled_folder() / "model.safetensors")[0]
    own = dict(model.named_parameters())
    if known.keys() != own.keys() or not all(
        torch.equal(known[n].float(), own[n].detach().cpu()) for n in known
    ):
        return {}
    turns = {"owner": "“its” to its noun", "owned": "“its” to what is owned"}
    names = {
        f"{row['kind']} {row['layer']}.{row['head']}": f"{turns[row['turn']]}, {math.floor(100 * row['looks'])} %"
        for row in read_rows("circuit")
        if row["what"] == "looks"
    }
    (card,) = read_rows(bundled_folder() / "card.json")
    place = f"cross {card['alignment.layer']}.{card['alignment.head']}"
    right = math.floor(100 * (1 - card["alignment.error"]))
    return names | {place: f"a word to its translation, {right} %"}


def entry_of(entry) -> dict:
    """A sentence, a pair or an `Example` as the page has it."""
    if isinstance(entry, str):
        return {"source": normalised(entry)}
    if not isinstance(entry, Example):
        return {"source": normalised(entry[0]), "target": normalised(entry[1])}
    pronouns = [
        [[word.index, word.antecedent] for word in both] for both in entry.pronouns
    ]
    gold = {
        "target": normalised(entry.target),
        "alignment": sorted(entry.alignment),
        "pronouns": pronouns,
    }
    return {"source": normalised(entry.source), "gold": gold}


def recorded(model, tokenizer, entries) -> list[dict]:
    """Entries with weights that Python computed, for models that the page cannot compute."""
    pairs = [
        (
            entry["source"],
            entry.get("target") or translate(model, tokenizer, [entry["source"]])[0],
        )
        for entry in entries
    ]
    maps = map(as_thousandths, attention_maps(model, tokenizer, pairs))
    return [
        {**entry, "target": target, "maps": m}
        for entry, (_, target), m in zip(entries, pairs, maps)
    ]


# The page


def page_of(data: dict, weights: str = "", name: str = "page") -> str:
    """An HTML page, complete in itself, of what its script wants to know and of `halves`.

    name: "page" takes a model apart, "chat" talks.
    """
    return fill(
        f"{name}.html",
        "\n" + live("page.css"),
        f"\n{script(MODULES[name])}\nstart{name.title()}();\n",
        data=embedded(data),
        weights=weights,
    )


def entries_of(sentences) -> list[dict]:
    """What `view` is given, as the page has it; ValueError for nothing, too many, an empty one."""
    listed = sentences if isinstance(sentences, list) else [sentences]
    if not listed:
        raise ValueError("no sentence to view: give one, or a list with at least one")
    if len(listed) > MOST:
        raise ValueError(f"a page shows at most {MOST} sentences, not {len(listed)}")
    sides_of(("", "") if isinstance(s, str | Example) else s for s in listed)
    entries = list(map(entry_of, listed))
    if not all(entry["source"] for entry in entries):
        raise ValueError("there is nothing to view in an empty sentence: leave it out")
    return entries


def encoded_texts(tokenizer, entries) -> list[list[int]]:
    """The sentences of entries and their translations, where there are, as token ids."""
    return [
        [*tokenizer.encode(text), tokenizer.eos_id]
        for entry in entries
        for text in (entry["source"], entry.get("target"))
        if text
    ]


def picture_of(model, tokenizer, entry, start):
    """(figure, its words) of the state in which a page starts."""
    if start:
        return picture_of_turn(model, tokenizer, entry["source"], start)
    pair = entry["source"], entry.get("target")
    target = pair[1] or translate(model, tokenizer, [pair[0]])[0]
    return picture_of_lines(*attention_maps(model, tokenizer, [(pair[0], target)]))


def view(model, tokenizer, sentences, turn: Turn | None = None) -> Widget:
    """`Widget` of a sentence, a (source, target) pair, an `Example`, or a list of them.

    The page translates what has no target. turn: a weight of the first sentence with which it
    starts changed. Of a model that the page cannot compute (too large, or with parts of its own)
    it shows what Python recorded. Raises ValueError for an empty list, for a sentence that is empty
    or longer than the model's positions, and for a turn of words that are not there or of a model
    that the page cannot compute.
    """
    check_plain(model)
    entries, own, still = entries_of(sentences), model.about, why_still(model)
    encoded = encoded_texts(tokenizer, entries)
    check_sentences(encoded, longest_source(model))
    if turn and still:
        raise ValueError(f"no page can turn a head of this model. {still}")
    start = turn and turn.start(tokenizer, entries[0]["source"])
    data = {
        "source": own.source or "",
        "target": own.target or "",
        "beam": own.beam,
        "alpha": own.alpha,
        "still": still,
        "start": start,
        "sentences": entries,
        "names": names_of(model),
    }
    figure, alt = picture_of(model, tokenizer, entries[0], start)
    shown = {"title": TITLE, "alt": alt, "picture": png(figure)}
    height = 900 + 28 * max(map(len, encoded))
    if still:
        data["sentences"] = recorded(model, tokenizer, entries)
        return Widget(page_of(data), height, **shown)
    if data["names"]:  # the bundled model, which the site has, too
        shown["fragment"] = fragment_of(entries, start)
    data |= engine_of(model, tokenizer)
    return Widget(page_of(data, halves(model)), height, **shown)


def fragment_of(entries, start) -> str:
    """How the address of a page asks for sentences, and for the state in which it starts."""
    asked = [{key: e[key] for key in ("source", "target") if key in e} for e in entries]
    return quote(json.dumps({"sentences": asked, "start": start}, ensure_ascii=False))
