"""Looking inside: every name is what it says; edits; threads, nesting, errors; right places."""

import copy
import math
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch
from torch import nn

from transformer import (
    Tokenizer,
    Transformer,
    TransformerConfig,
    cache,
    edit,
    logit_lens,
    translate,
)
from transformer import first_transformer as first
from transformer import model as plain
from transformer.attention import causal_mask, masked_softmax, padding_mask
from transformer.fast.attention import (
    MultiHeadAttention,
    kernel_attention,
    scaled_dot_product,
    scaled_dot_product_attention,
)
from transformer.fast.model import Parts
from transformer.fast.packed import can_pack
from transformer.fast.search import greedy_search
from transformer.images import VisionConfig, VisionTransformer
from transformer.language import (
    LanguageConfig,
    LanguageModel,
    MaskedConfig,
    MaskedModel,
)
from transformer.models.edits import paste, turned
from transformer.models.maps import (
    AttentionMaps,
    all_maps,
    attention_maps,
    attention_name,
)
from transformer.models.recording import names
from transformer.visualization import silent

PAIRS = [("the cat sees a dog", "die Katze sieht einen Hund"), ("a dog", "ein Hund")]
WEIGHTS = "encoder.0.self_attention.weights"
HEADS = "encoder.0.self_attention.heads"
SOURCE = torch.tensor([[5, 6, 7, 8, 2], [9, 10, 2, 0, 0]])
TARGET = torch.tensor([[1, 11, 12, 13], [1, 14, 15, 16]])
SIZES = {"vocab_size": 20, "d_model": 16, "d_ff": 24, "N": 2, "h": 4}


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train([text for pair in PAIRS for text in pair], 300)


@pytest.fixture
def model(tokenizer):
    torch.manual_seed(0)
    sizes = {"d_model": 32, "d_ff": 64, "N": 2, "h": 4}
    return Transformer(TransformerConfig(tokenizer.vocab_size, **sizes)).eval()


def grouped(*sizes, **switches):
    return MultiHeadAttention(*sizes, h_kv=2, **switches)


def by_kernel(*sizes, **switches):
    return MultiHeadAttention(*sizes, attend=kernel_attention, **switches)


def strong(parts=Parts(), **switches):
    return Transformer(TransformerConfig(**SIZES, **switches), parts)


MODELS = {
    "chapter 00": lambda: first.Transformer(20, 16, 24, 4, 2),
    "chapter 08": lambda: plain.Transformer(plain.TransformerConfig(**SIZES)),
    "strong": strong,
    "pre-norm": lambda: strong(norm_first=True),
    "rotary": lambda: strong(positions="rotary"),
    "grouped": lambda: strong(Parts(attention=grouped)),
    "widths": lambda: strong(d_k=3, d_v=5),
    "kernel": lambda: strong(Parts(attention=by_kernel)),
    "untied": lambda: strong(tie_embeddings=False),
}


def made(name):
    torch.manual_seed(0)
    model = MODELS[name]().double().eval()
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return model


def functions(model):
    """What could have been left behind: hooks, and functions of its own, of any module."""
    left = {}
    for name, module in model.named_modules():
        if "attend" in vars(module):
            left[name, "attend"] = module.attend
        for key in ("_forward_hooks", "_forward_pre_hooks"):
            left[name, key] = list(vars(module)[key].values())
    assert "forward" not in {key for m in model.modules() for key in vars(m)}
    return left


def ids(length):
    return torch.randint(3, 250, (1, length))


def same(a, b):
    return torch.allclose(a, b, rtol=0, atol=1e-9)


# Every name against a computation of its own


@pytest.fixture(scope="module", params=MODELS)
def looked(request):
    """(model, what a cache has seen of one batch, logits)."""
    model = made(request.param)
    with torch.no_grad(), cache(model) as seen:
        logits = model(SOURCE, TARGET)
    return model, seen, logits


def sublayers(model):
    """(name, residual, module, mask, memory?) of every sub-layer."""
    for stack in ("encoder", "decoder"):
        for n, layer in enumerate(getattr(model, stack).layers):
            kinds = ["self_attention", "feed_forward"]
            if stack == "decoder":
                kinds.insert(1, "cross_attention")
            for kind, residual in zip(kinds, layer.residuals, strict=True):
                yield f"{stack}.{n}.{kind}", residual, getattr(layer, kind)


