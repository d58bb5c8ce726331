"""Each exercise of the notebooks takes its folded solution, and refuses one typical mistake."""

import importlib
import math
import re

import nbformat
import numpy as np
import pairs
import pytest
import torch
import torch.nn.functional as F

from transformer.attention import attention, causal_mask, join_heads, split_heads
from transformer.corpora.splits import fold
from transformer.optimizer import adam_update
from transformer.positions import rotate, sinusoids
from transformer.teaching.exercises import Exercise
from transformer.teaching.exercises.feed_forward import check_hat
from transformer.teaching.exercises.model import moved
from transformer.teaching.exercises.parsing import check_bracket_f1
from transformer.teaching.exercises.stacks import check_half_lanes
from transformer.teaching.exercises.translation import (
    check_averaged,
)
from transformer.teaching.exercises.variations import check_holm, holm

# function to write: (what its solution says, what a typical mistake says instead)
MISTAKES = {
    "peeks": ("before[:, :-1], after[:, :-1]", "before, after"),
    "neighbours_move": ("return max(changes)", "return changes[0]"),
    "training_bytes": ("4 * 4 *", "4 * 3 *"),
    "crossing": ("8 * d_model**2", "4 * d_model**2"),
    "shared_keys": (
        "split_heads(x @ W_Q, h)",
        "(x @ W_Q).unflatten(-1, (-1, h)).movedim(-1, 1)",
    ),
    "backwards": ("10 * n * ", ""),
    "adamw": ("rate * decay * p", "decay * p"),
    "calibration_error": (".abs()", ""),
    "key_for": ("rows[back]", "rows[0]"),
    "article": ("(vector - mean).norm()", "-vector @ mean"),
    "pulls": ("q - p", "p - q"),
    "hat": ("-2 *", "-1 *"),
    "blend": ("10 * asked", "asked"),
    "continued": ("(x, so_far)", "(x)"),
    "broken_rule": (".triu(1)", "[:-1, -1]"),
    "published_gru_step": ("(r * h) @ U_n.T", "r * (h @ U_n.T)"),
    "additive_weights": (" * real", ""),
    "linear_states": ("W = W @ W", "W = W"),
    "gated_convolution": ("torch.sigmoid(gate)", "torch.tanh(gate)"),
    "dilated_convolution": ("(0, 0, gap * (k - 1), 0)", "(0, 0, 0, gap * (k - 1))"),
    "receptive_field": ("field + (k - 1) * gap", "field + k * gap"),
    "half_lanes": ("x - x.detach() + y", "x + y"),
    "forbidden": ("tokens[len(tokens) - n + 1 :]", "tokens[-n:]"),
    "near_copies": ("None, *words", "*words"),
    "layers_until": ("layers = 1", "layers = 0"),
    "writing_flops": ("range(1, n + 1)", "range(n)"),
    "nearby": ("i + r + 1", "i + r"),
    "in_blocks": ("blend * shrink", "blend"),
    "cached_step": ("softmax(dim=1)", "softmax(dim=0)"),
    "in_8_bits": (".amax(dim=1, keepdim=True)", ".amax()"),
    "parameters": ("3 * norm", "2 * norm"),
    "holm": ("max(largest, p[i] * (len(p) - place))", "p[i] * (len(p) - place)"),
    "rank_correlation": (".argsort().argsort()", ".argsort()"),
    "symbols_of": ("[label]\n", "[parts[0]]\n"),
    "bracket_f1": ("            left.remove(bracket)\n", ""),
    "may_follow": (" and (depth > 1 or left == 0)", ""),
    "looks_away": ("row / row.sum(dim=-1, keepdim=True)", "row"),
    "nucleus": ("before < p", "before + ordered <= p"),
    "as_sequence": (
        "(len(question) + 2) + [True] * (len(answer) + 1)",
        "(len(question) + 1) + [True] * (len(answer) + 2)",
    ),
    "bits_a_character": (" / math.log(2)", ""),
    "gap_mask": (" & (distance % gap == 0)", ""),
    "field": ("2 * far + 1", "2 * far"),
    "joined": ("a.logsumexp(dim=0) - b.logsumexp(dim=0)", "a.max() - b.max()"),
    "colour_patches": ("permute(1, 3, 0, 2, 4)", "permute(1, 3, 2, 4, 0)"),
    "nine_looks": (
        "classify(torch.stack(looks)).softmax(dim=-1)\n    return p.mean(dim=0)",
        "classify(torch.stack(looks))\n    return p.mean(dim=0).softmax(dim=-1)",
    ),
    "exact_step": ("(kept - 1) / A", "delta * torch.ones_like(A)"),
    "both_steps": ("b * u + v", "u + v"),
    "linear_attention": (
        "        state = state + torch.outer(k[t], v[t])\n"
        "        outputs.append(q[t] @ state)\n",
        "        outputs.append(q[t] @ state)\n"
        "        state = state + torch.outer(k[t], v[t])\n",
    ),
    "by_turns": ("[sines, cosines]", "[cosines, sines]"),
    "head_of": ("i * d_k:(i + 1) * d_k", "i::W.shape[0] // d_k"),
    "rescaled": ("bias * root", "bias"),
    "in_order": ("lean > masculine", "lean >= masculine"),
    "most_frequent": ("[:size - len(marks)]", "[:size]"),
    "likeliest_pieces": ("before + log_p[piece]", "log_p[piece]"),
}
ASKED = re.compile(
    r"^from (transformer\.teaching\.exercises\.\w+) import (check_\w+)$", re.MULTILINE
)
SOLUTION = re.compile(r"<details>.*?```python\n(.*?)```.*?</details>", re.DOTALL)


