"""Variations besides those of Table 3, as lists of rows for the same runner: what readers ask, and
the rates at which the rows of Table 3 learn.

    transformer variations --rows schedule heads depth simple    on Multi30k
    transformer variations --corpus bundled --rows endless data length simple

Numbers are the paper's, scaled with the base like those of Table 3; how many pairs are drawn from
the grammar, and how long they may be, stays.
"""

from transformer.variations import TABLE_3, Row

IN_SMALL = (
    "base",
    "h=1",
    "h=32",
    "d_k=16",
    "d_k=32",
    "N=2",
    "N=4",
    "N=8",
    "d_model=256",
    "d_ff=1024",
    "d_ff=4096",
    "P_drop=0.0",
    "epsilon_ls=0.0",
    "positions=learned",
    "big",
)
CHOSEN = [
    row for row in TABLE_3 if row.name in IN_SMALL
]  # trained until it means something

# Rates; `transformer.experiments.rates` chooses among them

SHORT = 25_000  # updates, a quarter of the base's
TRIED = (
    4.0,
    2.0,
    1.0,
    0.5,
    0.25,
)  # times the learning rate of the base that was thought of first
LOWER = (0.5, 0.25)  # times the common one
AT_RISK = ("N=8", "big")  # where a rate is too high first


def rate_rows() -> list[Row]:
    """Base and the rows at risk with several rates for a quarter of the updates; beside none."""
    names = [
        (row, factor, f"{row.name},tried={factor:g}")
        for factor in TRIED
        for row in CHOSEN
        if row.name in ("base", *AT_RISK)
    ]
    return [
        Row(
            "rates",
            name,
            {**row.changes, "lr_scale": factor, "updates": SHORT},
            beside=name,
        )
        for row, factor, name in names
    ]


def tuned_rows(short: bool = False) -> list[Row]:
    """The rows at lower rates, each beside itself at the common rate; short ones beside none."""
    more = {"updates": SHORT} if short else {}
    end = ",short" if short else ""
    return [
        Row(
            "tuned",
            name,
            {**row.changes, "lr_scale": factor, **more},
            beside=name if short else row.name,
        )
        for factor in LOWER
        for row in CHOSEN
        for name in [f"{row.name},factor={factor:g}{end}"]
    ]


# Pairs drawn from the grammar

ENDLESS = 700_000  # pairs: more than the small base reads, so that none comes twice
PAIRS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
SIZES = {
    "narrow": dict(d_model=256, d_ff=1024),
    "base": {},
    "wide": dict(d_model=1024, d_ff=4096),
}


def endless_rows() -> list[Row]:
    """Table 3 where no sentence is seen twice."""
    return [
        Row(
            "endless",
            f"{row.name},endless",
            {**row.changes, "drawn": ENDLESS},
            beside="base,endless",
        )
        for row in CHOSEN
    ]


def data_rows() -> list[Row]:
    """Three sizes on more and more pairs, each beside base on as many."""
    return [
        Row(
            "data",
            f"{name},drawn={drawn}",
            {**sizes, "drawn": drawn},
            beside=f"base,drawn={drawn}",
        )
        for drawn in PAIRS
        for name, sizes in SIZES.items()
    ]


# Lengths: trained on short sentences, tried on sentences up to four times as long

LONGEST = 8  # words


def length_rows() -> list[Row]:
    """The three kinds of positions; all but the first beside it."""
    names = [
        (kind, f"positions={kind},longest={LONGEST}")
        for kind in ("sinusoidal", "learned", "rotary")
    ]
    return [
        Row(
            "length",
            name,
            dict(positions=kind, longest=LONGEST, drawn=ENDLESS),
            beside=names[0][1],
        )
        for kind, name in names
    ]


# The schedule around the paper's

FACTORS = (0.25, 1.0, 4.0)
WARMUPS = (1000, 4000, 12_000)


def schedule_rows() -> list[Row]:
    """The learning rate's scale and warm-up; names as in the records, which call it factor."""
    return [
        Row(
            "schedule",
            f"factor={factor:g},warmup={warmup}",
            dict(lr_scale=factor, warmup=warmup),
        )
        for factor in FACTORS
        for warmup in WARMUPS
        if (factor, warmup) != (1.0, 4000)
    ]


QUESTIONS = [
    *rate_rows(),
    *tuned_rows(short=True),
    *tuned_rows(),
    *endless_rows(),
    *data_rows(),
    *length_rows(),
    *schedule_rows(),
    # is it the number of heads, or the width of their keys?
    Row("heads", "h=32,d_k=64", dict(h=32, d_k=64, d_v=16), beside="h=32"),
    Row("heads", "h=1,d_k=64", dict(h=1, d_k=64, d_v=512), beside="h=1"),
    Row("depth", "N=8,norm_first=True", dict(N=8, norm_first=True), beside="N=8"),
    Row("depth", "norm_first=True", dict(norm_first=True)),
    Row("simple", "without=W_V", dict(without="W_V")),
    Row("simple", "without=softmax", dict(without="softmax")),
    Row("simple", "without=residual", dict(without="residual")),
    Row(
        "simple",
        "without=residual,factor=0.25",
        dict(without="residual", lr_scale=0.25),
    ),
    Row("simple", "without=W_V,h=1", dict(without="W_V", h=1, d_k=512, d_v=512)),
]