def mask_of(name):
    if name.startswith("decoder") and name.endswith("self_attention"):
        return causal_mask(TARGET.shape[1])
    return padding_mask(SOURCE, 0)


def test_all_names_are_met(looked):
    model, seen, _ = looked
    assert list(seen) == names(model)
    assert len(seen) == 2 * (10 + 5) + 1 + 2 * (10 + 10 + 5) + 1 + 1


def test_the_residual_stream_adds_up(looked):
    model, seen, _ = looked
    for name, residual, _ in sublayers(model):
        before, output = seen[f"{name}.before"], seen[f"{name}.output"]
        pre_norm = getattr(residual, "norm_first", False)
        read = residual.norm(before) if pre_norm else before
        after = before + output if pre_norm else residual.norm(before + output)
        assert same(seen[f"{name}.input"], read)
        assert same(seen[f"{name}.after"], after)


def test_each_sublayer_begins_where_the_last_one_ended(looked):
    model, seen, _ = looked
    for stack in ("encoder", "decoder"):
        parts = [name for name, *_ in sublayers(model) if name.startswith(stack)]
        for one, next_one in zip(parts, parts[1:]):
            assert seen[f"{one}.after"].equal(seen[f"{next_one}.before"])
        last = getattr(getattr(model, stack), "final_norm", nn.Identity())
        assert same(seen[f"{stack}.output"], last(seen[f"{parts[-1]}.after"]))


def test_attention_adds_up(looked):
    model, seen, _ = looked
    for name, _, module in sublayers(model):
        if name.endswith("feed_forward"):
            continue
        part = {
            point: seen[f"{name}.{point}"]
            for point in ("queries", "keys", "values", "scores", "weights", "heads")
        }
        mask = mask_of(name)
        d_k = part["queries"].shape[-1]
        scores = part["queries"] @ part["keys"].transpose(-2, -1) / math.sqrt(d_k)
        allowed = mask.expand_as(scores)
        assert same(part["scores"][allowed], scores[allowed])
        assert (part["weights"][~allowed] == 0).all()
        assert same(part["scores"].softmax(dim=-1), part["weights"])
        assert same(part["weights"] @ part["values"], part["heads"])
        joined = part["heads"].transpose(1, 2).flatten(2)
        assert same(module.W_O(joined), seen[f"{name}.output"])


def test_values_are_those_of_what_is_looked_at(looked):
    model, seen, _ = looked
    for name, _, module in sublayers(model):
        if name.endswith("feed_forward"):
            continue
        cross = name.endswith("cross_attention")
        read = seen["encoder.output"] if cross else seen[f"{name}.input"]
        values = module.W_V(read)  # (B, S, h_kv * d_v)
        found = seen[f"{name}.values"]  # (B, h, S, d_v)
        width = found.shape[-1]
        sharing = found.shape[1] * width // values.shape[-1]
        for head in range(found.shape[1]):
            first_column = head // sharing * width
            own = values[..., first_column : first_column + width]
            assert same(found[:, head], own)


def test_the_network_adds_up(looked):
    model, seen, _ = looked
    for name, _, module in sublayers(model):
        if name.endswith("feed_forward"):
            hidden = module.W_1(seen[f"{name}.input"]).relu()
            assert same(seen[f"{name}.hidden"], hidden)
            assert same(seen[f"{name}.output"], module.W_2(hidden))


def test_logits_are_products_with_the_embedding(looked):
    model, seen, logits = looked
    matrix = getattr(model, "output", model.embedding).weight
    assert same(seen["logits"], seen["decoder.output"] @ matrix.T)
    assert seen["logits"].equal(logits)


def test_plain_and_strong_are_the_same_inside():
    one, other = made("chapter 08"), made("strong")
    own = dict(one.named_parameters())
    with torch.no_grad():
        for name, parameter in other.named_parameters():
            if name in own:
                parameter.copy_(own[name])
        with cache(one) as seen:
            one(SOURCE, TARGET)
        with cache(other) as again:
            other(SOURCE, TARGET)
    assert list(seen) == list(again)
    for name in seen:  # the table of positions is float32
        assert torch.allclose(seen[name], again[name], rtol=0, atol=1e-5), name


