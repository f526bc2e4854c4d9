"""Who tires within a sitting, and who contradicts an earlier self: flagged with figures, never corrected."""

from __future__ import annotations

import random

from robustjudge.nouns import Estimate
from robustjudge.profile import Study, calibrate, page
from robustjudge.profile.fatigue import fatigue
from robustjudge.profile.longform import LabelRow
from robustjudge.profile.table import Table, collect

LABELS = ("SUCCESS", "FAILURE")


def sat(
    n: int = 120, tired: bool = True, repeats: float = 0.0, steady: float = 1.0, sessions: int = 1
) -> list[LabelRow]:
    """Ann keeps her mind; Bob, if ``tired``, says SUCCESS to everything in the last third, four seconds each.  A share of
    items comes again, and Bob says the same with probability ``steady``."""
    rng = random.Random(6)
    rows = []
    for i in range(n):
        truth = rng.random() < 0.4
        position, session = i % (n // sessions), f"s{i // (n // sessions)}"
        late = tired and position >= 2 * (n // sessions) / 3
        for who in ("ann", "bob"):
            said, seconds = (True, 4.0) if late and who == "bob" else (truth, 20.0)
            rows.append(
                LabelRow(
                    len(rows),
                    f"i{i}",
                    who,
                    "human",
                    LABELS[not said],
                    seconds=seconds,
                    position=position,
                    session=session,
                )
            )
            if who == "bob" and rng.random() < repeats:
                again = LABELS[said] if rng.random() > steady else LABELS[not said]
                rows.append(LabelRow(len(rows), f"i{i}", who, "human", again, repeat=1))
    return rows


def found(rows: list[LabelRow]) -> tuple[dict[str, str], dict[str, str], dict[str, dict[str, Estimate]]]:
    table: Table = collect(rows)
    checks, figures = fatigue(table)
    return {c.name: c.result for c in checks}, {c.name: c.detail for c in checks}, figures


def test_one_who_tires_is_flagged_with_the_change_and_its_interval() -> None:
    results, told, figures = found(sat())
    assert results["fatigue"] == "fail"
    assert "bob: share of 'SUCCESS' changed by +0" in told["fatigue"] and "[+0." in told["fatigue"]
    assert "bob: agreement with the others changed by -0" in told["fatigue"]
    assert "under half the time per item (4 s after 20 s)" in told["fatigue"]
    change = figures["bob"]["agreement"]
    assert change.high is not None and change.high < 0 and change.n > 0
    assert figures["ann"]["label"].low is not None and figures["ann"]["label"].low < 0 < (
        figures["ann"]["label"].high or 0
    )


def test_each_sitting_has_its_own_thirds() -> None:
    results, told, figures = found(sat(n=120, sessions=4))
    assert results["fatigue"] == "fail" and "bob: agreement" in told["fatigue"]
    assert figures["bob"]["seconds"] == [20.0, 4.0]


def test_people_who_do_not_tire_pass_and_too_few_places_are_not_looked_at() -> None:
    assert found(sat(tired=False))[0]["fatigue"] == "pass"
    assert found(sat(n=12))[0]["fatigue"] == "not_run" and "label" not in found(sat(n=12))[2].get("bob", {})


def test_hidden_repeats_tell_who_contradicts_an_earlier_self() -> None:
    results, told, figures = found(sat(tired=False, repeats=0.3, steady=0.4))
    assert results["intra_rater"] == "fail" and "repeats" in told["intra_rater"]
    assert figures["bob"]["repeats"].high is not None and figures["bob"]["repeats"].high < 0.8
    assert found(sat(tired=False, repeats=0.3))[0]["intra_rater"] == "pass"
    assert found(sat())[0]["intra_rater"] == "not_run"


def test_the_package_and_its_page_show_the_sittings() -> None:
    rows = sat()
    rows += [LabelRow(9000 + i, f"i{i}", "judge:j", "judge", "SUCCESS") for i in range(120)]
    done = calibrate(rows, Study("The answer is right.", LABELS, design="srs"))
    assert done.profile.humans["sittings"]["bob"]["seconds"] == [20.0, 4.0]
    html = page(done.profile)
    assert "Within a sitting" in html and "SUCCESS: +0" in html
