"""One style for all pictures: words beside them, a palette, names at the ends of
curves, captions."""

import io
import re

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from transformer import views
from transformer.corpora.tokenizer import Tokenizer as Bytes
from transformer.feed_forward import FeedForward
from transformer.models.maps import AttentionMaps
from transformer.positions import shift_matrix, sinusoids
from transformer.views import plotting, style, words
from transformer.views.evidence import listed, shown, with_interval, with_p
from transformer.views.labels import spread

# Pages written for the second edition: every picture has its caption and its words
SECOND_EDITION = [
    "00_first_transformer",
    "03_stacks",
    "04_attention",
    "05_feed_forward",
    "06_embeddings",
    "07_positions",
    "08_model",
    "10_data",
    "12_optimizer",
    "13_regularization",
    "14_training",
    "15_decoding",
    "16_translation",
    "19_visualization",
    "27_diagnosis",
    "evidence/16_translation",
]
WORDS = ["Tom", "feeds", "his", "dog"]
EYE = torch.eye(4)
LOG = [
    {
        part: dict(zip(("loss", "right", "sure"), values))
        for part, values in {"new": new, "learned": learned}.items()
    }
    for new, learned in [
        ((5.0, 0.1, 0.1), (4.0, 0.2, 0.2)),
        ((3.0, 0.3, 0.5), (1.0, 0.8, 0.7)),
    ]
]
PICTURES = {
    "waves": lambda: views.waves(sinusoids(4, 16), ["a", "b", "a", "c"], (0, 8), "a"),
    "no_answers": lambda: views.no_answers(["4", "1"]),
    "diagonal": lambda: views.diagonal(
        [5.0, 0.1], {1: EYE / 4, 2: EYE.flip(1)}, {1: "", 2: "413"}, "314 "
    ),
    "duels": lambda: views.duels(
        {"cat": {1: 2.0, 4: 1.0}, "dog": {1: 3.0, 4: 0.5}},
        [("The dog saw the cat.", {"dog": 1, "cat": 4}, "cat")],
    ),
    "looks_of": lambda: views.looks_of(
        [WORDS], WORDS[2], [[0.9, 0, 0, 0.1]], ["Tom"], [("Tom", "right", True)]
    ),
    "patients": lambda: views.patients({"A": [2.0] * 30, "B": [1.0] * 30}),
    "charts": lambda: views.charts(
        {"healthy": {"loss": 0.2, "silent": 0}, "Ben": {"loss": 1.8, "silent": 24}},
        {"loss": (0.001, float("inf")), "silent": (0, 0)},
    ),
    "joined": lambda: views.joined(
        {"right": torch.tensor([[0, 0], [1, 1]]), "alone": torch.tensor([[0, 1]] * 2)},
        ["begin", "7"],
    ),
    "other_sources": lambda: views.other_sources(
        {"healthy": {"own": 0.1, "other": 4.0}, "Ben": {"own": 1.7, "other": 1.7}}
    ),
    "source_looks": lambda: views.source_looks(
        {"healthy": EYE, "Cleo": EYE.flip(1)},
        source=["2", "4", "1", "pad"],
        written=["8", "7", "0", "end"],
    ),
    "leak": lambda: views.leak(WORDS, ["Tom", "füttert", "seinen", "Hund"], place=1),
    "three_trainings": lambda: views.three_trainings(
        {"A": [(10, 2.0), (20, 0.01)], "B": [(10, 3.0), (20, 0.1)]},
        {"A": "a", "B": "b"},
        floor=0.03,
    ),
    "strange_sources": lambda: views.strange_sources(
        {"untrained": (5.0, 5.0), "A": (0.01, 0.3)}
    ),
    "reading_begins": lambda: views.reading_begins([(n, 5.0, 5.1) for n in (1, 2)]),
    "sure": lambda: views.sure(["B", "ad", "et"], [-0.1, -2.5, -1.1]),
    "falling": lambda: views.falling(
        {"short": (["a", "?"], [-1.0, -6.0]), "long": (["word"] * 20, [-0.4] * 20)}
    ),
    "gains": lambda: views.gains(
        {"one": {0.0: 0.5, 1.0: 0.7, 2.2: -9.0}, "other": {0.0: -0.2, 2.2: -5.0}}
    ),
    "cache": lambda: views.cache(WORDS),
    "bleu_runs": lambda: views.bleu_runs("a red red fox", "the red fox runs"),
    "bootstrap": lambda: views.bootstrap({"one": [0.1, 0.2, 0.3] * 40}),
    "as_in_the_paper": lambda: views.as_in_the_paper(
        AttentionMaps(
            ["its", "hat", "."],
            ["auf", "."],
            torch.eye(3).expand(2, 3, 3, 3),
            torch.eye(2).expand(2, 3, 2, 2),
            torch.eye(2, 3).expand(2, 3, 2, 3),
        )
    ),
    "circuit_diagram": views.circuit_diagram,
    "crossing": lambda: views.crossing(
        AttentionMaps(
            [*WORDS, "."], [*WORDS, "."], *[torch.eye(5).expand(2, 3, 5, 5)] * 3
        ),
        layer=1,
        head=2,
        word="his",
    ),
    "leads": lambda: views.leads(
        {"nothing": -1.5, "1st + 2nd": 2.0}, "ihren", "seinen", start=-1.5
    ),
    "rivals": lambda: views.rivals(["hat", "dog"], [-7.8, 3.7], [True, False], ["hat"]),
    "silenced": lambda: views.silenced(
        {
            ("encoder.0.self_attention.heads", 0): "ihre",
            ("encoder.0.self_attention.heads", 1): "seine",
            ("decoder.1.cross_attention.heads", 0): "ihren",
            ("decoder.1.cross_attention.heads", 1): "hat",
        },
        "ihre",
    ),
    "rows_of_positions": lambda: views.rows_of_positions(sinusoids(20, 16)),
    "rotations": lambda: views.rotations(shift_matrix(3, 8), 3),
    "looks_back": lambda: views.looks_back({"quiet": EYE / 2, "loud": EYE}, WORDS),
    "beyond": lambda: views.beyond({"head 1": EYE, "head 2": EYE}, 3),
    "further": lambda: views.further({"sines": ([97], [75]), "none": ([63], [25])}),
    "larger_of_two": lambda: views.larger_of_two(
        {"Ada": 0.3, "Ben": -1.2, "Dan": -0.5}, ("Dan", "Ada")
    ),
    "learning_larger": lambda: views.learning_larger(
        {name: torch.rand(3, 50) for name in ("heads", "more", "network")}, floor=0.18
    ),
    "who_notices": lambda: views.who_notices(
        {"attention": torch.ones(4) > 0, "network": EYE[3] > 0}, WORDS, "cat"
    ),
    "sorting": lambda: views.sorting(FeedForward(2, 1), EYE[:, :2]),
    "memory": views.memory,
    "head_bends": lambda: views.head_bends(
        torch.linspace(-3, 3, 13),
        {(t, n): torch.rand(13) for t, n in ((1.0, 1), (4.0, 1), (4.0, 5), (4.0, 9))},
    ),
    "entries": lambda: views.entries(
        {3: (torch.rand(3), ["die", "den"])}, ["Katze", "war"]
    ),
    "without_bends": lambda: views.without_bends(
        {"decoder.layers.0": (0, 98), "all four": (8, 70)}, whole=100
    ),
    "noun_map": lambda: views.noun_map(EYE[:, :2], {"der": ["dog"], "die": WORDS[:3]}),
    "one_matrix": lambda: views.one_matrix(
        EYE, WORDS, EYE[0], EYE[1], read={"encoder": "Tom", "decoder": "his"}
    ),
    "pulls": lambda: views.pulls(EYE[:2, :2], -EYE[:2, :2], EYE[0, :2], WORDS[:2]),
    "coming_apart": lambda: views.coming_apart(
        {("German", 0): EYE[:, :2]},
        {("German", 0): 3},
        {"der": ["dog"], "die": WORDS[:3]},
    ),
    "weights": lambda: views.weights({"own": EYE, "even": EYE * 0 + 0.25}, WORDS),
    "masks": lambda: views.masks(
        {"padding": (EYE, EYE[0] > 0), "causal": (EYE, EYE > 0)}, WORDS
    ),
    "splitting_heads": lambda: views.splitting_heads(WORDS),
    "look_ups": lambda: views.look_ups(
        {"one head": EYE}, torch.tensor([[0, 1], [2, 3], [1, 0], [3, 2]])
    ),
    "residual_stream": views.residual_stream,
    "norm_places": views.norm_places,
    "norm_axes": views.norm_axes,
    "layer_norm_bars": lambda: views.layer_norm_bars(
        {"given": [[1, 2], [105, 110]], "divided": [[-1.0, 1.0], [-1.0, 1.0]]}
    ),
    "bets": lambda: views.bets({"first": [0.2, 0.1]}, [2 / 9, 1 / 9], ["1", "end"]),
    "sizes": lambda: views.sizes(
        {"norms": ([1, 1], [0.2]), "no norms": ([1, 30], [0.9])}
    ),
    "way_back": lambda: views.way_back(
        {"pre-norm": [0.3, 0.9, 1.0], "no lanes": [0.0, 0.1, 1.0]}
    ),
    "likeness": lambda: views.likeness({"lanes": [EYE] * 4, "none": [EYE] * 4}),
    "race": lambda: views.race({"no norms": [2.3] * 20, "post-norm": [2.0] * 20}),
    "two_stacks": views.two_stacks,
    "side_by_side": lambda: views.side_by_side(
        WORDS, WORDS[0], EYE[:2], {"whose?": "one", "what?": "another"}
    ),
    "decoder_layer": views.decoder_layer,
    "dependence": lambda: views.dependence(
        {"target": torch.ones(5, 5).tril(), "source": torch.ones(5, 6)}
    ),
    "whole_model": views.whole_model,
    "pieces": lambda: views.pieces({"": [" The", " cat", " un", "be", "\n", "."]}),
    "pieces, numbered": lambda: views.pieces(
        {"one": [" The"] * 30, "two": ["_", "un", "be"]}, [range(30), range(3)]
    ),
    "pieces, bytes": lambda: views.pieces({"bytes": [b" a", b"\xe9", b"\x8d"]}),
    "batch": lambda: views.batch(
        {"source": torch.tensor([[3, 2], [2, 0]])}, Bytes.train(["The"], 300)
    ),
    "padding": lambda: views.padding(
        [([3] * n, [3] * 4) for n in range(1, 5)],
        {"at random": [[0, 3], [1, 2]], "similar": [[0, 1], [2, 3]]},
    ),
    "kept_apart": lambda: views.kept_apart(
        {"test": [("a", "b")], "left out": [("a", "c")], "training": [("d", "e")]}
    ),
    "valley": lambda: views.valley(
        {"near": torch.tensor([[-10.0, 1], [0, 0]]), "far": torch.ones(3, 2) * 30}
    ),
    "downhill": lambda: views.downhill(
        {("plain", "straight"): EYE[:3, :2], ("plain", "diagonal"): EYE[:3, :2]},
        (50, 50),
        (False, True),
    ),
    "walkers": lambda: views.walkers(
        {"plain": {"stays": [10.0, 1], "falls": [10.0, 0.5]}}
    ),
    "schedules": lambda: views.schedules([1, 2, 3], {"the paper": [0.1, 0.2, 0.15]}),
    "starts": lambda: views.starts(
        {"slow": ([1.0] * 20, [[2.0, 1.0]]), "fast": ([0.1] * 20, [])}, 2.3
    ),
    "boldness": lambda: views.boldness([1.0] + [0.3] * 49, [1.0] + [0.2] * 49),
    "finishes": lambda: views.finishes(
        {"slow": [1.5, 2.0], "both": [0.1, 1.2]}, 2.3, {"both": 0.1}
    ),
    "two_judges": lambda: views.two_judges(LOG),
    "surer": lambda: views.surer({"plain": LOG}),
    "surer, with a remedy": lambda: views.surer({"plain": LOG, "dropout": LOG[::-1]}),
    "same_learned": lambda: views.same_learned({"plain": LOG, "smoothing": LOG}),
    "pushes": lambda: views.pushes({"one-hot": ([0.3, 0.6] * 10, [0.3, 0.9] * 10)}),
    "confidence": lambda: views.confidence(
        torch.linspace(0, 1, 20), torch.arange(20) > 3
    ),
    "dropout_places": views.dropout_places,
    "next_word": lambda: views.next_word({("a", "b"): [("x", 0.9), ("y", 0.001)]}),
    "dice": lambda: views.dice(
        {("training", "with"): [0.16] * 3, ("training", "without"): [1.0, 1.0, 0.2]}
    ),
    "moved": lambda: views.moved({"right": EYE > 0, "wrong": EYE < 2}, WORDS),
    "parameters": lambda: views.parameters(
        {"base": {"embedding": 5, "norms": 1}, "big": {"embedding": 50, "norms": 9}}
    ),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_itself_with_its_words(name):
    figure = PICTURES[name]()
    drawn, beside = figure.shown()
    image = Image.open(io.BytesIO(drawn))
    assert image.mode == "P"
    assert len(drawn) < 60_000
    assert image.width <= 8.4 * style.DPI, "wider than a page"
    assert beside["alt"] == repr(figure) == figure.alternative
    assert 40 < len(beside["alt"]) <= 1000
    corner = image.convert("RGB").getpixel((0, 0))
    assert corner == (255, 255, 255), "it is read on dark pages, too"
    assert not plt.get_fignums(), "a notebook would show it a second time"


def test_a_plot_gets_words_of_its_own():
    ax = plotting.bars({"a": 1})
    assert ax.figure.words == words.describe(ax.figure)
    figure = views.picture(ax, "One bar.")
    assert (figure.words, figure.shown()[1]["alt"]) == ("One bar.", "One bar.")
    assert not plt.get_fignums()


def test_a_notebook_shows_the_palette(monkeypatch):
    """IPython prefers a printer of the class to matplotlib's own; its words and width
    go with it."""
    from IPython.core.formatters import DisplayFormatter

    formatter = DisplayFormatter()
    png = formatter.formatters["image/png"]
    png.for_type(style.Figure, lambda figure: b"matplotlib's")
    png.for_type(style.Picture, style.Picture.shown)
    data, metadata = formatter.format(
        views.picture(plotting.bars({"a": 1}), "One bar.")
    )
    assert Image.open(io.BytesIO(data["image/png"])).mode == "P"
    assert metadata["image/png"].keys() == {"alt", "width"}
    assert data["text/plain"] == "One bar."


def test_colours_of_ideas_differ_from_those_of_series():
    assert style.IDEAS.keys() == style.PALE.keys() == style.DARK.keys()
    colours = [*style.IDEAS.values(), *style.SERIES, style.WARNING]
    assert len(set(colours)) == len(colours)
    assert plotting.COLOURS[:4] == style.SERIES
    white, zero = style.weights_map()(0.0), style.signed_map()(0.5)
    assert white[:3] == (1, 1, 1)
    assert min(zero[:3]) > 0.98


def test_names_stand_at_the_ends_of_their_curves():
    ax = plotting.lines([1, 2], {"low": [0, 1], "high": [0, 9], "near": [0, 1.01]})
    ax.figure.draw_without_rendering()
    names = {text.get_text(): text for text in ax.get_legend().get_texts()}
    boxes = {name: text.get_window_extent() for name, text in names.items()}
    end = ax.transData.transform((2, 9))
    assert boxes["high"].x0 > end[0]
    assert abs((boxes["high"].y0 + boxes["high"].y1) / 2 - end[1]) < 2
    assert boxes["low"].y1 <= boxes["near"].y0 + 1
    assert boxes["low"].y0 >= ax.get_window_extent().y0 - 1, "on the ticks"
    assert names["high"].get_color() == ax.lines[1].get_color()


@pytest.mark.parametrize(
    "wanted, places",
    [
        ([], []),
        ([5, 50], [5, 50]),
        ([50, 5], [50, 5]),
        ([10, 10], [5, 15]),
        ([10, 12, 100], [6, 16, 100]),
        ([0, 4, 8], [-6, 4, 14]),
    ],
)
def test_texts_are_moved_apart_and_no_further(wanted, places):
    assert spread(wanted, [10] * len(wanted)) == pytest.approx(places)


def test_a_table_of_records_has_dashes_where_a_figure_is_missing():
    rows = pd.DataFrame(
        {"row": ["base", "big"], "test.bleu": [1.25, None], "n": [1, 2]}
    )
    table = listed(
        rows, {"model": "{row}", "BLEU": "{test.bleu:.1f} of {n}", "x": "{y}"}
    )
    assert table.data.splitlines() == [
        "| model | BLEU | x |",
        "| --- | --- | --- |",
        "| base | 1.2 of 1 | - |",
        "| big | - | - |",
    ]


def test_numbers_of_evidence():
    row = pd.Series({"difference": -1.26, "low": -1.8, "high": -0.04, "p": 0.0123})
    assert with_interval(row) == "**−1.3** [−1.8, 0.0]"
    assert with_p(row) == "**−1.3** (0.012)"
    assert with_p(pd.Series({"difference": 0.0, "p": 0.5})) == "+0.0 (0.50)"
    table = shown(pd.DataFrame({"a": [1.5, 2.0], "b": ["x", "y"]}, index=["r", "s"]))
    assert table.data.splitlines() == [
        "|  | a | b |",
        "| --- | --- | --- |",
        "| r | 1.5 | x |",
        "| s | 2.0 | y |",
    ]


@pytest.mark.parametrize(
    "place, name",
    [(0, "1st"), (1, "2nd"), (2, "3rd"), (3, "4th"), (10, "11th"), (20, "21st")],
)
def test_places_count_from_the_first(place, name):
    assert style.ordinal(place) == name


# Captions


def uncaptioned(cells):
    """What is missing of each picture of a notebook: words for who cannot see it, or a
    caption, an italic sentence in the next text."""
    for place, cell in enumerate(cells):
        for output in cell.get("outputs", []):
            if "image/png" not in output.get("data", {}):
                continue
            if not output["metadata"].get("image/png", {}).get("alt"):
                yield f"cell {place}: no alternative text"
            later = cells[place + 1] if place + 1 < len(cells) else {"source": ""}
            if not re.match(r"\*[^*\s][^*]*[.?!)]\*", later["source"]):
                yield f"cell {place}: no caption"


@pytest.mark.parametrize("name", SECOND_EDITION)
def test_every_picture_has_a_caption_and_words(name, root):
    page = nbformat.read(root / "notebooks" / f"{name}.ipynb", as_version=4)
    assert any("image/png" in str(cell.get("outputs")) for cell in page.cells)
    assert list(uncaptioned(page.cells)) == []


@pytest.mark.parametrize(
    "text, words, missing",
    [
        ("*Look at the left.*", "Two bars.", 0),
        ("*Look at the left.* (Drag it.)\n\nMore.", "Two bars.", 0),
        ("**Look** at the left.", "Two bars.", 1),
        ("Look at the left.", "", 2),
    ],
)
def test_a_missing_caption_is_seen(text, words, missing):
    data = {"data": {"image/png": "..."}, "metadata": {"image/png": {"alt": words}}}
    cells = [{"outputs": [data], "source": "x"}, {"source": text}]
    assert len(list(uncaptioned(cells))) == missing


def test_a_bleu_drawn_again_is_that_of_the_drawn_sentences():
    from transformer.core.analysis import counts_at, drawn_bleu
    from transformer.core.scores import bleu_of_counts, ngram_counts

    outputs = ["a b c d e", "a b c d", "b c d e f g", "x y z a b"]
    references = ["a b c d f", "a b c d", "b c d e g g", "x y z b a"]
    counts = ngram_counts(outputs, references)
    places = np.random.default_rng(12345).choice(4, size=(20, 4), replace=True)
    expected = [bleu_of_counts(counts_at(counts, draw)) for draw in places]
    np.testing.assert_allclose(drawn_bleu(counts, 20), expected, rtol=1e-12)
