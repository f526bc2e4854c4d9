"""Calibrated thresholds: split conformal quantiles of benign suspicion, exact in k, kept as an artefact (defenses.md 1.5).

``calibrate`` turns benign suspicions into a :class:`Threshold`; a threshold belongs to one detector, one model and the
languages it was calibrated on, and is refused elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from importlib.resources import files
from math import ceil, exp, fsum, isfinite, lgamma, log, log1p
from pathlib import Path
from typing import Any

from robustjudge import spec
from robustjudge.errors import ConfigError, DataError

SHIPPED = "shipped"
"""The name of the thresholds frozen in this package: of the classifier, and of detectors on the embedded model."""

BUCKETS = (0, 200, 800, 3200)
"""Lower ends of the length buckets, in characters."""


def rational(alpha: float | str | Fraction) -> Fraction:
    """``alpha`` as the decimal that was written: 0.05 is exactly 1/20, not the nearest float."""
    try:
        exact = alpha if isinstance(alpha, Fraction) else Fraction(str(alpha))
    except ValueError:
        raise ConfigError(f"alpha = {alpha!r} is no number") from None
    if not 0 < exact < 1:
        raise ConfigError(f"alpha is a false-positive rate strictly between 0 and 1, not {alpha}")
    return exact


def rank(n: int, alpha: float | str | Fraction) -> int:
    """k = ceil((n + 1)(1 - alpha)): which smallest benign suspicion is the threshold (k > n: none, it never fires)."""
    return ceil((n + 1) * (1 - rational(alpha)))


def quantile(scores: Iterable[float], alpha: float | str | Fraction) -> float | None:
    """The k-th smallest score, or ``None`` (never fires) where there are too few for ``alpha``."""
    found = sorted(scores)
    if any(not isfinite(s) for s in found):
        raise DataError("a benign suspicion is not finite; count unreadable texts apart, do not calibrate on them")
    k = rank(len(found), alpha)
    return None if k > len(found) else found[k - 1]


def enough(alpha: float | str | Fraction) -> int:
    """The fewest benign texts with which a threshold at ``alpha`` can fire: ceil(1/alpha) - 1."""
    return ceil(1 / rational(alpha)) - 1


def bucket(length: int) -> str:
    """The length bucket of a text, in characters."""
    return f"{max(b for b in BUCKETS if b <= length)}+"


@spec.register("stratum")
@dataclass(frozen=True)
class Stratum:
    """A threshold of its own for one (task kind, language, length bucket)."""

    task: str
    language: str
    bucket: str
    value: float | None
    n: int
    k: int


@spec.register("threshold")
@dataclass(frozen=True)
class Threshold:
    """A frozen threshold: ``value`` over all ``n`` benign texts (``None`` never fires), and strata of their own.

    ``alpha`` is the decimal as written; ``detector`` the name and ``key`` the content hash of the detector it belongs
    to, ``model`` its model.  ``unread`` benign texts gave no suspicion; they count as flagged in any figure.
    ``hard`` is the threshold of ``hard_n`` honest texts that look like attacks: no value lies below it.
    """

    detector: str
    key: str
    model: str
    languages: tuple[str, ...]
    alpha: str
    value: float | None
    n: int
    k: int
    strata: tuple[Stratum, ...] = ()
    unread: int = 0
    hard: float | None = None
    hard_n: int = 0

    def at(self, kind: str, language: str, length: int) -> float | None:
        """The threshold for a text: its stratum's, where there is one, else the pooled value."""
        where = (kind, language, bucket(length))
        found = next((s for s in self.strata if (s.task, s.language, s.bucket) == where), None)
        return self.value if found is None else found.value

    def check(self, detector: str, key: str, model: str) -> None:
        """Raises :class:`ConfigError` where the threshold belongs to another model or another detector."""
        if detector != self.detector:
            raise ConfigError(
                f"this threshold was calibrated for {self.detector}, not for {detector}: calibrate one for it"
            )
        if model != self.model:
            raise ConfigError(
                f"this threshold of {self.detector} was calibrated on model {self.model or 'none'}, not {model or 'none'};"
                " suspicions of two models are not comparable: calibrate again"
            )
        if key != self.key:
            raise ConfigError(
                f"this threshold was calibrated for another setting of {self.detector} than this {detector};"
                " calibrate again, or use the settings it was made with"
            )

    def refuses(self, language: str) -> str:
        """Why a slate of ``language`` may not be screened, or the empty string."""
        if language in self.languages:
            return ""
        return f"threshold_language: calibrated on {', '.join(self.languages)}, not on {language}"

    @property
    def hash(self) -> str:
        """The content hash that a report prints: rules and threshold as they were frozen."""
        return spec.digest(spec.canonical(spec.dump(self)))

    def spread(self, level: float = 0.95) -> tuple[float, float]:
        """The interval of the realised false-positive rate given this calibration set: Beta(n + 1 - k, k); with
        hard-benign texts the rate on plain benign ones may lie below it."""
        return fpr_spread(self.n, self.k, level)

    def warnings(self) -> tuple[str, ...]:
        """What a reader must know of this threshold."""
        out = []
        need = enough(self.alpha)
        for what, n in (("benign", self.n), ("hard-benign", self.hard_n if self.hard_n else need)):
            if n < need:
                out.append(f"{n} {what} texts are too few for alpha = {self.alpha} (it needs {need}): it never fires")
        if self.unread:
            out.append(f"{self.unread} benign texts could not be read by the detector; each counts as a false positive")
        tried = _tried().get(self.hash)
        if tried is not None:
            flagged, tpr, area = (tried[k] for k in ("flagged", "tpr_at_1_percent_fpr", "auroc"))
            out.append(
                f"{self.detector}, as shipped, finds few attacks that are new to it: of those worded after it was frozen it"
                f" flagged {_percent(flagged)}; at 1 % false alarms {_percent(tpr)}; AUROC {area[0]:.2f} ({area[1]:.2f} to"
                f" {area[2]:.2f}; .50 is chance). Do not rely on it alone"
            )
        return tuple(out)

    def save(self, path: Path, texts: Iterable[str] = ()) -> None:
        """Write the artefact as JSON, with its hash and the marks of the calibration ``texts``."""
        data = {"hash": self.hash, "threshold": spec.dump(self), "warnings": list(self.warnings())}
        data["seen"] = sorted({mark(t) for t in texts})
        path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


