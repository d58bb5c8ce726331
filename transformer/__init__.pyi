"""The front door as editors and type checkers see it."""

from transformer.core.protocol import About as About
from transformer.core.scores import bleu as bleu
from transformer.corpora import read_corpus as read_corpus
from transformer.corpora import register_corpus as register_corpus
from transformer.corpora.tokenizer import Tokenizer as Tokenizer
from transformer.data import encode_pairs as encode_pairs
from transformer.doctor.examination import assert_healthy as assert_healthy
from transformer.doctor.examination import checkup as checkup
from transformer.fast.attention import MultiHeadAttention as MultiHeadAttention
from transformer.fast.model import Parts as Parts
from transformer.fast.model import Transformer as Transformer
from transformer.fast.model import TransformerConfig as TransformerConfig
from transformer.fast.search import beam_search as beam_search
from transformer.fast.search import greedy_search as greedy_search
from transformer.models.alignment import align as align
from transformer.models.evaluation import evaluate as evaluate
from transformer.models.families import register as register
from transformer.models.lens import logit_lens as logit_lens
from transformer.models.maps import attention_maps as attention_maps
from transformer.models.pretrained import load as load
from transformer.models.pretrained import save as save
from transformer.models.recording import cache as cache
from transformer.models.recording import edit as edit
from transformer.models.recording import names as names
from transformer.models.search import stream as stream
from transformer.models.search import translate as translate
from transformer.models.search import translate_n_best as translate_n_best
from transformer.runs.experiment import Experiment as Experiment
from transformer.runs.run import run_experiment as run_experiment
from transformer.runs.training import TrainingConfig as TrainingConfig
from transformer.runs.training import train as train
from transformer.views.pages import view as view

__version__: str
