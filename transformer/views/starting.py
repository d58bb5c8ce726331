"""Trainings that use their source, and trainings that do not, side by side."""

from transformer.views.plotting import name_powers, new_axes
from transformer.views.style import COLOURS


def last_spread(row):
    """Over updates: how much the encoder's last layer varies over positions."""
    return [row[name] for name in row if name.startswith("log.spread.positions.")][-1]


def source_use(groups, size=(4.6, 3.4)):
    """How much trainings use their source, and how far the encoder tells positions apart.

    groups maps a label to the rows of its runs in data/runs/starting.json: a thin line a seed,
    dashed where the run has not started.
    """
    left, right = new_axes(*size, columns=2)
    seeds(
        left,
        groups,
        lambda row: row["log.use"],
        "loss with another source - loss, nats",
        "dashed: another source costs little",
    )
    seeds(
        right,
        groups,
        last_spread,
        "variance over positions / mean square",
        "dashed: the encoder's positions become alike",
    )
    right.set_yscale("log")
    name_powers(right.yaxis)
    left.legend(fontsize=9)
    return left, right


def seeds(ax, groups, curve, ylabel, title):
    """A colour a group, a thin line a run; curve(row) is its values at each validation."""
    for colour, (label, rows) in zip(COLOURS, groups.items()):
        for row in rows:
            style = "-" if row["started"] else "--"
            ax.plot(
                row["log.update"],
                curve(row),
                style,
                color=colour,
                linewidth=0.9,
                label=label if row is rows[0] else None,
            )
    ax.set(xlabel="update", ylabel=ylabel, title=title)
    ax.grid(axis="y")


def print_signs(rows, columns=("sign.collapsed", "sign.even", "sign.vanished")):
    """How many of the runs that started, and of those that did not, bear each sign."""
    for started in (False, True):
        runs = [
            row for row in rows if row.get("started") == started and columns[0] in row
        ]
        count = {name: sum(run[name] for run in runs) for name in columns}
        said = [f"{name.removeprefix('sign.')} {n}" for name, n in count.items()]
        print(
            f"{len(runs)} runs {'started' if started else 'did not start'}: {', '.join(said)}"
        )
        if runs:
            place = runs[0]["log.update"].index(240)
            spreads = sorted(last_spread(row)[place] for row in runs)
            print(
                "   variance over positions at update 240: "
                f"{spreads[0]:.2g} to {spreads[-1]:.2g}"
            )
