"""Minutes of reading in the README's table: python tools/reading.py

A notebook takes a minute for 200 words of prose and half a minute for a cell of code. A cell of the
table's last three columns that holds a number gets the notebook's minutes, in steps of five, and
the last row their sums.
"""

import re

import nbformat
import pairs

ROW = re.compile(
    r"^(\| \[[^\]]*\]\(notebooks/(\w+)\.ipynb\) \|.*\|)((?: \d* ?\|){3})$", re.MULTILINE
)
SUMS = re.compile(
    r"^(\| \*\*minutes together\*\* \| \| \|)(?: \d+ \|){3}$", re.MULTILINE
)
WORDS_A_MINUTE, MINUTES_A_CELL = 200, 0.5


def minutes(notebook):
    """How long a notebook takes to read, in minutes, in steps of five."""
    cells = nbformat.read(notebook, as_version=4).cells
    words = sum(
        len(re.findall(r"\w+", cell.source))
        for cell in cells
        if cell.cell_type == "markdown"
    )
    code = sum(cell.cell_type == "code" and bool(cell.source.strip()) for cell in cells)
    return max(5, 5 * round((words / WORDS_A_MINUTE + code * MINUTES_A_CELL) / 5))


def routes(text):
    """{notebook's name: its cells in the columns of the three routes} of the README's table"""
    return {
        stem: [cell.strip() for cell in cells.split("|")[:3]]
        for _, stem, cells in ROW.findall(text)
    }


def filled(text, root=pairs.ROOT):
    """The README with every number of its table in place."""

    def row(match):
        taken = minutes(root / "notebooks" / f"{match[2]}.ipynb")
        return match[1] + "".join(
            f" {taken} |" if cell else " |" for cell in routes(match[0])[match[2]]
        )

    text = ROW.sub(row, text)
    columns = zip(*routes(text).values())
    sums = [sum(int(cell) for cell in column if cell) for column in columns]
    return SUMS.sub(
        lambda match: match[1] + "".join(f" {total} |" for total in sums), text
    )


def main():
    readme = pairs.ROOT / "README.md"
    readme.write_text(
        filled(readme.read_text(encoding="utf8")), encoding="utf8", newline="\n"
    )


if __name__ == "__main__":
    main()
