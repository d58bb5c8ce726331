"""Break the package on purpose, one line at a time, and see whether the unit tests notice.

python tools/mutants.py                 every mutant (make mutants)
python tools/mutants.py attention mask  those whose module or reason contains one of the words
python tools/mutants.py --list          only check that each old text stands exactly once in its module

Each mutant is tried on a copy of the package; the tests of its module run first, then all others. Exit status 1
where one survives, or where its old text is no longer found exactly once.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOT_UNIT = ("test_house.py", "test_notebooks.py", "test_site.py")  # the first would only notice that a pair differs

# (module, or tools/script; old text on one line; new text; what is wrong then)
MUTANTS = [
    ("recurrence", "return (1 - z) * n + z * h", "return z * n + (1 - z) * h", "the update gate is turned round"),
    ("recurrence", "n = torch.tanh(n_x + r * n_h)", "n = torch.tanh(n_x + n_h)", "the GRU's reset gate is ignored"),
    ("recurrence", "c = torch.sigmoid(f) * c + ", "c = c + ", "the LSTM never forgets"),
    ("recurrence", "lengths.cpu(), batch_first=True", "torch.full_like(lengths, x.shape[1]).cpu(), batch_first=True",
     "the recurrent encoder reads padding"),
    ("recurrence", "device=states.device), lengths - 1]", "device=states.device), -1]",
     "the one vector is taken at the padding"),
    ("recurrence", "torch.tanh(self.W(q).unsqueeze(-2) + keys.unsqueeze(-3))",
     "(self.W(q).unsqueeze(-2) + keys.unsqueeze(-3))", "additive attention without tanh"),
    ("recurrence", "scores = scores.masked_fill(~mask, -torch.inf)", "pass", "the decoder looks at padding"),
    ("recurrence", "own.tensors or self.first_state(", "self.first_state(",
     "each step starts from the first state"),
    ("recurrence", "x.index_select(0, rows) for x in self.tensors", "x for x in self.tensors",
     "states do not follow their beams"),
    ("recurrence", "return self.embedding(tokens) * math.sqrt(self.config.d_model)", "return self.embedding(tokens)",
     "recurrent embeddings not scaled"),
    ("recurrence", "self.N * gates * (3 * S + 4 * T) * d * d", "self.N * gates * (4 * S + 4 * T) * d * d",
     "FLOPs of a one-way encoder"),
    ("convolution", "return a * torch.sigmoid(b)", "return a * torch.tanh(b)", "another gate"),
    ("convolution", "(self.k - 1, 0) if self.causal", "(self.k - 2, 1) if self.causal",
     "the decoder's window holds the next word"),
    ("convolution", "x.shape[1] - self.k + 1:],)", "x.shape[1] - self.k:-1],)", "the cached window is one off"),
    ("convolution", "else self.dropout(x) * real", "else self.dropout(x)", "the convolutional encoder reads padding"),
    ("convolution", "else self.dropout(x) * real", "else x * real", "no dropout on a window's input"),
    ("recurrence", "between = c.P_drop if c.N > 1 else 0.0", "between = 0.0", "no dropout between recurrent layers"),
    ("recurrence", "torch.tanh(self.join(", "(self.join(", "the recurrent decoder joins without a tanh"),
    ("convolution", "torch.cat([z, (z + x) * HALF], dim=-1)", "torch.cat([z, z], dim=-1)", "values without the word"),
    ("convolution", "(x + (h + context) * HALF) * HALF", "(h + context) * HALF",
     "no path around a layer of the convolutional decoder"),
    ("convolution", "std=math.sqrt(3 * (1 - P_drop)", "std=math.sqrt(6 * (1 - P_drop)",
     "numbers grow from block to block"),
    ("convolution", "self.positions(self.embed(target), start)", "self.positions(self.embed(target))",
     "a cached step stands at position 0"),
    ("convolution", "q = (self.W(h) + g) * HALF", "q = self.W(h) * HALF", "the query does not know the last word"),
    ("convolution", "keys.transpose(1, 2) / math.sqrt(q.shape[-1])", "keys.transpose(1, 2)", "dot products not scaled"),
    ("stacks", "variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)",
     "variance = x.var(dim=-1, keepdim=True)", "LayerNorm's variance divides by n - 1"),
    ("stacks", "torch.sqrt(variance + eps) + bias", "(torch.sqrt(variance) + eps) + bias", "eps outside the root"),
    ("stacks", "return self.norm(x + self.dropout(sublayer(x)))",
     "return self.norm(self.dropout(sublayer(x)))", "no path around the sub-layer"),
    ("stacks", "return self.norm(x + self.dropout(sublayer(x)))",
     "return self.dropout(self.norm(x + sublayer(x)))", "dropout after the norm"),
    ("stacks", "return x + self.dropout(sublayer(self.norm(x)))",
     "return self.norm(x + self.dropout(sublayer(x)))", "the pre-norm switch does nothing"),
    ("attention", "return dot_product(q, k) / math.sqrt(q.shape[-1])", "return dot_product(q, k)", "scale left out"),
    ("attention", "return logits.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)",
     "return logits.masked_fill(mask, lowest).softmax(dim=-1).masked_fill(mask, 0.0)", "mask flipped"),
    ("attention", "return logits.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)",
     "return logits.masked_fill(~mask, lowest).softmax(dim=-1)", "a fully masked row attends everywhere"),
    ("attention", "dtype=torch.bool, device=device).tril()", "dtype=torch.bool, device=device).tril(1)",
     "causal mask one too far"),
    ("attention", "dtype=torch.bool, device=device).tril()", "dtype=torch.bool, device=device).tril(-1)",
     "causal mask one too short"),
    ("attention", "return (tokens != pad_id)[:, None, None, :]",
     "return torch.ones_like(tokens, dtype=torch.bool)[:, None, None, :]", "padding mask ignored"),
    ("feed_forward", "return self.W_2(self.W_1(x).relu())", "return self.W_2(self.W_1(x))", "no ReLU"),
    ("embeddings", "return F.embedding(tokens, self.weight) * math.sqrt(self.weight.shape[1])",
     "return F.embedding(tokens, self.weight)", "embeddings not scaled"),
    ("embeddings", "torch.randn(vocab_size, d_model) / math.sqrt(d_model)", "torch.randn(vocab_size, d_model)",
     "embeddings start too large"),
    ("positions", "torch.stack([angle.sin(), angle.cos()], dim=-1)", "torch.stack([angle.cos(), angle.sin()], dim=-1)",
     "sines and cosines swapped"),
    ("positions", "torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)",
     "torch.cat([angle.sin(), angle.cos()], dim=-1)", "sines first, cosines after them"),
    ("positions", "return table[start:start + length]", "return table[:length]", "a cached step stands at position 0"),
    ("positions", "if start + length > len(table):", "if start + length > len(table) + 1:",
     "a sentence one too long is let through"),
    ("model", "norm_first: bool = False", "norm_first: bool = True", "the config asks for pre-norm"),
    ("stacks", "if len(caches) != len(self.layers):", "if False:", "layers without a cache are left out"),
    ("complexity", "(j - i <= (0 if causal else r))", "(j - i <= r)", "restricted attention looks ahead"),
    ("complexity", "near = (j - i >= -r) & (", "near = (", "restricted attention sees further back than r"),
    ("complexity", "F.pad(x, (0, 0, r, end))", "F.pad(x, (0, 0, 0, end + r))", "a block's window is a block too late"),
    ("complexity", "return y.transpose(1, 2).flatten(1, 2)", "return y.flatten(1, 2)", "dealt out, not put together"),
    ("complexity", "hands = dealt.transpose(1, 2)", "hands = dealt", "stretches in place of gaps"),
    ("complexity", "Dilated(block, k**depth)", "Dilated(block, k * depth + 1)", "gaps do not grow as powers"),
    ("complexity", "longest = max((length", "longest = min((length", "the shortest chain is counted"),
    ("complexity", "if gradient[0, 0].any():", "if gradient[0].any():", "a path from anywhere counts"),
    ("complexity", "before[:, 1:] = h[:, :-1]", "before = h", "a round without a neighbour"),
    ("complexity", "return 8 * n * d**2 + 4 * scores * d", "return 4 * scores * d", "projections are not counted"),
    ("complexity", "i = max((i for i in", "i = min((i for i in", "the first crossing, not the last"),
    ("measuring", "self.peak = max(self.peak, self.held)", "self.peak = self.held", "memory at the end, not its peak"),
    ("measuring", " and id(tensor.untyped_storage()) not in known", "", "views are counted as memory"),
    ("complexity", "half = len(sizes) // 2", "half = 0", "the exponent of all sizes"),
    ("complexity", "order = order.masked_fill(~mask, -torch.inf)", "pass", "pruning keeps padding"),
    ("complexity", "kept if mask is None else kept & mask", "kept", "pruned attention sees padding"),
    ("measuring", "torch.autograd.grad(y.sum(), [x, *layer.parameters()])", "pass", "no gradient while training"),
    ("measuring", "with torch.set_grad_enabled(training):", "with torch.enable_grad():",
     "the forward pass alone keeps what only a gradient needs"),
    ("data", "return self.target[:, 1:]", "return self.target[:, :-1]", "target not shifted"),
    ("data", "return [(source + end, begin + target + end)", "return [(source + end, begin + target)",
     "target without end mark"),
    ("data", "(len(batch) + 1) * longer[i] > batch_tokens", "len(batch) * longer[i] > batch_tokens",
     "batches one sentence too large"),
    ("data", "longer = np.maximum(source, target).tolist()", "longer = source.tolist()",
     "the target's side may be too large"),
    ("data", "mixed = chance.permutation(len(source))", "mixed = np.arange(len(source))", "neighbours share a batch"),
    ("data", "start = max(0, start - len(batches))", "start = 0", "an epoch goes on in the wrong window"),
    ("data", "bpe.encode_special_tokens = True  #", "bpe.encode_special_tokens = False  #",
     "a typed end mark ends the sentence"),
    ("optimizer", "min(step**-0.5, step * warmup**-1.5)", "min(step**-0.5, step * warmup**-0.5)",
     "warm-up by the wrong power"),
    ("optimizer", "return factor * d_model**-0.5", "return factor * d_model**0.5", "learning rate grows with d_model"),
    ("optimizer", "ADAM = dict(lr=0.0, betas=(0.9, 0.98)", "ADAM = dict(lr=0.0, betas=(0.9, 0.999)",
     "Adam's usual beta_2"),
    ("regularization", "F.one_hot(gold, V) + epsilon / V", "F.one_hot(gold, V) + epsilon / (V - 2)",
     "smoothing over V - 2"),
    ("regularization", "return x * keep / (1 - P_drop)", "return x * keep", "dropout changes the mean"),
    ("regularization", "gold.flatten(), ignore_index=pad_id,", "gold.flatten(),", "padding is trained on"),
    ("training", "rate = learning_rate(update, ", "rate = learning_rate(update * config.accumulate, ",
     "schedule counted in micro-batches"),
    ("training", "loss = objective(batch.to(parameters[0].device)) / tokens",
     "loss = objective(batch) / (batch.gold != 0).sum()", "loss averaged per batch, not per token"),
    ("training", "config.seed, *run.place())", "config.seed)", "resume starts the data anew"),
    ("training", "torch.manual_seed(seed)", "pass", "dropout differs after a resume"),
    ("training", "if norm.isfinite():", "if True:", "a gradient that is not a number reaches the weights"),
    ("training", "with run.open(), matmul_precision(config.precision):", "with run.open():",
     "training leaves the switch for products as it is"),
    ("distributed", "[process_number()::process_count()]", "[:1]", "every process works on the same batch"),
    ("training", "(loss * process_count())", "(loss)", "gradients are averaged over processes, not summed"),
    ("interrupt", "signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)",
     "signal.signal(number, note) for number in (signal.SIGINT,)", "SIGTERM loses what was done"),
    ("progress", "elif time.monotonic() - self.saved > 60 * config.save_minutes:", "elif False:",
     "no saving by the clock"),
    ("progress", "self.since_best += 1", "pass", "patience never ends"),
    ("hardware", "return 3 * forward_flops(c, S, T)", "return 2 * forward_flops(c, S, T)",
     "the backward pass counted once"),
    ("hardware", "decoder = attention_flops(c, T, T) + attention_flops(c, T, S)",
     "decoder = attention_flops(c, T, T) + attention_flops(c, T, T)", "cross-attention counted over the target"),
    ("fast/loss", "p -= epsilon / z.shape[1]", "pass", "the chunked loss's gradient is not smoothed"),
    ("fast/loss", "log_sum = top - p.amax(dim=1).log()", "log_sum = top", "the chunked loss forgets the normalisation"),
    ("fast/loss", "Chunks.apply(x[real], E, gold[real]", "Chunks.apply(x.flatten(0, 1), E, gold.flatten()",
     "the chunked loss counts padding"),
    ("fast/training", '"step": torch.zeros(()),', '"step": torch.ones(()),', "Adam's averages begin at the second step"),
    ("hardware", 'enabled=precision == "fp16"', "enabled=False", "fp16 without loss scaling"),
    ("checkpoint", 'tensors[f"optimizer.{key}.{name}"] = ', "_ = ", "resume forgets Adam's moments"),
    ("checkpoint", "[:-keep]:", "[:-keep - 1]:", "one checkpoint too many is kept"),
    ("decoding", "return ((5 + length) / 6) ** alpha", "return length ** alpha", "length penalty |Y|^alpha"),
    ("decoding", "return (lengths + extra).clamp(max=model.config.max_positions)",
     "return (lengths + extra + 1).clamp(max=model.config.max_positions)", "outputs one too long"),
    ("decoding", "topk(min(2 * K, k * V))", "topk(min(K, k * V))", "nothing takes a finished hypothesis's place"),
    ("decoding", "live / length_penalty(limit, alpha)", "live / length_penalty(1, alpha)",
     "stops although a longer output could win"),
    ("decoding", "found_scores[:, -1] < live", "found_scores[:, 0] < live", "n-best search stops at the best one"),
    ("decoding", "log_probs[:, model.config.pad_id] = -torch.inf", "pass", "padding is written"),
    ("decoding", "return found_scores[:, -1] < live / length_penalty(limit, alpha)",
     "return found_scores[:, -1] == -torch.inf", "beam search stops at its first finished hypothesis"),
    ("decoding", "best.masked_fill(ended, -torch.inf).topk(min(K, best.shape[1]))",
     "best[:, :K].masked_fill(ended[:, :K], -torch.inf).topk(min(K, best.shape[1]))",
     "a finished hypothesis keeps its place"),
    ("decoding", "return {name: (tensor / len(paths)).float()", "return {name: (tensor / (len(paths) + 1)).float()",
     "average over one checkpoint too many"),
    ("recipes", 'if (corpus, preset, kind) == ("wmt14", "big", "transformer"):', "if False:",
     "big is trained as long as base"),
    ("recipes", '"treebank_nltk": (21, 0.3)', '"treebank_nltk": (4, 0.3)', "trees are parsed with a translator's beam"),
    ("runs", "border = count - max(1, min(1000, count // 100))",
     "border = count - max(1, min(1000, count // 50))", "a fiftieth of own files held out"),
    ("runs", "return stream_corpus(e.corpus, split, e.reverse)", "return stream_corpus(e.corpus, split)",
     "the direction is forgotten"),
    ("runs", 'for pair in pairs(e, "train") for text', 'for pair in pairs(e, "validation") for text',
     "the vocabulary is learned from validation"),
    ("runs", "at_once = training.accumulate * training.batch_tokens", "at_once = training.batch_tokens",
     "the plan forgets accumulation"),
    ("runs", "torch.manual_seed(e.training.seed)", "pass", "the seed does not decide the first weights"),
    ("runs", "average_checkpoints(paths[-count:])", "average_checkpoints(paths[:count])",
     "the first weights are averaged"),
    ("runs", "model.about = About(*languages(e), *search)", "pass", "languages and search do not travel with a model"),
    ("search", "return own.beam if beam is None else beam", "return 4 if beam is None else beam",
     "Python searches with another beam than the command line"),
    ("translation", "if corpus not in NEWS:", "if True:", "no compound-split BLEU for the news"),
    ("translation", "return 0.978 * score - 0.05", "return 0.978 * score + 0.05", "the fit to sacreBLEU shifted"),
    ("trees", "for part in reversed(t)]", "for part in t]", "a tree is walked from right to left"),
    ("parsing", 'if mark == "leaf" and t.label() != "-NONE-":', 'if mark == "leaf":', "traces are words"),
    ("parsing", 'Tree(re.split("[-=]", t.label())[0] or "TOP", [])', 'Tree(t.label() or "TOP", [])',
     "functions stay in the labels"),
    ("parsing", "if is_tag(symbol) and used < len(leaves):", "if is_tag(symbol) and used + 1 < len(leaves):",
     "the last word is never placed where it belongs"),
    ("parsing", "while stack[-1].label() != symbol[1:]:", "while False:", "a closing bracket closes whatever is on top"),
    ("parsing", "stack[-1].extend([done] if done else [])", "stack[-1].append(done)",
     "constituents without words stay"),
    ("parsing", "[*pieces[0], *missing]", "[*pieces[0]]", "missing words are lost"),
    ("parsing", "symbol if tag == UNKNOWN else tag", "symbol", "gold parts of speech are written over"),
    ("parsing", "return min(outputs, key=lambda text: read_back(text, leaves)[1])", "return outputs[0]",
     "the likeliest output is chosen, sound or not"),
    ("parsing", "found.append((place, opened.pop(), words))", "found.append((place, opened.pop(0), words))",
     "the outermost bracket is closed first"),
    ("evalb", "if t.label() not in settings.delete else []", "if True else []", "punctuation counts as words"),
    ("evalb", "(spans & test_spans).total()", "len(spans & test_spans)", "a bracket that stands twice counts once"),
    ("evalb", 'percent(2 * total["matched"], total["gold"] + total["test"])',
     'percent(total["matched"], total["gold"] + total["test"])', "F1 is half of what it is"),
    ("parsers", "[(word, UNKNOWN) for word, _ in leaves]", "leaves", "all parts of speech count as right"),
    ("parsers", "read_back(output, leaves)", "read_back(output, [(word, UNKNOWN) for word, _ in leaves])",
     "a wrong part of speech makes EVALB skip the sentence"),
    ("maps", "return (row / row.sum(dim=0)).T @ weights @ column", "return row.T @ weights @ column",
     "rows of joined words do not sum to 1"),
    ("maps", 'join_pieces(layers["cross"][:, :, :T, :S], t, s)',
     'join_pieces(layers["cross"][:, :, :T, :S], t, s).flip(-1)',
     "a heat map's columns do not fit their labels"),
    ("pages", r'.replace("<", "\\u003c")', "", "a word can end the view's data"),
    ("visualization", "return 1 - 2 * hits /", "return 1 - hits /", "alignment error counts hits once"),
    ("visualization", "shift = 1  # its", "shift = 0  # its", "decoder columns one off"),
    ("visualization", "maps[i].decoder[:, :, second, 1:second + 1]", "maps[i].decoder[:, :, second, :second]",
     "a verb's second half looked up one column off"),
    ("visualization", "rollout = (layer + identity) / 2 @ rollout", "rollout = rollout @ (layer + identity) / 2",
     "rollout multiplies the layers the wrong way round"),
    ("visualization", "return torch.cat(rows, dim=-1).mean(dim=-1)",
     "return torch.stack([row.mean(dim=-1) for row in rows]).mean(dim=0)", "entropy is averaged over sentences"),
    ("visualization", "far = (place[:, None] - place).abs()", "far = (place[:, None] - place).clamp(min=0)",
     "distance ahead counts as none"),
    ("visualization", "attention.attend = before", "pass", "a head stays switched off"),
    ("distributed", 'if together or device.type != "cuda":', "if True:",
     "after an error in one process all GPUs wait"),
    ("hardware", "torch.cuda.synchronize(device)", "torch.cuda.synchronize()", "another GPU is waited for"),
    ("speed", "for number in range(-1, rounds):", "for number in range(0, rounds):", "no round warms up"),
    ("speed", "order.append(order.pop(0))", "pass", "somebody always follows the same system"),
    ("speed", "statistics.median(a / b for a, b", "statistics.median(b / a for a, b", "ratios turned round"),
    ("speed", "return int((batch.gold != 0).sum())", "return batch.gold.numel()", "padding counts as tokens"),
    ("bench/peers", "model.encoder.norm = model.decoder.norm = None", "model.decoder.norm = None",
     "nn.Transformer's encoder keeps a norm more"),
    ("bench/peers", "layer.dropout.p = layer.self_attn.dropout = 0.0", "layer.self_attn.dropout = 0.0",
     "nn.Transformer drops out hidden units"),
    ("export", "numbers_of(torch.cat(matrices[1:]))", "numbers_of(torch.cat(matrices[:0:-1]))",
     "CTranslate2 takes values for keys"),
    ("export", "layer.cross_attention, norms[1])", "layer.cross_attention, norms[0])", "CTranslate2's norms exchanged"),
    ("export", "pre_norm=c.norm_first", "pre_norm=False", "a pre-norm model is post-norm in CTranslate2"),
    ("export", "put(spec.decoder.projection, model.output)", "put(spec.decoder.projection, model.embedding)",
     "untied output weights are lost in CTranslate2"),
    ("measuring", "median(all_turns[name])", "max(all_turns[name])", "a slow minute counts as the layer's time"),
    ("distributed", ", timeout=timedelta(days=1))", ")", "processes wait ten minutes for one that prepares a corpus"),
    ("fast/loss", "if not wanted:", "if not ctx.needs_input_grad[0]:",
     "the projection does not learn where its input does not"),
    ("progress", "progress.since_best if config.patience else 0", "0", "early stopping deletes the best weights"),
    ("progress", "return -math.inf if math.isnan(found) else found", "return found",
     "after a merit that is no number nothing is better"),
    ("hardware", "torch.set_float32_matmul_precision(new)", "pass",
     "--precision medium changes nothing"),
    ("hardware", "torch.set_float32_matmul_precision(before)", "pass", "the switch for products stays"),
    ("hardware", "    with matmul_precision(precision):", "    if True:", "the rate at medium is that of fp32"),
    ("fast/precision", "if ratio >= 1.5:", "if ratio >= 1.3:", "a small gain is worth a hint"),
    ("fast/precision", 'or choose_precision(device, precision) != "fp32":', "or False:",
     "who trains in bf16 is told of bf16"),
    ("fast/precision", 'for name in ("bf16", "medium"):', 'for name in ("bf16",):', "no hint at medium"),
    ("variations", "ratio = setting(base, name) / there", "ratio = 1", "rows are not scaled with the base"),
    ("variations", "value = max(1, round(number)) if", "value = int(number) if",
     "a scaled row may have nothing left"),
    ("variations", "count = seen.sum(dim=-1, keepdim=True).clamp(min=1)", "count = scores.shape[-1]",
     "hidden keys count in the mean"),
    ("experiments/table3", "number % e.every == 0 and", "number < e.every and",
     "a part of the corpus is its beginning"),
    ("experiments/analysis", ".where(count > 2)", ".where(count > 1)",
     "two runs that agree by chance make differences sure"),
    ("experiments/analysis", "np.maximum(own.fillna(0), own.median())", "own.median()",
     "a row that varies wildly counts as quiet"),
    ("experiments/analysis", "own.median()) / np.sqrt(count)", "own.median())",
     "the deviation of one difference for that of their mean"),
    ("experiments/analysis", '(mean > 0) == figure.endswith("bleu")', "mean > 0",
     "a higher perplexity counts as better"),
    ("experiments/analysis", 'found["difference"] * found["paper"] > 0', 'found["difference"] * found["paper"] != 0',
     "a finding that is reversed counts as confirmed"),
    ("experiments/runner", "resume=checkpoint.is_file()", "resume=False", "an interrupted run is not resumed"),
    ("experiments/runner", "while running or waiting and not notes:", "while running or waiting:",
     "a stop waits for processes that never begin"),
    ("experiments/runner", "yield job, process.exitcode", "yield job, 0", "a process that died counts as done"),
    ("experiments/runner", "elif status in (0, -signal.SIGTERM):", "elif status == 0:",
     "a stopped run counts as failed"),
    ("experiments/runner", "waiting = [job for job in jobs if job.name not in done]", "waiting = jobs",
     "finished runs begin anew"),
    ("experiments/rows", 'if name == "--folder":', "if False:", "a machine's folders stay in a result"),
    ("experiments/table2", "return max(sorted(tried), key=tried.get)", "return max(sorted(tried)[::-1], key=tried.get)",
     "of equal rates the largest"),
    ("experiments/table2", "> 1.1 * min(counts.values())", "> 1.2 * min(counts.values())", "families of unequal sizes"),
]


def path_of(module, root=ROOT):
    """The file of a module of the package, or of a script in tools."""
    return root / (f"{module}.py" if module.startswith("tools/") else f"transformer/{module}.py")


def place(module, old, within=None):
    """(lines of the module, index of the one line of code that holds old); an index of None if it is not just one."""
    lines = path_of(module).read_text(encoding="utf8").splitlines(keepends=True)
    start = next((i for i, line in enumerate(lines) if line.startswith(f"class {within}")), 0) if within else 0
    found = [i for i, line in enumerate(lines) if i >= start and old in line and not line.startswith("#")]
    return lines, found[0] if len(found) == 1 or (within and found) else None


def make_copy(folder):
    """The package, its tools and its unit tests in a folder of their own; the data is shared."""
    for name in ("transformer", "tools"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__", *NOT_UNIT))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name in ("data", "notebooks"):
        if (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)


def run_tests(folder, tests, limit=900):
    """pytest's exit status and last lines for some tests of a copy; status 1: a test failed."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=line", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return 1, "ran for ever"
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return done.returncode, (failed or done.stdout.strip().splitlines() or ["no output"])[-1 if not failed else 0]


