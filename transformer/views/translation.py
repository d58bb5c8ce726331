"""The pictures of chapter 16: sentences that become German, a run, its scores, and
Table 2."""

import textwrap
from statistics import mean

from transformer.views.glosses import says
from transformer.views.labels import label_ends
from transformer.views.shapes import weights_bar, weights_table
from transformer.views.style import (
    GREY,
    IDEAS,
    INK,
    LIGHT,
    SERIES,
    panels,
    without_frame,
)

BLUE = IDEAS["attention"]
OWNERS = {"feminine": SERIES[1], "masculine": SERIES[0]}
WIDEST = 58  # letters of a line
# BLEU on newstest2014, English to German; FLOPs of training (ByteNet's were not given)
TABLE_2 = {
    "recurrent (GNMT)": (24.6, 2.3e19),
    "convolutions (ConvS2S)": (25.16, 9.6e18),
    "recurrent, with experts (MoE)": (26.03, 2.0e19),
    "several GNMT together": (26.30, 1.8e20),
    "several ConvS2S together": (26.36, 7.7e19),
    "Transformer, base": (27.3, 3.3e18),
    "Transformer, big": (28.4, 2.3e19),
}
# names of Table 2 that are not at the right of their dots, so that no line crosses them
BESIDE = {
    "recurrent, with experts (MoE)": ("left", (9, -9)),
    "several GNMT together": ("center", (0, 13)),
    "several ConvS2S together": ("right", (-9, 0)),
    "Transformer, base": ("left", (-6, -20)),
}


def becoming(log, sentences, updates):
    """What a model wrote for each sentence after some updates, and what that says.

    log: rows with "update" and "translations", one a sentence; updates: which rows.
    """
    rows = [row for row in log if row["update"] in updates]
    lines = len(sentences) * (len(rows) + 1.7)
    figure, axes = panels(7.6, 0.225 * lines)
    ax = axes[0, 0]
    ax.set(xlim=(0, 10), ylim=(lines - 0.5, -0.6))
    ax.set_axis_off()
    y = 0.0
    for i, sentence in enumerate(sentences):
        ax.text(0, y, sentence, weight="bold", va="center")
        for row in rows:
            y += 1
            german = row["translations"][i]
            colour = BLUE if row is rows[-1] else INK
            look = {"va": "center", "size": 9.5}
            ax.text(0.62, y, f"{row['update']:,}", ha="right", color=GREY, **look)
            ax.text(0.8, y, shortened(german), color=colour, **look)
            ax.text(
                6.3, y, shortened(says(german), 48), color=GREY, style="italic", **look
            )
        y += 1.7
    first, last = rows[0], rows[-1]
    figure.alternative = " ".join(
        f"“{sentence}” after {first['update']:,} updates: {first['translations'][i]} "
        f"After {last['update']:,}: {last['translations'][i]}"
        for i, sentence in enumerate(sentences)
    )
    return figure


def shortened(text, width=WIDEST):
    """A text that fits on its line."""
    return textwrap.shorten(text, width, placeholder=" ...")


def progress(log):
    """A run: both losses on the left, the BLEU of greedy translations on the right."""
    updates = [row["update"] for row in log]
    figure, axes = panels(7.6, 3.0, columns=2)
    losses = {"training": (SERIES[0], "loss"), "validation": (BLUE, "validation_loss")}
    for name, (colour, figures) in losses.items():
        values = [row[figures] for row in log]
        axes[0, 0].plot(updates, values, color=colour, label=name)
    scores = [row["bleu"] for row in log]
    axes[0, 1].plot(updates, scores, color=BLUE)
    axes[0, 0].set(ylim=(0, None), ylabel="nats per target token", title="loss")
    axes[0, 1].set(ylim=(0, None), ylabel="BLEU", title="translations of validation")
    for ax in axes[0]:
        ax.set(xlim=(0, updates[-1]), xlabel="update")
    label_ends(axes[0, 0])
    first, last = log[0], log[-1]
    figure.alternative = (
        f"Over {updates[-1]:,} updates the training loss falls from {first['loss']:.2f} "
        f"to {last['loss']:.2f} nats per token, the validation loss from "
        f"{first['validation_loss']:.2f} to {last['validation_loss']:.2f}, and the BLEU "
        f"of greedy translations rises from {first['bleu']:.1f} to {last['bleu']:.1f}."
    )
    return figure


