"""What a translation carries, and how it comes: word alignment, streams, deadlines."""

import copy
import dataclasses
import itertools
import json
import math
import pickle
import time

import pytest
import torch

from transformer import (
    align,
    attention_maps,
    beam_search,
    encode_pairs,
    evaluate,
    greedy_search,
    load,
    read_corpus,
    stream,
    translate,
    translate_n_best,
    view,
)
from transformer.corpora.bundled import read_bundled
from transformer.corpora.tokenizer import Tokenizer
from transformer.fast.model import Transformer, TransformerConfig
from transformer.fast.recurrence import RecurrenceConfig, RecurrentEncoderDecoder
from transformer.models.alignment import Alignment
from transformer.models.search import Batching, Translation

LONG = "Suddenly a new library in which the friendly girl smiles lost its roof."
SHORT = "The old cat sleeps."


@pytest.fixture(scope="module")
def bundled():
    return load()


@pytest.fixture(scope="module")
def random_model():
    """Byte pairs of a few words, and a model that has learned nothing."""
    texts = ["drei Käse für 🙂 日本", "une fenêtre, déjà vu", "x" * 9] * 3
    tokenizer = Tokenizer.train(texts, 300)
    torch.manual_seed(0)
    config = TransformerConfig(tokenizer.vocab_size, 32, 64, N=2, h=2, max_positions=90)
    return Transformer(config).eval(), tokenizer


def everyday():
    """Fifty short sentences."""
    who = ["I", "Tom", "My sister", "They", "Nobody"]
    what = ["would like", "has lost", "is looking for", "found", "can see"]
    which = ["a cup of tea.", "the key, please!"]
    return [" ".join(words) for words in itertools.product(who, what, which)]


# Streams


def sentences_for(name):
    if name == "tatoeba":
        return everyday()
    return [source for source, _ in read_corpus("bundled", "validation")[:50]]


@pytest.mark.parametrize("name", ["bundled", "tatoeba"])
def test_a_stream_joined_is_the_greedy_translation(name):
    model, tokenizer = load(name)
    sentences = sentences_for(name)
    streamed = [list(stream(model, tokenizer, text)) for text in sentences]
    greedy = translate(model, tokenizer, sentences, beam=1)
    assert len(sentences) == 50
    assert ["".join(words) for words in streamed] == greedy
    assert [[word.strip() for word in words] for words in streamed] == [
        pair.target for pair in align(model, tokenizer, zip(sentences, greedy))
    ]


def test_a_stream_of_a_model_that_writes_parts_of_characters(random_model):
    model, tokenizer = random_model
    for text in ("drei Käse", "日本 🙂", "une fenêtre, déjà", "\x00"):
        for extra in (0, 3, 40):
            (greedy,) = translate(model, tokenizer, [text], beam=1, how=Batching(extra))
            assert "".join(stream(model, tokenizer, text, extra)) == greedy


def test_words_come_before_the_sentence_ends(bundled):
    words = stream(*bundled, LONG)
    assert [next(words), next(words)] == ["Plötzlich", " verlor"]
    assert torch.is_grad_enabled()
    words.close()


def test_two_streams_at_once(bundled):
    one, other = stream(*bundled, LONG), stream(*bundled, SHORT)
    both = list(itertools.zip_longest(one, other, fillvalue=""))
    joined = ["".join(words) for words in zip(*both)]
    assert joined == translate(*bundled, [LONG, SHORT], beam=1)


@pytest.mark.parametrize("text", ["", "  \n", "\u200b"])
def test_a_stream_of_nothing(bundled, text):
    assert list(stream(*bundled, text)) == []


def test_white_space_of_a_streamed_sentence_is_normalised(bundled):
    assert list(stream(*bundled, f" {SHORT}\n")) == list(stream(*bundled, SHORT))


