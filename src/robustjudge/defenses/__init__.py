"""Defenses: middleware around a judge, symmetric in all untrusted texts; one idea per file.

``defense_of`` (:mod:`robustjudge.defenses.library`) builds one by name, ``Chain`` puts several in a stated order.
"""
