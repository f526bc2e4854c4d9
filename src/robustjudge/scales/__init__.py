"""Scales and the strict reader: which answers a judge may give, and how a reply is read as one of them."""

from robustjudge.scales.odds import expected_score
from robustjudge.scales.reader import READER_VERSION, Reading, read
from robustjudge.scales.scale import Scale, letters, likert, success_failure, yes_no

__all__ = [
    "READER_VERSION",
    "Reading",
    "Scale",
    "expected_score",
    "letters",
    "likert",
    "read",
    "success_failure",
    "yes_no",
]
