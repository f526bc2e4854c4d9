"""One model of the transformers library is loaded at a time: while it loads, it changes how every thread makes modules."""

from threading import Lock

LOADING = Lock()
"""Held while weights are loaded; two at once gave tensors without values, or with random ones."""
