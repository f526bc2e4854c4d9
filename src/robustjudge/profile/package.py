"""The judge package: everything a reader needs to trust, or refuse, a rate that this judge produced."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from robustjudge.errors import DataError
from robustjudge.nouns import Estimate
from robustjudge.spec import canonical

SCHEMA = "robustjudge.profile/1"
NONE = Estimate.undefined("not measured", method="none")

Outcome = Literal["certified", "refused", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Check:
    """One sanity check: ``pass``, ``fail`` or ``not_run``, with what was seen."""

    name: str
    result: Literal["pass", "fail", "not_run"]
    detail: str = ""


@dataclass(frozen=True)
class JudgeProfile:
    """A judge's characteristics on a stated population, as :func:`to_json` publishes them.

    ``tpr``, ``fpr``, ``prevalence`` and ``kappa`` are Estimates: ``float(profile.tpr)`` of an undefined one raises
    with its reason.  ``rates`` holds the remaining rates, ``rates_unread_as_error`` those with every unread verdict
    counted against the judge.  ``outcome`` and ``refusal`` say whether the protocol let it pass.
    """

    judge_id: str = ""
    judge_version: str = ""
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    rubric: Mapping[str, Any] = field(default_factory=dict)
    population: Mapping[str, Any] = field(default_factory=dict)
    humans: Mapping[str, Any] = field(default_factory=dict)
    confusion: Mapping[str, Any] = field(default_factory=dict)
    tpr: Estimate = NONE
    fpr: Estimate = NONE
    prevalence: Estimate = NONE
    kappa: Estimate = NONE
    ac1: Estimate = NONE
    youden_j: Estimate = NONE
    coverage: Estimate = NONE
    mean_bias: Estimate = NONE
    qwk: Estimate = NONE
    rates: Mapping[str, Estimate] = field(default_factory=dict)
    rates_unread_as_error: Mapping[str, Estimate] = field(default_factory=dict)
    per_rater: tuple[Mapping[str, Any], ...] = ()
    alt_test: Mapping[str, Any] = field(default_factory=dict)
    bias: tuple[Mapping[str, Any], ...] = ()
    under_attack: Mapping[str, Any] = field(default_factory=dict)
    strata: tuple[Mapping[str, Any], ...] = ()
    transfer: Mapping[str, Any] = field(default_factory=lambda: {"status": "untested", "tests": []})
    calibration_map: Mapping[str, Any] | None = None
    anchors: Mapping[str, Any] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    outcome: Outcome = "inconclusive"
    refusal: str = ""
    labels_needed: str | None = None
    created: str = ""
    expires: str = ""
    invalidated_by: tuple[str, ...] = (
        "model",
        "model_revision",
        "template_sha256",
        "rubric_sha256",
        "parser_version",
        "sampling",
        "population",
    )
    tool_version: str = ""
    data_sha256: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The JSON form, with ``schema`` and the content address ``sha256`` over everything else."""
        body: dict[str, Any] = {"schema": SCHEMA}
        for f in fields(self):
            body[f.name] = _plain(getattr(self, f.name))
        body["sha256"] = content_address(body)
        return body


def content_address(body: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON of a profile without its own ``sha256``."""
    return sha256(canonical({k: v for k, v in body.items() if k != "sha256"}).encode()).hexdigest()


def to_json(profile: JudgeProfile) -> str:
    """Canonical text: sorted keys, UTF-8, no NaN, no trailing spaces, one final newline."""
    return canonical(profile.as_dict()) + "\n"


def save_profile(profile: JudgeProfile, path: Path) -> str:
    """Write the package; returns its content address."""
    path.write_text(to_json(profile), encoding="utf-8")
    return str(profile.as_dict()["sha256"])


def load_profile(source: Path | Mapping[str, Any]) -> JudgeProfile:
    """Read a package.  Unknown schema or malformed content is a :class:`DataError`; see ``verify`` for the address."""
    if isinstance(source, Path):
        try:
            body = json.loads(source.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as fault:
            raise DataError(f"{source.name} cannot be read as a profile: {fault}") from None
    else:
        body = source
    if not isinstance(body, Mapping) or body.get("schema") != SCHEMA:
        found = body.get("schema") if isinstance(body, Mapping) else type(body).__name__
        raise DataError(f"not a {SCHEMA} document (schema: {found!r})")
    values: dict[str, Any] = {}
    try:
        for f in fields(JudgeProfile):
            if f.name in body:
                values[f.name] = _typed(f.name, body[f.name])
    except (KeyError, TypeError, ValueError) as fault:
        raise DataError(f"the profile is malformed: {fault!r}") from None
    return JudgeProfile(**values)


_ESTIMATES = ("tpr", "fpr", "prevalence", "kappa", "ac1", "youden_j", "coverage", "mean_bias", "qwk")


def _typed(name: str, value: Any) -> Any:
    if name in _ESTIMATES:
        return Estimate.from_dict(value)
    if name in ("rates", "rates_unread_as_error"):
        return {k: Estimate.from_dict(v) for k, v in value.items()}
    if name == "checks":
        return tuple(Check(c["name"], c["result"], c.get("detail", "")) for c in value)
    return tuple(value) if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    if isinstance(value, Estimate):
        return value.as_dict()
    if isinstance(value, Check):
        return {"name": value.name, "result": value.result, "detail": value.detail}
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise DataError(f"a profile holds numbers, text and estimates, not {type(value).__name__}")