@pytest.mark.parametrize(
    "arguments, said",
    [
        (([SHORT],), "sentence must be one string, not"),
        (
            ("word " * 2000,),
            r"sentence 1 \(index 0\) has .* tokens, more than the model's 1024",
        ),
        ((SHORT, -1), "extra must be at least 0"),
        ((SHORT, 50, -1), "deadline must be seconds"),
    ],
)
def test_a_stream_refuses_before_its_first_word(bundled, arguments, said):
    with pytest.raises(ValueError, match=said):
        stream(*bundled, *arguments)


# Deadlines


def test_a_deadline_of_plenty_changes_nothing(bundled):
    texts = [LONG, SHORT, ""]
    for beam in (1, 4):
        assert translate(*bundled, texts, beam, deadline=1000) == translate(
            *bundled, texts, beam
        )
    assert translate_n_best(*bundled, texts, deadline=1000) == translate_n_best(
        *bundled, texts
    )
    assert "".join(stream(*bundled, LONG, deadline=1000)) == "".join(
        stream(*bundled, LONG)
    )


@pytest.mark.parametrize("beam", [1, 4])
def test_a_deadline_of_nothing_is_said(bundled, beam):
    said = r"2 of 3 sentences are not translated after 0 s \(2 of them not begun\), .*\[1\]"
    with pytest.raises(TimeoutError, match=said) as late:
        translate(*bundled, ["", LONG, SHORT], beam, deadline=0)
    assert late.value.status == "not begun"
    blank, [entry] = translate_n_best(*bundled, ["", LONG], beam=beam, deadline=0)
    assert blank == [Translation("", 0.0)]
    assert (entry.text, entry.source, entry.status) == ("", LONG, "not begun")
    assert math.isnan(entry.score)
    assert str(entry) == "    nan  (not begun)"


def test_a_stream_that_was_not_begun_says_so(bundled):
    with pytest.raises(TimeoutError, match="before the sentence was begun") as late:
        next(stream(*bundled, LONG, deadline=0))
    assert late.value.status == "not begun"
    assert list(stream(*bundled, " ", deadline=0)) == []


def test_each_sentence_says_how_far_its_search_has_come(bundled, monkeypatch):
    """Of two batches the first, with the longest sentence, takes all the time there is."""
    monkeypatch.setattr(time, "monotonic", Clock())
    how = Batching(batch_tokens=1)
    lists = translate_n_best(*bundled, [SHORT, LONG, ""], how=how, deadline=9)
    assert [best[0].status for best in lists] == ["not begun", "partial", "finished"]
    assert lists[1][0].score < 0
    monkeypatch.setattr(time, "monotonic", Clock())
    with pytest.raises(TimeoutError, match="1 of them not begun") as late:
        translate(*bundled, [SHORT, LONG, ""], how=how, deadline=9)
    assert late.value.status == "partial"


