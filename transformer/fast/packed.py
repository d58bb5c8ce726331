"""Weights laid out in the order that oneDNN reads fastest on a CPU: for searches, which use them
often without changing them."""

import copy
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrize

from transformer.embeddings import Projection

SMALLEST = 2**17  # entries of a weight that is worth it

# what was laid out already, as long as the part that it belongs to lives
LAID_OUT: WeakKeyDictionary[nn.Module, tuple] = WeakKeyDictionary()


def fingerprint(weight):
    """Whole numbers (m + n or fewer) that tell whether a weight (m, n) is still the same: sums of
    its bits by rows, and its first row.

    torch's own counter of changes, `_version`, does not move where a fused optimizer, or code
    that writes past autograd, changes a weight. Reading a weight once takes about a seventh of the
    time of laying it out.
    """
    weight = weight.detach()
    in_pairs = (
        weight.is_contiguous()
        and weight.shape[1] % 2 == 0
        and weight.storage_offset() % 2 == 0
    )
    bits = weight.view(torch.int64 if in_pairs else torch.int32)
    return torch.cat([bits.sum(dim=1), bits[0]])


def laid_out(linear, rows):
    """The weight of a linear map in oneDNN's order: that of an earlier call while the weight is
    the same."""
    now = fingerprint(linear.weight)
    rows_then, then, weight = LAID_OUT.get(linear, (None, None, None))
    if rows_then != rows or not torch.equal(then, now):
        weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), rows)
        LAID_OUT[linear] = rows, now, weight
    return weight


class PackedLinear(nn.Module):
    """x (..., n) -> x W^T + b (..., m), with a copy of the weight in oneDNN's order, the best for
    about 64 rows.

    Without gradients, and for inputs of the weight's type; otherwise it is torch's `F.linear`.
    """

    def __init__(self, linear, rows=64):
        super().__init__()
        self.weight, self.bias = linear.weight, getattr(linear, "bias", None)
        self.out_features, self.in_features = linear.weight.shape
        self.packed = laid_out(linear, rows)

    def forward(self, x):
        if torch.is_grad_enabled() or x.dtype != self.weight.dtype:
            return F.linear(x, self.weight, self.bias)
        return torch.ops.mkldnn._linear_pointwise(
            x, self.packed, self.bias, "none", [], ""
        )


def is_compiled(model):
    """Whether torch.compile is at work, in `model.compile()` or around a part of the model."""
    return any(
        module._compiled_call_impl or "_orig_mod" in module._modules
        for module in model.modules()
    )


def can_pack(model):
    """True for fp32 weights on a CPU with oneDNN, unless torch.compile lays out weights by
    itself, or somebody looks into the model (models/watching.py)."""
    there = (
        hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and torch.backends.mkldnn.is_available()
    )
    fits = all(
        p.device.type == "cpu" and p.dtype == torch.float32 for p in model.parameters()
    )
    looked_into = any(
        getattr(hook, "looks_inside", False)
        for module in model.modules()
        for hook in (
            *module._forward_hooks.values(),
            *module._forward_pre_hooks.values(),
        )
    )
    return there and fits and not looked_into and not is_compiled(model)


def packed(model):
    """A copy of a model that shares its parameters and multiplies by packed copies of the large
    ones, which are made once and again where a weight has changed since.

    The model itself where `can_pack` says no. For use without gradients, while the weights stay.
    """
    if not can_pack(model):
        return model
    copies = {}

    def quick(part):
        if id(part) not in copies:
            large = (
                type(part) in (nn.Linear, Projection)
                and part.weight.numel() >= SMALLEST
            )
            if large and not (part._forward_hooks or part._forward_pre_hooks):
                copies[id(part)] = PackedLinear(part)
            elif parametrize.is_parametrized(part):  # cannot be copied
                copies[id(part)] = part
            else:
                copies[id(part)] = own = copy.copy(part)
                own._modules = {
                    name: child and quick(child)
                    for name, child in part._modules.items()
                }
        return copies[id(part)]

    return quick(model)


def compile_stacks(model, dynamic=True):
    """Let torch.compile write kernels for a model's stacks, for any batch size and length, or for
    one shape where not dynamic; returns the model."""
    for name, stack in model.named_children():
        if name in ("encoder", "decoder"):
            stack.compile(dynamic=dynamic)
    return model
