"""A thin client for OpenAI-compatible chat endpoints.

Wire format: OpenAI API reference, "Create chat completion"
(https://developers.openai.com/api/reference/resources/chat).  Parameters that a model refuses are left out or renamed
by one adapted request each, remembered for the model, and noted in every completion.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from robustjudge.door import safe
from robustjudge.models.base import Settings
from robustjudge.models.chat import ChatModel, Events, counted, merged
from robustjudge.models.quirks import Quirks
from robustjudge.models.weigh import at_verdict, request
from robustjudge.nouns import Access, Call, Completion, LabelCall, Sampling, Status, TokenOdds, Usage, Weights

OPENAI = "https://api.openai.com/v1"

_NO_LOGPROBS = ("o1", "o3", "o4-mini", "gpt-5")
"""Starts of reasoning-model names for which the provider offers no log-probabilities."""


class HttpModel(ChatModel):
    """One model behind an OpenAI-compatible endpoint (``base_url`` of the settings, else ``base_url``).

    A key is required for OpenAI's own address only; other endpoints get one where the variable is set.
    """

    def __init__(
        self,
        name: str,
        model: str,
        settings: Settings | None = None,
        *,
        base_url: str = OPENAI,
        key_env: str = "OPENAI_API_KEY",
        on_event: Events | None = None,
    ) -> None:
        settings = settings or Settings()
        base = (settings.base_url or base_url).rstrip("/")
        own = base == OPENAI
        # the reference calls max_tokens deprecated, but many compatible servers know nothing else
        quirks = Quirks("max_completion_tokens" if own else "max_tokens")
        super().__init__(name, model, settings, base, "/chat/completions", key_env, own, quirks, on_event)
        offered = settings.logprobs
        if offered is None:
            offered = not model.rpartition("/")[2].startswith(_NO_LOGPROBS)
        self.access = Access.ODDS if offered else Access.SCORE

    async def weigh(self, calls: tuple[LabelCall, ...]) -> tuple[Weights, ...]:
        """Label log-probabilities at the verdict position of a generated reply; see :mod:`.weigh` for the rules."""
        return tuple(await asyncio.gather(*(self._weigh(c) for c in calls)))

    async def _weigh(self, ask: LabelCall) -> Weights:
        if self.access < Access.ODDS:
            return Weights(status="error", reason="no_logprobs")
        return at_verdict(await self.complete(request(ask)), ask.labels, ask.lead)

    # ----------------------------------------------------------------------- writing and reading

    def _headers(self) -> dict[str, str]:
        key = self._key()
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _request(self, call: Call) -> tuple[dict[str, Any], tuple[str, ...]]:
        fields, notes = self._quirks.apply({"model": self.model, **_sampling(call.sampling, self.effort)})
        if self._quirks.merge_system:
            fields["messages"] = merged(call.messages)
            if any(m.role == "system" for m in call.messages):
                notes = (*notes, "system_merged")
        else:
            fields["messages"] = [{"role": m.role, "content": m.text} for m in call.messages]
        if call.sampling.grammar:
            notes = (*notes, "grammar_not_applied")
        return fields, notes

    def _answer(self, data: dict[str, Any], seconds: float) -> Completion:
        choice = data["choices"][0]
        message = choice.get("message") or {"content": choice.get("text")}
        text, refusal = content_text(message.get("content")), content_text(message.get("refusal"))
        finish = choice.get("finish_reason") or "stop"
        status: Status = "ok"
        reason = ""
        if refusal:
            status, reason = "refused", "refusal"
        elif finish == "content_filter":
            status, reason = "refused", "content_filter"
        elif finish == "length":
            status, reason = "truncated", "length"
        elif finish == "error" or choice.get("error"):
            status, reason = "error", "provider_error"
        thought = message.get("reasoning_content") or message.get("reasoning")
        kept = safe(text)
        odds = choice.get("logprobs")
        return Completion(
            kept,
            status,
            finish,
            safe(refusal) if refusal else "",
            reason,
            safe(content_text(thought)) if thought else "",
            _usage(data.get("usage")),
            safe(str(data.get("model") or self.model)),
            _tokens(odds) if odds else (),
            seconds,
            1,
            ("text_mapped",) if kept is not text else (),
        )


def _sampling(sampling: Sampling, effort: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"temperature": sampling.temperature, "max_tokens": sampling.max_tokens}
    if sampling.top_p is not None:
        fields["top_p"] = sampling.top_p
    if sampling.seed is not None:
        fields["seed"] = sampling.seed
    if sampling.stop:
        fields["stop"] = list(sampling.stop)
    if sampling.top_logprobs:
        fields["logprobs"] = True
        fields["top_logprobs"] = sampling.top_logprobs
    if sampling.schema:
        schema = {"name": "verdict", "strict": True, "schema": json.loads(sampling.schema)}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    if sampling.effort or effort:
        fields["reasoning_effort"] = sampling.effort or effort
    return fields


def content_text(content: Any) -> str:
    """Message content as text: a string, null, or (some gateways) a list of typed parts."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list):
        return "".join(p if isinstance(p, str) else str(p.get("text") or "") for p in content)
    raise TypeError(f"content is a {type(content).__name__}")


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    prompt, completion = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    return Usage(
        counted(usage.get("prompt_tokens")),
        counted(usage.get("completion_tokens")),
        counted(prompt.get("cached_tokens")) if isinstance(prompt, dict) else 0,
        counted(completion.get("reasoning_tokens")) if isinstance(completion, dict) else 0,
    )


def _tokens(odds: Any) -> tuple[TokenOdds, ...]:
    """The log-probabilities; none where they cannot be read, since the answer itself stands."""
    try:
        return tuple(
            TokenOdds(
                safe(t["token"]),
                float(t["logprob"]),
                tuple((safe(a["token"]), float(a["logprob"])) for a in t.get("top_logprobs") or ()),
            )
            for t in odds.get("content") or ()
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return ()
