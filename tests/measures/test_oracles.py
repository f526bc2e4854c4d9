"""Every numeric oracle of calibration, by name, at its own tolerance (``null`` means undefined, with a reason)."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robustjudge.measures import (
    agreement,
    alttest,
    bias_effects,
    bootstrap,
    compare,
    confusion,
    designs,
    drift,
    intervals,
    multiplicity,
    ordinal,
    power,
    raters,
    rates,
    scorecal,
    sequential,
    transfer,
)
from robustjudge.measures.confusion import Confusion
from robustjudge.nouns import Estimate

Handler = Callable[[dict[str, Any], Path], dict[str, Any]]
HANDLERS: dict[str, Handler] = {}
ROOT = Path(__file__).resolve().parents[2]


def oracle(*prefixes: str) -> Callable[[Handler], Handler]:
    def keep(handler: Handler) -> Handler:
        for p in prefixes:
            HANDLERS[p] = handler
        return handler

    return keep


def ends(e: Estimate) -> list[float | None]:
    return [e.low, e.high]


def span(e: Estimate) -> dict[str, Any]:
    return {"estimate": e.value, "low": e.low, "high": e.high}


# --------------------------------------------------------------------------- handlers


@oracle("confusion_rates/")
def _confusion(i: dict[str, Any], _: Path) -> dict[str, Any]:
    c = Confusion(i["tp"], i["fp"], i["fn"], i["tn"])
    out: dict[str, Any] = {k: v.value for k, v in confusion.rates(c).items()}
    return out | {"cohen_kappa": agreement.kappa(c.table).value}


@oracle("wilson_ci/", "proportion_ci/n0")
def _wilson(i: dict[str, Any], _: Path) -> dict[str, Any]:
    e = intervals.wilson(i["x"], i["n"], i["conf"])
    return span(e) | {"published": [round(v, 4) for v in ends(e) if v is not None]}


@oracle("clopper_pearson_ci/")
def _cp(i: dict[str, Any], _: Path) -> dict[str, Any]:
    e = intervals.clopper_pearson(i["x"], i["n"], i["conf"])
    return span(e) | {"published": [round(v, 4) for v in ends(e) if v is not None]}


@oracle("proportion_cis/")
def _all_intervals(i: dict[str, Any], _: Path) -> dict[str, Any]:
    x, n, level = i["x"], i["n"], i["conf"]
    return {
        "wilson": ends(intervals.wilson(x, n, level)),
        "clopper_pearson": ends(intervals.clopper_pearson(x, n, level)),
        "agresti_coull": ends(intervals.agresti_coull(x, n, level)),
        "jeffreys": list(intervals.jeffreys_quantiles(x, n, level)),
    }


@oracle("rule_of_three_exact/")
def _zero(i: dict[str, Any], _: Path) -> dict[str, Any]:
    return {"high": intervals.zero_event_bound(i["n"], i["conf"])}


@oracle("risk_difference_ci/")
def _difference(i: dict[str, Any], _: Path) -> dict[str, Any]:
    if i["method"] == "score":
        return _score_interval(i)
    e = intervals.newcombe(i["x1"], i["n1"], i["x2"], i["n2"], i["conf"])
    return span(e) | {"published": [round(v, 4) for v in ends(e) if v is not None]}


def _score_interval(i: dict[str, Any]) -> dict[str, Any]:
    """This oracle is what its source prints, and its source has x2 delta for n2 delta in the linear term of the
    restricted maximum-likelihood cubic: that is offered by name.  The interval to use is checked beside it, against the
    paper's printed figures (Newcombe 1998b, table II, example a, method 6) and a direct maximisation."""
    args = i["x1"], i["n1"], i["x2"], i["n2"]
    e = compare.miettinen_nurminen(*args, i["conf"])
    assert e.low is not None and e.high is not None
    assert (round(e.low, 4), round(e.high, 4)) == (0.0528, 0.3382)
    for bound in (e.low, e.high):
        assert _score_by_search(*args, bound) == pytest.approx(1.959964**2, rel=1e-5)
    return span(compare.score_statsmodels(*args, i["conf"]))


def _score_by_search(x1: int, n1: int, x2: int, n2: int, delta: float) -> float:
    from scipy.optimize import minimize_scalar

    def loss(p: float) -> float:
        q = p + delta
        return -float(x1 * np.log(q) + (n1 - x1) * np.log(1 - q) + x2 * np.log(p) + (n2 - x2) * np.log(1 - p))

    edge = 1e-9
    found = minimize_scalar(
        loss, bounds=(max(0, -delta) + edge, min(1, 1 - delta) - edge), method="bounded", options={"xatol": 1e-12}
    )
    p = float(found.x)
    q = p + delta
    variance = (q * (1 - q) / n1 + p * (1 - p) / n2) * (n1 + n2) / (n1 + n2 - 1)
    return float((x1 / n1 - x2 / n2 - delta) ** 2 / variance)


