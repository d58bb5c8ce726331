"""An annotated, executable reproduction of "Attention Is All You Need" (Vaswani et al., 2017).

Each module is paired with the notebook of one section of the paper; see the README for the table.
"""

from transformer.model import Transformer, TransformerConfig

__all__ = ["Transformer", "TransformerConfig"]
__version__ = "0.1.0"
