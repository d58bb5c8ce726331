"""The record of notebook 19's circuit: the two heads behind a German possessive."""

import torch

from transformer.views import heads, plotting

CLASSES = ("article", "possessive", "adjective", "noun", "other")
HEADS = {
    "owner": (1, 3, "stem"),
    "owned": (2, 1, "ending"),
}  # layer, head, what it decides


def pick(record, what, **wanted) -> list:
    """The rows of a record with this name, and with these values in other columns."""
    return [
        row
        for row in record
        if row["what"] == what
        and all(row.get(name) == value for name, value in wanted.items())
    ]


def percent(row, name) -> str:
    """A share with its margin, and of how many."""
    return f"{row[name]:.1%} ± {row[f'{name}.margin']:.1%} of {row[f'{name}.count']:,}"


def table(record, what, name, **wanted):
    """A figure of each head of the encoder, a row a layer."""
    rows = pick(record, what, kind="encoder", **wanted)
    layers = max(row["layer"] for row in rows)
    return torch.tensor([row[name] for row in rows]).view(layers, -1)


def looks(record):
    """How often each of the two heads finds its noun, printed."""
    found = {"owner": "the owner", "owned": "the noun of an article or possessive"}
    for row in pick(record, "looks"):
        print(
            f"head {row['layer']}.{row['head']} finds {found[row['turn']]}: "
            f"{percent(row, 'looks')}"
        )
    first = pick(record, "looks", turn="owner")[0]
    print(
        "guesses for the owner:",
        ", ".join(
            f"{name} {first[f'guesses.{name}']:.0%}"
            for name in ("chance", "nearest noun", "first noun", "likeliest owner")
        ),
    )


# heads whose part is known
NAMED = (("encoder", 1, 3), ("encoder", 2, 1), ("decoder", 2, 4), ("decoder", 2, 1))


def silent(record):
    """Stems and endings of possessives with each head silent."""
    rows = {
        (row["kind"], row["layer"], row["head"]): row
        for row in pick(record, "silent", turn="owner")
    }
    named = {"none": pick(record, "nothing", turn="owner")[0]}
    for place in NAMED:
        named["{} {}.{}".format(*place)] = rows.pop(place)
    for name, row in named.items():
        print(f"{name} silent:", both_parts(row))
    parts = ("stem", "ending")
    least = {name: min(row[name] for row in rows.values()) for name in parts}
    print(
        f"any other head silent: stem right in at least {least['stem']:.1%}, "
        f"ending in {least['ending']:.1%}"
    )
    print(
        "with encoder 1.3 silent the model writes sein in",
        percent(named["encoder 1.3"], "sein"),
    )
    tables = {
        f"encoder: {name} right, this head silent": table(
            record, "silent", name, turn="owner"
        )
        for name in parts
    }
    return heads.table(tables, across=2, largest=1.0)


def both_parts(row) -> str:
    """How often stem and ending are right."""
    return "; ".join(
        f"{name} right {percent(row, name)}" for name in ("stem", "ending")
    )


def by_class(record):
    """All German words with each head silent, by their class."""
    rows = [
        *pick(record, "words, nothing"),
        *pick(record, "words, silent", kind="encoder"),
    ]
    (row,) = pick(record, "words, silent", kind="encoder", layer=2, head=1)
    print(
        "2.1 silent:",
        "; ".join(f"{name} right {percent(row, name)}" for name in CLASSES[:4]),
    )
    shares = [[row[name] for name in CLASSES] for row in rows]
    names = ["none", *(f"{row['layer']}.{row['head']}" for row in rows[1:])]
    return plotting.heatmap(
        shares,
        CLASSES,
        names,
        "Share of German words that come right",
        values=True,
        largest=1.0,
        labels=("class of word", "head silent"),
    )


def turned(record):
    """How often the possessive follows a head that is turned."""
    for turn, (layer, head, part) in HEADS.items():
        place = {"turn": turn, "kind": "encoder", "layer": layer, "head": head}
        rows = {
            "untouched": pick(record, "nothing", turn=turn)[0],
            f"{layer}.{head} silent": pick(record, "silent", **place)[0],
            f"{layer}.{head} turned": pick(record, "turned", **place)[0],
        }
        print(
            f"the {part} of the other noun:",
            "; ".join(
                f"{name} {percent(row, 'follows')}" for name, row in rows.items()
            ),
        )
        others = [
            row["follows"]
            for row in pick(record, "turned", turn=turn)
            if (row["layer"], row["head"]) != (layer, head)
        ]
        print(f"    another head turned: {min(others):.1%} to {max(others):.1%}")
    tables = {
        f"{part} follows, this head turned": table(
            record, "turned", "follows", turn=turn
        )
        for turn, (*_, part) in HEADS.items()
    }
    return heads.table(tables, across=2, largest=1.0)


def reasons(record):
    """Where the stem follows and where it does not, printed."""
    (row,) = pick(record, "turned to the antecedent")
    print("1.3 turned to the right noun: stem right", percent(row, "stem"))
    for row in pick(record, "turned to"):
        kind = "an owner" if row["owner"] else "never an owner"
        print(
            f"turned to a noun for {row['stem']}, {kind} in training: follows",
            percent(row, "follows"),
        )
    print(
        "pasted where turning failed: follows",
        percent(pick(record, "pasted")[0], "follows"),
    )
