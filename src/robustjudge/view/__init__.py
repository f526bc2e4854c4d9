"""Browse runs on a local page: filter, drill to one trial and its calls, compare, decide again; no call is ever made."""
