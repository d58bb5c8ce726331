"""Figures 3 to 5: which row and column means what, and the scores of heads, on planted weights."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F

from transformer import (
    Transformer,
    TransformerConfig,
    bleu,
    load,
    translate,
)
from transformer.corpora import Example, Pronoun, read_aligned, read_bundled
from transformer.corpora.tokenizer import WORD, Tokenizer
from transformer.data import collate, encode_pairs
from transformer.experiments.attention import head_costs, head_distance, head_entropy
from transformer.fast.attention import MultiHeadAttention
from transformer.models import head_scores
from transformer.models.edits import paste, turned
from transformer.models.gold import (
    Turn,
    changed,
    determiners,
    encode_turns,
    following,
    labelled_vectors,
    likeliest_owner,
    made_up,
    next_words,
    noun_turns,
    one_token_nouns,
    owner_counts,
    owner_shares,
    owner_turns,
    parts_right,
    probe_accuracy,
    read_genders,
    references,
    relabelled,
    right_words,
    share,
    word_classes,
)
from transformer.models.head_scores import (
    alignment_error_rate,
    best_source_words,
    cross_head_errors,
    diagonal_error,
    head_similarity,
    link,
    link_accuracy,
    link_baselines,
    look_back_hits,
    norm_weighted,
    score_attention,
    separated_verbs,
    shuffled,
)
from transformer.models.maps import (
    AttentionMaps,
    all_maps,
    attention_maps,
    attention_name,
    join_pieces,
    maps_of_pair,
    words_and_groups,
)
from transformer.models.probing import encoder_layers, linear_probe
from transformer.models.recording import cache, edit
from transformer.teaching.exercises.visualization import looks_away
from transformer.visualization import silent

KINDS = ("encoder", "decoder", "cross")
PAIRS = [
    ("The gardener lost its ball.", "Der Gärtner verlor seinen Ball."),
    ("It rained.", "Es hat gestern den ganzen Tag geregnet."),
]


@pytest.fixture(scope="module")
def tokenizer():
    """So few types that most words have several pieces."""
    return Tokenizer.train([text for pair in PAIRS for text in pair], 275)


@pytest.fixture(scope="module")
def model(tokenizer):
    torch.manual_seed(0)
    model = Transformer(
        TransformerConfig(tokenizer.vocab_size, d_model=16, d_ff=32, N=2, h=2)
    ).eval()
    for parameter in model.parameters():
        parameter.data.mul_(2.0)  # far from even weights
    return model


def planted(shape, *places):
    """Weights of one layer and one head: zero but for ones at places."""
    weights = torch.zeros(1, 1, *shape)
    for row, column in places:
        weights[0, 0, row, column] = 1.0
    return weights


# Rows and columns


def test_words_and_groups(tokenizer):
    words, groups = words_and_groups(tokenizer, "The gardener lost.")
    assert words == ["The", "gardener", "lost", ".", "</s>"]
    assert len(groups) == len(tokenizer.encode("The gardener lost.")) + 1
    assert sorted(set(groups.tolist())) == [
        0,
        1,
        2,
        3,
        4,
    ] and groups.tolist() == sorted(groups.tolist())


def test_joined_pieces_by_hand():
    weights = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])
    joined = join_pieces(weights, torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]))
    torch.testing.assert_close(joined, torch.tensor([[0.3, 0.7], [0.2, 0.8]]))


def test_a_word_without_a_piece_has_a_row_of_zeros():
    """As where one token stands for three dots."""
    joined = join_pieces(
        torch.tensor([[0.5, 0.5], [0.1, 0.9]]),
        torch.tensor([0, 2]),
        torch.tensor([0, 1]),
    )
    torch.testing.assert_close(
        joined, torch.tensor([[0.5, 0.5], [0.0, 0.0], [0.1, 0.9]])
    )


def test_a_last_word_without_a_piece_has_a_column():
    """As a zero-width space, which SentencePiece leaves out."""
    words, groups = ["wait", "\u200b", "</s>"], torch.tensor([0, 2])
    layers = {
        "encoder": planted((2, 2), (0, 0)),
        "decoder": planted((2, 2), (0, 0)),
        "cross": planted((2, 2), (0, 0)),
    }
    maps = maps_of_pair(layers, (words, groups), (words, groups))
    assert (
        maps.encoder.shape[-2:]
        == maps.decoder.shape[-2:]
        == maps.cross.shape[-2:]
        == (3, 3)
    )


def test_labels_of_planted_weights():
    """Source "go on", target "Mach wei|ter" (weiter in two pieces): tokens Mach, wei, ter, </s>."""
    layers = {
        "encoder": planted((3, 3), (1, 0)),
        "decoder": planted((4, 4), (0, 0), (1, 1), (2, 2), (3, 3)),
        "cross": planted((4, 3), (0, 0), (1, 1), (2, 2)),
    }
    maps = maps_of_pair(
        layers,
        (["go", "on", "</s>"], torch.arange(3)),
        (["Mach", "weiter", "</s>"], torch.tensor([0, 1, 1, 2])),
    )
    source, target, read = (
        {word: i for i, word in enumerate(labels)}
        for labels in (maps.source, maps.target, maps.read)
    )
    assert maps.read == ["<s>", "Mach", "weiter"]
    assert maps.encoder[0, 0, source["on"], source["go"]] == 1
    assert (
        maps.cross[0, 0, target["Mach"], source["go"]] == 1
    )  # the first step: only the begin mark was read
    assert (
        maps.cross[0, 0, target["weiter"], source["on"]] == 0.5
    )  # the mean of its two pieces
    assert maps.cross[0, 0, target["weiter"], source["</s>"]] == 0.5
    assert maps.decoder[0, 0, target["Mach"], read["<s>"]] == 1
    assert (
        maps.decoder[0, 0, target["weiter"], read["Mach"]] == 0.5
    )  # "wei" is produced where Mach was read,
    assert (
        maps.decoder[0, 0, target["weiter"], read["weiter"]] == 0.5
    )  # "ter" where "wei" was read
    assert maps.decoder[0, 0, target["</s>"], read["weiter"]] == 1


def test_maps_equal_a_loop_over_the_tokens(model, tokenizer):
    for pair in PAIRS:
        (maps,) = attention_maps(model, tokenizer, [pair])
        batch = collate(encode_pairs(tokenizer, [pair]))
        with cache(model, "*.weights") as seen, torch.no_grad():
            model(batch.source, batch.decoder_input)
        s, t = (
            [*tokenizer.word_of_each_piece(text), len(WORD.findall(text))]
            for text in pair
        )
        sides = {
            "encoder": (s, s, "encoder.{}.self_attention.weights"),
            "decoder": (
                t,
                [0, *(word + 1 for word in t[:-1])],
                "decoder.{}.self_attention.weights",
            ),
            "cross": (t, s, "decoder.{}.cross_attention.weights"),
        }
        for kind, (rows, columns, name) in sides.items():
            for n in range(2):
                weights = seen[name.format(n)]
                expected = torch.zeros(2, max(rows) + 1, max(columns) + 1)
                for r, row in enumerate(rows):
                    for c, column in enumerate(columns):
                        expected[:, row, column] += weights[0, :, r, c] / rows.count(
                            row
                        )
                torch.testing.assert_close(getattr(maps, kind)[n], expected)


def test_row_t_is_the_step_that_produces_word_t(model, tokenizer):
    """Another word t changes nothing up to row t (it is not read yet), and the row after it."""
    t = 2
    (source, target), other = PAIRS[0], "Der Gärtner fand seinen Ball."
    one, two = attention_maps(model, tokenizer, [(source, target), (source, other)])
    for kind in ("cross", "decoder"):
        difference = (getattr(one, kind) - getattr(two, kind)).abs().amax(dim=(0, 1, 3))
        assert difference[:t].max() < 1e-6 < difference[t + 1]
    assert one.target[t] == "verlor" and two.target[t] == "fand"


@pytest.mark.parametrize(
    "source, target",
    [*PAIRS, ("", ""), ("Good day. ", "Guten Tag.  "), (" ", "\n"), ("a", "")],
)
def test_shapes_and_sums_of_any_texts(model, tokenizer, source, target):
    """Empty ones, and white space at their ends, too."""
    (maps,) = attention_maps(model, tokenizer, [(source, target)])
    for kind, rows, columns in (
        ("encoder", maps.source, maps.source),
        ("decoder", maps.target, maps.read),
        ("cross", maps.target, maps.source),
    ):
        weights = getattr(maps, kind)
        assert weights.shape[2:] == (len(rows), len(columns))
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:3]))


def test_padding_does_not_leak(model, tokenizer):
    together = attention_maps(model, tokenizer, PAIRS)
    for pair, maps, again in zip(
        PAIRS, together, all_maps(model, tokenizer, PAIRS, size=1)
    ):
        (alone,) = attention_maps(model, tokenizer, [pair])
        for kind in KINDS:
            torch.testing.assert_close(
                getattr(maps, kind), getattr(alone, kind), atol=1e-5, rtol=0
            )
            assert torch.equal(getattr(again, kind), getattr(alone, kind))


# Alignment


def test_best_source_words_leave_the_end_marks_out():
    cross = torch.tensor(
        [[0.1, 0.2, 0.7], [0.4, 0.3, 0.3], [0.9, 0.1, 0.0]]
    )  # the third column and row: end marks
    assert best_source_words(cross).tolist() == [1, 0]


@pytest.mark.parametrize(
    "predicted, gold, error",
    [
        ([{(0, 0)}], [{(0, 0)}], 0.0),
        ([{(0, 0), (1, 1)}], [{(0, 0), (2, 1)}], 0.5),
        ([{(0, 1)}], [{(1, 0)}], 1.0),
        (
            [{(0, 0), (1, 1), (2, 2)}, {(0, 0)}],
            [{(0, 0)}, {(0, 0), (0, 1)}],
            1 - 4 / 7,
        ),  # over all, not a mean of two
    ],
)
def test_alignment_error_rate_by_hand(predicted, gold, error):
    assert alignment_error_rate(predicted, gold) == pytest.approx(error)


def maps_with(encoder=None, decoder=None, cross=None, S=4, T=4):
    """`AttentionMaps` of S source and T target words, end marks counted, with the given weights."""

    def words(n):
        return [*"abcdefghij"[: n - 1], "</s>"]

    sizes = {"encoder": (S, S), "decoder": (T, T), "cross": (T, S)}
    given = {"encoder": encoder, "decoder": decoder, "cross": cross}
    return AttentionMaps(
        words(S),
        words(T),
        **{
            kind: torch.zeros(1, 1, *sizes[kind]) if weights is None else weights
            for kind, weights in given.items()
        },
    )


def test_head_errors_on_planted_weights():
    """Gold links are (source, target); head 2 follows them, head 1 always looks at the first word."""
    gold = {(1, 0), (0, 1), (2, 2)}
    first = planted((4, 4), (0, 0), (1, 0), (2, 0))
    right = planted((4, 4), (0, 1), (1, 0), (2, 2))  # rows are target words
    errors = cross_head_errors(
        [maps_with(cross=torch.cat([first, right], dim=1))], [gold]
    )
    torch.testing.assert_close(errors, torch.tensor([[2 / 3, 0.0]]))


def test_the_diagonal():
    square, wide = (
        maps_with(),
        maps_with(cross=torch.zeros(1, 1, 3, 5), S=5, T=3),
    )  # end marks are not linked
    assert diagonal_error([square], [{(0, 0), (1, 1), (2, 2)}]) == 0
    assert (
        diagonal_error([wide], [{(0, 0), (2, 1)}]) == 0
    )  # word 1 of 2 falls on word 2 of 4
    assert diagonal_error(
        [square, wide], [{(0, 0), (1, 1), (2, 2)}, {(1, 0), (3, 1)}]
    ) == pytest.approx(0.4)


# Pronouns


def example(english, german, source="x y z its w"):
    return Example(source, "", frozenset(), ((english, german),), ())


ENGLISH, GERMAN = Pronoun(3, 1, (0, 1, 2)), Pronoun(3, 2, (0, 2, 4))


def test_link_on_planted_weights():
    """The row of the pronoun over the candidate nouns; a decoder column is one later, and only written nouns count."""
    torch.manual_seed(0)
    maps = maps_with(
        torch.rand(2, 3, 6, 6), torch.rand(2, 3, 6, 6), torch.rand(2, 3, 6, 6), S=6, T=6
    )
    for kind, columns in (
        ("encoder", [0, 1, 2]),
        ("decoder", [1, 3]),
        ("cross", [0, 1, 2]),
    ):
        weights, antecedent = link(maps, kind, ENGLISH, GERMAN)
        assert (
            torch.equal(weights, getattr(maps, kind)[:, :, 3][:, :, columns])
            and antecedent == 1
        )
    other = Pronoun(4, 2, (0, 2))
    assert torch.equal(
        link(maps, "cross", ENGLISH, other)[0], maps.cross[:, :, 4, :3]
    )  # German row, English columns
    assert torch.equal(
        link(maps, "encoder", ENGLISH, other)[0], maps.encoder[:, :, 3, :3]
    )


@pytest.mark.parametrize(
    "kind, right, wrong",
    [
        ("encoder", (3, 1), (3, 2)),
        ("decoder", (3, 3), (3, 1)),
        ("cross", (3, 1), (3, 0)),
    ],
)
def test_link_accuracy_on_planted_weights(kind, right, wrong):
    weights = [
        torch.cat([planted((6, 6), right), planted((6, 6), place)], dim=1)
        for place in (right, wrong)
    ]
    maps = [maps_with(**{kind: w}, S=6, T=6) for w in weights]
    for name in {"encoder", "decoder", "cross"} - {kind}:
        maps = [
            AttentionMaps(**{**vars(m), name: torch.zeros(1, 2, 6, 6)}) for m in maps
        ]
    assert link_accuracy(maps, [example(ENGLISH, GERMAN)] * 2, kind).tolist() == [
        [1.0, 0.5]
    ]


def test_only_its_counts():
    his, its = example(ENGLISH, GERMAN, "x y z his w"), example(ENGLISH, GERMAN)
    assert references([his, its]) == [(1, ENGLISH, GERMAN)]


def test_link_baselines_by_hand():
    examples = [
        example(Pronoun(3, 1, (0, 1, 2)), GERMAN),
        example(Pronoun(3, 0, (0, 4)), GERMAN),
        example(Pronoun(3, 2, (1, 2)), GERMAN),
        example(Pronoun(3, 4, (4, 5)), GERMAN),
    ]  # no noun before it
    assert link_baselines(examples) == {
        "chance": pytest.approx((1 / 3 + 3 / 2) / 4),
        "nearest noun": 0.5,
        "first noun": 0.5,
    }


def test_likeliest_owner_by_hand():
    """In "x y z its w" x is a candidate once and the owner never, y in one of two cases, z once, never, w in its only case."""
    examples = [
        example(Pronoun(3, 1, (0, 1, 2)), GERMAN),
        example(Pronoun(3, 4, (1, 4)), GERMAN),
    ]
    shares = owner_shares(examples)
    assert shares == {"x": 0, "y": 0.5, "z": 0, "w": 1}
    assert likeliest_owner(examples, shares) == 1
    assert (
        likeliest_owner(examples, {"y": 0.1}) == 0.5
    )  # what training never saw comes last


def test_separated_verbs_by_hand():
    """One English word with two German ones, three or more apart; not three, not near; a verb of two words once."""
    links = [
        {(0, 0), (1, 1), (1, 5), (2, 2)},
        {(1, 1), (1, 3)},
        {(1, 0), (1, 3), (1, 6)},
        {(0, 0), (1, 4)},
        {(3, 6), (3, 2)},
        {(2, 1), (2, 4)},
        {(1, 1), (4, 1), (1, 5), (4, 5)},
    ]
    examples = [Example("", "", frozenset(pairs), (), ()) for pairs in links]
    assert separated_verbs(examples) == [(0, 1, 5), (4, 2, 6), (5, 1, 4), (6, 1, 5)]
    assert separated_verbs(examples, apart=2) == [
        (0, 1, 5),
        (1, 1, 3),
        (4, 2, 6),
        (5, 1, 4),
        (6, 1, 5),
    ]


def test_heads_are_chosen_on_validation_and_scored_on_test(monkeypatch):
    """On validation the second head is better, on test the first: the second one's test figures count."""
    gold = frozenset({(0, 0), (1, 1), (2, 2)})
    one = Example(
        "x y its", "", gold, ((Pronoun(2, 0, (0, 1)), Pronoun(2, 0, (0, 1))),), ()
    )
    good, bad = (
        planted((4, 4), (0, 0), (1, 1), (2, 2)),
        planted((4, 4), (0, 1), (1, 1), (2, 1)),
    )
    right, wrong = planted((4, 4), (2, 0)), planted((4, 4), (2, 1))
    nothing = torch.zeros(1, 2, 4, 4)
    validation = maps_with(
        torch.cat([wrong, right], 1), nothing, torch.cat([bad, good], 1)
    )
    test = maps_with(torch.cat([right, wrong], 1), nothing, torch.cat([good, bad], 1))
    monkeypatch.setattr(
        head_scores,
        "all_maps",
        lambda model, tokenizer, pairs: [test] if len(pairs) == 1 else [validation] * 2,
    )
    scores = score_attention(None, None, [one, one], [one])
    assert scores["alignment"] == {
        "layer": 1,
        "head": 2,
        "error": pytest.approx(2 / 3),
        "diagonal": 0.0,
    }
    assert scores["pronoun"] == {
        "attention": "encoder",
        "layer": 1,
        "head": 2,
        "count": 1,
        "accuracy": 0.0,
        "chance": 0.5,
        "nearest noun": 0.0,
        "first noun": 1.0,
    }


