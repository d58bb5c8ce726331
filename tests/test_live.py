"""The model in the page: its JavaScript, run by node, beside Python's model, tokenizer and searches."""

import json
import random
import re
import shutil
import subprocess
from fnmatch import filter as filter_names
from functools import partial
from pathlib import Path

import pytest
import torch

import transformer as package
from transformer import Tokenizer, Transformer, TransformerConfig, load
from transformer.core.white_space import normalised
from transformer.corpora import read_aligned, read_bundled
from transformer.corpora.tokenizer import WORD
from transformer.fast.attention import MultiHeadAttention
from transformer.fast.model import Parts
from transformer.fast.search import beam_search, greedy_search
from transformer.language import Chat, LanguageConfig, LanguageModel
from transformer.models.edits import turned
from transformer.models.maps import (
    KINDS,
    attention_maps,
    attention_name,
    join_pieces,
    words_and_groups,
)
from transformer.models.recording import cache, edit
from transformer.runs.dialogues import dialogues
from transformer.views.pages import MODULES, engine_of, halves, merges_of
from transformer.views.widget import script
from transformer.visualization import silent

LIVE = Path(package.__file__).parent / "views" / "live"
ALL = sorted({name for names in MODULES.values() for name in names})
# JavaScript takes what a browser's text field may hold, whatever it is
HOSTILE = [
    "",
    " ",
    "  two  spaces ",
    "a\tb\r\nc",
    "</script><!-- & \"quotes\" 'more'",
    "</s><s><pad>",
    "\u202eright to left\u202c \u2066isolated\u2069 \u200fmark",
    "\ufeffmark of order",
    "naïve café, e\u0301",
    "größer ß ſ",
    "日本語とEnglish",
    "👩‍👩‍👧 and 🇩🇪",
    "x\u0085y\u00a0z\u2028w\u3000v",
    "١٢٣ ½ Ⅷ ²",
    "a_b __c__",
    "\x1c\x1d\x00\x7f",
    "don't 3.14",
    "нет ελληνικά",
    "𝔸𝔹 𐐷",
]
START = """
import {readFileSync} from "fs";
const given = JSON.parse(readFileSync(process.argv[2], "utf8"));
const tokenizer = given.tokenizer && new Tokenizer(given.tokenizer);
const model = given.config && new Model(given.config, tensorsOf(given.tensors, bytesOf(given.weights)));
const engine = {model, tokenizer, alpha: 0.6};
"""