@oracle("kappa_2x2/")
def _kappa(i: dict[str, Any], _: Path) -> dict[str, Any]:
    t = [[i["a"], i["b"]], [i["c"], i["d"]]]
    a = np.asarray(t, dtype=float)
    k = agreement.kappa(t, interval="normal")
    out: dict[str, Any] = {
        "kappa": k.value,
        "po": agreement.raw_agreement(t).value,
        "gwet_ac1": agreement.gwet_ac1(t).value,
        "pabak": agreement.pabak(t).value,
    }
    if k.value is None or a[0].sum() * a[1].sum() * a[:, 0].sum() * a[:, 1].sum() == 0:
        return out
    counts = np.repeat([[2, 0], [1, 1], [0, 2]], [i["a"], i["b"] + i["c"], i["d"]], axis=0)
    pos, neg = agreement.specific_agreement(t)
    marginals = a.sum(1) @ a.sum(0) / a.sum() ** 2
    return out | {
        "pe": float(marginals),
        "se": agreement.kappa_se(t),
        "se_null": agreement.kappa_null_se(t),
        "ci_low": k.low,
        "ci_high": k.high,
        "kappa_max": agreement.kappa_max(t).value,
        "scott_pi": agreement.scott_pi(t).value,
        "gwet_ac1_se": agreement.gwet_ac1_se(t),
        "krippendorff_alpha": raters.krippendorff_alpha(counts).value,
        "mcnemar_exact_p": compare.mcnemar(i["b"], i["c"]).exact_p,
        "prevalence_index": agreement.prevalence_index(t).value,
        "bias_index": agreement.bias_index(t).value,
        "ppos": pos.value,
        "pneg": neg.value,
    }


@oracle("weighted_kappa/sklearn_test")
def _weighted(i: dict[str, Any], _: Path) -> dict[str, Any]:
    t = agreement.cross_table(i["y1"], i["y2"], (0, 1, 2))
    none, linear, quadratic = (agreement.kappa(t, w).value for w in ("none", "linear", "quadratic"))
    assert none is not None and linear is not None and quadratic is not None
    published = [round(v, 4) for v in (none, linear, quadratic)]
    return {"kappa": none, "linear": linear, "quadratic": quadratic, "published": published}


@oracle("weighted_kappa/fleiss_3x3")
def _weighted_se(i: dict[str, Any], _: Path) -> dict[str, Any]:
    t = i["table"]
    return {
        "kappa": agreement.kappa(t).value,
        "se": agreement.kappa_se(t),
        "ci": ends(agreement.kappa(t, interval="normal")),
        "linear": agreement.kappa(t, "linear").value,
        "linear_se": agreement.kappa_se(t, "linear"),
        "quadratic": agreement.kappa(t, "quadratic").value,
        "quadratic_se": agreement.kappa_se(t, "quadratic"),
    }


def counts_of(matrix: list[list[Any]], units: str) -> np.ndarray:
    """Counts per unit of a matrix with gaps; ``units`` says whether units are ``rows`` or ``columns``."""
    table = matrix if units == "rows" else list(zip(*matrix, strict=True))
    labels = sorted({v for row in table for v in row if v is not None})
    long = [(u, v) for u, row in enumerate(table) for v in row]
    return raters.count_matrix([u for u, _ in long], [v for _, v in long], labels)[0]


@oracle("krippendorff_alpha/")
def _alpha(i: dict[str, Any], _: Path) -> dict[str, Any]:
    c = counts_of(i["reliability_data"], "columns")
    metrics: tuple[raters.Metric, ...] = ("nominal", "ordinal", "interval", "ratio")
    out: dict[str, Any] = {m: raters.krippendorff_alpha(c, m).value for m in metrics}
    if out["nominal"] is not None:
        out["published"] = {m: round(v, 3) for m, v in out.items()}
    return out | {"alpha": out["nominal"], "expected_disagreement": 0.0 if out["nominal"] is None else None}


def _coefficient(e: Estimate, n: int) -> dict[str, Any]:
    from scipy import special

    assert e.low is not None and e.value is not None
    se = (e.value - e.low) / float(special.stdtrit(n - 1, 0.975))
    return {"coefficient": e.value, "se": se, "ci": ends(e), "published": round(e.value, 3)}


