"""Which precision this machine multiplies fastest in."""

import torch

from transformer.hardware import choose_precision, matmul_rate


def precision_hint(device: torch.device, precision: str = "auto") -> str:
    """A sentence where a CPU multiplies another way at 1.5 times the rate of fp32, or more.

    For whoever trains in fp32; otherwise "".
    """
    if device.type != "cpu" or choose_precision(device, precision) != "fp32":
        return ""
    rate = matmul_rate(device, rounds=2)
    for name in ("bf16", "medium"):
        ratio = matmul_rate(device, name, rounds=2) / rate
        if ratio >= 1.5:
            return (f"this CPU multiplies {ratio:.1f} times as fast with --precision {name} "
                    "as in fp32: try it")
    return ""
