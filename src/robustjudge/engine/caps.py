"""Hard caps on a whole run: calls and cost, reserved before a call is sent and settled when its usage is known."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from robustjudge.errors import BudgetSpent, PlanError
from robustjudge.nouns import Call, Completion

Price = Callable[[str], "tuple[float, float] | None"]
"""Model name to USD per million prompt and completion tokens; ``None`` when unknown."""


@dataclass
class Caps:
    """``max_calls`` and ``max_cost`` (USD) for the whole run; ``None`` is no cap.

    The reservation is an upper bound: a byte-level tokenizer never makes more tokens than UTF-8 bytes, and the reply
    is at most ``max_tokens`` long.  When calls in flight could still free money, a call waits for them.
    """

    max_calls: int | None = None
    max_cost: float | None = None
    price: Price | None = None
    sent: int = 0
    spent: float = 0.0
    held: float = 0.0
    flying: int = 0
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    def bound(self, call: Call) -> float:
        """The most that ``call`` can cost, in USD; 0 without a cost cap."""
        if self.max_cost is None:
            return 0.0
        price = self.price(call.model) if self.price else None
        if price is None:
            raise PlanError(
                f"--max-cost needs a price for {call.model}, and the price table has none; add it to the price file"
            )
        prompt = sum(len(m.text.encode("utf-8", "replace")) + 16 for m in call.messages)
        return (prompt * price[0] + call.sampling.max_tokens * price[1]) / 1e6

    async def reserve(self, call: Call) -> float:
        """Take the call's bound, waiting for calls in flight when only they stand in the way."""
        bound = self.bound(call)
        self._room()
        while self.max_cost is not None and self.spent + self.held + bound > self.max_cost:
            if not self.flying:
                raise BudgetSpent(
                    f"--max-cost {self.max_cost:.2f} USD: {self.spent:.4f} is spent and the next call may cost"
                    f" {bound:.4f}; what was paid for is kept, --resume goes on"
                )
            self._settled.clear()
            await self._settled.wait()
        self.take()
        self.held += bound
        self.flying += 1
        return bound

    def take(self, n: int = 1) -> None:
        """Count ``n`` requests that have no price here (label probabilities, somebody else's judge)."""
        self._room(n)
        self.sent += n

    def _room(self, n: int = 1) -> None:
        if self.max_calls is not None and self.sent + n > self.max_calls:
            raise BudgetSpent(f"--max-calls {self.max_calls} is reached; what was paid for is kept, --resume goes on")

    def settle(self, call: Call, bound: float, completion: Completion | None) -> None:
        """Book what the call really cost, or the bound when the provider told no usage."""
        self.held -= bound
        self.flying -= 1
        if self.max_cost is not None and completion is not None:
            price = self.price(call.model) if self.price else None
            usage = completion.usage
            known = usage.prompt + usage.completion > 0
            self.spent += (usage.prompt * price[0] + usage.completion * price[1]) / 1e6 if price and known else bound
        self._settled.set()
