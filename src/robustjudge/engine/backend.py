"""The backend answers model asks: ledger first, then the model, each distinct call once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from robustjudge.asks import Complete, Gradient, Invoke, Measure, Sample, Spell, Surprise, Weigh
from robustjudge.engine.caps import Caps
from robustjudge.engine.events import Event, Listener
from robustjudge.engine.kernel import Pending
from robustjudge.engine.ledger import Ledger, pack, unpack
from robustjudge.engine.outbox import Outbox, Unsent
from robustjudge.engine.passes import Passes, float32
from robustjudge.errors import Incomplete, PlanError, RobustJudgeError
from robustjudge.nouns import Call, Case, Completion, Weights
from robustjudge.spec import digest
from robustjudge.steps import Ask

Rater = Callable[[str, Case, tuple[str, ...]], Any]
"""Evaluator name, case, texts to values (or a coroutine of them)."""


UNSEGMENTED = "segmentation_needs_a_local_model"
"""Reason of a call whose text must be cut into other tokens than its model would."""


class NotRecorded(RobustJudgeError):
    """A replay asked for something that the ledger does not hold; it becomes the cell's row."""


class Backend:
    """Answers the leaf asks of flights.

    ``models`` opens a model by name (once; they are kept).  ``rate`` answers :class:`Measure`.  Replies are looked up
    in the ledger under the content key joined with the endpoint's identity; equal calls in flight share one reply.
    """

    def __init__(
        self,
        models: Callable[[str], Any],
        ledger: Ledger,
        *,
        services: Mapping[str, Any] | None = None,
        rate: Rater | None = None,
        caps: Caps | None = None,
        outbox: Outbox | None = None,
        listener: Listener | None = None,
    ) -> None:
        self._open = models
        self._models: dict[str, Any] = {}
        self._ran: dict[str, dict[str, int]] = {}
        self._services = services or {}
        self._rate = rate
        self.ledger = ledger
        self.caps = caps
        self.outbox = outbox
        self._tell = listener or (lambda event: None)
        self._flights: dict[str, asyncio.Future[Completion]] = {}
        self.passes = Passes(self._scoring, ledger)
        self.stopping = False

    def model(self, name: str) -> Any:
        """The open model behind a name."""
        found = self._models.get(name)
        if found is None:
            found = self._models[name] = self._open(name)
            self._ran[name] = dict(getattr(found, "tokens_run", {}))
        return found

    def tokens_run(self) -> dict[str, dict[str, int]]:
        """By local model, the tokens that were run forward and backward through it since it was opened here."""
        now = {name: getattr(model, "tokens_run", {}) for name, model in self._models.items()}
        return {
            name: {k: n - self._ran[name].get(k, 0) for k, n in counts.items()}
            for name, counts in now.items()
            if counts
        }

    async def close(self) -> None:
        """Close every model that was opened."""
        for model in self._models.values():
            await model.close()
        for service in self._services.values():
            if hasattr(service, "close"):
                await service.close()

    # ------------------------------------------------------------------ what is known without waiting

    def stored(self, pending: Pending) -> Any:
        """The whole answer when the ledger holds all of it, else ``None``."""
        ask = pending.ask
        if not isinstance(ask, Complete):
            return None
        found = []
        for call, key in zip(ask.calls, pending.keys, strict=True):
            reply = self._held(self.key(call, key))
            if reply is None:
                return None
            found.append(reply)
        for call in ask.calls:
            self._tell(Event("asked", model=call.model, role=call.role))
            self._tell(Event("saved", model=call.model, role=call.role))
        return tuple(found)

    def _held(self, key: str) -> Completion | None:
        """The completion in the ledger; an entry of another shape is damage, and asked for again."""
        value = self.ledger.get(key)
        if value is None:
            return None
        try:
            return unpack(value)
        except (TypeError, ValueError, AttributeError):
            self.ledger.damage()
            return None

    def key(self, call: Call, content: str) -> str:
        """The ledger key: content and the endpoint that would answer."""
        model = self.model(call.model)
        return digest(content, getattr(model, "identity", model.name))

    # ------------------------------------------------------------------ answers

    async def answer(self, pending: Pending, cell: str = "") -> Any:
        """Answer one leaf ask."""
        ask = pending.ask
        match ask:
            case Complete(calls):
                if len(calls) == 1:
                    return (await self.complete(calls[0], pending.keys[0], cell),)
                return tuple(
                    await asyncio.gather(*[self.complete(c, k, cell) for c, k in zip(calls, pending.keys, strict=True)])
                )
            case Invoke():
                return await self._invoke(ask, pending.keys[0], cell)
            case Weigh(asked):
                return await self._weigh(asked, pending.keys[0], cell)
            case Measure(evaluator, case, texts):
                if self._rate is None:
                    return tuple(None for _ in texts)
                rated = self._rate(evaluator, case, texts)
                return await rated if asyncio.iscoroutine(rated) else rated
            case Surprise():
                return await self.passes.surprise(ask)
            case Spell(model, ids):
                return await self._able(model, "spell", ask)(ids)
            case Gradient(asked_calls):
                method = self._able(asked_calls[0].call.model, "gradient", ask)
                return await self._kept(pending.keys[0], asked_calls[0].call.model, method, ask)
            case Sample(model):
                return await self._kept(pending.keys[0], model, self._able(model, "sample", ask), ask)
            case _:
                raise PlanError(f"nothing answers {type(ask).__name__} here; an attack ask outside of a trial?")

    async def complete(self, call: Call, content: str, cell: str = "") -> Completion:
        """One reply: from the ledger, from an equal call in flight, or from the model."""
        key = self.key(call, content)
        self._tell(Event("asked", cell, call.model, role=call.role))
        held = self._held(key)
        if held is not None:
            self._tell(Event("saved", cell, call.model, role=call.role))
            return held
        flight = self._flights.get(key)
        if flight is not None:
            self._tell(Event("saved", cell, call.model, role=call.role))
            return await asyncio.shield(flight)
        if self.ledger.mode == "replay-only":
            self._tell(Event("fault", cell, call.model, "not_recorded"))
            return Completion(status="error", reason="not_recorded")
        if self.outbox is not None:
            self.outbox.add(key, call, self.model(call.model))
            raise Unsent
        flight = self._flights[key] = asyncio.get_running_loop().create_future()
        try:
            completion = await self._send(call, cell)
        except BaseException as fault:
            flight.set_exception(fault)
            flight.exception()  # mark as retrieved: waiters get it, nobody else complains
            raise
        else:
            flight.set_result(completion)
            # An infrastructure fault is not a reply: it is a row of this run, and asked again by the next.
            if completion.status != "error" or completion.reason == "context_overflow":
                self.ledger.put(key, call.model, call.replica, pack(completion))
            return completion
        finally:
            del self._flights[key]

    async def _send(self, call: Call, cell: str) -> Completion:
        if self.stopping:
            raise Incomplete("the run is stopping")
        if self._unsegmented(call):
            return Completion(status="error", reason=UNSEGMENTED, model=call.model)
        bound = await self.caps.reserve(call) if self.caps else 0.0
        completion: Completion | None = None
        self._tell(Event("sent", cell, call.model, role=call.role))
        try:
            completion = await self.model(call.model).complete(call)
        finally:
            if self.caps:
                self.caps.settle(call, bound, completion)
        if completion.status == "error":
            self._tell(Event("fault", cell, call.model, completion.reason))
        self._tell(Event("answered", cell, call.model, completion=completion, role=call.role))
        return completion

    async def _invoke(self, ask: Invoke, content: str, cell: str) -> Completion:
        service = self._services.get(ask.service)
        if service is None:
            raise PlanError(
                f"no service named {ask.service!r} is configured; known: {', '.join(self._services) or 'none'}"
            )
        key = digest(content, getattr(service, "identity", ask.service))
        self._tell(Event("asked", cell, ask.service, role="judge"))
        held = self._held(key)
        if held is not None:
            self._tell(Event("saved", cell, ask.service, role="judge"))
            return held
        if key in self._flights:
            self._tell(Event("saved", cell, ask.service, role="judge"))
            return await asyncio.shield(self._flights[key])
        if self.ledger.mode == "replay-only":
            return Completion(status="error", reason="not_recorded")
        flight = self._flights[key] = asyncio.get_running_loop().create_future()
        try:
            completion = await self._served(service, ask, cell)
        except BaseException as fault:
            flight.set_exception(fault)
            flight.exception()
            raise
        else:
            flight.set_result(completion)
            if completion.status != "error":
                self.ledger.put(key, ask.service, ask.slate.replica, pack(completion))
            return completion
        finally:
            del self._flights[key]

    async def _served(self, service: Any, ask: Invoke, cell: str) -> Completion:
        self._take()
        self._live(ask)
        self._tell(Event("sent", cell, ask.service, role="judge"))
        completion: Completion = await service.invoke(ask)
        self._tell(Event("answered", cell, ask.service, completion=completion, role="judge"))
        if completion.status == "error":
            self._tell(Event("fault", cell, ask.service, completion.reason))
        return completion

    def _take(self, n: int = 1) -> None:
        """Count ``n`` requests against the cap on calls; nothing is sent once the run is stopping."""
        if self.stopping:
            raise Incomplete("the run is stopping")
        if self.caps:
            self.caps.take(n)

    async def _weigh(self, asked: tuple[Any, ...], content: str, cell: str) -> tuple[Weights, ...]:
        """Label probabilities, each call's from its own model (a panel has several)."""
        names = dict.fromkeys(c.call.model for c in asked)
        if len(names) < 2:
            return await self._weighed(asked, content, cell)
        places = {name: [i for i, c in enumerate(asked) if c.call.model == name] for name in names}
        parts = [self._weighed(tuple(asked[i] for i in at), digest(content, name), cell) for name, at in places.items()]
        found = dict(zip(chain(*places.values()), chain(*await asyncio.gather(*parts)), strict=True))
        return tuple(found[i] for i in range(len(asked)))

    async def _weighed(self, asked: tuple[Any, ...], content: str, cell: str) -> tuple[Weights, ...]:
        model = self.model(asked[0].call.model)
        key = digest(content, getattr(model, "identity", model.name))
        value = self.ledger.get(key)
        for c in asked:
            self._tell(Event("asked", cell, c.call.model, role=c.call.role))
        if value is not None:
            for c in asked:
                self._tell(Event("saved", cell, c.call.model, role=c.call.role))
            return tuple(Weights(tuple(lp), tuple(fl), st, why) for lp, fl, st, why in value)
        if self.ledger.mode == "replay-only":
            return tuple(Weights(status="error", reason="not_recorded") for _ in asked)
        self._take(len(asked))
        self._live(Weigh(asked))
        for c in asked:
            self._tell(Event("sent", cell, c.call.model, role=c.call.role))
        if any(self._unsegmented(a.call) for a in asked):
            return tuple(Weights(status="error", reason=UNSEGMENTED) for _ in asked)
        raw = await self._able(asked[0].call.model, "weigh", Weigh(asked))(asked)
        weights = tuple(Weights(tuple(float32(x) for x in w.logprobs), w.floored, w.status, w.reason) for w in raw)
        if all(w.status != "error" for w in weights):
            self.ledger.put(
                key,
                asked[0].call.model,
                asked[0].call.replica,
                [[list(w.logprobs), list(w.floored), w.status, w.reason] for w in weights],
            )
        return weights

    def _scoring(self, ask: Surprise) -> tuple[str, Any]:
        """Who scores the texts of ``ask``: the model's identity and its method."""
        model = self.model(ask.model)
        return str(getattr(model, "identity", model.name)), self._able(ask.model, "surprise", ask)

    async def _kept(self, content: str, name: str, method: Callable[[Any], Any], ask: Ask[Any]) -> Any:
        """Answers made of integers, ledgered whole."""
        model = self.model(name)
        key = digest(content, getattr(model, "identity", model.name))
        value = self.ledger.get(key)
        if value is not None:
            return tuple(tuple(row) for row in value)
        if self.ledger.mode == "replay-only":
            raise NotRecorded(f"{type(ask).__name__} of {name} is not in the ledger, and this run may only replay it")
        rows = await method(ask)
        self.ledger.put(key, name, type(ask).__name__, [list(row) for row in rows])
        return tuple(tuple(row) for row in rows)

    def _live(self, ask: Ask[Any]) -> None:
        """Refuse, in a batch run, what no batch service answers."""
        if self.outbox is not None:
            raise PlanError(
                f"{type(ask).__name__} cannot wait for a provider batch; leave out --batch, or what asks it"
            )

    def _unsegmented(self, call: Call) -> bool:
        """The call wants a segmentation that its model cannot be given: the text would go out as if it were undefended."""
        cut = any(p.cuts for m in call.messages for p in m.parts)
        return cut and not getattr(self.model(call.model), "segments", False)

    def _able(self, name: str, method: str, ask: Ask[Any]) -> Callable[..., Any]:
        model = self.model(name)
        found: Callable[..., Any] | None = getattr(model, method, None)
        if found is None:
            hint = "choose a model that can"
            if name.startswith("llamacpp/"):  # it tells log-probabilities of what it writes, not of what it reads
                hint = f"the same file can, as hf/{name.partition('/')[2]} (pip install 'robustjudge[whitebox]')"
            raise PlanError(f"{name} cannot answer {type(ask).__name__} (it has no {method!r}); {hint}")
        return found
