"""Measures: estimates with intervals from plain arrays and tables; numpy and scipy only, no I/O.

Every public function returns :class:`robustjudge.nouns.Estimate` (or a small frozen record of them).  An interval
never leaves the parameter's range and never has zero width; a figure that the data cannot carry is undefined, with
the reason.
"""
