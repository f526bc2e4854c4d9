"""A local model in torch, with gradients: ``hf//path/to/folder``, ``hf//path/to/model.gguf`` or ``hf/smollm2``."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from robustjudge import door
from robustjudge.asks import Gradient, Sample
from robustjudge.errors import ConfigError
from robustjudge.loading import LOADING
from robustjudge.models import held
from robustjudge.models.owner import Owner
from robustjudge.models.pull import MODELS, model_path
from robustjudge.nouns import Access, Call, Completion, LabelCall, Surprisal, Weights
from robustjudge.spec import digest

if TYPE_CHECKING:
    from robustjudge.models.whitebox.desk import Desk
    from robustjudge.models.whitebox.engine import Engine

R = TypeVar("R")
ROLES = frozenset({"system", "user", "assistant"})
DTYPES = ("float32", "float64")


class Transformers:
    """One Hugging Face causal language model on this machine's CPU, loaded at its first call.

    ``model`` is a folder, a GGUF file (dequantised; its copy is kept in the cache), or a name of
    :data:`~robustjudge.models.pull.MODELS`.  Access is GRADIENT: it completes, weighs labels, tells surprisals, spells and
    samples tokens, and ranks token swaps by the gradient.  ``dtype``: ``float32`` or ``float64``.  ``context`` in tokens
    is capped by what the model was trained on; a prompt that does not fit is answered with status ``error``, reason
    ``context_overflow``, before anything is computed.  ``threads`` defaults to one less than the processors.
    ``share`` off runs every sequence whole, by the model's own attention (for comparison).

    Forced token borders (``Text.cuts``) are kept where the tokenizer can be cut; else such a call is an ``error``, reason
    ``segmentation_unsupported``.

    The dequantised model and the same file under ``llamacpp/`` are two judges: their agreement is to be measured.
    Raises :class:`ConfigError` for a path without a model or without a chat template.
    """

    access = Access.GRADIENT
    segments = True

    def __init__(
        self, model: str, *, dtype: str = "float32", context: int = 0, threads: int = 0, share: bool = True
    ) -> None:
        from robustjudge.models.whitebox.load import facts

        self.name = f"hf/{model}"
        if find_spec("torch") is None or find_spec("transformers") is None:
            raise ConfigError(f"{self.name} needs torch and transformers; pip install 'robustjudge[whitebox]'")
        if dtype not in DTYPES:
            raise ConfigError(f"dtype is one of {', '.join(DTYPES)}, not {dtype!r}")
        self.path = model_path(model) if model in MODELS else Path(model).expanduser()
        if not self.path.exists():
            raise ConfigError(f"{self.name}: there is no file or folder {self.path}")
        found = facts(self.path)
        if not found.templated:
            raise ConfigError(f"{self.path} has no chat template; how it wants to be asked is not guessed")
        limits = [n for n in (context, found.context) if n]
        self.context: int | None = min(limits) if limits else None
        self.concurrency = 8
        self._dtype, self._share = dtype, share
        self._threads = threads or max(1, _processors() - 1)
        self._owner: Owner[Desk] = Owner(self._load, self.name)
        self._engine: Engine | None = None

    @cached_property
    def identity(self) -> str:
        """Name, precision, context and marks of the files: what the ledger tells models apart by."""
        from robustjudge.models.whitebox.load import fingerprint

        return digest(self.name, self._dtype, str(self.context), fingerprint(self.path))

    def _load(self) -> Desk:
        import torch

        from robustjudge.models.whitebox.desk import Desk
        from robustjudge.models.whitebox.engine import Engine
        from robustjudge.models.whitebox.load import opened
        from robustjudge.models.whitebox.tokens import Tokens

        torch.set_num_threads(self._threads)
        with LOADING:
            model, tokenizer = opened(self.path, self._dtype)
        self._engine = Engine(model, share=self._share)
        return Desk(Tokens(tokenizer, self.name), self._engine, self.context)

    @property
    def tokens_run(self) -> dict[str, int]:
        """Tokens run forward and backward through the model in this process: what searching on it cost."""
        engine = self._engine
        return {"forward": engine.forwarded, "backward": engine.differentiated} if engine is not None else {}

    # ------------------------------------------------------------------ the provider face

    async def complete(self, call: Call) -> Completion:
        """One reply, greedy at temperature 0, else drawn by prompt, seed and replica name; every failure is a status.

        Of grammars only the verdict line of the call's own labels is kept (:mod:`robustjudge.models.held`); any other
        is an ``error``, reason ``grammar_unsupported``.
        """
        line = held.line_of(call)
        told = call.sampling.schema or (call.sampling.grammar and line is None)
        fault = self._refused(call) or ("grammar_unsupported" if told else "")
        if fault:
            return Completion(status="error", reason=fault, model=self.name)
        started = time.perf_counter()
        reply = await self._do(
            _key(call),
            lambda desk: desk.complete(call, self.name) if line is None else desk.hold(call, line, self.name),
        )
        return replace(reply, latency=time.perf_counter() - started)

    async def weigh(self, calls: tuple[LabelCall, ...]) -> tuple[Weights, ...]:
        """Log-probabilities of labels after each prompt and its forced lead, along a trie of their tokens, exact.

        Calls are scored together, whatever they share once.  A call whose ``suffix`` is not found at the end of its
        candidate has status ``unparsed``, reason ``illegal_suffix``.
        """
        faults = [self._refused(c.call) or ("" if c.labels else "no_labels") for c in calls]
        good = [c for c, fault in zip(calls, faults, strict=True) if not fault]
        found = iter(await self._do(_key(good[0].call), lambda desk: desk.weigh(good)) if good else ())
        return tuple(Weights(status="error", reason=fault) if fault else next(found) for fault in faults)

    async def surprise(self, texts: tuple[str, ...], context: str = "") -> tuple[Surprisal, ...]:
        """Natural-log probability of every token of each text, read as plain text after ``context``."""
        return tuple(await self._do(context, lambda desk: desk.surprise(texts, context)))

    async def spell(self, ids: tuple[tuple[int, ...], ...]) -> tuple[str, ...]:
        """The text of each id sequence behind a space; empty for one that is encoded otherwise there."""
        return await self._do("", lambda desk: desk.tokens.spell(ids))

    async def gradient(self, ask: Gradient) -> tuple[tuple[int, ...], ...]:
        """Per position of the suffix the ``k`` legal ids of greatest first-order gain in the summed margin."""
        return await self._do(_key(ask.calls[0].call), lambda desk: desk.gradient(ask))

    async def sample(self, ask: Sample) -> tuple[tuple[int, ...], ...]:
        """``n`` different legal next tokens after each chat, drawn by its text and the seed, without replacement."""
        return await self._do("", lambda desk: desk.sample(ask.prefixes, ask.n, ask.seed))

    def count_tokens(self, text: str) -> int:
        """Tokens of plain text; waits for the call that is running."""
        return self._owner.submit("", lambda desk: len(desk.tokens.plain(door.safe(text)))).result()

    async def close(self) -> None:
        """Let the running call end and free the model."""
        await asyncio.to_thread(self._owner.close)

    def _refused(self, call: Call) -> str:
        return "closed" if self._owner.closed else _refused(call)

    async def _do(self, key: str, work: Callable[[Desk], R]) -> R:
        return await asyncio.wrap_future(self._owner.submit(key, work))


def _key(call: Call) -> str:
    return "\x1e".join(m.text for m in call.messages)


def _refused(call: Call) -> str:
    """Why a call is not run at all, or the empty string."""
    if not call.messages or not any(m.text for m in call.messages):
        return "empty_messages"
    if call.sampling.max_tokens < 1:
        return "max_tokens_below_1"
    return "unknown_role" if any(m.role not in ROLES for m in call.messages) else ""


def _processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
