"""How pages of evidence write differences, their intervals, p values and tables."""

from typing import Any


def p_value(p: float) -> str:
    """A p value in as many digits as it deserves."""
    return "<0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def difference(row: Any) -> str:
    """The "difference" of a row of `core.analysis.beside`, bold where its "p" is below
    0.05."""
    text = f"{row.difference:+.1f}".replace("-0.0", "0.0").replace("-", "−")
    return f"**{text}**" if row.p < 0.05 else text


def with_interval(row: Any) -> str:
    """A difference with its interval: "−1.3 [−1.8, −0.8]"."""
    interval = f"[{row.low:.1f}, {row.high:.1f}]".replace("-0.0", "0.0")
    return f"{difference(row)} {interval.replace('-', '−')}"


def with_p(row: Any) -> str:
    """A difference with its p: "−0.6 (0.07)"."""
    return f"{difference(row)} ({p_value(row.p)})"


def shown(frame: Any) -> Any:
    """A table of pandas as Markdown, which pages show everywhere with what is bold in
    it."""
    from IPython.display import Markdown

    lines = [["", *frame.columns], ["---"] * (1 + len(frame.columns))]
    for name, *values in frame.itertuples():
        lines.append([name, *values])
    rows = [" | ".join(str(entry) for entry in line) for line in lines]
    return Markdown("\n".join(f"| {row} |" for row in rows))


def listed(rows: list[dict[str, Any]]) -> Any:
    """Rows with the same names, as a table in Markdown without a first column of its own."""
    from IPython.display import Markdown

    lines = [list(rows[0]), ["---"] * len(rows[0]), *(row.values() for row in rows)]
    cells = [" | ".join(str(entry) for entry in line) for line in lines]
    return Markdown("\n".join(f"| {row} |" for row in cells))
