"""A model's scores on sentence pairs: translate the sources, count what comes out."""

from transformer.core.checks import sides_of
from transformer.core.scores import check_scored, exact_match, score_report
from transformer.corpora import without_blanks
from transformer.models.search import chosen, translate_all


def evaluate(
    model,
    tokenizer,
    pairs: list[tuple[str, str]],
    beam: int | None = None,
    alpha: float | None = None,
    language: str | None = None,
    corpus: str | None = None,
    what: str = "test",
) -> dict:
    """Translate the sources of pairs and score the result; a dict for scores.json.

    beam, alpha, language: those that travel with the model (`model.about`) where not given.
    language: code of the translations', such as "de", by which their words are counted; ValueError
    where neither says it. Pairs with a blank side are left out, and a warning counts them;
    ValueError where none is left.

        report = evaluate(model, tokenizer, [("The cat sleeps.", "Die Katze schläft.")])
        report["bleu"]  # {"score": 0 to 100, "margin": plus or minus, or None, "signature": ...}
        report["exact_match"]  # share of the sentences, 0 to 1

    "chrf" and the other scores are like "bleu"; "sentences", "beam" and "alpha" say what was done.
    """
    beam, alpha = chosen(model, beam, alpha)
    language = language or model.about.target
    if language is None:
        raise ValueError(
            "scores need the language of the translations, and this model knows none: "
            'give its code (language="de"), or set model.about = About("en", "de")'
        )
    pairs = list(zip(*sides_of(pairs)))
    sources, references = sides_of(without_blanks(pairs, "pairs to score"))
    check_scored(references)
    outputs = translate_all(model, tokenizer, sources, beam, alpha, what)
    report = score_report(outputs, references, language, corpus)
    exact = round(exact_match(outputs, references), 4)
    return {
        "sentences": len(sources),
        "beam": beam,
        "alpha": alpha,
        **report,
        "exact_match": exact,
    }