# What heads do


def test_look_back_on_planted_weights():
    """Row of the second half, column one after the first half's place; the begin mark and later words do not count."""
    verb = Example("", "", frozenset({(1, 1), (1, 5)}), (), ())
    right, wrong, begin = (planted((7, 7), (5, column)) for column in (2, 1, 0))
    begin = begin + 0.5 * planted((7, 7), (5, 2)) + planted((7, 7), (5, 6))
    maps = [maps_with(decoder=torch.cat([right, wrong, begin], dim=1), T=7)]
    ((index, hits),) = look_back_hits(maps, [verb])
    assert index == 0 and hits.tolist() == [[1.0, 0.0, 1.0]]


@pytest.mark.parametrize("centred", [False, True])
def test_head_similarity_by_hand(centred):
    torch.manual_seed(0)
    two = [maps_with(torch.rand(2, 3, n, n).softmax(-1), S=n, T=n) for n in (3, 5)]
    less = [1 / n if centred else 0 for n in (3, 5)]  # rows sum to 1
    flat = torch.stack(
        [
            torch.cat(
                [(m.encoder[n, i] - mean).flatten() for m, mean in zip(two, less)]
            )
            for n in range(2)
            for i in range(3)
        ]
    )
    expected = torch.cosine_similarity(flat[:, None], flat[None], dim=-1)
    torch.testing.assert_close(head_similarity(two, "encoder", centred), expected)


