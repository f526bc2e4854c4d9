"""Generated inputs on their way to a judge: a JSONL file per batch that only grows, so that review survives a kill.

One object a line::

    {"id": "...", "case": "c1", "text": "...", "category": "style_manipulation", "severity": "high", "expected": 3.0,
     "attack": "confident_tone", "status": "pending", "who": "", "when": "", "reason": ""}

``id`` is the content hash (:func:`variant_id`), ``expected`` the score a robust judge would give (``null``: unknown).
``status`` is ``pending``, ``approved``, ``edited`` or ``rejected``; the last line of an id stands.  An edit appends the
old id as ``edited`` with ``becomes`` (the new id) and the new text as ``approved``: nothing is sent that nobody has seen.
Generated inputs say besides where they come from (``source``, ``model``, ``seed``, ``parent``: the hash of the response),
which ``control`` goes with them, how their ``content`` was checked, and under which rule of ``review`` they wait.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from robustjudge import door
from robustjudge.errors import DataError, StorageError
from robustjudge.spec import digest

STATUSES = ("pending", "approved", "edited", "rejected")
SEVERITIES = ("low", "medium", "high", "critical")


def variant_id(case: str, text: str, category: str) -> str:
    """The content hash of a variant: its case, its text as it passed the door, its category."""
    return digest("variant", door.safe(case), door.safe(text), category)[:32]


@dataclass(frozen=True)
class Variant:
    """One generated input and where its review stands.

    ``claimed`` is the score that a generator model said the text would get: kept, never believed.
    """

    id: str
    case: str
    text: str
    category: str
    severity: str = "high"
    expected: float | None = None
    attack: str = ""
    status: str = "pending"
    who: str = ""
    when: str = ""
    reason: str = ""
    becomes: str = ""
    source: str = ""
    model: str = ""
    seed: int = 0
    channel: str = ""
    parent: str = ""
    control: str = ""
    content: str = ""
    claimed: float | None = None
    review: str = ""

    @classmethod
    def of(cls, case: str, text: str, category: str, **more: Any) -> Variant:
        """A variant under the hash of its content."""
        safe = door.safe(text)
        return cls(variant_id(case, safe, category), door.safe(case), safe, category, **more)

    def decided(self, status: str, who: str, when: str, reason: str = "", text: str = "") -> tuple[Variant, ...]:
        """The lines that a decision appends; an edit makes two."""
        said = replace(self, status=status, who=who, when=when, reason=reason)
        if status != "edited":
            return (said,)
        safe = door.safe(text)
        new = replace(
            self,
            id=variant_id(self.case, safe, self.category),
            text=safe,
            channel="",
            control="",
            content="",
            claimed=None,
        )
        if new.id == self.id:
            return (replace(said, status="approved"),)
        new = replace(new, status="approved", who=who, when=when, reason=reason)
        return (replace(said, becomes=new.id), new)


def read_variants(path: Path) -> dict[str, Variant]:
    """The variants of a file by id, as their last line has them.  A torn last line (a kill while writing) is left out;
    any other bad line is a :class:`DataError` that names it."""
    try:
        data = path.read_bytes()
    except OSError as fault:
        raise DataError(f"{path}: the review file cannot be read ({fault.strerror})") from None
    out: dict[str, Variant] = {}
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = _variant(json.loads(line.decode("utf-8")))
        except (ValueError, TypeError) as fault:
            if number == len(lines):
                continue
            raise DataError(f"{path}, line {number}: not a generated input ({fault})") from None
        out[found.id] = found
    return out


def _variant(data: Any) -> Variant:
    if not isinstance(data, Mapping):
        raise ValueError("expected an object")
    known = {f.name for f in fields(Variant)}
    odd = sorted(set(data) - known)
    if odd:
        raise ValueError(f"unknown key {odd[0]!r}; known: {', '.join(sorted(known))}")
    for name in known - {"expected", "claimed", "seed"}:
        if name in data and not isinstance(data[name], str):
            raise ValueError(f"{name} is a text")
    for name in ("expected", "claimed"):
        number = data.get(name)
        if number is not None and (isinstance(number, bool) or not isinstance(number, (int, float))):
            raise ValueError(f"{name} is a number or null")
    if isinstance(data.get("seed", 0), bool) or not isinstance(data.get("seed", 0), int):
        raise ValueError("seed is a whole number")
    given: dict[str, Any] = {k: door.safe(x) if isinstance(x, str) else x for k, x in data.items()}
    v = Variant(**given)
    if v.status not in STATUSES:
        raise ValueError(f"status is one of {', '.join(STATUSES)}, not {v.status!r}")
    if v.severity not in SEVERITIES:
        raise ValueError(f"severity is one of {', '.join(SEVERITIES)}, not {v.severity!r}")
    if v.id != variant_id(v.case, v.text, v.category):
        raise ValueError(
            f"id {v.id[:40]!r} is not the hash of its content, so what was reviewed is not what stands here"
        )
    return v


def append_variants(path: Path, variants: Iterable[Variant]) -> None:
    """Append lines, all or none of them read back; one writer at a time, and a torn line before them is closed off."""
    import fcntl

    text = "".join(json.dumps(_line(v), ensure_ascii=False) + "\n" for v in variants)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            end = file.seek(0, os.SEEK_END)
            if end:
                file.seek(end - 1)
                if file.read(1) != b"\n":
                    file.truncate(_whole(file, end))
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
    except OSError as fault:
        raise StorageError(f"{path}: the review file cannot be written ({fault}); free space and start again") from None


def _whole(file: Any, end: int) -> int:
    """Where the last whole line ends."""
    file.seek(0)
    return int(file.read(end).rfind(b"\n")) + 1


_ALWAYS = ("id", "case", "text", "category", "severity", "expected", "status", "who", "when", "reason")


def _line(v: Variant) -> dict[str, Any]:
    return {k: x for k, x in asdict(v).items() if k in _ALWAYS or x not in ("", None, 0)}
