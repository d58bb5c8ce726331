"""An experiment: what it learns from, which model, how it is trained, and where it is kept."""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from transformer.core.files import existing
from transformer.core.names import did_you_mean
from transformer.corpora import (
    corpus_paths,
    languages_of,
    stream_corpus,
    stream_parallel,
)
from transformer.corpora.tokenizer import Tokenizer
from transformer.data import encode_pairs
from transformer.models.families import family_of
from transformer.models.pretrained import folder_named, read_config
from transformer.runs.encoded import check_pairs, prepare
from transformer.runs.held_out import Split, chosen_pairs, hold_out
from transformer.runs.parsed import ParsedOnce
from transformer.runs.planning import Limits
from transformer.runs.progress import read_log
from transformer.runs.recipes import recipe, resized, slower
from transformer.runs.training import TrainingConfig

CHOICES = "preset", "family"  # what a dict for a model chooses beside single settings
TOGETHER = "`source_file` and `target_file` go together: give both, or a `corpus`"


@dataclass
class Experiment:
    """A run: what to learn from, which model, how to train it, and where to keep it.

    Model and training that are not given are those of the corpus's recipe, for own files those of
    a plan that suits their size, the machine and the minutes. A dict changes single settings:

        Experiment(source_file="a.en", target_file="a.de", training={"minutes": 5})
        Experiment(corpus="wmt14", model={"preset": "big", "N": 4})
        Experiment(model={"family": "recurrence"})  # or one that you registered

    A preset is a named size, "tiny", "small", "base" or "big", in which the other entries change
    single settings; so an `Experiment` can be kept as JSON: `Experiment(**json.load(file))`.
    `held_out=8` keeps about eight pairs of own files to validate on, whole groups of equal sentences.
    A run goes on by its folder alone, with what it began with, and again what a dict changes:

        Experiment(folder="runs/files", resume=True, training={"minutes": 10})

    Only device and compile are this machine's business, and have to be given again.
    With `init` the run begins with a trained model's weights and tokenizer, and learns more
    slowly. Raises ValueError for settings that do not exist, or that contradict `init`.

    Attributes:
        corpus: its name, such as bundled, multi30k, tatoeba, or one that you registered
        reverse: translate the other way round
        source_file: your own sentences, one a line, UTF-8, in place of a corpus
        target_file: their translations, line by line
        source_language: code of the language of your source file
        target_language: code of the language of your target file
        held_out: pairs of your files to validate on; where None, a hundredth
        folder: where the run is kept; where None, runs/<corpus>
        resume: go on with the run in the folder, with its own settings
        init: the folder of a model to begin with, or "tatoeba"
        device: cpu, cuda or mps; auto takes the fastest there is
        compile: let torch.compile write kernels first, which pays on GPUs
        model: a configuration, or a dict of what to change in the recipe's
        training: the same
        limits: what is planned for own files, and what is not; the command line sets it
    """

    corpus: str = "bundled"
    reverse: bool = False
    source_file: Path | None = None
    target_file: Path | None = None
    source_language: str = "en"
    target_language: str = "de"
    held_out: int | None = None
    folder: Path | None = None
    resume: bool = False
    init: Path | str | None = None
    device: str = "auto"
    compile: bool = False
    model: Any = None
    training: TrainingConfig = None  # type: ignore[assignment]
    limits: Limits | None = field(default=None, repr=False)
    given: "Given" = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        own = self.source_file or self.target_file
        if own and not self.resume and not (self.source_file and self.target_file):
            raise ValueError(TOGETHER)
        if own:
            check_code("source_language", self.source_language)
            check_code("target_language", self.target_language)
        if self.held_out is not None:
            check_held_out(self.held_out, bool(own) or self.resume)
        name = "files" if own else self.corpus or "bundled"
        self.given = given = Given(self.model, self.training)
        known = recipe(name, given.preset(), given.family() or "transformer")
        if self.init is not None:
            self.begin_with(known)
            given = replace(given, model=self.model)
        if own and not self.resume and self.limits is None and not given.whole():
            self.limits = given.limits(trained=self.init is not None)
        self.model, self.training = given.settle(known["model"], known["training"])
        self.folder = Path(self.folder or Path("runs", name))
        self.source_file = self.source_file and Path(self.source_file)
        self.target_file = self.target_file and Path(self.target_file)

    def log(self) -> list[dict]:
        """What the run has logged, a dict of figures a validation; none before the first.

        update, epoch and tokens (of targets) so far; rate: the learning rate; seconds so far;
        tokens_per_second; utilisation: the share of the machine's speed in products of
        matrices; skipped: updates left out, since their gradients were no numbers; loss: of
        training, in nats a token, since the row before; norm: of the gradients, the mean;
        validation_loss; bleu: of greedy translations of validation_pairs sentences.
        """
        return read_log(self.folder)

    def begin_with(self, known: dict) -> None:
        """Take the configuration of the model to begin with, and a recipe's lower rate; its
        languages, too, where own files have not named theirs."""
        if self.resume:
            raise ValueError(
                "init begins a new run and resume goes on with one: leave one of them out"
            )
        for name in {"preset", "family"} & self.given.dict_of_model().keys():
            raise ValueError(
                f"init takes its sizes from the model to begin with: leave out the {name}"
            )
        folder = folder_named(self.init)
        config, about = read_config(folder / "config.json")
        model = config if self.model is None else changed(self.model, config, "model")
        check_begun(folder, config, model)
        self.model = model
        known["training"] = slower(known["training"])
        own = self.source_file is not None
        named = self.source_language, self.target_language
        if own and named == ("en", "de"):
            self.source_language, self.target_language = about.source, about.target
        elif own and about.target and about.target != self.target_language:
            warnings.warn(
                f"the model in {folder} writes {about.target}, and your files are to teach "
                f"it {self.target_language}: its words for that are still to be learned",
                stacklevel=4,
            )


