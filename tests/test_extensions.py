"""What others plug in, in 15 lines or fewer each, through public imports and without an edit inside
the package.

Each is trained for two updates, saved, loaded, and searched where it generates. GUIDE.md
shows the same code.
"""

import inspect
from dataclasses import replace
from functools import partial

import pytest
import torch

from transformer import (
    TrainingConfig,
    beam_search,
    encode_pairs,
    greedy_search,
    load,
    read_corpus,
    train,
)
from transformer.corpora import CORPORA
from transformer.corpora.tokenizer import Tokenizer
from transformer.data import collate
from transformer.fast.loss import SmoothedLoss
from transformer.models.pretrained import save

PAIRS = read_corpus("bundled", "train")[:40]


# The extensions: each function's body is what somebody would write


def grouped_query_attention():
    from transformer.fast.attention import MultiHeadAttention
    from transformer.fast.model import Parts, Transformer, TransformerConfig
    from transformer.models.families import register

    class GroupedConfig(TransformerConfig):
        """All heads of queries share one head of keys and values."""

    class Grouped(Transformer):
        def __init__(self, config):
            super().__init__(
                config, Parts(attention=partial(MultiHeadAttention, h_kv=1))
            )

    register("grouped", Grouped, GroupedConfig)
    return GroupedConfig


def rotary_positions():
    from transformer.fast.model import TransformerConfig

    return partial(TransformerConfig, positions="rotary")


def another_attention():
    from transformer.fast.attention import (
        MultiHeadAttention,
        scaled_dot_product_attention,
    )
    from transformer.fast.model import Parts, Transformer, TransformerConfig
    from transformer.models.families import register

    def cosine_attention(q, k, v, mask=None):
        q, k = (10 * torch.nn.functional.normalize(x, dim=-1) for x in (q, k))
        return scaled_dot_product_attention(q, k, v, mask)

    class CosineConfig(TransformerConfig):
        """Queries and keys of one length."""

    parts = Parts(attention=partial(MultiHeadAttention, attend=cosine_attention))
    register("cosine", partial(Transformer, parts=parts), CosineConfig)
    return CosineConfig


def bias_on_scores():
    from transformer.attention import masked_softmax
    from transformer.fast.attention import MultiHeadAttention, scaled_dot_product
    from transformer.fast.model import Parts, Transformer, TransformerConfig
    from transformer.models.families import register

    def alibi(q, k, v, mask=None):
        h, T, S = q.shape[1], q.shape[-2], k.shape[-2]
        place = torch.arange(S, device=q.device)
        distance = (place[S - T :, None] - place).abs()  # the queries are the last T
        slope = 2.0 ** (-8 * torch.arange(1, h + 1) / h).to(q)
        scores = scaled_dot_product(q, k) - slope[:, None, None] * distance
        weights = masked_softmax(scores, mask)
        return weights @ v, weights

    def attention(*sizes, **own):  # rotate= for a layer's own sequence alone
        bias = {"attend": alibi} if own else {}
        return MultiHeadAttention(*sizes, **own, **bias)

    class AlibiConfig(TransformerConfig):
        """Scores fall with the distance, in each head at a rate of its own."""

    register(
        "alibi", partial(Transformer, parts=Parts(attention=attention)), AlibiConfig
    )
    return AlibiConfig


def own_norm_and_feed_forward():
    from transformer.fast.model import Parts, Transformer, TransformerConfig
    from transformer.models.families import register

    class RMSNorm(torch.nn.Module):
        def __init__(self, d_model):
            super().__init__()
            self.gain = torch.nn.Parameter(torch.ones(d_model))

        def forward(self, x):
            return self.gain * x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()

    class SwiGLU(torch.nn.Module):
        def __init__(self, d_model, d_ff):
            super().__init__()
            self.W_1 = torch.nn.Linear(d_model, 2 * d_ff, bias=False)
            self.W_2 = torch.nn.Linear(d_ff, d_model, bias=False)

        def forward(self, x):
            gate, hidden = self.W_1(x).chunk(2, dim=-1)
            return self.W_2(torch.nn.functional.silu(gate) * hidden)

    class GatedConfig(TransformerConfig):
        """RMSNorm and SwiGLU."""

    parts = Parts(norm=RMSNorm, feed_forward=SwiGLU)
    register("gated", partial(Transformer, parts=parts), GatedConfig)
    return GatedConfig


def decoder_only_model():
    from transformer.fast import model as m
    from transformer.models.families import register

    class DecoderOnlyConfig(m.TransformerConfig):
        """A decoder that continues what it has written, and reads no source."""

    class DecoderOnly(m.Transformer):
        def __init__(self, config):
            super().__init__(config)
            del self.encoder
            self.decoder = m.stack(config, m.Parts(), of_decoder=False)
            m.initialize(self)

        def loss(self, batch, criterion):
            x = self.embed(batch.decoder_input, self.target_embedding)
            mask = m.causal_mask(x.shape[1], x.device)
            return criterion(self.output, self.decoder(x, mask), batch.gold)

        def encode(self, source):
            return None

    register("decoder_only", DecoderOnly, DecoderOnlyConfig)
    return DecoderOnlyConfig


