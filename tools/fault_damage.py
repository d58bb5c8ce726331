"""What can be wrong with numbers, words, text, JSON and tensors, for the campaign (faults.py)."""

import json
import math
import os

import torch

from transformer.core.weights import load_weights

NUMBERS = [
    0,
    -1,
    1,
    2,
    3,
    7,
    10**5,
    2**31,
    2**63 - 1,
    2**63,
    2**64,
    10**30,
    -(2**63),
    0.5,
    -0.5,
    1.5,
    1e-300,
    1e38,
    1e300,
    math.nan,
    math.inf,
    -math.inf,
]
VALUES = [
    *NUMBERS,
    None,
    True,
    False,
    "",
    "a",
    "3",
    "nan",
    [],
    [1],
    {},
    {"a": 1},
    "\udce9",
]
TEXTS = [
    "",
    " ",
    "\t",
    "\x00",
    "\x1b[31m",
    "a\nb",
    "a\r\nb",
    "</s>",
    "<pad> <s>",
    "\u202eabc",
    "\ufeffbom",
    "e\u0301" * 20,
    "👩‍👧",
    "东京",
    "نص عربي",
    "'; --",
    "$(true)",
    "-",
    "--beam",
    "a" * 2000,
    "word " * 200,
    "Ω" * 120,
    "\u0300" * 50,
    "\ud800",
    "a\udce9b",
    "%s{}",
]
WORDS = [
    "",
    "-1",
    "0",
    "1",
    "2",
    "1.5",
    "1e300",
    "1e-300",
    "nan",
    "inf",
    "-inf",
    "abc",
    "None",
    "True",
    "[]",
    "{}",
    " ",
    "ü",
    "\udcff",
    "cpu",
    "own.en",
    "run",
    "/dev/null",
    "/proc/self",
    "/nowhere/at/all",
    "a" * 300,
    str(2**31),
    str(2**63),
    str(2**64),
    str(10**30),
    "--",
    "x=y",
]


def some_text(chance):
    if chance.random() < 0.3:
        return "".join(
            chr(
                chance.choice(
                    [
                        chance.randrange(32, 127),
                        chance.randrange(0xD800),
                        chance.randrange(0xE000, 0x10FFFF),
                    ]
                )
            )
            for _ in range(chance.randrange(60))
        )
    return chance.choice(TEXTS)


def some_bytes(chance):
    known = [os.fsencode(text.replace("\ud800", "")) for text in TEXTS] + [
        b"\xff\xfe",
        b"\xe9",
    ]
    lines = [chance.choice(known) for _ in range(chance.randrange(6))]
    if chance.random() < 0.3:
        lines.append(chance.randbytes(chance.randrange(200)))
    return chance.choice([b"\n", b"\r\n", b"\n\n"]).join(lines) + chance.choice(
        [b"", b"\n"]
    )


def damage_bytes(chance, path):
    """Cut, flip, fill, or replace what a file holds; its first 8 bytes and its last, too."""
    content = bytearray(path.read_bytes())
    way = chance.randrange(5)
    if way == 0 or not content:
        content = content[: chance.randrange(len(content) + 1)]
    elif way == 1:
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    elif way == 2:
        start = chance.randrange(len(content))
        content[start : start + 8] = chance.randbytes(8)
    elif way == 3:
        content = bytearray(chance.randbytes(chance.randrange(300)))
    else:
        content += chance.randbytes(chance.randrange(1, 20))
    path.write_bytes(content)
    return f"bytes, way {way}"


def damage_json(chance, content):
    """A value inside replaced, taken away, or added; ([keys that lead there], content)."""
    place, parent, path = content, None, []
    while (
        isinstance(place, dict | list)
        and place
        and (parent is None or chance.random() < 0.8)
    ):
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = chance.choice(keys)
        parent, place = place, place[key]
        path.append(key)
    way = chance.randrange(4)
    if way == 0 or parent is None:
        return path, chance.choice([*VALUES, [content], {"a": content}])
    if way == 1 and isinstance(parent, dict):
        del parent[key]
    elif way == 2 and isinstance(parent, dict):
        parent[chance.choice(["extra", "Ω", "", "kind", "seed"])] = parent.pop(key)
    else:
        parent[key] = chance.choice(VALUES)
    return path, content


