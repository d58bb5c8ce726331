"""How every picture of the book looks: colours, font, resolution, and the words that
say what it shows to those who cannot see it.

A colour belongs to an idea through the whole book. Grey is for what was asked or
guessed, the warning red for what is wrong.
"""

import io
from functools import cache
from pathlib import Path

from matplotlib.figure import Figure

from transformer.views.words import describe

# The parts of the model; "output" is the embedding matrix turned on its side
IDEAS = {
    "attention": "#2f6fb5",
    "feed-forward": "#e0822f",
    "norm": "#7d7799",
    "embedding": "#3f8f6b",
    "positions": "#b5446e",
}
PALE = {  # fills
    "attention": "#dbe8f6",
    "feed-forward": "#fbe6d2",
    "norm": "#e8e6ef",
    "embedding": "#dcefe5",
    "positions": "#f6dfe8",
}
DARK = {  # letters on these fills
    "attention": "#235a96",
    "feed-forward": "#9c5210",
    "norm": "#5c5679",
    "embedding": "#2b6b4e",
    "positions": "#93305a",
}
INK, GREY, LIGHT, WARNING = "#2b2b33", "#7c7c85", "#dcdce1", "#c0392b"

# Not parts of the model: rows of an experiment, corpora, kinds of network.
# They differ in lightness, too, so that they can be told apart without colour vision.
SERIES = ["#3d4658", "#178f8a", "#c99b1d", "#8450ad"]
COLOURS = [*SERIES, "#9aa1b1", "#8cccc8", "#c3a5da"]
STYLES = ["-", "--", "-.", ":"]

DPI = 144
FONTS = Path(__file__).parent / "fonts"
SETTINGS = {
    "font.family": ["Roboto", "DejaVu Sans"],
    "font.size": 10.5,
    "mathtext.fontset": "custom",
    "mathtext.rm": "Roboto",
    "mathtext.it": "Roboto:italic",
    "mathtext.bf": "Roboto:bold",
    "mathtext.cal": "DejaVu Sans:italic",
    "text.color": INK,
    "axes.titlesize": 11,
    "axes.titlepad": 8,
    "axes.labelsize": 10,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "grid.color": LIGHT,
    "grid.linewidth": 0.6,
    "grid.alpha": 1.0,
    "axes.axisbelow": True,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "lines.linewidth": 1.7,
    "lines.solid_capstyle": "round",
    "figure.titlesize": 11,
    "figure.dpi": 96,
    "savefig.dpi": DPI,
}


@cache
def add_fonts() -> None:
    """Let matplotlib know the fonts that come with the package, once."""
    from matplotlib import font_manager

    for file in sorted(FONTS.glob("*.ttf")):
        font_manager.fontManager.addfont(file)


@cache
def apply() -> None:
    """Make the book's look matplotlib's, once, and let a notebook show pictures by
    `png`."""
    import sys

    import matplotlib

    add_fonts()
    matplotlib.rcParams.update(SETTINGS)
    shell = "IPython" in sys.modules and sys.modules["IPython"].get_ipython()
    if shell:
        formatter = shell.display_formatter.formatters["image/png"]
        formatter.for_type(Picture, Picture.shown)


@cache
def weights_map():
    """Colours of weights and other numbers from zero up: white to the blue of
    attention, and on."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = ["#ffffff", "#cfe0f2", "#8db6de", IDEAS["attention"], "#163a66"]
    return LinearSegmentedColormap.from_list("weights", colours)


@cache
def signed_map():
    """Colours of numbers on both sides of zero, which is white."""
    from matplotlib.colors import LinearSegmentedColormap

    below = ["#7a4306", "#d08a35", "#f3dcbc"]
    above = ["#a9c8e8", IDEAS["attention"], "#163a66"]
    return LinearSegmentedColormap.from_list("signed", [*below, "#ffffff", *above])


class Picture(Figure):
    """A figure that brings words for those who cannot see it, wherever a notebook shows
    it."""

    alternative = ""

    @property
    def words(self) -> str:
        """What was written for it, or else what is read off its panels."""
        return self.alternative or describe(self)

    def shown(self) -> tuple[bytes, dict]:
        """A PNG, and how a page shows it: at most as large as it was drawn, with its
        words."""
        drawn = png(self)
        wide = int.from_bytes(drawn[16:20], "big")
        return drawn, {"alt": self.words, "width": round(wide * 96 / DPI)}

    def _repr_mimebundle_(self, **asked):
        return {}, {"image/png": {"alt": self.words}}

    def __repr__(self) -> str:
        return self.words

    __str__ = __repr__


def png(figure) -> bytes:
    """A figure as a PNG of at most 256 colours, on white, so that it is light and can
    be read on a dark page, too."""
    from PIL import Image

    drawn, written = io.BytesIO(), io.BytesIO()
    look = {"facecolor": "white", "bbox_inches": "tight", "pad_inches": 0.08}
    figure.savefig(drawn, format="png", dpi=DPI, **look)
    image = Image.open(drawn).convert("RGB")
    image = image.quantize(256, dither=Image.Dither.NONE)
    palette = image.getpalette() or []
    colours = [palette[i : i + 3] for i in range(0, len(palette), 3)]
    lightest = max(range(len(colours)), key=lambda i: sum(colours[i]))
    colours[lightest] = [255, 255, 255]  # the mean of near-whites is not quite white
    image.putpalette([number for colour in colours for number in colour])
    image.save(written, "PNG", optimize=True)
    return written.getvalue()


def figure_of(drawn):
    """The figure of axes, of an array of axes, or a figure itself."""
    if isinstance(drawn, Figure):
        return drawn
    return drawn.figure if hasattr(drawn, "figure") else drawn.flat[0].figure


def picture(drawn, alternative: str):
    """The figure of some axes, with its alternative text; the last line of a cell shows
    it once."""
    import matplotlib.pyplot as plt

    figure = figure_of(drawn)
    figure.alternative = alternative
    plt.close(figure)  # otherwise the notebook shows it a second time
    return figure


def panels(width, height, rows=1, columns=1, **options):
    """A picture of width x height inches, and its axes in an array (rows, columns)."""
    apply()
    figure = Picture(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def canvas(xlim, ylim, scale=0.65):
    """A picture without axes for a drawing, `scale` inches a unit, and the place to
    draw."""
    apply()
    wide, high = xlim[1] - xlim[0], ylim[1] - ylim[0]
    figure = Picture(figsize=(scale * wide, scale * high))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=xlim, ylim=ylim, aspect="equal")
    ax.set_axis_off()
    return figure, ax


def without_frame(ax) -> None:
    """Neither axes nor ticks, but their labels."""
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)


def ordinal(place: int) -> str:
    """What stands at a place that code counts from 0: 0 is the 1st, 1 the 2nd."""
    number = place + 1
    teens = 10 < number % 100 < 14
    return f"{number}{'th' if teens else ['th', 'st', 'nd', 'rd', *['th'] * 6][number % 10]}"
