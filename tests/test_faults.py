"""What is malformed is refused in a sentence: a sample of the campaign, and each of its causes."""

import errno
import io
import json
import shutil
import sys
import time

import fault_cases
import faults
import pytest
import torch
from filelock import FileLock
from safetensors.torch import save_file
from test_cli import SIZES, SPEED, call, complaint

from transformer.cli import stream
from transformer.core import files
from transformer.core.checks import Diverged
from transformer.core.files import locked, write_file, write_json
from transformer.core.weights import load_weights, save_weights
from transformer.fast.attention import scaled_dot_product_attention
from transformer.fast.convolution import ConvolutionConfig
from transformer.fast.model import Transformer, TransformerConfig
from transformer.fast.search import beam_search, greedy_search
from transformer.models import maps
from transformer.models.pretrained import load, save
from transformer.parsing import gold_tree, linearize
from transformer.runs.encoded import check_pairs
from transformer.runs.folder import check_unused
from transformer.runs.training import TrainingConfig, train

pytestmark = pytest.mark.usefixtures("one_thread")
SMALL = TransformerConfig(
    50, d_model=16, d_ff=32, N=1, h=2, P_drop=0.0, max_positions=40
)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Two files of sentences, and a finished run."""
    before = sys.argv
    yield fault_cases.make_home(tmp_path_factory.mktemp("home"))
    sys.argv = before


@pytest.mark.system
def test_a_sample_of_the_campaign(home):
    found = [faults.run_case(number, 1, home) for number in range(60)]
    assert [row for row in found if row["verdict"] in faults.FAULTS] == []
    assert {"refused", "done"} == {row["verdict"] for row in found}
    assert len({row["kind"] for row in found}) > 10


def test_the_campaign_sees_a_fault(home):
    """A command that takes damaged weights, one with a traceback, a call that fails in a library."""
    case = fault_cases.Case(
        "weights", "", ["translate"], wrong=lambda out: "damaged weights are taken"
    )
    assert faults.verdict_of_command(case, 0, b"", "")[0] == "silent"
    assert (
        faults.verdict_of_command(case, 1, b"", "Traceback (most recent call last)")[0]
        == "traceback"
    )
    assert faults.verdict_of_command(case, -6, b"", "")[0] == "crash"
    assert faults.verdict_of_command(case, 2, b"", "oh")[0] == "unclear"
    assert (
        faults.function_here(
            fault_cases.Case("x", "", call=lambda: torch.ones(2) @ torch.ones(3))
        )[0]
        == "unclear"
    )


# Not a number


def test_training_does_not_end_with_weights_that_are_no_numbers(home, tmp_path):
    for factor in ("1e11", "1e12"):
        folder = tmp_path / factor
        done = call(
            "train",
            *fault_cases.FILES(home),
            "--folder",
            folder,
            *SIZES,
            *SPEED,
            "--lr-scale",
            factor,
        )
        assert done.status == 2 and "Traceback" not in done.err
        assert not (folder / "model.safetensors").exists(), done.out


def test_a_last_update_that_leaves_no_numbers():
    class Careless(torch.optim.SGD):
        def step(self, closure=None):
            self.param_groups[0]["params"][0].data.fill_(float("inf"))

    with pytest.raises(
        Diverged, match="no usable numbers.*start again with a smaller lr_scale"
    ):
        train(
            Transformer(SMALL),
            [([5, 2], [1, 6, 2])],
            TrainingConfig(updates=2, warmup=1),
            optimizer=lambda model: Careless(model.parameters(), 1.0),
        )


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e38])
def test_a_search_with_weights_that_are_no_numbers(bad):
    model, source = Transformer(SMALL), torch.tensor([[5, 6, 2]])
    with torch.no_grad():
        model.embedding.weight[7, 3] = bad
    for search in (greedy_search, beam_search):
        with pytest.raises(
            ValueError,
            match="outputs are no usable numbers any more: its weights are damaged",
        ):
            search(model, source)


@pytest.mark.parametrize(
    "damage, said",
    [
        (lambda w: w.fill_(float("nan")), "no usable numbers"),
        (lambda w: w.fill_(1e38), "no usable numbers"),
        (lambda w: w.long(), "holds torch.int64, no weights"),
        (lambda w: w.bool(), "no weights"),
        (lambda w: w.to(torch.complex64), "no weights"),
    ],
)
def test_a_folder_with_weights_that_are_no_numbers(damage, said, tmp_path):
    """In a file without a checksum; one with it was looked through when it was written."""
    save(Transformer(SMALL), tmp_path)
    path = tmp_path / "model.safetensors"
    tensors, _ = load_weights(path)
    try:
        save_file({name: damage(tensor) for name, tensor in tensors.items()}, path)
    except KeyError:
        pytest.skip("this version of safetensors writes no complex numbers")
    with pytest.raises(ValueError, match=said):
        load(tmp_path)


# What is believed


def test_any_flipped_bit_in_weights_is_noticed(tmp_path):
    save(Transformer(SMALL), tmp_path)
    path = tmp_path / "model.safetensors"
    content = path.read_bytes()
    for place in range(9, len(content), len(content) // 50):
        path.write_bytes(
            content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
        )
        with pytest.raises(ValueError, match="is not a whole safetensors file"):
            load_weights(path)


@pytest.mark.parametrize(
    "name, value",
    [("h", 4), ("bos_id", 5), ("norm_first", True), ("max_positions", 30)],
)
def test_a_configuration_that_is_not_the_weights(name, value, home, tmp_path):
    save(Transformer(SMALL), tmp_path)
    saved = json.loads((tmp_path / "config.json").read_text())
    saved["config"][name] = value
    (tmp_path / "config.json").write_text(json.dumps(saved))
    with pytest.raises(
        ValueError, match="config.json is not the configuration that|do not fit"
    ):
        load(tmp_path)


def test_a_tokenizer_that_is_not_the_models(home, tmp_path):
    model, tokenizer = load(home / "run")
    save(model, tmp_path, tokenizer)
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf8"))
    path.write_text(json.dumps(content))  # laid out in another way
    load(tmp_path)
    merges = content["model"]["merges"]
    merges[0], merges[1] = merges[1], merges[0]
    path.write_text(json.dumps(content))
    with pytest.raises(
        ValueError, match="is not the tokenizer that was saved with this model"
    ):
        load(tmp_path)
    content["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {"Regex": "((a*)*)*b"}
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="cuts words by another expression"):
        load(tmp_path)


@pytest.mark.parametrize(
    "settings, said",
    [
        (dict(N=10**9), "N must be at most 1000"),
        (dict(max_positions=10**7), "max_positions must be at most 100000"),
        (dict(vocab_size=2**63), "vocab_size must be at most 10000000"),
        (dict(d_model=2**63), "d_model must be at most"),
        (dict(eos_id=0), "three different ids"),
        (dict(vocab_size=1), "must lie inside the vocabulary"),
        (dict(P_drop="0"), "P_drop must be a number"),
    ],
)
def test_sizes_are_bounded(settings, said):
    for config in (TransformerConfig, ConvolutionConfig):
        with pytest.raises(ValueError, match=said):
            config(**{"vocab_size": 300, **settings})


@pytest.mark.parametrize(
    "settings, said",
    [
        (dict(seed="7"), "seed must be a whole number below 2.63, not '7'"),
        (dict(seed=2**63), "seed must be"),
        (dict(updates=2**63), "updates must be at most"),
        (dict(lr_scale=1e300), "lr_scale must be at most"),
        (dict(epsilon_ls="x"), "epsilon_ls must be at least 0"),
        (dict(minutes=float("nan")), "minutes must be above 0"),
    ],
)
def test_training_settings_are_bounded(settings, said):
    with pytest.raises(ValueError, match=said):
        TrainingConfig(**settings)


def test_a_model_too_large_for_the_machine(home, tmp_path):
    said = complaint(
        "train",
        *fault_cases.FILES(home),
        "--folder",
        tmp_path / "run",
        "--d-model",
        "100000",
        "--h",
        "1",
    )
    assert said.startswith("a model of ") and "choose smaller sizes" in said


# The folder of a run


def test_two_processes_in_one_folder(home, tmp_path):
    (tmp_path / "run").mkdir()
    with FileLock(tmp_path / "run" / ".lock"):
        said = complaint(
            "train",
            *fault_cases.FILES(home),
            "--folder",
            tmp_path / "run",
            *SIZES,
            *SPEED,
        )
        assert "another process is training in " in said and [
            p.name for p in (tmp_path / "run").iterdir()
        ] == [".lock"]
    assert (
        call(
            "train",
            *fault_cases.FILES(home),
            "--folder",
            tmp_path / "run",
            *SIZES,
            *SPEED,
        ).status
        == 0
    )
    assert not (tmp_path / "run" / ".lock").exists()


def test_what_killed_processes_leave_is_removed(tmp_path):
    old, new = tmp_path / ".file.1.part", tmp_path / ".file.2.part"
    for path in (old, new):
        path.write_text("half")
    past = time.time() - 2 * files.STALE
    files.os.utime(old, (past, past))
    write_file(tmp_path / "file", lambda path: path.write_text("whole"))
    assert not old.exists() and new.exists()
    with locked(tmp_path):
        assert not new.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    for folder in ("weights", "another"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / ".file.3.part").write_text("half")
    with locked(tmp_path):  # another run may be writing in a folder below
        assert [path.parent.name for path in tmp_path.glob("**/.*.part")] == ["another"]


def test_a_run_killed_in_its_first_save_begins_anew(home, tmp_path):
    (tmp_path / "weights").mkdir()
    for name in ("run.json", "weights/00000001.safetensors"):
        (tmp_path / name).write_text("{}")
    check_unused(tmp_path)
    assert (
        call(
            "train", *fault_cases.FILES(home), "--folder", tmp_path, *SIZES, *SPEED
        ).status
        == 0
    )
    assert "00000001.safetensors" not in {
        path.name for path in (tmp_path / "weights").iterdir()
    }


def test_a_full_disk_names_the_file(tmp_path):
    def full(path):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError) as caught:
        write_file(tmp_path / "file", full)
    assert caught.value.filename == str(tmp_path / "file")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError) as caught:
        write_json(tmp_path / "folder", {})
    assert str(caught.value).endswith(f"directory: {str(tmp_path / 'folder')!r}")
    with pytest.raises(OSError, match="elsewhere"):
        write_file(tmp_path / "file", lambda path: (tmp_path / "elsewhere").read_text())
    with pytest.raises(OSError, match="file cannot be written .No space left"):
        write_file(
            tmp_path / "file",
            lambda path: (_ for _ in ()).throw(
                Exception("No space left (os error 28)")
            ),
        )


@pytest.mark.parametrize(
    "progress",
    [
        {"update": "4"},
        {"update": -1},
        {"colour": 3},
        [],
        7,
        {"log": [1]},
        {"log": [{"update": "x", "loss": 1}]},
        {"losses": ["a"]},
        {"best": "high"},
        {"scaler": []},
        {"epoch": 1.5},
        {"log": {}},
    ],
)
def test_a_checkpoint_with_another_progress(progress, home, tmp_path):
    fault_cases.prepare(home, tmp_path)
    path = tmp_path / "run" / "checkpoint.safetensors"
    tensors, said = load_weights(path)
    save_weights(tensors, path, {**said, "progress": json.dumps(progress)})
    assert "is no whole checkpoint (" in complaint(
        "train", "--resume", "--folder", tmp_path / "run", "--updates", "6"
    )


def test_a_checkpoint_with_another_state(home, tmp_path):
    run = shutil.copytree(home / "run", tmp_path / "run")
    path = run / "checkpoint.safetensors"
    tensors, said = load_weights(path)
    name = next(name for name in tensors if name.startswith("optimizer.exp_avg."))
    for changed in (
        {f"{name}x": tensors[name]},
        {name: tensors[name][:1]},
        {name: tensors[name].long()},
    ):
        rest = {key: tensor for key, tensor in tensors.items() if key != name}
        save_weights({**rest, **changed}, path, said)
        assert "is no whole checkpoint (" in complaint(
            "train", "--resume", "--folder", run, "--updates", "6"
        )
    save_weights(tensors, path, {"progress": said["progress"]})
    assert "is no whole checkpoint (" in complaint(
        "train", "--resume", "--folder", run, "--updates", "6"
    )


# Sentences


def test_lines_that_cannot_be_taken_are_named(home):
    lines = "A cat.\n" + "word " * 200 + "\nA dog.\n"
    done = call(
        "translate", "--folder", home / "run", stdin=lines.encode() + b"\xff\nA cat."
    )
    out = done.out.splitlines()
    assert (
        done.status == 2
        and len(out) == 5
        and out[1] == out[3] == ""
        and out[0] == out[4] != ""
    )
    assert done.err.splitlines() == [
        "transformer: standard input, line 2, has 601 tokens, more than the model's 150 positions: split it",
        "transformer: standard input, line 4, is not UTF-8: convert it, for example with iconv -f latin1 -t utf8",
    ]
    numbers = [
        row.split("\t")[0]
        for row in call(
            "translate", "--folder", home / "run", "--n-best", "2", stdin=lines.encode()
        ).out.splitlines()
    ]
    assert numbers == ["1", "1", "3", "3"]


def test_a_stream_is_answered_as_it_comes(home):
    """And never held as a whole."""
    given = []

    class Slow:
        def read1(self, n):
            given.append(len(given))
            return (
                b"line\nline\nli"
                if given[-1] == 0
                else b"ne\nend"
                if given[-1] == 1
                else b""
            )

    _, tokenizer = load(home / "run")
    come = stream.answers(
        Slow(), tokenizer, 50, lambda texts: [text.upper() for text in texts]
    )
    assert next(come) == (1, "LINE", None) and given == [0]
    assert list(come) == [(2, "LINE", None), (3, "LINE", None), (4, "END", None)]
    many = list(stream.lines_of(io.BytesIO(b"a\n" * 10_000)))
    assert max(map(len, many)) == stream.MANY and sum(map(len, many)) == 10_000


def test_closed_input_and_arguments_that_are_no_text(home, monkeypatch):
    assert complaint("translate", "caf\udce9", "--folder", home / "run").startswith(
        "argument 2 cannot be written as UTF-8"
    )
    monkeypatch.setattr(stream.sys, "stdin", None)
    with pytest.raises(ValueError, match="standard input is closed"):
        stream.standard_input()


def test_texts_and_settings_in_python(home):
    model, tokenizer = load(home / "run")
    with pytest.raises(
        ValueError,
        match="cannot be written as UTF-8 .character 2 is half of a surrogate pair",
    ):
        tokenizer.encode("a\ud800")
    with pytest.raises(ValueError, match="a token id is a whole number"):
        tokenizer.decode([5, -1])
    with pytest.raises(
        ValueError, match="pairs are texts: turn them into ids with encode_pairs"
    ):
        train(model, [("A cat.", "Eine Katze.")], TrainingConfig())
    for beam in (2**63, 1.5, "3"):
        with pytest.raises(ValueError, match="beam must be"):
            beam_search(model, torch.tensor([[5, 2]]), beam)
    with pytest.raises(ValueError, match="extra must be"):
        greedy_search(model, torch.tensor([[5, 2]]), 2**63)
    with pytest.raises(ValueError, match="at most 100 sentences"):
        maps.attention_maps(model, tokenizer, [("a", "b")] * 500)
    with pytest.raises(
        ValueError, match=r"sentence pair 1 \(index 0\) has no token to learn"
    ):
        check_pairs([([5, 2], [1])], model.config)
    with pytest.raises(ValueError, match="no token to learn"):
        train(model, [([5, 2], [1])], TrainingConfig(updates=1))


def test_trees_that_are_none():
    for text in ("", " \n"):
        with pytest.raises(ValueError, match="there is no tree in"):
            gold_tree(text)
    with pytest.raises(ValueError, match="nothing was left of it"):
        linearize(gold_tree("(S (-NONE- *))"))
    with pytest.raises(ValueError, match="more than 400 brackets inside each other"):
        gold_tree("(S " * 900 + "(A a)" + ")" * 900)


def test_corpora_beside_own_files(home):
    for command in ("train", "evaluate"):
        assert "exclude each other" in complaint(
            command, *fault_cases.FILES(home), "--corpus", "nonsense"
        )


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "no whole JSON: empty"),
        ('{"a": ', "it breaks in line 1, column 7"),
        ("[" * 100_000, "its brackets nest too deep"),
    ],
)
def test_damaged_json_says_where(text, said, home, tmp_path):
    (tmp_path / "config.json").write_text(text)
    assert said in complaint("translate", "Hello.", "--folder", tmp_path)


def test_plain_attention_in_fp16():
    """An inner product of 115,200 is beyond fp16; an eighth of it is not."""
    q = torch.full((1, 1, 3, 64), 30.0, dtype=torch.float16)
    output, weights = scaled_dot_product_attention(2 * q, q, q)
    assert output.isfinite().all() and torch.allclose(
        weights.float(), torch.full((3, 3), 1 / 3), atol=1e-3
    )
