"""Names that are not known: the nearest of those that are."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: object, known: Iterable[str], n: int, cutoff: float) -> list[str]:
    """At most n of the known names, the most like it first, those less than `cutoff` like it (0 to
    1) left out. Capital letters, and - for _, make no difference."""
    plain = {other.lower().replace("-", "_"): other for other in known}
    wanted = str(name).lower().replace("-", "_")
    return [plain[like] for like in get_close_matches(wanted, plain, n, cutoff)]


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """ " (did you mean base?)", to stand behind a name that is not known; "" where none is near."""
    near = nearest(name, known, n=1, cutoff=0.6)
    return f" (did you mean {near[0]}?)" if near else ""