def try_mutant(mutant):
    """(noticed, by what) for one mutant."""
    module, old, new, _, *within = mutant
    lines, index = place(module, old, *within)
    if index is None:
        return False, "its old text is not found exactly once"
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        folder = Path(name)
        make_copy(folder)
        lines[index] = lines[index].replace(old, new)
        text = "".join(lines)
        compile(text, module, "exec")
        path = path_of(module, folder)
        path.write_text(text, encoding="utf8")
        own = [f"tests/test_{path.name}"] if (folder / "tests" / f"test_{path.name}").exists() else []
        for tests in ([own] if own else []) + [["tests"]]:
            status, by = run_tests(folder, tests)
            if status == 1:
                return True, by.removeprefix("FAILED ").split(" - ")[0]
            if status != 0:
                return False, f"the tests did not run: {by}"
    return False, "no test fails"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    chosen = [m for m in MUTANTS if not arguments.words or any(w in m[0] or w in m[3] for w in arguments.words)]
    lost = [m for m in chosen if place(m[0], m[1], *m[4:])[1] is None]
    for module, old, _, why, *_ in lost:
        print(f"{module}: {why}: not found exactly once: {old}")
    if lost:
        sys.exit(f"{len(lost)} of {len(chosen)} mutants are out of date")
    if arguments.list:
        print(f"{len(chosen)} mutants, all in place")
        return
    start = time.time()
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        make_copy(Path(name))
        status, last = run_tests(Path(name), ["tests"])
        if status:
            sys.exit(f"the tests must pass on the unbroken package first: {last}")
    print(f"unbroken: {last}", flush=True)
    survived = 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for mutant, (noticed, by) in zip(chosen, pool.map(try_mutant, chosen)):
            survived += not noticed
            print(f"{'noticed ' if noticed else 'SURVIVED'}  {mutant[0]:15} {mutant[3]:52} {by}", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} mutants noticed in {time.time() - start:.0f} s")
    sys.exit(bool(survived))


if __name__ == "__main__":
    main()
