"""Trainings that use their source, and trainings that do not, side by side."""

from statistics import mean

from transformer.plotting import COLOURS, course, name_powers, new_axes, say


def last_spread(row):
    """Over updates: how much the encoder's last layer varies over positions."""
    return [row[name] for name in row if name.startswith("log.spread.positions.")][-1]


def source_use(groups, size=(4.6, 3.4)):
    """How much trainings use their source, and how far the encoder tells positions apart.

    groups maps a label to the rows of its runs in data/runs/starting.json: a thin line a seed,
    dashed where the run has not started.
    """
    left, right = new_axes(*size, columns=2)
    seeds(left, groups, lambda row: row["log.use"], "loss with another source - loss, nats",
          "Is the source used?")
    seeds(right, groups, last_spread, "part of the mean square (logarithmic)",
          "Encoder's outputs: variance over positions")
    right.set_yscale("log")
    name_powers(right.yaxis)
    left.legend(fontsize=8)
    return left, right


def seeds(ax, groups, curve, ylabel, title):
    """A colour a group, a thin line a run; curve(row) is its values at each validation."""
    said = []
    for colour, (label, rows) in zip(COLOURS, groups.items()):
        for row in rows:
            style = "-" if row["started"] else "--"
            ax.plot(row["log.update"], curve(row), style, color=colour, linewidth=0.9,
                    label=label if row is rows[0] else None)
        middle = [mean(values) for values in zip(*map(curve, rows))]
        said.append(f"{label} ({len(rows)} seeds) on average {course(middle)}")
    ax.set(xlabel="update", ylabel=ylabel, title=title)
    ax.grid(alpha=0.3)
    say(ax, "Curves", title, f"{ylabel} over updates, a thin line a seed.", f"{'; '.join(said)}.")
