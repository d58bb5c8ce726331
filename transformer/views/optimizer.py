"""The pictures of chapter 12: paths down a valley, boldness, trainings from several starts."""

import torch

from transformer.views import plotting
from transformer.views.style import GREY, INK, LIGHT, SERIES, WARNING, panels

ACROSS, ALONG = 2.2, (-11.5, 2.5)  # the part of the valley that is drawn
LEARNED = 0.5  # nats: a training below it has learned its task


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


def descents(paths, steep=50):
    """Paths (steps + 1, 2) of points, {name: (path, whether the valley is diagonal)}, each from
    above, side by side."""
    figure, axes = panels(7.8, 3.1, columns=len(paths), sharey=True)
    x = torch.linspace(-11.5, 2.5, 141)
    y = torch.linspace(-8.5, 5.5, 141)[:, None]
    said = []
    for ax, (name, (path, diagonal)) in zip(axes[0], paths.items()):
        along, across = ((x + y) / 2**0.5, (y - x) / 2**0.5) if diagonal else (x, y)
        ground = height(along, across, steep).sqrt()
        levels = [1.5, 3.5, 6.5, 11, 17, 24, 32, 41]
        ax.contour(x, y[:, 0], ground, levels=levels, colors=LIGHT, linewidths=0.8)
        ax.plot(*path.T, "o-", ms=2.6, lw=1, color=SERIES[1])
        ax.plot(0, 0, "+", ms=11, mew=1.5, color=INK)
        ax.plot(*path[0], "o", ms=6, mfc="white", mec=SERIES[1], mew=1.4)
        ax.set(xlim=(-11.5, 2.5), ylim=(-8.5, 5.5), aspect="equal", xlabel="x")
        ax.set(xticks=[-10, -5, 0], yticks=[-5, 0, 5])
        ax.set_title(name, loc="left", size=10.5)
        ends = f"ends {float(path[-1].norm()):.1f} from the bottom"
        look = {"size": 9, "ha": "right", "va": "bottom", "color": INK}
        look["bbox"] = {"fc": "white", "ec": "none", "pad": 1.5}
        ax.text(2.2, -8.2, ends, **look)
        said.append(f"{name}: {ends}.")
    axes[0, 0].set_ylabel("y", rotation=0, va="center")
    figure.alternative = f"Valleys from above, with a path in each. {' '.join(said)}"
    return figure


def walkers(curves):
    """The mean distance of walkers from the bottom after each step, {rates: distances}."""
    steps = range(len(next(iter(curves.values()))))
    figure, axes = panels(6.4, 3.5)
    labels = ("step", "mean distance from the bottom")
    plotting.lines(steps, curves, *labels, log="y", ax=axes[0, 0])
    ends = " ".join(
        f"{name}: {float(curve[-1]):.2f}." for name, curve in curves.items()
    )
    figure.alternative = f"Distances fall from 10, and end: {ends}"
    return figure


def schedules(steps, rates):
    """Learning rates by update, {name: rates}."""
    figure, axes = panels(6.4, 3.5)
    ax = plotting.lines(steps, rates, "update", "learning rate", ax=axes[0, 0])
    ax.xaxis.set_major_formatter("{x:,.0f}")
    said = " ".join(
        f"{k}: up to {max(v):.4f}, then {v[-1]:.4f}." for k, v in rates.items()
    )
    figure.alternative = f"Rates by update. {said}"
    return figure


def moves(layers, curves):
    """How far an output moves, by the number of layers, {wiring: parts of the output}."""
    figure, axes = panels(5.6, 3.0)
    ax = plotting.lines(layers, curves, "layers", "change of the output", ax=axes[0, 0])
    ax.set_xscale("log")
    ax.set(xticks=layers, ylim=(0, None))
    ax.xaxis.set_major_formatter("{x:.0f}")
    ax.minorticks_off()
    ax.yaxis.set_major_formatter(lambda value, place: f"{value:.0%}")
    said = " ".join(f"{k}: {v[0]:.0%} to {v[-1]:.0%}." for k, v in curves.items())
    figure.alternative = f"Changes for {layers[0]} to {layers[-1]} layers. {said}"
    return figure