def test_shuffled_rows_keep_their_weights():
    torch.manual_seed(0)
    maps = maps_with(torch.rand(2, 3, 9, 9), S=9)
    found = shuffled(maps).encoder
    assert torch.equal(found.sort(dim=-1).values, maps.encoder.sort(dim=-1).values)
    assert not torch.equal(found, maps.encoder)


def test_weights_by_the_norm_of_what_arrives():
    torch.manual_seed(0)
    attention = MultiHeadAttention(d_model=12, h=3, d_v=2)
    weights, v = torch.rand(2, 3, 4, 5), torch.randn(2, 3, 5, 2)
    arriving = torch.zeros_like(weights)
    for b, i, t, s in itertools.product(range(2), range(3), range(4), range(5)):
        alone = torch.zeros(6)
        alone[2 * i : 2 * i + 2] = weights[b, i, t, s] * v[b, i, s]
        arriving[b, i, t, s] = attention.W_O(alone).norm()
    found = norm_weighted(weights, v, attention.W_O.weight)
    torch.testing.assert_close(found, arriving / arriving.sum(dim=-1, keepdim=True))


@pytest.mark.parametrize("bias", [False, True])
def test_edited_heads(bias):
    """The output is the sum of the heads' parts (and the bias): a silent one's is missing, a turned one's is another's
    value, and afterwards, also after an error, all are as before. Edits can be combined."""
    torch.manual_seed(0)
    attention = MultiHeadAttention(d_model=12, h=3, d_k=5, d_v=2, bias=bias)
    x, rows, columns = (
        torch.randn(2, 4, 12),
        torch.tensor([3, 1]),
        F.one_hot(torch.tensor([0, 2]), 4).float(),
    )
    with torch.no_grad():
        with cache(attention) as seen:
            whole = attention(x, x, x)
        weights, values = seen["weights"], seen["values"]
        parts = [
            weights[:, i] @ values[:, i] @ attention.W_O.weight[:, 2 * i : 2 * i + 2].T
            for i in range(3)
        ]
        with (
            edit(attention, {"heads": silent(0)}),
            edit(attention, {"heads": silent(2)}),
        ):
            torch.testing.assert_close(attention(x, x, x), whole - parts[0] - parts[2])
        with edit(attention, {"weights": turned(1, rows, columns)}):
            after = attention(x, x, x)
        expected = whole.clone()
        for b, row, column in ((0, 3, 0), (1, 1, 2)):
            other = values[b, 1, column] @ attention.W_O.weight[:, 2:4].T
            expected[b, row] += other - parts[1][b, row]
        torch.testing.assert_close(after, expected)
        vectors = torch.stack([values[0, 1, 0], values[1, 1, 2]])
        donor = vectors[:, None, None].expand(-1, 3, 4, -1)
        with edit(attention, {"heads": paste([1], rows, donor)}):
            torch.testing.assert_close(attention(x, x, x), after)
        with pytest.raises(RuntimeError), edit(attention, {"heads": silent(1)}):
            raise RuntimeError
        assert torch.equal(attention(x, x, x), whole)


