"""Loaders of the eight task data sets of the RobustJudge paper (arXiv 2506.09443), one module per source format."""
