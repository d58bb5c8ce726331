"""Heads of attention: where each looks, and numbers of each."""

from transformer.views import plotting


def one_a_panel(maps, places, size=4.0, title=""):
    """Where single heads look: a panel for each (kind, layer, head) of each maps, counted from 0.

    maps: records with .labels(kind) and the weights (N, h, rows, columns) by kind; as many as
    places, or one for all.
    """
    panels = []
    for m, (kind, n, i) in zip(maps if len(maps) > 1 else maps * len(places), places):
        columns, rows = m.labels(kind)
        name = f"{kind}, layer {n + 1}, head {i + 1}"
        panels.append((name, getattr(m, kind)[n, i], columns, rows))
    rows = "looks" if places[0][0] == "encoder" else "produced"
    axes = plotting.heatmaps(
        panels,
        across=2,
        width=size,
        height=size,
        largest=1.0,
        labels=("looked at", rows),
    )
    if title:
        axes[0].figure.suptitle(title)
    return axes


def table(numbers, across=3, title="", largest=None):
    """A number for each head: numbers maps a name to (N, h), or is one; printed, a row a layer."""
    several = numbers if isinstance(numbers, dict) else {title: numbers}
    panels = [
        (name, some, range(1, 1 + some.shape[1]), range(1, 1 + len(some)))
        for name, some in several.items()
    ]
    layers = max(len(some) for some in several.values())
    return plotting.heatmaps(
        panels,
        across=across,
        width=3.2,
        height=1.1 + 0.45 * layers,
        values=True,
        largest=largest,
        labels=("head", "layer"),
    )


def save_all(maps, folder):
    """A PNG for each kind of attention, every layer and head in it; returns the paths."""
    paths = []
    for kind in ("encoder", "decoder", "cross"):
        columns, rows = maps.labels(kind)
        weights = getattr(maps, kind)
        last = (
            len(weights) - 1
        )  # words are written once a column and once a row of pictures
        panels = [
            (
                f"layer {n + 1}, head {i + 1}",
                head,
                columns if n == last else None,
                None if i else rows,
            )
            for n, layer in enumerate(weights)
            for i, head in enumerate(layer)
        ]
        size = min(
            12.0, max(2.4, 0.22 * max(len(columns), len(rows)) + 0.8)
        )  # inches a head
        grid = plotting.heatmaps(panels, weights.shape[1], size, size, largest=1.0)
        paths.append(folder / f"{kind}.png")
        plotting.save(grid, paths[-1])
    return paths