def boldness(model, noise):
    """The mean length of a step, as a part of the rate, by update: of a model, and of
    weights whose gradients are random."""
    figure, axes = panels(6.4, 3.3)
    ax = axes[0, 0]
    updates = range(1, len(model) + 1)
    ax.plot(updates, noise, color=GREY, lw=1.2, ls=(0, (4, 3)))
    ax.plot(updates, model, color=SERIES[1])
    ax.set(xlabel="update", ylabel="mean step / rate", ylim=(0, 1.05))
    ax.grid(axis="y")
    at = len(model) // 2
    look = {"size": 9.5, "ha": "center"}
    ax.text(at, model[at] + 0.06, "the model", color=SERIES[1], va="bottom", **look)
    ax.text(at, noise[at] - 0.05, "random gradients", color=GREY, va="top", **look)
    figure.alternative = (
        f"The mean step of the model is {model[0]:.2f} of the rate at first, "
        f"{model[19]:.2f} at update 20 and {model[-1]:.2f} at the end; with random "
        f"gradients {noise[0]:.2f}, {noise[19]:.2f} and {noise[-1]:.2f}."
    )
    return figure


def starts(runs, level, every=10, across=2):
    """Losses of trainings from several starts, {plan: losses of each start}: a line a start, the
    means of `every` updates, two panels a row; level: the loss of guessing."""
    rows = -(-len(runs) // across)
    figure, axes = panels(7.2, 2.35 * rows, rows, across, sharex=True, sharey=True)
    said = []
    for ax, (name, losses) in zip(axes.flat, runs.items()):
        means = torch.as_tensor(losses).unflatten(1, (-1, every)).mean(dim=2)
        updates = [every * (i + 1) for i in range(means.shape[1])]
        for run in means.tolist():
            colour = SERIES[1] if run[-1] < LEARNED else WARNING
            ax.plot(updates, run, lw=1.2, color=colour)
        ax.axhline(level, color=GREY, lw=0.8, ls=(0, (4, 3)), zorder=0)
        ax.set(ylim=(0, 4.4))
        ax.set_title(name, loc="left")
        ends = ", ".join(f"{end:.2f}" for end in means[:, -1].tolist())
        said.append(f"{name}: {ends}.")
    look = {"size": 9.5, "color": GREY, "ha": "right", "va": "bottom"}
    for ax in axes[:, 0]:
        ax.set_ylabel("loss, nats")
        ax.text(ax.get_xlim()[1], level + 0.05, "guessing", **look)
    for ax in axes[-1]:
        ax.set_xlabel("update")
    figure.alternative = f"Losses at the end, a line a start. {' '.join(said)}"
    return figure


def finishes(runs, level, ringed=None):
    """The last losses of trainings, {plan: a loss for each start}, a row of dots a plan;
    level: the loss of guessing; ringed: losses to mark with a ring, {plan: loss}."""
    figure, axes = panels(7.4, 0.8 + 0.52 * len(runs))
    ax = axes[0, 0]
    said = []
    for row, (name, losses) in enumerate(runs.items()):
        learned = sum(loss < LEARNED for loss in losses)
        for i, loss in enumerate(losses):
            colour = SERIES[1] if loss < LEARNED else WARNING
            place = row + 0.11 * (i * 2 % 5 - 2)  # so that dots do not hide each other
            ax.plot(loss, place, "o", ms=5.5, color=colour, alpha=0.75, mew=0)
        if name in (ringed or {}):
            ax.plot(ringed[name], row - 0.22, "o", ms=10, mfc="none", mec=INK, mew=1.2)
        count = f"{learned} of {len(losses)} learned"
        ax.text(level + 0.12, row, count, va="center", size=9.5, color=INK)
        said.append(f"{name}: {count}.")
    ax.axvline(level, color=GREY, lw=0.8, ls=(0, (4, 3)), zorder=0)
    ax.text(level, -0.75, "guessing", ha="center", va="bottom", size=9.5, color=GREY)
    ax.hlines(range(len(runs)), 0, level, color=LIGHT, lw=0.6, zorder=0)
    ax.set_yticks(range(len(runs)), list(runs))
    ax.tick_params(axis="y", length=0)
    ax.set(xlim=(-0.08, level + 0.9), ylim=(len(runs) - 0.5, -0.7))
    ax.set(xticks=[0, 0.5, 1, 1.5, 2], xlabel="loss at the end, nats")
    figure.alternative = f"Losses at the end, a dot a start. {' '.join(said)}"
    return figure
