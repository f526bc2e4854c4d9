"""Defense trade-offs on written tables: the fixtures of the published tables, matching, both utilities, honest ranking."""

from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from robustjudge.errors import NotComparable
from robustjudge.measures import paper
from robustjudge.measures.tradeoff import PREVALENCES, Tradeoff, envelope, pareto, ranked, tradeoff, tradeoffs
from robustjudge.nouns import Estimate
from table_help import chosen, identity, scored, table_of

PUBLISHED = (
    ("PPL", 27.71, 43.33, 42.19),
    ("Windowed PPL", 21.68, 40.00, 40.84),
    ("Naive LLM", 27.33, 66.67, 30.33),
    ("Re-tokenization", 16.79, 29.67, 43.56),
    ("Delimiters", 61.10, 93.40, 33.85),
    ("Sandwich", 63.81, 92.20, 35.80),
    ("Instructional", 61.79, 92.97, 34.41),
    ("StruQ", 59.81, 84.10, 37.86),
    ("none", 59.73, 100.0, None),
)


def by_name(rows: Iterable[Tradeoff]) -> dict[str, Tradeoff]:
    return {t.defense: t for t in rows}


def f7() -> list[dict[str, Any]]:
    """10 attacked trials of which 6 succeed; 5 flagged, 4 of them would have.  20 benign texts, 3 flagged."""
    rows = []
    for i in range(20):
        attacked = 9.0 if i < 6 else 2.0
        flagged = i in (0, 1, 2, 3, 9)
        blocked = i in (17, 18, 19)
        attack = "H1" if i < 10 else "identity"
        bare = scored(f"c{i}", 2.0, attacked if i < 10 else 2.0, attack)
        shield = {
            "defense": "detector",
            "judge_calls": 3,
            **({"attacked_status": "blocked", "attacked_score": None, "attacked_unit": None} if flagged else {}),
            **({"clean_status": "blocked", "clean_score": None, "clean_unit": None} if blocked else {}),
        }
        defended = {**bare, **shield}
        rows += [bare, defended] if i < 10 else [identity(bare), identity(defended)]
    return rows


def test_the_detection_fixture(tmp_path: Path) -> None:
    found = by_name(tradeoffs(table_of(tmp_path, f7())))
    d = found["detector"]
    assert (d.trials, d.benign, d.unmatched) == (10, 20, 0)
    assert (d.asr_none.value, d.easr.value, d.delta_asr.value) == pytest.approx((0.6, 0.2, 0.4))
    assert d.bur.value == d.bur_detection.value == pytest.approx(0.85)
    assert d.bdr.value == pytest.approx(0.175) and d.break_even.value == pytest.approx(0.2727, abs=1e-4)
    assert d.blocked_attacked.value == pytest.approx(0.5) and d.costs["judge_calls"] == 1.0
    none = found["none"]
    assert (none.easr.value, none.delta_asr.value, none.bur.value) == (0.6, 0.0, 1.0)
    assert none.bdr.value == pytest.approx(0.3) and none.break_even.value is None
    for e in (d.easr, d.bur, d.bdr, d.delta_asr, d.break_even):
        assert e.low is not None and e.high is not None and e.value is not None and e.low <= e.value <= e.high
        assert e.high > e.low


def test_the_prevention_fixture(tmp_path: Path) -> None:
    rows = []
    for i, (clean, defended) in enumerate([(8, 8), (6, 5), (9, 4), (7, 7)]):
        bare = scored(f"c{i}", float(clean), float(clean))
        shield = {"defense": "shield", "clean_score": float(defended), "clean_unit": defended / 10}
        rows += [bare, {**bare, **shield}]
    d = by_name(tradeoffs(table_of(tmp_path, rows)))["shield"]
    assert d.bur.value == pytest.approx(0.85) and d.bur_ratio.value == pytest.approx(0.8194, abs=1e-4)
    assert d.bur_detection.value == 1.0 and d.noise_floor.value == 1.0


def test_the_published_rows_and_that_no_defense_beats_them() -> None:
    computed = {name: 100 * paper.bdr(e / 100, b / 100) for name, e, b, _ in PUBLISHED}
    for name, _, _, printed in PUBLISHED:
        if printed is not None:
            assert computed[name] == pytest.approx(printed, abs=0.01)
    assert computed["none"] == pytest.approx(29.865) and computed["none"] == min(computed.values())
    assert paper.risk(0.6, 0.2733, 0.6667) == pytest.approx(0.2973, abs=1e-4)
    with pytest.raises(NotComparable, match="matched"):
        paper.delta_asr(0.5973, 0.5981, matched=0.6630)


