"""Draw the README's moving picture, data/its.png: python tools/its.py

A hand drags the line of "its" from the cat to the dog. Every frame is what the bundled model does:
its head 3 in the first layer of the encoder gets that share of its weight on the dog, and the model
translates. Programs that show no moving pictures show the first frame.
"""

import io
from dataclasses import dataclass

import numpy as np
import pairs
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Polygon
from PIL import Image

from transformer import edit, load, translate
from transformer.models.edits import turned
from transformer.models.maps import attention_maps
from transformer.views import style

SENTENCE = "The cat that saw the dog lost its ball."
OWNERS = {"cat": "ihren", "dog": "seinen"}  # the noun, and what it asks for
GENDERS = {"cat": "die Katze, a she", "dog": "der Hund, a he"}
LAYER, HEAD = 0, 2
SIZE, DPI = (10.0, 5.0), 120  # inches, dots per inch
BIG, SMALL = 26, 14  # points
BLUE, DEEP = style.IDEAS["attention"], style.DARK["attention"]
TEXT, GERMAN = (1.7, 2.55), (0.95, 1.2)  # where the sentences start
ARC, BARS = 3.3, 0.75  # heights
POINTER = [(0, 0), (0, -0.46), (0.11, -0.36), (0.18, -0.52), (0.26, -0.49)]
POINTER += [(0.19, -0.33), (0.33, -0.33)]
DRAGGED = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True)
class Frame:
    """What a frame shows: how far the line was dragged, 0 to 1, from the cat to the dog; the weights
    of "its"; the translation; the probability of each possessive; whether there is a hand."""

    dragged: float
    weights: list[float]
    german: str
    chances: dict[str, float]
    title: str
    hand: bool
    milliseconds: int


# What the model does


def chances_of(model, tokenizer, german: str) -> dict[str, float]:
    """The probabilities of the possessives where the translation has one."""
    before = next(
        german[: german.index(f" {word} ")]
        for word in OWNERS.values()
        if f" {word} " in german
    )
    source = torch.tensor([[*tokenizer.encode(SENTENCE), model.config.eos_id]])
    target = torch.tensor([[model.config.bos_id, *tokenizer.encode(before)]])
    with torch.no_grad():
        shares = model(source, target)[0, -1].softmax(dim=-1)
    return {
        word: float(shares[tokenizer.encode(f"{before} {word}")[-1]])
        for word in OWNERS.values()
    }


def frames() -> list[Frame]:
    """The frames in their order."""
    model, tokenizer = load()
    (maps,) = attention_maps(model, tokenizer, [(SENTENCE, SENTENCE)])
    its, dog = maps.source.index("its"), maps.source.index("dog")
    usual = maps.encoder[LAYER, HEAD, its]
    name = f"encoder.{LAYER}.self_attention.weights"

    def frame(dragged, title, hand, milliseconds):
        weights = (1 - dragged) * usual
        weights[dog] += dragged
        change = turned(HEAD, torch.tensor([its]), weights[None])
        with edit(model, {name: change} if dragged else {}):
            (german,) = translate(model, tokenizer, [SENTENCE])
            chances = chances_of(model, tokenizer, german)
        return Frame(
            dragged, weights.tolist(), german, chances, title, hand, milliseconds
        )

    start = (
        "To translate “its”, one of the encoder's eight heads looks back for the owner."
    )
    return [
        frame(0.0, start, False, 2600),
        frame(0.0, "Take hold of the look …", True, 900),
        *(frame(way, "… and turn it to the dog.", True, 500) for way in DRAGGED[1:]),
        frame(
            1.0,
            "The same English, one head turned: the ball has changed owners.",
            False,
            3200,
        ),
    ]


# How it is drawn


def write(
    ax, words: list[str], start: tuple[float, float], coloured: dict[str, str]
) -> list[tuple[float, float]]:
    """Words in a row; where each has its middle, and how wide it is."""
    left, height = start
    renderer = ax.figure.canvas.get_renderer()
    texts = [ax.text(0, height, word, fontsize=BIG) for word in words]
    for text in texts:
        if colour := coloured.get(text.get_text()):
            text.set(color=colour, fontweight="bold")
    widths = [text.get_window_extent(renderer).width / DPI for text in texts]
    gaps = [0.0] + [0.03 if word in ".," else 0.17 for word in words[1:]]
    places = []
    for text, width, gap in zip(texts, widths, gaps):
        text.set_x(left + gap)
        places.append((left + gap + width / 2, width))
        left += gap + width
    return places


