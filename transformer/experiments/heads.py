"""What the heads of the bundled models look at: evidence 19's record data/runs/heads.json.

    python -m transformer.experiments.heads        a minute of one core

Heads are chosen on the first 400 bundled validation sentences and scored on the first 400 of test.
Tables have a row for each layer and a column for each head.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import torch

from transformer.core.records import read_rows
from transformer.corpora import read_aligned, read_bundled
from transformer.corpora.tokenizer import WORD
from transformer.data import collate, encode_pairs
from transformer.experiments.runner import Job, run_command, run_jobs
from transformer.fast.model import Transformer
from transformer.models import gold, head_scores
from transformer.models.maps import KINDS, all_maps
from transformer.models.pretrained import bundled_folder, load
from transformer.models.recording import cache, edit
from transformer.models.search import translate
from transformer.visualization import silent

SIZE = 400  # sentences of validation and of test
SCORES = "encoder.0.self_attention.scores"
OWNERS = {
    "ihr": "cat mouse cow bee city church bank school family company newspaper army",
    "sein": "dog bird horse fish country village house child elephant bear lion hotel",
}
FRAMES = (
    "The {} has lost its money.",
    "The {} needs its own garden.",
    "The {} is famous for its size.",
)


def rounded(table: Any) -> Any:
    """A tensor as lists, or a number, to four digits."""
    table = torch.as_tensor(table)
    return (table.double() * 1e4).round().div(1e4).tolist()


def best(table: torch.Tensor) -> tuple[int, int]:
    """Layer and head of the largest number."""
    layer, head = divmod(int(table.argmax()), table.shape[1])
    return layer, head


class Bundled:
    """The bundled model, sentences, and where its heads look in them."""

    def __init__(self):
        self.model, self.tokenizer = load()
        self.genders = gold.read_genders()
        self.validation = read_bundled("validation")[:SIZE]
        self.test = read_bundled("test")[:SIZE]
        self.validation_maps = self.maps(self.validation)
        self.test_maps = self.maps(self.test)

    def maps(self, examples):
        """Where all heads look in these sentences."""
        pairs = [(e.source, e.target) for e in examples]
        return all_maps(self.model, self.tokenizer, pairs)


def owners(side: Bundled) -> list[dict]:
    """How often each head finds the owner of "its", and guesses (19.1)."""
    shares = gold.owner_shares(read_bundled("train"))
    guesses = head_scores.link_baselines(side.validation)
    guesses["likeliest owner"] = gold.likeliest_owner(side.validation, shares)
    rows: list[dict] = [
        {
            "what": "owner found",
            "kind": kind,
            "table": rounded(
                head_scores.link_accuracy(side.validation_maps, side.validation, kind)
            ),
        }
        for kind in KINDS
    ]
    owning = sum(share > 0 for share in shares.values())
    row = {"what": "guesses", "owning": owning, "candidates": len(shares)}
    return [*rows, row | {name: rounded(right) for name, right in guesses.items()}]


def scores_at_its(side: Bundled, texts: list[str]) -> torch.Tensor:
    """The owner head's scores at "its", the seventh token of each: (B, S)."""
    tokenizer = side.tokenizer
    ids = [[*tokenizer.encode(text), tokenizer.eos_id] for text in texts]
    with cache(side.model, SCORES) as seen:
        side.model.encode(torch.tensor(ids))
    return seen[SCORES][:, 2, 6]


def prices(side: Bundled) -> list[dict]:
    """Scores by noun and by place (19.1)."""
    frame = "In the {} the {} lost its ball."
    orders = [("house", "cat"), ("cat", "house")]
    scores = scores_at_its(side, [frame.format(*order) for order in orders])
    rows: list[dict] = [
        {
            "what": "price",
            "first": first,
            first: rounded(row[2]),
            second: rounded(row[4]),
        }
        for (first, second), row in zip(orders, scores)
    ]
    owns = gold.owner_counts(read_bundled("train"))
    nouns = gold.one_token_nouns(side.tokenizer, "mn")
    scores = scores_at_its(side, [frame.format(noun, "cat") for noun in nouns])
    for noun, lead in zip(nouns, scores[:, 2] - scores[:, 4]):
        row = {"what": "lead", "noun": noun, "lead": rounded(lead)}
        rows.append(row | {"owns": owns[noun]})
    return rows


