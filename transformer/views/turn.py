"""The picture of a page that holds a model: where words look, before and after a head is turned."""

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from transformer.models.maps import attention_maps, attention_name, words_and_groups
from transformer.models.recording import edit
from transformer.models.search import translate
from transformer.views.style import ordinal
from transformer.views.widget import ATTENTION, GREY, INK, plain_style

LEAST = 0.02  # weights below are not drawn
WIDTH = 6.6  # inches
LARGEST, GAP = 13, 0.1  # points of letters, inches between words


@dataclass(frozen=True)
class Turn:
    """One word of a sentence looks only at another, in one head of the encoder.

    word and to: words of the sentence, the first of their kind; layer and head count from 0.
    """

    word: str
    to: str
    layer: int
    head: int

    def start(self, tokenizer, source: str) -> dict:
        """How a page starts: layer, head, and the places of the two words in the source.

        Raises ValueError for a word that is not there.
        """
        words = words_and_groups(tokenizer, source)[0]
        for word in (self.word, self.to):
            if word not in words:
                raise ValueError(f"“{word}” is not a word of “{source}”")
        places = {"row": words.index(self.word), "column": words.index(self.to)}
        return {"layer": self.layer, "head": self.head, **places}


@contextmanager
def turned_rows(model, tokenizer, source: str, start: dict):
    """Inside the block, all pieces of one word look at all pieces of another (`Turn.start`)."""
    from transformer.models.edits import turned

    pieces = words_and_groups(tokenizer, source)[1]
    there = (pieces == start["column"]).float()
    columns = (there / there.sum())[None]
    name = attention_name("encoder", start["layer"]) + ".weights"
    with ExitStack() as changes:
        for row in (pieces == start["row"]).nonzero()[:, 0]:
            change = turned(start["head"], row[None], columns)
            changes.enter_context(edit(model, {name: change}))
        yield


def picture_of_turn(model, tokenizer, source: str, start: dict):
    """(figure, its words): where a word looks and the translation, as it is and turned."""
    before = translate(model, tokenizer, [source])[0]
    with turned_rows(model, tokenizer, source, start):
        after = translate(model, tokenizer, [source])[0]
    (maps,) = attention_maps(model, tokenizer, [(source, before)])
    row, column = start["row"], start["column"]
    weights = maps.encoder[start["layer"], start["head"], row].tolist()
    forced = [float(place == column) for place in range(len(weights))]
    words, layer = maps.source[:-1], ordinal(start["layer"])
    head = f"{ordinal(start['head'])} head of the encoder's {layer} layer"
    titles = [
        f"The {head}, as it is",
        f"Turned: “{words[row]}” looks only at “{words[column]}”",
    ]
    most = max(range(len(words)), key=weights.__getitem__)
    alt = (
        f"In “{source}” “{words[row]}” looks most at “{words[most]}” in the {head}, "
        f"with weight {weights[most]:.2f}, and the translation is “{before}” With "
        f"the head turned to “{words[column]}” it is “{after}”"
    )
    rows = [(titles[0], weights, before, after), (titles[1], forced, after, before)]
    return draw_turn(words, row, rows), alt


def draw_turn(words, place, rows):
    """Sentences in a row with arcs from one word, as thick as its weights; below, the translation.

    rows: (title, weights, translation, the other translation), from top to bottom.
    """
    from matplotlib.figure import Figure

    with plain_style():
        figure = Figure(figsize=(WIDTH, 1.7 * len(rows)))
        for number, (title, weights, german, other) in enumerate(rows):
            top = 1 - (number + 1) / len(rows)
            ax = figure.add_axes((0.01, top, 0.98, 1 / len(rows)))
            ax.set(xlim=(0, WIDTH * 0.98), ylim=(-0.75, 0.95))
            ax.axis("off")
            ax.text(0, 0.8, title, color=GREY, va="center", fontsize=LARGEST - 2)
            draw_arcs(ax, words, place, weights)
            changed = [word not in other.split() for word in german.split()]
            write(ax, german.split(), -0.53, changed, ATTENTION)
    return figure


def write(ax, words, height, bold, colour) -> list[float]:
    """Write words in a row, some of them bold and in a colour; the middles of all, in inches.

    Smaller letters where the row is too long; a full stop stands at its word.
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    fonts = [FontProperties(weight="bold" if b else "normal") for b in bold]
    widths = [
        TextPath((0, 0), word, LARGEST, prop=font).get_extents().width / 72
        for word, font in zip(words, fonts)
    ]
    gaps = [0.03 if word in (".", ",", "?", "!") else GAP for word in words]
    shrink = min(1, 0.97 * WIDTH / (sum(widths) + sum(gaps[1:])))
    middles, end = [], -gaps[0]
    for word, width, gap, is_bold in zip(words, widths, gaps, bold):
        middles.append((end + gap + width / 2) * shrink)
        end += gap + width
        look = {"weight": "bold", "color": colour} if is_bold else {}
        place = {"ha": "center", "va": "baseline", "fontsize": LARGEST * shrink}
        ax.text(middles[-1], height, word, **place, **look)
    return middles


def draw_arcs(ax, words, place, weights):
    """A sentence with arcs from the word at a place to the others."""
    from matplotlib.patches import FancyArrowPatch

    bold = [number == place for number in range(len(words))]
    middles = write(ax, words, -0.06, bold, INK)
    for number, weight in enumerate(weights[: len(words)]):
        if weight < LEAST or number == place:
            continue
        across = abs(middles[place] - middles[number])
        bend = min(0.45, 0.9 / across) * (1 if number < place else -1)
        arc = FancyArrowPatch(
            (middles[place], 0.15),
            (middles[number], 0.15),
            connectionstyle=f"arc3,rad={bend}",
            arrowstyle="-",
            color=ATTENTION,
            lw=0.5 + 5 * weight,
            capstyle="round",
        )
        ax.add_patch(arc)
        look = {"ha": "center", "fontsize": 9, "color": ATTENTION}
        ax.text(middles[number], -0.24, f"{weight:.2f}", **look)


def picture_of_lines(maps):
    """(figure, its words): cross-attention of the last layer, the mean of its heads, as lines."""
    from matplotlib.figure import Figure

    weights = maps.cross[-1].mean(dim=0)  # (T, S)
    rows = max(len(maps.source), len(maps.target))
    with plain_style():
        figure = Figure(figsize=(WIDTH * 0.7, 0.24 * rows + 0.1))
        ax = figure.add_axes((0.01, 0.01, 0.98, 0.98))
        ax.set(xlim=(0, 10), ylim=(rows - 0.4, -0.6))
        ax.axis("off")
        sides = (maps.target, 3.4, "right"), (maps.source, 6.6, "left")
        for words, at, side in sides:
            for number, word in enumerate(words):
                ax.text(at, number, word, ha=side, va="center", color=INK)
        for t, s in (weights >= LEAST).nonzero().tolist():
            width = 5 * float(weights[t, s])
            ax.plot([3.6, 6.4], [t, s], color=ATTENTION, lw=width, alpha=0.8)
    best = [maps.source[place] for place in weights.argmax(dim=-1)]
    pairs = [f"{word} at {looked}" for word, looked in zip(maps.target, best)]
    alt = (
        f"Lines between the words of a translation and of “{' '.join(maps.source[:-1])}”, "
        f"the thicker the larger the weight. Most of all look {', '.join(pairs)}."
    )
    return figure, alt