@pytest.fixture(scope="module")
def bundled():
    """The model that comes with the package, and its tokenizer."""
    return load()


def test_costs_are_differences_of_bleu(bundled):
    """Measured against the model's own translations, which score 100 as long as every head is on."""
    model, tokenizer = bundled
    sources = [example.source for example in read_bundled("validation")[:4]]
    references = translate(model, tokenizer, sources, beam=1)
    costs = head_costs(
        model,
        tokenizer,
        [Example(*pair, frozenset(), (), ()) for pair in zip(sources, references)],
    )
    for kind, (layer, head) in (("encoder", (1, 0)), ("cross", (0, 3))):
        name = f"{attention_name(kind, layer)}.heads"
        with edit(model, {name: silent(head)}):
            score = bleu(translate(model, tokenizer, sources, beam=1), references).score
        assert costs[kind][layer, head] == pytest.approx(100 - score, abs=1e-4)
    assert costs["encoder"][1, 0] > 0


# What the grammar knows

NESTED = Example(
    "While its old dog slept, the cat lost its ball.",
    "Während ihr alter Hund schlief, verlor die Katze ihren Ball.",
    frozenset(
        {
            (0, 0),
            (1, 1),
            (2, 2),
            (3, 3),
            (4, 4),
            (6, 7),
            (7, 8),
            (8, 6),
            (9, 9),
            (10, 10),
            (11, 11),
        }
    ),
    ((Pronoun(9, 7, (3, 7)), Pronoun(9, 8, (3, 8))),),
    (),
)


