"""Split conformal thresholds: exact ranks, promised false-positive rates, artefacts that are refused elsewhere."""

from dataclasses import replace
from fractions import Fraction
from math import ceil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from robustjudge.defenses.base import Chain, above
from robustjudge.defenses.classifier import Classifier
from robustjudge.defenses.detector import LLMDetector
from robustjudge.defenses.perplexity import Perplexity, WindowedPerplexity
from robustjudge.defenses.sandwich import Sandwich
from robustjudge.defenses.threshold import (
    Scored,
    Threshold,
    calibrate,
    enough,
    fpr_spread,
    load,
    located,
    mark,
    quantile,
    rank,
    rational,
    seen,
    within,
)
from robustjudge.errors import ConfigError, DataError


@pytest.mark.parametrize(
    ("n", "alpha", "k"), [(19, 0.05, 19), (18, 0.05, 19), (99, 0.05, 95), (100, 0.01, 100), (9, 0.1, 9), (0, 0.5, 1)]
)
def test_the_rank_is_exact(n: int, alpha: float, k: int) -> None:
    assert rank(n, alpha) == k
    scores = [float(i) for i in range(1, n + 1)]
    assert quantile(scores, alpha) == (None if k > n else float(k))


def test_floats_would_round_the_rank_up() -> None:
    assert ceil(20 * (1 - 0.85)) == 4 and rank(19, 0.85) == 3
    assert rational(0.05) == Fraction(1, 20)


def test_a_threshold_that_is_met_is_safe_and_one_that_never_fires_says_so() -> None:
    assert not above(3.0, 3.0) and above(3.0000001, 3.0)
    assert above(None, None) and not above(1e9, None)
    few = calibrate([Scored(float(i), language="en") for i in range(18)], 0.05, "perplexity", "k", "m")
    assert few.value is None and "never fires" in few.warnings()[0]
    assert enough(0.05) == 19 and calibrate([Scored(1.0)] * 19, 0.05, "d", "k").warnings() == ()


@pytest.mark.parametrize(("n", "alpha"), [(19, 0.05), (99, 0.05), (100, 0.1), (60, 0.2)])
def test_a_thousand_calibrations_keep_the_promised_rate(n: int, alpha: float) -> None:
    rng = np.random.default_rng(n)
    rates = np.array([stats.norm.sf(quantile(rng.normal(size=n).tolist(), alpha) or 0.0) for _ in range(1000)])
    error = 3 * rates.std() / np.sqrt(1000)
    assert alpha - 1 / (n + 1) - error <= rates.mean() <= alpha + error
    low, high = fpr_spread(n, rank(n, alpha))
    assert 0.93 <= ((rates >= low) & (rates <= high)).mean() <= 0.97


@pytest.mark.parametrize(("n", "alpha"), [(19, 0.05), (99, 0.05), (500, 0.01), (3000, 0.05)])
def test_the_spread_is_the_beta_law(n: int, alpha: float) -> None:
    k = rank(n, alpha)
    law = stats.beta(n + 1 - k, k)
    assert np.allclose(fpr_spread(n, k), law.ppf([0.025, 0.975]), atol=1e-6)
    assert fpr_spread(18, 19) == (0.0, 0.0)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.sampled_from([0.05, 0.1, 0.25]))
@settings(max_examples=100)
def test_with_ties_the_threshold_stays_conservative(scores: list[int], alpha: float) -> None:
    tau = quantile(map(float, scores), alpha)
    flagged = sum(above(float(s), tau) for s in scores)
    assert flagged <= alpha * (len(scores) + 1)


def test_strata_get_a_threshold_of_their_own_when_they_are_large_enough() -> None:
    short = [Scored(float(i), "logic", "en", 10) for i in range(20)]
    long = [Scored(100.0 + i, "logic", "en", 1000) for i in range(5)]
    made = calibrate([*short, *long], "0.05", "d", "k")
    assert [s.bucket for s in made.strata] == ["0+"]
    assert made.at("logic", "en", 50) == 19.0
    assert made.at("logic", "en", 900) == made.value == 104.0
    assert calibrate([*short, *long], "0.05", "d", "k", stratify=False).strata == ()


def test_unread_texts_are_counted_and_infinite_ones_refused() -> None:
    made = calibrate([Scored(None), *(Scored(float(i)) for i in range(19))], 0.05, "d", "k")
    assert made.unread == 1 and made.n == 19 and "false positive" in made.warnings()[0]
    with pytest.raises(DataError, match="not finite"):
        quantile([1.0, float("inf")], 0.5)
    for bad in (0, 1, "x"):
        with pytest.raises(ConfigError):
            rational(bad)


