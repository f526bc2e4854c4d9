"""The calibration protocol end to end: from a long-form label file to a profile, or to the refusal of the step that failed.

Humans first, the judge after; raw labels kept apart from adjudicated ones; every refusal says what would lift it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from robustjudge import __version__
from robustjudge.door import digest
from robustjudge.errors import DataError
from robustjudge.measures.active import Drawn, characteristics, correct_active
from robustjudge.measures.confusion import Confusion, coverage
from robustjudge.measures.designs import (
    DESIGNS,
    CorrectedRate,
    Design,
    begg_greenes,
    correct_rate,
    correct_stratified,
    stratified_rates,
)
from robustjudge.measures.transfer import transfer_test
from robustjudge.nouns import Estimate
from robustjudge.profile import build, checks, panel, table, versus
from robustjudge.profile.fatigue import fatigue
from robustjudge.profile.longform import BadLabel, LabelRow, file_sha256
from robustjudge.profile.package import Check, JudgeProfile, Outcome
from robustjudge.profile.scores import score_calibration
from robustjudge.spec import canonical


@dataclass(frozen=True, slots=True)
class CalibrationPolicy:
    """What a judge must reach.  ``human_kappa`` and ``coverage`` are floors on the lower bound and the value;
    ``half_width`` is the widest +- that TPR and FPR may have; ``tpr`` (floor) and ``fpr`` (ceiling) bind if given."""

    human_kappa: float = 0.4
    coverage: float = 0.95
    half_width: float = 0.1
    tpr: float | None = None
    fpr: float | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """What a calibration declares in advance.

    ``labels`` is the Scale's declared set in order; ``positive`` the label whose rates are reported (default: the
    first).  ``ordinal`` adds rank and bias statistics over numeric labels.  ``design`` says how the items were drawn
    (one of ``srs, class_balanced, judge_chosen, stratified, active, unknown``); empty is a refusal unless every row
    carries its inclusion probability.  ``rubric_sha256`` is the hash under which the labels were made, if known.
    """

    rubric: str
    labels: tuple[str, ...]
    positive: str = ""
    judge_id: str = ""
    judge_version: str = ""
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    rubric_sha256: str = ""
    ordinal: bool = False
    design: str = ""
    population: str = ""
    frame: str = ""
    period: str = ""
    seed: int = 0
    tuned_on: tuple[str, ...] = ()
    policy: CalibrationPolicy = CalibrationPolicy()
    alt_epsilon: float = 0.2
    created: str = ""
    expires: str = ""


@dataclass(frozen=True)
class Calibration:
    """A finished run: the profile, how it ended, and what the reader may look up.

    ``step`` is the number of the step that refused (0: none).  ``disagreements`` lists items on which raters differ,
    most-divided labels first; ``rejected`` the unusable rows; ``corrected`` the judge's rate on unlabelled items.
    """

    profile: JudgeProfile
    outcome: Outcome
    step: int
    reason: str
    disagreements: tuple[panel.Disagreement, ...] = ()
    rejected: tuple[BadLabel, ...] = ()
    corrected: CorrectedRate | None = None

    @property
    def exit_code(self) -> int:
        """0 certified, 1 refused, 3 inconclusive."""
        return {"certified": 0, "refused": 1, "inconclusive": 3}[self.outcome]


def calibrate(source: Path | Iterable[LabelRow | BadLabel], study: Study) -> Calibration:
    """Run steps 1 to 9 on a label file (or its rows).  Poor data end in a refusal or ``inconclusive`` with the reason;
    only a file that cannot be used at all raises :class:`DataError` (duplicates, no declared labels)."""
    _declared(study)
    found = table.collect(source)
    data = file_sha256(source) if isinstance(source, Path) else table.address(found)
    run = _Run(study, found, data)
    return run.go()


def _declared(study: Study) -> None:
    if len(study.labels) < 2 or len(set(study.labels)) != len(study.labels):
        raise DataError("declare at least two different labels, in the scale's order")
    if study.positive and study.positive not in study.labels:
        raise DataError(f"the positive label {study.positive!r} is not among {', '.join(map(repr, study.labels))}")
    if study.design and study.design not in DESIGNS:
        raise DataError(f"unknown label design {study.design!r}; one of {', '.join(DESIGNS)}")
    if study.ordinal:
        for v in study.labels:
            try:
                float(v)
            except ValueError:
                raise DataError(f"an ordinal scale has numeric labels; {v!r} is none") from None


class _Refused(Exception):
    def __init__(self, step: int, reason: str, outcome: Outcome = "refused") -> None:
        self.step, self.reason, self.outcome = step, reason, outcome


class _Run:
    """One pass of the protocol; each step adds to the profile or refuses."""

    def __init__(self, study: Study, given: table.Table, data: str) -> None:
        self.study, self.table = study, given
        self.positive = study.positive or study.labels[0]
        self.checks: list[Check] = []
        self.corrected: CorrectedRate | None = None
        self.disagreements: tuple[panel.Disagreement, ...] = ()
        self.profile = JudgeProfile(
            judge_id=study.judge_id or given.judge_id,
            judge_version=study.judge_version,
            fingerprint={**study.fingerprint, "rubric_sha256": digest(study.rubric)},
            rubric={
                "text": study.rubric,
                "success_definition": study.rubric,
                "labels": list(study.labels),
                "positive_label": self.positive,
                "scale": {"ordinal": study.ordinal},
            },
            created=study.created or build.now(),
            expires=study.expires,
            tool_version=__version__,
            data_sha256=data,
        )

    def go(self) -> Calibration:
        outcome: Outcome = "certified"
        step, reason = 0, ""
        try:
            self.rubric()
            self.frame()
            self.humans()
            self.judge()
            self.decide()
        except _Refused as stop:
            outcome, step, reason = stop.outcome, stop.step, stop.reason
        self.profile = replace(self.profile, checks=tuple(self.checks), outcome=outcome, refusal=reason)
        return Calibration(
            self.profile, outcome, step, reason, self.disagreements, tuple(self.table.rejected), self.corrected
        )

    # ----------------------------------------------------------------- steps 1, 2

    def rubric(self) -> None:
        text = self.study.rubric.strip()
        if not text:
            raise _Refused(1, "the rubric is empty: write one precise, testable sentence per label")
        if self.study.rubric_sha256 and self.study.rubric_sha256 != digest(self.study.rubric):
            raise _Refused(1, "the rubric changed since the labels were made: label again under the new one")

    def frame(self) -> None:
        s, t = self.study, self.table
        known = bool(t.probability) and all(i in t.probability for i in t.drawn)
        design = s.design or ("stratified" if known else "")
        if not design:
            raise _Refused(
                2, "how the items were drawn is not declared and rows carry no inclusion_prob: state the design"
            )
        if design in ("stratified", "active") and not known:
            raise _Refused(2, f"a {design} draw needs the inclusion_prob of every labelled item")
        self.design: Design = design  # type: ignore[assignment]
        self.checks.append(checks.weights(t, design))
        self.profile = replace(
            self.profile,
            population={
                "description": s.population,
                "frame": s.frame,
                "design": design,
                "seed": s.seed,
                "strata": sorted(set(t.stratum.values())),
                "period": s.period,
                "rows_rejected": len(t.rejected),
            },
        )
        if self.checks[-1].result == "fail":
            raise _Refused(2, f"the inclusion probabilities do not fit the items: {self.checks[-1].detail}")

    # ----------------------------------------------------------------- steps 3 to 5

    def humans(self) -> None:
        t, s = self.table, self.study
        found, dropped = checks.leak(t.items, s.tuned_on)
        self.checks.append(found)
        t.drop(dropped)
        self.checks.append(checks.label_set(t.seen, t.types, s.labels, t.typed))
        if self.checks[-1].result == "fail":
            raise _Refused(7, f"label set: {self.checks[-1].detail}")
        turned = checks.orientation(t)
        self.checks += [checks.missing(t), checks.constant(t), turned]
        if turned.result == "fail":
            raise _Refused(3, turned.detail)
        if panel.overlap(t) == 0:
            n = len(t.raters)
            raise _Refused(3, f"needs two raters on at least one item; found {n} rater{'s' if n != 1 else ''}")
        people = panel.agreement(t, s.labels, s.ordinal)
        self.checks.append(checks.reconciled(people.pairs))
        tired, figures = fatigue(t)
        self.checks.extend(tired)
        self.disagreements = people.disagreements
        self.profile = replace(self.profile, humans={**people.section, "sittings": figures})
        low = people.floor.low
        if low is None or low < s.policy.human_kappa:
            told = "undefined" if people.floor.value is None else f"{people.floor.value:.3f}, lower bound {low:.3f}"
            why = f" ({people.floor.reason})" if people.floor.value is None else ""
            raise _Refused(
                4,
                f"fix the rubric first: human agreement is {told}{why}, the floor {s.policy.human_kappa:g}; "
                f"{len(people.disagreements)} items are in dispute",
            )

    # ----------------------------------------------------------------- steps 6, 7

    def judge(self) -> None:
        t, s = self.table, self.study
        reference = panel.reference(t)
        section = {**self.profile.humans, "adjudication": reference.how, "ties": reference.ties}
        self.profile = replace(self.profile, humans=section)
        if not t.verdicts:
            raise _Refused(6, "no judge rows: run the judge on the labelled items first")
        self.reference = reference
        c, unread = versus.binary(t, reference, self.positive)
        self.confusion = c
        self.profile = replace(
            self.profile,
            confusion=self._matrix(c, unread),
            per_rater=versus.per_rater(t, self.positive),
            strata=versus.by_stratum(t, reference, self.positive),
            alt_test=versus.alternative(t, s.alt_epsilon, "neg_rmse" if s.ordinal else "accuracy"),
            under_attack=versus.under_attack(t, reference, self.positive),
            labels_needed=build.needed(c, s.policy.half_width),
            calibration_map=self._scores(),
            anchors={"sha256": table.anchors(t), "n": len(reference.of_item)},
            **self._statistics(c),
        )
        self.checks.extend((checks.polarity(c), checks.better_than_chance(c)))
        self.transfer()
        read = coverage(c)
        if read.value is None or read.value < s.policy.coverage:
            told = "nothing" if read.value is None else f"{read.value:.1%}"
            lost = [f"{i} ({t.status[i]})" for i, v in t.verdicts.items() if v is None and i in reference.of_item]
            which = f"; not read: {checks.shortened(lost)}" if lost else ""
            floor = f"the floor is {s.policy.coverage:.0%}"
            raise _Refused(6, f"coverage: {told} of the verdicts could be read, {floor}{which}")

    def _matrix(self, c: Confusion, unread: Mapping[str, int]) -> dict[str, Any]:
        labels = self.study.labels
        negative = next(v for v in labels if v != self.positive) if len(labels) == 2 else "other"
        section = build.confusion_section(c, unread, self.positive, negative)
        if len(labels) > 2:
            section["labels"] = list(labels)
            section["matrix"] = versus.matrix(self.table, self.reference, labels)
        return section

    def _scores(self) -> dict[str, Any] | None:
        label = self.reference.of_item
        scored = [i for i in label if i in self.table.scores] if self.table.scores else []
        truth = [label[i] == self.positive for i in scored]
        return score_calibration(scored, truth, [self.table.scores[i] for i in scored])

    def _statistics(self, c: Confusion) -> dict[str, Any]:
        out = build.binary_statistics(c)
        t, s = self.table, self.study
        out |= versus.clustered(t, self.reference, self.positive)
        if len(s.labels) > 2:
            out |= versus.multiclass(t, self.reference, s.labels)
        if s.ordinal:
            numbers = versus.ordinal(t, self.reference, s.labels)
            out |= {k: numbers.pop(k) for k in ("mean_bias", "qwk")}
            out["rates"] |= numbers
        if self.design == "judge_chosen":
            positives, everything = versus.judge_totals(t, self.positive)
            w = begg_greenes(c, positives, everything - positives)
            out |= {"tpr": w.tpr, "fpr": w.fpr, "prevalence": w.prevalence, "kappa": w.kappa}
        elif self.design == "stratified":
            w = stratified_rates(*versus.weighted_cells(t, self.reference, self.positive))
            out |= {"tpr": w.tpr, "fpr": w.fpr, "prevalence": w.prevalence, "kappa": w.kappa}
        elif self.design == "active":
            positives, everything = versus.judge_totals(t, self.positive)
            w = characteristics(self._drawn(), positives, everything - positives)
            out |= {"tpr": w.tpr, "fpr": w.fpr, "prevalence": w.prevalence, "kappa": w.kappa}
        positives, unlabelled = versus.unlabelled(t, self.reference, self.positive)
        if unlabelled:
            if self.design == "stratified":
                cells = versus.stratified_labels(t, self.reference, self.positive)
                self.corrected = correct_stratified(*cells, *versus.judge_totals(t, self.positive))
            elif self.design == "active":
                self.corrected = correct_active(self._drawn(), *versus.judge_totals(t, self.positive))
            else:
                self.corrected = correct_rate(self.design, c, positives, unlabelled)
            found = self.corrected
            out["rates"] |= {"judge_rate_unlabelled": found.raw, "corrected_rate": found.corrected}
            out["rates"] |= {"labels_only_rate": found.labels_only}
            out["rates"] |= {f"corrected_rate ({name})": e for name, e in found.others}
        return out

    def _drawn(self) -> Drawn:
        return versus.weighted_labels(self.table, self.reference, self.positive)

    def transfer(self) -> None:
        strata = versus.stratum_confusions(self.table, self.reference, self.positive)
        found = transfer_test(strata)
        tests = [
            {
                "rate": h.rate,
                "test": h.test,
                "p": h.p,
                "adjusted_p": h.adjusted,
                "strata": list(h.strata),
                "rates": list(h.rates),
                "detectable": h.detectable,
            }
            for h in found.tests
        ]
        section = {"status": found.status, "tests": tests, "sentence": found.sentence}
        self.profile = replace(self.profile, transfer=section)

    # ----------------------------------------------------------------- step 8

    def decide(self) -> None:
        p, policy = self.profile, self.study.policy
        for check in self.checks:
            if check.name == "polarity" and check.result == "fail":
                raise _Refused(7, check.detail)
            if check.name == "better_than_chance" and check.result == "fail":
                raise _Refused(8, check.detail)
        both = (("TPR", p.tpr), ("FPR", p.fpr))
        lacking = [f"{n} is undefined ({e.reason.replace('_', ' ')})" for n, e in both if e.value is None]
        wide = [n for n, e in both if e.value is not None and build.too_wide(e, policy.half_width)]
        if wide:
            lacking.append(f"{' and '.join(wide)} wider than +-{policy.half_width:g}")
        if lacking:  # how many labels more is told of the four counts, which do not know an empty stratum
            more = "" if "a stratum without labels" in (p.tpr.reason, p.fpr.reason) else f": {p.labels_needed}"
            raise _Refused(8, f"{', '.join(lacking)}{more}", "inconclusive")
        _bound(p.tpr, policy.tpr, "TPR", floor=True)
        _bound(p.fpr, policy.fpr, "FPR", floor=False)
        if self.design == "unknown":
            raise _Refused(8, "the items were chosen in an unknown way: valid for this subset only", "inconclusive")


def _bound(e: Estimate, limit: float | None, name: str, *, floor: bool) -> None:
    """Decide on the interval: wholly on the good side passes, wholly on the bad side is refused, else inconclusive."""
    if limit is None or e.low is None or e.high is None:
        return
    good = e.low >= limit if floor else e.high <= limit
    bad = e.high < limit if floor else e.low > limit
    if bad:
        raise _Refused(8, f"{name} {e.value:.3f} [{e.low:.3f}, {e.high:.3f}] misses the policy's {limit:g}")
    if not good:
        raise _Refused(8, f"{name} [{e.low:.3f}, {e.high:.3f}] contains the policy's {limit:g}", "inconclusive")


def study_address(study: Study) -> str:
    """Hash of what was declared in advance, to be stored with the labels."""
    text = canonical({"rubric": study.rubric, "labels": list(study.labels), "design": study.design, "seed": study.seed})
    return sha256(text.encode()).hexdigest()
