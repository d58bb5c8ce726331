"""The circuit of notebook 19: the two heads behind a German possessive, silenced and turned; kept
in data/runs/circuit.json.

    python -m transformer.experiments.circuit

Both heads are chosen on validation. They are scored on sentences that the corpus's grammar draws
anew, none of them in the bundled files, until 500 can be turned to another owner and 500 to another
owned noun; the words by class are those of the first 500 bundled test sentences. Every other head
is treated in the same way. Runs in a checkout, where the grammar is.
"""

from dataclasses import replace
from pathlib import Path

import torch

from transformer.corpora import Example, read_bundled
from transformer.corpora.bundled import BUNDLED_SPLITS
from transformer.corpora.tokenizer import WORD
from transformer.experiments.grammar import grammar
from transformer.experiments.runner import Job, run_command, run_jobs
from transformer.models import gold, head_scores
from transformer.models.edits import paste, turned
from transformer.models.maps import KINDS, all_maps, attention_name
from transformer.models.pretrained import load
from transformer.models.recording import cache, edit
from transformer.visualization import silent

SEED, SENTENCES = 19, 500


def draw(n: int, genders: dict) -> tuple[list[Example], list, list]:
    """Sentences with "its" that no bundled file has, and of them n turns of each kind."""
    corpus, examples, owners, owned = grammar().Corpus(SEED), [], [], []
    for split in BUNDLED_SPLITS:
        corpus.seen |= {("en", example.source) for example in read_bundled(split)}
    while len(owners) < n or len(owned) < n:
        example = corpus.plain()
        if gold.references([example]):
            examples.append(example)
            owners += gold.owner_turns([example], genders)
            owned += gold.noun_turns([example], genders)
    return examples, owners[:n], owned[:n]


def scored(name: str, hits: list, sentences: list | None = None) -> dict:
    """A share of hits with its margin, as columns."""
    found, margin = gold.share(hits, sentences)
    return {
        name: round(found, 4),
        f"{name}.margin": round(margin, 4),
        f"{name}.count": len(hits),
    }


class Turned:
    """Some turns, encoded once, and what a model makes of them."""

    def __init__(self, model, tokenizer, turns: list):
        self.model, self.tokenizer, self.turns = model, tokenizer, turns
        self.encoded = gold.encode_turns(tokenizer, turns)

    def words(self, name: str = "", change=None) -> list[str]:
        """What the model writes, with a change to what has this name."""
        with edit(self.model, {name: change} if name else {}):
            return gold.next_words(self.model, self.tokenizer, self.encoded)

    def to(self, head: int):
        """The change that turns a head."""
        return turned(head, self.encoded.rows, self.encoded.columns)

    def score(self, words: list[str]) -> dict:
        """How often stem and ending are right, and how often the word is the one wanted."""
        pairs = [
            (gold.stem_and_ending(word), gold.stem_and_ending(turn.gold))
            for word, turn in zip(words, self.turns)
        ]
        follows = [word == turn.wanted for word, turn in zip(words, self.turns)]
        return (
            scored("stem", [written[0] == right[0] for written, right in pairs])
            | scored("ending", [written[1] == right[1] for written, right in pairs])
            | scored("sein", [written[0] == "sein" for written, _ in pairs])
            | scored("follows", follows)
        )


def every_head(model):
    """(kind, layer, head, name of its attention) of every head, counted from 0."""
    for kind in KINDS:
        for n in range(model.config.N):
            for head in range(model.config.h):
                yield kind, n, head, attention_name(kind, n)


def edits(model, sides: dict) -> list[dict]:
    """Every head silenced, and those of the encoder turned; a row each."""
    rows = []
    for name, side in sides.items():
        rows.append({"what": "nothing", "turn": name} | side.score(side.words()))
        for kind, n, head, attention in every_head(model):
            place = {"turn": name, "kind": kind, "layer": n + 1, "head": head + 1}
            words = side.words(f"{attention}.heads", silent(head))
            rows.append({"what": "silent", **place} | side.score(words))
            if kind == "encoder":
                words = side.words(f"{attention}.weights", side.to(head))
                rows.append({"what": "turned", **place} | side.score(words))
    return rows


def outputs_at(side: Turned, attention: str, head: int) -> torch.Tensor:
    """What a head puts out at each "its", (B, d_v)."""
    with cache(side.model, f"{attention}.heads") as seen:
        side.words()
    heads = seen[f"{attention}.heads"]
    return heads[torch.arange(len(heads)), head, side.encoded.rows]


def by_noun(side: Turned, words: list[str]) -> list[dict]:
    """How often the stem follows, by whether any "its" refers to the noun in training."""
    train, rows = read_bundled("train"), []
    owners = {
        WORD.findall(train[i].source)[english.antecedent]
        for i, english, _ in gold.references(train)
    }
    nouns = [WORD.findall(turn.example.source)[turn.noun] for turn in side.turns]
    for known in (True, False):
        for stem in ("sein", "ihr"):
            hits = [
                word == turn.wanted
                for word, turn, noun in zip(words, side.turns, nouns)
                if (noun in owners) == known and turn.wanted.startswith(stem)
            ]
            rows.append(
                {"what": "turned to", "owner": known, "stem": stem}
                | scored("follows", hits)
            )
    return rows


