"""Tables out of a run, and two runs side by side: what leaves the house for people and machines."""

from robustjudge.exports.pairing import Flip, Side, compare
from robustjudge.exports.table import FORMATS, export

__all__ = ["FORMATS", "Flip", "Side", "compare", "export"]