def test_determiners_and_classes():
    assert determiners(NESTED) == [(1, 3), (6, 7), (9, 10)]
    assert word_classes(NESTED) == [
        "other",
        "possessive",
        "adjective",
        "noun",
        "other",
        "other",
        "other",
        "article",
        "noun",
        "possessive",
        "noun",
        "other",
    ]


def test_an_object_is_no_determiner():
    words = (
        "These men listened to her, and a cat saw them.",
        "Diese Männer hörten ihr zu, und eine Katze sah sie.",
    )
    links = frozenset(
        {(0, 0), (1, 1), (2, 2), (4, 3), (6, 6), (7, 7), (8, 8), (9, 9), (10, 10)}
    )
    assert determiners(Example(*words, links, (), ())) == [(0, 1), (7, 8)]


def test_turns_by_hand():
    """The dog would need *seinen*; a ball (masculine, accusative) needs -en, a dog as well, and a cat -e."""
    genders = read_genders()
    assert [genders[word] for word in ("cat", "dog", "ball", "horse", "Anna")] == [
        "f",
        "m",
        "m",
        "n",
        "f",
    ]
    assert owner_turns([NESTED], genders) == [Turn(NESTED, 9, 3, 9, "ihren", "seinen")]
    assert noun_turns([NESTED], genders) == [Turn(NESTED, 9, 7, 9, "ihren", "ihre")]