@pytest.mark.parametrize("kind", ["language", "masked", "images"])
def test_other_models_of_the_same_layers(kind):
    small = {key: value for key, value in SIZES.items() if key != "vocab_size"}
    made_of = {
        "language": lambda: LanguageModel(LanguageConfig(**SIZES)),
        "masked": lambda: MaskedModel(MaskedConfig(**SIZES)),
        "images": lambda: VisionTransformer(VisionConfig(**small)),
    }
    model = made_of[kind]().eval()
    tokens = SOURCE
    if kind == "images":
        c = model.config
        tokens = torch.randint(c.first_level, c.vocab_size, (2, c.size**2))
    with torch.no_grad(), cache(model) as seen:
        logits = model(tokens)
    stack = "encoder" if kind == "images" else "decoder"
    assert list(seen) == names(model)
    assert len(seen) == 2 * 15 + 2
    assert seen["logits"].equal(logits)
    rows = seen[f"{stack}.1.self_attention.weights"].sum(dim=-1)
    assert torch.allclose(rows, torch.ones_like(rows))


def test_a_part_alone_has_short_names():
    attention = MultiHeadAttention(16, 4)
    x = torch.randn(2, 5, 16)
    with torch.no_grad(), cache(attention, "weights", "output") as seen:
        output = attention(x, x, x)
    assert list(seen) == ["weights", "output"]
    assert seen["output"].equal(output)


# Edits


@pytest.mark.parametrize("name", MODELS)
def test_an_edit_that_changes_nothing_changes_no_bit(name):
    model = made(name).float()
    with torch.no_grad():
        before = model(SOURCE, TARGET)
        with edit(model, {"*": lambda x: x}), cache(model):
            assert model(SOURCE, TARGET).equal(before)


@pytest.mark.parametrize("name", MODELS)
def test_every_name_can_be_edited(name):
    """Something else comes out, and what comes out is what the rest makes of it."""
    model = made(name)
    with torch.no_grad():
        before = model(SOURCE, TARGET)
        for place in names(model):

            def moved(x, place=place):
                noise = torch.randn(x.shape, dtype=x.dtype, generator=dice())
                return x + noise.masked_fill(x == x.min(), 0)

            with edit(model, {place: moved}), cache(model, place) as seen:
                after = model(SOURCE, TARGET)
            assert not same(after, before), place
            with edit(model, {place: lambda x, to=seen[place]: to}):
                assert same(model(SOURCE, TARGET), after), place
        assert model(SOURCE, TARGET).equal(before)


def dice():
    return torch.Generator().manual_seed(1)


def test_a_turned_row_takes_the_other_value(model):
    def turn(weights):
        weights[:, 2, 3] = 0
        weights[:, 2, 3, 1] = 1
        return weights

    with torch.no_grad(), edit(model, {WEIGHTS: turn}), cache(model) as seen:
        model.encode(ids(5))
    values = seen["encoder.0.self_attention.values"]
    assert torch.allclose(seen[HEADS][:, 2, 3], values[:, 2, 1])


def test_scores_that_are_edited_stay_masked(model):
    source = ids(5)
    source[:, 3:] = 0
    scores = {"encoder.0.self_attention.scores": lambda x: torch.full_like(x, 9.0)}
    with torch.no_grad(), edit(model, scores), cache(model, WEIGHTS) as seen:
        model.encode(source)
    expected = torch.tensor([1 / 3, 1 / 3, 1 / 3, 0, 0]).expand(1, 4, 5, 5)
    assert torch.allclose(seen[WEIGHTS], expected)


@pytest.mark.parametrize("name", MODELS)
def test_a_silent_head_is_missing_from_the_output(name):
    model = made(name)
    place = "decoder.1.cross_attention"
    with torch.no_grad():
        with cache(model, f"{place}.*") as before:
            model(SOURCE, TARGET)
        with edit(model, {f"{place}.heads": silent(1)}), cache(model) as after:
            model(SOURCE, TARGET)
    d_v = before[f"{place}.heads"].shape[-1]
    W_O = model.decoder.layers[1].cross_attention.W_O.weight[:, d_v : 2 * d_v]
    part = before[f"{place}.heads"][:, 1] @ W_O.T
    assert same(after[f"{place}.output"], before[f"{place}.output"] - part)


