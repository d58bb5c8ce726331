"""Minutes of reading in the README's table of chapters: python tools/reading.py

A notebook takes a minute for 200 words that are seen (an address behind a link is not) and half a
minute for a cell of code, in steps of five. A part of the table has the sum of its chapters.
"""

import re

import nbformat
import pairs

CHAPTER = re.compile(r"^\|\[[^\]]*\]\(notebooks/(\w+)\.ipynb\).*\|(.*)\|(\d+)\|$")
PART = re.compile(r"^\|\*\*(.+?)\*\*.*\|\|\*\*(\d+)\*\*\|$")
MAIN = "Main book"
HOUR = ("00_first_transformer", "04_attention")  # the shortest way to read
WORDS_A_MINUTE, MINUTES_A_CELL = 200, 0.5
UNSEEN = re.compile(r"\]\([^)]*\)|<[^>]*>")  # addresses of links, tags


def minutes(notebook):
    """How long a notebook takes to read, in minutes, in steps of five."""
    cells = nbformat.read(notebook, as_version=4).cells
    words = sum(
        len(UNSEEN.sub(" ", cell.source).split())
        for cell in cells
        if cell.cell_type == "markdown"
    )
    code = sum(cell.cell_type == "code" and bool(cell.source.strip()) for cell in cells)
    return max(5, 5 * round((words / WORDS_A_MINUTE + code * MINUTES_A_CELL) / 5))


def parts(text):
    """{name of a part: [(stem of a notebook, what waits there, minutes), ...]} of the README's
    table, in its order."""
    found = {}
    for line in text.splitlines():
        if part := PART.match(line):
            found[part[1]] = []
        elif chapter := CHAPTER.match(line):
            stem, waits, number = chapter.groups()
            found[list(found)[-1]].append((stem, waits, int(number)))
    return found


def sums(text):
    """{name of a part: minutes} as the README's table has them."""
    matches = map(PART.match, text.splitlines())
    return {part[1]: int(part[2]) for part in matches if part}


def filled(text, root=pairs.ROOT):
    """The README with every number of its table in place."""
    taken = {
        stem: minutes(root / "notebooks" / f"{stem}.ipynb")
        for chapters in parts(text).values()
        for stem, *_ in chapters
    }
    totals = {
        name: sum(taken[stem] for stem, *_ in chapters)
        for name, chapters in parts(text).items()
    }
    lines = []
    for line in text.split("\n"):
        if part := PART.match(line):
            line = line.replace(f"**{part[2]}**|", f"**{totals[part[1]]}**|")
        elif chapter := CHAPTER.match(line):
            line = f"{line[: chapter.start(3)]}{taken[chapter[1]]}|"
        lines.append(line)
    return "\n".join(lines)


def main():
    readme = pairs.ROOT / "README.md"
    text = filled(readme.read_text(encoding="utf8"))
    readme.write_text(text, encoding="utf8", newline="\n")


if __name__ == "__main__":
    main()