def test_turning_a_head_turns_the_german(bundled):
    model, tokenizer = bundled
    turns = encode_turns(tokenizer, owner_turns(read_bundled("test"), read_genders()))
    wanted = [turn.wanted for turn in owner_turns(read_bundled("test"), read_genders())]

    def follows(head):
        turn = turned(head, turns.rows, turns.columns)
        with edit(model, {"encoder.0.self_attention.weights": turn}):
            words = next_words(model, tokenizer, turns)
        return sum(map(str.__eq__, words, wanted)) / len(wanted)

    assert follows(2) > 0.6 and follows(0) < 0.3


def test_what_heads_bring_is_pasted_into_another_run(bundled):
    """All four heads of the upper cross-attention bring the owner, and one alone does not."""
    model, tokenizer = bundled
    name = "decoder.1.cross_attention.heads"
    turns = encode_turns(tokenizer, owner_turns(read_bundled("test"), read_genders()))
    before = next_words(model, tokenizer, turns)
    turn = turned(2, turns.rows, turns.columns)
    with edit(model, {"encoder.0.self_attention.weights": turn}):
        with cache(model, name) as seen:
            wanted = next_words(model, tokenizer, turns)

    def follow(heads):
        with edit(model, {name: paste(heads, turns.steps, seen[name])}):
            words = next_words(model, tokenizer, turns)
        hits, most = following(before, wanted, words)
        return hits / most

    for head in range(4):
        assert follow([head]) < 0.1
        assert 0.6 < follow([other for other in range(4) if other != head]) < 0.95
    assert follow([0, 1, 2, 3]) == 1.0


