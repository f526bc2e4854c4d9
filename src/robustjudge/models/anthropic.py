"""A thin client for the Anthropic Messages API.

Wire format: Claude API reference, "Create a Message" (https://platform.claude.com/docs/en/api/messages/create),
"Stop reasons and fallback" and "Errors" of the same site.  The API has no log-probabilities and no seed.
"""

from __future__ import annotations

import json
from typing import Any

from robustjudge.door import safe
from robustjudge.models.base import Settings
from robustjudge.models.chat import ChatModel, Events, counted
from robustjudge.models.quirks import Quirks
from robustjudge.nouns import Call, Completion, Status, Usage

ANTHROPIC = "https://api.anthropic.com"
VERSION = "2023-06-01"

_STOPS: dict[str, tuple[Status, str, str]] = {
    "end_turn": ("ok", "stop", ""),
    "stop_sequence": ("ok", "stop", ""),
    "max_tokens": ("truncated", "length", "length"),
    "model_context_window_exceeded": ("truncated", "length", "context_window"),
    "refusal": ("refused", "refusal", "refusal"),
    "pause_turn": ("error", "pause_turn", "pause_turn"),
}
"""Stop reason -> status, finish and reason of the completion; any other stop is an answer that ended oddly."""


class AnthropicModel(ChatModel):
    """One model behind the Messages API (or a gateway that speaks it)."""

    def __init__(
        self, name: str, model: str, settings: Settings | None = None, *, on_event: Events | None = None
    ) -> None:
        settings = settings or Settings()
        base = (settings.base_url or ANTHROPIC).rstrip("/").removesuffix("/v1")
        own = base == ANTHROPIC
        super().__init__(name, model, settings, base, "/v1/messages", "ANTHROPIC_API_KEY", own, Quirks(), on_event)

    def _headers(self) -> dict[str, str]:
        key = self._key()
        return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}

    def _request(self, call: Call) -> tuple[dict[str, Any], tuple[str, ...]]:
        sampling = call.sampling
        fields: dict[str, Any] = {
            "model": self.model,
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
        }
        system = "\n\n".join(m.text for m in call.messages if m.role == "system")
        turns = [{"role": m.role, "content": m.text} for m in call.messages if m.role != "system"]
        if not turns:  # the API wants at least one user turn
            turns, system = [{"role": "user", "content": system}], ""
        if system:
            fields["system"] = system
        fields["messages"] = turns
        if sampling.top_p is not None:
            fields["top_p"] = sampling.top_p
        if sampling.stop:
            fields["stop_sequences"] = list(sampling.stop)
        output: dict[str, Any] = {}
        if sampling.effort or self.effort:
            output["effort"] = sampling.effort or self.effort
        if sampling.schema:
            output["format"] = {"type": "json_schema", "schema": json.loads(sampling.schema)}
        if output:
            fields["output_config"] = output
        fields, notes = self._quirks.apply(fields)
        if sampling.seed is not None:
            notes = (*notes, "seed_not_applied")
        if sampling.top_logprobs:
            notes = (*notes, "logprobs_not_applied")
        if sampling.grammar:
            notes = (*notes, "grammar_not_applied")
        return fields, notes

    def batch_line(self, key: str, call: Call) -> dict[str, Any]:
        """One request as a member of ``requests`` of the message batches API (Anthropic docs, "Batch processing")."""
        fields, _ = self._request(call)
        return {"custom_id": key, "params": fields}

    def from_batch(self, row: dict[str, Any]) -> Completion:
        """The completion in one result line (``{"custom_id", "result": {"type", "message"}}``)."""
        result = row.get("result") or {}
        if result.get("type") != "succeeded" or not isinstance(result.get("message"), dict):
            return Completion(status="error", reason=str(result.get("type") or "no_result"))
        return self._answer(result["message"], 0.0)

    def _answer(self, data: dict[str, Any], seconds: float) -> Completion:
        blocks = data["content"]
        text = "".join(b["text"] for b in blocks if b.get("type") == "text")
        reasoning = "".join(b.get("thinking") or "" for b in blocks if b.get("type") == "thinking")
        stop = data.get("stop_reason") or "end_turn"
        status, finish, reason = _STOPS.get(stop, ("ok", stop, ""))
        details = data.get("stop_details")
        refusal = ""
        if status == "refused":
            refusal = str((details or {}).get("explanation") or "") if isinstance(details, dict) else ""
            refusal = refusal or text or "refused"
        kept = safe(text)
        return Completion(
            kept,
            status,
            finish,
            safe(refusal),
            reason,
            safe(reasoning),
            _usage(data.get("usage")),
            safe(str(data.get("model") or self.model)),
            (),
            seconds,
            1,
            ("text_mapped",) if kept is not text else (),
        )


def _usage(usage: Any) -> Usage:
    """The API counts cached tokens apart; here ``prompt`` holds all of them, as the other provider counts."""
    if not isinstance(usage, dict):
        return Usage()
    read, written = counted(usage.get("cache_read_input_tokens")), counted(usage.get("cache_creation_input_tokens"))
    return Usage(counted(usage.get("input_tokens")) + read + written, counted(usage.get("output_tokens")), read)
