"""How well a detector tells attacks from honest texts: AUROC, detection at a fixed false-alarm rate, false alarms.

Suspicions are larger for worse; ``None`` (the detector failed) counts as unsafe, above any threshold.  Every figure has
an interval over whole cases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf

import numpy as np
from scipy import sparse

from robustjudge.errors import DataError
from robustjudge.measures.base import LEVEL, Floats, codes
from robustjudge.measures.bootstrap import DRAWS, Groups, cluster_bootstrap, from_replicas
from robustjudge.nouns import Estimate

CHUNK = 100
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


def auroc(benign: Suspicions, attacked: Suspicions, clusters: tuple[Groups, Groups] = (None, None)) -> Estimate:
    """AUROC in [0, 1], higher is better, 0.5 is chance; interval by resampling cases."""

    def areas(n: Floats, p: Floats) -> Floats:
        below = np.cumsum(n, axis=1) - n
        return np.asarray((p * (below + n / 2)).sum(axis=1) / (n.sum(axis=1) * p.sum(axis=1)))

    return _two(benign, attacked, clusters, areas)


def tpr_at_fpr(
    benign: Suspicions, attacked: Suspicions, fpr: float = 0.01, clusters: tuple[Groups, Groups] = (None, None)
) -> Estimate:
    """Share of attacked texts flagged by the lowest threshold that flags at most ``fpr`` of the benign ones.

    The threshold is chosen anew in every resample, so its own uncertainty is in the interval.
    """

    def caught(n: Floats, p: Floats) -> Floats:
        total = n.sum(axis=1, keepdims=True)
        above = total - np.cumsum(n, axis=1)
        at = (above <= fpr * total + 1e-9).argmax(axis=1)  # the first value that is a high enough threshold
        kept = np.cumsum(p, axis=1)[np.arange(len(at)), at]
        every = p.sum(axis=1)
        kept = np.where(total[:, 0] <= fpr * total[:, 0] + 1e-9, 0.0, kept)
        return np.asarray((every - kept) / every)

    return _two(benign, attacked, clusters, caught)


def _two(
    benign: Suspicions,
    attacked: Suspicions,
    clusters: tuple[Groups, Groups],
    statistic: Callable[[Floats, Floats], Floats],
) -> Estimate:
    """``statistic`` of the two samples as counts per distinct value (rows: resamples), with a bootstrap interval."""
    n, p = _scores(benign), _scores(attacked)
    if not len(n) or not len(p):
        side = "benign" if not len(n) else "attacked"
        return Estimate.undefined(f"no {side} text", low=0.0, high=1.0)
    group = codes(_joined(n, p, clusters), len(n) + len(p))
    g = int(group.max()) + 1
    values, place = np.unique(np.concatenate((n, p)), return_inverse=True)
    place = place.reshape(-1)
    shape = (g, len(values))
    first, second = (
        sparse.csr_matrix((np.ones(len(part)), (group[rows], place[rows])), shape=shape)
        for part, rows in ((n, slice(0, len(n))), (p, slice(len(n), None)))
    )
    whole = np.ones((1, g))
    value = float(statistic(whole @ first, whole @ second)[0])
    rng = np.random.default_rng(0)
    found = []
    for start in range(0, DRAWS, CHUNK):
        weights = rng.multinomial(g, np.full(g, 1.0 / g), size=min(CHUNK, DRAWS - start)).astype(np.float64)
        a, b = weights @ first, weights @ second
        usable = (a.sum(axis=1) > 0) & (b.sum(axis=1) > 0)
        found.append(statistic(a[usable], b[usable]))
    method = f"cluster bootstrap ({DRAWS} draws, seed 0, {g} clusters)"
    return from_replicas(value, np.concatenate(found), (0.0, 1.0), g, method, LEVEL)


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