def test_without_the_ball_more_nouns_are_right(bundled):
    """The solution of the chapter's second exercise gives the numbers of its answer."""
    model, tokenizer = bundled
    name = "encoder.0.self_attention.{}"
    nouns = one_token_nouns(tokenizer, "mn")
    texts = [f"In the {noun} the cat lost its ball." for noun in nouns]
    ids = [[*tokenizer.encode(text), tokenizer.eos_id] for text in texts]
    with torch.no_grad(), cache(model, name.format("scores")) as seen:
        model.encode(torch.tensor(ids))
    scores = seen[name.format("scores")][:, 2, 6]
    ahead = [text for text, row in zip(texts, scores) if row[4] > row[2]]

    def right():
        return sum("ihren" in text for text in translate(model, tokenizer, ahead))

    assert (len(ahead), right()) == (79, 59)
    with edit(model, {name.format("weights"): lambda x: looks_away(x, 2, 6, 7)}):
        assert right() == 72


def test_words_counted_by_hand():
    genders = read_genders()
    turns = owner_turns([NESTED], genders) * 4
    before, after = ["ihren"] * 4, ["ihren", "ihre", "seinen", "fand"]
    assert parts_right(after, turns) == {"stem": 0.5, "ending": 0.5}
    assert changed(turns, before, after)[0] == (
        ", verlor die Katze",
        "ihren",
        "ihre",
    )
    assert len(changed(turns, before, after)) == 3
    wanted = ["seinen", "seinen", "seinen", "ihren"]
    assert following(before, wanted, after) == (1, 3)
    assert owner_counts([NESTED]) == {"cat": 1}


def test_nouns_of_one_token(bundled):
    _, tokenizer = bundled
    nouns = one_token_nouns(tokenizer, "mn")
    assert {"garden", "house", "dog"} <= set(nouns)
    assert "cat" not in nouns
    assert len({len(tokenizer.encode(f"In the {noun} .")) for noun in nouns}) == 1


def test_right_words_are_those_of_the_model(bundled):
    """In the model's own greedy translation every word is."""
    source = "The old dog near the school lost its ball."
    german = translate(*bundled, [source], beam=1)[0]
    found = right_words(*bundled, [Example(source, german, frozenset(), (), ())])
    assert len(found) == len(WORD.findall(german)) and all(right for *_, right in found)


def test_share_by_hand():
    hits, sentences = [1, 1, 0, 1], [0, 0, 1, 1]  # two sentences of two words
    assert share(hits) == pytest.approx((0.75, 1.96 * math.sqrt(0.75 * 0.25 / 4)))
    assert share(hits, sentences) == pytest.approx(
        (0.75, 1.96 * math.sqrt(0.5**2 + 0.5**2) / 4)
    )
    assert share([1] * 6) == (1.0, 0.5) and share([0] * 4, sentences) == (0.0, 1.5)