@pytest.fixture(scope="module", autouse=True)
def _one_thread(one_thread):
    """Models as small as these gain nothing from a second core."""


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """node(expression, values): its value in JavaScript, with all modules' names and given = values."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("there is no node on this machine")
    folder = tmp_path_factory.mktemp("node")
    modules = (LIVE / f"{name}.mjs" for name in ALL)
    names = {
        path: ", ".join(
            re.findall(
                r"^export (?:function|class|const) (\w+)",
                path.read_text(encoding="utf8"),
                re.M,
            )
        )
        for path in modules
    }
    imports = "\n".join(
        f'import {{{some}}} from "{path.as_uri()}";' for path, some in names.items()
    )

    def run(expression, given=None):
        (folder / "given.json").write_text(json.dumps(given or {}), encoding="utf8")
        (folder / "run.mjs").write_text(
            f"{imports}\n{START}\nconsole.log(JSON.stringify({expression}));",
            encoding="utf8",
        )
        done = subprocess.run(
            [program, folder / "run.mjs", folder / "given.json"],
            capture_output=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr.decode()[-3000:]
        return json.loads(done.stdout)

    return run


def given(model, tokenizer=None, **more):
    """What a page gives the script of a model, and more."""
    own = {
        **engine_of(model, tokenizer or Tokenizer.train(["a"], 259)),
        "weights": halves(model),
    }
    return {**own, **({} if tokenizer else {"tokenizer": None}), **more}


@pytest.fixture(scope="module")
def bundled():
    return load()


def rounded(model):
    """The model with its weights rounded to half precision, as a page has them."""
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.half())
    return model.eval()


# Numbers and texts


def test_every_number_in_half_precision(node):
    expected = (
        torch.arange(2**16, dtype=torch.int32)
        .to(torch.uint16)
        .view(torch.float16)
        .double()
    )
    found = torch.tensor(
        node(
            "Array.from({length: 65536}, (_, i) => [fromHalf(i)].map("
            "x => Number.isFinite(x) ? x : String(x))[0]).map(x => x === 'Infinity' ? 1e300 : "
            "x === '-Infinity' ? -1e300 : x === 'NaN' ? 1e301 : x)"
        ),
        dtype=torch.float64,
    )
    expected = expected.nan_to_num(1e301, 1e300, -1e300)
    assert torch.equal(found, expected)


def texts():
    """Hostile ones, sentences, and signs at random."""
    chance, signs = random.Random(1), "".join(HOSTILE) + "abc  .,"
    mixed = [
        "".join(chance.choice(signs) for _ in range(chance.randrange(20)))
        for _ in range(150)
    ]
    return [
        *HOSTILE,
        *mixed,
        *(e.source for e in read_bundled("test")[:200]),
        *(e.target for e in read_bundled("hard")[:100]),
    ]


@pytest.mark.parametrize("vocab_size", [259, 300, None])
def test_the_same_tokens_and_words(node, bundled, vocab_size):
    tokenizer = bundled[1]
    if vocab_size:
        tokenizer = Tokenizer.train(
            [*HOSTILE, *(e.target for e in read_bundled("validation")[:50])], vocab_size
        )
    found = node(
        "given.texts.map(text => { const ids = tokenizer.encode(text);"
        "return [ids, tokenizer.decode(ids), tokenizer.words([...ids, tokenizer.eos])]; })",
        {"tokenizer": merges_of(tokenizer), "texts": texts()},
    )
    for text, (ids, again, words) in zip(texts(), found, strict=True):
        expected, groups = words_and_groups(tokenizer, text)
        assert ids == tokenizer.encode(text) and again == text
        assert (words["words"], words["groups"]) == (expected, groups.tolist()), repr(
            text
        )


def test_the_same_white_space(node):
    every = [chr(i) for i in range(0x110000) if not 0xD800 <= i < 0xE000]
    spaces = [c for c in every if c.isspace() or c in "\u200b\ufeff\u180e\xad"]
    lines = [f"{c}a {c}{c} b{c}" for c in spaces] + ["", "  "]
    found = node("given.lines.map(normalised)", {"lines": lines})
    assert found == [normalised(line) for line in lines]


def test_white_space_of_an_input_changes_nothing_in_the_page(node, bundled):
    model, tokenizer = bundled
    source, target = "The old dog sleeps.", "Der alte Hund schläft."
    looks = [
        {"text": source, "given": target, "search": "given"},
        {
            "text": " The\told  dog\u00a0sleeps.\n",
            "given": f"{target}  ",
            "search": "given",
        },
    ]
    values = given(model, tokenizer, looks=looks)
    one, other = node("given.looks.map(look => run(engine, look))", values)
    assert one == other


def test_ids_that_are_no_text(node, bundled):
    tokenizer, chance = bundled[1], random.Random(2)
    rows = [[chance.randrange(300) for _ in range(9)] for _ in range(100)]
    found = node(
        "given.rows.map(ids => tokenizer.decode(ids))",
        {"tokenizer": merges_of(tokenizer), "rows": rows},
    )
    assert found == [tokenizer.decode(ids) for ids in rows]


# The model


def grouped(config):
    return Transformer(config, Parts(attention=partial(MultiHeadAttention, h_kv=2)))


SIZES = dict(vocab_size=40, d_model=16, d_ff=24, N=2, h=4, max_positions=20)
MODELS = {
    "paper": (Transformer, {}),
    "pre-norm": (Transformer, {"norm_first": True}),
    "rotary": (Transformer, {"positions": "rotary"}),
    "learned": (Transformer, {"positions": "learned"}),
    "untied": (Transformer, {"tie_embeddings": False}),
    "widths": (Transformer, {"d_k": 6, "d_v": 3, "N": 3}),
    "grouped": (grouped, {"positions": "rotary", "norm_first": True}),
}


def made(name, seed=0):
    """A small model with weights at random, rounded, far from its first values."""
    make, changes = MODELS[name]
    torch.manual_seed(seed)
    model = make(TransformerConfig(**{**SIZES, **changes}))
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(2 * p + 0.1 * torch.randn(p.shape))
    return rounded(model)


SOURCE, TARGET = [5, 9, 31, 7, 2], [1, 8, 30, 11, 12, 6]


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_the_same_logits_and_weights(node, name):
    model = made(name)
    with cache(model, "*.weights") as seen:
        logits = model(torch.tensor([SOURCE]), torch.tensor([TARGET]))[0]
    ran = (
        "(() => { const look = {record: newRecord(model.config)}, state = model.start(given.source, look);"
        "return [given.target.map(token => [...model.step(token, state, look)]), look.record.weights]; })()"
    )
    found, weights = node(
        ran.replace(
            "look.record.weights",
            "Object.fromEntries(KINDS.map(kind => [kind, "
            "look.record.weights[kind].map(heads => heads.map(rows => rows.map(row => "
            "[...row, ...new Array(20 - row.length).fill(0)])))]))",
        ),
        given(model, source=SOURCE, target=TARGET),
    )
    torch.testing.assert_close(torch.tensor(found), logits, atol=1e-4, rtol=0)
    for kind in KINDS:
        pattern = f"{attention_name(kind)}.weights"
        expected = torch.stack([seen[name][0] for name in filter_names(seen, pattern)])
        ours = torch.tensor(weights[kind])[..., : expected.shape[-1]]
        torch.testing.assert_close(ours, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", MODELS)
def test_the_same_searches(node, name):
    """Most of these models never write the end mark: the limit ends the outputs."""
    settings = [(1, 0.6), (2, 0.0), (4, 0.6), (5, 1.5)]
    for seed in range(2):
        model = made(name, seed)
        found = node(
            "[greedy(model, given.source), ...given.settings.map(([K, alpha]) => "
            "beam(model, given.source, K, alpha))]",
            given(model, source=SOURCE, settings=settings),
        )
        source = torch.tensor([SOURCE])
        expected = [
            greedy_search(model, source)[0],
            *(
                beam_search(model, source, K, alpha)[0][0].tokens
                for K, alpha in settings
            ),
        ]
        assert found == expected


def test_a_sentence_too_long(node):
    said = node(
        "(() => { try { model.encode(new Array(21).fill(5)) } catch (error) { return error.message } })()",
        given(made("paper")),
    )
    assert said == "The sentence is longer than the model's 20 positions."


@pytest.mark.system
@pytest.mark.parametrize("name", ["bundled", "tatoeba"])
def test_a_model_that_comes_along_translates_the_same(node, name):
    model, tokenizer = load(name)
    own = [source for source, *_ in read_aligned()]
    sentences = (
        own if name == "tatoeba" else [e.source for e in read_bundled("test")[:200]]
    )
    encoded = [[*tokenizer.encode(text), tokenizer.eos_id] for text in sentences]
    found = node(
        "given.texts.map(text => tokenizer.encode(text))",
        {"tokenizer": merges_of(tokenizer), "texts": sentences},
    )
    assert [[*ids, tokenizer.eos_id] for ids in found] == encoded
    found = node(
        "given.encoded.map((ids, i) => [greedy(model, ids), i % 5 ? null : beam(model, ids, 4, 0.6)])",
        given(model, encoded=encoded),
    )
    for ids, (greedily, with_beam) in zip(encoded, found, strict=True):
        source = torch.tensor([ids])
        assert greedily == greedy_search(model, source)[0]
        assert with_beam is None or with_beam == beam_search(model, source)[0][0].tokens


@pytest.mark.system
def test_half_precision_changes_hardly_a_translation(bundled):
    """Weights that differ from the bundled ones by less than their rounding: 198 of 200 sentences stay."""
    from transformer import translate

    whole, tokenizer = load()
    torch.manual_seed(0)
    with torch.no_grad():
        for p in whole.parameters():
            p.mul_(1 + (2 * torch.rand(p.shape) - 1) * 2**-12)
    sentences = [e.source for e in read_bundled("test")[:200]]
    outputs = [
        translate(model, tokenizer, sentences, beam=1) for model in (whole, bundled[0])
    ]
    assert sum(a == b for a, b in zip(*outputs)) >= 198


# The language model and its chat

SPEAKERS = {
    "rotary": {},
    "paper": {"positions": "sinusoidal", "norm_first": False},
    "learned": {"positions": "learned", "tie_embeddings": False},
}


def speaker(name="rotary", seed=0, **changes):
    """A small language model with weights at random, rounded."""
    torch.manual_seed(seed)
    model = LanguageModel(LanguageConfig(**{**SIZES, **SPEAKERS[name], **changes}))
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(2 * p + 0.1 * torch.randn(p.shape))
    return rounded(model)


@pytest.fixture(scope="module")
def bot():
    model, tokenizer = load("chat")
    return rounded(model), tokenizer


@pytest.mark.parametrize("name", SPEAKERS)
@torch.no_grad()
def test_a_language_model_gives_the_same_logits(node, name):
    """Token by token after nothing, and after a source that is read first."""
    model, ids = speaker(name), SOURCE + TARGET
    found = node(
        "[[], given.source].map(source => { const state = model.start(source);"
        "return given.ids.slice(source.length).map(token => [...model.step(token, state)]); })",
        given(model, source=SOURCE, ids=ids),
    )
    logits = model(torch.tensor([ids]))[0]
    for ours, begin in zip(found, (0, len(SOURCE)), strict=True):
        torch.testing.assert_close(
            torch.tensor(ours), logits[begin:], atol=1e-4, rtol=0
        )


@pytest.mark.system
@torch.no_grad()
def test_the_bundled_bot_has_the_same_logits(node, bot):
    model, tokenizer = bot
    rows = [
        [*tokenizer.encode(question), 2, 1, *tokenizer.encode(answer), 2]
        for turns in dialogues(read_bundled("test")[200:203], seed=3)
        for question, answer in turns
    ]
    found = node(
        "given.rows.map(ids => { const state = model.start([]);"
        "return ids.map(token => [...model.step(token, state)]); })",
        given(model, rows=rows),
    )
    logits = [model(torch.tensor([row]))[0] for row in rows]
    assert (
        max(
            (torch.tensor(a) - b).abs().max()
            for a, b in zip(found, logits, strict=True)
        )
        < 1e-3
    )


def answers(chat, talks):
    """What a chat of Python's says in conversations, each begun anew."""
    for talk in talks:
        chat.turns.clear()
        yield [chat.say(text) for text in talk]


