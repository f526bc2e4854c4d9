"""Results of a run in the shape of the paper's figures and tables, beside the published numbers."""

from robustjudge.shapes.base import Shape, Source, agreement
from robustjudge.shapes.build import built, source_of, write

__all__ = ["Shape", "Source", "agreement", "built", "source_of", "write"]
