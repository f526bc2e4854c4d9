"""A local GGUF model through llama.cpp in this process: ``llamacpp/smollm2`` or ``llamacpp//path/to/model.gguf``."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

from robustjudge import door
from robustjudge.errors import ConfigError, UnknownName
from robustjudge.models import held, trie
from robustjudge.models.control import joint, jointed, neutral
from robustjudge.models.gguf import header
from robustjudge.models.llama_server import EngineError, LlamaServer
from robustjudge.models.owner import Owner
from robustjudge.models.pull import MODELS, model_path
from robustjudge.nouns import Access, Call, Completion, LabelCall, Readout, Sampling, TokenOdds, Usage, Weights
from robustjudge.spec import digest

R = TypeVar("R")
PULLED = tuple(name for name, packed in MODELS.items() if packed.model.endswith(".gguf"))
"""Names that stand for a pulled model."""
CONTEXT = 4096
"""Context in tokens unless told otherwise."""
ROLES = frozenset({"system", "user", "assistant"})


class LlamaCpp:
    """One GGUF model on this machine's CPU, loaded at its first call.

    ``model`` is one of :data:`PULLED` or the path of a GGUF file.  ``context`` in tokens
    is capped by what the model was trained on; a prompt that does not leave room for ``max_tokens`` is answered with
    status ``error``, reason ``context_overflow``, before anything is computed.  Calls run singly on one thread with
    ``threads`` (default: one less than the processors, at least 1); ``concurrency`` is how many may wait, so that
    those with a common prefix can be put side by side.

    Control tokens in untrusted parts are made plain text (:mod:`robustjudge.models.control`; the completion is noted
    ``control_tokens_escaped``).  Draws at temperature > 0 are seeded by prompt, seed and replica name: repeats differ
    between replicas and a replay is equal.  Log-probabilities are those of the unconstrained model, with or
    without a grammar.  A call held to the verdict line of its labels is answered with the likeliest of them, weighed
    whole (:mod:`robustjudge.models.held`), so that the reply and :meth:`weigh` never disagree.
    """

    access = Access.ODDS
    segments = True

    def __init__(self, model: str, *, context: int = CONTEXT, threads: int = 0) -> None:
        self.name = f"llamacpp/{model}"
        self.path = model_path(model) if model in PULLED else Path(model).expanduser()
        if not self.path.is_file():
            if not model.endswith(".gguf") and "/" not in model:
                raise UnknownName("local model (or path of a .gguf file)", model, PULLED)
            raise ConfigError(f"llamacpp/{model}: there is no file {self.path}")
        self._header = header(self.path)
        if not self._header.chat_template:
            raise ConfigError(f"{self.path} has no chat template; how it wants to be asked is not guessed")
        self.context: int | None = min(context, self._header.context or context)
        self.concurrency = 8
        self._threads = threads or max(1, _processors() - 1)
        self._owner: Owner[LlamaServer] = Owner(self._load, self.name)

    @cached_property
    def identity(self) -> str:
        """Name, context and the file's size, start and end: what the ledger tells models apart by."""
        with self.path.open("rb") as file:
            marks = blake2b(file.read(1 << 20))
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - (1 << 20)))
            marks.update(file.read())
        return digest(self.name, marks.hexdigest(), str(size), str(self.context))

    def _load(self) -> LlamaServer:
        size = self.context or CONTEXT
        return LlamaServer(self.path, context=size, threads=self._threads, vocabulary=self._header.vocabulary)

    # ------------------------------------------------------------------ the provider face

    async def complete(self, call: Call) -> Completion:
        """One reply; every failure is a status."""
        fault = _refused(call.sampling, call)
        if fault:
            return Completion(status="error", reason=fault, model=self.name)
        turns = self.turns(call)
        try:
            line = held.line_of(call)
            if line is not None:
                return await self._do(turns, lambda server: self._held(server, call, line, turns))
            return await self._do(turns, lambda server: self._complete(server, call, turns))
        except EngineError as refused:
            return Completion(status="error", reason=refused.reason, notes=(str(refused)[:200],), model=self.name)

    async def weigh(self, calls: tuple[LabelCall, ...]) -> tuple[Weights, ...]:
        """Log-probabilities of labels after each prompt and its forced lead, scored along a trie of their tokens;
        exact (never floored), from the unconstrained distribution, before renormalising."""
        return tuple(await asyncio.gather(*[self._weigh_one(c) for c in calls]))

    def count_tokens(self, text: str) -> int:
        """Tokens of plain text; waits for the call that is running."""
        return self._owner.submit("", lambda server: server.count(door.safe(text))).result()

    async def close(self) -> None:
        """Let the running call end and free the model."""
        await asyncio.to_thread(self._owner.close)

    # ------------------------------------------------------------------ on the owner's thread

    def turns(self, call: Call) -> tuple[tuple[str, str], ...]:
        """(role, text) of the call's messages as the engine gets them, :func:`joint` at every forced token border."""
        mark = joint(call)
        return tuple((m.role, neutral(jointed(m, mark), self._header.control)) for m in call.messages)

    async def _do(self, turns: tuple[tuple[str, str], ...], work: Callable[[LlamaServer], R]) -> R:
        if self._owner.closed:
            raise EngineError("closed", "the model was closed")
        return await asyncio.wrap_future(self._owner.submit("\x1e".join(t for _, t in turns), work))

    def _complete(self, server: LlamaServer, call: Call, turns: tuple[tuple[str, str], ...]) -> Completion:
        prompt = server.render(turns)
        mark = joint(call)
        ids = self._fitting(server, prompt, call.sampling.max_tokens, mark)
        started = time.perf_counter()
        answer = server.complete(ids, self._options(server, call, prompt))
        choice, usage = answer["choices"][0], answer["usage"]
        cut = choice["finish_reason"] == "length"
        return Completion(
            text=door.safe(choice["text"]),
            status="truncated" if cut else "ok",
            finish="length" if cut else "stop",
            usage=Usage(
                usage["prompt_tokens"],
                usage["completion_tokens"],
                (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0),
            ),
            model=self.name,
            tokens=_token_odds(choice.get("logprobs"), call.sampling.top_logprobs),
            latency=time.perf_counter() - started,
            notes=_escaped(call, turns),
        )

    def _held(self, server: LlamaServer, call: Call, line: Readout, turns: tuple[tuple[str, str], ...]) -> Completion:
        started = time.perf_counter()
        prompt = server.render(turns)
        logprobs, length = self._labels(server, LabelCall(call, line.labels, line.lead), prompt)
        reply = held.reply(call, line, logprobs, prompt, self.name)
        return replace(
            reply,
            usage=Usage(length, server.count(reply.text)),
            latency=time.perf_counter() - started,
            notes=_escaped(call, turns),
        )

    def _options(self, server: LlamaServer, call: Call, prompt: str) -> dict[str, Any]:
        s = call.sampling
        grammar = s.grammar or (server.grammar_of(s.schema) if s.schema else "")
        seed = int(digest(prompt, str(s.seed), call.replica)[:8], 16) & 0x7FFFFFFF
        plain = {"top_k": 0, "min_p": 0.0, "typical_p": 1.0, "repeat_penalty": 1.0}  # the model's own distribution
        options: dict[str, Any] = {
            **plain,
            "n_predict": s.max_tokens,
            "temperature": s.temperature,
            "top_p": 1.0 if s.top_p is None else s.top_p,
            "seed": seed,
        }
        if s.stop:
            options["stop"] = list(s.stop)
        if s.top_logprobs:
            options["n_probs"] = s.top_logprobs
        if grammar:
            options["grammar"] = grammar
        return options

    def _fitting(self, server: LlamaServer, prompt: str, room: int, mark: str = "") -> tuple[int, ...]:
        """The prompt's ids if ``room`` more tokens fit into the context."""
        ids = server.tokens(prompt, mark)
        if self.context is not None and len(ids) + room > self.context:
            raise EngineError(
                "context_overflow",
                f"context overflow: {len(ids)} prompt tokens and {room} for the reply exceed {self.context}",
            )
        return ids

    async def _weigh_one(self, asked: LabelCall) -> Weights:
        fault = _refused(asked.call.sampling, asked.call) or ("" if asked.labels else "no_labels")
        if fault:
            return Weights(status="error", reason=fault)
        turns = self.turns(asked.call)
        try:
            logprobs, _ = await self._do(turns, lambda server: self._labels(server, asked, server.render(turns)))
        except EngineError as refused:
            return Weights(status="error", reason=refused.reason)
        return Weights(logprobs, (False,) * len(logprobs))

    def _labels(self, server: LlamaServer, asked: LabelCall, prompt: str) -> tuple[tuple[float, ...], int]:
        """Log-probability of each label after the rendered prompt and the lead; the tokens of both."""
        prompt += asked.lead
        mark = joint(asked.call)
        lead = self._fitting(server, prompt, 8, mark)
        labels = [server.tokens(prompt + label, mark) for label in asked.labels]
        base, tails = trie.split(labels, lead)
        return trie.read(tails, lambda node: server.next(base + node, trie.wanted(tails, node))), len(lead)


def _processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _refused(sampling: Sampling, call: Call) -> str:
    """Why a call is not sent at all, or the empty string."""
    if not call.messages or not any(m.text for m in call.messages):
        return "empty_messages"
    if sampling.max_tokens < 1:
        return "max_tokens_below_1"
    if any(m.role not in ROLES for m in call.messages):
        return "unknown_role"
    return ""


def _escaped(call: Call, turns: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """The note that untrusted control tokens were made plain text, where they were."""
    mark = joint(call)
    changed = any(
        (text.replace(mark, "") if mark else text) != door.safe(m.text)
        for (_, text), m in zip(turns, call.messages, strict=True)
    )
    return ("control_tokens_escaped",) if changed else ()


def _token_odds(logprobs: Any, top: int) -> tuple[TokenOdds, ...]:
    if not logprobs:
        return ()
    return tuple(
        TokenOdds(
            door.safe(entry["token"]),
            float(entry["logprob"]),
            tuple((door.safe(x["token"]), float(x["logprob"])) for x in entry["top_logprobs"][:top]),
        )
        for entry in logprobs["content"]
    )
