"""Boxes and arrows: how the parts of a model hang together."""

import math

from transformer.views.plotting import new_axes
from transformer.views.style import COLOURS, GREY, IDEAS, INK, PALE

LINE = INK


def flow(boxes, arrows, frames=(), ax=None):
    """Boxes joined by arrows: boxes maps a name to (x, y, text, colour); the colour is that of an
    idea of `style.IDEAS`, the number of one in COLOURS, or None.

    arrows: (from, to, side): straight where side is 0, otherwise leaving above `from` and going
    round at x + side. frames: (x, lowest y, highest y, text), grey behind boxes of one kind.
    """
    ax = new_axes(7.5, 5.5) if ax is None else ax
    for x, low, high, text in frames:
        ax.fill_between([x - 0.48, x + 0.48], low, high, color="#f3f2f6", linewidth=0)
        ax.text(x + 0.46, high - 0.1, text, ha="right", va="top", fontsize=9)
    patches = {name: draw_box(ax, *box) for name, box in boxes.items()}
    xs = [box[0] for box in boxes.values()]
    ys = [box[1] for box in boxes.values()]
    ax.set(xlim=(min(xs) - 0.6, max(xs) + 0.6), ylim=(min(ys) - 0.4, max(ys) + 0.4))
    for start, end, side in arrows:
        (x, y), (x_end, y_end) = boxes[start][:2], boxes[end][:2]
        leaves = patches[start]
        if side:
            ax.plot(
                [x, x + side, x + side],
                [y + 0.45, y + 0.45, y_end],
                color=LINE,
                linewidth=1,
            )
            x, y, leaves = x + side, y_end, None
        style = {"arrowstyle": "-|>", "color": LINE, "shrinkA": 0, "shrinkB": 1}
        ax.annotate(
            "",
            (x_end, y_end),
            (x, y),
            arrowprops={**style, "patchA": leaves, "patchB": patches[end]},
        )
    ax.set_axis_off()
    return ax


def encoder_and_decoder():
    """The paper's Figure 1: both stacks with their sub-layers, norms and paths around them."""
    words = ("words as vectors (06, 07)", "embedding")
    norm = ("add, LayerNorm", "norm")
    network = ("position-wise network (05)", "feed-forward")
    encoder = [words, ("self-attention (04)", "attention"), norm, network, norm]
    decoder = [
        words,
        ("masked self-attention (04)", "attention"),
        norm,
        ("cross-attention (04)", "attention"),
        norm,
        network,
        norm,
        ("a score for every possible next word (06)", "embedding"),
    ]
    heights = [-0.2, 1.5, 2.6, 4.1, 5.2, 6.7, 7.8, 9.3]
    boxes = {
        (x, i): (1.2 * x, heights[i], *box)
        for x, stack in enumerate([encoder, decoder])
        for i, box in enumerate(stack)
    }
    arrows = [((x, i), (x, i + 1), 0) for x, i in boxes if (x, i + 1) in boxes]
    arrows += [
        ((x, i), (x, i + 2), 0.43 * (2 * x - 1))
        for x, i in boxes
        if i % 2 == 0 and (x, i + 2) in boxes
    ]
    frames = [
        (1.2 * x, 0.6, top, f"{half}: 6 of these")
        for x, (half, top) in enumerate([("encoder", 6), ("decoder", 8.6)])
    ]
    ax = flow(boxes, [*arrows, ((0, 4), (1, 3), 0)], frames)
    ax.text(0.6, 5.0, "memory", ha="center", fontsize=9)
    ax.set_title(
        "A source becomes memory; each layer of the decoder reads it", fontsize=10
    )
    return ax


