"""Faster parts: the same parameters' names and, within rounding, the same results.

Whoever builds a model hands them in.
"""

from functools import partial

from transformer.attention import MultiHeadAttention
from transformer.fast.attention import kernel_attention
from transformer.fast.dropout import BitDropout
from transformer.model import Parts

FAST = Parts(
    attention=partial(MultiHeadAttention, attend=kernel_attention), dropout=BitDropout
)
