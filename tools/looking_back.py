"""Draw the README's second picture, data/looking_back.png: python tools/looking_back.py

The BLEU of three models of data/runs/table2-bundled.json, each the mean of its trainings, on
sentences of familiar lengths and on longer ones.
"""

import io

import pairs
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from transformer.core.records import table
from transformer.views import style

MODELS = {
    "rnn": ("RNN, one vector", style.GREY, 1),
    "rnn-attention": ("RNN with attention", style.SERIES[1], 1),
    "transformer": ("Transformer: attention alone", style.IDEAS["attention"], -1),
}
LENGTHS = {
    "part.test": "sentences as long\nas those of training",
    "part.hard.longer": "longer sentences",
}
SIZE, DPI = (10.0, 3.2), 120  # inches, dots per inch


def draw(ax) -> None:
    """A row for each kind of length, a dot for each model: RNNs above, the Transformer below."""
    runs = table("table2-bundled").query("what == 'run'").groupby("family")
    rows = dict(zip(LENGTHS, (1.0, 0.0)))
    for part, height in rows.items():
        bleu = runs[part].mean()
        ax.plot([0, 100], [height, height], color=style.LIGHT, lw=2, zorder=0)
        ax.text(-3, height, LENGTHS[part], ha="right", va="center", fontsize=13)
        for family, (name, colour, side) in MODELS.items():
            score = bleu[family]
            ax.scatter(score, height + 0.06 * side, s=130, color=colour, zorder=2)
            ax.annotate(
                f"{name}  {score:.0f}",
                (score, height + 0.06 * side),
                (0, 17 * side),
                textcoords="offset points",
                ha="right" if score > 70 else "center",
                va="center",
                fontsize=13,
                color=colour,
            )
    ax.set(xlim=(-32, 108), ylim=(-0.55, 1.45))
    ax.set_axis_off()


def main() -> None:
    style.apply()
    figure = Figure(figsize=SIZE, dpi=DPI)
    FigureCanvasAgg(figure)
    ax = figure.add_axes((0, 0, 1, 0.86))
    draw(ax)
    figure.text(
        0.5,
        0.9,
        "How much does it help to look back? BLEU, mean of three trainings",
        ha="center",
        fontsize=16,
        color=style.INK,
    )
    stream = io.BytesIO()
    figure.savefig(stream, dpi=DPI, facecolor="white")
    picture = Image.open(stream).convert("P", palette=Image.Palette.ADAPTIVE)
    picture.save(pairs.ROOT / "data" / "looking_back.png", optimize=True)


if __name__ == "__main__":
    main()
