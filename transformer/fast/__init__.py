"""Faster parts: the same parameters' names and, within rounding, the same results.

Whoever builds a model hands them in.
"""

from functools import partial

from transformer.attention import MultiHeadAttention
from transformer.fast.attention import kernel_attention
from transformer.fast.loss import ChunkedLoss
from transformer.fast.optimizer import fused_adam
from transformer.model import Parts
from transformer.protocol import build, kind_of

FAST = Parts(attention=partial(MultiHeadAttention, attend=kernel_attention))


def build_fast(config):
    """The model of a configuration with fresh weights, from fast parts where its kind has any."""
    return build(config, parts=FAST) if kind_of(config) == "transformer" else build(config)


def fast_training(training, config) -> dict:
    """The loss and the optimizer that `train` takes, for its settings and a model's configuration."""
    return {"criterion": ChunkedLoss(training.epsilon_ls, config.pad_id), "optimizer": fused_adam}
