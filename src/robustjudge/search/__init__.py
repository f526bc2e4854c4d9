"""The prompt optimiser, still pure: a typed grid of components, Algorithm 1 as published, and racing on paired cases."""

from robustjudge.search.book import Book, Result, Spent
from robustjudge.search.coordinate import Ascent, CoordinateAscent
from robustjudge.search.evalue import log_e
from robustjudge.search.grid import Component, Grid, Option
from robustjudge.search.race import Answer, Problem, Race

__all__ = [
    "Answer",
    "Ascent",
    "Book",
    "Component",
    "CoordinateAscent",
    "Grid",
    "Option",
    "Problem",
    "Race",
    "Result",
    "Spent",
    "log_e",
]
