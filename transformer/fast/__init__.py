"""The plain parts of the notebooks made strong: other sizes, switches, caches and speed.

The parameters have the same names and, within rounding, the results are the same.
"""

from functools import partial

from transformer.fast.attention import MultiHeadAttention, kernel_attention
from transformer.fast.dropout import BitDropout
from transformer.fast.model import Parts

FAST = Parts(
    attention=partial(MultiHeadAttention, attend=kernel_attention), dropout=BitDropout
)
