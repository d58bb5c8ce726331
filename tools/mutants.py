"""Break the package on purpose, once a row of TABLE, and see whether the unit tests notice.

python tools/mutants.py              every row (make mutants)
python tools/mutants.py masks beam   those of which a word stands in the area or the place
python tools/mutants.py --list       only check that each row fits its place exactly once

A row is matched by the syntax tree of its definition, so that layout and comments do not matter;
names that begin with an underscore stand for any expression. Each break is tried in a copy of the
package. Exit status 1 where no test fails, or where a row does not fit.
"""

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Mutant(NamedTuple):
    """A break: the expression or statement `old` in a definition becomes `new`.

    place: module and definition, such as "attention.MultiHeadAttention.forward"; tests: names of
    the test files that should notice, where that is not the module's own.
    """

    area: str
    place: str
    old: str
    new: str
    tests: str = ""


# area: [(place, old, new, tests), ...]
TABLE = {
    "scaling": [
        ("attention.scaled_dot_product", "_ / math.sqrt(q.shape[-1])", "_"),
        ("embeddings.Embedding.forward", "_ * math.sqrt(self.weight.shape[1])", "_"),
    ],
    "masks": [
        ("attention.masked_softmax", "logits.masked_fill(~mask, _)", "logits.masked_fill(mask, _)"),
        ("attention.masked_softmax", "_.masked_fill(~mask, 0.0)", "_"),
        ("attention.causal_mask", "_.tril()", "_.tril(1)"),
        ("attention.padding_mask", "tokens != pad_id", "tokens == tokens"),
        ("model.Transformer.states", "causal_mask(_a, _b)", "None"),
        ("model.Transformer.encode", "self.encoder(_a, _mask)", "self.encoder(_a)"),
        ("stacks.Layer.forward", "partial(_a, key=_k, value=_v, mask=memory_mask, cache=_c)",
         "partial(_a, key=_k, value=_v, cache=_c)"),
    ],
    "heads": [
        ("attention.split_heads", "x.unflatten(-1, _).transpose(1, 2)",
         "x.reshape(len(x), h, x.shape[1], -1)"),
        ("attention.join_heads", "x.transpose(1, 2).flatten(2)",
         "x.reshape(len(x), x.shape[2], -1)"),
        ("attention.MultiHeadAttention.forward", "x.repeat_interleave(_, dim=1)",
         "x.repeat(1, _, 1, 1)"),
    ],
    "positions and caches": [
        ("positions.sinusoids", "[angle.sin(), angle.cos()]", "[angle.cos(), angle.sin()]"),
        ("positions.positions_of", "table[start:start + length]", "table[:length]"),
        ("positions.RotaryPositions.forward", "cos * even - sin * odd", "cos * even + sin * odd"),
        ("attention.MultiHeadAttention.forward", "getattr(cache, 'length', 0)", "0"),
        ("model.Transformer.step", "self.embed(_a, tokens, start)", "self.embed(_a, tokens)"),
        ("decoding.KeyValueCache.select", "some_rows(self.v, rows, _)",
         "some_rows(self.v, rows.sort().values, _)"),
        ("state.State.select", "self.source_mask[rows]", "self.source_mask[:len(rows)]",
         "model decoding"),
    ],
    "layers": [
        ("stacks.layer_norm", "((x - mean) ** 2).mean(dim=-1, keepdim=True)",
         "x.var(dim=-1, keepdim=True)"),
        ("stacks.Residual.forward", "self.norm(x + self.dropout(sublayer(x)))",
         "self.norm(self.dropout(sublayer(x)))"),
        ("stacks.Residual.forward", "x + self.dropout(sublayer(self.norm(x)))",
         "self.norm(x + self.dropout(sublayer(x)))"),
        ("model.stack", "parts.norm(c.d_model) if c.norm_first else None", "None"),
        ("feed_forward.FeedForward.forward", "_.relu()", "_"),
        ("model.Transformer.__init__", "self.output = Projection(self.embedding)",
         "self.output = Projection(Embedding(c.vocab_size, c.d_model))"),
    ],
    "recurrence": [
        ("recurrence.gru_step", "(1 - z) * n + z * h", "z * n + (1 - z) * h"),
        ("recurrence.RecurrentEncoder.forward", "lengths.cpu()",
         "torch.full_like(lengths, x.shape[1]).cpu()"),
        ("recurrence.RecurrentDecoder.forward", "own.tensors or _", "_"),
        ("recurrence.blend", "scores.masked_fill(~mask, _)", "scores"),
    ],
    "convolution": [
        ("convolution.glu", "a * torch.sigmoid(b)", "a * torch.tanh(b)"),
        ("convolution.Convolution.forward", "(self.k - 1, 0)", "(self.k - 2, 1)"),
        ("convolution.GatedBlock.gated", "self.dropout(x) * real", "self.dropout(x)"),
    ],
    "data": [
        ("data.Batch.gold", "self.target[:, 1:]", "self.target[:, :-1]"),
        ("data.encode_pairs", "begin + target + end", "begin + target"),
        ("data.similar_batches", "(len(batch) + 1) * _", "len(batch) * _"),
        ("data.BytePairs.__init__", "self.bpe.encode_special_tokens = True", "pass"),
    ],
    "optimizer": [
        ("optimizer.learning_rate", "step * warmup**-1.5", "step * warmup**-0.5"),
        ("optimizer.adam_update", "v / (1 - beta_2**step)", "v"),
        ("optimizer.ADAM", "(0.9, 0.98)", "(0.9, 0.999)"),
    ],
    "regularization": [
        ("regularization.dropout", "_ / (1 - P_drop)", "_"),
        ("regularization.smoothed_targets", "epsilon / V", "epsilon / (V - 2)"),
        ("regularization.label_smoothing_loss", "F.cross_entropy(_a, _b, ignore_index=pad_id, "
         "label_smoothing=_c, reduction=_d)",
         "F.cross_entropy(_a, _b, label_smoothing=_c, reduction=_d)"),
    ],
    "loop": [
        ("training.update_weights", "objective(_) / tokens",
         "objective(_) / (batch.gold != 0).sum()"),
        ("training.update_weights", "clip or math.inf", "math.inf"),
        ("training.update_weights", "loss * process_count()", "loss", "distributed"),
        ("training.update_weights", "torch.manual_seed(seed)", "None"),
        ("training.train", "learning_rate(update, _a, _b, _c)",
         "learning_rate(update * config.accumulate, _a, _b, _c)"),
        ("training.train", "endless_batches(_a, _b, _c, *run.place())",
         "endless_batches(_a, _b, _c)"),
        ("checkpoint.save_checkpoint", "optimizer.state[p].items()", "()", "training"),
    ],
    "decoding": [
        ("decoding.average_checkpoints", "_ / len(paths)", "_ / (len(paths) + 1)"),
        ("decoding.length_penalty", "((5 + length) / 6) ** alpha", "length ** alpha"),
        ("decoding.extend", "min(2 * K, k * V)", "min(K, k * V)"),
        ("decoding.can_improve", "found_scores[:, -1]", "found_scores[:, 0]"),
        ("decoding.can_improve", "length_penalty(limit, alpha)", "length_penalty(1, alpha)"),
        ("decoding.advance", "beam.limit <= length", "beam.limit < length"),
        ("decoding.next_log_probs", "log_probs[:, model.config.pad_id] = -torch.inf", "pass"),
    ],
    "scores": [
        ("scores.multi_bleu",
         "BLEU(lowercase=_, tokenize='none', smooth_method='none', force=True)",
         "BLEU(lowercase=_, tokenize='none', force=True)", "decoding"),
        ("evalb.brackets", "_ if t.label() not in settings.delete else []", "_", "parsing"),
        ("evalb.score_trees", "(spans & test_spans).total()", "len(spans & test_spans)",
         "parsing"),
        ("evalb.summary", "2 * total['matched']", "total['matched']", "parsing"),
        ("parsing.read_back", "stack[-1].label() != symbol[1:]", "False"),
    ],
    "travels with a model": [
        ("runs.finish", "model.about = _", "pass"),
        ("search.chosen", "own.beam if beam is None else beam", "4 if beam is None else beam",
         "runs cli"),
    ],
    "fast": [
        ("fast.attention.kernel_attention", "kernel(q.to(wide), _k, _v, mask)",
         "kernel(q.to(wide), _k, _v, None)"),
        ("fast.loss.chunk_gradient", "p -= epsilon / z.shape[1]", "pass", "fast"),
        ("fast.training.fused_adam", "torch.zeros(())", "torch.ones(())", "fast"),
    ],
    "costs": [
        ("hardware.training_flops", "3 * _", "2 * _"),
        ("hardware.forward_flops", "attention_flops(c, T, S)", "attention_flops(c, T, T)"),
    ],
}
MUTANTS = [Mutant(area, *row) for area, rows in TABLE.items() for row in rows]