def made_for(detector: Perplexity, languages: str = "en") -> Threshold:
    scored = [Scored(float(i), language=x) for i in range(30) for x in languages.split()]
    return calibrate(scored, 0.05, detector.name, detector.key(), detector.model)


def test_the_artefact_comes_back_whole_and_an_edited_one_is_refused(tmp_path: Path) -> None:
    threshold = made_for(Perplexity("m"))
    path = tmp_path / "ppl.json"
    threshold.save(path)
    assert load(path) == threshold and load(path).hash == threshold.hash
    path.write_text(path.read_text().replace('"alpha": "0.05"', '"alpha": "0.5"'))
    with pytest.raises(ConfigError, match="changed since"):
        load(path)
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ConfigError, match="not a threshold"):
        load(tmp_path / "other.json")
    with pytest.raises(ConfigError, match="cannot read"):
        load(tmp_path / "missing.json")


def test_a_threshold_of_another_model_detector_or_setting_is_refused() -> None:
    threshold = made_for(Perplexity("m"))
    assert Perplexity("m", threshold).tau == threshold
    assert Perplexity("m", threshold, worth="abstain", scope="all").tau == threshold
    with pytest.raises(ConfigError, match="calibrated on model m, not other"):
        Perplexity("other", threshold)
    with pytest.raises(ConfigError, match="calibrated for perplexity, not for llm_detector"):
        LLMDetector("another", threshold)  # the detector is the first thing that is wrong
    for make in (
        lambda: WindowedPerplexity("m", threshold),
        lambda: Perplexity("m", threshold, statistic="z"),
        lambda: LLMDetector("m", threshold),
    ):
        with pytest.raises(ConfigError, match="calibrated"):
            make()
    with pytest.raises(ConfigError, match="finite"):
        Classifier(float("inf"))


def test_with_hard_benign_texts_the_rate_holds_for_either_group() -> None:
    easy = [Scored(float(i), "logic", "en", 10) for i in range(40)]
    harder = [Scored(100.0 + i, language="de") for i in range(40)]
    made = calibrate(easy, "0.05", "d", "k", hard=harder)
    alone = calibrate(easy, "0.05", "d", "k")
    assert made.value == made.hard == 138.0 and made.hard_n == 40 and alone.value == 38.0
    assert made.at("logic", "en", 10) == 138.0 and made.languages == ("de", "en")
    assert calibrate(easy, "0.05", "d", "k", hard=[Scored(-1.0)] * 40).value == alone.value
    few = calibrate(easy, "0.05", "d", "k", hard=harder[:18])
    assert few.value is None and few.at("logic", "en", 10) is None and "18 hard-benign" in few.warnings()[0]
    unread = calibrate(easy, "0.05", "d", "k", hard=[*harder, Scored(None)])
    assert unread.unread == 1 and unread.hard_n == 40


def test_a_thousand_calibrations_with_two_groups_keep_both_rates() -> None:
    rng = np.random.default_rng(5)
    easy, tough = [], []
    for _ in range(1000):
        made = calibrate(
            [Scored(float(x)) for x in rng.normal(size=59)],
            "0.1",
            "d",
            "k",
            stratify=False,
            hard=[Scored(float(x)) for x in rng.normal(0.2, 1.5, size=39)],
        )
        easy.append(stats.norm.sf(made.value))
        tough.append(stats.norm(0.2, 1.5).sf(made.value))
    assert np.mean(easy) <= 0.1 and np.mean(tough) <= 0.1


def test_the_artefact_knows_the_texts_it_was_made_from(tmp_path: Path) -> None:
    path = tmp_path / "ppl.json"
    made_for(Perplexity("m")).save(path, ["one", "two", "two"])
    assert seen(path) == {mark("one"), mark("two")} and mark("three") not in seen(path)


@pytest.mark.parametrize("name", ["classifier", "perplexity", "windowed_perplexity", "llm_detector"])
def test_a_shipped_threshold_says_what_it_does_on_attacks_that_are_new_to_it(name: str) -> None:
    """Wherever its warnings go: calibration, evaluation, the command line of a run, and the report."""
    (said,) = load(located("shipped", name)).warnings()
    assert said.startswith(f"{name}, as shipped") and "Do not rely on it alone" in said
    own = replace(load(located("shipped", name)), value=1.0)
    assert own.warnings() == (), "figures belong to one frozen artefact"


def test_thresholds_are_found_inside_a_stack() -> None:
    frozen = load(located("shipped", "classifier"))
    assert list(within(Chain((Sandwich(), Classifier(frozen))))) == [frozen] and not list(within(Classifier()))