def repaired(side: Turned, attention: str, head: int) -> dict:
    """The head turned to the right noun."""
    turns = [
        replace(turn, noun=english.antecedent)
        for turn in side.turns
        for _, english, _ in gold.references([turn.example])
        if english.index == turn.its
    ]
    right = Turned(side.model, side.tokenizer, turns)
    words = right.words(f"{attention}.weights", right.to(head))
    return {"what": "turned to the antecedent"} | right.score(words)


def pasted(
    side: Turned, words: list[str], attention: str, head: int, genders: dict
) -> dict:
    """Where the head was turned in vain: with what it puts out on average, in sentences of
    training, for owners of the gender that is wanted."""
    some = gold.owner_turns(read_bundled("train")[:5000], genders)
    vectors = outputs_at(Turned(side.model, side.tokenizer, some), attention, head)
    mean = {
        stem: vectors[[turn.gold.startswith(stem) for turn in some]].mean(dim=0)
        for stem in ("sein", "ihr")
    }
    failed = [turn for turn, word in zip(side.turns, words) if word != turn.wanted]
    again = Turned(side.model, side.tokenizer, failed)
    wanted = torch.stack(
        [mean[gold.stem_and_ending(turn.wanted)[0]] for turn in failed]
    )
    h, S = side.model.config.h, again.encoded.batch.source.shape[1]
    donor = wanted[:, None, None].expand(-1, h, S, -1)
    change = paste([head], again.encoded.rows, donor)
    return {"what": "pasted"} | again.score(again.words(f"{attention}.heads", change))


def reasons(side: Turned, layer: int, head: int, genders: dict) -> list[dict]:
    """Why the stem does not always follow the head that finds the owner."""
    attention = attention_name("encoder", layer)
    words = side.words(f"{attention}.weights", side.to(head))
    return [
        *by_noun(side, words),
        repaired(side, attention, head),
        pasted(side, words, attention, head, genders),
    ]


def words_by_class(model, tokenizer, examples: list) -> list[dict]:
    """Each head silenced: how many German words of each class come right."""

    def row(what):
        found = gold.right_words(model, tokenizer, examples)
        columns = {}
        for name in ("article", "possessive", "adjective", "noun", "other"):
            some = [(i, right) for i, own, right in found if own == name]
            columns |= scored(name, [right for _, right in some], [i for i, _ in some])
        return what | columns

    rows = [row({"what": "words, nothing"})]
    for kind, n, head, attention in every_head(model):
        with edit(model, {f"{attention}.heads": silent(head)}):
            rows.append(
                row(
                    {
                        "what": "words, silent",
                        "kind": kind,
                        "layer": n + 1,
                        "head": head + 1,
                    }
                )
            )
    return rows


def best_head(hits, h: int) -> tuple[int, int]:
    """The layer and head with most hits; hits: [(which, (N, h) of hits), ...]."""
    mean = torch.stack([hit for _, hit in hits]).mean(dim=0)
    return divmod(mean.argmax().item(), h)


def looks(model, tokenizer, examples: list) -> tuple[dict, list[dict]]:
    """The heads best on validation, and how often each looks at the right noun in examples."""
    validation = read_bundled("validation")
    chosen_on, scored_on = (
        all_maps(model, tokenizer, [(e.source, e.target) for e in some])
        for some in (validation, examples)
    )
    heads, rows = {}, []
    for name, hits in (
        ("owner", head_scores.link_hits),
        ("owned", head_scores.agreement_hits),
    ):
        layer, head = heads[name] = best_head(
            hits(chosen_on, validation), model.config.h
        )
        found = hits(scored_on, examples)
        own = scored(
            "looks",
            [hit[layer, head].item() for _, hit in found],
            [i for i, _ in found],
        )
        place = {"kind": "encoder", "layer": layer + 1, "head": head + 1}
        rows.append({"what": "looks", "turn": name, **place, **own})
    guesses = head_scores.link_baselines(examples)
    guesses["likeliest owner"] = gold.likeliest_owner(
        examples, gold.owner_shares(read_bundled("train"))
    )
    rows[0] |= {"guesses": {key: round(value, 4) for key, value in guesses.items()}}
    return heads, rows


@torch.no_grad()
def measure(folder: Path, device: str) -> list[dict]:
    """All rows of the record."""
    model, tokenizer = load()
    genders = gold.read_genders()
    examples, *turns = draw(SENTENCES, genders)
    sides = {
        name: Turned(model, tokenizer, some)
        for name, some in zip(("owner", "owned"), turns)
    }
    heads, rows = looks(model, tokenizer, examples)
    rows += edits(model, sides)
    rows += reasons(sides["owner"], *heads["owner"], genders)
    return rows + words_by_class(model, tokenizer, read_bundled("test")[:SENTENCES])


def main(record: Path | None = None) -> None:
    """Choose, score, silence and turn the heads of the bundled model.

    Args:
        record: the file of results (data/runs/circuit.json where not given)
    """
    command = "python -m transformer.experiments.circuit"
    job = Job("circuit", measure, {"seed": SEED}, command)
    run_jobs([job], Path("runs"), ["cpu"], record or "circuit")


if __name__ == "__main__":
    run_command(main)