def encoder_only_model():
    from transformer.fast.model import Transformer, TransformerConfig
    from transformer.models.families import register

    class EncoderOnlyConfig(TransformerConfig):
        """An encoder that guesses hidden words."""

    class EncoderOnly(Transformer):
        def __init__(self, config):
            super().__init__(config)
            del self.decoder

        initial_state = None

        def loss(self, batch, criterion):
            hidden = torch.rand_like(batch.source, dtype=torch.float) < 0.15
            hidden &= batch.source != self.config.pad_id
            x = self.encode(batch.source.masked_fill(hidden, self.config.bos_id))
            return criterion(
                self.output, x, batch.source.masked_fill(~hidden, self.config.pad_id)
            )

    register("encoder_only", EncoderOnly, EncoderOnlyConfig)
    return EncoderOnlyConfig


def classifier():
    from dataclasses import dataclass

    from transformer.fast.model import Transformer, TransformerConfig
    from transformer.models.families import register

    @dataclass(frozen=True)
    class ClassifierConfig(TransformerConfig):
        """A sentence in; its class, counted from 1, out."""

        classes: int = 2

    class Classifier(Transformer):
        def __init__(self, config):
            super().__init__(config)
            del self.decoder
            self.output = torch.nn.Linear(config.d_model, config.classes + 1)

        initial_state = None

        def mean(self, source):
            real = (source != self.config.pad_id)[:, :, None]
            total = (self.encode(source) * real).sum(dim=1, keepdim=True)
            return total / real.sum(dim=1, keepdim=True).clamp(min=1)

        def forward(self, source):
            return self.output(self.mean(source))[:, 0, 1:]

        def loss(self, batch, criterion):
            return criterion(self.output, self.mean(batch.source), batch.gold)

    register("classifier", Classifier, ClassifierConfig)
    return ClassifierConfig


def french_corpus(folder):
    from transformer.corpora import register_corpus

    english, french = folder / "train.en", folder / "train.fr"
    register_corpus(
        "french",
        languages=("en", "fr"),
        train=(english, french),
        validation=(english, french),
        test=(english, french),
    )


def another_score():
    from transformer.core.scores import SCORES, Score

    def length_ratio(translations, references, language, resamples):
        words = [
            sum(len(text.split()) for text in side)
            for side in (translations, references)
        ]
        return Score(100 * words[0] / words[1], "words between spaces")

    SCORES["length_ratio"] = length_ratio


def another_optimizer(model):
    return torch.optim.AdamW(model.parameters(), weight_decay=0.1)


# That they work

GENERATING = [
    grouped_query_attention,
    rotary_positions,
    another_attention,
    bias_on_scores,
    own_norm_and_feed_forward,
    decoder_only_model,
]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train((text for pair in PAIRS for text in pair), vocab_size=300)


def trained(config_class, tokenizer, folder, encoded=None, **options):
    """A small model of a configuration after two updates, saved and loaded again.

    encoded: pairs of ids; the translations where not given.
    """
    from transformer.models.families import build

    torch.manual_seed(1)
    marks = {
        name: getattr(tokenizer, name)
        for name in ("vocab_size", "pad_id", "bos_id", "eos_id")
    }
    model = build(config_class(**marks, d_model=32, d_ff=64, N=2, h=4, P_drop=0.0))
    settings = TrainingConfig(
        updates=2, batch_tokens=400, warmup=2, validate_every=2, precision="fp32"
    )
    encoded = encoded or encode_pairs(tokenizer, PAIRS)
    log = train(model, encoded, settings, folder / "run", **options)
    assert log[-1]["update"] == 2 and torch.tensor(log[-1]["loss"]).isfinite()
    save(model, folder / "model", tokenizer)
    again, _ = load(folder / "model")
    assert type(again) is type(model) and again.config == model.config
    for a, b in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)
    return again


@pytest.mark.parametrize(
    "extension", [*GENERATING, encoder_only_model], ids=lambda f: f.__name__
)
def test_another_model(extension, tokenizer, tmp_path):
    model = trained(extension(), tokenizer, tmp_path)
    if extension in GENERATING:
        source = torch.tensor([[*tokenizer.encode(PAIRS[0][0]), tokenizer.eos_id]])
        greedy = greedy_search(model, source, extra=5)[0]
        best = beam_search(model, source, beam=1, alpha=0.0, extra=5)[0][0]
        assert greedy == best.tokens and 0 < len(greedy) <= source.shape[1] + 5


