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
    """What is sent: ``failed`` or ``recovered``, for one judge and prompt."""

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
        word = "passes again" if self.event == "recovered" else f"does not pass ({self.verdict})"
        why = f": {tame(self.reasons[0])}" if self.reasons and self.event == "failed" else ""
        return f"judge {tame(self.judge)} {word}{why}"


def tame(text: str) -> str:
    """One visible line whose mentions, links and markup a chat cannot act on."""
    flat = one_line(door.safe(text), 300)
    for mark in ("@", "<", "`", "*", "_", "://"):
        flat = flat.replace(mark, mark[0] + "\u2060" + mark[1:])
    return flat


def notify(pairs: Sequence[tuple[Evidence, Decision]], sends: Sequence[Send], state: Path = STATE) -> list[str]:
    """Send what changed since the last call, judge by judge, and remember it; returns delivery failures as sentences.

    A judge is told once per prompt hash until its verdict changes; what could not be delivered anywhere is tried again
    next time.
    """
    known = _read(state)
    faults: list[str] = []
    for e, d in pairs:
        key = f"{e.judge}/{e.defense}"
        before = known.get(key, {})
        now = {"prompt": e.prompt_hash, "passed": d.passed}
        alert = _alert(e, d, before, now)
        if alert is None:
            known[key] = {**now, "since": before.get("since", _stamp())}
            continue
        delivered = 0
        for send in sends:
            try:
                send(alert.as_dict())
                delivered += 1
            except Undelivered as fault:
                faults.append(f"alert for judge {tame(e.judge)} was not delivered: {fault}")
        if delivered or not sends:
            known[key] = {**now, "since": _stamp()}
    _write(state, known)
    return faults


def _alert(e: Evidence, d: Decision, before: Mapping[str, Any], now: Mapping[str, Any]) -> Alert | None:
    if d.passed:
        event = "recovered" if before.get("passed") is False else ""
    else:
        told = before.get("passed") is False and before.get("prompt") == now["prompt"]
        event = "" if told else "failed"
    if not event:
        return None
    counted = [o for o in d.outcomes if o.evaluated]
    failed = sum(o.failed for o in counted)
    return Alert(event, e.judge, e.prompt_version, d.words, d.reasons, failed, len(counted), e.path.name)


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
