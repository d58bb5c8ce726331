"""What tests of several layers share: inputs with gradients, at float64, and the comparison that
goes with them."""

import re
import signal

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from transformer import corpora
from transformer.corpora import bundled

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has no SIGKILL

SENTENCES = [
    [3, 5, 7, 8, 2],
    [9, 2],
    [4, 4, 6, 2],
    [11, 10, 9, 8, 7, 6, 2],
    [2],
    [5, 6, 2],
]


def random(*shape):
    """A leaf at float64 that takes a gradient."""
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def close(a, b):
    """Equal to within 1e-9, the house's bound at float64."""
    return torch.allclose(a, b, rtol=0, atol=1e-9)


def assert_close(a, b):
    """The same bound, with torch's own account of what differs; shapes and types must agree,
    too."""
    torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


def batch(rows=SENTENCES):
    """Lists of ids as one tensor, filled up with 0."""
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True)


def small_bundled(monkeypatch, read):
    """Let read(split) give the examples of the bundled corpus, wherever they are asked for."""
    for module in (corpora, bundled):
        monkeypatch.setattr(module, "read_bundled", read)


def sgml(sentences):
    """A test set as WMT distributed it."""
    rows = [f'<seg id="{i}">{text}</seg>' for i, text in enumerate(sentences, 1)]
    lines = [
        '<srcset setid="news">',
        '<doc docid="1">',
        *rows,
        "</doc>",
        "</srcset>",
        "",
    ]
    return "\n".join(lines).encode()


# An older torch's compiler breaks the graph, and its fused Adam knows no meta device
needs_newer_torch = pytest.mark.skipif(
    tuple(int(p) for p in re.findall(r"\d+", torch.__version__)[:2]) < (2, 5),
    reason="needs torch 2.5",
)
