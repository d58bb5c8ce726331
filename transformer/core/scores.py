"""Scores of translations: sacreBLEU's, and the older ways of counting BLEU that papers report.

A score of one's own is a function of (translations, references, language, resamples) entered into
`SCORES` under a name; whatever evaluates a model then reports it with the others.
"""

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from transformer.core.white_space import is_blank, warn_of_blanks


@dataclass(frozen=True)
class Score(float):
    """A corpus score in per cent, the signature that says how it was counted, and its margin.

    It is a number itself, so that it can be compared, rounded and written into a log.

    margin: half the width of the 95% interval that bootstrap resampling gives, if asked for.
    """

    score: float
    signature: str
    margin: float | None = None

    def __new__(cls, score: float, *_: object, **__: object) -> "Score":
        return super().__new__(cls, score)

    def item(self) -> float:
        """The plain number, as tensors and numpy's numbers give it."""
        return float(self)


def check_lines(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """ValueError where translations and references do not pair up, are no sentences, or none."""
    from transformer.core.checks import check_texts  # which needs torch

    for name, lines in (("translations", hypotheses), ("references", references)):
        check_texts(lines, name)
    if len(hypotheses) != len(references) or not references:
        raise ValueError(
            f"{len(hypotheses)} translations and {len(references)} references: "
            "each translation needs one reference"
        )


def check_scored(references: Sequence[str]) -> None:
    """ValueError where there is no sentence to score."""
    if not references:
        raise ValueError("there is nothing to score: no reference that is not blank")


def without_blank_references(
    hypotheses: Sequence[str], references: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Translations and references, without those of which the reference is blank.

    A warning counts these; ValueError where there are no others.
    """
    check_lines(hypotheses, references)
    kept = [i for i, reference in enumerate(references) if not is_blank(reference)]
    warn_of_blanks(len(references) - len(kept), len(references), "pairs to score")
    check_scored(kept)
    return [hypotheses[i] for i in kept], [references[i] for i in kept]


def score_with(
    metric, hypotheses: Sequence[str], references: Sequence[str], resamples: int = 0
) -> Score:
    """`Score` by one of sacreBLEU's metrics, against one reference each.

    There is no margin of sentences of which some draws score 0 and others do not.
    """
    check_lines(hypotheses, references)
    if resamples < 0 or resamples == 1:
        raise ValueError(
            f"resamples must be 0 (no margin) or at least 2, not {resamples}"
        )
    try:
        result = metric.corpus_score(hypotheses, [references], n_bootstrap=resamples)
    except (
        TypeError
    ):  # sacreBLEU 2.6 cannot average its float32 scores with a plain 0.0
        resamples = 0
        result = metric.corpus_score(hypotheses, [references], n_bootstrap=0)
    margin = float(result._ci) if resamples else None
    score = round(float(result.score), 10)  # equal texts come to a hair above 100
    return Score(score, str(metric.get_signature()), margin)


# Languages whose words sacreBLEU finds by a tokenizer of its own, by ISO 639's codes
TOKENIZED = {
    "zh": ("zh", "zho", "chi", "cmn", "yue", "wuu", "nan", "hak", "lzh"),
    "ja-mecab": ("ja", "jpn"),
    "ko-mecab": ("ko", "kor"),
}
USUAL = "13a"  # sacreBLEU's for languages with spaces between words
# Thai, Lao, Khmer, Burmese, Tibetan, Dzongkha, Shan, Javanese's and others' own letters
WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf"
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\ua980-\ua9df\uaa60-\uaa7f"
    "\uf900-\ufaff\U00020000-\U0003ffff]"
)
SEEN = 1000  # references that say whether a language has spaces


@cache
def usable(tokenizer: str) -> bool:
    """Whether this tokenizer of sacreBLEU has the packages that it needs."""
    from sacrebleu.metrics import BLEU

    try:
        BLEU(tokenize=tokenizer)
    except (ImportError, RuntimeError):
        return False
    return True


def tokenizer_of(language: str | None, references: Sequence[str] = ()) -> str:
    """The name of sacreBLEU's tokenizer for a language, such as "de" or "zh-TW".

    "char", with a warning, where that needs a package which is not there, and where
    sacreBLEU has none and the references are written without spaces.
    """
    code = re.split("[-_]", (language or "").lower())[0]
    for tokenizer, codes in TOKENIZED.items():
        if code in codes:
            if usable(tokenizer):
                return tokenizer
            warnings.warn(
                f"BLEU is counted by characters: sacreBLEU's tokenizer {tokenizer} "
                f"needs a package, pip install 'sacrebleu[{tokenizer[:2]}]'",
                stacklevel=1,  # one place, so that each sentence is shown once
            )
            return "char"
    text = "".join(references[:SEEN])
    if 2 * len(WITHOUT_SPACES.findall(text)) <= sum(map(str.isalpha, text)):
        return USUAL
    warnings.warn(
        f"BLEU is counted by characters: the references have no spaces between words, "
        f"and sacreBLEU has no tokenizer for {language or 'a language without a name'}",
        stacklevel=1,
    )
    return "char"


def bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    lowercase: bool = False,
    resamples: int = 0,
    language: str | None = None,
) -> Score:
    """Cased, detokenised sacreBLEU (Post, 2018) of translations against one reference each.

    language: the references', such as "de" or "zh"; its words are found by sacreBLEU's
    tokenizer for it (`tokenizer_of`), which the signature names.
    """
    from sacrebleu.metrics import BLEU

    check_lines(hypotheses, references)
    metric = BLEU(lowercase=lowercase, tokenize=tokenizer_of(language, references))
    return score_with(metric, hypotheses, references, resamples)


def ngram_counts(
    hypotheses: Sequence[str], references: Sequence[str], language: str | None = None
) -> dict[str, list[int]]:
    """What cased sacreBLEU counts in each sentence, as columns: tokens of the output and of the
    reference, and how many n-grams they share, n = 1 to 4.

    BLEU and paired tests follow from these numbers; the sentences do not.
    """
    from sacrebleu.metrics import BLEU

    check_lines(hypotheses, references)
    metric = BLEU(tokenize=tokenizer_of(language, references))
    counts = metric._extract_corpus_statistics(hypotheses, [references])
    columns = map(list, zip(*counts))
    return dict(zip(("output", "reference", "1", "2", "3", "4"), columns))


def bleu_of_counts(counts: dict[str, Sequence[int]]) -> float:
    """Cased sacreBLEU of sentences with these `ngram_counts`."""
    from sacrebleu.metrics import BLEU

    shared = [sum(counts[str(n)]) for n in range(1, 5)]
    possible = [
        sum(max(0, length - n) for length in counts["output"]) for n in range(4)
    ]
    lengths = sum(counts["output"]), sum(counts["reference"])
    return BLEU.compute_bleu(shared, possible, *lengths, smooth_method="exp").score


def chrf(
    hypotheses: Sequence[str], references: Sequence[str], resamples: int = 0
) -> Score:
    """chrF2 (Popović, 2015): F-score of character n-grams up to 6, recall counted twice."""
    from sacrebleu.metrics import CHRF

    return score_with(CHRF(), hypotheses, references, resamples)


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """The part of translations that equal their reference, character by character.

    Blank references are left out, and a warning counts them.
    """
    hypotheses, references = without_blank_references(hypotheses, references)
    return sum(h == r for h, r in zip(hypotheses, references)) / len(references)


def moses_words(
    sentences: Sequence[str], language: str, lowercase: bool = False
) -> list[str]:
    """Sentences cut as Moses cuts them, words between spaces; `language` is a code such as "de".

    lowercase: lower-cased and with plain punctuation first, in the order of Multi30k's own script.
    In a language that sacremoses does not know, English abbreviations keep their full stop.
    """
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    from transformer.core.checks import check_texts

    tokenizer, sentences = MosesTokenizer(language), check_texts(sentences)
    if lowercase:
        normalizer = MosesPunctNormalizer(language)
        sentences = [normalizer.normalize(sentence.lower()) for sentence in sentences]
    return [
        tokenizer.tokenize(text, return_str=True, escape=False) for text in sentences
    ]


def moses_version() -> str:
    """What a signature says about the tokeniser."""
    from importlib.metadata import version

    return f"sacremoses-{version('sacremoses')}"


def multi_bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    words: str = "given",
    lowercase: bool = False,
    resamples: int = 0,
) -> Score:
    """BLEU of sentences cut into words already, as `multi-bleu.perl` counts it: unsmoothed.

    words: what the signature says about the cutting.
    """
    from sacrebleu.metrics import BLEU

    metric = BLEU(
        lowercase=lowercase, tokenize="none", smooth_method="none", force=True
    )
    score = score_with(metric, hypotheses, references, resamples)
    return replace(score, signature=f"{score.signature}|words:{words}")


def tokenized_bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    language: str = "de",
    resamples: int = 0,
) -> Score:
    """BLEU on lower-cased, normalised and Moses-tokenised text: what papers on Multi30k report.

    `bleu`, lower-cased, in a language that Moses' rules, which look for spaces, do not cut.
    """
    check_lines(hypotheses, references)
    if tokenizer_of(language, references) != USUAL:
        return bleu(hypotheses, references, True, resamples, language)
    sides = [
        moses_words(side, language, lowercase=True) for side in (hypotheses, references)
    ]
    words = f"{moses_version()}.{language}.normalized"
    return multi_bleu(*sides, words, lowercase=True, resamples=resamples)


def split_compounds(sentence: str) -> str:
    """A hyphen between two characters becomes a word: rich-text -> rich ##AT##-##AT## text."""
    return re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", sentence)


def compound_bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    language: str = "de",
    resamples: int = 0,
) -> Score:
    """BLEU on Moses-tokenised, cased text with compounds split, as tensor2tensor counts Table 2.

    `bleu` in a language that Moses' rules do not cut.
    """
    check_lines(hypotheses, references)
    if tokenizer_of(language, references) != USUAL:
        return bleu(hypotheses, references, False, resamples, language)
    sides = [
        [split_compounds(line) for line in moses_words(side, language)]
        for side in (hypotheses, references)
    ]
    return multi_bleu(
        *sides, f"{moses_version()}.{language}.compounds", resamples=resamples
    )


def named(count: Callable) -> Callable:
    """`bleu`, or a form of it, with its arguments in the order that `SCORES` wants."""
    return lambda hypotheses, references, language, resamples: count(
        hypotheses, references, resamples=resamples, language=language
    )


# name: function(translations, references, language, resamples) -> `Score`
SCORES: dict[str, Callable[..., Score]] = {
    "bleu": named(bleu),
    "bleu_lowercased": named(partial(bleu, lowercase=True)),
    "bleu_tokenized_lowercased": tokenized_bleu,
    "bleu_compounds_split": compound_bleu,
    "chrf": lambda hypotheses, references, language, resamples: chrf(
        hypotheses, references, resamples
    ),
}


def scores(
    hypotheses: Sequence[str],
    references: Sequence[str],
    language: str = "de",
    resamples: int = 1000,
) -> dict[str, Score]:
    """{name: `Score`} of translations in `language`, counted in every way of `SCORES`; TypeError
    for a way that gives something else."""
    found = {}
    for name, count in SCORES.items():
        found[name] = count(hypotheses, references, language, resamples)
        if not isinstance(found[name], Score):
            raise TypeError(
                f"SCORES[{name!r}] gives {found[name]!r}: a Score(percent, signature) "
                "is wanted"
            )
    return found


NEWS = ("wmt14", "wmt14_eighth", "newstest2013", "newstest2014", "europarl")


def score_report(
    outputs: list[str],
    references: list[str],
    language: str = "de",
    corpus: str | None = None,
) -> dict:
    """{name: {"score", "margin", "signature"}} of translations, to be kept.

    The margin is 95%'s; None where there are fewer than a hundred. Compounds are split, as in Table
    2, for the corpora of the WMT only. Blank references are left out, and a warning counts them.
    """
    outputs, references = without_blank_references(outputs, references)
    resamples = 1000 if len(outputs) >= 100 else 0
    found = scores(outputs, references, language, resamples)
    if corpus not in NEWS:
        del found["bleu_compounds_split"]
    return {
        name: {
            "score": round(float(s.score), 2),
            "margin": s.margin and round(s.margin, 2),
            "signature": s.signature,
        }
        for name, s in found.items()
    }