@oracle("gwet_ac/")
def _gwet_ac(i: dict[str, Any], _: Path) -> dict[str, Any]:
    c = counts_of(i["ratings"], "rows")
    weights = {
        "identity": np.eye(5),
        "quadratic": agreement.agreement_weights(5, "quadratic"),
        "ordinal": raters.ordinal_weights(5),
    }
    return _coefficient(raters.gwet_ac(c, weights[i["weights"]]), len(c))


@oracle("multi_rater/raw4raters_bp")
def _bp(i: dict[str, Any], _: Path) -> dict[str, Any]:
    c = counts_of(i["ratings"], "rows")
    return _coefficient(raters.brennan_prediger(c), len(c))


@oracle("multi_rater/raw4raters_krippendorff")
def _alpha_gwet(i: dict[str, Any], _: Path) -> dict[str, Any]:
    c = counts_of(i["ratings"], "rows")
    return _coefficient(raters.alpha_gwet(c), int((c.sum(1) >= 2).sum()))


@oracle("icc/")
def _icc(i: dict[str, Any], _: Path) -> dict[str, Any]:
    r = ordinal.icc(i["scores"])
    found = [r.icc1, r.icc2, r.icc3, r.icc1k, r.icc2k, r.icc3k]
    names = ["icc1", "icc2", "icc3", "icc1k", "icc2k", "icc3k"]
    return {n: e.value for n, e in zip(names, found)} | {
        "published": [round(float(e), 2) for e in found],
        "ci95_2dp": [ends(e) for e in found],
    }


@oracle("ordinal/")
def _ordinal(i: dict[str, Any], _: Path) -> dict[str, Any]:
    h, j = i["human"], i["judge"]
    out: dict[str, Any] = {k: v.value for k, v in ordinal.ordinal_agreement(h, j, (1, 2, 3, 4, 5)).items()}
    items = list(range(len(h))) * 2
    c = raters.count_matrix(items, h + j, (1, 2, 3, 4, 5))[0]
    return out | {
        "spearman_p": ordinal.spearman_p(h, j),
        "krippendorff_ordinal": raters.krippendorff_alpha(c, "ordinal").value,
        "krippendorff_interval": raters.krippendorff_alpha(c, "interval").value,
    }


@oracle("rogan_gladen_lang_reiczigel/")
def _lang_reiczigel(i: dict[str, Any], _: Path) -> dict[str, Any]:
    r = rates.rogan_gladen(i["judge_positive"], i["n"], i["tp"], i["n_pos"], i["tn"], i["n_neg"], i["conf"])
    e = r.estimate
    assert e.low is not None and e.high is not None
    return {
        "estimate": r.raw,
        "estimate_clipped": e.value,
        "low": e.low,
        "high": e.high,
        "delta_se": r.delta_se,
        "published_ci": [e.low, e.high],
    }


@oracle("rogan_gladen/known_sesp_brucellosis")
def _known(i: dict[str, Any], _: Path) -> dict[str, Any]:
    args = i["judge_positive"], i["n"], i["se"], i["sp"]
    w, c = rates.rogan_gladen_known(*args), rates.rogan_gladen_known(*args, interval="clopper-pearson")
    return {
        "apparent": i["judge_positive"] / i["n"],
        "estimate": w.estimate.value,
        "wilson_transformed": ends(w.estimate),
        "clopper_transformed": ends(c.estimate),
    }


@oracle("rogan_gladen/useless_judge")
def _useless(i: dict[str, Any], _: Path) -> dict[str, Any]:
    r = rates.rogan_gladen_known(i["judge_positive"], i["n"], i["se"], i["sp"])
    assert r.estimate.reason == "judge_not_better_than_chance"
    return {"estimate": r.estimate.value, "youden_j": r.youden_j, "valid": r.estimate.value is not None}


@oracle("rogan_gladen/judgy_point")
def _judgy(i: dict[str, Any], _: Path) -> dict[str, Any]:
    c = confusion.confusion(i["test_labels"], i["test_preds"], 1, 0)
    r = rates.rogan_gladen(i["unlabeled_positive"], i["unlabeled_n"], c.tp, c.positives, c.tn, c.negatives)
    all_rates = confusion.rates(c)
    return {
        "tpr": all_rates["tpr"].value,
        "tnr": all_rates["tnr"].value,
        "apparent": i["unlabeled_positive"] / i["unlabeled_n"],
        "estimate": r.raw,
        "lang_reiczigel": ends(r.estimate),
        "delta_se": r.delta_se,
    }


