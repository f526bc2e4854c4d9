"""One live call to a model: does the name, the key, the address and the reply's form work together?"""

from __future__ import annotations

from dataclasses import dataclass

from robustjudge.errors import QuotaExhausted, RobustJudgeError
from robustjudge.models.base import Provider, Settings
from robustjudge.models.families import family_of
from robustjudge.models.prices import PriceTable, table
from robustjudge.models.registry import is_alias, open_model
from robustjudge.nouns import Call, Completion, Sampling, message

PROMPT = "Reply with the single word: ready"

_HELP = {
    "transport": "nothing answered: check base_url, proxy and network",
    "timeout": "no answer in time: check base_url and proxy, or raise timeout",
    "certificate": "the server's certificate is not trusted: name your authority's PEM file as ca",
    "redirect": "the address redirects elsewhere and the key is not sent there: use the final address as base_url",
    "http_401": "the key was refused: check the environment variable that holds it",
    "http_403": "the key may not use this model",
    "http_404": "no such address or model: check base_url and the model name",
    "http_429": "rate limited: set rpm or tpm, or wait",
    "quota": "the account has no quota left",
    "bad_body": "the reply is no chat completion: is this the API address, and not a web page?",
    "empty_body": "the reply was empty: is this the API address?",
}


@dataclass(frozen=True, slots=True)
class LiveCheck:
    """The outcome of one live call: ``ok``, the completion, and lines for people."""

    ok: bool
    completion: Completion
    lines: tuple[str, ...]


async def live(name: str, settings: Settings | None = None, prices: PriceTable | None = None) -> LiveCheck:
    """Send one short prompt to ``name`` and report; never raises for what the endpoint or the settings do."""
    settings = settings or Settings()
    try:
        model = open_model(name, settings)
        try:
            call = Call(name, (message("user", PROMPT),), Sampling(max_tokens=16), "clean/0", "doctor")
            completion = await model.complete(call)
        finally:
            await model.close()
    except QuotaExhausted as fault:
        completion = Completion(status="error", finish="", reason="quota")
        return LiveCheck(False, completion, (f"{name}: {fault}",))
    except RobustJudgeError as fault:
        completion = Completion(status="error", finish="", reason="configuration")
        return LiveCheck(False, completion, (f"{name}: {fault}",))
    return LiveCheck(
        completion.status in ("ok", "truncated"), completion, _lines(name, model, completion, settings, prices)
    )


def _lines(
    name: str, model: Provider, completion: Completion, settings: Settings, prices: PriceTable | None
) -> tuple[str, ...]:
    endpoint = getattr(model, "endpoint", "this machine")
    lines = [f"{name} at {endpoint}: {completion.status}" + (f" ({completion.reason})" if completion.reason else "")]
    if completion.reason in _HELP:
        lines.append(_HELP[completion.reason])
    if completion.status != "error":
        usage = completion.usage
        known = prices or table()
        price = (known.with_price(name, settings.price) if settings.price else known).cost(usage, name)
        lines.append(
            f"resolved model {completion.model or 'not told'}, {completion.latency:.2f} s, {usage.prompt} + "
            f"{usage.completion} tokens, " + (f"{price:.6f} USD" if price is not None else "price unknown")
        )
        lines.append(f"family {family_of(name, settings.family)}")
    lines.extend(completion.notes)
    if is_alias(name):
        lines.append(f"{name} is an alias: the provider may change the model behind it; name a dated version")
    return tuple(lines)
