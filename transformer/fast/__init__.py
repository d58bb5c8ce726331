"""Faster parts: the same parameters' names and, within rounding, the same results.

Whoever builds a model hands them in.
"""

from functools import partial

from transformer.attention import MultiHeadAttention
from transformer.core.protocol import build, kind_of
from transformer.fast.attention import kernel_attention
from transformer.fast.dropout import BitDropout
from transformer.model import Parts

FAST = Parts(
    attention=partial(MultiHeadAttention, attend=kernel_attention), dropout=BitDropout
)
TAKES_PARTS = ("transformer", "language")


def build_fast(config):
    """The model of a configuration with fresh weights, from fast parts where its kind has any."""
    return (
        build(config, parts=FAST) if kind_of(config) in TAKES_PARTS else build(config)
    )