@oracle("rogan_gladen_ci/")
def _lee(i: dict[str, Any], _: Path) -> dict[str, Any]:
    n_pos, n_neg = i["n_pos"], i["n_neg"]
    args = i["p"] * i["n"], i["n"], i["sensitivity"] * n_pos, n_pos, i["specificity"] * n_neg, n_neg
    return span(rates.rogan_gladen(*args, i["conf"]).estimate)


@oracle("ppi_mean/")
def _ppi(i: dict[str, Any], _: Path) -> dict[str, Any]:
    k = i["judge_unlabelled_positive" if "judge_unlabelled_positive" in i else "judge_unlabeled_positive"]
    u = [1.0] * k + [0.0] * (i["judge_unlabeled_n"] - k)
    e = rates.ppi_mean(i["y_labeled"], i["judge_labeled"], u, i["lam"], small_sample=False, level=1 - i["alpha"])
    return span(e)


@oracle("classical_mean_ci/")
def _classical(i: dict[str, Any], _: Path) -> dict[str, Any]:
    return span(rates.mean_interval(i["y"], 1 - i["alpha"]))


@oracle("paired_t/")
def _paired(i: dict[str, Any], _: Path) -> dict[str, Any]:
    r = compare.paired_difference(i["diff"], bounds=(-1, 1))
    return {"mean": r.mean.value, "se": r.se, "t_stat": r.t, "t_p": r.t_p, "wilcoxon_p": r.wilcoxon_p}


@oracle("paired_bootstrap/")
def _boot(i: dict[str, Any], _: Path) -> dict[str, Any]:
    e = bootstrap.cluster_bootstrap(i["diff"], bounds=(-1, 1))
    drawn = bootstrap.cluster_bootstrap(i["diff"], bounds=None, draws=i["n_resamples"])
    return {"percentile": ends(drawn), "bca": ends(e)}


@oracle("mcnemar/")
def _mcnemar(i: dict[str, Any], _: Path) -> dict[str, Any]:
    (a, b), (c, d) = i["table"]
    m = compare.mcnemar(b, c)
    n = a + b + c + d
    assert m.chi2 is not None
    return {
        "chi2_cc": m.chi2_corrected,
        "p_cc": m.p_corrected,
        "chi2": m.chi2,
        "p": m.p,
        "exact_p": m.exact_p,
        "diff": -float(compare.paired_table_difference(a, b, c, d)),
        "published": {"chi2": round(m.chi2, 2), "z": round((b - c) / float(np.sqrt(b + c)), 2)},
    } | {"n": n}


@oracle("mcnemar_exact/")
def _mcnemar_exact(i: dict[str, Any], _: Path) -> dict[str, Any]:
    m = compare.mcnemar(i["b"], i["c"])
    return {"exact_p": m.exact_p, "mid_p": m.mid_p, "chi2": m.chi2}


@oracle("paired_vs_unpaired_se/")
def _pairing(i: dict[str, Any], _: Path) -> dict[str, Any]:
    g = compare.pairing_gain(i["a"], i["b"])
    d = compare.paired_difference(np.subtract(i["a"], i["b"]), bounds=(-1, 1))
    assert g is not None
    return {
        "diff": g.difference,
        "se_paired": g.se_paired,
        "se_unpaired": g.se_unpaired,
        "corr": g.correlation,
        "t": d.t,
        "p": d.t_p,
    }


@oracle("multiple_testing/")
def _multiple(i: dict[str, Any], _: Path) -> dict[str, Any]:
    p, alpha = i["p"], i["alpha"]
    h, bh, by = (f(p) for f in (multiplicity.holm, multiplicity.benjamini_hochberg, multiplicity.benjamini_yekutieli))
    return {
        "bonferroni_reject": int(np.sum(multiplicity.bonferroni(p) <= alpha)),
        "holm_reject": int(np.sum(h <= alpha)),
        "bh_reject": int(np.sum(bh <= alpha)),
        "by_reject": int(np.sum(by <= alpha)),
        "holm_adj": h.tolist(),
        "bh_adj": bh.tolist(),
        "by_adj": by.tolist(),
    }


@oracle("sample_size/proportion_imperfect_judge")
def _imperfect(i: dict[str, Any], _: Path) -> dict[str, Any]:
    s = power.proportion_imperfect_judge(i["p"], i["d"], i["se"], i["sp"], i["conf"])
    return {"n_raw": s.raw, "n": s.n, "published": s.n}


@oracle("sample_size/tpr_rare_class")
def _rare(i: dict[str, Any], _: Path) -> dict[str, Any]:
    pos, total = power.tpr_on_rare_class(i["tpr"], i["d"], i["prevalence"], i["conf"])
    return {"n_pos": pos, "n_total": total}


