"""transformer translate: a sentence, or standard input line by line."""

import os
import shlex
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import tyro

from transformer.cli.stream import answers, standard_input

TRANSLATORS = {"bundled", "tatoeba"}  # of `BUNDLED_MODELS`


@dataclass
class Translate:
    """Translate a sentence given as an argument, or standard input line by line. Two models come
    along: one of this project's grammar, and "--folder tatoeba" of everyday sentences.

    A line that cannot be taken is named on standard error; the others are translated, and the exit
    status is 2 in the end.
    """

    # the sentence, in quotes; without it, lines are read from standard input: of a file by
    # transformer translate < in.txt
    sentence: tyro.conf.Positional[str | None] = None
    folder: Path | None = None  # a trained model's; tatoeba; or the bundled one's
    # hypotheses kept alive; 1 is greedy (the model's own where not given)
    beam: int | None = None
    alpha: float | None = None  # length penalty (the model's own where not given)
    # so many translations of each sentence, as lines of number, score, text; at most the beam
    n_best: int = 1
    device: str = "auto"  # cpu, cuda or mps; auto takes the fastest there is

    def loaded(self) -> tuple:
        """Model and tokenizer; ValueError for settings that no search takes."""
        from transformer.core.checks import check_search
        from transformer.models.pretrained import load
        from transformer.models.search import chosen

        model, tokenizer = load(self.folder, self.device)
        check_search(*chosen(model, self.beam, self.alpha), self.n_best)
        return model, tokenizer

    def run(self) -> None:
        from transformer.core.protocol import longest_source

        model, tokenizer = self.loaded()  # refuses before anything is read
        if self.sentence is not None:
            lines = self.sentence.replace("\r\n", "\n").removesuffix("\n").split("\n")
            found = self.answer(model, tokenizer, lines)
            self.tell_model()
            self.tell_file()
            for number, one in enumerate(found, 1):
                self.say(number, one)
            return
        self.tell_model()
        refused = False
        for number, found, wrong in answers(
            standard_input(),
            tokenizer,
            longest_source(model),
            partial(self.answer, model, tokenizer),
        ):
            self.say(number, found)
            if wrong:
                print(
                    f"transformer: standard input, line {number}, {wrong}",
                    file=sys.stderr,
                )
                refused = True
        if refused:
            sys.exit(2)

    def tell_model(self) -> None:
        """On standard error, which of the translators that ship with the package this is, and the other."""
        from transformer.models.pretrained import (
            BUNDLED_MODELS,
            bundled_folder,
            folder_named,
        )

        name = str(self.folder or "bundled")
        if name in TRANSLATORS and folder_named(name) == bundled_folder(name):
            (other,) = TRANSLATORS - {name}
            print(
                f"model: {name} ({BUNDLED_MODELS[name]}); the other: --folder {other} "
                f"({BUNDLED_MODELS[other]})",
                file=sys.stderr,
            )

    def tell_file(self) -> None:
        """On standard error, how a file is read, where the sentence is the name of one."""
        if os.path.isfile(str(self.sentence)):
            print(
                f"transformer: {self.sentence} is translated as a sentence, and is a file: "
                "transformer translate < "
                + shlex.quote(str(self.sentence))
                + " reads it",
                file=sys.stderr,
            )

    def answer(self, model, tokenizer, sentences: list[str]) -> list:
        """For each sentence its translation, or a list of them."""
        from transformer.models.search import translate, translate_n_best

        if self.n_best > 1:
            return translate_n_best(
                model, tokenizer, sentences, self.n_best, self.beam, self.alpha
            )
        return translate(model, tokenizer, sentences, self.beam, self.alpha)

    def say(self, number: int, found) -> None:
        """Print the answer to a line as one line, or as one for each entry; a bad model may write
        line ends. A line that could not be taken keeps its place in the output, empty."""
        if self.n_best > 1:
            for entry in found or []:
                print(
                    f"{number}\t{entry.score:.4f}\t{' '.join(entry.text.split())}",
                    flush=True,
                )
        else:
            print(" ".join((found or "").splitlines()), flush=True)
