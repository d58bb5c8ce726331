"""Attention by torch's kernels, which never write the table of weights."""

from functools import cache

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from transformer.attention import scaled_dot_product_attention
from transformer.core.checks import check_values

# Not cuDNN's, which torch 2.13 would take on an H100: it plans anew for every shape of batch, and
# its gradients with a mask can be NaN (pytorch issue 196678).
BACKENDS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
SHORT = 256  # keys


def kernel_attention(q, k, v, mask=None):
    """`scaled_dot_product_attention` by torch's kernel: the output (B, h, T, d_v), and None for the
    weights.

    Rows that may attend to nothing give zeros, on every version of torch. On a CPU the formula is
    taken where it is quicker: for a single query, and for few keys in bf16 or at "medium". There
    the kernel's backward pass in bf16 is slow at any length, so it gets fp32.
    """
    if mask is not None and mask.dtype != torch.bool:
        raise TypeError(f"mask must be boolean (True = may attend), not {mask.dtype}")
    check_values(k, v)
    if q.device.type != "cpu":
        with sdpa_kernel(BACKENDS):
            return kernel(q, k, v, mask), None
    other = (
        q.dtype == torch.bfloat16 or torch.get_float32_matmul_precision() == "medium"
    )
    if q.shape[-2] == 1 or (other and k.shape[-2] < SHORT):
        return scaled_dot_product_attention(q, k, v, mask)
    wide = torch.promote_types(q.dtype, torch.float32)
    with torch.autocast("cpu", enabled=False):
        return kernel(q.to(wide), k.to(wide), v.to(wide), mask).to(q.dtype), None


def kernel(q, k, v, mask):
    """`F.scaled_dot_product_attention`, with zeros for rows in which mask allows nothing."""
    if mask is None or empty_rows_are_zero():
        return F.scaled_dot_product_attention(q, k, v, mask)
    some = mask.any(dim=-1, keepdim=True)
    return F.scaled_dot_product_attention(q, k, v, mask | ~some).masked_fill(~some, 0.0)


@cache
def empty_rows_are_zero():
    """True where torch's kernel gives zeros for a row without any key; before torch 2.5 it gave
    NaN."""
    x = torch.ones(1, 1, 1, 1)
    nothing = torch.zeros(1, 1, dtype=torch.bool)
    return bool((F.scaled_dot_product_attention(x, x, x, nothing) == 0).all())
