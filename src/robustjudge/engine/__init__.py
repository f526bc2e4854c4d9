"""The impure layer: drivers that answer asks, the ledger and the limits."""