@oracle("sample_size/wilson_halfwidth")
def _half(i: dict[str, Any], _: Path) -> dict[str, Any]:
    return {"n": power.wilson_halfwidth(i["p"], i["d"], i["conf"])}


@oracle("power/two_proportions_arcsine")
def _arcsine(i: dict[str, Any], _: Path) -> dict[str, Any]:
    h, s = power.two_proportions(i["p1"], i["p2"], i["alpha"], i["power"])
    return {"effect_h": h, "n_per_group": s.raw}


@oracle("power/miller_mde_n")
def _miller(i: dict[str, Any], _: Path) -> dict[str, Any]:
    s = power.paired_mean(i["omega2"], i["delta"], i["sigma2_A"], i["sigma2_B"], alpha=i["alpha"], power=i["power"])
    return {"n_raw": s.raw, "n": s.n}


@oracle("power/mcnemar_connor")
def _connor(i: dict[str, Any], _: Path) -> dict[str, Any]:
    s = power.mcnemar_pairs(i["discordant"], i["diff"], i["alpha"], i["power"])
    return {"n_raw": s.raw, "n": s.n}


@oracle("confidence_sequence/beta_binomial")
def _beta_binomial(i: dict[str, Any], _: Path) -> dict[str, Any]:
    e = sequential.beta_binomial(i["successes"], i["n"], i["alpha"])
    assert "anytime-valid" in e.method
    return {"low": e.low, "high": e.high, "fixed_n_wilson": ends(intervals.wilson(i["successes"], i["n"]))}


@oracle("confidence_sequence/predmix_hoeffding", "confidence_sequence/predmix_empbern", "confidence_sequence/betting")
def _sequence(i: dict[str, Any], _: Path) -> dict[str, Any]:
    assert i["x"] == "([1]*9+[0])*10"
    x = ([1] * 9 + [0]) * 10
    f = sequential.betting if "breaks" in i else sequential.hoeffding
    if "running_intersection" not in i and "breaks" not in i:
        f = sequential.empirical_bernstein
    e = f(x, i["alpha"])
    return {"low": e.low, "high": e.high}


@oracle("sprt/")
def _sprt(i: dict[str, Any], _: Path) -> dict[str, Any]:
    s = sequential.sprt(i["successes"], i["n"], i["p0"], i["p1"], i["alpha"], i["beta"])
    return {"log_A": s.log_a, "log_B": s.log_b, "llr": s.llr, "decision": s.decision}


@oracle("calibration/brier_logloss_auc")
def _scores(i: dict[str, Any], _: Path) -> dict[str, Any]:
    y, p = i["y"], i["p"]
    parts = scorecal.brier_parts(y, p)
    assert parts is not None
    assert parts.reliability - parts.resolution + parts.uncertainty == pytest.approx(float(scorecal.brier(y, p)))
    return {
        "brier": scorecal.brier(y, p).value,
        "log_loss": scorecal.log_loss(y, p).value,
        "auroc": scorecal.auroc(y, p).value,
        "average_precision": scorecal.average_precision(y, p).value,
        "ece_5bins": scorecal.ece(y, p, 5).value,
        "mce_5bins": scorecal.mce(y, p, 5).value,
        "ece_10bins": scorecal.ece(y, p, 10).value,
        "brier_skill": scorecal.brier_skill(y, p).value,
    }


@oracle("calibration/isotonic")
def _isotonic(i: dict[str, Any], _: Path) -> dict[str, Any]:
    f = scorecal.fit_isotonic(i["x"], i["y"])
    assert f is not None
    return {"fitted_sorted": f(sorted(i["x"])).tolist(), "query": f(i["query"]).tolist()}


@oracle("calibration/pava_plain")
def _pava(i: dict[str, Any], _: Path) -> dict[str, Any]:
    return {"fitted": scorecal.pool_adjacent_violators(i["y"]).tolist()}


@oracle("drift/psi")
def _psi(i: dict[str, Any], _: Path) -> dict[str, Any]:
    e, a = i["expected"], i["actual"]
    return {"psi": drift.psi(e, a).value, "js_divergence": drift.js_divergence(e, a).value}


@oracle("drift/ks")
def _ks(i: dict[str, Any], _: Path) -> dict[str, Any]:
    s = drift.shift(i["x"], i["y"])
    assert s is not None
    return {"d": s.ks, "p": s.ks_p, "mannwhitney_p": s.mann_whitney_p, "wasserstein": s.wasserstein}


