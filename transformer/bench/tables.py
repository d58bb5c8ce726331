"""Figures of `transformer bench`, old records too, as tables of text."""

WORDS = {
    "plain": "this package, plain",
    "fast": "this package, as it runs",
    "torch": "torch.nn.Transformer",
    "tuned": "nn.Transformer, tuned",
    "marian": "Marian (transformers)",
    "ctranslate2": "CTranslate2",
    "ctranslate2 int8": "CTranslate2, 8 bits",
}


COLUMNS = {
    "learning": ["way", "validation_loss", "deviation", "minus_plain"],
    "levers": ["lever", "tokens_per_second", "over_plain", "over_all", "over_none"],
    "memory": ["system", "peak_gib", "above_start_gib"],
    "attention": ["form", "n", "seconds", "above_start_gib"],
    "products": ["route", "gflops_per_second", "error", "fp32_class"],
}


def table(title: str, rows: list[dict]) -> str:
    """Rows of dicts as lines of text; lists are left out."""
    names = (
        [name for name, value in rows[0].items() if not isinstance(value, list)]
        if rows
        else []
    )
    cells = [names, *([str(row.get(name, "")) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = []
    for row in cells:
        lines.append(
            "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths)).rstrip()
        )
    return "\n  ".join([title, *lines]) + "\n"


def shown(part: str, rows: list[dict]) -> str:
    """A part's rows as text; "x torch" is how many times as fast as torch.nn.Transformer, "m." its
    run at medium.
    """
    if part in COLUMNS:
        own = [
            {name: row[name] for name in COLUMNS[part] if name in row} for row in rows
        ]
        return table(part, own)
    kinds = dict.fromkeys(
        row.get("kind", "") for row in rows
    )  # older: with dropout, without, ...
    return "\n".join(
        table(
            f"{part} {kind}".strip(),
            [short(row) for row in rows if row.get("kind", "") == kind],
        )
        for kind in kinds
    )


def short(row: dict) -> dict:
    """A row for reading: one name, rounded ratios."""
    found = {
        "system": WORDS[row["system"]] + ", medium" * (row["matmul"] == "medium"),
        "tokens/s": f"{row['tokens_per_second']:,.0f}",
    }
    for name, value in row.items():
        if name.startswith("over_"):
            peer = (
                name.removeprefix("over_")
                .replace("_highest", "")
                .replace("_medium", " m.")
            )
            found[f"x {peer}"] = f"{value:.2f}"
    return found
