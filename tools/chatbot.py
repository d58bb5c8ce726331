"""Make the chat bot that comes with the package: a language model of dialogues about the bundled
corpus, in half precision.

python tools/chatbot.py [--runs runs] [--folder data/models/chat]

It takes about an hour of one CPU core of its own; stopped, the same command goes on.
"""

import random
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import bundle
import torch

from transformer.core.files import write_file
from transformer.core.weights import count_parameters
from transformer.corpora import read_bundled
from transformer.corpora.tokenizer import Tokenizer
from transformer.data import pad
from transformer.experiments import runner
from transformer.fast.training import fast_training
from transformer.language import LanguageConfig, Sampler, generate
from transformer.models.families import build_fast
from transformer.models.pretrained import load, save
from transformer.optimizer import peak_rate
from transformer.runs.dialogues import (
    PRONOUN_FIRST,
    PRONOUNS,
    TRANSLATE,
    WORDS,
    asked,
    dialogues,
    encode_dialogue,
    pronoun_questions,
    sides,
    word_questions,
)
from transformer.runs.experiment import Experiment
from transformer.runs.folder import average_last
from transformer.runs.training import TrainingConfig, held_out_loss, train

COMMAND = "python tools/chatbot.py"
MODEL = LanguageConfig(
    3500, d_model=128, d_ff=512, N=4, h=4, P_drop=0.0, max_positions=256
)
PEAK, WARMUP = 0.003, 300
TRAINING = TrainingConfig(
    updates=16_000,
    batch_tokens=800,
    warmup=WARMUP,
    clip=1.0,
    schedule="linear",
    lr_scale=PEAK / peak_rate(MODEL.d_model, WARMUP),
    validate_every=400,
    save_minutes=2.0,
    keep=2,
    precision="medium",
)
ROUNDS = 2  # of the training sentences, each with questions of its own


def conversations(examples: list, seed: int) -> Iterator[list[tuple[str, str]]]:
    """All dialogues in a chance order, one to three of them one after another."""
    all_of_them, chance = list(dialogues(examples, seed)), random.Random(seed)
    chance.shuffle(all_of_them)
    waiting = iter(all_of_them)
    while together := list(islice(waiting, chance.randint(1, 3))):
        yield [turn for turns in together for turn in turns]


def texts(examples: list):
    """All that is said in the dialogues of a first round."""
    return (text for turns in dialogues(examples, 0) for pair in turns for text in pair)


def tokenizer_in(folder: Path, examples: list) -> Tokenizer:
    """The tokenizer of the run, learned once."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        write_file(path, Tokenizer.train(texts(examples), MODEL.vocab_size).save)
    return Tokenizer.load(path)


def encoded(tokenizer: Tokenizer, examples: list, rounds: int) -> list:
    """The conversations of some rounds, encoded."""
    return [
        encode_dialogue(tokenizer, turns)
        for seed in range(rounds)
        for turns in conversations(examples, seed)
    ]


def answers(
    model, prompts: list[list[int]], longest: int = 60, size: int = 100
) -> list[list[int]]:
    """The likeliest answer, token by token, to each prompt."""
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    found: dict[int, list[int]] = {}
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        batch = pad([prompts[i] for i in rows], model.config.pad_id)
        found |= dict(zip(rows, generate(model, batch, longest, Sampler(0.0))))
    return [found[i] for i in range(len(prompts))]


def ask(
    model, tokenizer: Tokenizer, before: list[list[int]], questions: list[str]
) -> tuple:
    """Questions after what was said before: (answers as text, all that is said then)."""
    prompts = [
        [*ids, *tokenizer.encode(text), tokenizer.eos_id, tokenizer.bos_id]
        for ids, text in zip(before, questions)
    ]
    said = answers(model, prompts)
    after = [[*prompt, *answer] for prompt, answer in zip(prompts, said)]
    return [tokenizer.decode(answer) for answer in said], after


def share(texts: list[str], gold: list[str]) -> float:
    """The share of answers that equal the gold ones letter by letter."""
    return sum(a == b for a, b in zip(texts, gold)) / len(gold)


def score_direction(model, tokenizer: Tokenizer, examples: list, into: str) -> dict:
    """Exact translations, first in a conversation and after another sentence; right answers to a
    question about a word, and about each possessive, both after the model's own translation."""
    chance, pairs_ = random.Random(1), [sides(e, into)[:2] for e in examples]
    questions = [TRANSLATE[into][0].format(sentence) for sentence, _ in pairs_]
    said, after = ask(model, tokenizer, [[] for _ in examples], questions)
    later, _ = ask(model, tokenizer, after[1:] + after[:1], questions)
    words = [asked(word_questions(e, into), WORDS[:1], chance) for e in examples]
    told, _ = ask(model, tokenizer, after, [question for question, _ in words])
    own = [
        (i, PRONOUNS[0].format(word), noun)
        for i, e in enumerate(examples)
        for language in ("en", "de")
        for word, noun in pronoun_questions(e, language)
    ]
    meant, _ = ask(
        model, tokenizer, [after[i] for i, _, _ in own], [q for _, q, _ in own]
    )
    figures = {
        "exact_match": share(said, [gold for _, gold in pairs_]),
        "later": share(later, [gold for _, gold in pairs_]),
        "words": share(told, [gold for _, gold in words]),
        "pronouns": share(meant, [gold for _, _, gold in own]),
    }
    return {f"{into}.{name}": round(value, 4) for name, value in figures.items()}


def score(model, tokenizer: Tokenizer, examples: list) -> dict:
    """What the bot says about sentences, beside their gold annotation."""
    first = [
        (PRONOUN_FIRST.format(word, e.source), noun)
        for e in examples
        for word, noun in pronoun_questions(e, "en")
    ]
    said, _ = ask(
        model, tokenizer, [[] for _ in first], [question for question, _ in first]
    )
    figures = {"pronouns.first": round(share(said, [noun for _, noun in first]), 4)}
    for into in ("de", "en"):
        figures |= score_direction(model, tokenizer, examples, into)
    return figures


def run(goal: Path, folder: Path, device: str) -> dict:
    """Train, halve and score the bot, or go on with that; its figures."""
    examples = read_bundled("train")
    tokenizer = tokenizer_in(folder, examples)
    held_out = encoded(tokenizer, read_bundled("validation")[:100], 1)
    torch.manual_seed(TRAINING.seed)
    model = build_fast(MODEL)
    log = train(
        model,
        encoded(tokenizer, examples, ROUNDS),
        TRAINING,
        folder,
        lambda model: held_out_loss(model, held_out),
        resume=(folder / "checkpoint.safetensors").is_file(),
        **fast_training(TRAINING, MODEL),
    )
    average_last(model, folder, TRAINING.keep)
    save(model, folder, tokenizer)
    bundle.halve(folder, goal)
    model, tokenizer = load(goal)
    return {
        "parameters": count_parameters(model),
        "validation_loss": log[-1]["validation_loss"],
        "tokens": log[-1]["tokens"],
        "minutes": round(log[-1]["seconds"] / 60, 1),
        "test": score(model, tokenizer, read_bundled("test")),
    }


def job_of(goal: Path) -> runner.Job:
    """The bot as a job of the runner."""
    e = Experiment(model=MODEL, training=TRAINING)
    known = {**runner.settings_of(e), "rate": PEAK, "torch": torch.__version__}
    return runner.Job("chat", partial(run, goal), known, COMMAND)


if __name__ == "__main__":
    runner.run_command(bundle.command_of(job_of, "chat"))