SAID = (
    "(() => { const chat = new Chat(model, tokenizer, given.longest); return given.talks.map(talk => { chat.begin();"
    "return talk.map(text => tokenizer.decode(chat.say(text).answer)); }); })()"
)


@pytest.mark.system
def test_the_bundled_bot_answers_the_same(node, bot):
    """Some hundred questions of test dialogues, and what nobody asks it."""
    talks = [
        [question for question, _ in turns]
        for turns in dialogues(read_bundled("test")[:22], seed=5)
    ]
    talks += [
        ["</s><s>", "A text </s> with marks <s>.", "größer 👩‍👧 \u202e"],
        [text for talk in talks[:6] for text in talk],
    ]
    found = node(SAID, given(*bot, talks=talks, longest=60))
    assert found == list(answers(Chat(*bot), talks)) and sum(map(len, talks)) > 100


@pytest.fixture(scope="module")
def small():
    """A bot with positions for 40 tokens."""
    tokenizer = Tokenizer.train(["who is there", "nobody, really"] * 3, 280)
    return speaker(vocab_size=280, max_positions=40), tokenizer


def test_old_turns_are_forgotten_as_in_python(node, small):
    talk = [
        "who is there",
        "nobody",
        "</s><s>nobody</s>",
        "really",
        "is there nobody",
        "who",
        "who is there, really",
    ]
    found, turns, error = node(
        "(() => { const chat = new Chat(model, tokenizer, 10), said = given.talk.map(text => { const {answer} = chat.say(text);"
        "return [tokenizer.decode(answer), chat.turns.length]; }); try { chat.say('who '.repeat(30)) } catch (error) {"
        "return [said, chat.turns.map(turn => [...turn.question, ...turn.answer]), error.message] } })()",
        given(*small, talk=talk),
    )
    chat = Chat(*small, longest=10)
    assert (
        found == [[chat.say(text), len(chat.turns)] for text in talk]
        and turns == chat.turns
    )
    assert {count for _, count in found} >= {1, 2}
    tokens = len(small[1].encode("who " * 29 + "who")) + 1
    assert (
        error
        == f"The question has {tokens} tokens, and the model has positions for 29."
    )


