"""Ctrl-C and SIGTERM: the first leaves a note, so that an update is finished and saved."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Interrupted(Exception):
    """Training was stopped by Ctrl-C or SIGTERM; what was done is saved."""


OPEN: list[list[str]] = []  # the notes of all blocks that are open, the outermost first


@contextmanager
def catch_interrupt() -> Iterator[list[str]]:
    """Inside the block the first Ctrl-C or SIGTERM only adds to the list that is yielded.

    A second raises KeyboardInterrupt. (Otherwise Python raises it wherever it happens to be,
    perhaps with half of the weights updated. Clusters send SIGTERM before they take a machine
    away.) A block around it gets the note as well, for what was to come after this one. In another
    thread than the main one, which alone gets signals, nothing is caught.
    """
    notes: list[str] = []

    def note(number: int, _: object) -> None:
        if notes:
            raise KeyboardInterrupt
        notes.append("Ctrl-C" if number == signal.SIGINT else "SIGTERM")

    if threading.current_thread() is not threading.main_thread():
        yield notes
        return
    OPEN.append(notes)
    before = {
        number: signal.signal(number, note)
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield notes
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        OPEN.pop()
        if OPEN:
            OPEN[-1].extend(notes)


def ignore_next_sigterm() -> None:
    """Let one SIGTERM pass, as torchrun sends it where another process has ended: this one is about
    to say so and to end by itself."""
    if threading.current_thread() is not threading.main_thread():
        return
    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda *_: signal.signal(signal.SIGTERM, before))
