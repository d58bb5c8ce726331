"""`transformer bench`: this package beside torch.nn.Transformer, Marian and CTranslate2, on the
same work in turns.
"""

from transformer.bench.run import run_bench as run_bench
from transformer.bench.settings import PARTS as PARTS
from transformer.bench.settings import Bench as Bench
