"""Detectors outside of any judging: the texts to calibrate and evaluate them on, and what they do on those."""

from robustjudge.detectors.evaluation import Evaluation, evaluate, measured
from robustjudge.detectors.texts import FAMILIES, Texts, attacked, halves, honest, read

__all__ = ["FAMILIES", "Evaluation", "Texts", "attacked", "evaluate", "halves", "honest", "measured", "read"]