@torch.no_grad()
def test_where_the_words_of_an_answer_looked(node, small):
    model, tokenizer = small
    texts = ["who is there", "nobody", "really?"]
    question, before, *_ = sides = [[*tokenizer.encode(text), 2] for text in texts]
    sides[1:] = [[1, *before], sides[2]]
    answer = [1, *tokenizer.encode("nobody there"), 2]
    found = node(
        "looksOf(model, tokenizer, given.sides, given.answer).map(heads => heads.map(rows => "
        "rows.map(row => [...row])))",
        given(model, tokenizer, sides=sides, answer=answer),
    )
    columns, count = [], 0
    for text, begun in zip([*texts, "nobody there"], (0, 1, 0, 1), strict=True):
        groups = words_and_groups(tokenizer, text)[1] + begun
        columns += [*([count] * begun), *(groups + count).tolist()]
        count += int(groups[-1]) + 1
    ids, start = sum(sides, []) + answer, len(sum(sides, []))
    with cache(model, "*.weights") as seen:
        model(torch.tensor([ids]))
    rows = words_and_groups(tokenizer, "nobody there")[1]
    for layer, ours in enumerate(found):
        weights = seen[f"decoder.{layer}.self_attention.weights"][0][:, start:-1]
        expected = join_pieces(weights, rows, torch.tensor(columns))
        ours = torch.tensor(ours)
        torch.testing.assert_close(ours[:, 1:], expected, atol=1e-5, rtol=0)
        assert (
            ours[:, 0].abs().max() == 0
        )  # nothing is written where the begin mark stands