@cache
def _tried() -> dict[str, dict[str, tuple[float, float, float]]]:
    """What each shipped threshold did, by its hash, on texts that were written after it was frozen (run once)."""
    path = files("robustjudge.defenses").joinpath("data", "thresholds", "held_out.json")
    data: dict[str, dict[str, tuple[float, float, float]]] = json.loads(path.read_text(encoding="utf-8"))
    return data


def _percent(rate: tuple[float, float, float]) -> str:
    """A rate with its 95 % interval in words."""
    return "{:.3g} % ({:.3g} to {:.3g} %)".format(*(round(100 * x, 1) for x in rate))


def within(defense: Any) -> Iterator[Threshold]:
    """Every calibrated threshold of a defense, of the members of a chain too."""
    tau = getattr(defense, "tau", None)
    if isinstance(tau, Threshold):
        yield tau
    for member in getattr(defense, "members", ()):
        yield from within(member)


def located(name: str, detector: str, base: Path = Path()) -> Path:
    """The file of an artefact: ``shipped`` (the one frozen for this detector), or a path relative to ``base``."""
    if name != SHIPPED:
        return base / name
    found = Path(str(files("robustjudge.defenses"))) / "data" / "thresholds" / f"{detector}.json"
    if not found.is_file():
        raise ConfigError(f"no threshold of {detector} is shipped; `robustjudge detector calibrate` makes one")
    return found


def mark(text: str) -> str:
    """What an artefact keeps of a calibration text, so that it can be left out of an evaluation."""
    return spec.digest(text)[:16]


def seen(path: Path) -> frozenset[str]:
    """The marks of the texts that an artefact was calibrated on."""
    load(path)
    return frozenset(map(str, json.loads(path.read_text(encoding="utf-8")).get("seen", ())))


