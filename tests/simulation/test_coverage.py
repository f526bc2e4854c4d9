"""Does a 95 % interval cover the known rate 95 times in 100?  Scripted judges, 300 seeded runs at n = 60 each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from judges_at_work import FLAWS, K, N, Truth, attack_for, case, counted, seeded, true_of

from core_help import go, judge, planned
from robustjudge.measures import paper, robustness
from robustjudge.measures.grid import panels
from robustjudge.measures.intervals import wilson_bounds
from robustjudge.nouns import Estimate
from robustjudge.protocols import BestOf, Pairwise, Pointwise

RUNS = 300
Z = 1.959963984540054


def truths(t: Truth) -> dict[str, float]:
    return {"asr": t.asr, "p_asr": t.p_asr, "asr_at_1": t.asr_at_1}


def draws_of(metric: str) -> int:
    """Verdicts behind a rate: what Wilson's interval would count."""
    return N * {"asr": 1, "p_asr": 2, "asr_at_1": K}[metric]


def summary(found: list[Estimate], rate: float, n: int) -> tuple[float, float, float]:
    """Coverage, mean half-width over the mean half-width of Wilson's, mean value."""
    hit = np.mean([e.low <= rate + 1e-12 and rate - 1e-12 <= e.high for e in found])  # type: ignore[operator]
    ours = np.mean([(e.high - e.low) / 2 for e in found])  # type: ignore[operator]
    bounds = [wilson_bounds(float(e), n, Z) for e in found]
    theirs = np.mean([(high - low) / 2 for low, high in bounds])
    return float(hit), float(ours / theirs), float(np.mean([float(e) for e in found]))


def line(name: str, metric: str, rate: float, got: tuple[float, float, float]) -> str:
    return f"{name:18s} {metric:9s} true {rate:.4f}  mean {got[2]:.4f}  covers {got[0]:.3f}  width/Wilson {got[1]:.3f}"


def on_counts(name: str, runs: int, slack: float) -> None:
    """Coverage of ``runs`` drawn tables of counts within 92-98 % (give or take ``slack``, what chance does to so few
    runs), mean half-width within 15 % of Wilson's, mean at the rate."""
    t = true_of(name)
    rng = np.random.default_rng(list(name.encode()))
    drawn = [counted(t, rng) for _ in range(runs)]
    for metric, rate in truths(t).items():
        got = summary([r[metric] for r in drawn], rate, draws_of(metric))
        told = line(name, metric, rate, got)
        print(told)
        assert abs(got[2] - rate) < 4 * np.sqrt(0.25 / (runs * N)), told
        if 1e-9 < rate < 1 - 1e-9:
            assert 0.92 - slack <= got[0] <= 0.98 + slack, told
        else:
            assert got[0] == 1.0, told
        assert 0.85 <= got[1] <= 1.15, told


@pytest.mark.parametrize("name", FLAWS)
def test_intervals_cover_the_known_rates(name: str) -> None:
    on_counts(name, RUNS, slack=2.5 * (0.95 * 0.05 / RUNS) ** 0.5)


@pytest.mark.campaign
@pytest.mark.parametrize("name", FLAWS)
def test_intervals_cover_the_known_rates_without_slack(name: str) -> None:
    on_counts(name, 5000, slack=0.0)


def test_F6_uniform_integers_rise_with_45_percent_and_their_net_rate_covers_zero() -> None:
    rng = np.random.default_rng(6)
    values, covered = [], 0
    for _ in range(RUNS):
        clean, again, after = (rng.integers(1, 11, N).astype(float) for _ in range(3))
        null, hit = (paper.paper_success(paper.movement(clean, x)) for x in (again, after))
        values.append(null.mean())
        net = robustness.net(hit, null)
        covered += net.low <= 0 <= net.high  # type: ignore[operator]
    assert abs(np.mean(values) - 0.45) < 0.02
    assert covered / RUNS >= 0.93


def test_a_few_whole_runs_agree_with_the_analytic_rates(tmp_path: Path) -> None:
    """The same through the engine, ledger on: pooled over a few runs the rates are the analytic ones."""
    for name in ("parses badly", "noisy"):
        t = true_of(name)
        runs = [whole(tmp_path, name, seed, n=20) for seed in range(2)]
        for metric, rate in truths(t).items():
            mean = np.mean([float(r[metric]) for r in runs])
            spread = np.sqrt(max(rate * (1 - rate), 0.01) / (2 * 20))
            assert abs(mean - rate) < 4 * spread, (name, metric, rate, mean)


def whole(folder: Path, name: str, seed: int, n: int = N) -> dict[str, Estimate]:
    """One run of the tool: the attack (and for the uniform judge the identity control), three protocols, figures from
    its table."""
    model, made = seeded(name, seed), attack_for(FLAWS[name][1])
    controlled = name == "noisy"
    plan = planned(
        [case(1000 * (seed % 9) + i) for i in range(n)],
        made,
        *(("identity",) if controlled else ()),
        judges=[("planted", judge(model.name))],
        protocols=(Pointwise(), Pairwise(), BestOf(K)),
        cleans=1,
    )
    run = go(plan, folder, model, store="hashes")
    out: dict[str, Estimate] = {}
    for panel in panels(run.table()):
        figures = panel.line(made.name).figures  # type: ignore[union-attr]
        if panel.protocol == "pointwise":
            out["asr"] = figures["paper_asr"]
            if controlled:
                null = panel.line("identity").figures["paper_asr"]  # type: ignore[union-attr]
                out |= {"null": null, "net": figures["asr_net"]}
        elif panel.protocol == "pairwise":
            out["p_asr"] = figures["paper_p_asr"]
        else:
            out["asr_at_1"] = figures["paper_asr_at_1"]
    return out


@pytest.mark.campaign
@pytest.mark.parametrize("name", FLAWS)
def test_whole_runs_cover_the_known_rates(tmp_path: Path, name: str) -> None:
    """300 seeded runs of the tool, ledger on."""
    t = true_of(name)
    runs = [whole(tmp_path, name, seed) for seed in range(RUNS)]
    print()
    failed = []
    for metric, rate in truths(t).items():
        got = summary([r[metric] for r in runs], rate, draws_of(metric))
        told = line(name, metric, rate, got)
        print(told)
        inside = 0.92 <= got[0] <= 0.98 or (rate in (0.0, 1.0) and got[0] == 1.0)
        if not inside or not 0.85 <= got[1] <= 1.15:
            failed.append(told)
    if name == "noisy":
        null = float(np.mean([float(r["null"]) for r in runs]))
        zero = float(np.mean([r["net"].low <= 0 <= r["net"].high for r in runs]))  # type: ignore[operator]
        print(f"identity: mean published ASR {null:.4f}; ASR_net covers 0 in {zero:.3f}")
        assert abs(null - 0.45) < 0.02 and zero >= 0.93
    assert not failed, "\n".join(failed)