# Changes


@torch.no_grad()
def logits_of(model):
    return model(torch.tensor([SOURCE]), torch.tensor([TARGET]))[0]


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_the_same_changes_as_in_notebook_19(node, kind):
    model = made("paper")
    edits = [
        {"kind": kind, "layer": 1, "head": 2, "silent": True},
        {
            "kind": kind,
            "layer": 0,
            "head": 1,
            "rows": [3],
            "columns": [1, 2],
            "share": 1,
        },
    ]
    found = node(
        "given.edits.map(edit => { const look = {edits: [edit]}, state = model.start(given.source, look);"
        "return given.target.map(token => [...model.step(token, state, look)]); })",
        given(model, source=SOURCE, target=TARGET, edits=edits),
    )
    n = len(TARGET) if kind == "decoder" else len(SOURCE)
    column = torch.zeros(1, n)
    column[0, [1, 2]] = 0.5
    turn = turned(1, torch.tensor([3]), column)
    changes = [(1, "heads", silent(2)), (0, "weights", turn)]
    plain = logits_of(model)
    for (layer, point, change), ours in zip(changes, found, strict=True):
        with edit(model, {f"{attention_name(kind, layer)}.{point}": change}):
            expected = logits_of(model)
        assert (expected - plain).abs().max() > 1e-2
        torch.testing.assert_close(torch.tensor(ours), expected, atol=1e-4, rtol=0)


