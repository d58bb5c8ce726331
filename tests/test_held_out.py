"""What own files keep from training: whole groups, from all over the file, named in a file."""

import random

import numpy as np
import pytest

from transformer.runs.held_out import chosen_pairs, hold_out, write_held_out

CHANCE = random.Random(0)


def pairs_of(count, name="s"):
    return [(f"{name} {word(i)}", f"t {name} {word(i)}") for i in range(count)]


def word(i):
    """Letters that no other number has."""
    return "".join(chr(97 + int(digit)) for digit in str(i))


def sides(pairs):
    split = hold_out(pairs)
    training = list(chosen_pairs(pairs, split.training))
    held_out = list(chosen_pairs(pairs, split.held_out))
    return training, held_out, split.report


def shared(training, held_out, side):
    return {pair[side] for pair in training} & {pair[side] for pair in held_out}


REPEATED = pairs_of(150) * 40
SOURCES = [
    (source, f"{target} {word(i)}")
    for source, target in pairs_of(200)
    for i in range(5)
]
TARGETS = [(target, source) for source, target in SOURCES]
CHAINS = [
    (f"s {word(i // 2)} {word(i // 8)}", f"t {word((i + 1) // 2)} {word(i // 8)}")
    for i in range(800)
]
SPACES = [
    (" " * (i % 3) + source.replace(" ", " " * (1 + i % 2)), target)
    for i in range(6)
    for source, target in pairs_of(100)
]
MIXED = [*REPEATED[:500], *SOURCES, *TARGETS, *pairs_of(900, "other")]


@pytest.mark.parametrize(
    "pairs",
    [pairs_of(1000), REPEATED, SOURCES, TARGETS, CHAINS, SPACES, MIXED],
    ids=["different", "repeated", "sources", "targets", "chains", "spaces", "mixed"],
)
def test_no_sentence_is_on_both_sides(pairs):
    training, held_out, report = sides(pairs)
    training = [tuple(map(" ".join, map(str.split, pair))) for pair in training]
    held_out = [tuple(map(" ".join, map(str.split, pair))) for pair in held_out]
    assert shared(training, held_out, 0) == set()
    assert shared(training, held_out, 1) == set()
    assert len(held_out) == len(set(held_out)) == report.held_out >= 1
    assert len(training) + len(held_out) + report.copies == len(pairs)


@pytest.mark.parametrize("count, expected", [(2, 1), (150, 1), (1000, 10), (5000, 50)])
def test_a_hundredth_is_held_out(count, expected):
    assert sides(pairs_of(count))[2].held_out == expected


def test_no_more_than_a_thousand_are_held_out():
    assert sides(pairs_of(120_000))[2].held_out == 1000


def test_they_come_from_all_over_the_file():
    split = hold_out(pairs_of(20_000))
    parts = np.histogram(split.held_out, bins=10, range=(0, 20_000))[0]
    assert parts.min() >= 5


def test_the_same_texts_are_held_out_whatever_their_order():
    mixed = CHANCE.sample(MIXED, len(MIXED))
    assert set(sides(mixed)[1]) == set(sides(MIXED)[1])


def test_a_chain_without_end_is_one_group():
    chain = [(f"s {word(i // 2)}", f"t {word((i + 1) // 2)}") for i in range(5_000)]
    training, held_out, report = sides([*chain, *pairs_of(100, "other")])
    assert not report.linked
    assert not {pair[0] for pair in held_out} & {pair[0] for pair in chain}


def test_a_stream_is_enough():
    split, again = hold_out(iter(MIXED)), hold_out(MIXED)
    assert np.array_equal(split.training, again.training)
    assert np.array_equal(split.held_out, again.held_out)


def test_blank_pairs_are_on_neither_side():
    pairs = [*pairs_of(300), ("", "a"), ("b", " "), ("\u200b", "")]
    training, held_out, report = sides(pairs)
    assert report.blank == 3
    assert set(training) | set(held_out) == set(pairs_of(300))
    assert "3 pairs with a blank side are left out" in report.sentences()


def test_copies_are_said():
    report = sides(REPEATED)[2]
    assert report.copies == 39
    assert "39 copies of pairs to validate on are left out" in report.sentences()


def test_near_duplicates_are_said():
    pairs = pairs_of(300)
    loud = [(f"{source.upper()} !", f"{target}, 12.") for source, target in pairs]
    report = sides([*pairs, *loud])[2]
    assert report.near == report.held_out == 6
    assert "6 of the pairs to validate on are in training but for case" in " ".join(
        report.sentences()
    )


def test_nothing_is_said_where_there_is_nothing_to_say():
    assert len(sides(pairs_of(300))[2].sentences()) == 1


def test_pairs_that_are_all_linked_are_divided_and_it_is_said():
    training, held_out, report = sides([("same", f"t {word(i)}") for i in range(300)])
    assert report.linked
    assert (len(training), len(held_out)) == (297, 3)
    assert shared(training, held_out, 1) == set()
    assert "all pairs are linked" in report.sentences()[-1]


@pytest.mark.parametrize(
    "pairs", [[], [("a", "b")], [("a", "b")] * 9, [("a", "b"), ("", "")]]
)
def test_two_different_pairs_are_needed(pairs):
    with pytest.raises(ValueError, match="at least 2 different pairs"):
        hold_out(pairs)


def test_what_was_held_out_can_be_looked_at(tmp_path):
    split = hold_out(REPEATED)
    held_out = chosen_pairs(REPEATED, split.held_out)
    path = write_held_out(tmp_path, split.held_out, held_out)
    (line,) = path.read_text(encoding="utf8").splitlines()
    number, source, target = line.split("\t")
    assert REPEATED[int(number) - 1] == (source, target)