def arc(start: float, end: float, height: float) -> tuple[np.ndarray, np.ndarray]:
    """The points of a line that leaps from one place of a row to another."""
    way = np.linspace(0, 1, 60)
    rise = height * 4 * way * (1 - way)
    return start + (end - start) * way, ARC + rise


def draw_lines(ax, frame: Frame, its: float, ends: list[float], shares: list) -> None:
    """The lines of "its" to both nouns, as thick as their weights; a hand pulls."""
    for end, share in zip(ends, shares):
        x, y = arc(its, end, 0.3 + 0.16 * abs(its - end))
        look = {"linewidth": 0.8 + 7 * share, "alpha": 0.3 + 0.6 * share}
        ax.plot(x, y, color=BLUE, solid_capstyle="round", **look)
    if frame.hand:
        cat, dog = ends
        end = cat + (dog - cat) * frame.dragged
        points = [(end + dx, ARC + 0.05 + dy) for dx, dy in POINTER]
        look = {"facecolor": "white", "edgecolor": style.INK, "lw": 1.4, "zorder": 5}
        ax.add_patch(Polygon(points, **look))


def draw_english(ax, frame: Frame) -> None:
    words = SENTENCE.removesuffix(".").split() + ["."]
    written = write(ax, words, TEXT, {"its": BLUE})
    places = {word: written[words.index(word)][0] for word in (*OWNERS, "its")}
    shares = [frame.weights[words.index(noun)] for noun in OWNERS]
    draw_lines(ax, frame, places["its"], [places[noun] for noun in OWNERS], shares)
    for noun, gender in GENDERS.items():
        share = frame.weights[words.index(noun)]
        note = f"{gender}\nweight {share:.0%}"
        ax.text(
            places[noun],
            TEXT[1] - 0.22,
            note,
            fontsize=SMALL,
            color=style.GREY,
            ha="center",
            va="top",
            linespacing=1.35,
        )


def draw_german(ax, frame: Frame) -> None:
    """The translation, with the possessive in a box, and under it how likely each one was."""
    words = frame.german.replace(",", " ,").replace(".", " .").split()
    written = write(ax, words, GERMAN, dict.fromkeys(OWNERS.values(), DEEP))
    places = zip(written, words)
    middle, width = next(place for place, word in places if word in OWNERS.values())
    box = FancyBboxPatch(
        (middle - width / 2 - 0.07, GERMAN[1] - 0.14),
        width + 0.14,
        0.48,
        boxstyle="round,pad=0,rounding_size=0.08",
        facecolor=style.PALE["attention"],
        edgecolor="none",
        zorder=0,
    )
    ax.add_patch(box)
    middle, look = 7.1, {"fontsize": SMALL, "va": "center"}
    ax.text(middle - 1.45, BARS, "next word:", ha="right", color=style.GREY, **look)
    rest = {"any other": 1 - sum(frame.chances.values())}
    for row, (word, chance) in enumerate((frame.chances | rest).items()):
        height = BARS - 0.28 * row
        ax.text(middle - 0.2, height, word, ha="right", color=style.INK, **look)
        colour = style.GREY if word in rest else BLUE
        ax.barh(height, 1.3 * chance, 0.17, left=middle - 0.05, color=colour)
        ax.barh(height, 1.3, 0.17, left=middle - 0.05, color=style.LIGHT, zorder=0)
        ax.text(middle + 1.35, height, f"{chance:.0%}", color=style.GREY, **look)


def drawn(frame: Frame) -> Image.Image:
    """A frame as a picture."""
    figure = Figure(figsize=SIZE, dpi=DPI)
    FigureCanvasAgg(figure)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, SIZE[0]), ylim=(0, SIZE[1]))
    ax.axis("off")
    ax.text(SIZE[0] / 2, 4.6, frame.title, fontsize=17, ha="center", color=style.INK)
    draw_english(ax, frame)
    draw_german(ax, frame)
    stream = io.BytesIO()
    figure.savefig(stream, dpi=DPI, facecolor="white")
    return Image.open(stream).convert("RGB")


def main() -> None:
    style.apply()
    shown = frames()
    pictures = [drawn(frame) for frame in shown]
    pictures[0].save(
        pairs.ROOT / "data" / "its.png",
        save_all=True,
        default_image=True,
        append_images=pictures,
        duration=[frame.milliseconds for frame in shown],
        loop=0,
        optimize=True,
    )
    for frame in shown:
        print(f"{frame.dragged:.0%} on the dog: {frame.german} {frame.chances}")


if __name__ == "__main__":
    main()
