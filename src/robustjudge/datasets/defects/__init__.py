"""Ways to spoil a good text on purpose, each with a named defect and a test that the defect is there."""
