"""The llama.cpp engine in this process (xllamacpp): tokens, chat template and completions of one GGUF file.

Used from its owner's thread only.  The engine's loopback endpoint, which alone tells tokens and renders the chat
template, is closed to others by a random key.
"""

from __future__ import annotations

import http.client
import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from robustjudge.errors import ConfigError

TOP = 1000
"""Alternatives asked for first; reading the whole vocabulary costs some 30 times as much."""


class EngineError(Exception):
    """The engine refused a request: ``reason`` is short and stable, the message is the engine's own."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class LlamaServer:
    """One loaded model with one slot and a prompt cache of ``cache_mib`` MiB for prefixes of earlier prompts."""

    def __init__(self, path: Path, *, context: int, threads: int, vocabulary: int, cache_mib: int = 256) -> None:
        try:
            import xllamacpp
        except ImportError:
            raise ConfigError(
                "llamacpp/ models need the package xllamacpp, which is not installed; pip install 'robustjudge[local]'"
            ) from None
        self._key = secrets.token_hex(16)
        self._vocabulary = vocabulary
        self._schema_to_grammar = xllamacpp.json_schema_to_grammar
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx, params.n_parallel = context, 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.n_threads_http = 1
        params.cache_ram_mib = cache_mib
        params.warmup, params.ui, params.verbosity, params.ctx_shift = False, False, -1, False
        params.api_keys = [self._key]
        try:
            self._server: Any = xllamacpp.Server(params)
        except RuntimeError as fault:
            raise ConfigError(f"llama.cpp cannot load {path}: {fault}") from None
        self._address = str(self._server.listening_address).partition("://")[2]
        self._line: http.client.HTTPConnection | None = None

    # ------------------------------------------------------------------ text and tokens

    def tokens(self, text: str, joint: str = "") -> tuple[int, ...]:
        """The ids of a whole prompt, its control tokens included; no token goes over a ``joint``, which is no text."""
        ids: list[int] = []
        for i, part in enumerate(text.split(joint) if joint else [text]):
            if part or not i:
                asked = {"content": part, "add_special": not i, "parse_special": True}
                ids += self._post("/tokenize", asked)["tokens"]
        return tuple(ids)

    def count(self, text: str) -> int:
        """Tokens of plain text."""
        return len(self._post("/tokenize", {"content": text, "add_special": False, "parse_special": False})["tokens"])

    def render(self, turns: Sequence[tuple[str, str]]) -> str:
        """The prompt of (role, text) turns by the model's own chat template; a closing assistant turn stays open."""
        messages = [{"role": role, "content": text} for role, text in turns]
        return str(self._post("/apply-template", {"messages": messages})["prompt"])

    def grammar_of(self, schema: str) -> str:
        """The GBNF grammar of a JSON schema; :class:`EngineError` ``bad_schema``."""
        try:
            return str(self._schema_to_grammar(json.loads(schema)))
        except (ValueError, RuntimeError) as fault:
            raise EngineError("bad_schema", str(fault)) from None

    # ------------------------------------------------------------------ completions

    def complete(self, ids: tuple[int, ...], options: Mapping[str, Any]) -> dict[str, Any]:
        """The engine's answer to a prompt of ids; the prefix shared with earlier prompts is not computed again."""
        try:
            answer: dict[str, Any] = self._server.handle_completions(
                {"prompt": list(ids), "cache_prompt": True, **options}
            )
        except (RuntimeError, ValueError) as fault:
            raise EngineError("engine", str(fault)) from None
        if "error" in answer:
            raise _refusal(answer["error"])
        return answer

    def next(self, ids: tuple[int, ...], wanted: frozenset[int]) -> dict[int, float]:
        """Natural-log probability of each wanted token after ``ids``, from the model's own distribution."""
        lead = [[token, 1000.0] for token in sorted(wanted)]
        for top in (TOP, self._vocabulary):
            # a chosen token that is half a character would not be listed at all, so one of the wanted is chosen; the
            # probabilities told are those before this bias
            asked = {"n_predict": 1, "temperature": 0.0, "n_probs": top, "logit_bias": lead}
            told = self.complete(ids, asked)["choices"][0]["logprobs"]
            listed = told["content"][0]["top_logprobs"] if told else ()
            found = {entry["id"]: float(entry["logprob"]) for entry in listed if entry["id"] in wanted}
            if len(found) == len(wanted):
                return found
        raise EngineError("engine", "the engine left tokens of its own vocabulary out of the list")

    def close(self) -> None:
        """Stop the engine and free its memory."""
        if self._line is not None:
            self._line.close()
        self._line = self._server = None

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        raw = json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}
        for again in (True, False):
            line = self._line = self._line or http.client.HTTPConnection(self._address, timeout=60)
            try:
                line.request("POST", path, raw, headers)
                response = line.getresponse()
                answer = json.loads(response.read())
            except (http.client.HTTPException, OSError) as fault:
                line.close()
                self._line = None
                if not again:
                    raise EngineError("engine", f"{path}: {fault}") from None
                continue
            if response.status != 200:
                raise _refusal(answer.get("error", {}))
            return answer
        raise AssertionError("unreachable")


def _refusal(error: Mapping[str, Any]) -> EngineError:
    message = str(error.get("message", "no message"))
    if error.get("type") == "exceed_context_size_error":
        return EngineError("context_overflow", message)
    return EngineError("bad_grammar" if "grammar" in message else "engine", message)
