"""The outbox: calls that wait for a provider batch, written as one file instead of being sent.

``robustjudge run --batch FILE`` flies until only unsent calls remain; what the provider's batch service answers is
imported into the ledger, and the next run replays from there.  No judge and no attack knows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from robustjudge.engine.writer import Writer
from robustjudge.errors import PlanError
from robustjudge.nouns import Call, Completion


class Unsent(Exception):
    """The call waits in the outbox; its flight is put aside, not failed."""


class Outbox:
    """Collects request bodies by ledger key, each once; ``count`` is how many."""

    def __init__(self, path: Path, writer: Writer) -> None:
        self.path = path
        self.count = 0
        self._writer = writer
        self._seen: set[str] = set()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("w", encoding="utf-8")

    def add(self, key: str, call: Call, model: Any) -> None:
        """Write one call as a line of the provider's batch format (the key is its ``custom_id``)."""
        if key in self._seen:
            return
        line = getattr(model, "batch_line", None)
        if line is None:
            raise PlanError(f"{call.model} has no batch service; --batch is for openai/..., anthropic/... and the like")
        self._seen.add(key)
        self.count += 1
        self._file.write(json.dumps(line(key, call), ensure_ascii=False) + "\n")
        self._writer.put("ledger", "INSERT OR REPLACE INTO wanted VALUES (?, ?, ?)", (key, call.model, call.replica))

    def close(self) -> None:
        self._file.close()


def answers(path: Path, models: Any, wanted: dict[str, tuple[str, str]]) -> tuple[dict[str, Completion], list[str]]:
    """The completions in a batch service's result file, by ledger key, and what is wrong with the other lines.

    ``wanted`` maps keys to (model, replica); ``models`` opens a model by name.  A failed request is left out, so that
    the next run asks it again.
    """
    found: dict[str, Completion] = {}
    faults: list[str] = []
    for number, raw in enumerate(path.read_text("utf-8").splitlines(), start=1):
        if not raw.strip():
            continue
        try:
            row = json.loads(raw)
            key = str(row["custom_id"])
        except (ValueError, KeyError, TypeError):
            faults.append(f"{path}:{number}: no batch result (custom_id is missing)")
            continue
        if key not in wanted:
            faults.append(f"{path}:{number}: custom_id {key[:40]!r} is none of the calls that this ledger waits for")
            continue
        completion = models(wanted[key][0]).from_batch(row)
        if completion.status == "error":
            faults.append(f"{path}:{number}: the request failed ({completion.reason}); it will be asked again")
        else:
            found[key] = completion
    return found, faults
