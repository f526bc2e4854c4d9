"""The kernel all drivers share: a flight advances the steps of one trial as far as they go and says what they ask.

A driver is then thirty lines: it answers the pending asks in its own way (concurrently, one by one, or in batches)
and hands the answers back.  The kernel also keeps the sequence of ask hashes, which is the same in every driver and
completion order, because side-by-side parts are hashed by position and not by time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from robustjudge.asks import Complete, Invoke, Weigh
from robustjudge.errors import RobustJudgeError
from robustjudge.nouns import Call, LabelCall, Message, Sampling
from robustjudge.spec import ByIdentity, canonical, digest
from robustjudge.steps import Ask, Steps, Together, check_ask

T = TypeVar("T")


class Diverged(RobustJudgeError):
    """A replay asked something else than the stored run did at the same place."""


def _content_key(call: Call) -> str:
    texts = [call.model, call.replica, _sampling(call.sampling)]
    for m in call.messages:
        texts.append(m.role)
        texts.append(m.text)
        texts += _segmented(m)
    return digest(*texts)


content_key: Callable[[Call], str] = ByIdentity(_content_key, kept=256)
"""The part of a call's ledger key that does not depend on the endpoint: model, messages, sampling, replica."""


def _segmented(m: Message) -> list[str]:
    """What a forced segmentation adds to a key: nothing, nearly always."""
    if not any(p.cuts for p in m.parts):
        return []
    return ["cuts", *(f"{i}:{p.cuts}" for i, p in enumerate(m.parts) if p.cuts)]


_SAMPLINGS: dict[Sampling, str] = {}


def _sampling(s: Sampling) -> str:
    text = _SAMPLINGS.get(s)
    if text is None:
        fields = {name: getattr(s, name) for name in Sampling.__dataclass_fields__}
        text = _SAMPLINGS[s] = canonical({k: list(v) if isinstance(v, tuple) else v for k, v in fields.items()})
    return text


def label_key(asked: LabelCall) -> str:
    """The content key of a label-probability question."""
    return digest(
        "weigh", content_key(asked.call), asked.lead, str(len(asked.labels)), *asked.labels, *map(str, asked.suffix)
    )


def ask_keys(ask: Ask[Any]) -> tuple[str, ...]:
    """One content key per call of an ask; a single key for an ask that is answered whole."""
    if isinstance(ask, Complete):
        return tuple([content_key(c) for c in ask.calls])
    if isinstance(ask, Weigh):
        return (digest(*[label_key(c) for c in ask.calls]),)
    if isinstance(ask, Invoke):
        return (digest("invoke", ask.service, *_texts(ask.slate)),)
    return (digest(type(ask).__name__, *_texts(ask)),)


def _texts(thing: Any) -> list[str]:
    """A flat, unambiguous list of texts for any ask made of dataclasses, tuples, text and numbers."""
    if isinstance(thing, str):
        return ["s", thing]
    if isinstance(thing, (bool, int, float)) or thing is None:
        return [repr(thing)]
    if isinstance(thing, LabelCall):
        return [label_key(thing)]
    if isinstance(thing, Call):
        return [content_key(thing)]
    if isinstance(thing, Message):
        return ["m", thing.role, thing.text, *_segmented(thing)]
    if isinstance(thing, (tuple, list)):
        return ["(", str(len(thing)), *(t for x in thing for t in _texts(x))]
    names = getattr(type(thing), "__dataclass_fields__", {})
    return [type(thing).__name__, *(t for n in names for t in _texts(getattr(thing, n)))]


@dataclass(slots=True)
class Frame:
    """One coroutine of a flight: the trial itself, or a part of a :class:`Together`."""

    steps: Steps[Any]
    parent: Frame | None = None
    slot: int = 0
    path: str = ""
    replies: list[Any] = field(default_factory=list)
    missing: int = 0
    asked: list[str] = field(default_factory=list)
    children: tuple[Frame, ...] = ()


@dataclass(slots=True)
class Pending:
    """A leaf ask that waits for its answer, with its content keys and its structural path (``2``, ``0.1/3``): the
    same place in every driver and completion order."""

    frame: Frame
    ask: Ask[Any]
    keys: tuple[str, ...]
    path: str
    mark: str


