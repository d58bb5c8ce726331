"""Looking into attention: blocks of threads, inside one another, ended by errors; right places."""

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from transformer import Tokenizer, Transformer, TransformerConfig, record_attention
from transformer.fast.attention import MultiHeadAttention, kernel_attention
from transformer.models.maps import AttentionMaps, all_maps, attention_maps
from transformer.visualization import attention_of, edited, pasted, silent, turned

PAIRS = [("the cat sees a dog", "die Katze sieht einen Hund"), ("a dog", "ein Hund")]
NAME = "encoder.layers.0.self_attention"


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train([text for pair in PAIRS for text in pair], 300)


@pytest.fixture
def model(tokenizer):
    torch.manual_seed(0)
    sizes = {"d_model": 32, "d_ff": 64, "N": 2, "h": 4}
    return Transformer(TransformerConfig(tokenizer.vocab_size, **sizes)).eval()


def attends(model):
    """What each attention module attends by."""
    return [
        part.attend for part in model.modules() if isinstance(part, MultiHeadAttention)
    ]


def ids(length):
    return torch.randint(3, 250, (1, length))


def test_maps_from_a_pool_leave_the_model_as_it_was(model, tokenizer):
    before = attends(model)
    alone = [attention_maps(model, tokenizer, [pair])[0] for pair in PAIRS]
    with ThreadPoolExecutor(4) as pool:
        jobs = [
            pool.submit(attention_maps, model, tokenizer, [pair]) for pair in PAIRS * 20
        ]
        found = [job.result()[0] for job in jobs]
    assert attends(model) == before
    for maps, expected in zip(found, alone * 20):
        assert torch.equal(maps.cross, expected.cross)


def test_a_thread_records_its_own_calls_alone(model):
    inside, written = threading.Barrier(2), threading.Barrier(2)

    def shapes(length):
        with record_attention(model) as record, torch.no_grad():
            inside.wait(20)  # both blocks are open
            model.encode(ids(length))
            written.wait(20)  # and both have computed
        return [tuple(weights.shape) for weights in record[NAME]]

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(shapes, (3, 5)))
    assert found == [[(1, 4, 3, 3)], [(1, 4, 5, 5)]]


def test_the_block_that_ends_first_takes_nothing_from_the_other(model):
    before = attends(model)
    first, second = record_attention(model), record_attention(model)
    opened, ended = threading.Event(), threading.Event()

    def other():
        with second as found, torch.no_grad():
            opened.set()
            ended.wait(20)
            model.encode(ids(3))
        return len(found[NAME])

    with ThreadPoolExecutor(1) as pool:
        with first as record:
            job = pool.submit(other)
            assert opened.wait(20)
        ended.set()
        assert job.result() == 1
    assert record[NAME] == []
    assert attends(model) == before


def test_an_edit_is_not_seen_by_other_threads(model):
    source = ids(6)
    with torch.no_grad(), ThreadPoolExecutor(1) as pool:
        before = model.encode(source)
        with edited(attention_of(model, "encoder", 0), silent(1)):
            meanwhile = pool.submit(model.encode, source).result()
            assert not torch.equal(model.encode(source), before)
    assert torch.equal(meanwhile, before)


def test_blocks_inside_one_another(model):
    before = attends(model)
    with torch.no_grad(), record_attention(model) as outer:
        model.encode(ids(3))
        with record_attention(model.encoder) as inner:
            model.encode(ids(4))
        model.encode(ids(5))
    assert [weights.shape[-1] for weights in outer[NAME]] == [3, 4, 5]
    assert [weights.shape[-1] for weights in inner[NAME.removeprefix("encoder.")]] == [
        4
    ]
    assert attends(model) == before


def test_an_error_ends_a_block_and_no_other(model):
    before = attends(model)
    with torch.no_grad(), record_attention(model) as outer:
        with pytest.raises(KeyError), record_attention(model) as inner:
            raise KeyError("inside")
        model.encode(ids(3))
    assert len(outer[NAME]) == 1
    assert inner[NAME] == []
    assert attends(model) == before


def test_attention_set_inside_a_block_stays(model):
    with record_attention(model):
        attention_of(model, "encoder", 0).attend = kernel_attention
    assert attention_of(model, "encoder", 0).attend is kernel_attention


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))],
    ids=["deepcopy", "pickle"],
)
def test_a_copy_made_inside_a_block_is_not_watched(model, copied):
    before = attends(model)
    with record_attention(model) as record, torch.no_grad():
        other = copied(model)
        other.encode(ids(3))
    assert record[NAME] == []
    assert attends(other) == before


@pytest.mark.parametrize("kind", ["self", "Encoder", "", None, 0])
def test_another_kind_of_attention_is_refused(model, kind):
    with pytest.raises(ValueError, match="kind must be one of encoder, decoder, cross"):
        attention_of(model, kind, 0)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("layer", [2, -1, 0.0, "0", None])
def test_a_layer_that_is_not_there_is_refused(model, kind, layer):
    with pytest.raises(ValueError, match="layer must be"):
        attention_of(model, kind, layer)


def test_attention_of_a_model_without_it_is_refused(tokenizer):
    from transformer.language import LanguageConfig, LanguageModel

    model = LanguageModel(
        LanguageConfig(tokenizer.vocab_size, d_model=16, d_ff=32, N=1, h=2)
    )
    with pytest.raises(ValueError, match="LanguageModel has no attention of the kind"):
        attention_of(model, "encoder", 0)
    with pytest.raises(ValueError, match="LanguageModel has no attention of the kind"):
        attention_of(model, "cross", 0)


@pytest.mark.parametrize("head", [4, 9, -1, 1.0, "0", None])
@pytest.mark.parametrize("change", ["silent", "turned", "pasted"])
def test_a_head_that_is_not_there_is_refused(model, change, head):
    row, columns, vectors = torch.tensor([0]), torch.ones(1, 3) / 3, torch.zeros(1, 8)
    changes = {
        "silent": lambda: silent(head),
        "turned": lambda: turned(head, row, columns),
        "pasted": lambda: pasted(head, row, vectors),
    }
    before = attends(model)
    with edited(attention_of(model, "encoder", 0), changes[change]()):
        with pytest.raises(ValueError, match="head must be"):
            model.encode(ids(3))
    assert attends(model) == before


def test_labels_of_another_kind_are_refused():
    empty = torch.empty(0)
    maps = AttentionMaps(["a"], ["b"], empty, empty, empty)
    with pytest.raises(ValueError, match="kind must be one of encoder, decoder, cross"):
        maps.labels("self")


@pytest.mark.parametrize("maps", [attention_maps, all_maps])
def test_maps_of_no_pairs_are_none(model, tokenizer, maps):
    assert maps(model, tokenizer, []) == []


@pytest.mark.parametrize("maps", [attention_maps, all_maps])
def test_maps_take_pairs_as_they_come(model, tokenizer, maps):
    assert len(maps(model, tokenizer, iter(PAIRS))) == 2