def find(place, root=ROOT):
    """(path of the module, its tree, the node of the definition) of a place."""
    names, folder = place.split("."), root / "transformer"
    while (folder / names[0]).is_dir():
        folder /= names.pop(0)
    path = folder / f"{names.pop(0)}.py"
    tree = node = ast.parse(path.read_text(encoding="utf8"))
    for name in names:
        node = next((part for part in node.body if name in named(part)), None)
        if node is None:
            raise ValueError(f"{path.name} has no {'.'.join(names)}")
    return path, tree, node


def named(statement):
    """The names that a statement defines: of a function, a class, or constants."""
    targets = getattr(statement, "targets", [statement])
    return [getattr(target, "name", getattr(target, "id", None)) for target in targets]


def parse(text):
    """The tree of an expression or of a statement."""
    statement, = ast.parse(text).body
    return statement.value if isinstance(statement, ast.Expr) else statement


def same(pattern, node, bound):
    """Does a node look like the pattern? What underscored names stand for goes into `bound`."""
    if isinstance(pattern, ast.Name) and pattern.id.startswith("_"):
        bound[pattern.id] = node
        return isinstance(node, ast.expr)
    if isinstance(pattern, list):
        return len(pattern) == len(node) and all(
            same(a, b, bound) for a, b in zip(pattern, node))
    if isinstance(pattern, ast.AST):
        return type(pattern) is type(node) and all(
            same(part, getattr(node, name), bound) for name, part in ast.iter_fields(pattern))
    return pattern == node


