"""Profiles: a judge as a measuring instrument, published as one content-addressed JSON file.

``calibrate_judge`` is the three-argument form; ``calibrate`` runs the whole protocol on a long-form file; ``verify``,
``diff`` and ``reconcile`` read what others published.
"""

from robustjudge.profile.apply import CorrectedLine, Range, attacked_range, correct_run
from robustjudge.profile.compare import (
    Difference,
    Reconciled,
    Verification,
    correct_with,
    diff,
    reconcile,
    schema,
    verify,
)
from robustjudge.profile.frame import Drawn, draw, sitting
from robustjudge.profile.longform import BadLabel, LabelRow, read_labels
from robustjudge.profile.package import Check, JudgeProfile, load_profile, save_profile
from robustjudge.profile.page import page
from robustjudge.profile.protocol import Calibration, CalibrationPolicy, Study, calibrate
from robustjudge.profile.simple import calibrate_judge

__all__ = [
    "BadLabel",
    "Calibration",
    "CalibrationPolicy",
    "Check",
    "CorrectedLine",
    "Difference",
    "Drawn",
    "JudgeProfile",
    "LabelRow",
    "Range",
    "Reconciled",
    "Study",
    "Verification",
    "attacked_range",
    "calibrate",
    "calibrate_judge",
    "correct_run",
    "correct_with",
    "diff",
    "draw",
    "load_profile",
    "page",
    "read_labels",
    "reconcile",
    "save_profile",
    "schema",
    "sitting",
    "verify",
]
