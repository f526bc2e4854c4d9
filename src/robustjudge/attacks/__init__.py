"""Attacks: everything that changes a response with a stated expectation about the verdict.

Import :func:`robustjudge.attacks.library.attack` to build one by name.  Use on your own or authorised judges only.
"""
