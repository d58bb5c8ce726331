"""The widgets of the book: each a function here and a module of its name in live/."""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from transformer.views.widget import (
    ATTENTION,
    GREY,
    PALE,
    RULE,
    TRACK,
    Widget,
    plain_style,
    widget,
)

LONGEST = 12  # words of a sentence
WIDTHS = [2**power for power in range(11)]  # 1 to 1,024


# One word's attention


def one_word(
    words: Sequence[str],
    x: Tensor | Mapping[str, Tensor],
    W_Q: Tensor,
    W_K: Tensor,
    W_V: Tensor,
    word: str,
    asks: Sequence[str],
    gives: Sequence[str],
) -> Widget:
    """`Widget` of one word's attention over a sentence: query, keys, scores, weights, values, blend.

    x (T, d), or {word: its vector (d,)} where the page is to know more words; W_Q and W_K (d, d_k),
    W_V (d, d_v). asks names the d_k numbers of queries and keys, gives the d_v numbers of values.
    Another word may be chosen, and another sentence be typed; words without a vector get zeros.
    Raises ValueError where names and shapes do not fit, and for a word that is not in the sentence.
    """
    known = known_vectors(words, x)
    matrices = {"W_Q": W_Q, "W_K": W_K, "W_V": W_V}
    check_fit(words, word, known, matrices, (asks, asks, gives))
    data: dict = {"word": word, "asks": list(asks), "gives": list(gives)}
    data["sentence"] = " ".join(words)
    data["known"] = {name: row.tolist() for name, row in known.items()}
    data |= {name: matrix.tolist() for name, matrix in matrices.items()}
    place = list(words).index(word)
    rows = torch.stack([known[name] for name in words]).double()
    asked = ask(rows, place, W_Q.double(), W_K.double(), W_V.double())
    return widget(
        "one_word",
        data,
        title=f"What “{word}” takes from the words of a sentence",
        alt=one_word_in_words(words, place, asked, asks, gives),
        figure=draw_one_word(words, place, asked, asks, gives),
        height=330 + 32 * len(words),
    )


def known_vectors(words, x) -> dict[str, Tensor]:
    """{word: its vector} of a sentence, and of further words where x names them."""
    if len(words) > LONGEST:
        raise ValueError(f"a sentence has at most {LONGEST} words, not {len(words)}")
    if isinstance(x, Mapping):
        if missing := [name for name in words if name not in x]:
            raise ValueError(f"no vector is given for: {', '.join(missing)}")
        return dict(x)
    if len(x) != len(words):
        raise ValueError(f"{len(x)} vectors for {len(words)} words")
    return dict(zip(words, x))


def check_fit(words, word, known, matrices, names) -> None:
    """ValueError for a word that is not there, and for a matrix that does not fit its names."""
    if word not in words:
        raise ValueError(f"“{word}” is not among the words: {', '.join(words)}")
    d = len(known[word])
    for (name, matrix), of_columns in zip(matrices.items(), names):
        if matrix.shape != (d, len(of_columns)):
            shapes = f"{tuple(matrix.shape)}, not {(d, len(of_columns))}"
            raise ValueError(f"{name} is {shapes}")


def one_word_in_words(words, place, asked, asks, gives) -> str:
    """The alternative text of `one_word`."""
    weights = [f"{w:.3f} for {name}" for w, name in zip(asked["weights"], words)]
    return (
        f"“{words[place]}” asks for {wish(asked['query'], asks)}, its query is "
        f"{vector(asked['query'])}. Softmax of its scores on {len(words)} keys gives the "
        f"weights {', '.join(weights)}. The blend of the values is "
        f"{meaning(asked['blend'], gives)}."
    )


def ask(x: Tensor, place: int, W_Q: Tensor, W_K: Tensor, W_V: Tensor) -> dict:
    """What happens when the word at a place asks: one row of Attention(Q, K, V)."""
    query, keys, values = x[place] @ W_Q, x @ W_K, x @ W_V
    scores = keys @ query / math.sqrt(len(query))  # (T,)
    weights = scores.softmax(dim=0)
    return {
        "query": query,
        "keys": keys,
        "scores": scores,
        "weights": weights,
        "values": values,
        "blend": weights @ values,
    }


