"""Scores of translations: sacreBLEU's, and the older ways of counting BLEU that papers report."""

import re
from dataclasses import dataclass, replace

from transformer.checks import check_texts


@dataclass(frozen=True)
class Score:
    """A corpus score in per cent, the signature that says how it was counted, and its margin.

    margin: half the width of the 95% interval that bootstrap resampling gives, where it was asked for.
    """

    score: float
    signature: str
    margin: float | None = None


def check_lines(hypotheses, references):
    """ValueError where translations and references do not pair up, are no sentences, or there are none."""
    for name, lines in (("translations", hypotheses), ("references", references)):
        check_texts(lines, name)
    if len(hypotheses) != len(references) or not references:
        raise ValueError(f"{len(hypotheses)} translations and {len(references)} references: each translation needs one reference")


def score_with(metric, hypotheses, references, resamples=0):
    """`Score` by one of sacreBLEU's metrics, against one reference each.

    Raises ValueError for a margin from sentences of which a whole draw may score 0.
    """
    check_lines(hypotheses, references)
    if resamples < 0 or resamples == 1:
        raise ValueError(f"resamples must be 0 (no margin) or at least 2, not {resamples}")
    try:
        result = metric.corpus_score(hypotheses, [references], n_bootstrap=resamples)
    except TypeError as error:  # sacreBLEU 2.6 cannot average its float32 scores with a plain 0.0
        if not resamples:
            raise
        raise ValueError(f"no margin from {len(references)} sentences: some draws of them score 0; leave out resamples") from error
    return Score(float(result.score), str(metric.get_signature()), float(result._ci) if resamples else None)


def bleu(hypotheses, references, lowercase=False, resamples=0):
    """Cased, detokenised sacreBLEU (Post, 2018) of translations against one reference each."""
    from sacrebleu.metrics import BLEU

    return score_with(BLEU(lowercase=lowercase), hypotheses, references, resamples)


def exact_match(hypotheses, references):
    """The part of translations that equal their reference, character by character."""
    check_lines(hypotheses, references)
    return sum(h == r for h, r in zip(hypotheses, references)) / len(references)


def moses_words(sentences, language, lowercase=False):
    """Sentences cut as Moses cuts them, words between spaces; `language` is a code such as "de".

    lowercase: lower-cased and with plain punctuation first, in the order of Multi30k's own script. In a language that
    sacremoses does not know, English abbreviations keep their full stop.
    """
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    tokenizer, normalizer, sentences = MosesTokenizer(language), MosesPunctNormalizer(language), check_texts(sentences)
    if lowercase:
        sentences = [normalizer.normalize(sentence.lower()) for sentence in sentences]
    return [tokenizer.tokenize(sentence, return_str=True, escape=False) for sentence in sentences]


def moses_version():
    """What a signature says about the tokeniser."""
    from importlib.metadata import version

    return f"sacremoses-{version('sacremoses')}"


def multi_bleu(hypotheses, references, words="given", lowercase=False, resamples=0):
    """BLEU of sentences that are cut into words already, without smoothing, as `multi-bleu.perl` counts it.

    words: what the signature says about the cutting.
    """
    from sacrebleu.metrics import BLEU

    metric = BLEU(lowercase=lowercase, tokenize="none", smooth_method="none", force=True)
    score = score_with(metric, hypotheses, references, resamples)
    return replace(score, signature=f"{score.signature}|words:{words}")


def tokenized_bleu(hypotheses, references, language="de", resamples=0):
    """BLEU on lower-cased, normalised and Moses-tokenised text: what papers on Multi30k report."""
    sides = [moses_words(side, language, lowercase=True) for side in (hypotheses, references)]
    return multi_bleu(*sides, f"{moses_version()}.{language}.normalized", lowercase=True, resamples=resamples)


def split_compounds(sentence):
    """A hyphen between two characters becomes a word of its own: rich-text -> rich ##AT##-##AT## text."""
    return re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", sentence)


def compound_bleu(hypotheses, references, language="de", resamples=0):
    """BLEU on Moses-tokenised, cased text with compounds split: Table 2, counted as in tensor2tensor."""
    sides = [[split_compounds(line) for line in moses_words(side, language)] for side in (hypotheses, references)]
    return multi_bleu(*sides, f"{moses_version()}.{language}.compounds", resamples=resamples)


def chrf(hypotheses, references, resamples=0):
    """chrF2 (Popović, 2015): F-score of character n-grams up to 6, recall counted twice."""
    from sacrebleu.metrics import CHRF

    return score_with(CHRF(), hypotheses, references, resamples)


def scores(hypotheses, references, language="de", resamples=1000):
    """{name: `Score`} of translations in `language`, with 95% margins: four ways to count BLEU, and chrF."""
    return {"bleu": bleu(hypotheses, references, resamples=resamples),
            "bleu_lowercased": bleu(hypotheses, references, lowercase=True, resamples=resamples),
            "bleu_tokenized_lowercased": tokenized_bleu(hypotheses, references, language, resamples),
            "bleu_compounds_split": compound_bleu(hypotheses, references, language, resamples),
            "chrf": chrf(hypotheses, references, resamples)}
