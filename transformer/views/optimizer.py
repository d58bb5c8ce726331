"""The pictures of chapter 12: paths down a valley, and trainings from several starts."""

import torch

from transformer.views.style import GREY, INK, LIGHT, SERIES, WARNING, panels

ACROSS, ALONG = 2.2, (-11.5, 2.5)  # the part of the valley that is drawn


def height(x, y, steep=50):
    """The loss over two weights."""
    return (x**2 + steep * y**2) / 2


def valley(paths, steep=50):
    """Paths (steps + 1, 2) of points in the valley (x^2 + steep y^2) / 2, {name: path}."""
    figure, axes = panels(7.2, 1.9 * len(paths), len(paths), sharex=True)
    x = torch.linspace(*ALONG, 281)
    y = torch.linspace(-ACROSS, ACROSS, 121)
    ground = height(x, y[:, None], steep).sqrt()
    said = []
    for ax, (name, path) in zip(axes[:, 0], paths.items()):
        ax.contour(x, y, ground, levels=12, colors=LIGHT, linewidths=0.8)
        inside = (path[:, 1].abs() < 3 * ACROSS).int().cumprod(0).bool()
        colour = WARNING if not inside.all() else SERIES[1]
        ax.plot(*path[inside].T, "o-", ms=2.6, lw=1, color=colour)
        ax.plot(0, 0, "+", ms=11, mew=1.5, color=INK)
        ax.plot(*path[0], "o", ms=6, mfc="white", mec=colour, mew=1.4)
        ax.set(xlim=ALONG, ylim=(-ACROSS, ACROSS), aspect="equal", yticks=[-2, 0, 2])
        ax.set_title(name, loc="left")
        ax.set_ylabel("y", rotation=0, va="center")
        end = float(path[-1].norm())
        where = f"ends {end:.2g} from the bottom" if end < 20 else "leaves the valley"
        said.append(f"{name}: {where}.")
    axes[-1, 0].set_xlabel("x")
    steps = len(next(iter(paths.values()))) - 1
    figure.alternative = (
        f"A long valley from above; paths of {steps} steps from (-10, 1) towards the "
        f"bottom at (0, 0). {' '.join(said)}"
    )
    return figure


def starts(runs, level, every=10):
    """Losses of trainings from several starts, {plan: (starts, updates)}: a thin line each, the
    means of `every` updates; level: the loss of guessing."""
    figure, axes = panels(7.6, 2.8, columns=len(runs), sharex=True, sharey=True)
    said = []
    for ax, (name, losses) in zip(axes[0], runs.items()):
        means = losses.unflatten(1, (-1, every)).mean(dim=2)
        updates = [every * (i + 1) for i in range(means.shape[1])]
        colour = WARNING if float(means[:, -1].mean()) > 1 else SERIES[1]
        for run in means.tolist():
            ax.plot(updates, run, lw=1.2, color=colour)
        ax.axhline(level, color=GREY, lw=0.8, ls=(0, (4, 3)), zorder=0)
        ax.set(title=name, xlabel="update", ylim=(0, 3.4))
        ends = ", ".join(f"{end:.2f}" for end in means[:, -1].tolist())
        said.append(f"{name}: {ends}.")
    axes[0, 0].set_ylabel("loss, nats")
    look = {"size": 9.5, "color": GREY, "ha": "right", "va": "bottom"}
    axes[0, -1].text(updates[-1], level + 0.05, "guessing", **look)
    figure.alternative = f"Losses at the end, a thin line a start. {' '.join(said)}"
    return figure
