"""An annotated, executable reproduction of "Attention Is All You Need" (Vaswani et al., 2017).

The names below are the front door: `from transformer import load, translate`. Each is imported
where it is first asked for, so that `import transformer` itself takes no time. Every other module
is paired with the notebook of one section of the paper, or serves those; see the README's table.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer.attention import record_attention
    from transformer.corpora import read_corpus
    from transformer.data import Tokenizer, encode_pairs
    from transformer.decoding import beam_search, greedy_search
    from transformer.model import Transformer, TransformerConfig
    from transformer.pages import view
    from transformer.pretrained import load, save
    from transformer.protocol import register
    from transformer.scores import bleu
    from transformer.search import translate, translate_n_best
    from transformer.training import TrainingConfig, train
    from transformer.translation import evaluate

__version__ = "0.1.0"
__all__ = [
    "Tokenizer", "TrainingConfig", "Transformer", "TransformerConfig", "beam_search", "bleu",
    "encode_pairs", "evaluate", "greedy_search", "load", "read_corpus", "record_attention",
    "register", "save", "train", "translate", "translate_n_best", "view",
]
HOMES = {
    "attention": ["record_attention"],
    "corpora": ["read_corpus"],
    "data": ["Tokenizer", "encode_pairs"],
    "decoding": ["beam_search", "greedy_search"],
    "model": ["Transformer", "TransformerConfig"],
    "pages": ["view"],
    "pretrained": ["load", "save"],
    "protocol": ["register"],
    "scores": ["bleu"],
    "search": ["translate", "translate_n_best"],
    "training": ["TrainingConfig", "train"],
    "translation": ["evaluate"],
}


def __getattr__(name: str) -> Any:
    """Import one of the names above when it is first asked for (PEP 562)."""
    for module, names in HOMES.items():
        if name in names:
            value = getattr(import_module(f"{__name__}.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
