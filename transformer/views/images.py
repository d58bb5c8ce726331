"""Small images side by side, what a model attends to in them, and accuracy by training images."""

from transformer.views.plotting import add_colour_bar, lines, new_axes
from transformer.views.style import COLOURS, weights_map

GREY_LEVELS = dict(cmap="gray_r", vmin=0, vmax=16)


def add_image(ax, image, title="", **colours):
    """An image (H, W) in these axes, without ticks."""
    ax.imshow(image.tolist(), **(colours or GREY_LEVELS))
    ax.set_title(title, fontsize=9)
    ax.set(xticks=[], yticks=[])


def grid(images, titles, title, across=10, size=0.8):
    """Images (n, H, W) of grey levels in rows, each with a title."""
    down = -(-len(images) // across)
    axes = new_axes(size, size + 0.15, down, across, squeeze=False)
    for ax, image, name in zip(axes.flat, images, titles):
        add_image(ax, image, name)
    for ax in axes.flat[len(images) :]:
        ax.set_axis_off()
    axes[0, 0].figure.suptitle(title, fontsize=10)
    add_colour_bar(axes[0, 0], axes.flat, ["grey level"])
    return axes


def looks(images, weights, title, size=1.25):
    """Each image (H, W), and beside it the weights of its heads (n, h, rows, columns)."""
    axes = new_axes(size, size, len(images), 1 + weights.shape[1])
    look = {"cmap": weights_map(), "vmin": 0, "vmax": weights.max().item()}
    for row, image, maps in zip(axes, images, weights):
        add_image(row[0], image)
        for ax, one in zip(row[1:], maps):
            add_image(ax, one, **look)
    for i, ax in enumerate(axes[0]):
        ax.set_title(f"head {i}" if i else "image", fontsize=9)
    axes[0, 0].figure.suptitle(title, fontsize=10)
    add_colour_bar(axes[0, 1], axes.flat, ["weight"])
    return axes


def separate(ax, size, end):
    """White lines between the maps of size x size, of which a heat map is put together."""
    for place in range(size, end, size):
        ax.axhline(place - 0.5, color="white", linewidth=3)
        ax.axvline(place - 0.5, color="white", linewidth=3)


def accuracies(sizes, found, title):
    """{family: (means, deviations), one of each size} in percent, as curves with bars."""
    curves = {family: means for family, (means, _) in found.items()}
    ax = lines(
        sizes,
        curves,
        "training images",
        "test accuracy, %",
        title,
        log="x",
        markers=True,
    )
    for i, (line, (means, deviations)) in enumerate(zip(ax.lines[:], found.values())):
        place = i - (len(found) - 1) / 2  # side by side, so that no bar lies on another
        beside = [size * 1.04**place for size in sizes]
        line.set_xdata(beside)
        ax.errorbar(
            beside, means, deviations, color=COLOURS[i], capsize=3, linestyle="none"
        )
    ax.set_xticks(list(sizes), [f"{size:,}" for size in sizes])
    return ax
