"""What tests of several layers share: inputs with gradients, at float64, and the comparison that goes with them."""

import torch


def random(*shape):
    """A leaf at float64 that takes a gradient."""
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def close(a, b):
    """Equal to within 1e-9, the house's bound at float64."""
    return torch.allclose(a, b, rtol=0, atol=1e-9)
