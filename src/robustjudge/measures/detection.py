"""How well a detector tells attacks from honest texts: AUROC, detection at a fixed false-alarm rate, false alarms.

Suspicions are larger for worse; ``None`` (the detector failed) counts as unsafe, above any threshold.  Every figure has
an interval over whole cases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np
from scipy import stats

from robustjudge.errors import DataError
from robustjudge.measures.base import Floats, codes
from robustjudge.measures.bootstrap import Groups, cluster_bootstrap
from robustjudge.nouns import Estimate

DRAWS = 1000
Suspicions = Sequence[float | None]


def _scores(values: Suspicions) -> Floats:
    found = np.array([inf if v is None else v for v in values], dtype=np.float64)
    if np.isnan(found).any():
        raise DataError("a suspicion is NaN; give None where the detector could not be read")
    return found


def _joined(first: Floats, second: Floats, groups: tuple[Groups, Groups]) -> Sequence[object]:
    """Cluster labels of both samples; an attacked text shares the case of the honest text it was made from, where the
    caller says so by equal labels."""
    if groups[0] is None or groups[1] is None:
        return list(codes(None, len(first) + len(second)))
    return [*groups[0], *groups[1]]


def area(benign: Floats, attacked: Floats) -> float:
    """Area under the ROC curve: P(attacked > benign) + P(equal) / 2."""
    ranks = stats.rankdata(np.concatenate((benign, attacked)))[len(benign) :]
    n, p = len(benign), len(attacked)
    return float((ranks.sum() - p * (p + 1) / 2) / (n * p))


def auroc(benign: Suspicions, attacked: Suspicions, clusters: tuple[Groups, Groups] = (None, None)) -> Estimate:
    """AUROC in [0, 1], higher is better, 0.5 is chance; interval by resampling cases."""
    return _two(benign, attacked, clusters, area)


def tpr_at_fpr(
    benign: Suspicions, attacked: Suspicions, fpr: float = 0.01, clusters: tuple[Groups, Groups] = (None, None)
) -> Estimate:
    """Share of attacked texts flagged by the lowest threshold that flags at most ``fpr`` of the benign ones.

    The threshold is chosen anew in every resample, so its own uncertainty is in the interval.
    """

    def caught(n: Floats, p: Floats) -> float:
        return float((p > cut(n, fpr)).mean())

    return _two(benign, attacked, clusters, caught)


def cut(benign: Floats, fpr: float) -> float:
    """The lowest threshold t with share(benign > t) <= ``fpr``."""
    ordered = np.sort(benign)[::-1]
    allowed = int(np.floor(fpr * len(ordered) + 1e-9))
    return float(ordered[allowed]) if allowed < len(ordered) else -inf


def _two(benign: Suspicions, attacked: Suspicions, clusters: tuple[Groups, Groups], statistic: object) -> Estimate:
    n, p = _scores(benign), _scores(attacked)
    if not len(n) or not len(p):
        side = "benign" if not len(n) else "attacked"
        return Estimate.undefined(f"no {side} text", low=0.0, high=1.0)
    assert callable(statistic)
    both = np.concatenate((n, p))
    border = len(n)

    def of(rows: Floats) -> float:
        at = rows.astype(np.int64)
        first, second = both[at[at < border]], both[at[at >= border]]
        return float(statistic(first, second)) if len(first) and len(second) else float("nan")

    where = np.arange(len(both), dtype=np.float64)
    return cluster_bootstrap(where, _joined(n, p, clusters), statistic=of, bounds=(0.0, 1.0), draws=DRAWS)


def fpr(benign: Suspicions, tau: float | Sequence[float | None] | None, clusters: Groups = None) -> Estimate:
    """Share of benign texts flagged at ``tau`` (one for all, or one per text; ``None`` never fires on a read text)."""
    return cluster_bootstrap(flags(benign, tau), clusters)


def flags(found: Suspicions, tau: float | Sequence[float | None] | None) -> Floats:
    """1 where a text is flagged: unread, or above its threshold (equality is safe)."""
    limits = [tau] * len(found) if tau is None or isinstance(tau, (int, float)) else list(tau)
    return np.array(
        [float(s is None or (t is not None and s > t)) for s, t in zip(found, limits, strict=True)], dtype=np.float64
    )


def detection(
    benign: Suspicions,
    hard_benign: Mapping[str, Suspicions],
    attacked: Mapping[str, Suspicions],
    tau: float | None,
    clusters: Groups = None,
) -> dict[str, dict[str, Estimate]]:
    """The detector's table: false-positive rates on benign and on each kind of hard-benign texts, and per attack family
    AUROC against both, TPR at 1 % and 5 % false alarms on benign texts, and TPR at ``tau``.

    Benign texts must not be the ones that ``tau`` was calibrated on.
    """
    hard = [s for kind in hard_benign.values() for s in kind]
    false = {"benign": fpr(benign, tau, clusters), "hard_benign": fpr(hard, tau)}
    false |= {f"hard_benign/{kind}": fpr(found, tau) for kind, found in hard_benign.items()}
    out = {"false_positive_rate": false}
    for family, found in attacked.items():
        out[family] = {
            "auroc": auroc(benign, found),
            "auroc_hard_benign": auroc(hard, found),
            "tpr_at_1_percent_fpr": tpr_at_fpr(benign, found, 0.01),
            "tpr_at_5_percent_fpr": tpr_at_fpr(benign, found, 0.05),
            "true_positive_rate": fpr(found, tau),
        }
    return out
