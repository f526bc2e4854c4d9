"""Alerts: one message when a judge's prompt starts to fail the gate, one when it recovers, none in between."""

from __future__ import annotations

import json
import os
import secrets
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from robustjudge import door
from robustjudge.errors import ConfigError
from robustjudge.gate.decide import Decision
from robustjudge.gate.evidence import Evidence
from robustjudge.reports.texts import one_line

STATE = Path(".robustjudge/alerts.json")

Send = Callable[[Mapping[str, Any]], None]
"""Delivers one alert or raises :class:`Undelivered`."""


class Undelivered(Exception):
    """An alert could not be delivered; the run's result stands, and the reason is told."""


@dataclass(frozen=True)
class Alert:
    """What is sent: ``failed`` or ``recovered`` for one judge and prompt, or ``expiring`` for what it rests on."""

    event: str
    judge: str
    prompt_version: str
    verdict: str
    reasons: tuple[str, ...]
    failed: int
    total: int
    run: str

    def as_dict(self) -> dict[str, Any]:
        """Plain text in every field: receivers format mentions and links, so none are left alive."""
        return {
            "source": "robustjudge",
            "event": self.event,
            "judge_id": tame(self.judge),
            "prompt_version": tame(self.prompt_version),
            "verdict": self.verdict,
            "reasons": [tame(r) for r in self.reasons[:5]],
            "failed_count": self.failed,
            "total_examples": self.total,
            "run": tame(self.run),
            "text": self.text,
        }

    @property
    def text(self) -> str:
        """One plain line for chat."""
        again = "passes again" if self.verdict.startswith("pass") else self.verdict
        words = {"recovered": again, "expiring": "rests on what is about to expire"}
        word = words.get(self.event, f"does not pass ({self.verdict})")
        why = f": {tame(self.reasons[0])}" if self.reasons and self.event != "recovered" else ""
        return f"judge {tame(self.judge)} {word}{why}"


def tame(text: str) -> str:
    """One visible line whose mentions, links and markup a chat cannot act on."""
    flat = one_line(door.safe(text), 300)
    for mark in ("@", "<", "`", "*", "_", "://"):
        flat = flat.replace(mark, mark[0] + "\u2060" + mark[1:])
    return flat


@dataclass(frozen=True)
class Standing:
    """How one judge stands after a gate: ``key`` names it over runs, ``prompt`` is the hash that a repetition is known by."""

    key: str
    judge: str
    prompt: str
    prompt_version: str
    passed: bool
    verdict: str
    reasons: tuple[str, ...] = ()
    failed: int = 0
    total: int = 0
    run: str = ""


def standing(e: Evidence, d: Decision, key: str = "") -> Standing:
    """The standing that a decision gives a judge."""
    counted = [o for o in d.outcomes if o.evaluated]
    return Standing(
        key or f"{e.judge}/{e.defense}",
        e.judge,
        e.prompt_hash,
        e.prompt_version,
        d.passed,
        d.words,
        d.reasons,
        sum(o.failed for o in counted),
        len(counted),
        e.path.name,
    )


def notify(pairs: Sequence[tuple[Evidence, Decision]], sends: Sequence[Send], state: Path = STATE) -> list[str]:
    """:func:`tell` for the decisions of a gate."""
    return tell([standing(e, d) for e, d in pairs], sends, state)


def tell(standings: Sequence[Standing], sends: Sequence[Send], state: Path = STATE) -> list[str]:
    """Send what changed since the last call, judge by judge, and remember it; returns delivery failures as sentences.

    A judge is told once per prompt hash until its verdict changes; what could not be delivered anywhere is tried again
    next time.
    """
    known = _read(state)
    faults: list[str] = []
    for s in standings:
        before = known.get(s.key, {})
        now = {"prompt": s.prompt, "passed": s.passed}
        event = _event(s, before)
        if not event:
            known[s.key] = {**now, "since": before.get("since", _stamp())}
            continue
        alert = Alert(event, s.judge, s.prompt_version, s.verdict, s.reasons, s.failed, s.total, s.run)
        told, missed = _deliver(alert, sends)
        faults += missed
        if told or not sends:
            known[s.key] = {**now, "since": _stamp()}
            _write(state, known)  # at once: a kill before the end must not tell it twice
    _write(state, known)
    return faults


