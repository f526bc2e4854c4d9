"""Replies from a file: ``recorded/replies.jsonl`` replays what was recorded and sends nothing.

One JSON object per line: the prompt as ``hash`` (of :func:`prompt_hash`), ``messages`` (``[{"role", "content"}]``) or
``prompt`` (the text of one user turn); optionally ``replica``; and ``reply``, a text or an object with the fields of a
completion (``text``, ``status``, ``finish``, ``refusal``, ``reason``, ``reasoning``, ``model``).
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, get_args

from robustjudge import door
from robustjudge.errors import ConfigError, DataError
from robustjudge.models.base import Provider
from robustjudge.nouns import Access, Call, Completion, Message, Status, Usage, message
from robustjudge.spec import canonical, digest

_TEXTS = ("text", "status", "finish", "refusal", "reason", "reasoning", "model")


def prompt_hash(messages: tuple[Message, ...]) -> str:
    """The content hash of rendered messages: roles and texts, mapped at the door."""
    return digest(*(x for m in messages for x in (m.role, door.safe(m.text))))


class Recorded:
    """Replays the replies of a file.

    A reply recorded for the call's replica comes first, then one without a replica; of equal ones the last line
    counts.  Anything else is answered with status ``error``, reason ``not_recorded``.  Sampling is not compared.
    Raises :class:`DataError` naming file and line for a row that cannot be used.
    """

    access = Access.SCORE
    context: int | None = None

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        self.name = f"recorded/{path}"
        self.concurrency = 64
        try:
            raw = self.path.read_bytes()
        except OSError as fault:
            raise ConfigError(f"cannot read the recorded replies {self.path}: {fault.strerror or fault}") from None
        self.identity = digest(self.name, raw.decode("utf-8", "surrogateescape"))
        self._replies: dict[tuple[str, str], Completion] = {}
        for number, line in enumerate(raw.decode("utf-8", "replace").split("\n"), 1):
            if line.strip():
                key, replica, completion = _row(line, f"{self.path}, line {number}")
                self._replies[key, replica] = completion

    async def complete(self, call: Call) -> Completion:
        """The recorded reply."""
        key = prompt_hash(call.messages)
        for replica in (call.replica, ""):
            found = self._replies.get((key, replica))
            if found is not None:
                return found
        return Completion(status="error", reason="not_recorded", model=self.name)

    async def close(self) -> None:
        """Nothing to close."""


class Recorder:
    """Passes calls to ``provider`` and appends each reply to ``path`` in the form that :class:`Recorded` reads.

    A reply is on disk (written and flushed) before it is handed on.  Faults (status ``error``) are not recorded.
    """

    def __init__(self, provider: Provider, path: str | Path) -> None:
        self._provider = provider
        self.name, self.access = provider.name, provider.access
        self.context, self.concurrency = provider.context, provider.concurrency
        self._file = Path(path).expanduser().open("a", encoding="utf-8")

    async def complete(self, call: Call) -> Completion:
        """The provider's reply, recorded."""
        completion = await self._provider.complete(call)
        if completion.status != "error":
            self._file.write(canonical(row(call, completion)) + "\n")
            self._file.flush()
        return completion

    async def close(self) -> None:
        """Close the file and the provider."""
        self._file.close()
        await self._provider.close()


def row(call: Call, completion: Completion) -> dict[str, Any]:
    """The line of one reply."""
    empty = Completion()
    reply = {f: getattr(completion, f) for f in _TEXTS if getattr(completion, f) != getattr(empty, f)}
    if completion.usage != Usage():
        reply["usage"] = {k: v for k, v in dataclasses.asdict(completion.usage).items() if v}
    return {
        "hash": prompt_hash(call.messages),
        "messages": [{"role": m.role, "content": door.safe(m.text)} for m in call.messages],
        "replica": call.replica,
        "reply": reply,
    }


def _row(line: str, where: str) -> tuple[str, str, Completion]:
    try:
        data = json.loads(line)
    except ValueError as fault:
        raise DataError(f"{where}: no JSON ({fault})") from None
    if not isinstance(data, dict) or "reply" not in data:
        raise DataError(f"{where}: expected an object with 'reply' and one of 'hash', 'messages', 'prompt'")
    replica = data.get("replica") or ""
    if not isinstance(replica, str):
        raise DataError(f"{where}: 'replica' must be a text such as clean/0")
    return _key(data, where), replica, _completion(data["reply"], where)


def _key(data: dict[str, Any], where: str) -> str:
    match data:
        case {"hash": str(key)}:
            return key
        case {"messages": [*turns]} if turns and all(
            isinstance(t, dict) and isinstance(t.get("role"), str) and isinstance(t.get("content"), str) for t in turns
        ):
            return prompt_hash(tuple(message(t["role"], t["content"]) for t in turns))
        case {"prompt": str(text)}:
            return prompt_hash((message("user", text),))
    raise DataError(f"{where}: the prompt must be 'hash', 'messages' ([{{role, content}}]) or 'prompt' (text)")


def _completion(reply: Any, where: str) -> Completion:
    if isinstance(reply, str):
        return Completion(text=door.safe(reply))
    if not isinstance(reply, dict):
        raise DataError(f"{where}: 'reply' must be a text or an object")
    given = dict(reply)
    usage = given.pop("usage", {})
    unknown = set(given) - set(_TEXTS)
    if unknown or not all(isinstance(v, str) for v in given.values()):
        raise DataError(f"{where}: 'reply' holds texts named {', '.join(_TEXTS)}, and 'usage'; see {sorted(unknown)}")
    if given.get("status", "ok") not in get_args(Status):
        raise DataError(f"{where}: unknown status {given['status']!r}; known: {', '.join(get_args(Status))}")
    try:
        counted = Usage(**{k: int(v) for k, v in usage.items()})
    except (TypeError, ValueError, AttributeError):
        raise DataError(f"{where}: 'usage' holds whole numbers named prompt, completion, cached, reasoning") from None
    texts: dict[str, Any] = {k: door.safe(v) for k, v in given.items()}
    return Completion(**texts, usage=counted)