@oracle("drift/tpr_two_windows")
def _windows(i: dict[str, Any], _: Path) -> dict[str, Any]:
    w = drift.two_windows(i["tp1"], i["n1"], i["tp2"], i["n2"])
    return {
        "z": w.z,
        "p": w.p,
        "fisher_p": w.fisher_p,
        "odds_ratio": w.odds_ratio,
        "newcombe_ci": ends(w.difference),
    }


@oracle("heterogeneity/")
def _breslow(i: dict[str, Any], _: Path) -> dict[str, Any]:
    b = transfer.breslow_day(i["tables"])
    return {
        "bd_stat": b.statistic,
        "bd_p": b.p,
        "mh_or": b.common_odds_ratio,
        "cmh_stat": b.cmh,
        "cmh_p": b.cmh_p,
    }


@oracle("stratified/")
def _stratified(i: dict[str, Any], _: Path) -> dict[str, Any]:
    w = designs.stratified_rates(i["N"], i["tp"], i["fn"], i["fp"], i["tn"])
    c = Confusion(sum(i["tp"]), sum(i["fp"]), sum(i["fn"]), sum(i["tn"]))
    plain = confusion.rates(c)
    return {
        "tpr_unweighted": plain["tpr"].value,
        "tpr_weighted": w.tpr.value,
        "fpr_unweighted": plain["fpr"].value,
        "fpr_weighted": w.fpr.value,
        "kappa_unweighted": agreement.kappa(c.table).value,
        "kappa_weighted": w.kappa.value,
        "prevalence_weighted": w.prevalence.value,
    }


@oracle("verification_bias/")
def _begg(i: dict[str, Any], _: Path) -> dict[str, Any]:
    c = Confusion(i["tp"], i["fp"], i["fn"], i["tn"])
    w, plain = designs.begg_greenes(c, i["judge_pos_total"], i["judge_neg_total"]), confusion.rates(c)
    return {
        "tpr_naive": plain["tpr"].value,
        "tnr_naive": plain["tnr"].value,
        "tpr_corrected": w.tpr.value,
        "tnr_corrected": 1 - float(w.fpr),
        "prevalence_corrected": w.prevalence.value,
    }


@oracle("representativeness/")
def _smd(i: dict[str, Any], _: Path) -> dict[str, Any]:
    e = transfer.smd(i["mean_subset"], i["sd_subset"], i["mean_pop"], i["sd_pop"])
    assert e.flags == ("imbalance",)
    return {"smd": e.value}


@oracle("label_allocation/")
def _allocation(i: dict[str, Any], _: Path) -> dict[str, Any]:
    pos, neg = power.allocate_labels(i["m"], i["p"], i["q1"], i["q0"], i["m_pilot"])
    return {"n_pos": pos, "n_neg": neg}


@oracle("position_bias/")
def _position(i: dict[str, Any], data: Path) -> dict[str, Any]:
    rows = json.loads((data / i["file"]).read_text())
    plain = [r["results"][0]["swap = False"]["winner"] for r in rows]
    swapped = [r["results"][0]["swap = True"]["winner"] for r in rows]
    gold = [str(r["label"]) for r in rows]
    r = bias_effects.position(
        [bias_effects.slot_verdict(w, "1", "2") for w in plain],
        [bias_effects.slot_verdict(w, "2", "1") for w in swapped],
    )
    right = [w == g for both in (plain, swapped) for w, g in zip(both, gold)]
    # the origin keeps an unread winner as a third label of the judge
    k = agreement.kappa(agreement.cross_table(gold, [w or "unread" for w in plain], ("1", "2", "unread")))
    same = sum(a == b for a, b in zip(plain, swapped))
    assert r.shares is not None and r.shares[0] * len(rows) == pytest.approx(same)
    acc = float(np.mean(right))
    shipped = json.loads((data / i["file"].replace("-result", "-statistics")).read_text())
    return {
        "accuracy_mean": acc,
        "positional_agreement": r.shares[0],  # the origin counts an unread pair as inconsistent
        "agreement_wilson": ends(intervals.wilson(same, len(rows))),
        "flips_to_first": r.first,
        "flips_to_second": r.second,
        "bias_index": r.shares[1] - r.shares[2],
        "sign_test_p": r.p,
        "kappa_gold_swapFalse": k.value,
        "published": {
            "acc": f"{acc * 100}%",
            "equal": f"{same} / {len(rows)} = {same / len(rows) * 100}%",
            "kappa_False_as_shipped": shipped["kappa_False"],
        },
    }


