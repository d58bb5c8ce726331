"""Draw the README's pictures, data/attention.png with the bundled model, data/results.png from
data/runs, data/live.png with Chromium: python tools/picture.py"""

import base64
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pairs

from transformer import load, translate, view
from transformer.core.records import read_rows, under
from transformer.models.maps import attention_maps
from transformer.models.pretrained import bundled_folder
from transformer.views import families, plotting

SENTENCE = "The old cat behind the school has lost its ball."
FAMILIES = (
    "transformer",
    "learned",
    "convolution",
    "bias",
    "rotary",
    "rotary-pre-norm",
    "rnn-attention",
)


def draw_attention():
    """The heads of the bundled model that score best at "its" and at alignment, for one
    sentence."""
    model, tokenizer = load(None)
    (card,) = read_rows(bundled_folder() / "card.json")
    translation = translate(model, tokenizer, [SENTENCE])[0]
    (maps,) = attention_maps(model, tokenizer, [(SENTENCE, translation)])
    its, alignment = under(card, "pronoun"), under(card, "alignment")
    if its["attention"] != "encoder":
        raise SystemExit(
            "the pronoun's head is not in the encoder: mend the picture and the README's text"
        )
    left, right = plotting.new_axes(4.6, 3.8, columns=2)
    plotting.heatmap(
        maps.encoder[its["layer"] - 1, its["head"] - 1],
        maps.source,
        maps.source,
        f"encoder, layer {its['layer']}, head {its['head']}",
        left,
        largest=1.0,
        labels=("looks at", "English", "weight"),
    )
    plotting.heatmap(
        maps.cross[alignment["layer"] - 1, alignment["head"] - 1],
        maps.source,
        maps.target,
        f"cross-attention, layer {alignment['layer']}, head {alignment['head']}",
        right,
        largest=1.0,
        labels=("English", "German, as it is written", "weight"),
    )
    plotting.save(left, pairs.ROOT / "data" / "attention.png")


def draw_families():
    """BLEU of families of models on the grammar's test sets: a dot a seed."""
    axes = families.by_part(
        read_rows("table2-bundled"),
        FAMILIES,
        size=(3.4, 3.0),
        title="On longer sentences rotary positions come near the RNN",
    )
    plotting.save(axes[0], pairs.ROOT / "data" / "results.png")


def main():
    draw_attention()
    draw_families()
    draw_live()


def draw_live():
    """The page that holds the model, as Chromium shows it: head 1.3 is made to look at the dog."""
    sys.path.insert(0, str(pairs.ROOT / "tests"))
    from browser import Browser

    sentence = "The old cat that saw the dog lost its ball."
    click = (
        "[...document.querySelectorAll('.{} button')]"
        ".find(b => b.firstChild.textContent === '{}').click()"
    )
    with TemporaryDirectory() as folder:
        view(*load(), sentence).save(Path(folder, "live.html"))
        browser = Browser(Path(folder, "profile"))
        browser.send(
            "Emulation.setDeviceMetricsOverride",
            width=760,
            height=1000,
            deviceScaleFactor=1.25,
            mobile=False,
        )
        browser.send("Emulation.setScrollbarsHidden", hidden=True)
        browser.open(Path(folder, "live.html"))
        for name, value in (("kind", "encoder"), ("layer", 0), ("head", 2)):
            browser.select(name, value)
        browser.run(click.format("rows", "its"))
        browser.run(click.format("columns", "dog"))
        browser.run("document.querySelector('[data-is=force]').click()")
        picture = browser.send("Page.captureScreenshot", captureBeyondViewport=True)[
            "data"
        ]
        browser.close()
    (pairs.ROOT / "data" / "live.png").write_bytes(base64.b64decode(picture))


if __name__ == "__main__":
    main()
