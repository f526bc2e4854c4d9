"""People decide here: a queue of findings and generated inputs, a local page, and an audit trail that only grows."""

from robustjudge.review.store import Conflict, Event, Store, decisions, open_store

__all__ = ["Conflict", "Event", "Store", "decisions", "open_store"]