def agreement(side: Bundled) -> list[dict]:
    """How often each head finds the noun of an article or possessive (19.2)."""
    found = head_scores.agreement_hits(side.validation_maps, side.validation)
    hits = torch.stack([hit for _, hit in found])
    pairs = [pair for example in side.validation for pair in gold.determiners(example)]
    apart = torch.tensor([noun > determiner + 1 for determiner, noun in pairs])
    return [
        {
            "what": "noun found",
            "words": name,
            "count": len(some),
            "table": rounded(mean),
        }
        for name, some in (("all", hits), ("a word between", hits[apart]))
        for mean in [some.mean(dim=0)]
    ]


def broken(side: Bundled) -> list[dict]:
    """Three translations with the noun head silent (19.3)."""
    sources = [e.source for e in side.test[:3]]
    whole = translate(side.model, side.tokenizer, sources)
    with edit(side.model, {"encoder.1.self_attention.heads": silent(0)}):
        after = translate(side.model, side.tokenizer, sources)
    return [
        {"what": "translation", "untouched": old, "silent": new}
        for old, new in zip(whole, after)
    ]


def kind_of_change(turn: gold.Turn, old: str, new: str) -> str:
    """What a word is that is written instead of a possessive."""
    german = [word.lower() for word in WORD.findall(turn.example.target)]
    if old == new:
        return "the same word"
    if gold.stem_and_ending(new) != ("", ""):
        return "another possessive"
    if any(word.startswith(new) for word in german[turn.step :]):
        return "a word that is due later"
    if any(word.startswith(new) for word in german[: turn.step]):
        return "a word that is there already"
    return "another word"


def word_order(side: Bundled) -> list[dict]:
    """What decoder head 2.1 does to the possessive, and where it looks (19.4)."""
    examples = [*read_bundled("validation"), *read_bundled("test")]
    turns = gold.owner_turns(examples, side.genders)
    encoded = gold.encode_turns(side.tokenizer, turns)
    before = gold.next_words(side.model, side.tokenizer, encoded)
    with edit(side.model, {"decoder.1.self_attention.heads": silent(0)}):
        after = gold.next_words(side.model, side.tokenizer, encoded)
    rows = [
        {"what": "changed", "kind": kind_of_change(*words), "word": words[2]}
        for words in zip(turns, before, after)
    ]
    with_its = [e for e in examples if " its " in e.source]
    maps, looked = side.maps(with_its), Counter()
    for i, _, german in gold.references(with_its):
        weights = maps[i].decoder[1, 0, german.index]
        looked[maps[i].read[int(weights.argmax())]] += 1
    return [
        *rows,
        {"what": "looked at", "words": list(map(list, looked.most_common()))},
    ]


def alignment(side: Bundled) -> list[dict]:
    """How well the best head of the cross-attention aligns (19.8)."""
    known, links = (
        [e.alignment for e in examples] for examples in (side.validation, side.test)
    )
    layer, head = best(-head_scores.cross_head_errors(side.validation_maps, known))
    errors = head_scores.cross_head_errors(side.test_maps, links)
    diagonal = head_scores.diagonal_error(side.test_maps, links)
    row = {"what": "alignment", "layer": layer + 1, "head": head + 1}
    return [
        row | {"error": rounded(errors[layer, head]), "diagonal": rounded(diagonal)}
    ]


def divided_verbs(side: Bundled) -> list[dict]:
    """The head that finds the first part of a verb at the second (19.9)."""
    back = head_scores.look_back_hits(side.validation_maps, side.validation)
    layer, head = best(torch.stack([hit for _, hit in back]).mean(dim=0))
    found = head_scores.look_back_hits(side.test_maps, side.test)
    right = [hit[layer, head].item() for _, hit in found]
    accuracy, margin = gold.share(right, [i for i, _ in found])
    verbs = head_scores.separated_verbs(side.test)
    return [
        {
            "what": "verbs",
            "layer": layer + 1,
            "head": head + 1,
            "found": rounded(accuracy),
            "found.margin": rounded(margin),
            "found.count": len(verbs),
            "second word": rounded(
                sum(first == 1 for _, first, _ in verbs) / len(verbs)
            ),
            "any word": rounded(sum(1 / last for *_, last in verbs) / len(verbs)),
        }
    ]


