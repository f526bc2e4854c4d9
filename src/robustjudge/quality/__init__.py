"""Content quality: how good is a text for a case, apart from what any judge says of it (tasks.md section 5)."""

from __future__ import annotations

from robustjudge.quality.base import (
    Change,
    Evaluator,
    MetricUnavailable,
    Rating,
    change,
    default_evaluator,
    evaluator,
    evaluator_names,
    rate,
)

__all__ = [
    "Change",
    "Evaluator",
    "MetricUnavailable",
    "Rating",
    "change",
    "default_evaluator",
    "evaluator",
    "evaluator_names",
    "rate",
]
