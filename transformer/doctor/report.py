"""What an examination finds, and how it is told: as text, and as data."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

Verdict = Literal["healthy", "look", "broken", "not examined"]
WORST_FIRST = ("broken", "look", "not examined", "healthy")

# What is examined: what a finding there means, and where the book explains it.
ORGANS = {
    "output": (
        "A model gives scores of any size, and the loss makes probabilities of them. "
        "Twice made, or cut off at zero, they can hardly move.",
        "06 Embeddings, 13 Regularization",
    ),
    "future": (
        "Rows of scores see tokens that they are asked for. The loss becomes tiny, "
        "and what the model writes by itself is worthless.",
        "08 The model (rule 1), 14 Training",
    ),
    "past": (
        "A row of scores has to see the token that was read last, and the one before. "
        "Where it does not, a mask hides too much, or the target is shifted twice.",
        "08 The model (the table of rule 1)",
    ),
    "padding": (
        "Padding is read as words. A sentence gets other scores in another batch.",
        "08 The model (rule 2), 04 Attention",
    ),
    "neighbours": (
        "Sentences of a batch are mixed. Look for a batch that is taken for time, and "
        "for a sum, a softmax or a norm along the wrong axis.",
        "08 The model (rule 3)",
    ),
    "source": (
        "The decoder gets nothing, or not everything, from its source. It becomes a "
        "fluent writer that translates nothing.",
        "08 The model, 14 Training",
    ),
    "order": (
        "The same words in another order give the same scores. Positions are not "
        "added, or all words get the same one.",
        "07 Positions",
    ),
    "sines": (
        "A table of sines with other wavelengths. Order is still told, and so nothing "
        "fails; but the places are not the paper's, and its weights would not fit.",
        "07 Positions",
    ),
    "start": (
        "A new model should guess, which costs ln V. One that costs much more is sure "
        "of wrong answers: its embeddings or its last matrix begin too large.",
        "06 Embeddings, 12 The optimizer",
    ),
    "gradients": (
        "Some numbers are never trained: no gradient reaches them, or the model does "
        "not know that they are its own.",
        "14 Training",
    ),
    "sharing": (
        "Layers are one layer, or begin as copies of each other. A model has fewer "
        "parameters than it seems to have.",
        "03 Stacks",
    ),
    "modes": (
        "Dropout belongs to training alone. In evaluation two passes must agree.",
        "13 Regularization",
    ),
    "empty": (
        "A row in which everything is padding makes numbers that are none (NaN), and "
        "one such sentence spoils the gradient of the whole batch.",
        "04 Attention",
    ),
    "half": (
        "In half precision numbers end at 65,504. A mask of -1e9 does not fit; take "
        "torch.finfo(scores.dtype).min.",
        "11 Hardware",
    ),
    "loss": (
        "The loss asks for something else than the next token of every place.",
        "14 Training, 13 Regularization",
    ),
    "accumulation": (
        "An update from several batches is not that of one large batch: a token in a "
        "short batch counts for more than one in a long batch.",
        "14 Training (the gradient of one update)",
    ),
    "paper": (
        "With the same weights the scores are not those of the reference.",
        "08 The model",
    ),
    "floor": (
        "The targets were pure chance, and a loss below their floor cannot be earned. "
        "The model, or its loss, sees the answer.",
        "08 The model (the dice)",
    ),
    "one batch": (
        "Eight sentences must be learned by heart. Where they are not, look at the "
        "gradients, the loss and the learning rate before anything else.",
        "14 Training",
    ),
    "copying": (
        "To copy a number is the easiest translation. A healthy model learns it in "
        "a few hundred steps.",
        "00 A first Transformer",
    ),
    "reversing": (
        "To write a number backwards needs positions, and a look at the source.",
        "00 A first Transformer",
    ),
}


ASKED = {  # what each check asks; yes is healthy
    "output": "Are the scores finite, of both signs, and no probabilities?",
    "start": "Is the first loss near that of a guess?",
    "future": "Is every row of scores deaf to later tokens, in training too?",
    "past": "Does each row move with the last two tokens that it has read?",
    "padding": "Do the scores stay when padding is put behind the source?",
    "neighbours": "Do the scores stay when other sentences are in the batch?",
    "source": "Does each token of the source move some score?",
    "order": "Do scores move when two tokens change places?",
    "sines": "Has a table of sines, if there is one, the paper's wavelengths?",
    "modes": "Do two passes agree in evaluation, and differ in training?",
    "empty": "Does a source of padding alone leave the rest of its batch unharmed?",
    "half": "Does half precision give nearly the same scores?",
    "gradients": "Does each parameter get a gradient, and is nothing else trained?",
    "sharing": "Is each layer a layer of its own?",
    "loss": "Does the loss ask each place for its next token, and padding for nothing?",
    "accumulation": "Do several small batches give the gradient of a large one?",
    "paper": "Are the scores those of a reference with the same weights?",
    "floor": "Is the loss on pure chance no lower than chance allows?",
    "one batch": "Can eight sentences be learned by heart?",
    "copying": "Can it learn to copy?",
    "reversing": "Can it learn to write backwards?",
}
WORST_SHOWN = 8  # findings in the short form of a report


@dataclass(frozen=True)
class Finding:
    """What one check has seen. table: a matrix to be drawn, rows of scores downwards."""

    organ: str
    verdict: Verdict
    seen: str
    figures: Mapping[str, float] = field(default_factory=dict)
    table: list[list[float]] | None = None

    @property
    def asks(self) -> str:
        """The question of the check; yes is healthy."""
        return ASKED[self.organ]

    @property
    def means(self) -> str:
        """What a finding of this organ means."""
        return ORGANS[self.organ][0]

    @property
    def read(self) -> str:
        """Where the book explains it."""
        return ORGANS[self.organ][1]


@dataclass(frozen=True)
class Report:
    """An examination: findings in the order of the checks, seconds, and parameters.

    `print` tells it, `data` gives it as a dict, `views.checkup_page` as a page.
    """

    findings: tuple[Finding, ...]
    seconds: float
    parameters: int

    @property
    def healthy(self) -> bool:
        """Whether nothing was found; what was not examined does not count."""
        return not self.found

    @property
    def found(self) -> tuple[Finding, ...]:
        """The findings that are not healthy, the worst first."""
        ill = [f for f in self.findings if f.verdict in ("broken", "look")]
        return tuple(sorted(ill, key=lambda f: WORST_FIRST.index(f.verdict)))

    def data(self) -> dict:
        """Everything as plain values, which JSON can hold."""
        findings = [
            asdict(f) | {"means": f.means, "read": f.read} for f in self.findings
        ]
        whole = {"healthy": self.healthy, "seconds": round(self.seconds, 2)}
        return {**whole, "parameters": self.parameters, "findings": findings}

    def __str__(self) -> str:
        return "\n".join(lines_of(self))

    def __repr__(self) -> str:
        """The worst findings, and how many; `print` tells all."""
        worst = [f"  {f.verdict:8}{f.organ}" for f in self.found[:WORST_SHOWN]]
        return "\n".join([f"Report: {summary_of(self)}", *worst])


def lines_of(report: Report) -> Iterable[str]:
    """The text of a report: a line a check, and an explanation where something was found."""
    for finding in sorted(report.findings, key=lambda f: WORST_FIRST.index(f.verdict)):
        yield f"{finding.verdict:12}  {finding.organ:12}  {finding.seen}"
        if finding.verdict in ("broken", "look"):
            yield f"{'':28}{finding.means}"
            yield f"{'':28}Read: {finding.read}."
    yield summary_of(report)


def summary_of(report: Report) -> str:
    """How much was found, and in what, in a line."""
    count = len(report.found)
    words = "nothing was found" if not count else f"{count} findings"
    if count == 1:
        words = "one finding"
    return (
        f"{words} in {len(report.findings)} checks of a model of "
        f"{report.parameters:,} parameters, {report.seconds:.1f} seconds"
    )


def grade(value: float, look: float, broken: float) -> Verdict:
    """The verdict on a number that should be small."""
    return "broken" if value > broken else "look" if value > look else "healthy"
