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


def downhill(paths, steep=(50, 5000, 5000), turned=(False, False, True)):
    """Paths (steps + 1, 2) of points, {(runner, valley): path}, from above: a row a valley, with
    its steepness and whether it is turned by 45 degrees; a column a runner. Distances from the
    bottom are means of the last ten points."""
    runners = list(dict.fromkeys(runner for runner, _ in paths))
    valleys = list(dict.fromkeys(valley for _, valley in paths))
    heights = [1 if diagonal else 0.36 for _, diagonal in zip(valleys, turned)]
    size = (7.8, 2.5 * sum(heights) + 0.5 * len(valleys))
    look = {"height_ratios": heights}
    figure, axes = panels(*size, len(valleys), len(runners), gridspec_kw=look)
    x = torch.linspace(-11.5, 2.5, 281)
    said = []
    for row, valley in enumerate(valleys):
        diagonal = turned[row]
        low, high = (-10, 2.5) if diagonal else (-ACROSS, ACROSS)
        y = torch.linspace(low, high, 281)[:, None]
        along, across = ((x + y) / 2**0.5, (y - x) / 2**0.5) if diagonal else (x, y)
        ground = height(along, across, steep[row]).sqrt()
        for ax, runner in zip(axes[row], runners):
            path = paths[runner, valley]
            ax.contour(x, y[:, 0], ground, levels=9, colors=LIGHT, linewidths=0.8)
            ax.plot(*path.T, "o-", ms=2.6, lw=1, color=SERIES[1])
            ax.plot(0, 0, "+", ms=10, mew=1.5, color=INK)
            ax.plot(*path[0], "o", ms=6, mfc="white", mec=SERIES[1], mew=1.4)
            ax.set(xlim=(-11.5, 2.5), ylim=(low, high), aspect="equal")
            ax.set(xticks=[], yticks=[])
            ends = f"{runner}: {float(path[-10:].norm(dim=1).mean()):.2g} away"
            ax.set_title(ends, loc="left", size=9.5, pad=3)
            said.append(f"{valley}, {ends}.")
        look = {"textcoords": "offset points", "weight": "bold", "size": 10.5}
        axes[row, 0].annotate(valley, (0, 1), (0, 19), "axes fraction", **look)
    figure.alternative = f"Valleys from above, with a path in each. {' '.join(said)}"
    return figure


def walkers(crowds):
    """The mean distance of walkers from the bottom after each step, a panel for each kind of step:
    {kind: {rates: distances}}."""
    figure, axes = panels(7.6, 3.2, columns=len(crowds), sharey=True)
    said = []
    for ax, (kind, curves) in zip(axes[0], crowds.items()):
        steps = range(1, len(next(iter(curves.values()))) + 1)
        plotting.lines(steps, curves, "step", log="y", ax=ax)
        ax.set_title(kind, loc="left")
        for name, curve in curves.items():
            said.append(f"{kind}, {name}: {float(curve[-1]):.2f}.")
    axes[0, 0].set_ylabel("mean distance from the bottom")
    figure.alternative = f"Distances fall from 10, and end: {' '.join(said)}"
    return figure


def schedules(steps, rates):
    """Learning rates by update, {name: rates}, each named at its peak."""
    figure, axes = panels(6.4, 3.5)
    ax = axes[0, 0]
    said = []
    for (name, curve), colour, dash in zip(rates.items(), SERIES, ("--", "-")):
        ax.plot(steps, curve, color=colour, ls=dash)
        peak = max(curve)
        look = {"size": 10, "color": colour, "va": "center"}
        label = f"{name}: up to {peak:.4f}"
        ax.text(steps[curve.index(peak)] + 0.02 * steps[-1], 1.02 * peak, label, **look)
        said.append(f"{label}, then {curve[-1]:.4f}.")
    ax.set(xlabel="update", ylabel="learning rate", ylim=(0, None))
    ax.grid(axis="y")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    figure.alternative = f"Rates by update. {' '.join(said)}"
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
    """Losses of trainings from several starts, {plan: (losses, curves of other starts)}: a thick
    line for the losses, as means of `every` updates, and a thin one for each other curve, which
    already consists of such means; level: the loss of guessing."""
    rows = -(-len(runs) // across)
    figure, axes = panels(7.2, 2.5 * rows, rows, across, sharex=True, sharey=True)
    said = []
    for ax, (name, (losses, others)) in zip(axes.flat, runs.items()):
        means = torch.as_tensor(losses).unflatten(0, (-1, every)).mean(dim=1).tolist()
        updates = [every * (i + 1) for i in range(len(means))]
        for run, width in [*((run, 0.6) for run in others), (means, 2.2)]:
            colour = SERIES[1] if run[-1] < LEARNED else WARNING
            ax.plot(updates, run, lw=width, color=colour, alpha=0.5 if width < 1 else 1)
        for at in (level, LEARNED):
            ax.axhline(at, color=GREY, lw=0.8, ls=(0, (4, 3)), zorder=0)
        ax.set(ylim=(0, 4.4))
        ax.set_title(name, loc="left")
        count = sum(run[-1] < LEARNED for run in [*others, means])
        said.append(f"{name}: {count} of {len(others) + 1}.")
    look = {"size": 9, "color": GREY, "va": "bottom"}
    for ax in axes[:, 0]:
        ax.set_ylabel("loss, nats")
        ax.text(updates[-1], level + 0.05, "guessing", ha="right", **look)
        ax.text(updates[0], LEARNED + 0.03, "learned: below 0.5", ha="left", **look)
    for ax in axes[-1]:
        ax.set_xlabel("update")
    figure.alternative = f"Starts that learned the task. {' '.join(said)}"
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
    ax.axvline(LEARNED, color=GREY, lw=0.8, ls=(0, (4, 3)), zorder=0)
    look = {"ha": "center", "va": "bottom", "size": 9.5, "color": GREY}
    ax.text(LEARNED, -0.75, "learned: below 0.5", **look)
    ax.text(level, -0.75, "guessing", **look)
    ax.hlines(range(len(runs)), 0, level, color=LIGHT, lw=0.6, zorder=0)
    ax.set_yticks(range(len(runs)), list(runs))
    ax.tick_params(axis="y", length=0)
    ax.set(xlim=(-0.08, level + 0.9), ylim=(len(runs) - 0.5, -0.7))
    ax.set(xticks=[0, 0.5, 1, 1.5, 2], xlabel="loss at the end, nats")
    figure.alternative = f"Losses at the end, a dot a start. {' '.join(said)}"
    return figure