def number(value: float, digits: int = 2, trimmed: bool = False) -> str:
    """A number with its digits and a real minus; trimmed: without zeros at its end."""
    text = f"{abs(value):.{digits}f}"
    if trimmed and "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"−{text}" if value < 0 and float(text) else text


def vector(values, digits: int = 2, trimmed: bool = True) -> str:
    """(4, 0)"""
    return f"({', '.join(number(float(v), digits, trimmed) for v in values)})"


def meaning(values, names) -> str:
    """What a vector's numbers mean: 0.94 human + 0.06 animal."""
    texts = [number(float(value), 2, True) for value in values]
    parts = [f"{text} {name}" for text, name in zip(texts, names) if text != "0"]
    return " + ".join(parts).replace("+ −", "− ") or "nothing"


def wish(query, names) -> str:
    """What a query looks for: the names of its positive numbers."""
    looked_for = [name for value, name in zip(query, names) if value > 0]
    return " and ".join(looked_for) or "nothing"


COLUMNS = {"key": 2.1, "score": 3.75, "weight": 4.7, "value": 8.9}  # places in 0..10
MIDDLE = {"ha": "center", "va": "center"}


def draw_one_word(words, place, asked, asks, gives):
    """The picture of `one_word`: a row for each word, and the blend below them."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    with plain_style():
        figure = Figure(figsize=(6.6, 1.75 + 0.36 * len(words)))
        ax = figure.add_axes((0.01, 0.01, 0.98, 0.98))
        ax.set(xlim=(0, 10), ylim=(len(words) + 1.45, -3.1))
        ax.axis("off")
        ax.add_patch(Rectangle((0, -2.95), 10, 0.95, fc=PALE, ec="none"))
        ax.add_patch(Rectangle((0, -2.95), 0.05, 0.95, fc=ATTENTION, ec="none"))
        query = f"its query is {vector(asked['query'])}"
        text = f"“{words[place]}” asks for {wish(asked['query'], asks)}: {query}"
        ax.text(0.2, -2.47, text, va="center")
        draw_heads(ax, asks, gives)
        for row, word in enumerate(words):
            weight = "bold" if row == place else "normal"
            ax.text(0.2, row, word, va="center", weight=weight)
            draw_row(ax, row, asked)
        draw_blend(ax, words, place, asked["blend"], gives)
    return figure


def draw_heads(ax, asks, gives):
    """What stands in each column."""
    below = {
        "key": ", ".join(asks),
        "score": f"q · k / √{len(asks)}",
        "weight": "softmax of scores",
        "value": ", ".join(gives),
    }
    for name, at in COLUMNS.items():
        place = MIDDLE | ({"ha": "left"} if name == "weight" else {})
        ax.text(at, -1.35, name, weight="bold", **place)
        ax.text(at, -0.75, below[name], fontsize=8.5, color=GREY, **place)


def draw_row(ax, row, asked):
    """Key, score, weight and value of one word."""
    from matplotlib.patches import Rectangle

    ax.text(COLUMNS["key"], row, vector(asked["keys"][row]), **MIDDLE)
    ax.text(COLUMNS["score"], row, number(float(asked["scores"][row])), **MIDDLE)
    ax.text(COLUMNS["value"], row, vector(asked["values"][row]), **MIDDLE)
    left, width, weight = COLUMNS["weight"], 2.2, float(asked["weights"][row])
    for share, colour in ((1, TRACK), (weight, ATTENTION)):
        box = Rectangle((left, row - 0.3), share * width, 0.6, fc=colour, ec="none")
        ax.add_patch(box)
    ax.text(left + width + 0.1, row, f"{weight:.3f}", va="center", fontsize=9.5)


def draw_blend(ax, words, place, blend, gives):
    """What the word receives, in numbers and by their names."""
    below = len(words) + 0.2
    ax.plot([0, 10], [below - 0.6] * 2, color=RULE, lw=0.8)
    text = f"“{words[place]}” receives the values, blended by these weights"
    ax.text(0.2, below, text, va="center")
    bold = {"weight": "bold", "color": ATTENTION}
    ax.text(COLUMNS["value"], below, vector(blend), **bold, **MIDDLE)
    named = f"= {meaning(blend, gives)}"
    ax.text(10, below + 0.8, named, color=GREY, **MIDDLE | {"ha": "right"})


# Softmax as keys get wider


def saturation(
    d_ks: Sequence[int] = (4, 64, 1024), keys: int = 8, seed: int = 173
) -> Widget:
    """`Widget` of softmax over random keys of many widths, with and without the scale.

    d_ks: the widths of its picture, powers of two up to 1,024. Seed 173: of 400 draws the one whose
    six largest weights at the default widths are nearest to their medians. Raises ValueError for
    another width.
    """
    if not d_ks or not set(d_ks) <= set(WIDTHS):
        raise ValueError(
            f"d_ks must be powers of two from 1 to {WIDTHS[-1]}, not {d_ks}"
        )
    products = random_products(keys, seed)
    data = {
        "widths": WIDTHS,
        "products": [products[width].tolist() for width in WIDTHS],
        "start": d_ks[len(d_ks) // 2],
        "marked": list(d_ks),
    }
    return widget(
        "saturation",
        data,
        title="Softmax as keys get wider, with and without the scale",
        alt=saturation_in_words(products, d_ks),
        figure=draw_saturation(products, d_ks),
        height=380,
    )


def saturation_in_words(products, d_ks) -> str:
    """The alternative text of `saturation`."""
    parts = []
    for width in d_ks:
        plain, scaled = (w.max() for w in both_weights(products[width], width))
        text = f"at d_k = {width:,} {plain:.2f} without the scale, {scaled:.2f} with it"
        parts.append(text)
    keys = len(products[WIDTHS[0]])
    return (
        f"Bars of softmax over {keys} random keys. The largest weight: "
        f"{'; '.join(parts)}."
    )


def random_products(keys: int, seed: int) -> dict[int, Tensor]:
    """{d_k: q · k for each of the keys (keys,)}: wider keys begin with the numbers of narrower ones."""
    generator = torch.Generator().manual_seed(seed)
    q = torch.randn(WIDTHS[-1], generator=generator).double()
    k = torch.randn(keys, WIDTHS[-1], generator=generator).double()
    return {width: k[:, :width] @ q[:width] for width in WIDTHS}


def both_weights(products: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Softmax of products as they are, and divided by the root of the width."""
    return products.softmax(0), (products / math.sqrt(width)).softmax(0)


