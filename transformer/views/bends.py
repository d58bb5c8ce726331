"""More pictures of chapter 05: a head that bends, trainings, units along a sentence, networks without
a bend."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from transformer.views.style import (
    DARK,
    GREY,
    IDEAS,
    INK,
    PALE,
    panels,
    without_frame,
)

ORANGE, BLUE = IDEAS["feed-forward"], IDEAS["attention"]


def learning_larger(errors: Mapping[str, Tensor], floor: float, window: int = 25):
    """Errors (runs, updates) of three kinds of model, a line a training: heads that see one lane,
    heads that see another word, a network; `floor` is what the best sum can reach."""
    figure, axes = panels(7.2, 3.4)
    ax = axes[0, 0]
    ends = []
    looks = (
        (GREY, GREY, "bottom"),
        (BLUE, DARK["attention"], "top"),
        (ORANGE, DARK["feed-forward"], "center"),
    )
    for (name, runs), (colour, letters, side) in zip(errors.items(), looks):
        cut = runs.shape[1] // window * window
        means = runs[:, :cut].unflatten(1, (-1, window)).mean(dim=2)  # of each window
        look = {"va": side, "color": letters, "weight": "bold"}
        last = lines_of_kind(ax, means, window, name, colour, **look)
        ends.append(f"{name}: {', '.join(f'{end:.5f}' for end in last.tolist())}")
    ax.axhline(floor, color=INK, lw=1, ls="--", zorder=5)
    ax.text(cut * 0.99, floor * 1.6, "best sum", ha="right", va="bottom", color=INK)
    ax.set(
        yscale="log",
        xlabel=f"updates (a point: the mean of {window})",
        ylabel="mean squared error",
    )
    ax.set_xlim(0, cut)
    ticks = [1, 0.1, 0.01, 0.001, 0.0001]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    figure.alternative = (
        f"Errors at the end of trainings. {'; '.join(ends)}. The best sum: {floor:.3f}."
    )
    return figure


def lines_of_kind(ax, means, window, name, colour, **look):
    """The trainings of one kind of model, with its name; returns their last errors, sorted."""
    cut = means.shape[1] * window
    for run in means.tolist():
        ax.plot(range(window, cut + 1, window), run, color=colour, lw=1.4)
    last = means[:, -1].sort().values
    middle = last[len(last) // 2].item()
    ax.text(cut * 1.015, middle, name.replace(", ", ",\n"), **look)
    return last


def head_bends(leads: Tensor, added: Mapping[tuple[float, int], Tensor]):
    """What heads add where b is ahead by `leads` (n,): {(how sharply one decides, how many other
    words it sees): (n,)}. Left those that see one other word, right the sharpest ones."""
    figure, axes = panels(7.6, 3.0, 1, 2, sharey=True)
    sharpest = max(t for t, _ in added)
    fewest = min(others for _, others in added)
    shades = (("#8fbbe6", BLUE), (BLUE, "#1d4f86", "#0b2545"))
    kinds = (
        [key for key in added if key[1] == fewest],
        [key for key in added if key[0] == sharpest],
    )
    titles = ("one other word to look at", f"more words to look at, t = {sharpest:g}")
    xs = leads.tolist()
    for ax, keys, title, colours in zip(axes[0], kinds, titles, shades):
        names = [
            f"head, t = {t:g}" if keys is kinds[0] else said_words(n) for t, n in keys
        ]
        beside_relu(ax, leads, [added[key] for key in keys], names, colours)
        ax.set_title(title, loc="left")
    axes[0, 0].set_ylabel("added to a")
    tie = len(xs) * 7 // 12  # b is a little ahead
    listed = "; ".join(
        f"t {t:g}, other words {others}: {values[tie].item():.2f}"
        for (t, others), values in added.items()
    )
    figure.alternative = (
        f"What heads add to a against b's lead, beside a ReLU. At a lead of {xs[tie]:.1f}: "
        f"{listed}."
    )
    return figure


def said_words(others: int) -> str:
    """1 other word, 5 other words"""
    return f"{others} other word{'s' if others > 1 else ''}"


def beside_relu(ax, leads, curves, names, colours):
    """A panel of `head_bends`: curves over leads, each with its name, on a wide ReLU."""
    xs = leads.tolist()
    ax.plot(xs, leads.relu().tolist(), color=ORANGE, lw=4, alpha=0.6)
    ax.text(-2.9, 2.75, "ReLU", color=DARK["feed-forward"], weight="bold")
    for place, (curve, name, colour) in enumerate(zip(curves, names, colours)):
        ax.plot(xs, curve.tolist(), color=colour, lw=1.8)
        ax.text(-2.9, 2.33 - 0.42 * place, name, color=colour, weight="bold")
    ax.set(xlabel="lead of b over a", xlim=(-3, 3), ylim=(-0.6, 3.1))
    ax.set(xticks=[-2, 0, 2], yticks=[0, 1, 2, 3])


GLOSSES = {
    "den": "the",
    "diesem": "this",
    "diesen": "this",
    "Dieser": "this",
    "ein": "a",
    "einem": "a",
    "Esel": "donkey",
    "geduldig": "patiently",
    "auf": "on",
    "Hügel": "hill",
    "ihrem": "her",
    "ihren": "her",
    "sie": "she",
    "wartete": "waited",
}


def glossed(word, between=" "):
    """A German word with its English, where we have it."""
    return f"{word}{between}({GLOSSES[word]})" if word in GLOSSES else word


def entries(rows: Mapping[int, tuple[Tensor, Sequence[str]]], words: Sequence[str]):
    """Units of a trained network along a sentence: {unit: (how strong it is at the start and after
    each word, (1 + words,), the words that its value raises most)}."""
    figure, axes = panels(7.8, 0.75 * len(rows) + 1.0, len(rows), 1, sharex=True)
    most = max(strengths.max().item() for strengths, _ in rows.values())
    read = ["(start)", *words]
    said = []
    for ax, (unit, (strengths, raised)) in zip(axes[:, 0], rows.items()):
        along(ax, unit, strengths.tolist(), raised, most)
        strong = [
            f"{word} {value:.1f}"
            for word, value in zip(read, strengths.tolist())
            if value >= 0.05
        ]
        said.append(f"unit {unit}: {', '.join(strong)}; raises {', '.join(raised)}")
    top = {"transform": axes[0, 0].transAxes, "va": "bottom", "weight": "bold"}
    axes[0, 0].text(0.5, 1.02, "how strong, after each word", ha="center", **top)
    axes[0, 0].text(1.01, 1.02, "its value raises", ha="left", **top)
    ticks = [glossed(word, "\n") for word in read]
    axes[-1, 0].set_xticks(range(len(read)), ticks)
    figure.alternative = f"How strong units are after each word. {'. '.join(said)}."
    return figure


def along(ax, unit, strengths, raised, most):
    """A row of `entries`: a unit's strengths as bars, with its number and the words it raises."""
    ax.bar(range(len(strengths)), strengths, 0.5, color=ORANGE)
    for place, value in enumerate(strengths):
        if value >= 0.05:
            look = {"ha": "center", "va": "bottom", "size": 9.5}
            ax.text(place, value + 0.03 * most, f"{value:.1f}", **look)
    ax.set(ylim=(0, 1.3 * most), yticks=[])
    ax.set_xlim(-0.6, len(strengths) - 0.4)
    look = {"transform": ax.transAxes, "va": "center"}
    dark = {"color": DARK["feed-forward"], "weight": "bold"}
    ax.text(-0.01, 0.3, f"unit {unit}", ha="right", **look, **dark)
    ax.text(1.01, 0.3, "\n".join(map(glossed, raised)), ha="left", **look)
    ax.spines[["left", "top", "right"]].set_visible(False)
    ax.tick_params(length=0)


