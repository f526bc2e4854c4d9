"""Events: what drivers tell their one listener; the bar, the log and the cost meter are listeners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Literal, NamedTuple

from robustjudge.nouns import Completion

Kind = Literal["planned", "asked", "sent", "saved", "answered", "row", "fault", "stopped"]


class Event(NamedTuple):
    """``kind``, the cell it belongs to, the model, a word of detail and the completion (``answered`` only)."""

    kind: Kind
    cell: str = ""
    model: str = ""
    detail: str = ""
    completion: Completion | None = None
    role: str = ""


Listener = Callable[[Event], None]


@dataclass
class Tally:
    """A listener that counts: rows, calls asked / sent / saved, requests beyond the first of a call (``again``), calls by
    role and model, tokens by role, cost, faults by kind."""

    price: Callable[[Completion, str], float | None] | None = None
    planned: int = 0
    rows: int = 0
    asked: int = 0
    sent: int = 0
    saved: int = 0
    again: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    sent_by_role: Counter[str] = field(default_factory=Counter)
    sent_by_model: Counter[str] = field(default_factory=Counter)
    tokens_by_role: Counter[str] = field(default_factory=Counter)
    started: float = field(default_factory=monotonic)

    def __call__(self, event: Event) -> None:
        match event.kind:
            case "planned":
                self.planned += int(event.detail or 1)
            case "asked":
                self.asked += 1
            case "saved":
                self.saved += 1
            case "sent":
                self.sent += 1
                self.sent_by_role[event.role] += 1
                self.sent_by_model[event.model] += 1
            case "row":
                self.rows += 1
            case "fault":
                self.faults[event.detail] += 1
            case "answered" if event.completion is not None:
                usage = event.completion.usage
                self.again += max(event.completion.attempts - 1, 0)
                self.prompt_tokens += usage.prompt
                self.completion_tokens += usage.completion
                self.tokens_by_role[event.role] += usage.prompt + usage.completion
                if self.price is not None:
                    cost = self.price(event.completion, event.model)
                    if cost is None:
                        self.unpriced += 1
                    else:
                        self.cost += cost
            case _:
                pass


def fan(*listeners: Listener) -> Listener:
    """One listener that tells several."""

    def tell(event: Event) -> None:
        for listener in listeners:
            listener(event)

    return tell