def damage_file(chance, path):
    """Damage a file of JSON; a few words that say how."""
    if chance.random() < 0.15:
        return damage_bytes(chance, path)
    if chance.random() < 0.08:
        deep = chance.choice(
            ["[" * 100_000, '{"a":' * 50_000 + "1" + "}" * 50_000, "NaN", ""]
        )
        path.write_text(deep)
        return f"text {deep[:10]}"
    before = path.read_text(encoding="utf8")
    if path.suffix == ".jsonl":
        before = before.splitlines()[0]
    where, content = damage_json(chance, json.loads(before))
    text = json.dumps(content)
    path.write_text(text + "\n" * (path.suffix == ".jsonl"))
    return f"{where[:4]}, {text[:120]}"


def changed(chance, tensor, way, bad):
    """A tensor with a bad number, of bad numbers, of another type, or of another shape."""
    if way < 3:
        tensor.view(-1)[chance.randrange(tensor.numel())] = bad
    elif way == 3:
        tensor = torch.full_like(tensor, bad)
    elif way == 4:
        tensor = tensor.to(
            chance.choice([torch.int64, torch.bool, torch.complex64, torch.uint8])
        )
    elif way == 5:
        tensor = (
            tensor[None] if chance.random() < 0.5 else tensor.flatten()[:-1].clone()
        )
    return tensor


def damage_tensors(chance, path):
    """Damage the tensors of a safetensors file; the checksum goes or stays."""
    from safetensors.torch import save_file

    tensors, metadata = load_weights(path)[0], all_metadata(path)
    name = chance.choice(sorted(tensors))
    tensor, way = tensors[name].clone(), chance.randrange(9)
    bad = chance.choice([math.nan, math.inf, -math.inf, 1e38, -3e38])
    if way < 6:
        tensors[name] = changed(chance, tensor, way, bad)
    elif way == 6:
        tensors["another"] = tensor.clone()
    elif way == 7:
        del tensors[name]
    else:
        tensors[f"{name}x"] = tensors.pop(name)
    kept = chance.random() < 0.5
    if not kept:
        metadata = without_checksum(metadata)
    save_file({k: v.contiguous() for k, v in tensors.items()}, path, metadata)
    return f"{name} way {way} {bad}, checksum {'kept' if kept else 'gone'}"


def all_metadata(path):
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return file.metadata() or {}


def without_checksum(metadata):
    """As an older version of the package wrote it."""
    said = json.loads(metadata.get("saved", json.dumps(metadata)))
    kept = {name: v for name, v in said.items() if name not in ("sha256", "shared")}
    return kept or None


def gpt2_shapes(d, V):
    """{name: shape} of the tensors of a GPT-2 with one layer."""
    shapes = {
        "wte.weight": (V, d),
        "wpe.weight": (40, d),
        "h.0.attn.c_attn.weight": (d, 3 * d),
        "h.0.attn.c_attn.bias": (3 * d,),
        "h.0.attn.c_proj.weight": (d, d),
        "h.0.attn.c_proj.bias": (d,),
        "h.0.mlp.c_fc.weight": (d, 4 * d),
        "h.0.mlp.c_fc.bias": (4 * d,),
        "h.0.mlp.c_proj.weight": (4 * d, d),
        "h.0.mlp.c_proj.bias": (d,),
    }
    for norm in ("h.0.ln_1", "h.0.ln_2", "ln_f"):
        shapes |= {f"{norm}.weight": (d,), f"{norm}.bias": (d,)}
    return shapes


def gpt2_config(d, V):
    return {
        "model_type": "gpt2",
        "vocab_size": V,
        "n_positions": 40,
        "n_embd": d,
        "n_layer": 1,
        "n_head": 2,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "layer_norm_epsilon": 1e-5,
        "activation_function": "gelu_new",
    }


def write_gpt2(folder, sentences):
    """A GPT-2 of random numbers in the files that the library transformers writes."""
    from safetensors.torch import save_file
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    pieces = Tokenizer(models.BPE())
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.train_from_iterator(
        sentences,
        trainers.BpeTrainer(
            vocab_size=300,
            special_tokens=["<|endoftext|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
    )
    folder.mkdir()
    pieces.model.save(str(folder))
    d, V = 16, pieces.get_vocab_size()
    save_file(
        {
            f"transformer.{name}": torch.randn(shape)
            for name, shape in gpt2_shapes(d, V).items()
        },
        folder / "model.safetensors",
        {"format": "pt"},
    )
    config = json.dumps(gpt2_config(d, V))
    (folder / "config.json").write_text(config)