def without_bends(right: Mapping[str, Sequence[float]], whole: float):
    """Next words, of 100, that are right where networks are replaced: {"decoder.layers.0" or other
    words: (with a constant, with the best sum)}, and with all networks in place."""
    figure, axes = panels(7.2, 0.62 * len(right) + 0.9)
    ax = axes[0, 0]
    right = {in_words(name): counts for name, counts in right.items()}
    pairs_of_bars(ax, right.values())
    first = {"va": "center", "color": INK, "size": 9.5}
    ax.text(2, -0.19, "a constant in its place", **first)
    ax.text(2, 0.19, "the best sum in its place", **first)
    ax.axvline(whole, color=INK, lw=1, ls="--", zorder=0)
    look = {"ha": "right", "va": "bottom", "size": 9.5}
    ax.text(whole, -0.6, f"with all networks: {whole:.0f}", **look)
    ax.set_yticks(range(len(right)), list(right))
    ax.set(ylim=(len(right) - 0.45, -0.55), xlim=(0, 108), xticks=[0, 50, 100])
    ax.set_xlabel("next words that are right, of 100")
    without_frame(ax)
    listed = "; ".join(
        f"{name}: {constant:.0f} with a constant, {straight:.0f} with the best sum"
        for name, (constant, straight) in right.items()
    )
    figure.alternative = (
        f"Next words that are right, of 100. With all networks {whole:.0f}. {listed}."
    )
    return figure


def pairs_of_bars(ax, pairs):
    """Two bars with their numbers for each pair of counts: pale, and orange."""
    for place, counts in enumerate(pairs):
        for shift, count, colour in zip(
            (-0.19, 0.19), counts, (PALE["feed-forward"], ORANGE)
        ):
            y = place + shift
            ax.barh(y, count, height=0.34, color=colour, ec=ORANGE, lw=0.7)
            inside = count > 20
            look = {"ha": "right" if inside else "left", "va": "center", "size": 9.5}
            ax.text(count + (-1 if inside else 1), y, f"{count:.0f}", **look)


def in_words(name: str) -> str:
    """encoder.layers.0 -> encoder 1's network; other names as they are."""
    if name.count(".") != 2:
        return name
    half, _, layer = name.split(".")
    return f"{half} {int(layer) + 1}'s network"
