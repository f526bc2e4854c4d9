"""Live progress: done, time left, calls sent and saved, cost, faults by kind."""

from __future__ import annotations

import os
import sys
from time import monotonic
from typing import TYPE_CHECKING

from robustjudge.engine.events import Event, Tally

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


class Progress:
    """A listener that draws one bar on a terminal and a line every ten seconds elsewhere (``CI`` stops animation)."""

    def __init__(self, planned: int | None, tally: Tally | None = None) -> None:
        self.planned = planned
        self.tally = tally or Tally()
        self._bar: Bar | None = None
        self._last = monotonic()
        self._animated = sys.stderr.isatty() and not os.environ.get("CI")

    def __enter__(self) -> Progress:
        if self._animated:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bar, TextColumn, TimeRemainingColumn

            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("starting", total=self.planned)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: Event) -> None:
        self.tally(event)
        now = monotonic()
        if now - self._last < (0.1 if self._bar is not None else 10.0):
            return
        self._last = now
        if self._bar is not None:
            self._bar.update(self._task, completed=self.tally.rows, description=self.words())
        else:
            total = f"/{self.planned}" if self.planned else ""
            rows = (
                f"{self.tally.rows}{total} rows, " if self.planned else ""
            )  # without a plan there is nothing to count
            sys.stderr.write(f"{rows}{self.words()}{self._left(now)}\n")

    def _left(self, now: float) -> str:
        t = self.tally
        if not self.planned or not t.rows:
            return ""
        seconds = (now - t.started) / t.rows * (self.planned - t.rows)
        return f", about {seconds / 60:.1f} min left"

    def words(self) -> str:
        """Calls, cost and faults in a few words."""
        t = self.tally
        words = f"{t.sent} calls sent, {t.saved} saved"
        if t.again:
            words = f"{t.sent} calls sent ({t.again} more requests after faults), {t.saved} saved"
        if t.cost:
            words += f", {t.cost:.4f} USD"
        if t.faults:
            words += ", faults: " + ", ".join(f"{k} {n}" for k, n in t.faults.most_common(4))
        return words
