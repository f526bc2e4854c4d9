"""The readable page of a package: one self-contained HTML document, every text escaped, nothing loaded or executed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from robustjudge.profile.package import JudgeProfile

_NAMES = {
    "tpr": "True positive rate (sensitivity)",
    "fpr": "False positive rate",
    "prevalence": "Prevalence of positives",
    "kappa": "Cohen's kappa, judge and reference",
    "ac1": "Gwet's AC1, judge and reference",
    "youden_j": "Youden's J (TPR - FPR)",
    "coverage": "Verdicts that could be read",
    "mean_bias": "Mean bias (judge - human)",
    "qwk": "Quadratically weighted kappa",
}


def page(profile: JudgeProfile) -> str:
    """The package as one HTML page for people; texts from the package are escaped and never become markup."""
    from jinja2 import Environment, StrictUndefined

    body = profile.as_dict()
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    template = environment.from_string((files("robustjudge.profile") / "page.html").read_text(encoding="utf-8"))
    text = template.render(
        p=_Dotted(body),
        address=body["sha256"],
        said="Every step of the protocol passed." if profile.outcome == "certified" else "",
        meaning=_MEANING[profile.outcome],
        people=_rows(body["humans"].get("agreement", {})),
        raters=[_Dotted(r) for r in body["per_rater"]],
        strata=[_Dotted(s) for s in body["strata"]],
        sittings=[(k, _Dotted(v)) for k, v in sorted(body["humans"].get("sittings", {}).items())],
        main=[(label, _Dotted(body[k])) for k, label in _NAMES.items() if body[k]["method"] != "none"],
        rates=_rows(body["rates"]),
        worst=_rows(body["rates_unread_as_error"]),
        scored=_scored(body["calibration_map"]),
        under=[(k, _rows({n: e for n, e in v.items() if n != "n"})) for k, v in sorted(body["under_attack"].items())],
        unread=sorted((body["confusion"].get("unread") or {}).items()),
    )
    return text.lstrip()


class _Dotted(dict[str, Any]):
    """A mapping whose missing keys read as empty in the template."""

    def __missing__(self, key: str) -> Any:
        return {"flags": ()}.get(key, "")

    def __getattr__(self, key: str) -> Any:
        value = self[key]
        return _Dotted(value) if isinstance(value, dict) else value


_SCORED = ("brier", "brier_after", "brier_skill", "log_loss", "auroc", "ece")


def _scored(found: Mapping[str, Any] | None) -> list[tuple[str, _Dotted]]:
    names = dict(zip(_SCORED, ("Brier score", "Brier score after the map", "Brier skill", "log loss", "AUROC", "ECE")))
    return [(names[k], _Dotted(found[k])) for k in _SCORED if k in found] if found else []


_TITLES = {
    "ac1": "Gwet's AC1",
    "alpha": "Krippendorff's alpha",
    "fleiss_item_mean": "Fleiss' kappa, mean over items",
    "fleiss_pooled": "Fleiss' kappa, pooled pairs",
    "kappa": "Cohen's kappa",
    "raw": "Share of items on which they agree",
    "alpha_ordinal": "Krippendorff's alpha, ordinal",
    "qwk": "Quadratically weighted kappa",
    "linear_kappa": "Linearly weighted kappa",
    "spearman": "Spearman's rank correlation",
    "kendall_tau_b": "Kendall's tau-b",
    "pearson": "Pearson's correlation",
    "mae": "Mean absolute error",
    "exact_agreement": "The same number",
    "adjacent_agreement": "The same number or one step off",
    "icc": "Intraclass correlation (A,1): absolute agreement",
    "pabak": "PABAK (kappa without prevalence and bias)",
    "npv": "Negatives that are right (NPV)",
    "ppv": "Positives that are right (PPV)",
    "tnr": "True negative rate (specificity)",
    "fnr": "False negative rate",
    "tpr": "True positive rate",
    "fpr": "False positive rate",
    "mcc": "Matthews correlation",
    "leniency": "Leniency: share the judge passes less share people pass",
    "bias_index": "Bias index: share people pass less share the judge passes",
    "accuracy": "Verdicts that agree with the reference",
    "dor": "Diagnostic odds ratio (LR+/LR-)",
    "f1": "F1",
    "kappa_max": "Highest kappa that these shares allow",
    "lr_plus": "Likelihood ratio of a positive verdict (TPR/FPR)",
    "lr_minus": "Likelihood ratio of a negative verdict (FNR/TNR)",
    "nnd": "Number needed to diagnose (1/J)",
    "prevalence_index": "Prevalence index: both positive less both negative",
    "raw_agreement": "Raw agreement with the reference",
    "corrected_rate": "Rate, corrected as the design allows",
    "judge_rate_unlabelled": "Rate as the judge sees it, uncorrected",
    "labels_only_rate": "Rate among the labels alone",
}
_MEANING = {
    "certified": "Rates that this judge produces on this population may be read, and corrected, with the figures below.",
    "refused": "No rate of this judge may be read or corrected with this package: the figures below say why, and serve to"
    " find out what is wrong.",
    "inconclusive": "The labels do not settle whether this judge is good enough: the figures below hold, their intervals"
    " are too wide to decide on.",
}


def _rows(figures: Mapping[str, Any]) -> list[tuple[str, _Dotted]]:
    return [(_TITLES.get(k, k.replace("_", " ")), _Dotted(v)) for k, v in sorted(figures.items())]
