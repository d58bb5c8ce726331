"""Each call that chapters 00 to 16 make of a plain class or function fits the strong one, too.

The calls are read from the notebooks' code; what they give is compared in tests/test_plain*.py.
"""

import ast
import inspect
from functools import cache
from importlib import import_module

import pairs
import plain_calls
import pytest

ENGINE = ("fast", "models", "runs")
# what has another name there: things, and parameters
STRONG = {"attention.attention": "fast.attention.scaled_dot_product_attention"}
RENAMED = {
    "model.Transformer": {
        "attention": "parts"
    },  # which name the attention among others
}
# The first model stands alone; the others share a name with something else.
OTHERS = {
    "recurrence.summary": "of a sentence, and of scores of trees",
    "regularization.dropout": "drops numbers; the engine's says how many to drop",
}


@cache
def engine():
    """{name of a class or function: "folder.module.name"} of the engine's definitions."""
    kinds = (ast.ClassDef, ast.FunctionDef)
    return {
        node.name: f"{folder}.{path.stem}.{node.name}"
        for folder in ENGINE
        for path in sorted((pairs.ROOT / "transformer" / folder).glob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf8")).body
        if isinstance(node, kinds)
    }


def forms():
    """{plain: strong} "module.name" of all that is there twice, in reading order."""
    found = {}
    for chapter in plain_calls.chapters():
        names = sorted(plain_calls.defined_in(chapter))
        module = import_module(f"transformer.{chapter}")
        for plain in (f"{chapter}.{name}" for name in names if hasattr(module, name)):
            strong = STRONG.get(plain) or engine().get(plain.split(".")[1])
            if strong and plain not in OTHERS and chapter != "first_transformer":
                found[plain] = strong
    return found


@cache
def calls():
    """The calls of all chapters."""
    return [
        call
        for chapter in plain_calls.chapters()
        for call in plain_calls.calls_in(chapter)
    ]


def thing(name):
    """What "module.name" is, inside the package."""
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(f"transformer.{module}"), attribute)


def bind(function, call, of_instance):
    """The names of the parameters that a call's arguments go to; TypeError where they do not fit."""
    signature = inspect.signature(function)
    arguments = [None] * (call.positional + of_instance)
    how = signature.bind_partial if call.partly else signature.bind
    return list(how(*arguments, **dict.fromkeys(call.keywords)).arguments)


def calls_of(plain):
    """(the call, the name of the method or None) of what chapters call of a plain thing."""
    made = thing(plain)
    for call in calls():
        if call.name == plain:
            yield call, None
        method = call.name.removeprefix(f"{plain}.")
        if inspect.isclass(made) and method in vars(made):
            yield call, method


@pytest.mark.parametrize("plain, strong", forms().items())
def test_the_strong_form_takes_each_call(plain, strong):
    for call, method in calls_of(plain):
        both = [thing(plain), thing(strong)]
        if method:
            both = [getattr(kind, method) for kind in both]
        ours = bind(both[0], call, of_instance=method is not None)
        theirs = bind(both[1], call, of_instance=method is not None)
        renamed = RENAMED.get(plain, {})
        assert [renamed.get(name, name) for name in ours] == theirs, call.text


def defaults(function):
    """{parameter: its default} of a function."""
    return {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is not parameter.empty
    }


@pytest.mark.parametrize("plain, strong", forms().items())
def test_what_is_not_given_is_the_same(plain, strong):
    plain, strong = thing(plain), thing(strong)
    both = [(plain, strong)]
    if inspect.isclass(plain):
        methods = [name for name in vars(plain) if not name.startswith("_")]
        both += [(getattr(plain, name), getattr(strong, name)) for name in methods]
    for one, other in both:
        if not callable(one):  # a default of a configuration
            assert one == other
            continue
        theirs = defaults(other)
        for name, value in defaults(one).items():
            if not callable(value):  # a part, or what does nothing
                assert theirs[name] == value, f"{one.__qualname__}, {name}"


def test_most_of_what_is_there_twice_is_called():
    called = {plain for plain in forms() if any(calls_of(plain))}
    assert called >= {
        "attention.MultiHeadAttention",
        "attention.attention",
        "data.token_batches",
        "decoding.beam_search",
        "decoding.greedy_search",
        "embeddings.Embedding",
        "model.Transformer",
        "model.TransformerConfig",
        "recurrence.RecurrenceConfig",
        "stacks.DecoderLayer",
        "stacks.EncoderLayer",
        "stacks.Stack",
        "training.train",
    }
    methods = {method for plain in forms() for _, method in calls_of(plain)}
    assert methods >= {"forward", "encode", "decode"}


def test_a_call_that_does_not_fit_is_noticed():
    bad = plain_calls.Call("model.Transformer", 1, ("width",), False, "...")
    with pytest.raises(TypeError, match="width"):
        bind(thing("fast.model.Transformer"), bad, of_instance=False)
