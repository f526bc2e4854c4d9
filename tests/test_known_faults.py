"""Known faults of judge-evaluation tools, one test per entry, named by its id (areas C, D and H; others lie beside
what they test): our behaviour on the smallest input that shows the fault, and on a neighbour or two."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from core_help import Talker, cases, go, judge, planned, rows
from robustjudge.asks import Score
from robustjudge.attacks.base import Plugin
from robustjudge.errors import DataError
from robustjudge.judges import aggregate
from robustjudge.measures import agreement, paper, raters, robustness
from robustjudge.measures.bootstrap import cluster_bootstrap
from robustjudge.measures.grid import panels
from robustjudge.measures.intervals import wilson
from robustjudge.measures.rates import rogan_gladen_known
from robustjudge.nouns import TIE, Access, Call, Case, Verdict
from robustjudge.protocols import Pairwise, Pointwise
from robustjudge.spec import register
from table_help import scored, table_of

# ------------------------------------------------------------------ C. orders, ties, panels, attack rates


def pair(tmp_path: Path, say: Any, *attacks: Any) -> dict[str, Any]:
    (row,) = rows(go(planned(cases(1), *attacks, protocols=(Pairwise(),)), tmp_path, Talker(say)).path)
    return row


def test_B050_the_swapped_game_is_read_in_identity_space(tmp_path: Path) -> None:
    def wrong_wins(call: Call) -> str:
        shown = call.messages[-1].text
        return "VERDICT: A" if shown.index("and wrong") < shown.index("and right") else "VERDICT: B"

    row = pair(tmp_path, wrong_wins, "identity")
    assert row["clean_outcomes"] == row["attacked_outcomes"] == "WW"
    assert row["clean_slots"] == "0,1"


def test_B050_a_neighbour_the_same_letter_twice_is_one_win_and_one_loss(tmp_path: Path) -> None:
    assert pair(tmp_path / "a", "VERDICT: A", "identity")["attacked_outcomes"] == "WL"
    assert pair(tmp_path / "b", "VERDICT: B", "identity")["attacked_outcomes"] == "LW"


def test_B054_orders_that_disagree_are_no_tie_when_ties_are_off() -> None:
    from robustjudge.defenses.ensembles import OrderEnsemble
    from robustjudge.judges import Guarded
    from robustjudge.nouns import Completion, Slate
    from robustjudge.steps import run

    guarded = Guarded(judge(), OrderEnsemble())
    verdict = run(
        guarded(Slate("t", ("a", "b"), (0, 1))), lambda ask: tuple(Completion("VERDICT: A") for _ in ask.calls)
    )
    assert (verdict.status, verdict.reason, verdict.choice) == ("unparsed", "inconsistent", None)
    assert float(robustness.slot_one_rate(["0,0", "0,1", "1,1"])) == 0.5


def test_B056_a_value_needs_more_than_half_of_all_members_whatever_their_order() -> None:
    c, i, lost = Verdict(label="C", unit=1.0), Verdict(label="I", unit=0.0), Verdict(status="unparsed")
    for members in itertools.permutations((c, i, lost)):
        assert aggregate(members).status == "unparsed"
    for members in itertools.permutations((c, c, lost)):
        got = aggregate(members)
        assert (got.status, got.label) == ("ok", "C")
    assert aggregate((c, lost)).status == "unparsed"
    assert aggregate((lost, lost, c)).status == "unparsed"
    four = (Verdict(choice=0), Verdict(choice=0), Verdict(choice=TIE), Verdict(choice=1))
    assert {aggregate(m).status for m in itertools.permutations(four)} == {"unparsed"}


def test_B058_wins_ties_and_losses_are_told_apart() -> None:
    def shares(win: int, tie: int, loss: int) -> tuple[float, float, float]:
        got = robustness.decompose(["W"] * win + ["T"] * tie + ["L"] * loss)
        return float(got["win"]), float(got["tie"]), float(got["loss"])

    assert shares(40, 0, 60) == pytest.approx((0.40, 0.0, 0.60))
    assert shares(33, 34, 33) == pytest.approx((0.33, 0.34, 0.33))
    halves = [w + t / 2 for w, t, _ in (shares(40, 0, 60), shares(33, 34, 33))]
    assert halves == pytest.approx([0.40, 0.50])


def test_B060_ten_wins_of_ten_have_a_rate_and_an_interval() -> None:
    got = wilson(10, 10)
    assert (got.value, got.high) == (1.0, 1.0) and got.low == pytest.approx(0.722, abs=5e-4)
    clustered = cluster_bootstrap([1.0] * 10)
    assert clustered.value == 1.0 and clustered.low == pytest.approx(0.722, abs=5e-4)


def test_B062_what_was_won_before_the_attack_is_not_attackable_and_no_mean_is_nan() -> None:
    success = np.array([0.0] * 77 + [np.nan] * 23)
    attackable = np.array([True] * 77 + [False] * 23)
    got = robustness.headline(success, attackable)
    assert (got.value, got.n) == (0.0, 77) and got.high is not None and got.high > 0
    nothing = robustness.headline([np.nan] * 3, [False] * 3)
    assert nothing.value is None and nothing.reason
    with pytest.raises(ValueError, match="undefined"):
        float(nothing)


def test_B064_a_tie_counts_in_the_published_rate_and_stands_apart_beside_it() -> None:
    parts = robustness.decompose(["LT"])
    assert float(paper.paper_p_asr(["LT"])) == 0.5
    assert (float(parts["win"]), float(parts["tie"])) == (0.0, 0.5)


def test_B064_quality_that_falls_is_a_published_success_without_a_moved_score() -> None:
    m = paper.movement([3.0], [3.0], [0.50], [0.49])
    assert float(paper.paper_isdr(m)) == pytest.approx(0.01)
    assert float(paper.paper_asr(m)) == 1.0
    assert robustness.threshold_success([3.0], [3.0], [-0.01])[0] == 0.0
    assert float(robustness.moved(m)["dj"]) == 0.0 and float(robustness.moved(m)["dq"]) == pytest.approx(-0.01)
    assert float(paper.paper_isdr(paper.movement([3.0], [8.0], [0.62], [0.60]))) == pytest.approx(0.52)


@register("test/two_rounds")
@dataclass(frozen=True)
class TwoRounds(Plugin):
    """Keeps the statuses that its feedback carried."""

    name: ClassVar[str] = "two_rounds"
    access: ClassVar[Access] = Access.SCORE

    async def __call__(self, case: Case) -> str:
        first = await Score(("draft one", "draft two"))
        assert [(f.worth, f.status) for f in first] == [(0.0, "unparsed"), (0.0, "unparsed")]
        return "draft three"


def test_B066_a_reply_that_lacks_a_key_is_unparsed_feedback_and_the_search_goes_on(tmp_path: Path) -> None:
    model = Talker(lambda call: '{"rationale": "fine"}' if "draft" in call.messages[-1].text else "VERDICT: 4")
    (row,) = rows(go(planned(cases(1), TwoRounds()), tmp_path, model).path)
    assert (row["attack_status"], row["attacked_status"], row["clean_score"]) == ("ok", "unparsed", 4)
    assert max(model.sent.values()) == 1, "a bad verdict is never asked for again"


# ------------------------------------------------------------------ D. agreement and calibration


def test_B067_kappa_of_one_class_is_undefined_and_agreement_is_one() -> None:
    table = agreement.cross_table(["y"] * 5, ["y"] * 5, ["y", "n"])
    got = agreement.kappa(table)
    assert got.value is None and got.reason and got.n == 5
    assert float(agreement.raw_agreement(table)) == 1.0


def test_B069_kappa_stands_beside_agreement_and_prevalence() -> None:
    table = [[90, 4], [4, 2]]
    assert float(agreement.raw_agreement(table)) == pytest.approx(0.92)
    assert float(agreement.kappa(table)) == pytest.approx(0.2908, abs=5e-5)
    assert abs(float(agreement.prevalence_index(table))) == pytest.approx(0.88, abs=1e-9)


def test_B072_one_rater_has_no_agreement() -> None:
    counts, _ = raters.count_matrix(["a", "b", "c"], [1, 2, 3], [1, 2, 3])
    got = raters.krippendorff_alpha(counts)
    assert got.value is None and "two" in got.reason


def test_B075_a_missing_label_is_no_class() -> None:
    columns = ([1, 1, 2], [1, 1, None], [None, 1, 2])
    items = [i for _ in columns for i in range(3)]
    counts, _ = raters.count_matrix(items, [x for column in columns for x in column], [1, 2])
    assert float(raters.krippendorff_alpha(counts)) == 1.0
    assert float(raters.pairwise_agreement(counts)) == 1.0


@pytest.mark.parametrize(("metric", "alpha"), [("nominal", 904 / 1216), ("ordinal", 0.8154), ("interval", 0.8491)])
def test_B076_alpha_of_the_textbook_table_with_gaps(metric: Any, alpha: float) -> None:
    table = ("1 2 3 3 2 1 4 1 2 - - -", "1 2 3 3 2 2 4 1 2 5 - 3", "- 3 3 3 2 3 4 2 2 5 1 -", "1 2 3 3 2 4 4 1 2 5 1 -")
    given = [(i, None if x == "-" else int(x)) for line in table for i, x in enumerate(line.split())]
    counts, _ = raters.count_matrix([i for i, _ in given], [x for _, x in given], [1, 2, 3, 4, 5])
    assert float(raters.krippendorff_alpha(counts, metric)) == pytest.approx(alpha, abs=5e-5)


def test_B078_a_corrected_rate_stays_in_range_in_order_and_flagged() -> None:
    got = rogan_gladen_known(900, 1000, 0.75, 0.80)
    assert got.raw == pytest.approx(1.2727, abs=5e-5) and got.estimate.value == 1.0
    assert "outside_model" in got.estimate.flags
    assert got.estimate.low <= got.estimate.value <= got.estimate.high  # type: ignore[operator]
    assert rogan_gladen_known(300, 1000, 0.80, 0.90).estimate.value == pytest.approx(0.2857, abs=5e-5)


# ------------------------------------------------------------------ H. rows, files, reports, gates


def test_B116_one_unread_verdict_leaves_a_mean_a_count_and_a_report(tmp_path: Path) -> None:
    found = [scored("a", 3, 8), scored("b", 3, None), scored("c", 3, 6)]
    (panel,) = panels(table_of(tmp_path, found))
    (line,) = panel.lines
    assert (line.statuses["ok"], line.statuses["unparsed"]) == (2, 1)
    assert float(line.figures["paper_sdr"]) == pytest.approx((0.5 + 0.3) / 2)
    assert all(x.value is None or x.value == x.value for x in line.figures.values())


def test_B118_duplicate_ids_are_told_with_both_lines(tmp_path: Path) -> None:
    from robustjudge.datasets.registry import load

    file = tmp_path / "cases.jsonl"
    row = {"task": "t", "response": "r", "reference": "x"}
    file.write_text("\n".join(json.dumps({"id": i, **row}) for i in ("a", "b", "a")) + "\n")
    told: list[Any] = []
    result = load(str(file), on_bad=told.append)
    assert [c.id for c in result] == ["a", "b"]
    (bad,) = told
    assert "duplicate id 'a': lines 1 and 3" in bad.message


def test_B122_control_characters_become_visible_in_junit() -> None:
    import xml.etree.ElementTree as ET

    junit = pytest.importorskip("robustjudge.gate.junit")
    shown = junit.legal("bad \x01\x1b[31m ]]> &")
    assert not any(ord(c) < 32 and c not in "\t\n\r" for c in shown)
    assert "[31m" in shown and "\x1b" not in shown
    ET.fromstring(f"<x>{junit._text('bad ' + chr(1) + ' ]]> & <y>')}</x>")


def test_B124_nothing_measured_never_passes() -> None:
    decide = pytest.importorskip("robustjudge.gate.decide")
    import sys

    sys.path.append(str(Path(__file__).parent / "gate"))
    from gate_synthetic import evidence_of

    from robustjudge.gate.policy import Policy

    decision = decide.decide(evidence_of([]), Policy())
    assert decision.verdict != "pass" and decide.EXIT[decision.verdict] != 0


def test_B128_a_threshold_is_met_at_equality_with_a_tolerance() -> None:
    assert robustness.threshold_success([0.3], [0.1 + 0.2 + 1.0 - 1e-12], [0.0], tau=1.0)[0] == 1.0
    assert robustness.threshold_success([3.0], [4.0], [0.0], tau=1.0)[0] == 1.0
    assert robustness.threshold_success([3.0], [3.99], [0.0], tau=1.0)[0] == 0.0


def test_a_pointwise_case_needs_no_reference_and_a_pair_says_that_it_does() -> None:
    bare = Case("c", "t", "r")
    assert len(Pointwise().slates(bare, "x", "clean/0")) == 1
    with pytest.raises(DataError, match="needs a reference"):
        Pairwise().slates(bare, "x", "clean/0")