@oracle("robustness_rate/")
def _calm(i: dict[str, Any], _: Path) -> dict[str, Any]:
    c = bias_effects.calm_rates(i["original"], i["perturbed"], i["repeated"])
    return {
        "robustness_rate": c.robustness_rate.value,
        "consistency_rate": c.consistency_rate.value,
        "rr_minus_cr": c.effect.value,
        "flips_perturbed": c.flips_perturbed,
        "flips_repeat": c.flips_repeat,
    }


@oracle("self_preference/")
def _self(i: dict[str, Any], _: Path) -> dict[str, Any]:
    own = i["judge_prefers_own_given_human_prefers_own"]
    other = i["judge_prefers_other_given_human_prefers_other"]
    s = bias_effects.equal_opportunity(*own, *other)
    return {"eo_bias": s.effect.value, "ci_newcombe": ends(s.effect), "p_fisher": s.fisher_p}


@oracle("self_enhancement/")
def _enhancement(i: dict[str, Any], _: Path) -> dict[str, Any]:
    return {
        "err_se": bias_effects.calm_error_rate(i["score_self"], i["score_others"]).value,
        "err_ra": bias_effects.calm_error_rate(i["score_ref"], i["score_orig"]).value,
    }


@oracle("length_bias/")
def _length(i: dict[str, Any], data: Path) -> dict[str, Any]:
    rows = list(csv.DictReader((data / i["file"]).open()))
    x, h, j = ([float(r[k]) for r in rows] for k in ("length", "human", "judge"))
    ols, logit = bias_effects.error_on_length(h, j, x), bias_effects.verdict_on_length(h, j, x)
    return {
        "slope": ols.effect.value,
        "se_hc3": ols.se,
        "p": ols.p,
        "logit_length_coef": logit.effect.value,
        "logit_length_p": logit.p,
    }


@oracle("real/xstest_")
def _xstest(i: dict[str, Any], data: Path) -> dict[str, Any]:
    def column(file: str, name: str) -> list[str]:
        with (data / file).open(newline="") as f:
            return [r[name] for r in csv.DictReader(f)]

    def labels(file: str, name: str) -> list[int]:
        return [int("refus" in v.lower()) for v in column(file, name)]

    gpt, string = i["files"]
    classes = ("1_full_compliance", "2_full_refusal", "3_partial_refusal")
    first, second, final = column(gpt, "annotation_1"), column(gpt, "annotation_2"), labels(gpt, "final_label")
    t = agreement.cross_table(first, second, classes)
    counts = raters.count_matrix(list(range(len(first))) * 2, first + second, classes)[0]
    agree, fleiss = agreement.raw_agreement(t).value, raters.fleiss_kappa(counts).value
    assert agree is not None and fleiss is not None

    def judged(file: str, column: str) -> dict[str, Any]:
        c = confusion.confusion(final, labels(file, column), 1, 0)
        r = confusion.rates(c)
        cells = {"tp": c.tp, "fp": c.fp, "fn": c.fn, "tn": c.tn}
        return cells | {"tpr": r["tpr"].value, "fpr": r["fpr"].value, "kappa": agreement.kappa(c.table).value}

    return {
        "agree_h1h2": agree,
        "fleiss_h1h2": fleiss,
        "cohen_h1h2": agreement.kappa(t).value,
        "gpt4_vs_final": judged(gpt, "gpt4_label"),
        "strmatch_vs_final": judged(string, "strmatch_label"),
        "published": {"agree": round(agree, 3), "fleiss": round(fleiss, 2)},
    }


def _alttest_counts(humans: dict[str, dict[str, Any]]) -> tuple[np.ndarray, list[Any]]:
    long = [(item, v) for given in humans.values() for item, v in given.items()]
    labels = sorted({v for _, v in long})
    return raters.count_matrix([i for i, _ in long], [v for _, v in long], labels)[0], labels


@oracle("real/alttest_fleiss_")
def _alttest_fleiss(i: dict[str, Any], data: Path) -> dict[str, Any]:
    humans = json.loads((data / i["file"]).read_text())
    llms = json.loads((data / i["file"].replace("human_", "llm_")).read_text())
    c, _ = _alttest_counts(humans)
    out: dict[str, Any] = {}
    for name, given in llms.items():
        majority, verdicts = alttest.against_majority(humans, given)
        labels = sorted(set(majority) | set(verdicts), key=str)
        t = agreement.cross_table(majority, verdicts, labels)
        out[name] = {
            "n": len(majority),
            "acc": agreement.raw_agreement(t).value,
            "kappa": agreement.kappa(t).value,
        }
    pooled, kappa = raters.pairwise_agreement(c).value, raters.fleiss_kappa(c).value
    assert pooled is not None and kappa is not None
    return {
        "pairwise_agreement_pooled": pooled,
        "pairwise_agreement_item_mean": raters.pairwise_agreement(c, "item_mean").value,
        "fleiss_pooled": kappa,
        "fleiss_item_mean": raters.fleiss_kappa(c, "item_mean").value,
        "krippendorff_nominal": raters.krippendorff_alpha(c).value,
        "llm_vs_majority_noties": out,
        "published": {"agree": round(pooled, 2), "fleiss": round(kappa, 2)},
    }