def check_code(name: str, language: object) -> None:
    """ValueError for what is not the code of a language, such as "de", "yue" or "zh-TW"."""
    code = "[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*"
    if not isinstance(language, str) or not re.fullmatch(code, language):
        raise ValueError(
            f'`{name}` must be the code of a language, such as "fr", not {language!r}'
        )


def check_held_out(count: int, own: bool) -> None:
    """ValueError for a number of pairs to hold out that is none, or that is not of own files."""
    if type(count) is not int or count < 1:
        raise ValueError(
            f"held_out must be a whole number of at least 1, not {count!r}"
        )
    if not own:
        raise ValueError(
            "held_out counts pairs of your own files, and a corpus has its validation: "
            "leave it out, or name source_file and target_file"
        )


def changed(given: Any, default: Any, what: str) -> Any:
    """A configuration that was given, or the default one with what a dict changes in it; a preset
    and a family in the dict are none of its settings."""
    if given is None:
        return default
    if isinstance(given, type):
        raise ValueError(
            f"{what} is the class {given.__name__}: hand in a configuration that is made, "
            f"such as {given.__name__}(...), or a dict of what to change"
        )
    if not isinstance(given, dict):
        return given
    known = [f.name for f in fields(default)]
    if what == "model":
        given = {name: given[name] for name in given if name not in CHOICES}
    if unknown := [name for name in given if name not in known]:
        raise ValueError(
            f"{what} has no setting {unknown[0]!r}{did_you_mean(unknown[0], known)}: it "
            f"has {', '.join(known)}"
        )
    return replace(default, **given)


def check_begun(folder: Path, there: Any, here: Any) -> None:
    """ValueError where a model to begin with has another configuration; dropout, which has no
    weights, may be another."""
    if type(there) is not type(here):
        raise ValueError(
            f"init: the model in {folder} has a {type(there).__name__}, not a "
            f"{type(here).__name__}: its weights decide that, so leave out the model"
        )
    for name, value in vars(there).items():
        if name != "P_drop" and getattr(here, name) != value:
            raise ValueError(
                f"init: the model in {folder} has {name} {value}, not "
                f"{getattr(here, name)}: its weights decide that, so leave out {name}"
            )


@dataclass(frozen=True)
class Given:
    """What an experiment was given of model and training: a configuration, a dict, or None."""

    model: Any = None
    training: Any = None

    def whole(self) -> bool:
        """Whether nothing is left to be found."""
        return not any(
            given is None or isinstance(given, dict)
            for given in (self.model, self.training)
        )

    def dict_of_model(self) -> dict:
        """The dict that was given for the model; {} for none."""
        return self.model if isinstance(self.model, dict) else {}

    def preset(self) -> str | None:
        """The named size that a dict asks for."""
        return self.dict_of_model().get("preset")

    def family(self) -> str | None:
        """The family of models that a dict asks for."""
        return self.dict_of_model().get("family")

    def settle(self, model: Any, training: TrainingConfig) -> tuple:
        """Both as they are wanted, with what is not given from here."""
        if self.preset() or self.family():
            model = resized(model, self.family() or family_of(model), self.preset())
        return (
            changed(self.model, model, "model"),
            changed(self.training, training, "training"),
        )

    def settle_slowly(self, model: Any, training: TrainingConfig) -> tuple:
        """The same, at a lower rate where none is given."""
        return self.settle(model, slower(training))

    def limits(self, trained: bool = False) -> Limits:
        """What a plan has to keep."""
        training = self.training
        if training is not None and not isinstance(training, dict):
            training = vars(training)
        named = isinstance(self.model, dict) and self.model.keys() & {
            "d_model",
            "preset",
        }
        whole = self.model is not None and not isinstance(self.model, dict)
        settle = self.settle_slowly if trained else self.settle
        return Limits(
            settle, dict(training or {}), bool(named) or whole, trained=trained
        )


def fitted(e: Experiment, tokenizer: Tokenizer) -> Experiment:
    """An experiment whose model has the sizes and marks of a tokenizer."""
    marks = {
        name: getattr(tokenizer, name)
        for name in ("vocab_size", "pad_id", "bos_id", "eos_id")
    }
    return replace(e, model=replace(e.model, **marks))