@pytest.mark.parametrize(
    "extension", [*GENERATING, encoder_only_model], ids=lambda f: f.__name__
)
def test_tensors_are_made_where_the_batch_is(extension):
    from transformer.models.families import build

    model = build(extension()(50, d_model=16, d_ff=16, N=1, h=2)).to("meta")
    batch = collate([([5, 6, 2], [1, 7, 2])] * 2).to("meta")
    assert model.loss(batch, SmoothedLoss()).device.type == "meta"


def test_a_classifier(tokenizer, tmp_path):
    """By sentences' lengths; padding changes nothing."""
    encoded = [
        (source, [tokenizer.bos_id, 1 + (len(source) > 12)])
        for source, _ in encode_pairs(tokenizer, PAIRS)
    ]
    model = trained(classifier(), tokenizer, tmp_path, encoded)
    source = collate(encoded[:3]).source
    assert model(source).shape == (3, 2)
    alone = [model(torch.tensor([ids]))[0] for ids, _ in encoded[:3]]
    torch.testing.assert_close(model(source), torch.stack(alone))
    assert model(torch.zeros(1, 3, dtype=torch.long)).isfinite().all()


@pytest.mark.parametrize("label", [3, -1, "1"])
def test_a_class_that_is_none(tokenizer, tmp_path, label):
    encoded = [(ids, [1, 1]) for ids, _ in encode_pairs(tokenizer, PAIRS)]
    encoded[1] = (encoded[1][0], [1, label])
    told = rf"pair 2 \(index 1\) has the class {label!r}, .* are 0 to 2: correct"
    with pytest.raises(ValueError, match=told):
        trained(classifier(), tokenizer, tmp_path, encoded)


def test_gaps_are_never_in_the_padding():
    from transformer.models.families import build

    model = build(encoder_only_model()(50, d_model=16, d_ff=16, N=1, h=2))
    seen = []
    model.encoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[1]))
    batch = collate([([5] * 30, [1, 7, 2]), ([5], [1, 7, 2])])
    for _ in range(20):
        model.loss(batch, SmoothedLoss())
    assert all(mask.sum(dim=-1).flatten().tolist() == [30, 1] for mask in seen)


def test_another_optimizer(tokenizer, tmp_path):
    """And it is resumed: two updates and two more are four."""
    from transformer.fast.model import TransformerConfig

    trained(TransformerConfig, tokenizer, tmp_path, optimizer=another_optimizer)


def test_another_corpus_and_score(tokenizer, tmp_path, monkeypatch):
    """From the command's own run to scores: the model knows its languages, the report the new
    score."""
    from transformer import evaluate
    from transformer.core.scores import SCORES
    from transformer.fast.model import TransformerConfig
    from transformer.runs.experiment import Experiment
    from transformer.runs.progress import read_log
    from transformer.runs.run import run_experiment

    for side, language in enumerate(("en", "fr")):
        text = "".join(pair[side] + "\n" for pair in PAIRS)
        (tmp_path / f"train.{language}").write_text(text, encoding="utf8")
    monkeypatch.setattr("transformer.core.scores.SCORES", dict(SCORES))
    monkeypatch.setattr("transformer.corpora.registry.CORPORA", dict(CORPORA))
    french_corpus(tmp_path)
    another_score()
    config = TransformerConfig(300, d_model=32, d_ff=64, N=1, h=2)
    settings = TrainingConfig(
        updates=2, batch_tokens=400, warmup=2, validate_every=2, precision="fp32"
    )
    e = Experiment("french", folder=tmp_path / "run", model=config, training=settings)
    run_experiment(e, "transformer train --corpus french", count=2)
    model, tokenizer = load(tmp_path / "run")
    assert (model.about.source, model.about.target) == ("en", "fr")
    report = evaluate(model, tokenizer, iter(read_corpus("french", "test")[:4]))
    assert report["length_ratio"]["score"] > 0 and report["bleu"]["signature"]
    e = replace(e, folder=tmp_path / "gaps", model=encoder_only_model()(**vars(config)))
    run_experiment(
        e, "transformer train --family encoder_only", count=2
    )  # it writes nothing
    assert read_log(e.folder)[-1].keys() & {"bleu", "validation_loss"} == {
        "validation_loss"
    }
    with pytest.raises(
        ValueError, match="EncoderOnly has no search: it writes nothing"
    ):
        evaluate(*load(e.folder), read_corpus("french", "test")[:4])


@pytest.mark.parametrize(
    "extension",
    [
        *GENERATING,
        encoder_only_model,
        classifier,
        french_corpus,
        another_score,
        another_optimizer,
    ],
    ids=lambda f: f.__name__,
)
def test_fifteen_lines_are_enough(extension):
    body = inspect.getsource(extension).splitlines()[1:]
    code = [
        line
        for line in body
        if line.strip() and not line.strip().startswith(('"""', "from ", "return "))
    ]
    assert len(code) <= 15
