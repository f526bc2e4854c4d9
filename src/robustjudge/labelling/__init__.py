"""Blind labelling by several people: a local page, a store that loses nothing, and the long-form file at the end."""

from robustjudge.labelling.app import app_of
from robustjudge.labelling.store import Item, Place, Store

__all__ = ["Item", "Place", "Store", "app_of"]
