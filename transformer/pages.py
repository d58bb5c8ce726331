"""An interactive page of attention: one HTML file with words, weights and a small script (view.js).

It loads nothing, so it works offline, in JupyterLab, in Colab and on a web site.
"""

import html
import json
from dataclasses import dataclass, field
from importlib.resources import files

import torch

from transformer.files import write_file
from transformer.maps import KINDS, AttentionMaps, attention_maps
from transformer.search import translate


def as_thousandths(maps) -> dict:
    """`AttentionMaps` as plain lists and whole numbers: nobody can see a smaller difference."""
    weights = {kind: (getattr(maps, kind) * 1000).round().int().tolist() for kind in KINDS}
    return {"source": maps.source, "target": maps.target, **weights}


def from_thousandths(saved: dict) -> AttentionMaps:
    """The `AttentionMaps` that `as_thousandths` wrote, each weight to 0.0005."""
    weights = {kind: torch.tensor(saved[kind]) / 1000 for kind in KINDS}
    return AttentionMaps(saved["source"], saved["target"], **weights)


def view_page(maps) -> str:
    """The HTML page, complete in itself, that shows these `AttentionMaps`, one or several."""
    text = json.dumps([as_thousandths(m) for m in maps], ensure_ascii=False, separators=(",", ":"))
    text = text.replace("<", "\\u003c")  # `</script>` in a sentence would end the script
    page = files("transformer").joinpath("view.html").read_text(encoding="utf8")
    script = files("transformer").joinpath("view.js").read_text(encoding="utf8")
    return page.replace("{script}", script).replace("{pairs}", text)


FRAME = """
<iframe srcdoc="{page}" title="Where attention looks" sandbox="allow-scripts" \
style="width: 100%; max-width: 48rem; height: {height}px; border: 0"></iframe>\
<p><small>An interactive view. Nothing above this line? Then the notebook is shown without its \
scripts: trust it, or run the cell.</small></p>""".lstrip("\n")


@dataclass(frozen=True)
class View:
    """An interactive page of attention: a notebook shows it, `save` writes it to a file.

    height in pixels. In a notebook the page stands in a frame of its own: its styles and Jupyter's
    never meet, and it may run its own script and nothing else.
    """

    page: str = field(repr=False)
    height: int

    def save(self, path):
        """Write the page to an HTML file that any browser opens."""
        write_file(path, lambda temporary: temporary.write_text(self.page, encoding="utf8"))

    def _repr_html_(self):
        return FRAME.format(page=html.escape(self.page), height=self.height)


def view(model, tokenizer, sentences) -> View:
    """`View` of a sentence, a (source, target) pair, or a list of them.

    A target that is not given is translated. Raises ValueError for an empty list, and for a
    sentence longer than the model's positions.
    """
    entries = sentences if isinstance(sentences, list) else [sentences]
    if not entries:
        raise ValueError("no sentence to view: give one, or a list with at least one")
    pairs = [(entry, translate(model, tokenizer, [entry])[0]) if isinstance(entry, str) else entry
             for entry in entries]
    maps = attention_maps(model, tokenizer, pairs)
    longest = max(len(words) for m in maps for words in (m.source, m.target))
    return View(view_page(maps), 320 + 28 * longest)