def trainings(scores):
    """A dot for every training: {row: (BLEU on validation, BLEU on test)}, lists."""
    options = {"columns": 2, "sharex": True, "sharey": True}
    figure, axes = panels(7.6, 0.42 * len(scores) + 0.9, **options)
    figure.get_layout_engine().set(wspace=0.14)
    for ax, side, title in zip(axes[0], range(2), ("validation", "test")):
        for place, values in enumerate(row[side] for row in scores.values()):
            middle = mean(values)
            ax.plot(
                values, [place] * len(values), "o", color=BLUE, alpha=0.55, mec="none"
            )
            ax.plot([middle] * 2, [place - 0.28, place + 0.28], color=INK, lw=1.6)
        ax.set(title=title, xlabel="BLEU")
        ax.grid(axis="x")
        without_frame(ax)
    axes[0, 0].set_yticks(range(len(scores)), list(scores))
    axes[0, 0].set_ylim(len(scores) - 0.5, -0.5)
    said = [
        f"{name} {' and '.join(f'{mean(values):.1f}' for values in row)}"
        for name, row in scores.items()
    ]
    figure.alternative = (
        "A dot for every training, a stroke for the mean. On validation and on test: "
        f"{'; '.join(said)}."
    )
    return figure


def penalties(alphas, curves, chosen):
    """BLEU over the length penalty: {split: [a curve a training, ...]}, with their mean,
    and how many trainings chose which."""
    figure, axes = panels(7.6, 3.1, columns=len(curves), sharey=True)
    said = []
    for ax, (split, lines) in zip(axes[0], curves.items()):
        for line in lines:
            ax.plot(alphas, line, color=LIGHT, lw=1.1, zorder=1)
        middle = [mean(values) for values in zip(*lines)]
        ax.plot(alphas, middle, color=BLUE, lw=2.2, marker="o", ms=4)
        ax.axvline(chosen, color=GREY, lw=0.8, ls=":", zorder=0)
        ax.set(title=split, xlabel="length penalty α", xticks=alphas)
        falls = ", ".join(
            f"{value:.1f} at {alpha}" for alpha, value in zip(alphas, middle)
        )
        said.append(f"{split}: {falls}")
    axes[0, 0].set_ylabel("BLEU")
    look = {"size": 9.5, "color": GREY, "ha": "right", "va": "bottom"}
    low = axes[0, 0].get_ylim()[0]
    axes[0, 0].text(chosen - 0.03, low, "chosen by most", **look)
    figure.alternative = f"Mean BLEU by length penalty. {'. '.join(said)}."
    return figure


def table_2(rows=TABLE_2):
    """The paper's Table 2 as a picture: BLEU over the FLOPs of training."""
    figure, axes = panels(7.2, 3.7)
    ax = axes[0, 0]
    joined = [(flops, score) for name, (score, flops) in rows.items() if "Tr" in name]
    ax.plot(*zip(*joined), color=BLUE, lw=1.2, ls="--", zorder=1)
    for name, (score, flops) in rows.items():
        ours = name.startswith("Transformer")
        colour = BLUE if ours else GREY
        ax.plot(flops, score, "o", color=colour, ms=9 if ours else 6)
        side, place = BESIDE.get(name, ("left", (9, 0)))
        ax.annotate(
            name,
            (flops, score),
            place,
            textcoords="offset points",
            ha=side,
            va="center",
            color=colour if ours else INK,
            weight="bold" if ours else "normal",
        )
    ax.set(xscale="log", xlim=(2e18, 3.4e20), ylim=(24, 29))
    ax.set_xlabel("floating-point operations of training (logarithmic)")
    ax.set_ylabel("BLEU, newstest2014")
    ax.grid(axis="y")
    said = (f"{name}: {row[0]} BLEU, {row[1]:.1e} FLOPs" for name, row in rows.items())
    figure.alternative = "; ".join(said) + "."
    return figure


def by_length(curves, groups, seen):
    """BLEU by the length of the source: {family: [BLEU of each group]}; groups: [(first,
    last), ...] in words; seen: the longest in training."""
    figure, axes = panels(7.4, 3.3)
    ax = axes[0, 0]
    places = range(len(groups))
    colours = [BLUE, *SERIES]
    for colour, (name, values) in zip(colours, curves.items()):
        ax.plot(places, values, color=colour, marker="o", ms=4, label=name)
    border = sum(last <= seen for _, last in groups) - 0.5
    ax.axvspan(border, len(groups) - 0.5, color="#f4f3f7", zorder=0, lw=0)
    ax.text(border + 0.08, 61, "longer than in training", color=GREY, size=9.5)
    ax.set_xticks(places, [f"{first}-{last}" for first, last in groups])
    ax.set(ylim=(60, 100), xlim=(-0.3, len(groups) - 0.5))
    ax.set(xlabel="words and punctuation of the source", ylabel="BLEU")
    label_ends(ax)
    said = "; ".join(f"{n} from {v[0]:.0f} to {v[-1]:.0f}" for n, v in curves.items())
    figure.alternative = f"BLEU from the shortest to the longest sentences: {said}."
    return figure


