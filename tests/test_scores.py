"""BLEU of languages without spaces between words; blank lines; what the signature says."""

import warnings

import pytest

from transformer import bleu
from transformer.core.scores import ngram_counts, score_report, scores, tokenizer_of

CHINESE = ["我今天很高兴，因为天气很好。", "这本书是关于历史的。"]
JAPANESE = ["今日は天気がいいので嬉しいです。", "この本は歴史についてです。"]
KOREAN = ["오늘은 날씨가 좋아서 기쁩니다.", "이 책은 역사에 관한 것입니다."]
THAI = ["วันนี้อากาศดีมากและฉันมีความสุข", "หนังสือเล่มนี้เกี่ยวกับประวัติศาสตร์"]
KHMER = ["ថ្ងៃនេះអាកាសធាតុល្អណាស់", "សៀវភៅនេះនិយាយអំពីប្រវត្តិសាស្ត្រ"]
TIBETAN = ["དེ་རིང་གནམ་གཤིས་ཡག་པོ་འདུག", "དེབ་འདི་ལོ་རྒྱུས་སྐོར་རེད"]
GERMAN = ["Das ist ein kleiner Hund.", "Dieses Buch handelt von Geschichte."]
TEXTS = {
    "zh": CHINESE,
    "zh-CN": CHINESE,
    "zh_Hant": CHINESE,
    "ZH": CHINESE,
    "zho": CHINESE,
    "yue": CHINESE,
    "chinese": CHINESE,
    "ja": JAPANESE,
    "jpn": JAPANESE,
    "ko": KOREAN,
    "ko-KR": KOREAN,
    "th": THAI,
    "km": KHMER,
    "bo": TIBETAN,
    "de": GERMAN,
}


@pytest.mark.filterwarnings("ignore:BLEU is counted by characters")
@pytest.mark.parametrize("language", TEXTS)
def test_equal_texts_have_every_score_at_its_most(language):
    for name, score in scores(TEXTS[language], TEXTS[language], language, 0).items():
        assert score.score == pytest.approx(100), name


@pytest.mark.filterwarnings("ignore:BLEU is counted by characters")
@pytest.mark.parametrize("texts", [CHINESE, JAPANESE, KOREAN, THAI, KHMER, GERMAN])
def test_a_report_without_the_right_language_does_not_say_nothing(texts):
    report = score_report(texts, texts, "de")
    assert report["bleu"]["score"] == 100


def test_the_signature_names_the_tokenizer():
    assert "|tok:zh|" in bleu(CHINESE, CHINESE, language="zh").signature
    assert "|tok:13a|" in bleu(GERMAN, GERMAN, language="de").signature
    assert "|tok:13a|" in bleu(GERMAN, GERMAN).signature
    report = score_report(CHINESE, CHINESE, "zh")
    assert "|tok:zh|" in report["bleu_tokenized_lowercased"]["signature"]


def test_another_translation_scores_as_sacrebleu_counts_it():
    from sacrebleu.metrics import BLEU

    other = ["我今天很高兴，天气不好。", CHINESE[1]]
    expected = BLEU(tokenize="zh").corpus_score(other, [CHINESE]).score
    assert bleu(other, CHINESE, language="zh").score == pytest.approx(expected)


@pytest.mark.parametrize("language, package", [("ja", "mecab"), ("ko", "mecab")])
def test_a_missing_package_is_named(language, package, monkeypatch):
    monkeypatch.setattr("transformer.core.scores.usable", lambda tokenizer: False)
    with pytest.warns(UserWarning, match=rf"needs a package.*sacrebleu\[{language}\]"):
        assert tokenizer_of(language, TEXTS[language]) == "char"


@pytest.mark.parametrize("language", ["th", "chinese", "de", None])
def test_a_language_without_a_tokenizer_is_warned_of(language):
    with pytest.warns(UserWarning, match="BLEU is counted by characters"):
        assert tokenizer_of(language, CHINESE if language != "th" else THAI) == "char"


@pytest.mark.parametrize("language", ["de", "en", "fr", "ru", "ar", "hi", "", None])
def test_languages_with_spaces_are_counted_as_ever_and_not_warned_of(language):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tokenizer_of(language, [*GERMAN, "Er sagt 你好 zu ihr."]) == "13a"


def test_counts_of_a_language_without_spaces():
    counts = ngram_counts(CHINESE, CHINESE, "zh")
    assert counts["output"] == [14, 10]
    assert counts["4"] == [11, 7]
