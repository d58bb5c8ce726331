"""How pages of evidence write differences, their intervals, p values and tables."""

from string import Formatter
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
    return markdown_table(["", *frame.columns], frame.itertuples())


def listed(rows: Any, columns: dict[str, str]) -> Any:
    """Some columns of records as a table in Markdown, a line a row.

    columns: {heading: a text with columns of `rows` in braces, "{test.bleu:.1f}"}; a row that
    lacks a column of a text has a dash there.
    """
    lines = [
        [filled(text, row) for text in columns.values()]
        for row in rows.to_dict("records")
    ]
    return markdown_table(list(columns), lines)


def markdown_table(heading: list, lines: Any) -> Any:
    """Lines of cells as a table in Markdown."""
    from IPython.display import Markdown

    rows = [heading, ["---"] * len(heading), *lines]
    texts = [" | ".join(map(str, row)) for row in rows]
    return Markdown("\n".join(f"| {text} |" for text in texts))


class Columns(Formatter):
    """`str.format` for names with dots and blanks, such as "{test.bleu:.2f}"."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        return kwargs[field_name], field_name


def filled(text: str, row: dict) -> str:
    """A text with the figures of a row in their places; a dash where one is missing."""
    names = [name for _, name, _, _ in Formatter().parse(text) if name]
    values = [row.get(name) for name in names]
    if any(value is None or value != value for value in values):
        return "-"
    return Columns().vformat(text, (), row)