def row(name: str, easr: float, bur: float, low: float = -0.1, high: float = 0.1) -> Tradeoff:
    """A trade-off with given rates; its differences to none have a fixed interval."""
    e = Estimate(easr, easr, easr, 10, "given")
    b = Estimate(bur, bur, bur, 10, "given")
    other = Estimate.undefined("not given")
    risks = tuple(paper.risk(p, easr, bur) for p in PREVALENCES)
    diff = tuple(Estimate(0.0, low, high, 10, "given") for _ in PREVALENCES)
    return Tradeoff(
        "j", "pointwise", 1, name, 10, 10, 0, e, e, e, other, b, b, b, b, other, other, other, other, 0, risk=risks,
        risk_difference=() if name == "none" else diff,
    )  # fmt: skip


def test_the_lower_envelope_starts_with_none_and_best_needs_a_prevalence() -> None:
    rows = [row(n, e / 100, b / 100) for n, e, b, _ in PUBLISHED]
    found = envelope(rows)
    assert found[0] == (0.0, "none", 0.0) and found[10][1] == "none"
    assert found[12][1] == "Naive LLM" and found[-1][1] == "Re-tokenization"
    assert "none" in pareto(rows) and "Sandwich" not in pareto(rows)
    assert ranked(rows)[0].defense == "none"
    assert ranked(rows, 0.6)[0].defense == "Naive LLM"


def test_a_winner_is_named_only_where_the_interval_excludes_zero() -> None:
    rows = [row("none", 0.5, 1.0), row("a", 0.1, 0.9), row("b", 0.1, 0.95, -0.3, -0.1), row("c", 0.9, 0.5, 0.1, 0.3)]
    said = {r.defense: r.said for r in ranked(rows)}
    assert said == {
        "none": "the baseline",
        "a": "no significant difference from none",
        "b": "better than none",
        "c": "worse than none",
    }


def test_pairs_count_orders_and_a_blocked_order_is_a_failed_attack(tmp_path: Path) -> None:
    rows = []
    for i, (bare, defended, clean) in enumerate([("WW", "WL", "LL"), ("WL", "bb", "LW"), ("LL", "Wu", "LL")]):
        base = chosen(f"c{i}", "LL", bare)
        rows += [base, {**chosen(f"c{i}", clean, defended), "defense": "orders"}]
    d = by_name(tradeoffs(table_of(tmp_path, rows)))["orders"]
    assert d.asr_none.value == pytest.approx(3 / 6) and d.easr.value == pytest.approx(2 / 6)
    assert d.easr_worst_case.value == pytest.approx(3 / 6)
    assert d.blocked_attacked.value == pytest.approx(2 / 6) and d.bur.value == pytest.approx(5 / 6)
    assert d.bur_ratio.value is None


def test_rows_without_a_baseline_are_counted_and_a_judge_without_one_is_refused(tmp_path: Path) -> None:
    rows = [scored("a", 2.0, 9.0), {**scored("a", 2.0, 2.0), "defense": "d"}, {**scored("b", 2.0, 2.0), "defense": "d"}]
    d = by_name(tradeoffs(table_of(tmp_path / "1", rows)))["d"]
    assert d.trials == 1 and d.unmatched == 1
    with pytest.raises(NotComparable, match="no rows without defense"):
        tradeoffs(table_of(tmp_path / "2", rows[1:]))
    assert tradeoffs(table_of(tmp_path / "3", [])) == ()


def test_static_transfer_and_adaptive_stand_side_by_side(tmp_path: Path) -> None:
    rows = []
    for i in range(12):
        for access, threat, score in (
            ("NONE", "victim", 2.0),
            ("SCORE", "undefended", 2.0 if i % 2 else 8.0),
            ("SCORE", "victim", 8.0),
        ):
            attack = f"{access}"
            bare = scored(f"c{i}", 2.0, 8.0, attack, access=access, threat=threat)
            rows += [bare, {**scored(f"c{i}", 2.0, score, attack, access=access, threat=threat), "defense": "d"}]
    d = by_name(tradeoffs(table_of(tmp_path, rows)))["d"]
    assert {m: e.value for m, e in d.modes.items()} == {"static": 0.0, "transfer": 0.5, "adaptive": 1.0}
    assert d.adaptive_minus_static.value == 1.0 and (d.adaptive_minus_static.low or 0) > 0


def test_the_baseline_of_a_threat_model_is_any_no_defense_row_of_the_same_trial(tmp_path: Path) -> None:
    rows = [
        scored("a", 2.0, 8.0, access="SCORE", threat="victim"),
        {**scored("a", 2.0, 2.0, access="SCORE", threat="undefended"), "defense": "d"},
    ]
    d = by_name(tradeoffs(table_of(tmp_path, rows)))["d"]
    assert d.trials == 1 and d.delta_asr.value == 1.0