def test_a_share_of_attention(node):
    some = node(
        "[turned([.5, .3, .2], [1], .6), turned([.5, .3, .2], [1, 2], 1), turned([0, 1, 0], [1], .4),"
        "turned([.5, .5], [0, 1], .2), turned([.5, .5], [7], 1), turned([.7, .3], [1, 7], .5)]"
    )
    expected = [
        [2 / 7, 0.6, 0.8 / 7],
        [0, 0.5, 0.5],
        [0.3, 0.4, 0.3],
        [0.5, 0.5],
        [0.5, 0.5],
        [0.5, 0.5],
    ]
    for ours, theirs in zip(some, expected, strict=True):
        assert ours == pytest.approx(
            [x if x != 2 / 7 else 0.4 * 5 / 7 for x in theirs], abs=1e-12
        )


# What the page shows


def test_words_are_those_of_the_maps(node, bundled):
    """Labels, weights word by word, probabilities: of a translation that is read."""
    model, tokenizer = bundled
    pairs = [
        ("Hello, unbelievable antidisestablishment!", "Quatsch mit Soße."),
        ("The cat lost its ball.", ""),
    ]
    found = node(
        "given.pairs.map(([text, given]) => run(engine, {text, given, search: 'given'}))",
        given(model, tokenizer, pairs=pairs),
    )
    for ours, maps in zip(found, attention_maps(model, tokenizer, pairs), strict=True):
        for kind in ("encoder", "decoder", "cross"):
            columns, rows = maps.labels(kind)
            side = ours["sides"][kind]
            assert (side["rows"]["words"], side["columns"]["words"]) == (rows, columns)
            values = [
                [
                    [[row[str(c)] for c in range(len(row))] for row in head]
                    for head in heads
                ]
                for heads in ours["maps"]["raw"][kind]
            ]
            torch.testing.assert_close(
                torch.tensor(values), getattr(maps, kind), atol=1e-4, rtol=0
            )


@torch.no_grad()
def test_the_length_of_what_a_weight_brings(node):
    """Weight times |W_O v| of each head, as it is defined."""
    model = made("grouped")
    found = node(
        "Object.values(read(model, given.source, given.target.slice(1)).norms.cross[1])"
        ".map(rows => rows.map(row => [...row]))",
        given(model, source=SOURCE, target=TARGET),
    )
    W_O = model.decoder.layers[1].cross_attention.W_O.weight
    with cache(model, "decoder.1.cross_attention.*") as seen:
        model(torch.tensor([SOURCE]), torch.tensor([TARGET[:-1]]))
    weights = seen["decoder.1.cross_attention.weights"][0]  # (h, T, S)
    v = seen["decoder.1.cross_attention.values"][0]  # (h, S, d_v)
    parts = W_O.unflatten(1, (model.config.h, -1))  # (d_model, h, d_v)
    lengths = torch.einsum("dhi,hsi->hsd", parts, v).norm(dim=-1)  # (h, S)
    torch.testing.assert_close(
        torch.tensor(found), weights * lengths[:, None], atol=1e-4, rtol=0
    )


def test_the_likeliest_tokens(node, bundled):
    model, tokenizer = bundled
    sentence = "The cat lost its ball."
    found = node(
        "run(engine, {text: given.text, search: 1})",
        given(model, tokenizer, text=sentence),
    )
    source = torch.tensor([[*tokenizer.encode(sentence), tokenizer.eos_id]])
    (ids,) = greedy_search(model, source)
    assert found["text"] == tokenizer.decode(ids) and found["steps"] == len(ids)
    with torch.no_grad():
        chances = model(source, torch.tensor([[tokenizer.bos_id, *ids[:-1]]]))[
            0
        ].softmax(dim=-1)
    for step, row, token in zip(found["likely"], chances, ids, strict=True):
        best = row.topk(5)
        assert [one["chance"] for one in step] == pytest.approx(
            best.values.tolist(), abs=1e-4
        )
        assert step[0]["written"] and best.indices[0] == token


