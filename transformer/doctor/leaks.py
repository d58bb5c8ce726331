"""Does anything reach a row of scores that must not, or not reach it that should?"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.doctor.report import Finding, Verdict, grade
from transformer.doctor.subject import Subject, change, spread

ROUNDING, LEAK = 1e-4, 1e-3  # changes, in units of the spread of scores
BLIND = 1e-5
ORDER = 0.005  # an exchange of two tokens, beside their replacement


def moved(s: Subject, training: bool = False) -> Tensor:
    """(T, T): by how much a row of scores (down) moves with a target token (across)."""
    source, target = s.sentences(2)
    before, columns = s.scores(source, target, training)[0], []
    for t in range(target.shape[1]):
        changed = target.clone()
        changed[0, t] = s.other(target[0, t])
        after = s.scores(source, changed, training)[0]
        columns.append((after - before).abs().amax(dim=-1))
    return torch.stack(columns, dim=1) / spread(before)


def future(s: Subject) -> Finding:
    """Change each target token: no row above it may move, in evaluation or in training."""
    tables = {"evaluation": moved(s), "training": moved(s, training=True)}
    leaks = {name: table.triu(1).max().item() for name, table in tables.items()}
    worst = max(leaks, key=lambda name: leaks[name])
    rows = (tables[worst].triu(1) > ROUNDING).any(dim=1).sum().item()
    verdict = grade(leaks[worst], ROUNDING, LEAK)
    seen = "no row of scores moves with a later token"
    if verdict != "healthy":
        seen = f"{rows} of {len(tables[worst])} rows move with later tokens ({worst})"
    figures = {f"leak in {name}": value for name, value in leaks.items()}
    return Finding("future", verdict, seen, figures, tables[worst].tolist())


def past(s: Subject) -> Finding:
    """Change each target token: its own row must move, and the row below."""
    table = moved(s)
    own, before = table.diagonal(), table.diagonal(-1)
    blind = int((own < BLIND).sum() + (before < BLIND).sum())
    seen = "each row sees the token read last, and the one before"
    if blind:
        seen = f"{blind} of {len(own) + len(before)} recent tokens move nothing"
    figures = {"own": own.min().item(), "before": before.min().item()}
    verdict: Verdict = "broken" if blind else "healthy"
    return Finding("past", verdict, seen, figures, table.tolist())


def padding(s: Subject) -> Finding:
    """Put padding behind the sources: nothing may change."""
    source, target = s.sentences(2)
    padded = F.pad(source, (0, 3), value=s.pad)
    moved = change(s.scores(padded, target), s.scores(source, target))
    verdict = grade(moved, ROUNDING, LEAK)
    seen = f"three paddings change scores by {moved:.1e} of their spread"
    return Finding("padding", verdict, seen, {"change": moved})


def neighbours(s: Subject) -> Finding:
    """Read two sentences together, alone, and beside others: each keeps its scores."""
    source, target = s.sentences(2)
    together = s.scores(source, target)
    alone = torch.cat([s.scores(source[i : i + 1], target[i : i + 1]) for i in (0, 1)])
    turned = s.scores(source.flip(0), target.flip(0)).flip(0)
    more = [torch.cat(pair) for pair in zip((source, target), s.sentences(3))]
    moved = max(
        change(x, together) for x in (alone, turned, s.scores(more[0], more[1])[:2])
    )
    verdict = grade(moved, ROUNDING, LEAK)
    seen = f"other sentences in the batch change scores by {moved:.1e} of their spread"
    return Finding("neighbours", verdict, seen, {"change": moved})


def source_moves(s: Subject) -> Tensor:
    """(T, S): by how much a row of scores (down) moves with a source token (across)."""
    source, target = s.sentences(2)
    before, columns = s.scores(source, target)[0], []
    for place in range(source.shape[1]):
        changed = source.clone()
        changed[0, place] = s.other(source[0, place])
        after = s.scores(changed, target)[0]
        columns.append((after - before).abs().amax(dim=-1))
    return torch.stack(columns, dim=1) / spread(before)


def source(s: Subject) -> Finding:
    """Change each source token: some row of scores must move."""
    table = source_moves(s)
    by_token = table.amax(dim=0)
    blind = int((by_token < BLIND).sum())
    seen = f"each source token moves scores, by {by_token.min():.1e} of their spread"
    if blind:
        seen = f"{blind} of {len(by_token)} source tokens move nothing"
    figures = {"least": by_token.min().item(), "most": by_token.max().item()}
    verdict: Verdict = "broken" if blind else "healthy"
    return Finding("source", verdict, seen, figures, table.tolist())


def order(s: Subject) -> Finding:
    """Exchange two source tokens, and two earlier target tokens: scores must move, beside
    how they move when both are replaced.
    """
    source, target = s.sentences(2)
    before, turn = s.scores(source, target)[:, 3:], [0, 2, 1]
    figures, sides = {}, {"source": source, "target": target}
    for name, tokens in sides.items():
        exchanged, replaced = tokens.clone(), tokens.clone()
        exchanged[:, :3] = tokens[:, turn]
        replaced[:, 1:3] = s.other(tokens[:, 1:3])
        moved = []
        for changed in (exchanged, replaced):
            given = sides | {name: changed}
            after = s.scores(given["source"], given["target"])[:, 3:]
            moved.append(change(after, before))
        figures[name] = moved[0] / moved[1] if moved[1] > BLIND else math.nan
    lost = [name for name, share in figures.items() if share < ORDER]
    seen = "scores depend on the order of words in source and target"
    if lost:
        seen = f"another order of the {' and the '.join(lost)} changes nothing"
    return Finding("order", "broken" if lost else "healthy", seen, figures)