# Its sentence pairs


def files_of(e, split: str) -> list[Path]:
    """The files of one split of an experiment's corpus, or its own, source first.

    ValueError for settings that do not fit.
    """
    if (e.source_file is None) != (e.target_file is None):
        raise ValueError(TOGETHER)
    if e.source_file is None:
        named = e.source_language, e.target_language
        if named not in (("en", "de"), languages_of(e.corpus, e.reverse)):
            raise ValueError(
                "`source_language` and `target_language` are those of your own files: "
                "a corpus has its own, and `reverse` turns it round"
            )
        return corpus_paths(e.corpus, split)
    if e.reverse:
        raise ValueError(
            "`reverse` turns a corpus round: with your own files swap `source_file` "
            "and `target_file`"
        )
    return [e.source_file, e.target_file]


def languages(e: Experiment) -> tuple[str, str]:
    """The codes of the languages that an experiment translates from and into."""
    if e.source_file is None:
        return languages_of(e.corpus, e.reverse)
    return e.source_language, e.target_language


def stream_pairs(e: Experiment, split: str) -> Iterator[tuple[str, str]]:
    """Yield the (source, target) pairs of an experiment's train or validation split.

    Own files are divided by `hold_out`.
    """
    files = files_of(e, split)
    if e.source_file is None:
        return stream_corpus(e.corpus, split, e.reverse)
    divided = hold_out(stream_parallel(*files), e.held_out)
    return chosen_pairs(stream_parallel(*files), side_of(divided, split))


def side_of(divided: Split, split: str) -> np.ndarray:
    """The indices of own files' pairs that are trained on, or else those held out."""
    return divided.training if split == "train" else divided.held_out


ON_DISK = ("wmt14", "wmt14_eighth", "europarl")
LARGE = 100 * 2**20  # own files: from so many bytes on


def on_disk(e: Experiment) -> bool:
    """True where an experiment's training pairs go through a folder on disk."""
    if e.source_file is None:
        return e.corpus in ON_DISK
    what = "check the name, or give the full path"
    files = [existing(path, what) for path in files_of(e, "train")]
    return sum(path.stat().st_size for path in files) > LARGE


@dataclass(frozen=True)
class ChosenPairs:
    """The pairs at ascending indices, as often as asked; see `chosen_pairs`."""

    pairs: Iterable[tuple[str, str]]
    indices: np.ndarray

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return chosen_pairs(self.pairs, self.indices)

    def __len__(self) -> int:
        return len(self.indices)


class Sentences:
    """An experiment's pairs by split: sentences("train"). Each file is parsed once.

    What fits into memory is a list; a large corpus can be gone through as often as needed. divided:
    how own files are divided, once they were asked for; None for a corpus.
    """

    def __init__(self, e: Experiment, read: Callable = stream_pairs):
        self.e = e
        self.read = read
        self.kept: dict[str, Iterable] = {}
        self.divided: Split | None = None

    def __call__(self, split: str) -> Iterable[tuple[str, str]]:
        if split not in self.kept:
            files = self.e.source_file and files_of(self.e, split)
            if files and self.read is stream_pairs:
                self.keep_own(files)
            elif split == "train" and on_disk(self.e):
                self.kept[split] = ParsedOnce(lambda: self.read(self.e, split))
            else:
                self.kept[split] = list(self.read(self.e, split))
        return self.kept[split]

    def keep_own(self, files: list[Path]) -> None:
        """Divide the pairs of own files, which hold both splits, and keep both."""
        large = on_disk(self.e)
        pairs: Iterable = ParsedOnce(lambda: stream_parallel(*files))
        if not large:
            pairs = list(stream_parallel(*files))
        self.divided = hold_out(pairs, self.e.held_out)
        training = ChosenPairs(pairs, self.divided.training)
        self.kept["train"] = training if large else list(training)
        self.kept["validation"] = list(chosen_pairs(pairs, self.divided.held_out))

    def lines(self, split: str) -> np.ndarray | None:
        """The lines, counted from 1, that a split of own files stands on; None for a corpus."""
        return None if self.divided is None else side_of(self.divided, split) + 1


def encoded_training(e: Experiment, tokenizer: Tokenizer, sentences: Sentences):
    """The encoded training pairs: a list, or `EncodedPairs`.

    The latter leave out what is longer than the model's positions; a list raises ValueError.
    """
    pairs = sentences("train")
    if on_disk(e):
        name = e.corpus if e.source_file is None else Path(e.source_file).stem
        name += f"-{e.held_out}" if e.held_out else ""
        longest = e.model.max_positions
        files = files_of(e, "train")
        return prepare(tokenizer, pairs, files, name, "train", e.reverse, longest)
    encoded = encode_pairs(tokenizer, list(pairs))
    check_pairs(encoded, e.model, "training ", sentences.lines("train"))
    return encoded
