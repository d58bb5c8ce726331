"""What a session shows of a result that is not printed: a few lines, and no wall of numbers."""

import pytest

from transformer import (
    attention_maps,
    cache,
    load,
    logit_lens,
    translate,
    translate_n_best,
)
from transformer.doctor.report import ORGANS, Finding, Report
from transformer.runs.progress import Progress

SENTENCE = "The cat that saw the dog lost its ball."


@pytest.fixture(scope="module")
def bundled():
    return load()


def short_form(result):
    """The repr, which has at most ten lines of at most 100 characters."""
    text = repr(result)
    lines = text.splitlines()
    assert len(lines) <= 10
    assert max(map(len, lines)) <= 100
    return text


def test_maps_show_kinds_layers_heads_and_sizes(bundled):
    (maps,) = attention_maps(*bundled, [("The cat.", "Die Katze.")])
    assert short_form(maps).splitlines() == [
        "AttentionMaps: The cat . </s> -> Die Katze . </s>",
        "  encoder 2 layers, 4 heads, 4 x 4 words",
        "  decoder 2 layers, 4 heads, 4 x 4 words",
        "  cross   2 layers, 4 heads, 4 x 4 words",
    ]


def test_maps_of_a_long_sentence_show_its_beginning(bundled):
    (maps,) = attention_maps(*bundled, [("The cat. " * 40, "Die Katze.")])
    assert "cat . The ... -> Die Katze ." in short_form(maps)


def test_a_lens_shows_what_it_read(bundled):
    lens = logit_lens(*bundled, "The cat.", "Die Katze.")
    assert "3 levels, 4 tokens read, the 5 likeliest next" in short_form(lens)


def test_a_cache_shows_its_first_names_and_counts_the_others(bundled):
    with cache(bundled[0]) as seen:
        translate(*bundled, ["The cat."], beam=1)
    text = short_form(seen)
    assert text.startswith(f"Activations of {len(seen)} names:\n")
    assert text.endswith(f"... and {len(seen) - 8} more; list(...) names all")


def test_a_report_shows_its_findings_alone():
    healthy = [Finding(organ, "healthy", "as it should be") for organ in ORGANS]
    ill = [Finding(organ, "broken", "figures " * 40) for organ in list(ORGANS)[:9]]
    assert short_form(Report((*healthy, *ill), 1.5, 7)).splitlines() == [
        f"Report: 9 findings in {len(healthy) + 9} checks of a model of 7 parameters, "
        "1.5 seconds",
        *(f"  broken  {organ}" for organ in list(ORGANS)[:8]),
    ]


def test_a_translation_shows_text_score_and_status(bundled):
    (entry,) = translate_n_best(*bundled, ["The cat."], 1)[0]
    assert repr(entry) == (
        f"Translation(text={entry.text!r}, score={entry.score}, source='The cat.', "
        "status='finished')"
    )


def test_progress_shows_no_log():
    progress = Progress(
        log=[{"update": 1}] * 500, losses=[0.5] * 500, norms=[1.0] * 500
    )
    assert "Progress(update=0, " in repr(progress)
    assert len(repr(progress)) < 300


def test_a_tokenizer_shows_its_size(bundled):
    assert short_form(bundled[1]) == "Tokenizer: 3500 types"