class Flight(Generic[T]):
    """The steps of one trial in the air.

    ``launch`` and ``answer`` return the asks that became pending; ``done`` says that ``result`` or ``error`` is set.
    ``known`` are the ask hashes of an earlier flight of the same cell, by path: asking something else at the same
    place is a divergence.
    """

    def __init__(self, steps: Steps[T], known: dict[str, str] | None = None) -> None:
        self.root = Frame(steps)
        self.done = False
        self.result: T | None = None
        self.error: BaseException | None = None
        self.asks = 0
        self.known = known or {}
        self._open: dict[str, Pending] = {}

    def launch(self) -> list[Pending]:
        """Start the steps."""
        return self._advance([(self.root, None, None)])

    def answer(self, pending: Pending, reply: Any = None, error: BaseException | None = None) -> list[Pending]:
        """Hand an answer (or an error, thrown into the steps) to a pending ask."""
        if self._open.pop(pending.path, None) is None or self.done:
            return []
        return self._advance([(pending.frame, reply, error)])

    def close(self) -> None:
        """Close every coroutine; the flight is over without a result."""
        self.done = True
        self._open.clear()
        _close(self.root)

    @property
    def waiting(self) -> int:
        """How many asks wait for an answer."""
        return len(self._open)

    @property
    def trace(self) -> str:
        """The hash of everything asked so far, in structural order."""
        return digest(*self.root.asked)

    def _advance(self, ready: list[tuple[Frame, Any, BaseException | None]]) -> list[Pending]:
        fresh: list[Pending] = []
        while ready:
            frame, reply, error = ready.pop(0)
            try:
                thing = frame.steps.throw(error) if error is not None else frame.steps.send(reply)
                ask = check_ask(thing, frame.steps)
            except StopIteration as stop:
                self._finished(frame, stop.value, None, ready)
                continue
            except (KeyboardInterrupt, SystemExit):
                raise  # not a fault of the trial: somebody wants out
            except BaseException as fault:
                frame.steps.close()
                self._finished(frame, None, fault, ready)
                continue
            if isinstance(ask, Together):
                if not ask.parts:
                    ready.append((frame, (), None))
                    continue
                stem = f"{frame.path}{len(frame.asked)}."
                frame.children = tuple(Frame(p, frame, i, f"{stem}{i}/") for i, p in enumerate(ask.parts))
                frame.replies, frame.missing = [None] * len(ask.parts), len(ask.parts)
                ready[:0] = [(child, None, None) for child in frame.children]
                continue
            keys = ask_keys(ask)
            mark = digest(*keys)
            pending = Pending(frame, ask, keys, f"{frame.path}{len(frame.asked)}", mark)
            frame.asked.append(mark)
            stored = self.known.get(pending.path)
            self.asks += 1
            if stored is not None and stored != mark:
                told = Diverged(
                    f"ask {pending.path} ({type(ask).__name__}) differs from the stored run: it was {stored}, now it"
                    f" is {mark}.  Something on our side is not reproducible (unseeded randomness, set order, changed"
                    " code or data); nothing was sent for it"
                )
                ready.insert(0, (frame, None, told))
                continue
            self._open[pending.path] = pending
            fresh.append(pending)
        return [] if self.done else [p for p in fresh if p.path in self._open]

    def _finished(
        self,
        frame: Frame,
        value: Any,
        error: BaseException | None,
        ready: list[tuple[Frame, Any, BaseException | None]],
    ) -> None:
        parent = frame.parent
        if parent is None:
            self.done, self.result, self.error = True, value, error
            return
        if error is not None:
            for child in parent.children:  # siblings of a failed part are closed, as a task group would
                if child is not frame:
                    _close(child)
            ready[:] = [r for r in ready if not _inside(r[0], parent)]
            self._open = {k: p for k, p in self._open.items() if not _inside(p.frame, parent)}
            parent.children = ()
            ready.insert(0, (parent, None, error))
            return
        parent.replies[frame.slot] = value
        parent.missing -= 1
        if not parent.missing:
            parent.asked.append(digest("together", *(digest(*c.asked) for c in parent.children)))
            parent.children = ()
            replies, parent.replies = tuple(parent.replies), []
            ready.append((parent, replies, None))


def _inside(frame: Frame | None, ancestor: Frame) -> bool:
    """Whether ``frame`` is a descendant of ``ancestor`` (not the ancestor itself)."""
    frame = frame.parent if frame else None
    while frame is not None:
        if frame is ancestor:
            return True
        frame = frame.parent
    return False


def _close(frame: Frame) -> None:
    for child in frame.children:
        _close(child)
    frame.steps.close()
