"""Families of models side by side, from the rows of data/runs/table2-*.json."""

from statistics import mean

from transformer.core.analysis import counts_at
from transformer.core.records import under
from transformer.core.scores import bleu_of_counts
from transformer.views.plotting import new_axes
from transformer.views.style import COLOURS

LABELS = {
    "rnn": "RNN, one vector",
    "rnn-attention": "RNN with attention",
    "convolution": "convolution",
    "transformer": "Transformer: sines, norms last",
    "pre-norm": "sines, norms first",
    "rotary": "rotary",
    "rotary-pre-norm": "rotary, norms first",
    "bias": "a bias for each distance",
    "sines-shifted": "sines, shifted in training",
    "sines-rotary": "sines and rotary",
    "learned": "learned positions",
    "none": "no positions",
}


def runs_by_family(rows, families=()):
    """{family: its finished runs}, in the order of families, or of `LABELS`."""
    runs = [row for row in rows if row["what"] == "run" and "diverged" not in row]
    found = {
        family: [run for run in runs if run["family"] == family]
        for family in families or LABELS
    }
    return {family: own for family, own in found.items() if own}


def buckets(words, groups=6):
    """[(first, last, places)]: sentences grouped by their words, about equally many in each, and no
    length in two groups.
    """
    order = sorted(range(len(words)), key=words.__getitem__)
    found, rest = [], order
    for left in range(groups, 0, -1):
        if not rest:
            break
        last = words[rest[max(0, len(rest) // left - 1)]]
        own = [i for i in rest if words[i] <= last]
        found.append((words[own[0]], last, own))
        rest = rest[len(own) :]
    return found


def scores_by_length(rows, family, groups):
    """BLEU of a family on the harder set, of each group of `buckets`, mean over seeds."""
    kept = [under(run, "hard.ngrams") for run in runs_by_family(rows, [family])[family]]
    return [
        mean(bleu_of_counts(counts_at(own, places)) for own in kept)
        for *_, places in groups
    ]


PARTS = {
    "test": "test set",
    "hard.combinations": "new combinations",
    "hard.longer": "longer",
}


def by_part(rows, families=(), parts=PARTS, size=(3.0, 3.2), title=""):
    """BLEU of each family on parts of the test splits, a panel each: a dot a seed, their mean
    in figures.
    """
    found = runs_by_family(rows, families)
    axes = new_axes(*size, columns=len(parts), sharey=True)
    for ax, (part, label) in zip(axes, parts.items()):
        for place, runs in enumerate(found.values()):
            scores = [run[f"part.{part}"] for run in runs]
            ax.plot(
                scores,
                [place] * len(scores),
                "o",
                markersize=4,
                alpha=0.7,
                color=COLOURS[0],
            )
            ax.text(
                mean(scores),
                place - 0.2,
                f"{mean(scores):.1f}",
                ha="center",
                fontsize=7,
            )
        ax.set(xlabel="BLEU", title=label)
        ax.margins(x=0.12)
        ax.grid(axis="y")
    axes[0].set_yticks(range(len(found)), [LABELS[family] for family in found])
    axes[0].set_ylim(len(found) - 0.4, -0.6)
    axes[0].figure.suptitle(title)
    return axes


def print_differences(rows, families=(), parts=("test", "hard")):
    """Each family minus the Transformer on parts of the test splits, with its interval, and p."""
    for part in parts:
        print(
            f"{part}: BLEU minus the Transformer's (sines, norms last), 95% interval, p by Holm"
        )
        for row in rows:
            if row.get("part") == part and row["family"] in (families or LABELS):
                low, high, p = (row[f"bleu.{name}"] for name in ("low", "high", "p"))
                print(
                    f"  {LABELS[row['family']]:28} {row['bleu.difference']:+6.1f}"
                    f"  ({low:+.1f} to {high:+.1f})  p = {p:.2g}"
                )


def print_longer(rows, families=(), alphas=("0", "0.6", "1.2", "1.8")):
    """Means over seeds on the longer sentences: BLEU, the words written over the references', and
    BLEU with each length penalty.
    """
    print(
        f"{'longer sentences':30} BLEU  words    with α =",
        *(f"{alpha:>4}" for alpha in alphas),
    )
    for family, runs in runs_by_family(rows, families).items():
        names = [f"hard.by_alpha.{alpha}.part.hard.longer" for alpha in alphas]
        bleu, length, *found = (
            mean(run[name] for run in runs)
            for name in ("part.hard.longer", "length.hard.longer", *names)
        )
        print(
            f"{LABELS[family]:30} {bleu:4.1f}   {length:.2f}            ",
            *(f"{one:4.1f}" for one in found),
        )