class Clock:
    """Time that passes by a second each time somebody looks."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1
        return self.now


def test_what_a_search_has_written_by_its_deadline(bundled, monkeypatch):
    """First beginnings, then outputs that have ended; all say that the search has not, until it
    has, and finds what it finds without a deadline."""
    whole = translate_n_best(*bundled, [LONG], 2)[0]
    lengths, found = [], []
    while not found or found[0].status != "finished":
        monkeypatch.setattr(time, "monotonic", Clock())
        found = translate_n_best(*bundled, [LONG], 2, deadline=2 + len(lengths))[0]
        assert len({entry.status for entry in found}) == 1
        lengths.append(len(found[0].tokens))
    assert found == whole
    assert lengths[0] < 3
    assert 15 < len(lengths) < 30
    assert lengths[:10] == sorted(lengths[:10])


def test_a_stream_gives_the_words_that_were_done(bundled, monkeypatch):
    whole = list(stream(*bundled, LONG))
    monkeypatch.setattr(time, "monotonic", Clock())
    words = []
    with pytest.raises(TimeoutError) as late:
        words.extend(words.append(word) for word in stream(*bundled, LONG, deadline=9))
    assert late.value.status == "partial"
    words = [word for word in words if word]
    assert 0 < len(words) < len(whole)
    assert words == whole[: len(words)]


def test_a_sentence_is_done_with_its_last_token(bundled, monkeypatch):
    """The deadline that comes right after it takes nothing away."""
    monkeypatch.setattr(time, "monotonic", Clock())
    found = []
    for deadline in range(1, 40):
        try:
            found.append("".join(stream(*bundled, SHORT, deadline=deadline)))
            break
        except TimeoutError:
            continue
    monkeypatch.undo()
    assert found == translate(*bundled, [SHORT], beam=1)


def test_searches_of_ids_take_a_deadline(bundled):
    model, tokenizer = bundled
    source = torch.tensor([[*tokenizer.encode(SHORT), tokenizer.eos_id]])
    assert greedy_search(model, source, deadline=0) == [[]]
    assert greedy_search(model, source, deadline=99) == greedy_search(model, source)
    assert beam_search(model, source, deadline=0)[0][0].tokens == []
    assert beam_search(model, source, deadline=99) == beam_search(model, source)
    for deadline in (-1, float("nan"), float("inf"), "soon"):
        with pytest.raises(ValueError, match="deadline must be seconds"):
            beam_search(model, source, deadline=deadline)


# Items that cannot be taken


@pytest.mark.parametrize("bad", [None, 3, b"ab", "a\ud800", "word " * 2000])
@pytest.mark.parametrize("ask", [translate, translate_n_best, align, attention_maps])
def test_an_error_names_the_index_of_the_item(bundled, ask, bad):
    """Of a list of sentences, or of pairs, whose target it then is."""
    of_sentences = ask in (translate, translate_n_best)
    items = [SHORT, bad] if of_sentences else [(SHORT, SHORT), (SHORT, bad)]
    with pytest.raises(ValueError, match=r" 2 \(index 1\) "):
        ask(*bundled, items)


def test_evaluate_counts_blank_pairs_when_it_names_one(bundled):
    pairs = [(" ", SHORT), (SHORT, SHORT), (SHORT, None)]
    with pytest.raises(ValueError, match=r"number 3 \(index 2\) of targets is a None"):
        evaluate(*bundled, pairs)


# What a translation carries


def test_an_entry_carries_pieces_source_and_alignment(bundled):
    model, tokenizer = bundled
    (entry,) = translate_n_best(model, tokenizer, [f" {LONG} "], 1)[0]
    assert entry.source == LONG
    assert "".join(entry.tokens) == f" {entry.text}"
    assert entry.status == "finished"
    assert entry.alignment == align(model, tokenizer, [(LONG, entry.text)])[0]
    assert str(entry) == f"{entry.score:7.3f}  {entry.text}"


def test_an_entry_is_plain_data(bundled):
    entry = translate_n_best(*bundled, [SHORT], 1)[0][0]
    assert set(json.loads(json.dumps(dataclasses.asdict(entry)))) == {
        "text",
        "score",
        "tokens",
        "source",
        "status",
    }
    assert len({entry, copy.copy(entry)}) == 1
    assert len(pickle.dumps(entry)) < 1000
    with pytest.raises(ValueError, match="is a copy without its model: ask for its"):
        _ = pickle.loads(pickle.dumps(entry)).alignment
    known = entry.alignment
    assert pickle.loads(pickle.dumps(entry)).alignment == known


# Alignment


def test_the_alignment_of_a_known_pair(bundled):
    pair = ("The old cat sleeps.", "Die alte Katze schläft.")
    (found,) = align(*bundled, [pair])
    assert found == Alignment(
        ["The", "old", "cat", "sleeps", "."],
        ["Die", "alte", "Katze", "schläft", "."],
        [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)],
    )
    assert str(found) == "The→Die old→alte cat→Katze sleeps→schläft .→."


def test_words_that_change_places(bundled):
    """ "lost", the eleventh word, is the second in German."""
    (found,) = align(*bundled, zip([LONG], translate(*bundled, [LONG])))
    assert (found.source[10], found.target[1]) == ("lost", "verlor")
    assert (10, 1) in found.links


def test_links_are_those_of_the_grammar(bundled):
    examples = read_bundled("validation")[:60]
    found = align(*bundled, [(e.source, e.target) for e in examples])
    known = wrong = 0
    for example, pair in zip(examples, found):
        linked = {german for _, german in example.alignment}
        for link in pair.links:
            known += link[1] in linked
            wrong += link[1] in linked and link not in example.alignment
    assert known > 500
    assert wrong / known < 0.06


def test_each_target_word_has_one_link_in_any_batch(bundled):
    pairs = read_corpus("bundled", "validation")[:70]
    together = align(*bundled, iter(pairs))
    assert together[::23] == [align(*bundled, [pair])[0] for pair in pairs[::23]]
    for pair in together:
        assert [j for _, j in pair.links] == list(range(len(pair.target)))


def test_alignment_of_nothing(bundled):
    assert align(*bundled, []) == []
    blank, short = align(*bundled, [("", "Die Katze."), ("The  cat. ", "\tKatze")])
    assert blank == Alignment([], ["Die", "Katze", "."], [])
    assert short.source == ["The", "cat", "."]
    assert translate_n_best(*bundled, [""])[0][0].alignment == Alignment([], [], [])
    assert [j for _, j in short.links] == [0]


def test_alignment_is_refused_in_a_sentence(bundled):
    _, tokenizer = bundled
    config = RecurrenceConfig(tokenizer.vocab_size, 16, N=1)
    with pytest.raises(ValueError, match="no attention of the kind"):
        align(RecurrentEncoderDecoder(config), tokenizer, [("a", "b")])
    with pytest.raises(
        ValueError, match=r"sentence pair 1 \(index 0\) is not a source and a"
    ):
        align(*bundled, ["The cat."])
    with pytest.raises(ValueError, match="positions"):
        align(*bundled, [("The cat. " * 900, "Die Katze.")])


def test_alignment_names_the_sentence_that_is_too_long(bundled):
    with pytest.raises(
        ValueError, match=r"target 2 \(index 1\) has .* tokens, more than the model"
    ):
        align(*bundled, [("a", "b"), ("a", "word " * 2000)])


def test_what_stands_around_a_model(bundled):
    """A compiled model is searched and asked as it is; DistributedDataParallel's is refused."""
    model, tokenizer = bundled
    compiled = torch.compile(model, backend="eager")
    (plain,) = align(model, tokenizer, [(LONG, SHORT)])
    assert align(compiled, tokenizer, [(LONG, SHORT)]) == [plain]
    assert list(stream(compiled, tokenizer, SHORT)) == list(stream(*bundled, SHORT))
    around = torch.nn.Module()
    around.module = model
    ids = torch.tensor([[5, 2]])
    for ask in (
        lambda: stream(around, tokenizer, SHORT),
        lambda: align(around, tokenizer, [(SHORT, SHORT)]),
        lambda: view(around, tokenizer, SHORT),
        lambda: greedy_search(around, ids),
        lambda: beam_search(around, ids),
    ):
        with pytest.raises(ValueError, match="hand in model.module"):
            ask()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions(bundled, dtype):
    model, tokenizer = bundled
    model = copy.deepcopy(model).to(dtype)
    (text,) = translate(model, tokenizer, [SHORT], beam=1)
    assert "".join(stream(model, tokenizer, SHORT)) == text
    assert [j for _, j in align(model, tokenizer, [(SHORT, text)])[0].links] == list(
        range(5)
    )


def test_alignment_leaves_no_trace(bundled):
    model, tokenizer = bundled
    before = {name: part.__dict__.copy() for name, part in model.named_modules()}
    align(model, tokenizer, [(SHORT, SHORT)])
    assert before == {name: part.__dict__ for name, part in model.named_modules()}
    assert encode_pairs(tokenizer, [(SHORT, SHORT)])
