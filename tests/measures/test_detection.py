"""Measures of detectors against known scores and against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from robustjudge.defenses.classifier import score
from robustjudge.errors import DataError
from robustjudge.measures.detection import auroc, detection, flags, fpr, tpr_at_fpr

SCORES = st.lists(st.integers(0, 6), min_size=2, max_size=30)


@given(SCORES, SCORES)
@settings(max_examples=10, deadline=None)
def test_the_area_equals_scikit_learns(benign: list[int], attacked: list[int]) -> None:
    from sklearn.metrics import roc_auc_score

    labels = [0] * len(benign) + [1] * len(attacked)
    assert auroc(benign, attacked).value == pytest.approx(roc_auc_score(labels, [*benign, *attacked]))
    for rate in (0.0, 0.1, 0.5):
        usable = [t for t in {-1, *benign} if sum(b > t for b in benign) <= rate * len(benign) + 1e-9]
        best = max(sum(a > t for a in attacked) for t in usable) / len(attacked)
        assert tpr_at_fpr(benign, attacked, rate).value == pytest.approx(best)


def test_known_values_and_intervals_with_width() -> None:
    benign = [float(i) for i in range(100)]
    assert auroc(benign, [200.0] * 50).value == 1.0
    perfect = auroc(benign, [200.0 + i for i in range(50)])
    assert perfect.low is not None and 0.9 < perfect.low < 1.0
    assert tpr_at_fpr(benign, [98.5, 97.0], 0.01).value == 0.5
    assert tpr_at_fpr(benign, [98.5, 97.0], 0.05).value == 1.0
    assert fpr(benign, 94.0).value == pytest.approx(0.05)
    assert auroc([], [1.0]).value is None and "benign" in auroc([], [1.0]).reason


def test_shuffled_labels_cover_one_half() -> None:
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(12):
        found = auroc(rng.normal(size=60).tolist(), rng.normal(size=60).tolist())
        covered.append((found.low or 0) <= 0.5 <= (found.high or 1))
    assert np.mean(covered) >= 0.8


def test_an_unread_text_is_unsafe_and_a_nan_is_refused() -> None:
    assert flags([None, 1.0, 2.0], 1.5).tolist() == [1.0, 0.0, 1.0]
    assert flags([None, 1.0], None).tolist() == [1.0, 0.0]
    assert flags([1.0, 1.0], [0.5, None]).tolist() == [1.0, 0.0]
    assert auroc([0.0, 1.0], [None]).value == 1.0
    with pytest.raises(DataError):
        auroc([float("nan")], [1.0])


def test_clusters_widen_the_interval() -> None:
    rng = np.random.default_rng(1)
    benign, attacked = rng.normal(size=40), rng.normal(0.8, size=40)
    plain = auroc(benign.tolist(), attacked.tolist())
    four = (np.repeat(np.arange(40), 4).tolist(), np.repeat(np.arange(40, 80), 4).tolist())
    wide = auroc(np.repeat(benign, 4).tolist(), np.repeat(attacked, 4).tolist(), four)
    loose = auroc(np.repeat(benign, 4).tolist(), np.repeat(attacked, 4).tolist())
    assert wide.value == pytest.approx(plain.value)

    def width(e: object) -> float:
        return (e.high or 0) - (e.low or 0)  # type: ignore[attr-defined]

    assert width(wide) > 1.5 * width(loose)


def test_the_table_of_a_detector_has_both_benign_sets_by_kind() -> None:
    hard = {"rubric_words": [score("The rubric awards marks for clarity.")] * 5, "repetition": [0.1, 0.2]}
    table = detection([0.1, 0.2, 0.3, 0.4], hard, {"H1": [0.9, 0.8], "H3": [0.2, None]}, 0.5)
    assert set(table) == {"false_positive_rate", "H1", "H3"}
    assert {"benign", "hard_benign", "hard_benign/repetition"} <= set(table["false_positive_rate"])
    assert table["H1"]["true_positive_rate"].value == 1.0 and table["H3"]["true_positive_rate"].value == 0.5
    assert all(e.low is not None for e in table["false_positive_rate"].values())
