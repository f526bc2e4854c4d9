"""Models: the only code that speaks to endpoints or loads weights."""