def test_gradients_flow_through_an_edit():
    """A factor on each head: its gradient at 1 is what silencing costs, to first order."""
    model = made("kernel")
    factor = torch.ones(4, dtype=torch.float64, requires_grad=True)
    with edit(model, {HEADS: lambda x: x * factor[:, None, None]}):
        model(SOURCE, TARGET).sum().backward()
    step = torch.zeros(4, dtype=torch.float64)
    step[2] = 1e-6
    sums = []
    for sign in (1, -1):
        change = {HEADS: lambda x, f=1 + sign * step: x * f[:, None, None]}
        with torch.no_grad(), edit(model, change):
            sums.append(model(SOURCE, TARGET).sum().item())
    assert factor.grad[2].item() == pytest.approx((sums[0] - sums[1]) / 2e-6, rel=1e-4)


def test_gradients_reach_weights_that_only_the_kernel_had():
    model = made("kernel")
    factor = torch.ones(4, dtype=torch.float64, requires_grad=True)
    with edit(model, {WEIGHTS: lambda x: x * factor[:, None, None]}):
        model(SOURCE, TARGET).sum().backward()
    assert factor.grad.abs().min() > 0


def test_what_is_kept_needs_no_gradient_and_stays(model):
    with cache(model) as seen:
        logits = model(ids(4), ids(3))
    kept = seen["logits"].clone()
    assert not any(x.requires_grad for x in seen.values())
    with torch.no_grad():
        logits.zero_()
    assert seen["logits"].equal(kept)
    with torch.no_grad(), cache(model, WEIGHTS, device="meta") as seen:
        model.encode(ids(4))
    assert seen[WEIGHTS].is_meta


def test_a_cache_sees_what_the_model_goes_on_with(model):
    """Whichever block began first."""
    source = ids(4)
    zero = {HEADS: torch.zeros_like}
    with torch.no_grad(), cache(model, HEADS) as outer, edit(model, zero):
        with cache(model, HEADS) as inner:
            model.encode(source)
    assert outer[HEADS].abs().max() == 0
    assert inner[HEADS].abs().max() == 0


def test_edits_work_in_the_order_of_their_blocks(model):
    add, double = {HEADS: lambda x: x + 1}, {HEADS: lambda x: x * 2}
    source = ids(4)
    with torch.no_grad(), cache(model, HEADS) as seen:
        model.encode(source)
        with edit(model, add), edit(model, double):
            model.encode(source)
    before, after = seen.calls(HEADS)
    assert torch.allclose(after, (before + 1) * 2)


# Searches


def test_the_steps_of_a_search(model):
    """With caches, joined, they are those of one pass over what was written."""
    source = ids(5)
    with cache(model) as seen:
        (written,) = greedy_search(model, source, extra=3)
    target = torch.tensor([[model.config.bos_id, *written[:-1]]])
    with torch.no_grad(), cache(model) as whole:
        model(source, target)
    assert len(seen.calls("logits")) == len(written)
    assert seen["encoder.output"].equal(whole["encoder.output"])
    for name in whole:
        found = seen.joined(name) if name.startswith("decoder") else None
        if found is None or name.endswith("self_attention.scores"):
            continue
        assert torch.allclose(found, whole[name], atol=1e-5), name
    assert torch.allclose(seen.joined("logits"), whole["logits"], atol=1e-4)


def test_calls_that_are_no_steps_are_not_joined(model):
    with torch.no_grad(), cache(model) as seen:
        model(ids(3), ids(3))
        model(ids(3), ids(4))
    with pytest.raises(ValueError, match="no steps of one greedy search .* use beam=1"):
        seen.joined("decoder.0.self_attention.weights")
    with pytest.raises(ValueError, match="computed 2 times"):
        seen["logits"]


def test_translations_with_packed_weights():
    """Inside a block the weights are not packed, so that all is seen; afterwards they are."""
    tokenizer = Tokenizer.train([text for pair in PAIRS for text in pair], 300)
    c = TransformerConfig(tokenizer.vocab_size, d_model=256, d_ff=512, N=1, h=2)
    model = Transformer(c).eval()
    before, clean = translate(model, tokenizer, ["a dog"], beam=1), functions(model)
    with cache(model) as seen:
        assert not can_pack(model)
        assert translate(model, tokenizer, ["a dog"], beam=1) == before
    with torch.no_grad(), cache(model) as again:
        source = torch.tensor([[*tokenizer.encode("a dog"), tokenizer.eos_id]])
        model.encode(source)
    assert "decoder.0.feed_forward.hidden" in seen
    assert seen["encoder.output"].equal(again["encoder.output"])
    assert functions(model) == clean


