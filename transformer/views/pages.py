"""A page that holds a model: one HTML file that translates what is typed, shows attention, and lets
heads be changed.

It loads nothing, so it works offline, in JupyterLab, in Colab and on a web site. The folder live/
has its JavaScript; the tests hold that to the same tokens and logits as Python's.
"""

import base64
import hashlib
import html
import json
import math
import re
from dataclasses import asdict, dataclass, field
from importlib.resources import files

import torch

from transformer.core.checks import sides_of
from transformer.core.files import write_file
from transformer.core.protocol import about, longest_source
from transformer.core.records import read_rows
from transformer.core.weights import count_parameters, load_weights
from transformer.corpora import Example
from transformer.models.kinds import kind_named
from transformer.models.maps import MOST, as_thousandths, attention_maps
from transformer.models.pretrained import bundled_folder, handed_part
from transformer.models.search import check_sentences, translate

LARGEST = 20_000_000  # parameters; the page of such a model has 53 MB
SHARED = ("tensors", "tokenizer", "model", "search", "words", "pictures")
MODULES = {"page": (*SHARED, "panel", "page"), "chat": (*SHARED, "chat", "dialogue")}


# What the page holds


def why_still(model, kind: str = "transformer") -> str:
    """Why a page that knows one kind of models cannot compute this one; "" where it can."""
    if type(model.config) is not kind_named(kind).config or handed_part(model):
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
        return {"source": entry}
    if not isinstance(entry, Example):
        return {"source": entry[0], "target": entry[1]}
    pronouns = [
        [[word.index, word.antecedent] for word in both] for both in entry.pronouns
    ]
    gold = {
        "target": entry.target,
        "alignment": sorted(entry.alignment),
        "pronouns": pronouns,
    }
    return {"source": entry.source, "gold": gold}


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


def script(page: str = "page") -> str:
    """The modules of live/ for a page, as one script."""
    folder = files("transformer.views").joinpath("live")
    texts = [
        folder.joinpath(f"{name}.mjs").read_text(encoding="utf8")
        for name in MODULES[page]
    ]
    whole = re.sub(r"^import [^;]*;\n", "", "\n".join(texts), flags=re.MULTILINE)
    return re.sub(r"^export ", "", whole, flags=re.MULTILINE)


def page_of(data: dict, weights: str = "", name: str = "page") -> str:
    """An HTML page, complete in itself, of what its script wants to know and of `halves`.

    name: "page" takes a model apart, "chat" talks.
    """
    folder = files("transformer.views").joinpath("live")
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    parts = {
        "style": "\n" + folder.joinpath("page.css").read_text(encoding="utf8"),
        "script": f"\n{script(name)}\nstart{name.title()}();\n",
        "data": text.replace(
            "<", "\\u003c"
        ),  # `</script>` in a sentence would end the script
        "weights": weights,
    }
    for part in ("style", "script"):
        hashed = hashlib.sha256(parts[part].encode()).digest()
        parts[f"hash of {part}"] = f"'sha256-{base64.b64encode(hashed).decode()}'"
    page = folder.joinpath(f"{name}.html").read_text(encoding="utf8")
    return re.sub(r"\{\{(.*?)\}\}", lambda found: parts[found[1]], page)


FRAME = """
<iframe srcdoc="{page}" title="A model to take apart" sandbox="allow-scripts" \
style="width: 100%; height: {height}px; border: 0"></iframe>""".lstrip("\n")


@dataclass(frozen=True)
class View:
    """A page that holds a model: a notebook shows it, `save` writes it to a file.

    height in pixels. In a notebook the page stands in a frame of its own: its styles and Jupyter's
    never meet, and it may run its own script and nothing else.
    """

    page: str = field(repr=False)
    height: int

    def save(self, path):
        """Write the page to an HTML file that any browser opens."""
        write_file(
            path, lambda temporary: temporary.write_text(self.page, encoding="utf8")
        )

    def _repr_html_(self):
        return FRAME.format(page=html.escape(self.page), height=self.height)


def settings_of(model) -> dict:
    """Languages, beam and length penalty, as the page has them."""
    own = about(model)
    return {name: getattr(own, name) for name in ("source", "target", "beam", "alpha")}


def view(model, tokenizer, sentences) -> View:
    """`View` of a sentence, a (source, target) pair, an `Example`, or a list of them.

    The page translates what has no target. Of a model that it cannot compute (too large, or with
    parts of its own) it shows what Python recorded. Raises ValueError for an empty list, and for a
    sentence that is empty or longer than the model's positions.
    """
    listed = sentences if isinstance(sentences, list) else [sentences]
    if not listed:
        raise ValueError("no sentence to view: give one, or a list with at least one")
    if len(listed) > MOST:
        raise ValueError(f"a page shows at most {MOST} sentences, not {len(listed)}")
    sides_of(item for item in listed if not isinstance(item, str | Example))
    entries = list(map(entry_of, listed))
    if not all(entry["source"] for entry in entries):
        raise ValueError("there is nothing to view in an empty sentence: leave it out")
    encoded = [
        [*tokenizer.encode(text), tokenizer.eos_id]
        for entry in entries
        for text in (entry["source"], entry.get("target"))
        if text
    ]
    check_sentences(encoded, longest_source(model))
    still = why_still(model)
    data = {"still": still, "sentences": entries, "names": names_of(model)}
    data |= settings_of(model)
    height = 900 + 28 * max(map(len, encoded))
    if still:
        return View(
            page_of({**data, "sentences": recorded(model, tokenizer, entries)}), height
        )
    return View(page_of(data | engine_of(model, tokenizer), halves(model)), height)
