"""What every model offers, how an endpoint is described, and how secrets stay out of texts."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, runtime_checkable
from urllib.parse import urlsplit, urlunsplit

from robustjudge.errors import ConfigError, UnknownName
from robustjudge.nouns import Access, Call, Completion, LabelCall, Surprisal, Weights
from robustjudge.spec import register


@runtime_checkable
class Provider(Protocol):
    """A model that answers calls.

    ``name`` is the ``provider/model`` name, ``access`` the most an attack may observe through it, ``context`` its
    limit in tokens (``None``: unknown), ``concurrency`` how many calls it takes at once.  ``complete`` never raises
    for what the world does: the completion carries a status.  A model whose name does not tell it from others (an
    endpoint, a revision) adds an ``identity``, which the ledger uses in the name's stead.
    """

    name: str
    access: Access
    context: int | None
    concurrency: int

    async def complete(self, call: Call) -> Completion: ...

    async def close(self) -> None: ...


@runtime_checkable
class Weighs(Protocol):
    """A model that tells label probabilities (access ODDS)."""

    async def weigh(self, calls: tuple[LabelCall, ...]) -> tuple[Weights, ...]: ...


@runtime_checkable
class Surprises(Protocol):
    """A model that tells the log-probability of each token of a text."""

    async def surprise(self, texts: tuple[str, ...], context: str = "") -> tuple[Surprisal, ...]: ...


# --------------------------------------------------------------------------- settings

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET_NAME = re.compile(r"auth|key|token|secret|password|cookie|signature", re.IGNORECASE)


@register("settings")
@dataclass(frozen=True)
class Settings:
    """How one model is reached.  Holds no secret: a value may name environment variables as ``${NAME}``, which are
    read when a request is sent; literal credentials are refused.

    ``base_url``: empty for the provider's own.  ``headers`` and ``query``: sent with every request.  ``ca``: PEM
    file of an extra certificate authority.  ``proxy``: URL of an HTTP proxy.  ``key_env``: variable that holds the
    key (empty: the provider's usual one).  ``timeout``: seconds for one request, connection to last byte.
    ``effort``: reasoning effort where the sampling names none.  ``family``: overrides the family table.
    ``rpm`` / ``tpm``: requests and tokens per minute.  ``price``: USD per million prompt and completion tokens.
    ``logprobs``: whether the endpoint tells log-probabilities (``None``: judged by the model's name).
    ``revision``: a tag of your own that separates ledger entries when the model behind a name changed.
    """

    base_url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    query: tuple[tuple[str, str], ...] = ()
    ca: str = ""
    proxy: str = ""
    key_env: str = ""
    timeout: float = 120.0
    effort: str = ""
    family: str = ""
    rpm: float | None = None
    tpm: float | None = None
    max_concurrency: int = 256
    price: tuple[float, float] | None = None
    logprobs: bool | None = None
    revision: str = ""

    def __post_init__(self) -> None:
        for kind, pairs in (("header", self.headers), ("query parameter", self.query)):
            for name, value in pairs:
                if _SECRET_NAME.search(name) and not _REFERENCE.search(value):
                    raise ConfigError(
                        f"{kind} {name!r} holds a literal credential, which would be written into manifests; put it in"
                        f" an environment variable and write {name}: ${{MY_VARIABLE}}"
                    )
        for what, url in (("base_url", self.base_url), ("proxy", self.proxy)):
            password = urlsplit(url).password
            if password and not _REFERENCE.search(password):
                raise ConfigError(f"{what} holds a literal password; write ${{MY_VARIABLE}} in its place")
        if self.timeout <= 0 or self.max_concurrency < 1:
            raise ConfigError("timeout must be above 0 seconds and max_concurrency at least 1")
        if any(rate is not None and rate <= 0 for rate in (self.rpm, self.tpm)):
            raise ConfigError("rpm and tpm must be above 0 (leave them out for no limit)")


def settings_from(data: Mapping[str, Any], base: Settings | None = None) -> Settings:
    """Settings from a configuration file's mapping, with ``base`` for what it leaves out.

    ``headers`` and ``query`` are mappings there.  Unknown keys are errors with the nearest known name.
    """
    known = {f.name: f for f in fields(Settings)}
    given: dict[str, Any] = {}
    for name, value in data.items():
        if name not in known:
            raise UnknownName("model setting", str(name), tuple(known))
        if name in ("headers", "query"):
            if not isinstance(value, Mapping):
                raise ConfigError(f"{name} must be a mapping of names to texts, not {type(value).__name__}")
            given[name] = tuple((str(k), str(v)) for k, v in value.items())
        elif name == "price":
            if not isinstance(value, (list, tuple)) or len(value) != 2 or not all(map(_number, value)):
                raise ConfigError("price must be two numbers: USD per million prompt and completion tokens")
            given[name] = (float(value[0]), float(value[1]))
        else:
            _check(name, value, str(known[name].type))
            given[name] = value
    return replace(base or Settings(), **given)


def _check(name: str, value: Any, wanted: str) -> None:
    kinds = {"str": isinstance(value, str), "float": _number(value), "bool": isinstance(value, bool)}
    kinds |= {"int": _number(value) and isinstance(value, int), "None": value is None}
    if not any(kinds.get(kind.strip(), False) for kind in wanted.split("|")):
        raise ConfigError(f"{name} must be of type {wanted}, not {value!r}")


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def expand(text: str) -> str:
    """``text`` with every ``${NAME}`` replaced from the environment; a missing variable is a :class:`ConfigError`."""

    def value(match: re.Match[str]) -> str:
        found = os.environ.get(match[1])
        if found is None:
            raise ConfigError(f"the environment variable {match[1]} is named in the settings but not set")
        return found

    return _REFERENCE.sub(value, text) if "${" in text else text


def bare(url: str) -> str:
    """``url`` without credentials, query and fragment: what may stand in ledgers and reports."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def identity(name: str, endpoint: str, settings: Settings) -> str:
    """What tells models apart in the ledger: name, endpoint without credentials, revision and default effort."""
    return "\n".join((name, bare(endpoint), settings.revision, settings.effort))


# --------------------------------------------------------------------------- secrets

_SECRETS = re.compile(
    r"(?P<before>(?:bearer|basic)\s+|(?:api[-_ ]?key|x-api-key|authorization|access[-_]token|token|secret|password)"
    r"[\"']?\s*(?:[:=]|provided:)\s*[\"']?(?:bearer\s+)?|://[^\s/:@]*:)[^\s\"'&,;@]{4,}"
    r"|\b(?:sk|pk|rk|gsk|hf|ghp|xai|pplx)[-_][A-Za-z0-9*_\-]{6,}|\bAIza[A-Za-z0-9_\-]{10,}"
    r"|\beyJ[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-.]+",
    re.IGNORECASE,
)


def scrub(text: str, *secrets: str) -> str:
    """``text`` with the given secrets, and whatever looks like a key, token or password, replaced by ``[secret]``."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, "[secret]")
    return _SECRETS.sub(lambda m: f"{m['before'] or ''}[secret]", text)