# What is refused


@pytest.mark.parametrize("pattern", ["encoder.2.*", "weights", "", "*.pattern"])
def test_a_name_that_is_not_there_is_refused(model, pattern):
    clean = functions(model)
    for block in (cache(model, pattern), edit(model, {pattern: lambda x: x})):
        with pytest.raises(ValueError, match="nothing here is named .*; near: "), block:
            pass
    assert functions(model) == clean


@pytest.mark.parametrize("layer", [2, -1, 0.0, None])
def test_a_layer_that_is_not_there_is_refused(model, layer):
    change = {f"{attention_name('cross', layer)}.heads": silent(0)}
    with pytest.raises(ValueError, match="nothing here is named"), edit(model, change):
        pass


def test_a_name_that_was_not_asked_for_is_refused(model):
    with cache(model, WEIGHTS) as seen:
        pass
    with pytest.raises(ValueError, match=f"does not keep '{HEADS}'; near: {WEIGHTS}"):
        seen[HEADS]
    with pytest.raises(ValueError, match="computed 0 times"):
        seen[WEIGHTS]
    assert HEADS not in seen


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda x: x[:, :1], "the shape"),
        (lambda x: x.double(), "the dtype"),
        (lambda x: None, "not a tensor"),
        (lambda x: 0.0, "not a tensor"),
        (lambda x: x * float("nan"), "values that are not numbers"),
    ],
)
def test_an_edit_of_another_shape_is_refused(model, change, words):
    before = functions(model)
    with edit(model, {HEADS: change}):
        with pytest.raises(ValueError, match=f"the edit of {HEADS} returned .*{words}"):
            model.encode(ids(3))
    assert functions(model) == before


@pytest.mark.parametrize("changes", [torch.zeros_like, {HEADS: 0.0}, [HEADS]])
def test_edits_that_are_no_functions_by_name_are_refused(model, changes):
    with pytest.raises(ValueError, match="edit takes functions by name"):
        edit(model, changes).__enter__()


def test_an_attend_that_returns_one_tensor_is_refused():
    model = with_own(lambda q, k, v, mask: v)
    with pytest.raises(ValueError, match="must return two things, .* returned Tensor"):
        model.encode(SOURCE)
    with cache(model), pytest.raises(ValueError, match="must return two things"):
        model.encode(SOURCE)


def test_two_edits_of_one_name_are_refused(model):
    changes = {"encoder.0.*": lambda x: x, HEADS: lambda x: x}
    with pytest.raises(ValueError, match="two changes fit"), edit(model, changes):
        pass


def test_a_compiled_model_is_refused(model):
    with pytest.raises(ValueError, match="torch.compile"), cache(torch.compile(model)):
        pass
    model.encoder.compile()
    with pytest.raises(ValueError, match="torch.compile"), cache(model):
        pass


def test_a_model_of_other_parts_is_refused():
    with pytest.raises(ValueError, match="nothing in it has a name"):
        names(nn.Linear(2, 2))


# Attention of one's own


def biased(q, k, v, mask=None):
    scores = scaled_dot_product(q, k) + 0.05 * torch.arange(k.shape[-2])
    weights = masked_softmax(scores, mask)
    return weights @ v, weights


def doubled(q, k, v, mask=None):
    output, weights = scaled_dot_product_attention(q, k, v, mask)
    return 2 * output, weights


def kept_back(q, k, v, mask=None):
    return biased(q, k, v, mask)[0], None


def with_own(attend):
    torch.manual_seed(0)
    return strong(Parts(attention=partial(MultiHeadAttention, attend=attend))).eval()


def test_scores_of_an_own_attention_are_no_name():
    model = with_own(biased)
    assert not [name for name in names(model) if name.endswith("scores")]
    for pattern in ("encoder.0.self_attention.scores", "*.scores"):
        with pytest.raises(ValueError, match="scores is not known: .* take .*weights"):
            cache(model, pattern).__enter__()
    with torch.no_grad(), cache(model) as seen:
        before = model(SOURCE, TARGET)
        assert not [name for name in names(model) if name.endswith("scores")]
        with edit(model, {"*": lambda x: x}):
            assert model(SOURCE, TARGET).equal(before)
    assert list(seen) == names(model)


