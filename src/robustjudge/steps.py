"""Steps: computation that asks for outside help and never performs I/O itself.

A ``Steps[T]`` is a coroutine that may await only :class:`Ask` objects (or other steps).  A driver runs it: it sends
each answer back and collects the returned ``T``.  The pattern is known as *sans-I/O*.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Ask(Generic[R]):
    """A typed question.  ``await`` it inside steps; a handler or the engine answers."""

    __slots__ = ()

    def __await__(self) -> Generator[Ask[Any], Any, R]:
        reply: R = yield self
        return reply


Steps: TypeAlias = Coroutine[Any, Any, T]


@dataclass(frozen=True, eq=False)
class Together(Ask[tuple[T, ...]], Generic[T]):
    """Run several steps side by side; the answer holds their results, in order."""

    parts: tuple[Steps[T], ...]


def together(parts: Iterable[Steps[T]]) -> Together[T]:
    """Ask for all ``parts`` at once."""
    return Together(tuple(parts))


class NotAnAsk(TypeError):
    """Steps awaited something that no engine can answer (a future, a sleep, another library's awaitable)."""


def check_ask(thing: object, steps: Steps[Any]) -> Ask[Any]:
    """``thing`` if it is an Ask, else an error that names the file and line that awaited it."""
    if isinstance(thing, Ask):
        return thing
    raise NotAnAsk(f"steps may await only asks, not {type(thing).__name__} ({where(steps)})")


def where(steps: Steps[Any]) -> str:
    """File and line where the innermost coroutine of ``steps`` stands."""
    inner: Any = steps
    while getattr(inner, "cr_await", None) is not None and hasattr(inner.cr_await, "cr_frame"):
        inner = inner.cr_await
    frame = getattr(inner, "cr_frame", None)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "finished steps"


class Handler(Protocol):
    """Answers some asks of the steps it wraps; every other ask it awaits itself, which passes it outward."""

    async def answer(self, ask: Ask[Any]) -> Any: ...

    def split(self, n: int) -> Iterable[Handler]:
        """One handler for each of ``n`` parts that run side by side (a meter divides its budget here)."""
        ...


class Stateless:
    """Base of handlers that keep no state: every part shares the same handler."""

    def split(self, n: int) -> Iterable[Any]:
        return [self] * n


async def handled(steps: Steps[T], handler: Handler) -> T:
    """Run ``steps`` with ``handler`` wrapped around them, recursively through every :class:`Together`.

    Exceptions of the handler are thrown *into* ``steps`` so that the traceback ends in the plugin's own line.
    """
    reply: Any = None
    error: BaseException | None = None
    try:
        while True:
            try:
                thing = steps.throw(error) if error is not None else steps.send(reply)
            except StopIteration as done:
                value: T = done.value
                return value
            error = None
            try:
                ask = check_ask(thing, steps)
                if isinstance(ask, Together):
                    hands = handler.split(len(ask.parts))
                    wrapped = tuple(handled(p, h) for p, h in zip(ask.parts, hands, strict=True))
                    reply = await Together(wrapped)
                else:
                    reply = await handler.answer(ask)
            except GeneratorExit:
                raise
            except BaseException as fault:  # thrown into the steps, which may handle it or let it pass
                error = fault
    finally:
        steps.close()


def run(steps: Steps[T], answer: Callable[[Ask[Any]], Any]) -> T:
    """Run ``steps`` to their end with a plain function that answers every ask but :class:`Together`.

    For tests and notebooks; the drivers of :mod:`robustjudge.engine` add ledger, limits and events.
    """

    reply: Any = None
    error: Exception | None = None
    try:
        while True:
            thing = steps.throw(error) if error is not None else steps.send(reply)
            ask, error = check_ask(thing, steps), None
            try:
                reply = tuple([run(p, answer) for p in ask.parts]) if isinstance(ask, Together) else answer(ask)
            except Exception as fault:  # thrown into the steps, as every driver does
                error = fault
    except StopIteration as done:
        value: T = done.value
        return value
    finally:
        steps.close()