def draw_saturation(products, d_ks):
    """The picture of `saturation`: a column for each width, the scale in the lower row."""
    from matplotlib.figure import Figure

    with plain_style():
        figure = Figure(figsize=(6.6, 3.5))
        axes = figure.subplots(2, len(d_ks), sharex=True, sharey=True, squeeze=False)
        for column, width in enumerate(d_ks):
            both = both_weights(products[width], width)
            for ax, weights in zip(axes[:, column], both):
                draw_bars(ax, weights)
            axes[0, column].set_title(
                f"$d_k$ = {width:,}", fontsize=10.5, parse_math=True
            )
        axes[0, 0].set_ylabel("without the scale\nweight")
        axes[1, 0].set_ylabel("divided by √$d_k$\nweight", parse_math=True)
        axes[1, len(d_ks) // 2].set_xlabel("key")
        figure.subplots_adjust(0.09, 0.12, 0.995, 0.92, hspace=0.2, wspace=0.08)
    return figure


def draw_bars(ax, weights):
    """Weights of keys, the largest with its number."""
    places = range(1, len(weights) + 1)
    ax.bar(places, weights.tolist(), color=ATTENTION, width=0.72)
    best, top = int(weights.argmax()), float(weights.max())
    ax.text(best + 1, top + 0.03, f"{top:.2f}", ha="center", fontsize=9.5)
    ax.set(ylim=(0, 1.16), yticks=[0, 1], xticks=places)
    ax.tick_params(axis="x", labelsize=8.5)
    ax.spines[["top", "right", "left"]].set_visible(False)