def exercises() -> list:
    """(cell, function, checker, solution) of each exercise of every notebook."""
    found = []
    for path in pairs.notebooks():
        cells = nbformat.read(path, 4).cells
        for number, cell in enumerate(cells):
            asked = ASKED.search(cell.source)
            if cell.cell_type == "code" and asked:
                checker = getattr(importlib.import_module(asked[1]), asked[2])
                called = re.search(rf"^{asked[2]}\((\w+)\)$", cell.source, re.MULTILINE)
                texts = (c for c in cells[number:] if c.cell_type == "markdown")
                solution = SOLUTION.search(next(texts).source)
                found.append(
                    pytest.param(
                        cell.source,
                        called[1],
                        checker,
                        solution and solution[1],
                        id=f"{path.stem[:2]}-{called[1]}",
                    )
                )
    return found


def written(code, name):
    place = {"math": math, "np": np, "torch": torch, "F": F}
    place |= {f.__name__: f for f in (attention, split_heads, join_heads)}  # 04's page
    place |= {"rotate": rotate, "sinusoids": sinusoids}  # 07's page
    place |= {"causal_mask": causal_mask, "moved": moved}  # 08's page
    place["folded"] = fold  # 10's page
    place["adam_update"] = adam_update  # 12's page
    exec(code, place)
    return place[name]


@pytest.mark.parametrize("cell, name, checker, solution", exercises())
def test_solution_is_right_and_a_mistake_is_not(cell, name, checker, solution):
    untried = cell.split("\ncheck_")[0]  # what follows the checker's call uses the page
    untried = re.sub(r"^from.*$", "", untried, flags=re.MULTILINE)
    assert checker.verdict(written(untried, name)) == "not tried yet"
    assert checker.verdict(written(solution, name)) == "right"
    assert len(solution.strip().splitlines()) >= 4, "three lines of one's own"
    right, wrong = MISTAKES[name]
    assert right in solution, f"{name}: no {right!r} to replace"
    verdict = checker.verdict(written(solution.replace(right, wrong), name))
    assert verdict.startswith("not yet: ") and checker.hint in verdict


@pytest.mark.parametrize(
    "checker, answer",
    [
        (check_half_lanes, lambda x, y: (x.detach() + y, y + (x - x.detach()))),
        (check_half_lanes, lambda x, y: [x.data + y, x - x.data + y]),
        (check_holm, lambda p: np.array(holm(p))),
        (check_holm, lambda p: torch.tensor(holm(p))),
    ],
)
def test_other_right_answers(checker, answer):
    assert checker.verdict(answer) == "right"


@pytest.mark.parametrize(
    "checker, answer",
    [
        (
            check_bracket_f1,
            lambda gold, found: (
                200 * len({*gold} & {*found}) / (len(gold) + len(found))
            ),
        ),
        (
            check_averaged,
            lambda kept, k: [
                sum(tensors[1:], start=tensors[0].add_(0)) / k
                for tensors in zip(*(kept[update] for update in sorted(kept)[-k:]))
            ],
        ),
        (
            check_holm,
            lambda p: np.maximum.accumulate(np.sort(p) * np.arange(len(p), 0, -1))[
                np.argsort(np.argsort(p))
            ].tolist(),
        ),
        (check_hat, lambda x, relu: relu(1 - x.abs())),
        (check_half_lanes, lambda x, y: (x + y, x - x.detach() + y)),
        (check_half_lanes, lambda x, y: (x.detach() + y, y)),
    ],
)
def test_other_mistakes(checker, answer):
    """Each bracket once, however often it stands there; p above 1; |x| by torch."""
    assert checker.verdict(answer).startswith("not yet")


def test_mistakes_are_of_exercises_that_are_there():
    assert {case.values[1] for case in exercises()} == set(MISTAKES)


@pytest.mark.parametrize(
    "answer, said",
    [
        (lambda x: ..., "not tried yet"),
        (lambda x: str(x) and None, "it returns nothing"),
        (lambda x: x / 0, "it stops with ZeroDivisionError"),
        (lambda x: x + 1, "it is 3, and should be 4"),
        (lambda x: 2 * x, "right"),
    ],
)
def test_verdicts_say_what_is_wrong(answer, said):
    double = Exercise(lambda x: 2 * x, lambda: [(2.0,), (5.0,)], "twice as much")
    assert said in double.verdict(answer)


def test_whole_numbers_must_be_exact():
    many = Exercise(lambda: 400_000, lambda: [()], "one less is wrong")
    assert many.verdict(lambda: 399_999).startswith(
        "not yet: it is 399999, and should be 400000"
    )
    assert many.verdict(lambda: 400_000.0) == "right"
