"""The command line: train, evaluate, translate, chat, attend, variations, bench, export, import,
demo."""

import errno
import json
import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, make_dataclass, replace
from functools import partial, reduce
from itertools import chain
from operator import or_
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from transformer.bench.settings import Bench
from transformer.cli.options import changed, given, options_of
from transformer.cli.stream import answers, lines_of, standard_input, text_of
from transformer.core.checks import check_characters, check_search, check_whole
from transformer.core.files import prepare_folder, write_file
from transformer.core.interrupt import Interrupted
from transformer.core.protocol import KINDS, kind_named, kind_of, longest_source
from transformer.core.weights import count_parameters
from transformer.corpora import TREEBANKS
from transformer.hardware import Precision
from transformer.model import Positions
from transformer.models.pretrained import (
    COME_ALONG,
    bundled_folder,
    folder_named,
    load,
    save,
)
from transformer.models.search import chosen
from transformer.runs.experiment import Experiment
from transformer.runs.folder import load_run
from transformer.runs.recipes import recipe, sized
from transformer.runs.run import Task, run_experiment
from transformer.runs.scoring import Scoring, score
from transformer.runs.training import TrainingConfig

TRANSLATORS = {"bundled", "tatoeba"}  # of `COME_ALONG`


def words() -> str:
    """The command as it was typed."""
    return "transformer " + shlex.join(sys.argv[1:])


@dataclass
class Train(Experiment):
    """Train a model on sentence pairs and save it in a folder.

    Without further options the recipe that suits the corpus is used, for files of your own one that
    suits their size, this machine and --minutes; every option shown here replaces one setting of
    it. Ctrl-C saves; --resume goes on from there. Several GPUs: torchrun -m
    transformer train ...
    """

    # bundled (comes with the package, and is taken where none is given), multi30k, tatoeba,
    # europarl, wmt14, wmt14_eighth (one pair in eight), treebank_craft, treebank_nltk
    # (downloaded)
    corpus: str | None = None
    source_language: str | None = (
        None  # code of your sentences' language (en where not given)
    )
    target_language: str | None = (
        None  # code of their translations' language (de where not given)
    )
    family: str | None = (
        None  # transformer (where not given), recurrence, convolution, language
    )
    preset: str | None = None  # model size: tiny, small, base or big
    model: Any = None
    training: Any = None

    def run(self) -> None:
        e, task = experiment_of(self), Task()
        if e.corpus in TREEBANKS and e.source_file is None:
            from transformer.runs.parsers import PARSING as task
        if e.source_file is not None and not e.resume:
            from transformer.runs.own_files import plan_files

            task = Task(plan=partial(plan_files, limits_of(self)))
        if run_experiment(e, words(), task=task):
            split = " --split validation" if e.source_file else ""
            print(
                f"done: {e.folder} holds the model. Next: transformer evaluate --folder "
                f"{shlex.quote(str(e.folder))}{split}"
            )


def limits_of(t: Train) -> Any:
    """What the options leave to the plan of a run on own files."""
    from transformer.runs.planning import Limits

    kind = t.family or "transformer"

    def settle(model: Any, training: TrainingConfig) -> tuple:
        own = sized(model, kind, t.preset)
        kept = {
            name: getattr(model, name)
            for name in ("norm_first", "P_drop")
            if hasattr(own, name)
        }
        model = changed(replace(own, **kept), t.model, f"--family {kind}")
        return model, changed(training, t.training, "training")

    fixed = t.preset is not None or "d_model" in given(t.model)
    return Limits(settle, given(t.training), fixed)


def train_with_options() -> type:
    """`Train` with the settings of all kinds of models, and of training, as options."""
    options = {
        "model": options_of("Model", *(kind_named(kind).config for kind in KINDS)),
        "training": options_of("Training", TrainingConfig),
    }
    return make_dataclass(
        "Train",
        [
            (name, tyro.conf.OmitArgPrefixes[some], field(default_factory=some))
            for name, some in options.items()
        ],
        bases=(Train,),
        namespace={"__doc__": Train.__doc__, "__module__": __name__},
    )


def experiment_of(t: Train) -> Experiment:
    """The experiment: a corpus's recipe, or the resumed run, with what the options give."""
    name = "files" if t.source_file or t.target_file else t.corpus or "bundled"
    if name == "files" and t.corpus:
        raise ValueError(
            "--corpus and your own files exclude each other: name one of them"
        )
    if t.resume:
        e = load_run(t.folder)
        if t.corpus and e.source_file:
            raise ValueError(
                f"the run in {t.folder} is of your own files: resume it without "
                "--corpus"
            )
        kind = t.family or kind_of(e.model)
        if t.preset or kind != kind_of(e.model):
            e.model = sized(e.model, kind, t.preset)
    else:
        e = Experiment(
            folder=t.folder, **recipe(name, t.preset, t.family or "transformer")
        )
    names = (
        "corpus",
        "reverse",
        "source_file",
        "target_file",
        "source_language",
        "target_language",
    )
    own = {name: getattr(t, name) for name in names if getattr(t, name)}
    model = changed(e.model, t.model, f"--family {kind_of(e.model)}")
    training = changed(e.training, t.training, "training")
    return replace(
        e, **own, device=t.device, compile=t.compile, model=model, training=training
    )