class Replace(ast.NodeTransformer):
    """Puts a new tree where an old one stands, and counts how often."""

    def __init__(self, old, new):
        self.old, self.new, self.count = parse(old), new, 0

    def visit(self, node):
        bound = {}
        if not same(self.old, node, bound):
            return self.generic_visit(node)
        self.count += 1
        return Fill(bound).visit(parse(self.new))


class Fill(ast.NodeTransformer):
    """Puts expressions in the places of the names that stand for them."""

    def __init__(self, bound):
        self.bound = bound

    def visit_Name(self, node):
        return self.bound.get(node.id, node)


def broken(mutant, root=ROOT):
    """(path of the module, its text with the break); ValueError where old is not there once."""
    path, tree, node = find(mutant.place, root)
    replace = Replace(mutant.old, mutant.new)
    replace.visit(node)
    if replace.count != 1:
        raise ValueError(f"{mutant.place}: {mutant.old} stands there {replace.count} times, "
                         "not once")
    return path, ast.unparse(ast.fix_missing_locations(tree))


def tests_of(mutant):
    """The test files that should notice a break."""
    module = find(mutant.place)[0].stem
    return [f"tests/test_{name}.py" for name in (mutant.tests or module).split()]


def run_tests(tests, path=None, text=None, limit=900):
    """(pytest's exit status, what failed first) in a copy of the package, broken by text at path.

    Status 1: a test failed.
    """
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        for part in ("transformer", "tests"):
            shutil.copytree(ROOT / part, Path(name, part),
                            ignore=shutil.ignore_patterns("__pycache__"))
        for part in ("data", "notebooks", "tools", "pyproject.toml"):
            Path(name, part).symlink_to(ROOT / part)
        if path:
            Path(name, path.relative_to(ROOT)).write_text(text, encoding="utf8")
        environment = {**os.environ, "PYTHONPATH": name, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "pytest", "-xq", "--tb=line", "-p", "no:cacheprovider"]
        try:
            done = subprocess.run([*command, *tests], cwd=name, env=environment,
                                  capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return 1, "ran for ever"
    lines = done.stdout.strip().splitlines() or ["no output"]
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return done.returncode, (failed or lines[-1:])[0].split(" - ")[0]


def try_mutant(mutant):
    """(noticed, by what) for one mutant."""
    status, by = run_tests(tests_of(mutant), *broken(mutant))
    return status == 1, by.removeprefix("FAILED ")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    words = arguments.words or [""]
    chosen = [m for m in MUTANTS if any(word in f"{m.area} {m.place}" for word in words)]
    for mutant in chosen:
        broken(mutant)
    if arguments.list:
        print(f"{len(chosen)} rows, each fits once")
        return
    start, survived = time.time(), 0
    files = sorted({name for mutant in chosen for name in tests_of(mutant)})
    status, last = run_tests(["-n", str(arguments.jobs), *files])
    if status:
        sys.exit(f"the tests must pass on the unbroken package first: {last}")
    print(f"unbroken: {last}", flush=True)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for mutant, (noticed, by) in zip(chosen, pool.map(try_mutant, chosen)):
            survived += not noticed
            print(f"{'noticed ' if noticed else 'SURVIVED'}  {mutant.area:20} {mutant.place}: "
                  f"{mutant.old} -> {mutant.new}  ({by})", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} noticed in {time.time() - start:.0f} s")
    sys.exit(survived > 0)


if __name__ == "__main__":
    main()