def test_a_seed_that_draws_only_the_defense_anew_is_matched_with_the_one_bare_row(tmp_path: Path) -> None:
    rows = [scored("a", 2.0, 8.0), *({**scored("a", 2.0, s, seed=i), "defense": "d"} for i, s in enumerate((2.0, 8.0)))]
    d = by_name(tradeoffs(table_of(tmp_path, rows)))["d"]
    assert (d.trials, d.unmatched, d.delta_asr.value, d.benign) == (2, 0, 0.5, 2)


@pytest.mark.parametrize(("worth", "bur"), [("reject", 0.5), ("floor", 0.9), ("fallback", 0.9), ("abstain", 1.0)])
def test_what_a_blocked_honest_text_is_worth_is_declared(tmp_path: Path, worth: Any, bur: float) -> None:
    rows = []
    for i in range(2):
        bare = scored(f"c{i}", 2.0, 2.0, low=0.0)
        blocked = {"clean_status": "blocked", "clean_score": None, "clean_unit": None} if i else {}
        rows += [bare, {**bare, "defense": "d", **blocked}]
    found = by_name(tradeoffs(table_of(tmp_path, rows), worth=worth))["d"]
    assert found.bur.value == pytest.approx(bur) and found.bur_detection.value == 0.5


def test_a_withheld_clean_score_is_replaced_by_the_baselines_and_controls_are_no_attacks(tmp_path: Path) -> None:
    bare = scored("a", 2.0, 8.0)
    shield = {**bare, "defense": "d", "clean_status": "blocked", "clean_score": None, "clean_unit": None}
    rows = [bare, shield, identity(bare), identity(shield)]
    d = by_name(tradeoffs(table_of(tmp_path, rows)))["d"]
    assert d.trials == 1 and d.easr.value == 1.0 and d.bur.value == 0.0


def noisy(seed: int, cases: int = 60) -> list[dict[str, Any]]:
    """A defense that halves attack success and costs one honest text in ten."""
    rng = Random(seed)
    rows = []
    for i in range(cases):
        hit = rng.random() < 0.6
        bare = scored(f"c{i}", 3.0, 9.0 if hit else 3.0)
        kept = hit and rng.random() < 0.5
        shield = scored(f"c{i}", 3.0, 9.0 if kept else 3.0)
        if rng.random() < 0.1:
            shield |= {"clean_status": "blocked", "clean_score": None, "clean_unit": None}
        rows += [bare, {**shield, "defense": "d"}]
    return rows


def test_intervals_of_the_risk_cover_the_truth(tmp_path: Path) -> None:
    hits = []
    for seed in range(16):
        d = by_name(tradeoffs(table_of(tmp_path / str(seed), noisy(seed))))["d"]
        low, high = d.bdr.low or 0.0, d.bdr.high or 0.0
        at = d.risk_difference[10]
        hits.append([low <= 0.2 <= high, (at.low or 0) <= -0.1 <= (at.high or 0)])
    assert (np.mean(hits, axis=0) >= 0.8).all()


def test_the_order_of_rows_does_not_matter_and_the_dict_is_plain(tmp_path: Path) -> None:
    import json

    rows = noisy(1, 20) + [{**r, "judge": "other"} for r in noisy(2, 20)]
    a = tradeoff(table_of(tmp_path / "a", rows))
    b = tradeoff(table_of(tmp_path / "b", rows[::-1]))
    assert json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)
    assert [p["judge"] for p in a["panels"]] == ["judge", "other"]
    panel = a["panels"][0]
    assert [d["defense"] for d in panel["defenses"]] == ["none", "d"]
    assert len(panel["envelope"]) == len(a["prevalences"]) == 21 and panel["envelope"][0]["defense"] == "none"
    assert set(panel["defenses"][1]["families"]) == {"direct"}


@pytest.mark.parametrize(("worth", "bur"), [("", 0.5), ("reject", 0.5), ("floor", 0.9), ("abstain", 1.0)])
def test_the_row_declares_what_its_blocked_verdict_is_worth(tmp_path: Path, worth: str, bur: float) -> None:
    rows = []
    for i in range(2):
        bare = scored(f"c{i}", 2.0, 2.0, low=0.0)
        blocked = {"clean_status": "blocked", "clean_score": None, "clean_unit": None, "blocked_worth": worth}
        rows += [bare, {**bare, "defense": "d", **(blocked if i else {})}]
    table = table_of(tmp_path, rows)
    assert by_name(tradeoffs(table))["d"].bur.value == pytest.approx(bur)
    assert tradeoff(table)["blocked_worth"] == (worth or "reject")
    assert by_name(tradeoffs(table, worth="reject"))["d"].bur.value == 0.5
