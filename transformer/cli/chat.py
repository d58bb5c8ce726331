"""transformer chat: talk with a language model."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from transformer.cli.stream import lines_of, standard_input, text_of
from transformer.core.files import prepare_folder


@dataclass
class Talk:
    """Talk with a language model: an answer to each line of standard input; an empty line begins
    anew."""

    # a language model's folder (the bundled bot where not given)
    folder: Path | None = None
    # 0 says the likeliest; 1 draws by the model's probabilities
    temperature: float = 0.0
    top_k: int | None = None  # draw among so many types at most
    top_p: float = 1.0  # draw among the likeliest with this probability together
    seed: int = 2017  # of what is drawn
    device: str = "auto"  # cpu, cuda or mps; auto takes the fastest there is
    # write one page of this name instead, for a browser: it holds the bot, which answers there with
    # the likeliest words
    html: Path | None = None

    def run(self) -> None:
        import torch

        from transformer.core.checks import check_whole
        from transformer.language import Chat, Sampler
        from transformer.models.families import family_of
        from transformer.models.pretrained import bundled_folder, load

        check_whole("seed", self.seed, 0, 2**63 - 1)
        draw = Sampler(self.temperature, self.top_k, self.top_p)
        folder = self.folder or bundled_folder("chat")
        if self.html is not None:
            if self.temperature:
                raise ValueError(
                    "the page of --html draws nothing: leave --temperature out"
                )
            prepare_folder(self.html.parent, "--html")
        model, tokenizer = load(folder, self.device)
        if family_of(model) != "language":
            raise ValueError(
                f"{folder} holds a model of the family {family_of(model)}: chat needs a "
                "language model of dialogues (transformer train --family language)"
            )
        if self.html is not None:
            return self.write_page(model, tokenizer)
        torch.manual_seed(self.seed)
        talk(Chat(model, tokenizer, draw))

    def write_page(self, model, tokenizer) -> None:
        """The page of a bot; the bundled one knows some questions."""
        from transformer.runs.dialogues import EXAMPLES
        from transformer.views.chat_page import view_chat

        view_chat(model, tokenizer, () if self.folder else EXAMPLES).save(self.html)
        print(self.html)


def talk(chat) -> None:
    """Answer the lines of standard input, or of a prompt."""
    stream = standard_input()
    prompt = stream.isatty()
    for line in typed() if prompt else decoded(chain.from_iterable(lines_of(stream))):
        if not line.strip():
            chat.turns.clear()
            continue
        try:
            print(" ".join(chat.say(line).splitlines()), flush=True)
        except ValueError as error:  # at a prompt nothing that was said is lost
            if not prompt:
                raise
            print(error)


def decoded(lines: Iterable[bytes]) -> Iterator[str]:
    """Lines of standard input; ValueError, with the line's number, where one is not UTF-8."""
    for number, line in enumerate(lines, 1):
        try:
            yield text_of(line)
        except ValueError as error:
            raise ValueError(f"standard input, line {number}, {error}") from None


def typed() -> Iterator[str]:
    """Lines that are typed at a prompt, until the end of input."""
    from transformer.runs.dialogues import HELP

    print(f"To the bundled bot: {HELP}.")
    print("An empty line begins anew; Ctrl-D ends.")
    while True:
        try:
            yield input("> ")
        except EOFError:
            print()
            return