def alignment(looks, english, german):
    """Where each written word looked: (German, English) weights from 0 to 1.

    The row that writes the end of the sentence is left out.
    """
    english = ["(end)" if word == "</s>" else word for word in english]
    if german[-1] == "</s>":
        looks, german = looks[:-1], german[:-1]
    figure, axes = panels(0.5 * len(english) + 2.2, 0.34 * len(german) + 1.3)
    ax = axes[0, 0]
    shown = weights_table(ax, looks, german, english, numbers=False)
    ax.tick_params(axis="x", labelrotation=40)
    for label in ax.get_xticklabels():
        label.set(ha="left", rotation_mode="anchor")
    ax.set_ylabel("the German word, as it is written")
    weights_bar(figure, axes[0], shown)
    most = ", ".join(
        f"{word} at {english[int(row.argmax())]}" for word, row in zip(german, looks)
    )
    figure.alternative = f"Each German word looks most at: {most}."
    return figure


def leanings(leans, feminine, masculine, line=None, voters=frozenset()):
    """How far a model prefers *ihren* to *seinen* for each owner: {noun: difference of the
    two logits}.

    line: a moved line, drawn over the dots alone; voters: the owners that chose it, pale.
    """
    figure, axes = panels(7.6, 2.3)
    ax = axes[0, 0]
    named = {"cow", "moon", "elephant"} if line is None else {"elephant"}
    owners_at(ax, 0.0, leans, feminine, masculine, named, voters)
    for kind, nouns, y in (
        ("feminine", feminine, 0.16),
        ("masculine", masculine, -0.16),
    ):
        place = (max(leans[noun] for noun in nouns), y)
        beside(ax, f"{kind} owners", place, (12, 0), color=OWNERS[kind], weight="bold")
    ax.set(ylim=(-0.55, 0.8), yticks=[])
    ax.set_xlabel("logit of ihren minus logit of seinen")
    if line is None:
        ax.set_xlim(-3.6, 0.05)
        ax.axvline(0, color=INK, lw=1)
        look = {"color": GREY, "ha": "right"}
        beside(
            ax, "seinen wins left of this line, ihren right", (0, 0.66), (-6, 0), **look
        )
    else:
        ax.set_xlim(-3.5, -1.0)
        ax.axvline(line, color=INK, lw=1.2, ls="--")
        sides(ax, 0.66, "seinen", "ihren", line)
        look = {"color": INK, "size": 9.5, "ha": "right"}
        beside(ax, f"the moved line, {line:.2f}", (line, 0.4), (-6, 0), **look)
    figure.alternative = rights(leans, feminine, masculine, line or 0.0) + "."
    return figure


def lessons(lost, leanings_of, feminine, masculine):
    """The leanings before and after some lessons, a panel for each thing that was lost.

    lost: {thing: two words}; leanings_of: {thing: {"before": {noun: difference}, "after":
    ...}}; right of the line the first word wins.
    """
    options = {"columns": len(lost), "sharex": True, "sharey": True}
    figure, axes = panels(7.6, 3.8, **options)
    said = []
    for ax, (thing, words) in zip(axes[0], lost.items()):
        title = f"... lost its {thing}"
        for y, (when, values) in zip((1.0, 0.0), leanings_of[thing].items()):
            owners_at(ax, y, values, feminine, masculine, room=(0.16, 0.24))
            said.append(f"{title}, {when}: {rights(values, feminine, masculine)}")
            if ax is axes[0, 0] and y > 0:
                for kind, nouns, up in (
                    ("feminine", feminine, 0.24),
                    ("masculine", masculine, -0.24),
                ):
                    place = (max(values[noun] for noun in nouns), y + up)
                    look = {"color": OWNERS[kind], "weight": "bold"}
                    beside(ax, kind, place, (9, 0), **look)
        ax.set(title=title, ylim=(-0.55, 2.0), xlim=(-4.3, 2.3))
        ax.set_xlabel(f"logit of {words[0]} minus logit of {words[1]}")
        ax.tick_params(axis="y", length=0)
        sides(ax, 1.85, words[1], words[0])
    axes[0, 0].set_yticks([1.0, 0.0], ["before\nthe lessons", "after\nthe lessons"])
    figure.alternative = "; ".join(said) + "."
    return figure