def test_pieces_are_joined_as_in_python(node):
    torch.manual_seed(0)
    weights, rows, columns = torch.rand(5, 6), [0, 0, 1, 2, 2], [0, 1, 1, 1, 2, 3]
    found = node(
        "joinPieces(given.weights, given.rows, given.columns, 3, 4).map(row => [...row])",
        {"weights": weights.tolist(), "rows": rows, "columns": columns},
    )
    torch.testing.assert_close(
        torch.tensor(found),
        join_pieces(weights, torch.tensor(rows), torch.tensor(columns)),
    )


def test_what_changed_and_what_the_corpus_knows(node):
    found = node(
        "[matched(['a', 'b', 'c', 'd'], ['a', 'x', 'c', 'c', 'd']), matched([], ['a']), matched(['a'], [])]"
    )
    assert found == [[0, -1, 2, -1, 3], [-1], []]
    example = next(e for e in read_bundled("test") if e.pronouns)
    words, german = WORD.findall(example.source), WORD.findall(example.target)
    gold = {
        "target": example.target,
        "alignment": sorted(example.alignment),
        "pronouns": [
            [[p.index, p.antecedent] for p in both] for both in example.pronouns
        ],
    }
    sides = {
        "cross": {"rows": {"words": ["Ja", *german[:-1], "</s>"]}}
    }  # one word more, the last one lacks
    links = node("goldLinks(given.gold, given.sides)", {"gold": gold, "sides": sides})
    english, target = example.pronouns[0]
    assert words[english.index].lower() in ("its", "his", "her", "their") and links[
        "encoder"
    ][0] == [english.index, english.antecedent]
    assert links["decoder"][0] == [target.index + 1, target.antecedent + 2]
    assert sorted(map(tuple, links["cross"])) == sorted(
        (t + 1, s) for s, t in example.alignment if t < len(german) - 1
    )
    assert node(
        "verdicts([[0, 1], [0, 2], [1, 0]], [[.1, .2, .7], [.1, .9, 0], [1, 0, 0]])"
    ) == {"0": True, "1": False}


def test_invisible_signs_are_shown(node):
    assert node("shown('a\\u202eb\\u0000\\u2028c')") == "a⟨U+202E⟩b⟨U+0000⟩⟨U+2028⟩c"
    assert (
        node("sentenceOf('its', [.83, .005, .12], ['cat', 'x', 'ball'])")
        == "“its” looks at: cat 83 %, ball 12 %"
    )


# The modules themselves


def test_modules_are_small_and_join(node):
    """No function is over 30 lines, no line over 120 columns; joined, no name is defined twice."""
    for name in sorted(path.stem for path in LIVE.glob("*.mjs")):
        lines = (LIVE / f"{name}.mjs").read_text(encoding="utf8").splitlines()
        assert max(map(len, lines)) <= 120 and len(lines) < 330, name
        starts = [
            i
            for i, line in enumerate(lines)
            if re.match(
                r"(export )?function |  (?!for|if|while)(get )?\w+\(.*\) \{$", line
            )
        ]
        for start in starts:
            indent = re.match(" *", lines[start])[0]
            end = next(
                (i for i in range(start + 1, len(lines)) if lines[i] == f"{indent}}}"),
                start,
            )
            assert end - start < 30, (name, lines[start])
    for page in MODULES:
        joined = script(MODULES[page])
        assert not re.search(r"^(import|export)\b", joined, re.M)
        names = re.findall(r"^(?:function|class|const) (\w+)", joined, re.M)
        assert len(names) == len(set(names)) and f"start{page.title()}" in names
