"""Scripted judges: known flaws, exactly known rates, no network; they see rendered text only.

``open_scripted("scripted/noisy")`` opens one by name, ``ZOO`` lists them, :mod:`.truth` computes their true rates.
"""

from robustjudge.models.scripted.base import Constant, Outcome, Scripted
from robustjudge.models.scripted.faulty import BadParser, Down, Drifting, NoisyFlip, Refuser, Slow, Truncating
from robustjudge.models.scripted.fooled import Copycat, Echo, Fenced, Gameable, LastInstruction, Obedient
from robustjudge.models.scripted.named import ZOO, open_scripted
from robustjudge.models.scripted.plain import FirstPosition, LengthBiased, Noisy, Perfect, Table, perfect
from robustjudge.models.scripted.taste import Biased, CitationTruster, MarkdownLover
from robustjudge.models.scripted.whitebox import Additive, Hamming

__all__ = [
    "ZOO",
    "Additive",
    "BadParser",
    "Biased",
    "CitationTruster",
    "Constant",
    "Copycat",
    "Down",
    "Drifting",
    "Echo",
    "Fenced",
    "FirstPosition",
    "Gameable",
    "Hamming",
    "LastInstruction",
    "LengthBiased",
    "MarkdownLover",
    "Noisy",
    "NoisyFlip",
    "Obedient",
    "Outcome",
    "Perfect",
    "Refuser",
    "Scripted",
    "Slow",
    "Table",
    "Truncating",
    "open_scripted",
    "perfect",
]