def remind(notices: Mapping[str, Alert], sends: Sequence[Send], state: Path = STATE) -> list[str]:
    """Send each notice once, by its key; returns delivery failures as sentences."""
    known = _read(state)
    faults: list[str] = []
    for key, notice in notices.items():
        if key in known:
            continue
        told, missed = _deliver(notice, sends)
        faults += missed
        if told or not sends:
            known[key] = {"since": _stamp()}
            _write(state, known)
    return faults


def _deliver(alert: Alert, sends: Sequence[Send]) -> tuple[int, list[str]]:
    """How many took the alert, and what the others said."""
    delivered, faults = 0, []
    for send in sends:
        try:
            send(alert.as_dict())
            delivered += 1
        except Undelivered as fault:
            faults.append(f"alert for judge {tame(alert.judge)} was not delivered: {fault}")
    return delivered, faults


def _event(s: Standing, before: Mapping[str, Any]) -> str:
    """What is news about a judge: ``failed``, ``recovered``, or nothing."""
    if s.passed:
        return "recovered" if before.get("passed") is False else ""
    told = before.get("passed") is False and before.get("prompt") == s.prompt
    return "" if told else "failed"


def _stamp() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as fault:
        raise ConfigError(f"{path}: the alert state is damaged ({fault}); delete it to be told again") from None
    return data if isinstance(data, dict) else {}


def _write(path: Path, data: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    spare = path.with_name(f".{path.name}.{secrets.token_hex(3)}")
    spare.write_text(json.dumps(data, indent=2, sort_keys=True) + "\n", "utf-8")
    os.replace(spare, path)


# --------------------------------------------------------------------------- delivery


class Stay(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the alert (and its headers) to another host: it is not followed."""

    def redirect_request(self, *args: Any, **more: Any) -> None:
        return None


@dataclass(frozen=True)
class Webhook:
    """POST the alert as JSON to ``url``; ``headers`` may hold a secret and are never printed."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    timeout: float = 10.0

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in ("http", "https"):
            raise ConfigError("an alert webhook is an http(s) address")

    def __call__(self, alert: Mapping[str, Any]) -> None:
        body = json.dumps(alert, ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "robustjudge", **dict(self.headers)}
        request = urllib.request.Request(self.url, body, headers, method="POST")
        host = urlsplit(self.url).hostname
        try:
            with urllib.request.build_opener(Stay).open(request, timeout=self.timeout) as reply:
                reply.read(1024)
        except urllib.error.HTTPError as fault:
            raise Undelivered(f"{host} answered {fault.code}") from None
        except (urllib.error.URLError, OSError) as fault:
            raise Undelivered(f"{host} cannot be reached ({getattr(fault, 'reason', fault)})") from None


def apprise(*urls: str) -> Send:
    """Delivery through Apprise (Slack, mail, ...); needs the extra ``alerts``."""
    try:
        import apprise as library
    except ImportError:
        raise ConfigError("this alert address needs the extra: pip install 'robustjudge[alerts]'") from None
    hub = library.Apprise()
    for url in urls:
        if not hub.add(url):
            raise ConfigError("Apprise does not know this kind of alert address")

    def send(alert: Mapping[str, Any]) -> None:
        title = f"robustjudge: judge {alert['event']}"
        body = "\n".join([str(alert["text"]), *map(str, alert["reasons"])])
        if not hub.notify(body=body, title=title, body_format=library.NotifyFormat.TEXT):
            raise Undelivered("Apprise reports a failure")

    return send


def sender(address: str) -> Send:
    """A webhook for an http(s) address, Apprise for any other scheme."""
    return Webhook(address) if urlsplit(address).scheme in ("http", "https") else apprise(address)
