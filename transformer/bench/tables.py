"""Figures of `transformer bench`, old records too, as tables of text."""

WORDS = {"plain": "this package, plain", "fast": "this package, as it runs",
         "torch": "torch.nn.Transformer", "tuned": "nn.Transformer, tuned",
         "marian": "Marian (transformers)", "ctranslate2": "CTranslate2",
         "ctranslate2 int8": "CTranslate2, 8 bits"}


def table(title: str, rows: list[dict]) -> str:
    """Rows of dicts as lines of text; lists are left out."""
    rows = [row for row in rows if row]
    names = [name for name, value in rows[0].items() if not isinstance(value, list)] if rows else []
    cells = [names, *([str(row.get(name, "")) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = []
    for row in cells:
        lines.append("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths)).rstrip())
    return "\n  ".join([title, *lines]) + "\n"


def shown(part: str, figures) -> str:
    """A part's tables; "x torch" is how many times as fast as torch.nn.Transformer, "m." its run at
    medium.
    """
    if isinstance(figures, list):
        return table(part, figures)
    kinds = {"": figures} if "rows" in figures else figures  # "dropout"; old records have more
    return "\n".join(table(f"{part} {kind}".strip(), [short(row) for row in figure["rows"]])
                     for kind, figure in kinds.items())


def short(row: dict) -> dict:
    """A row for reading: one name, rounded ratios."""
    found = {"system": WORDS[row["system"]] + ", medium" * (row["matmul"] == "medium"),
             "tokens/s": f"{row['tokens_per_second']:,.0f}"}
    for name, value in row.items():
        if name.startswith("over_"):
            peer = name.removeprefix("over_").replace("_highest", "").replace("_medium", " m.")
            found[f"x {peer}"] = f"{value:.2f}"
    return found