# Probes


def test_the_probe_is_the_likeliest_of_normal_distributions_with_one_spread():
    torch.manual_seed(0)
    labels = torch.arange(300) % 10 // 4  # 40%, 40%, 20%
    x = torch.randn(3, 4)[labels] + torch.randn(300, 4) @ torch.randn(4, 4)
    means = torch.stack([x[labels == i].mean(dim=0) for i in range(3)])
    spread = torch.cov((x - means[labels]).T, correction=0)
    spread += 1e-3 * spread.diagonal().mean() * torch.eye(4)
    unseen = 3 * torch.randn(50, 4)
    scores = [
        torch.distributions.MultivariateNormal(mean, spread).log_prob(unseen)
        + math.log(share)
        for mean, share in zip(means, (0.4, 0.4, 0.2))
    ]
    assert torch.equal(
        linear_probe(x, labels, unseen), torch.stack(scores).argmax(dim=0)
    )


def test_vectors_with_labels(bundled):
    model, tokenizer = bundled
    source = collate(encode_pairs(tokenizer, [(NESTED.source, "")])).source
    layers = encoder_layers(model, source)
    torch.testing.assert_close(layers[-1], model.encode(source))
    found = labelled_vectors(
        lambda ids: encoder_layers(model, ids), tokenizer, [NESTED], read_genders()
    )
    vectors, values, words = found["its: gender of the owner"]
    assert (
        values == ["f"]
        and words == ["its"]
        and found["its: gender of the owned"][1] == ["m"]
    )
    place = words_and_groups(tokenizer, NESTED.source)[1].tolist().index(9)
    torch.testing.assert_close(vectors[:, 0], layers[:, 0, place])
    only = relabelled(found["noun: gender"], {"cat": "x"}, ["cat"])
    assert only[1:] == (["x"], ["cat"]) and sorted(
        made_up({"a": 1, "b": 2}).values()
    ) == [1, 2]


def test_accuracy_of_a_probe_by_hand():
    """Of four new words two have the most common value, the probe of layer 2 reads three, a value unknown to it never."""
    known = (torch.zeros(2, 3, 1), ["m", "m", "f"], [])
    unseen = (
        torch.stack([torch.zeros(4, 1), torch.tensor([[0.0], [0.0], [1.0], [1.0]])]),
        ["m", "m", "f", "n"],
        [],
    )
    found = probe_accuracy(lambda x, labels, z: z[:, 0].long(), known, unseen)
    assert found == [0.5, 0.5, 0.75, 0.75]


def test_entropy_by_hand():
    """A head that looks at one word, one that looks evenly; the mean is over words, not over sentences."""
    even, sharp = torch.full((1, 1, 4, 4), 0.25), torch.eye(4).expand(1, 1, 4, 4)
    small = maps_with(torch.full((1, 2, 2, 2), 0.5), S=2)
    entropy = head_entropy(
        [maps_with(torch.cat([sharp, even], dim=1)), small], "encoder"
    )
    torch.testing.assert_close(
        entropy,
        torch.tensor([[2 * math.log(2) / 6, (4 * math.log(4) + 2 * math.log(2)) / 6]]),
    )


def test_distance_by_hand():
    """The end mark's row and column are left out, wherever the weight lies."""
    back = planted(
        (4, 4), (1, 0), (2, 1), (3, 0)
    )  # one word back, and the end mark looks far
    far = planted(
        (4, 4), (0, 2), (1, 3), (2, 0)
    )  # two words away, once at the end mark
    torch.testing.assert_close(
        head_distance([maps_with(torch.cat([back, far], dim=1))]),
        torch.tensor([[1.0, 2.0]]),
    )


def test_sentences_aligned_by_hand():
    """Every link is within its sentences, and only commas, "of", "to" and "the" have none."""
    rows = read_aligned()
    assert len(rows) == 24 and len({source for source, *_ in rows}) == 24
    for source, target, links in rows:
        words = WORD.findall(source), WORD.findall(target)
        for side, free in ((0, {"of", "to", "the"}), (1, {","})):
            linked = {link[side] for link in links}
            assert linked <= set(range(len(words[side])))
            assert {
                word for i, word in enumerate(words[side]) if i not in linked
            } <= free, (source, target)