def load(path: Path) -> Threshold:
    """Read an artefact; one that was edited since it was frozen is refused."""
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
        found = spec.load(data["threshold"])
        told = data["hash"]
    except OSError as fault:
        raise ConfigError(f"{path}: cannot read the threshold ({fault.strerror})") from None
    except (ValueError, KeyError, TypeError):
        raise ConfigError(f"{path}: not a threshold artefact; `robustjudge detector calibrate` writes one") from None
    if not isinstance(found, Threshold):
        raise ConfigError(f"{path}: holds a {type(found).__name__}, not a threshold")
    if found.hash != told:
        raise ConfigError(f"{path}: changed since it was frozen (hash {found.hash[:12]}, file says {told[:12]})")
    return found


# --------------------------------------------------------------------------- calibration


@dataclass(frozen=True)
class Scored:
    """One benign text's suspicion (``None``: unreadable) and where it belongs."""

    suspicion: float | None
    kind: str = "open"
    language: str = "en"
    length: int = 0


def calibrate(
    scored: Iterable[Scored],
    alpha: float | str,
    detector: str,
    key: str,
    model: str = "",
    stratify: bool = True,
    hard: Iterable[Scored] = (),
) -> Threshold:
    """The split conformal threshold of benign suspicions at false-positive rate ``alpha``, pooled and by stratum.

    A stratum gets a threshold of its own from ceil(1/alpha) - 1 texts on.  ``hard``: honest texts that look like
    attacks; every threshold is then the larger of its own and theirs, so that ``alpha`` holds for either group.  All
    texts must be honest, and must be used neither to evaluate nor to develop attacks.
    """
    exact = rational(alpha)
    every, harder = list(scored), list(hard)
    floor = quantile((float(s.suspicion) for s in harder if s.suspicion is not None), exact)

    def raised(value: float | None) -> float | None:
        if not harder:
            return value
        return None if value is None or floor is None else max(value, floor)

    known = [s for s in every if s.suspicion is not None]
    groups: dict[tuple[str, str, str], list[float]] = {}
    for s in known:
        groups.setdefault((s.kind, s.language, bucket(s.length)), []).append(float(s.suspicion or 0.0))
    strata = tuple(
        Stratum(*where, raised(quantile(values, exact)), len(values), rank(len(values), exact))
        for where, values in sorted(groups.items())
        if stratify and len(values) >= enough(exact)
    )
    values = [float(s.suspicion or 0.0) for s in known]
    languages = tuple(sorted({s.language for s in (*every, *harder)}))
    pooled = Threshold(detector, key, model, languages, str(alpha), None, len(values), rank(len(values), exact), strata)
    known_hard = sum(s.suspicion is not None for s in harder)
    return replace(
        pooled,
        value=raised(quantile(values, exact)),
        unread=len(every) - len(known) + len(harder) - known_hard,
        hard=floor,
        hard_n=known_hard,
    )


def fpr_spread(n: int, k: int, level: float = 0.95) -> tuple[float, float]:
    """Quantiles of Beta(n + 1 - k, k), the realised false-positive rate; (0, 0) for a threshold that never fires."""
    if k > n:
        return 0.0, 0.0
    tail = (1 - level) / 2
    return _beta_quantile(n + 1 - k, n, tail), _beta_quantile(n + 1 - k, n, 1 - tail)


def _beta_quantile(a: int, n: int, p: float) -> float:
    """The x with P(Binomial(n, x) >= a) = p: for whole parameters, the quantile of Beta(a, n + 1 - a)."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _at_least(a, n, middle) < p else (low, middle)
    return (low + high) / 2


def _at_least(a: int, n: int, x: float) -> float:
    """P(Binomial(n, x) >= a), for 0 < x < 1."""
    whole = lgamma(n + 1)
    logs = [whole - lgamma(i + 1) - lgamma(n - i + 1) + i * log(x) + (n - i) * log1p(-x) for i in range(a, n + 1)]
    return min(1.0, fsum(exp(v) for v in logs))
