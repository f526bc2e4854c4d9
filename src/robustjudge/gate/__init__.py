"""The release gate: from a stored run to pass, fail or inconclusive, on confidence bounds, with a report to accept."""