@oracle("real/alttest_ordinal_")
def _alttest_ordinal(i: dict[str, Any], data: Path) -> dict[str, Any]:
    humans = json.loads((data / i["file"]).read_text())
    llms = json.loads((data / i["file"].replace("human_", "llm_")).read_text())
    numeric = {r: {k: float(v) for k, v in g.items()} for r, g in humans.items()}
    c, labels = _alttest_counts(numeric)
    means: dict[str, list[float]] = {}
    for given in numeric.values():
        for item, v in given.items():
            means.setdefault(item, []).append(v)
    out = {}
    for name, given in llms.items():
        items = [k for k in means if k in given]
        e = ordinal.spearman([float(np.mean(means[k])) for k in items], [float(given[k]) for k in items])
        out[name] = {"n": len(items), "spearman": e.value}
    return {
        "krippendorff_ordinal": raters.krippendorff_alpha(c, "ordinal", labels).value,
        "krippendorff_interval": raters.krippendorff_alpha(c, "interval", labels).value,
        "llm_spearman_vs_human_mean": out,
    }


@oracle("alt_test/")
def _alt(i: dict[str, Any], data: Path) -> dict[str, Any]:
    file, key = i["llm"].split("#")
    r = alttest.alt_test(
        json.loads((data / i["humans"]).read_text()),
        json.loads((data / file).read_text())[key],
        i["epsilon"],
        i["q"],
        i["scoring"],
    )
    wr, ap = float(r.winning_rate), float(r.advantage)
    return {
        "winning_rate": wr,
        "advantage_prob": ap,
        "p_values": [x.p for x in r.raters],
        "passed": r.passed,
        "published": {"winning_rate": wr, "advantage_prob": round(ap, 2)},
    }


@oracle("clustered_se/")
def _clustered(i: dict[str, Any], _: Path) -> dict[str, Any]:
    m = compare.clustered_mean(i["scores"], i["clusters"])
    assert m is not None
    return {
        "mean": m.mean,
        "se_iid": m.se_iid,
        "se_clustered": m.se_clustered,
        "se_clustered_small_sample": m.se_small_sample,
        "design_effect": m.design_effect,
    }


# --------------------------------------------------------------------------- the comparison

NOT_OURS = {
    "mcc_sklearn": "a peer's answer, not to return",
    "ci_from_null_se_epiR": "a peer's interval, not to return",
    "blaker_ci_published_pct": "another interval's printed figure",
    "pa": "an intermediate",
    "pe": "an intermediate",
}
PRINTED = {"published": 0.0051, "ci95_2dp": 0.005, "published_ci": 0.0051}


def load() -> list[dict[str, Any]]:
    file = ROOT.parent / "shared" / "data" / "oracles" / "calibration.json"
    return json.loads(file.read_text()) if file.is_file() else []


def handler_for(name: str) -> Handler:
    fits = [p for p in HANDLERS if name.startswith(p)]
    assert fits, f"no function is mapped to the oracle {name}"
    return HANDLERS[max(fits, key=len)]


def check(expected: Any, got: Any, tolerance: float, path: str) -> None:
    if isinstance(expected, dict):
        for key, value in expected.items():
            if key in NOT_OURS and key not in got:
                continue
            check(value, got[key], max(tolerance, PRINTED.get(key, 0.0)), f"{path}.{key}")
    elif isinstance(expected, list):
        assert len(expected) == len(got), path
        for k, (e, g) in enumerate(zip(expected, got)):
            check(e, g, tolerance, f"{path}[{k}]")
    elif expected is None or isinstance(expected, (bool, str)):
        assert got == expected, path
    else:
        assert got == pytest.approx(expected, abs=tolerance), path


@pytest.mark.parametrize("entry", load(), ids=lambda e: e["name"])
def test_oracle(entry: dict[str, Any], shared_data: Path) -> None:
    got = handler_for(entry["name"])(entry["inputs"], shared_data)
    check(entry["expected"], got, entry["tolerance"], entry["name"])


def test_no_oracle_is_missing() -> None:
    entries = load()
    if not entries:
        pytest.skip("the shared oracles are not beside this checkout")
    assert len(entries) == 108
