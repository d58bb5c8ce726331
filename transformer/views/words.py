"""What a picture shows, in words, for those who cannot see it."""

import math
import textwrap


def describe(figure, longest=1000):
    """What a figure shows, in words, for those who cannot see it: at most so many characters.

    Rows of matrices are left out where that is too long.
    """
    for rows in (True, False):
        panels = list(
            filter(None, (" ".join(words_of(ax, rows)) for ax in figure.axes))
        )
        text = " ".join(panels).replace("\n", " ")
        if len(text) <= longest:
            return text
    return textwrap.shorten(
        f"{len(panels)} panels. {text}", longest, placeholder=" ..."
    )


def words_of(ax, rows=True):
    """Sentences on one panel: its title, its axes, and what is drawn and written in it."""
    if ax.get_title():
        yield f"“{ax.get_title()}”."
    for axis, where in ((ax.yaxis, "Up"), (ax.xaxis, "Along")):
        named = " to ".join(
            dict.fromkeys([*names_along(axis)[:1], *names_along(axis)[-1:]])
        )
        if axis.get_label_text() or named:
            yield f"{where}: {', '.join(filter(None, [axis.get_label_text(), named]))}."
    for image in ax.images:
        yield from words_of_matrix(image.get_array().tolist(), ax, rows)
    for line in ax.lines:
        values = [float(value) for value in line.get_ydata() if math.isfinite(value)]
        if len(values) > 2:
            name = line.get_label() if line.get_label()[:1] != "_" else "A curve"
            yield (
                f"{name} from {values[0]:.3g} to {values[-1]:.3g} (lowest {min(values):.3g}, "
                f"highest {max(values):.3g})."
            )
    if ax.texts and not ax.images:
        yield f"Written in it: {'; '.join(text.get_text() for text in ax.texts)}."


def names_along(axis):
    """The words at the places of an axis; none where numbers stand there."""
    from matplotlib.ticker import FuncFormatter

    named = isinstance(axis.get_major_formatter(), FuncFormatter)
    return [label.get_text() for label in axis.get_ticklabels()] if named else []


def words_of_matrix(matrix, ax, rows):
    """Its size and range, and of each of few rows the column of the largest number."""
    numbers = [number for row in matrix for number in row]
    yield (
        f"{len(matrix)} rows, {len(matrix[0])} columns, numbers from {min(numbers):.3g} to "
        f"{max(numbers):.3g}."
    )
    names = names_along(ax.yaxis), names_along(ax.xaxis)
    if rows and (len(names[0]), len(names[1])) == (len(matrix), len(matrix[0])):
        most = (
            f"{name} → {names[1][row.index(max(row))]}"
            for name, row in zip(names[0], matrix)
        )
        yield f"Most in each row: {', '.join(most)}."