def whole_model():
    """Figure 1 with shapes, from token ids to logits; the three green boxes are one matrix."""
    below = [("embedding × √d_model", "embedding"), ("add positions", "positions")]
    norm = ("add & norm", "norm")
    attention = ("attention to memory", "attention")
    network = ("feed-forward", "feed-forward")
    encoder = [
        ("source  (B, S)", None),
        *below,
        ("self-attention", "attention"),
        norm,
        network,
        norm,
        ("memory  (B, S, d_model)", None),
    ]
    decoder = [
        ("target  (B, T)", None),
        *below,
        ("causal self-attention", "attention"),
        norm,
        attention,
        norm,
        network,
        norm,
        ("embedding, transposed", "embedding"),
        ("logits  (B, T, V)", None),
    ]
    boxes = {
        (x, i): (1.25 * x, 0.8 * i + 1.6 * x, *box)
        for x, stack in enumerate([encoder, decoder])
        for i, box in enumerate(stack)
    }
    arrows = [((x, i), (x, i + 1), 0) for x, i in boxes if (x, i + 1) in boxes]
    arrows += [
        ((x, i), (x, i + 2), 0.42 * (2 * x - 1))
        for x, i in ((0, 2), (0, 4), (1, 2), (1, 4), (1, 6))
    ]
    frames = [(0, 1.98, 5.2, "encoder, N ×"), (1.25, 3.58, 8.4, "decoder, N ×")]
    ax = flow(boxes, [*arrows, ((0, 7), (1, 5), 0)], frames, new_axes(7.5, 8))
    ax.set_title(
        "From token ids, below, to a score for each next token, on top", fontsize=10
    )
    return ax


def unrolled(source, target):
    """A recurrent translator in time: encoder states over source words, decoder over target."""
    words, S = [*source, "<s>", *target], len(source)
    boxes = {}
    for i, word in enumerate(words):
        x = i + (i >= S)  # a gap between the two
        boxes[f"x{i}"] = (x, 0, word, None)
        boxes[f"h{i}"] = (x, 1, f"$h_{i + 1}$", int(i >= S))
        if i >= S:
            boxes[f"y{i}"] = (x, 2, [*words, "</s>"][i + 1], None)
    arrows = [(f"x{i}", f"h{i}", 0) for i in range(len(words))]
    arrows += [(f"h{i}", f"h{i + 1}", 0) for i in range(len(words) - 1)]
    arrows += [(f"h{i}", f"y{i}", 0) for i in range(S, len(words))]
    ax = flow(boxes, arrows, ax=new_axes(1.2 * len(words), 2.6))
    ax.set_title("Each state needs the one before it", fontsize=10)
    return ax


def draw_box(ax, x, y, text, colour):
    """Text in a rounded box; returns the box, so that arrows can end at its edge."""
    style = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": GREY}
    drawn = ax.text(
        x, y, text, ha="center", va="center", fontsize=9, zorder=3, bbox=style
    )
    box = drawn.get_bbox_patch()
    if colour in IDEAS:
        box.set(facecolor=PALE[colour], edgecolor=IDEAS[colour])
    elif colour is not None:
        box.set_facecolor(COLOURS[colour] + "50")
    return box


def clocks(angles, rows, columns, title=""):
    """A clock for each of the angles (R, C), in radians: the hand's end is at (cosine, sine)."""
    from matplotlib.patches import Circle

    axes = new_axes(0.95, 0.95, len(rows), len(columns), squeeze=False)
    for row, (name, some) in enumerate(zip(rows, angles)):
        for ax, column, angle in zip(axes[row], columns, some):
            ax.plot(
                [0, math.cos(angle)],
                [0, math.sin(angle)],
                color=IDEAS["positions"],
                lw=2,
            )
            ax.add_artist(Circle((0, 0), 1, fill=False, color=GREY))
            ax.set(
                xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), xticks=[], yticks=[], aspect="equal"
            )
            ax.set_frame_on(False)
            if row == 0:
                ax.set_title(column, fontsize=8)
        axes[row, 0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)
    axes[0, 0].figure.suptitle(title, fontsize=10)
    return axes


# Attention (notebook 04)