def test_weights_of_an_own_attention_are_those_that_it_returns():
    model = with_own(biased)
    place = "encoder.0.self_attention"
    with torch.no_grad(), cache(model, f"{place}.*") as seen:
        model.encode(SOURCE)
    given = (seen[f"{place}.{name}"] for name in ("queries", "keys", "values"))
    output, weights = biased(*given, padding_mask(SOURCE, 0))
    assert seen[f"{place}.weights"].equal(weights)
    assert seen[f"{place}.heads"].equal(output)


def test_weights_that_cannot_be_known_are_refused():
    model = with_own(kept_back)
    with torch.no_grad(), cache(model):
        with pytest.raises(ValueError, match="no weights to record: .* returns none"):
            model.encode(SOURCE)
    model = with_own(doubled)
    with torch.no_grad(), edit(model, {WEIGHTS: lambda x: x}):
        model.encode(SOURCE)
    with torch.no_grad(), edit(model, {WEIGHTS: torch.zeros_like}):
        with pytest.raises(ValueError, match="these weights cannot be edited"):
            model.encode(SOURCE)


# Threads, nesting, errors


def test_maps_from_a_pool_leave_the_model_as_it_was(model, tokenizer):
    before = functions(model)
    alone = [attention_maps(model, tokenizer, [pair])[0] for pair in PAIRS]
    with ThreadPoolExecutor(4) as pool:
        jobs = [
            pool.submit(attention_maps, model, tokenizer, [pair]) for pair in PAIRS * 20
        ]
        found = [job.result()[0] for job in jobs]
    assert functions(model) == before
    for maps, expected in zip(found, alone * 20):
        assert torch.equal(maps.cross, expected.cross)


@pytest.mark.parametrize("name", ["chapter 08", "strong"])
def test_a_thread_keeps_its_own_calls_alone(name):
    model = made(name)
    inside, written = threading.Barrier(2), threading.Barrier(2)

    def shapes(length):
        with cache(model) as seen, torch.no_grad():
            inside.wait(20)  # both blocks are open
            model.encode(torch.randint(3, 20, (1, length)))
            written.wait(20)  # and both have computed
        return [tuple(seen[name].shape) for name in (WEIGHTS, "encoder.output")]

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(shapes, (3, 5)))
    assert found == [[(1, 4, n, n), (1, n, 16)] for n in (3, 5)]


def test_the_block_that_ends_first_takes_nothing_from_the_other(model):
    before = functions(model)
    one, two = cache(model), cache(model)
    opened, ended = threading.Event(), threading.Event()

    def other():
        with two as seen, torch.no_grad():
            opened.set()
            ended.wait(20)
            model.encode(ids(3))
        return len(seen)

    with ThreadPoolExecutor(1) as pool:
        with one as seen:
            job = pool.submit(other)
            assert opened.wait(20)
        ended.set()
        assert job.result() == 31
    assert len(seen) == 0
    assert functions(model) == before


def test_an_edit_is_not_seen_by_other_threads(model):
    source = ids(6)
    with torch.no_grad(), ThreadPoolExecutor(1) as pool:
        before = model.encode(source)
        with edit(model, {"encoder.*": lambda x: 2 * x}):
            meanwhile = pool.submit(model.encode, source).result()
            assert not torch.equal(model.encode(source), before)
    assert torch.equal(meanwhile, before)


def test_blocks_inside_one_another(model):
    before = functions(model)
    with torch.no_grad(), cache(model, WEIGHTS) as outer:
        model.encode(ids(3))
        with cache(model.encoder) as inner:
            model.encode(ids(4))
        model.encode(ids(5))
    assert [x.shape[-1] for x in outer.calls(WEIGHTS)] == [3, 4, 5]
    assert inner[WEIGHTS.removeprefix("encoder.")].shape[-1] == 4
    assert functions(model) == before


def test_an_error_ends_a_block_and_no_other(model):
    before = functions(model)
    with torch.no_grad(), cache(model) as outer:
        with pytest.raises(KeyError), cache(model) as inner:
            raise KeyError("inside")
        with pytest.raises(ValueError, match="outside the vocabulary"):
            model.encode(ids(3) + 10_000)
        model.encode(ids(3))
    assert outer[WEIGHTS].shape == (1, 4, 3, 3)
    assert len(inner) == 0
    assert functions(model) == before


