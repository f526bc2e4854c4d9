"""The cycle collector at rest while many small records are made, hardly any of which is in a cycle: walking them again
and again takes a tenth to a fifth of the time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG = 20_000
"""New objects between two looks at the youngest generation (Python's own value is 700)."""


@contextmanager
def rare() -> Iterator[None]:
    """The collector looks less often; cycles are still found, so that memory stays flat however long this takes.

    Who changed the setting takes it back; a run that starts within another, or beside it, leaves it alone.
    """
    young, *older = gc.get_threshold()
    if not 0 < young < YOUNG:  # 0: it is switched off
        yield
        return
    gc.set_threshold(YOUNG, *older)
    try:
        yield
    finally:
        gc.set_threshold(young, *older)


@contextmanager
def paused() -> Iterator[None]:
    """The collector does not look at all: for a short stretch of known size."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
