"""Everything that draws: style, figures, diagrams, plots, pages, widgets.

`from transformer import views`, then `views.masks(...)`: the pictures below are
imported where they are first asked for. Each is a matplotlib figure that a notebook
shows with its alternative text.
"""

from importlib import import_module
from typing import Any

HOMES = {
    "first": ["diagonal", "duels", "no_answers", "waves"],
    "attention": [
        "look_ups",
        "looks",
        "looks_of",
        "side_by_side",
        "masks",
        "splitting_heads",
        "weights",
    ],
    "inside": [
        "as_in_the_paper",
        "circuit_diagram",
        "crossing",
        "leads",
        "rivals",
        "silenced",
    ],
    "stacks": [
        "bets",
        "decoder_layer",
        "dependence",
        "layer_norm_bars",
        "likeness",
        "norm_axes",
        "norm_places",
        "race",
        "residual_stream",
        "sizes",
        "two_stacks",
        "way_back",
    ],
    "model": [
        "dice",
        "moved",
        "next_word",
        "parameters",
        "traced",
        "whole_model",
    ],
    "checkup": ["checkup_page"],
    "diagnosis": ["charts", "joined", "other_sources", "patients", "source_looks"],
    "training": [
        "leak",
        "reading_begins",
        "strange_sources",
        "three_trainings",
    ],
    "decoding": [
        "bleu_runs",
        "bootstrap",
        "cache",
        "falling",
        "gains",
        "sure",
    ],
    "beam": ["beam_tree"],
    "embeddings": [
        "coming_apart",
        "noun_map",
        "one_matrix",
        "pulls",
        "temperature",
    ],
    "bends": [
        "entries",
        "head_bends",
        "learning_larger",
        "without_bends",
    ],
    "feed_forward": [
        "kinks",
        "larger_of_two",
        "memory",
        "sorting",
        "who_notices",
    ],
    "positions": [
        "beyond",
        "further",
        "looks_back",
        "rows_of_positions",
        "rotations",
    ],
    "clockwork": ["clocks", "rotary"],
    "tokens": ["batch", "kept_apart", "padding", "pieces"],
    "optimizer": [
        "boldness",
        "downhill",
        "finishes",
        "schedules",
        "starts",
        "valley",
        "walkers",
    ],
    "regularization": [
        "confidence",
        "dropout_places",
        "pushes",
        "same_learned",
        "surer",
        "two_judges",
    ],
    "widgets": ["one_word", "saturation"],
    "turn": ["Turn"],
    "labels": ["label_ends"],
    "style": ["GREY", "INK", "SERIES", "WARNING", "canvas", "panels", "picture"],
}
__all__ = sorted(name for names in HOMES.values() for name in names)


def __getattr__(name: str) -> Any:
    """Import one of the pictures above when it is first asked for (PEP 562)."""
    for module, names in HOMES.items():
        if name in names:
            value = getattr(import_module(f"{__name__}.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
