"""Frozen, versioned plans as data files, and the paper's printed figures."""
