"""A model's weights as a model of CTranslate2, a library that serves translations without torch."""

import importlib.util
from pathlib import Path

import torch

from transformer.core.checks import check_texts
from transformer.core.files import new_folder
from transformer.core.white_space import is_blank, normalised
from transformer.models.families import family_of
from transformer.models.pretrained import handed_parts


def numbers_of(weight: torch.Tensor):
    """A weight as CTranslate2 takes it."""
    return weight.detach().float().cpu().numpy()


def put(spec, *linears) -> None:
    """Lay an embedding, or linear layers one below the other, into a part of the other model."""
    spec.weight = numbers_of(torch.cat([linear.weight for linear in linears]))
    if getattr(linears[0], "bias", None) is not None:
        spec.bias = numbers_of(torch.cat([linear.bias for linear in linears]))


def put_norm(spec, norm) -> None:
    """Lay a `LayerNorm`'s gain and bias into a part of CTranslate2's model."""
    spec.gamma = numbers_of(norm.gain)
    spec.beta = numbers_of(norm.bias)


def put_attention(spec, attention, norm) -> None:
    """One attention sub-layer: W_Q, W_K and W_V as one matrix; over the memory W_Q alone, W_K and
    W_V as one.
    """
    readers = [attention.W_Q, attention.W_K, attention.W_V]
    if len(spec.linear) == 2:
        put(spec.linear[0], *readers)
    else:
        put(spec.linear[0], attention.W_Q)
        put(spec.linear[1], *readers[1:])
    put(spec.linear[-1], attention.W_O)
    put_norm(spec.layer_norm, norm)


def put_layer(spec, layer) -> None:
    """One encoder or decoder layer."""
    norms = [residual.norm for residual in layer.residuals]
    put_attention(spec.self_attention, layer.self_attention, norms[0])
    if hasattr(spec, "attention"):
        put_attention(spec.attention, layer.cross_attention, norms[1])
    put(spec.ffn.linear_0, layer.feed_forward.W_1)
    put(spec.ffn.linear_1, layer.feed_forward.W_2)
    put_norm(spec.ffn.layer_norm, norms[-1])


def check_exportable(model) -> None:
    """ValueError for a model that CTranslate2's Transformer cannot be."""
    family, c = family_of(model), model.config
    if parts := handed_parts(model):
        raise ValueError(
            f"this model was built with a part that CTranslate2 does not know ({parts[0]})"
            ": it cannot be exported"
        )
    if family not in ("transformer", "marian"):
        raise ValueError(
            "CTranslate2 knows the Transformer only, and this is a model of the family "
            f"{family}: it cannot be exported"
        )
    if any(width not in (None, c.d_model // c.h) for width in (c.d_k, c.d_v)):
        raise ValueError(
            f"CTranslate2 knows heads of width d_model / h = {c.d_model // c.h} only, "
            f"and this model has d_k={c.d_k}, d_v={c.d_v}: it cannot be exported"
        )
    attention = model.encoder.layers[0].self_attention
    if (
        c.positions in ("rotary", "none")
        or attention.W_K.weight.shape != attention.W_Q.weight.shape
    ):
        raise ValueError(
            "CTranslate2 adds positions to embeddings, and has a head of keys for "
            "each of queries; this model has not: it cannot be exported"
        )


def ctranslate2_spec(model, names: list[str]):
    """A model as CTranslate2's specification; names: one for each token id. ValueError for sizes it
    does not know.
    """
    from ctranslate2.specs import TransformerSpec, common_spec

    check_exportable(model)
    c = model.config
    activation = {
        "relu": common_spec.Activation.RELU,
        "silu": common_spec.Activation.SWISH,
        "gelu": common_spec.Activation.GELU,
    }[getattr(c, "activation", "relu")]
    spec = TransformerSpec.from_config(
        c.N, c.h, pre_norm=c.norm_first, activation=activation
    )
    for side, stack in ((spec.encoder, model.encoder), (spec.decoder, model.decoder)):
        side.position_encodings.encodings = numbers_of(model.positions.table)
        for part, layer in zip(side.layer, stack.layers):
            put_layer(part, layer)
        if c.norm_first:
            put_norm(side.layer_norm, stack.final_norm)
    put(spec.encoder.embeddings[0], model.embedding)
    put(spec.decoder.embeddings, model.target_embedding)
    put(spec.decoder.projection, model.output)
    name_types(spec, names, c)
    return spec


def name_types(spec, names: list[str], c) -> None:
    """Its vocabulary and marks: CTranslate2 speaks in types ("▁the"), not in numbers.

    The caller ends the source with its end mark, as our tokenizer does.
    """
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    spec.config.bos_token = names[c.bos_id]
    spec.config.decoder_start_token = names[c.bos_id]
    spec.config.eos_token = names[c.eos_id]
    spec.config.unk_token = names[c.pad_id]


def export_ctranslate2(model, names: list[str], folder: Path) -> None:
    """Write a model for CTranslate2 into a new folder, through a temporary one.

    names: one for each token id. FileExistsError where the folder is there; ModuleNotFoundError (a
    sentence) without CTranslate2.
    """
    if importlib.util.find_spec("ctranslate2") is None:
        raise ModuleNotFoundError(
            "the export needs CTranslate2: pip install 'ctranslate2>=4.5', then run this again"
        )
    with new_folder(folder) as made:
        spec = ctranslate2_spec(model, names)
        spec.validate()
        spec.optimize()
        spec.save(str(made))


def type_names(tokenizer) -> list[str]:
    """The name of each token id of a tokenizer, as CTranslate2 wants them."""
    if hasattr(tokenizer, "types"):  # pieces of a Marian folder
        return tokenizer.types
    return [tokenizer.bpe.id_to_token(i) for i in range(tokenizer.vocab_size)]


def translate_there(
    folder: Path, tokenizer, sentences: list[str], beam: int = 1
) -> list[str]:
    """Translations of sentences by the CTranslate2 model in a folder, in fp32 on this CPU.

    White space is normalised, and what is blank has the translation "", as in `translate`.
    """
    import ctranslate2

    sentences = [normalised(sentence) for sentence in check_texts(sentences)]
    names = type_names(tokenizer)
    ids = {name: i for i, name in enumerate(names)}
    there = ctranslate2.Translator(
        str(folder), compute_type="float32", intra_threads=torch.get_num_threads()
    )
    sources = [
        [names[i] for i in [*tokenizer.encode(sentence), tokenizer.eos_id]]
        for sentence in sentences
    ]
    found = there.translate_batch(
        sources, beam_size=beam, length_penalty=0.6, max_decoding_length=512
    )
    return [
        ""
        if is_blank(sentence)
        else tokenizer.decode([ids[name] for name in result.hypotheses[0]])
        for sentence, result in zip(sentences, found)
    ]
