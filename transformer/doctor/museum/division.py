"""Which half of the museum sets thresholds, and from which the figures come.

Drawn by lot before any threshold was set, within each organ (data/runs/checkup.md).
"""

TUNING = (
    "heads-joined-by-view",
    "wrong-triangle",
    "heads-cut-by-view",
    "mask-off-in-training",
    "memory-unmasked",
    "heads-and-batch",
    "softmax-over-batch",
    "one-position",
    "own-memory",
    "plain-list",
    "unused-layer",
    "one-layer-twice",
    "padded-row",
    "softmax-twice",
    "wide-embedding",
    "by-sentence",
    "log-of-zero",
    "exponent",
    "wrong-residual",
)
FIGURES = (
    "norm-over-positions",
    "softmax-over-queries",
    "no-mask",
    "mask-of-queries",
    "wrong-sense",
    "batch-as-time",
    "positions-of-batch",
    "no-positions",
    "empty-memory",
    "encoder-cut-off",
    "equal-layers",
    "dropout-always",
    "half-overflow",
    "relu-on-logits",
    "padding-in-loss",
    "not-shifted",
    "mean-of-means",
    "doubled-residual",
    "scale-of-model",
)
HEALTHY_TUNING = (
    "plain-00",
    "strong-learned",
    "strong-rotary",
    "strong-untied",
    "torch-norm-last",
    "marian",
    "convolution",
)
HEALTHY_FIGURES = (
    "plain-08",
    "strong",
    "strong-norm-first",
    "strong-all",
    "torch-norm-first",
    "t5",
    "recurrent",
)
# Added when the figures had been seen, and one rule was changed after them
HEALTHY_FRESH = ("bart", "lstm", "torch-gelu")
