"""The loss of logits x E^T without the table of logits.

For 25,000 target tokens and 37,000 types the logits z = x E^T (decoder's states times output
matrix) are 3.7 GB in fp32, their gradient as much again. Yet each row is needed for a moment only:
for one number, the loss, and for its gradient, softmax(z) - q, where q are the smoothed targets. So
some rows of x at a time get their logits, loss and gradient at once; dloss/dx and the sum of
dloss/dE are kept, and the logits forgotten.
"""

from contextlib import nullcontext

import torch


def autocast_off(device):
    """Inside this block autocast is off: products keep their inputs' precision."""
    if device.type not in ("cpu", "cuda"):  # nothing to switch off
        return nullcontext()
    return torch.autocast(device.type, enabled=False)


def projected_loss(x, E, gold, epsilon=0.1, pad_id=0):
    """Label-smoothed cross-entropy of the logits x E^T, summed over real tokens, logits not kept.

    x: (B, T, d_model), E: (V, d_model), gold: (B, T) ids -> a number, in nats; equal to
    `label_smoothing_loss` of notebook 13 with reduction="sum", gradients included. ValueError for
    an epsilon outside 0 to 1.
    """
    if not 0 <= epsilon <= 1:
        raise ValueError(f"epsilon must be between 0 and 1, not {epsilon}")
    real, wanted = gold != pad_id, torch.is_grad_enabled()
    if gold.device.type == "cpu" and not torch.compiler.is_compiling():
        x, gold, real = x[real], gold[real], None
    else:  # to choose rows, the host would have to wait for their number
        x = x.masked_fill(~real[..., None], 0.0).flatten(0, -2)
        gold, real = gold.flatten(), real.flatten()
    return Chunks.apply(x, E, gold, real, epsilon, chunk_rows(E), wanted)


def chunk_rows(E):
    """Rows of logits over the types of E that are computed at once.

    8 MiB of them on a CPU (they stay in its cache), else 512 MiB.
    """
    space = 8 * 2**20 if E.device.type == "cpu" else 512 * 2**20
    return max(1, space // (4 * len(E)))


def chunk_gradient(z, gold, real, epsilon):
    """Loss of logits z (n, V), summed, and its gradient (n, V), for gold (n,).

    real (n,): the rows whose loss counts, or None for all.
    """
    at_gold, mean, top = z.gather(1, gold[:, None])[:, 0], z.mean(dim=1), z.amax(dim=1)
    p = z.softmax(dim=1)
    log_sum = (
        top - p.amax(dim=1).log()
    )  # log of the sum of exponentials, from the largest entry
    losses = log_sum - (1 - epsilon) * at_gold - epsilon * mean
    loss = (losses if real is None else losses.masked_fill(~real, 0.0)).sum()
    p -= epsilon / z.shape[1]
    p.scatter_add_(1, gold[:, None], p.new_full((len(gold), 1), epsilon - 1))
    return loss, p


class Chunks(torch.autograd.Function):
    """The summed loss of x (n, d_model) projected by E (V, d_model); see `projected_loss`.

    Rows of x that do not count, by real (n,), are zeros.
    """

    @staticmethod
    def forward(ctx, x, E, gold, real, epsilon, rows, wanted):
        short = (
            x[:1] @ E[:1].T
        ).dtype  # bf16 or fp16 inside `autocast`, otherwise x's own
        total, to_x, to_E = x.new_zeros(()), torch.empty_like(x), torch.zeros_like(E)
        with autocast_off(x.device):
            weight = E.to(short)
            for i in range(0, len(x), rows):
                part = x[i : i + rows].to(short)
                z = (part @ weight.T).to(x.dtype)
                counts = None if real is None else real[i : i + rows]
                loss, gradient = chunk_gradient(z, gold[i : i + rows], counts, epsilon)
                total = total + loss
                if not wanted:  # only the loss
                    continue
                gradient = gradient.to(short)
                to_x[i : i + rows] = gradient @ weight
                if short == E.dtype:
                    to_E.addmm_(gradient.T, part)
                else:
                    to_E += gradient.T @ part
        ctx.save_for_backward(to_x, to_E)
        return total

    @staticmethod
    def backward(ctx, gradient):
        if torch.is_grad_enabled():  # create_graph=True
            raise RuntimeError(
                "the chunked loss has no second derivative: take SmoothedLoss"
            )
        to_x, to_E = ctx.saved_tensors
        return gradient * to_x, gradient * to_E, None, None, None, None, None