def sinks(side: Bundled) -> list[dict]:
    """How much of each head's weight falls on punctuation and the end mark (19.10)."""
    model, tokenizer = side.model, side.tokenizer
    pairs = encode_pairs(tokenizer, [(e.source, "") for e in side.validation])
    source = collate(pairs).source
    padding = source == model.config.pad_id
    pieces = [[tokenizer.decode([i]).strip() for i in row] for row in source.tolist()]
    is_mark = torch.tensor(
        [[word in ("", ".", "?", ",") for word in row] for row in pieces]
    )
    marks, words = is_mark & ~padding, ~is_mark & ~padding
    with cache(model, "encoder.*.weights", "encoder.*.values") as seen:
        model.encode(source)
    tables: dict[str, list] = {"weight": [], "norm": []}
    for n, layer in enumerate(model.encoder.layers):
        place = f"encoder.{n}.self_attention"
        weights, W_O = seen[f"{place}.weights"], layer.self_attention.W_O.weight
        normed = head_scores.norm_weighted(weights, seen[f"{place}.values"], W_O)
        for table, shares in zip(tables.values(), (weights, normed)):
            on_marks = (shares * marks[:, None, None]).sum(dim=-1)  # (B, h, S)
            table.append(rounded(on_marks.transpose(1, 2)[words].mean(dim=0)))
    share = rounded(marks.sum() / (marks | words).sum())
    return [
        {"what": "on marks", "counted": name, "marks": share, "table": table}
        for name, table in tables.items()
    ]


def likeness(side: Bundled) -> list[dict]:
    """How alike the looks of two heads are, before and after training (19.11)."""
    torch.manual_seed(0)
    pairs = [(e.source, e.target) for e in side.validation[:100]]
    untrained = all_maps(Transformer(side.model.config), side.tokenizer, pairs)
    apart, rows = ~torch.eye(8, dtype=torch.bool), []
    for kind in ("cosine", "cosine, rows shuffled", "correlation"):
        for name, maps in (
            ("before training", untrained),
            ("after", side.validation_maps[:100]),
        ):
            if "shuffled" in kind:
                maps = [head_scores.shuffled(m) for m in maps]
            centred = kind == "correlation"
            table = head_scores.head_similarity(maps, "encoder", centred=centred)
            row = {"what": "likeness", "kind": kind, "side": name}
            mean = rounded(table[apart].mean())
            rows.append(row | {"mean": mean, "table": rounded(table)})
    return rows


def everyday() -> list[dict]:
    """The second bundled model: which possessive it writes, and how it aligns (19.12)."""
    model, tokenizer = load("tatoeba")
    rows: list[dict] = []
    for stem, nouns in OWNERS.items():
        texts = [frame.format(noun) for noun in nouns.split() for frame in FRAMES]
        german = translate(model, tokenizer, texts)
        counts = {form: sum(f" {form}" in t.lower() for t in german) for form in OWNERS}
        articles = sum(t.startswith(("Die ", "Der ", "Das ")) for t in german)
        row = {"what": "everyday", "right": stem, "count": len(texts), **counts}
        rows.append(row | {"articles": articles, "first": german[0]})
    card = read_rows(bundled_folder("tatoeba") / "card.json")[0]
    pairs = {name: card[f"its.{name}"] for name in ("pairs", "sein", "ihr")}
    aligned = read_aligned()
    maps = all_maps(
        model, tokenizer, [(source, target) for source, target, _ in aligned]
    )
    links = [of_pair for *_, of_pair in aligned]
    layer, head = best(-head_scores.cross_head_errors(maps[:12], links[:12]))
    errors = head_scores.cross_head_errors(maps[12:], links[12:])
    columns, names = maps[20].labels("cross")
    row = {"what": "everyday alignment", "layer": layer + 1, "head": head + 1}
    row |= {"error": rounded(errors[layer, head])}
    row |= {"diagonal": rounded(head_scores.diagonal_error(maps[12:], links[12:]))}
    row |= {"columns": columns, "rows": names}
    row |= {"table": rounded(maps[20].cross[layer, head])}
    return [*rows, {"what": "everyday pairs", **pairs}, row]


@torch.no_grad()
def measure(folder: Path, device: str) -> list[dict]:
    """All rows of the record."""
    side = Bundled()
    parts = (
        owners,
        prices,
        agreement,
        broken,
        word_order,
        alignment,
        divided_verbs,
        sinks,
        likeness,
    )
    return [row for part in parts for row in part(side)] + everyday()


def main(record: Path | None = None) -> None:
    """Score what every head looks at.

    Args:
        record: the file of results (data/runs/heads.json where not given)
    """
    command = "python -m transformer.experiments.heads"
    job = Job("heads", measure, command=command)
    run_jobs([job], Path("runs"), ["cpu"], record or "heads")


if __name__ == "__main__":
    run_command(main)