@dataclass
class Evaluate(Scoring):
    """Translate or parse a test set with beam search, print all scores with signatures, save them
    beside your model."""

    # write the run's settings, log and all its scores into this file, for data/runs
    record: Path | None = None

    def run(self) -> None:
        if self.folder is None and self.record is not None:
            raise ValueError("--average and --record need the --folder of a run")
        if self.record is not None:
            prepare_folder(self.record.parent, "--record")
            if not (self.folder / "log.jsonl").is_file():
                raise ValueError(
                    f"--record is of a run with its log, and {self.folder} has none: "
                    "name the folder of a training"
                )
        print(json.dumps(score(self, {"trees": evaluate_trees}), indent=2))
        if self.record is not None:
            from transformer.core.records import write_rows
            from transformer.experiments.rows import record

            write_rows(self.record, [{"name": self.record.stem, **record(self.folder)}])


def evaluate_trees(*arguments) -> dict:
    """`evaluate_parser`, which needs nltk."""
    from transformer.runs.parsers import evaluate_parser

    return evaluate_parser(*arguments)


@dataclass
class Translate:
    """Translate a sentence given as an argument, or standard input line by line. Two models come
    along: one of this project's grammar, and "--folder tatoeba" of everyday sentences.

    A line that cannot be taken is named on standard error; the others are translated, and the exit
    status is 2 in the end.
    """

    # the sentence, in quotes; without it, lines are read from standard input
    sentence: tyro.conf.Positional[str | None] = None
    folder: Path | None = None  # a trained model's; tatoeba; or the bundled one's
    beam: int | None = (
        None  # hypotheses kept alive; 1 is greedy (the model's own where not given)
    )
    alpha: float | None = None  # length penalty (the model's own where not given)
    n_best: int = (
        1  # so many translations of each sentence, as lines of number, score, text
    )
    device: str = "auto"  # cpu, cuda or mps; auto takes the fastest there is

    def run(self) -> None:
        model, tokenizer = load(self.folder, self.device)
        # refused before anything is read
        check_search(*chosen(model, self.beam, self.alpha), self.n_best)
        if self.sentence is not None:
            lines = self.sentence.replace("\r\n", "\n").removesuffix("\n").split("\n")
            found = self.answer(model, tokenizer, lines)
            self.tell_model()
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
        """On standard error, which of the translators that come along this is, and the other."""
        name = str(self.folder or "bundled")
        if name in TRANSLATORS and folder_named(name) == bundled_folder(name):
            (other,) = TRANSLATORS - {name}
            print(
                f"model: {name} ({COME_ALONG[name]}); the other: --folder {other} "
                f"({COME_ALONG[other]})",
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


@dataclass
class Talk:
    """Talk with a language model: an answer to each line of standard input; an empty line begins
    anew."""

    folder: Path | None = (
        None  # a language model's folder (the bundled bot where not given)
    )
    temperature: float = (
        0.0  # 0 says the likeliest; 1 draws by the model's probabilities
    )
    top_k: int | None = None  # draw among so many types at most
    top_p: float = 1.0  # draw among the likeliest with this probability together
    seed: int = 2017  # of what is drawn
    device: str = "auto"  # cpu, cuda or mps; auto takes the fastest there is
    # write one page of this name instead, for a browser: it holds the bot, which answers there with
    # the likeliest words
    html: Path | None = None

    def run(self) -> None:
        from transformer.language import Chat, Sampler

        draw = Sampler(self.temperature, self.top_k, self.top_p)
        folder = self.folder or bundled_folder("chat")
        if self.html is not None:
            if self.temperature:
                raise ValueError(
                    "the page of --html draws nothing: leave --temperature out"
                )
            prepare_folder(self.html.parent, "--html")
        model, tokenizer = load(folder, self.device)
        if kind_of(model) != "language":
            raise ValueError(
                f"{folder} holds a model of the kind {kind_of(model)}: chat needs a "
                "language model of dialogues (transformer train --family language)"
            )
        if self.html is not None:
            return self.write_page(model, tokenizer)
        check_whole("seed", self.seed, 0, 2**63 - 1)
        torch.manual_seed(self.seed)
        chat = Chat(model, tokenizer, draw)
        stream = standard_input()
        prompt = stream.isatty()
        for line in (
            typed() if prompt else decoded(chain.from_iterable(lines_of(stream)))
        ):
            if not line.strip():
                chat.turns.clear()
                continue
            try:
                print(" ".join(chat.say(line).splitlines()), flush=True)
            except ValueError as error:  # at a prompt nothing that was said is lost
                if not prompt:
                    raise
                print(error)

    def write_page(self, model, tokenizer) -> None:
        """The page of a bot; the bundled one knows some questions."""
        from transformer.runs.dialogues import EXAMPLES
        from transformer.views.chat_page import view_chat

        view_chat(model, tokenizer, () if self.folder else EXAMPLES).save(self.html)
        print(self.html)


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


@dataclass
class Attend:
    """Translate a sentence and draw where every head looks, as PNG pictures or as a page to
    explore."""

    sentence: tyro.conf.Positional[str]  # the sentence, in quotes
    folder: Path | None = None  # a trained model's; tatoeba; or the bundled one's
    output: Path = Path("attention")  # folder for the pictures
    # one page of this name instead, for a browser: it holds the model and translates what is typed
    html: Path | None = None

    def run(self) -> None:
        from transformer.models.maps import attention_maps
        from transformer.models.search import translate
        from transformer.views.heads import save_all
        from transformer.views.pages import view

        made = (
            (self.output, "--output")
            if self.html is None
            else (self.html.parent, "--html")
        )
        prepare_folder(*made)
        model, tokenizer = load(self.folder)
        output = translate(model, tokenizer, [self.sentence])[0]
        if self.html is not None:
            print(output)
            view(model, tokenizer, self.sentence).save(self.html)
            print(self.html)
            return
        maps = attention_maps(model, tokenizer, [(self.sentence, output)])[0]
        print(output)
        for path in save_all(maps, self.output):
            print(path)


@dataclass
class Demo:
    """Train on the bundled corpus for a few minutes, then translate, score and draw."""

    folder: Path = Path("runs/demo")  # where everything is saved
    minutes: float = (
        3.6  # training stops after so many minutes, should the machine be slow
    )
    positions: Positions = (
        "sinusoidal"  # rotary: better at somewhat longer sentences (07)
    )
    record: Path | None = (
        None  # write what demo.json holds into this file, too, for data/runs
    )

    def run(self) -> None:
        from transformer.cli.demo import run_demo
        from transformer.views import demo, heads

        if self.record is not None:
            prepare_folder(self.record.parent, "--record")
        report, samples, maps = run_demo(
            self.folder, self.minutes, words(), self.positions
        )
        heads.save_all(maps, self.folder)
        print(demo.page(report, samples, self.folder))
        if self.record is not None:
            from transformer.core.records import flatten, write_rows

            write_rows(self.record, [flatten({"corpus": "bundled", **report})])


@dataclass
class Variations:
    """Train every row of Table 3 in small, one change at a time, and compare.

    Finished runs are skipped and interrupted ones go on, so the same command may be given as often
    as needed.
    """

    corpus: str = "multi30k"  # multi30k, bundled, ...; on wmt14 the paper's own sizes
    # groups (A B C D E big rates tuned endless data length schedule heads depth simple) or single
    # rows such as h=1 (Table 3 where not given)
    rows: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (1, 2, 3)  # each row is trained once with each seed
    folder: Path = Path("runs/variations")  # where the runs are kept
    # runs at the same time, each a process (one for each GPU where not given; on a CPU one, each
    # with one thread)
    workers: int | None = None
    device: str = "auto"  # cpu, cuda or mps; auto takes the fastest there is
    precision: Precision = "auto"  # as in train
    # the file of results, for data/runs (results.json in the folder where not given); runs that it
    # holds are not trained again
    record: Path | None = None

    def run(self) -> None:
        from transformer.experiments.runner import devices_for
        from transformer.experiments.table3 import base_of, choose, run_variations

        base, rows = base_of(self.corpus, self.precision), choose(self.rows)
        if not self.seeds:
            raise ValueError("--seeds needs at least one number")
        devices = devices_for(self.device, self.workers)
        run_variations(
            base, rows, self.seeds, self.folder, devices, words(), self.record
        )


@dataclass
class Speed(Bench):
    """Time this package beside torch.nn.Transformer, Marian and CTranslate2: same work, taking
    turns, medians."""

    parts: tyro.conf.Positional[tuple[str, ...]] = ()
    """T1 T2 small T3 T4 levers learning memory attention products, on a GPU also base and big
    (notebook 20); or all"""

    def __post_init__(self):
        """Nothing yet: `run` checks, so that a mistake is told like every other."""

    def run(self) -> None:
        from transformer.bench.run import run_bench

        run_bench(Bench(**vars(self)), words())


@dataclass
class Export:
    """Write a trained model for CTranslate2, which serves it on CPUs and GPUs without torch."""

    folder: Path | None = None  # a trained model's; tatoeba; or the bundled one's
    output: Path = Path(
        "exported"
    )  # the new folder: CTranslate2's model, and the tokenizer

    def run(self) -> None:
        from transformer.models.export import export_ctranslate2, type_names

        model, tokenizer = load(self.folder)
        export_ctranslate2(model, type_names(tokenizer), self.output)
        write_file(self.output / "tokenizer.json", tokenizer.save)
        print(
            f"{self.output} holds the model for CTranslate2; notebook 20 shows how it is used "
            "(`translate_there`)"
        )


@dataclass
class Import:
    """Turn a folder of the library transformers, with a Marian or a GPT-2 model, into a folder of
    this package."""

    source: tyro.conf.Positional[Path]  # the folder that was downloaded
    output: Path = Path(
        "runs/imported"
    )  # the new folder, for --folder of the other commands

    def run(self) -> None:
        from transformer.imported import import_folder

        if self.output.exists() and any(self.output.iterdir()):
            raise FileExistsError(
                f"{self.output} is there already: name a folder that is not"
            )
        found = import_folder(self.source)
        prepare_folder(self.output, "--output")
        save(found.model, self.output, found.tokenizer)
        print(
            f"{found.used} tensors became {count_parameters(found.model):,} parameters; ignored: "
            f"{', '.join(found.ignored) or 'none'}"
        )
        print(f"{self.output} holds a model of the kind {kind_of(found.model)}")


COMMANDS = {
    "train": Train,
    "evaluate": Evaluate,
    "translate": Translate,
    "chat": Talk,
    "attend": Attend,
    "variations": Variations,
    "bench": Speed,
    "export": Export,
    "import": Import,
    "demo": Demo,
}


def parse(arguments: list[str]) -> Any:
    """The command that the arguments name, filled in."""
    commands = {**COMMANDS, "train": train_with_options()}
    kinds = [
        Annotated[kind, tyro.conf.subcommand(name)] for name, kind in commands.items()
    ]
    return tyro.cli(
        reduce(or_, kinds),
        prog="transformer",
        description=__doc__,
        args=arguments,
        config=(tyro.conf.FlagCreatePairsOff,),
    )


def of_compiler(error: BaseException) -> bool:
    """Whether torch.compile raised it."""
    return type(error).__module__.startswith(("torch._dynamo", "torch._inductor"))


def sentence_for(error: BaseException) -> str:
    """One sentence for a mistake in the input, and what to do about it."""
    if isinstance(error, torch.cuda.OutOfMemoryError):
        return (
            "the GPU's memory is too small for this: half of --batch-tokens and twice "
            "--accumulate keep the updates as large"
        )
    if of_compiler(error):
        first = str(error).strip().partition("\n")[0]
        return (
            f"torch.compile cannot work here ({first}): leave out --compile, or install a C++ "
            "compiler"
        )
    if isinstance(error, MemoryError | RuntimeError):
        return "this needs more memory than there is: choose smaller sizes, or a smaller batch"
    if isinstance(error, KeyboardInterrupt):
        return "stopped by Ctrl-C; nothing that was saved is lost"
    if (
        isinstance(error, OSError) and error.strerror
    ):  # the system's own; ours are sentences
        where = error.filename or "standard input or output"
        return (
            f"{where} cannot be used ({error.strerror}): see what is there, then run the "
            "command again"
        )
    return str(error)


def check_arguments(arguments: list[str]) -> None:
    """ValueError for an argument that is not UTF-8."""
    for number, argument in enumerate(arguments, 1):
        check_characters(argument, f"argument {number}")


def out_of_memory(error: BaseException) -> bool:
    """True where torch or Python could not get the memory that something needs."""
    said = isinstance(error, RuntimeError) and (
        "allocate memory" in str(error) or "not enough memory" in str(error)
    )
    return said or isinstance(error, MemoryError | torch.cuda.OutOfMemoryError)


def silence_output() -> None:
    """Let the end of Python, which writes what is left, find somewhere to write it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """Run a command; a mistake in the input gives one sentence on standard error and status 2."""
    if hasattr(
        sys.stdout, "reconfigure"
    ):  # a file of translations can be read again, on Windows
        sys.stdout.reconfigure(encoding="utf8")
    try:
        check_arguments(sys.argv[1:])
        parse(sys.argv[1:]).run()
        print(end="", flush=True)
    except BrokenPipeError:
        silence_output()
    except (
        OSError,
        Interrupted,
        ModuleNotFoundError,
        ValueError,
        KeyboardInterrupt,
        RuntimeError,
        MemoryError,
    ) as error:
        if isinstance(error, RuntimeError) and not (
            out_of_memory(error) or of_compiler(error)
        ):
            raise
        said = " ".join(sentence_for(error).splitlines())
        print(f"transformer: {said}", file=sys.stderr)
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            silence_output()
        sys.exit(2)
