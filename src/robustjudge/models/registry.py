"""Model names and the classes behind them; back ends are imported when one is opened, never before."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from urllib.parse import urldefrag

from robustjudge.errors import ConfigError, UnknownName
from robustjudge.models.base import Provider, Settings, bare

GROUP = "robustjudge.models"
"""Entry points of third parties: provider name -> ``(ModelName, Settings) -> Provider``."""

LOCAL = frozenset({"llamacpp", "hf", "scripted", "recorded"})
_REMOTE = frozenset({"openai", "anthropic"})
BUILT_IN = tuple(sorted(LOCAL | _REMOTE | {"http", "https"}))


@dataclass(frozen=True, slots=True)
class ModelName:
    """A parsed name: ``provider``, ``model``, and the base URL for ``http(s)://host/v1#model``."""

    provider: str
    model: str
    base_url: str = ""

    def __str__(self) -> str:
        return f"{bare(self.base_url)}#{self.model}" if self.base_url else f"{self.provider}/{self.model}"


def parse_name(name: str) -> ModelName:
    """Read ``provider/model``; ``provider:model`` and ``provider:/model`` mean the same.

    For models that are files (``llamacpp``, ``hf``, ``recorded``) a slash after the separator belongs to the path:
    ``llamacpp//models/a.gguf`` and ``llamacpp:/models/a.gguf`` are absolute.
    """
    if name.startswith(("http://", "https://")):
        base, model = urldefrag(name)
        if not model:
            raise ConfigError(f"{name!r} names no model; write {name.rstrip('/')}#MODEL")
        return ModelName(name.partition(":")[0], model, base)
    match = re.match(r"([A-Za-z][A-Za-z0-9_.-]*)([/:])(.*)\Z", name, re.DOTALL)
    if match is None or not match[3].strip("/"):
        raise ConfigError(
            f"{name!r} is no model name; expected provider/model, as in openai/gpt-4o-2024-08-06 or llamacpp/smollm2"
        )
    provider, separator, model = match[1].lower(), match[2], match[3]
    if separator == ":" and provider not in LOCAL:
        model = model.lstrip("/")
    return ModelName(provider, model)


def open_model(
    name: str, settings: Settings | None = None, *, on_event: Callable[[str, str, float], None] | None = None
) -> Provider:
    """The model behind a name.  Sends nothing; a local model is loaded by its own class when it sees fit.

    Raises :class:`UnknownName` for an unknown provider and :class:`ConfigError` for a name or setting that is wrong.
    """
    parsed = parse_name(name)
    settings = settings or Settings()
    plugin = _plugin(parsed.provider)
    if plugin is not None:
        made: Provider = plugin.load()(parsed, settings)
        return made
    match parsed.provider:
        case "openai":
            from robustjudge.models.http import HttpModel

            return HttpModel(str(parsed), parsed.model, settings, on_event=on_event)
        case "http" | "https":
            from robustjudge.models.http import HttpModel

            return HttpModel(
                str(parsed), parsed.model, settings, base_url=parsed.base_url, key_env="", on_event=on_event
            )
        case "anthropic":
            from robustjudge.models.anthropic import AnthropicModel

            return AnthropicModel(str(parsed), parsed.model, settings, on_event=on_event)
        case "llamacpp":
            return _built("llamacpp", "LlamaCpp", parsed.model)
        case "hf":
            return _built("transformers", "Transformers", parsed.model)
        case "scripted":
            return _built("scripted", "open_scripted", parsed.model)
        case "recorded":
            return _built("recorded", "Recorded", parsed.model)
    raise UnknownName("model provider", parsed.provider, (*BUILT_IN, *(e.name for e in entry_points(group=GROUP))))


def _built(module: str, maker: str, model: str) -> Provider:
    """A model on this machine; its module is imported only now, since it may bring a large library."""
    made: Provider = getattr(import_module(f"robustjudge.models.{module}"), maker)(model)
    return made


def _plugin(provider: str) -> EntryPoint | None:
    found = tuple(entry_points(group=GROUP, name=provider))
    if not found:
        return None
    owners = sorted({f"{e.dist.name if e.dist else e.value}" for e in found} | ({"robustjudge"} & _owner(provider)))
    if len(owners) > 1:
        raise ConfigError(f"the model provider {provider!r} is offered by {' and '.join(owners)}; remove one")
    return found[0]


def _owner(provider: str) -> set[str]:
    return {"robustjudge"} if provider in BUILT_IN else set()


# --------------------------------------------------------------------------- pins

_PIN = re.compile(r"-\d{4}-\d{2}-\d{2}(?:-|$)|-\d{8}(?:-|@|$)|@\d{8}$|-\d{4}(?:-preview)?$")
_CLAUDE = re.compile(r"claude-[a-z]+-(\d+)(?:-(\d{1,2}))?$")
_MOVING = re.compile(r"(?:^|[-:@])latest$|^chatgpt-")


def is_alias(name: str) -> bool:
    """Whether the provider may put another model behind this name (``openai/gpt-4o``, ``...-latest``).

    Dated names are pinned, and so are undated Claude names from 4.6 on (Claude docs, "Model IDs and versioning").
    Files and scripted models are never aliases; on other endpoints only ``latest`` and the names of the two
    providers are recognised.
    """
    parsed = parse_name(name)
    if parsed.provider in LOCAL:
        return False
    model = parsed.model.rpartition("/")[2].lower()
    if _MOVING.search(model):
        return True
    if _PIN.search(model):
        return False
    claude = _CLAUDE.search(model)
    if claude is not None:
        return (int(claude[1]), int(claude[2] or 0)) < (4, 6)
    return parsed.provider in _REMOTE or re.match(r"gpt-\d|o\d|claude-", model) is not None