def test_attention_set_inside_a_block_stays(model):
    attention = model.encoder.layers[0].self_attention
    with cache(model):
        attention.attend = kernel_attention
    assert attention.attend is kernel_attention


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))],
    ids=["deepcopy", "pickle"],
)
@pytest.mark.parametrize("name", ["chapter 08", "strong"])
def test_a_copy_made_inside_a_block_is_not_watched(name, copied):
    model = made(name)
    with cache(model) as seen, torch.no_grad():
        other = copied(model)
        other.encoder.layers[0].feed_forward.W_2.weight.zero_()
        memory = other.encode(SOURCE)
    assert len(seen) == 0
    assert not same(model.encode(SOURCE), memory)
    assert same(copied(other).encode(SOURCE), memory)


# The lens


def test_the_last_row_of_the_lens_is_the_model(model, tokenizer):
    lens = logit_lens(model, tokenizer, *PAIRS[0], k=3)
    source = torch.tensor([[*tokenizer.encode(PAIRS[0][0]), tokenizer.eos_id]])
    target = torch.tensor([[tokenizer.bos_id, *tokenizer.encode(PAIRS[0][1])]])
    with torch.no_grad():
        p = model(source, target)[0].softmax(dim=-1)
    best = p.topk(3)
    assert torch.allclose(lens.probabilities[-1], best.values)
    expected = [tokenizer.decode([row[0]]).strip() for row in best.indices.tolist()]
    assert [row[0] for row in lens.tokens[-1]] == expected
    assert lens.probabilities.shape == (3, target.shape[1], 3)
    assert lens.read[0] == "<s>"
    assert lens.written[-1] == "</s>"
    gold = torch.tensor([*target[0, 1:].tolist(), tokenizer.eos_id])
    assert torch.allclose(lens.of_written[-1], p[torch.arange(len(gold)), gold])


def test_the_lens_of_plain_and_pre_norm_models(tokenizer):
    sizes = SIZES | {"vocab_size": tokenizer.vocab_size}
    for model in (
        plain.Transformer(plain.TransformerConfig(**sizes)),
        Transformer(TransformerConfig(**sizes, norm_first=True)),
    ):
        lens = logit_lens(model, tokenizer, *PAIRS[1])
        with torch.no_grad(), cache(model, "logits") as seen:
            again = logit_lens(model, tokenizer, *PAIRS[1])
        p = seen.calls("logits")[0][0].softmax(dim=-1)
        assert torch.allclose(lens.probabilities[-1], p.topk(5).values)
        assert lens.tokens == again.tokens


def test_the_lens_refuses_what_it_cannot_read(model, tokenizer):
    one_stack = LanguageModel(LanguageConfig(**SIZES))
    with pytest.raises(ValueError, match="LanguageModel has no such pair"):
        logit_lens(one_stack, tokenizer, *PAIRS[0])
    with pytest.raises(ValueError, match="k must be"):
        logit_lens(model, tokenizer, *PAIRS[0], k=0)


# Names and heads


@pytest.mark.parametrize("kind", ["self", "Encoder", "", None, 0])
def test_another_kind_of_attention_is_refused(kind):
    with pytest.raises(ValueError, match="kind must be one of encoder, decoder, cross"):
        attention_name(kind, 0)


@pytest.mark.parametrize("head", [4, 9, 1.0])
@pytest.mark.parametrize("change", ["silent", "turned", "pasted"])
def test_a_head_that_is_not_there_is_refused(model, change, head):
    row, columns, donor = (
        torch.tensor([0]),
        torch.ones(1, 3) / 3,
        torch.zeros(1, 4, 3, 8),
    )
    changes = {
        "silent": {HEADS: silent(head)},
        "turned": {WEIGHTS: turned(head, row, columns)},
        "pasted": {HEADS: paste([head], row, donor)},
    }
    before = functions(model)
    with edit(model, changes[change]):
        with pytest.raises(ValueError, match="a place that a tensor") as refused:
            model.encode(ids(3))
    assert "count from 0" in str(refused.value)
    assert functions(model) == before


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
