"""An annotated, executable reproduction of "Attention Is All You Need" (Vaswani et al., 2017).

Each file here is a chapter, the same cells as its notebook, and each folder is engine:

    whole paper  first_transformer
    1, 2         recurrence, convolution
    3.1 to 3.5   stacks, attention, feed_forward, embeddings, positions
    3            model
    4            complexity
    5.1 to 5.4   data, hardware, optimizer, regularization
    5            training
    6.1          decoding, translation
    6.2, 6.3     variations, parsing
    Figures 3-5  visualization
    7            speed, language, sparse, images, state_space, imported
    yours        diagnosis
    appendix     vocabulary (torchtext)

A chapter has the plainest form of what it teaches. The names below are the front door, and give
the engine's strong forms: `from transformer import load, translate`; `help(translate)` has the rest.

    translate         load, save, translate, translate_n_best, stream, align, About
    train             Experiment, run_experiment, TrainingConfig, train
    data              Tokenizer, encode_pairs, read_corpus, register_corpus
    score             bleu, evaluate
    build             Transformer, TransformerConfig, Parts, MultiHeadAttention, register
    search            greedy_search, beam_search
    look inside       view, attention_maps, cache, names, edit, logit_lens
    examine a model   checkup, assert_healthy

Each is imported where it is first asked for, so that `import transformer` itself takes no time.
Editors and type checkers read `__init__.pyi`.
"""

from importlib import import_module
from typing import Any

RELEASE = "0.1.0"  # the last; tools/version.py makes each commit's version from it
HOMES = {
    "corpora": ["read_corpus", "register_corpus"],
    "corpora.tokenizer": ["Tokenizer"],
    "data": ["encode_pairs"],
    "fast.attention": ["MultiHeadAttention"],
    "fast.search": ["beam_search", "greedy_search"],
    "fast.model": ["Parts", "Transformer", "TransformerConfig"],
    "views.pages": ["view"],
    "doctor.examination": ["assert_healthy", "checkup"],
    "models.families": ["register"],
    "models.maps": ["attention_maps"],
    "models.pretrained": ["load", "save"],
    "core.protocol": ["About"],
    "core.scores": ["bleu"],
    "models.lens": ["logit_lens"],
    "models.recording": ["cache", "edit", "names"],
    "models.alignment": ["align"],
    "models.search": ["stream", "translate", "translate_n_best"],
    "runs.experiment": ["Experiment"],
    "runs.run": ["run_experiment"],
    "runs.training": ["TrainingConfig", "train"],
    "models.evaluation": ["evaluate"],
}
__all__ = sorted(name for names in HOMES.values() for name in names)


def __getattr__(name: str) -> Any:
    """Import one of the names above when it is first asked for (PEP 562)."""
    if name == "__version__":
        return installed_version()
    for module, names in HOMES.items():
        if name in names:
            value = getattr(import_module(f"{__name__}.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def installed_version() -> str:
    """The version that was installed; the last release where this folder was only put on the
    path."""
    from importlib import metadata

    try:
        return metadata.version("annotated-attention")
    except metadata.PackageNotFoundError:
        return RELEASE


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