ATTENTION = {
    "Q": (0.0, 0, "Q", None),
    "K": (0.6, 0, "K", None),
    "V": (1.2, 0, "V", None),
    "scores": (0.3, 1.1, "scores: each query\ntimes each key", "attention"),
    "scale": (0.3, 2.2, "scale: divide by √d_k", "attention"),
    "mask": (0.3, 3.2, "mask (optional)", "attention"),
    "softmax": (0.3, 4.2, "softmax: weights", "attention"),
    "mix": (0.75, 5.3, "mix: weights times values", "attention"),
    "out": (0.75, 6.3, "one output for each query", None),
}
SEVERAL = {
    "q": (2.3, 0, "queries", None),
    "k": (3.1, 0, "keys", None),
    "v": (3.9, 0, "values", None),
    "W_Q": (2.3, 1.4, "h matrices W_Q", 0),
    "W_K": (3.1, 1.4, "h matrices W_K", 0),
    "W_V": (3.9, 1.4, "h matrices W_V", 0),
    "heads": (3.1, 3.2, "attention (left), h times side by side", "attention"),
    "joined": (3.1, 4.4, "the h outputs in one row", None),
    "W_O": (3.1, 5.4, "times W_O", 0),
    "end": (3.1, 6.3, "one output for each query", None),
}
LEADS = [
    ("Q", "scores"),
    ("K", "scores"),
    ("scores", "scale"),
    ("scale", "mask"),
    ("mask", "softmax"),
    ("softmax", "mix"),
    ("V", "mix"),
    ("mix", "out"),
    ("q", "W_Q"),
    ("k", "W_K"),
    ("v", "W_V"),
    ("W_Q", "heads"),
    ("W_K", "heads"),
    ("W_V", "heads"),
    ("heads", "joined"),
    ("joined", "W_O"),
    ("W_O", "end"),
]


def attention_and_heads():
    """What Figure 2 shows: attention, step by step from below, and several heads of it."""
    ax = flow(
        {**ATTENTION, **SEVERAL}, [(*lead, 0) for lead in LEADS], ax=new_axes(9.5, 4.8)
    )
    for x, title in (
        (0.6, "Scaled dot-product attention"),
        (3.1, "Multi-head attention"),
    ):
        ax.text(x, 7.0, title, ha="center", va="center", fontsize=11)
    ax.set_ylim(-0.5, 7.3)


def grid(ax, x, y, rows, colours, cell=0.2):
    """A matrix as a grid whose middle is at (x, y): a colour for each of its columns."""
    from matplotlib.patches import Rectangle

    left, top = x - cell * len(colours) / 2, y + cell * rows / 2
    for c, colour in enumerate(colours):
        for r in range(rows):
            ax.add_patch(
                Rectangle(
                    (left + cell * c, top - cell * (r + 1)),
                    cell,
                    cell,
                    facecolor=colour + "90",
                    edgecolor="white",
                )
            )


def splitting_heads(T=3, h=4, d_k=2):
    """How vectors (T, h d_k) are cut into heads, attend and are joined, with shapes."""
    ax = new_axes(10.5, 3.6)
    whole, heads = (
        [GREY] * h * d_k,
        [colour for colour in COLOURS[:h] for _ in range(d_k)],
    )
    steps = [
        ("x", "(B, T, d_model)", whole),
        ("q: all heads\nside by side", "(B, T, h · d_k)", heads),
        ("q: cut", "(B, h, T, d_k)", d_k),
        ("weights", "(B, h, T, S)", T),
        ("outputs", "(B, h, T, d_v)", d_k),
        ("joined", "(B, T, h · d_v)", heads),
        ("result", "(B, T, d_model)", whole),
    ]
    acts = [
        "times\nW_Q",
        "split\nheads",
        "with k:\nsoftmax",
        "times\nv",
        "join\nheads",
        "times\nW_O",
    ]
    for i, (name, shape, columns) in enumerate(steps):
        x = 2.5 * i
        if isinstance(columns, int):
            for n in range(h):
                grid(ax, x, 1.2 - 0.8 * n, T, COLOURS[n : n + 1] * columns)
        else:
            grid(ax, x, 0, T, columns)
        ax.text(x, 1.75, name, ha="center", va="bottom", fontsize=9)
        ax.text(x, -1.75, shape, ha="center", va="top", fontsize=9)
    for i, act in enumerate(acts):
        ax.annotate(
            "",
            (2.5 * i + 1.6, 0),
            (2.5 * i + 0.95, 0),
            arrowprops={"arrowstyle": "-|>", "color": LINE},
        )
        ax.text(2.5 * i + 1.27, 0.15, act, ha="center", va="bottom", fontsize=8)
    title = (
        f"{h} heads: d_model = {h * d_k}, d_k = d_v = {d_k}, a sentence of {T} words"
    )
    ax.set(xlim=(-1, 2.5 * 6 + 1), ylim=(-2.2, 2.4), aspect="equal", title=title)
    ax.set_axis_off()
