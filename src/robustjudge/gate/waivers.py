"""Waivers: written acceptance of a risk, for one prompt, with an end; expired or mismatching ones are ignored and named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from robustjudge.errors import ConfigError
from robustjudge.gate.evidence import Evidence
from robustjudge.gate.failures import Outcome
from robustjudge.spec import digest, register

MAX_DAYS = 90
"""The longest a waiver may run unless the file says otherwise (``max_days``)."""


@register("waiver_scope")
@dataclass(frozen=True)
class Scope:
    """What is accepted: failures of one judge under one prompt, by finding ids or by category."""

    judge: str
    prompt_hash: str
    findings: tuple[str, ...] = ()
    category: str = ""


@register("waiver")
@dataclass(frozen=True)
class Waiver:
    """One acceptance.  ``state`` says whether it applies today and to this prompt."""

    owner: str
    approver: str
    reason: str
    scope: Scope
    created: date
    expires: date

    @property
    def id(self) -> str:
        """A short name for lists, from the content."""
        s = self.scope
        parts = (self.owner, self.approver, self.reason, s.judge, s.prompt_hash, *s.findings, s.category)
        return digest(*parts, self.created.isoformat(), self.expires.isoformat())[:8]

    def state(self, judge: str, prompt_hash: str, today: date) -> str:
        """``applies``, or why it is ignored."""
        if self.scope.judge != judge:
            return f"is for judge {self.scope.judge!r}"
        if self.scope.prompt_hash != prompt_hash:
            return f"is for prompt {self.scope.prompt_hash}, the run used {prompt_hash}"
        if today > self.expires:
            return f"expired on {self.expires.isoformat()}"
        if today < self.created:
            return f"begins on {self.created.isoformat()}"
        return "applies"

    def covers(self, o: Outcome) -> bool:
        """Whether a failure is in its scope."""
        return o.id in self.scope.findings or bool(self.scope.category and o.trial.category == self.scope.category)


@dataclass(frozen=True)
class Applied:
    """What a waiver file did to a run: finding ids with their waiver, and every waiver with what became of it."""

    accepted: Mapping[str, str]
    used: tuple[Mapping[str, object], ...]
    notes: tuple[str, ...]


def apply(
    waivers: Sequence[Waiver], e: Evidence, found: Sequence[Outcome], today: date | None = None, warn_days: int = 14
) -> Applied:
    """Match waivers against the failures of a run."""
    today = today or date.today()
    accepted: dict[str, str] = {}
    used, notes = [], []
    for w in waivers:
        state = w.state(e.judge, e.prompt_hash, today)
        hits = [o.id for o in found if o.counts and w.covers(o)] if state == "applies" else []
        if state != "applies":
            notes.append(f"waiver {w.id} of {w.owner} is ignored: it {state}; its findings count in full")
        elif not hits:
            notes.append(f"waiver {w.id} of {w.owner} matches nothing in this run: remove it, or correct its scope")
        elif (w.expires - today).days <= warn_days:
            notes.append(f"waiver {w.id} of {w.owner} expires on {w.expires.isoformat()}")
        for h in hits:
            accepted.setdefault(h, w.id)
        used.append(
            {
                "id": w.id,
                "owner": w.owner,
                "approver": w.approver,
                "reason": w.reason,
                "created": w.created.isoformat(),
                "expires": w.expires.isoformat(),
                "state": state,
                "findings": sorted(hits),
            }
        )
    return Applied(accepted, tuple(used), tuple(notes))


def read_waivers(path: Path | None) -> tuple[Waiver, ...]:
    """The waivers of a YAML file: a list, or ``{max_days, waivers}``.  A malformed one is exit code 2, by number."""
    if path is None:
        return ()
    import yaml

    try:
        data = yaml.safe_load(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such waiver file") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as fault:
        raise ConfigError(f"{path}: cannot be read as YAML ({fault})") from None
    days = MAX_DAYS
    if isinstance(data, Mapping):
        _known(f"{path}", data, ("max_days", "waivers"))
        days = data.get("max_days", MAX_DAYS)
        if not isinstance(days, int) or isinstance(days, bool) or days < 1:
            raise ConfigError(f"{path}: max_days is a count of days, not {days!r}")
        data = data.get("waivers")
    if data is None:
        return ()
    if not isinstance(data, list):
        raise ConfigError(f"{path}: expected a list of waivers, found {type(data).__name__}")
    return tuple(parse_waiver(item, f"{path}: waiver {i}", days) for i, item in enumerate(data, 1))


def parse_waiver(data: Any, at: str, max_days: int = MAX_DAYS) -> Waiver:
    """One waiver from plain data; owner, approver, reason, scope, created and expires are all mandatory."""
    if not isinstance(data, Mapping):
        raise ConfigError(f"{at}: expected a mapping of keys, found {type(data).__name__}")
    names = tuple(f.name for f in fields(Waiver))
    _known(at, data, names)
    for name in names:
        if not data.get(name):
            raise ConfigError(f"{at}: {name} is missing; without it nobody has accepted anything")
    texts = {n: _text(f"{at}: {n}", data[n]) for n in ("owner", "approver", "reason")}
    created, expires = _day(f"{at}: created", data["created"]), _day(f"{at}: expires", data["expires"])
    if expires < created:
        raise ConfigError(f"{at}: expires {expires} lies before created {created}")
    if (expires - created).days > max_days:
        raise ConfigError(f"{at}: runs {(expires - created).days} days, at most {max_days} are allowed")
    return Waiver(scope=_scope(data["scope"], at), created=created, expires=expires, **texts)


def _scope(data: Any, at: str) -> Scope:
    if not isinstance(data, Mapping):
        raise ConfigError(f"{at}: scope is a mapping of judge, prompt_hash and findings or category")
    _known(f"{at}: scope", data, tuple(f.name for f in fields(Scope)))
    judge, prompt = (
        _text(f"{at}: scope.judge", data.get("judge")),
        _text(f"{at}: scope.prompt_hash", data.get("prompt_hash")),
    )
    for name, value in (("judge", judge), ("prompt_hash", prompt)):
        if any(c in value for c in "*?"):
            raise ConfigError(
                f"{at}: scope.{name} is a wildcard ({value!r}); a risk is accepted for one judge and prompt"
            )
    findings = data.get("findings") or []
    if isinstance(findings, str) or not isinstance(findings, list):
        raise ConfigError(f"{at}: scope.findings is a list of finding ids")
    category = data.get("category") or ""
    if not findings and not category:
        raise ConfigError(f"{at}: scope names neither findings nor a category")
    return Scope(judge, prompt, tuple(_text(f"{at}: scope.findings", f) for f in findings), str(category))


def _known(at: str, data: Mapping[Any, Any], names: tuple[str, ...]) -> None:
    for key in data:
        if key not in names:
            near = get_close_matches(str(key), names, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"
            raise ConfigError(f"{at}: unknown key {key!r}; {hint}")


def _text(at: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{at} is a text that says something, not {value!r}")
    return value.strip()


def _day(at: str, value: Any) -> date:
    if isinstance(value, date):
        return date(value.year, value.month, value.day)
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        raise ConfigError(f"{at} is a day like 2026-03-31, not {value!r}") from None