def owners_at(
    ax,
    y,
    values,
    feminine,
    masculine,
    named=frozenset(),
    pale=frozenset(),
    room=(0.06, 0.16),
):
    """Dots of all owners, feminine above, masculine below.

    room: dots nearer than this are one above the other; how far above y and below it the
    two kinds are.
    """
    near, apart = room
    for nouns, kind, offset in (
        (feminine, "feminine", apart),
        (masculine, "masculine", -apart),
    ):
        colour = OWNERS[kind]
        heights = spread({noun: values[noun] for noun in nouns}, near)
        places = {noun: (values[noun], y + offset + heights[noun]) for noun in nouns}
        for noun, place in places.items():
            strength = 0.3 if noun in pale else 0.85
            look = {"color": colour, "alpha": strength, "mec": "white", "mew": 0.5}
            ax.plot(*place, "o", ms=6, **look)
        name_some(ax, places, named, colour, 9 if offset > 0 else -9)


def rights(values, feminine, masculine, line=0.0):
    """How many owners of each kind are on their side of a line, in words."""
    right = sum(values[noun] > line for noun in feminine)
    others = sum(values[noun] <= line for noun in masculine)
    return (
        f"{right} of {len(feminine)} feminine owners are right, "
        f"{others} of {len(masculine)} masculine owners are right"
    )


def spread(values, near, step=0.07):
    """How far up or down each dot goes, so that no two at one height are nearer than
    near."""
    heights = {}
    for noun in sorted(values, key=values.get):
        for level in (0, 1, -1, 2, -2, 3, -3):
            height = level * step
            close = (
                abs(values[noun] - values[other]) < near
                for other, taken in heights.items()
                if taken == height
            )
            if not any(close):
                break
        heights[noun] = height
    return heights


def sides(ax, y, left, right, line=0.0):
    """A line, at nothing if not moved, and who wins on each of its sides."""
    if not line:
        ax.axvline(0, color=INK, lw=1)
    beside(ax, f"← {left} wins", (line, y), (-6, 0), color=GREY, ha="right")
    beside(ax, f"{right} wins →", (line, y), (6, 0), color=GREY)


def swaps(moved, owners, others, named):
    """How far one changed word moves each leaning: {word: [change, ...]}.

    Some dots of the first row are named, owners to others; named: which owners.
    """
    figure, axes = panels(7.6, 2.6)
    ax = axes[0, 0]
    said = []
    for place, (word, changes) in enumerate(moved.items()):
        every = all(change < 0 for change in changes)
        colour = INK if every else GREY
        ax.plot(changes, [place] * len(changes), "o", color=colour, ms=7, alpha=0.6)
        said.append(f"{word}: {min(changes):+.1f} to {max(changes):+.1f}")
    pairs = zip(owners, others, next(iter(moved.values())))
    for owner, other, change in pairs:
        if owner in named:
            ax.plot(change, 0, "o", ms=7, mfc="none", mec=INK, mew=1.6)
            look = {"color": INK, "size": 9.5, "ha": "center"}
            beside(ax, f"{owner} → {other}", (change, 0), (0, 13), **look)
    ax.axvline(0, color=INK, lw=1)
    ax.set(ylim=(len(moved) - 0.5, -1.25), xlim=(-1.5, 1.0))
    ax.set_xlabel("change of the leaning, in logits")
    ax.tick_params(axis="y", length=0)
    beside(ax, "← towards seinen", (0, -1.0), (-6, 0), color=GREY, ha="right")
    beside(ax, "towards ihren →", (0, -1.0), (6, 0), color=GREY)
    ax.set_yticks(range(len(moved)), [f"another\n{word}" for word in moved])
    figure.alternative = "; ".join(said) + "."
    return figure


def beside(ax, text, place, shift, **look):
    """A text beside a place, so many points away."""
    look = {"va": "center", **look}
    ax.annotate(text, place, shift, textcoords="offset points", **look)


def name_some(ax, places, named, colour, shift):
    """The names of some owners, above or below their dots, which get a ring."""
    look = {"va": "bottom" if shift > 0 else "top", "color": colour, "ha": "center"}
    for noun in sorted(named & set(places)):
        ax.plot(*places[noun], "o", ms=7, mfc="none", mec=INK, mew=1.6)
        beside(ax, noun, places[noun], (0, shift), **look)


class Live:
    """A callback of a run: draws `progress` and `becoming` in a notebook, each time in
    their place."""

    def __init__(self, sentences):
        from IPython.display import display

        waiting = {"text/plain": "the curves come with the first validation"}
        self.sentences = sentences
        self.drawn = 0
        self.places = [display(waiting, raw=True, display_id=True) for _ in range(2)]

    def __call__(self, run) -> None:
        if len(run.log) > self.drawn:
            self.drawn = len(run.log)
            self.draw(run.log)

    def draw(self, log) -> None:
        """Both, of the rows of a log."""
        updates = [row["update"] for row in log]
        step = -(-len(log) // 5)
        shown = updates[::-1][::step]  # five at most, the last among them
        self.places[0].update(progress(log))
        self.places[1].update(becoming(log, self.sentences, shown))
