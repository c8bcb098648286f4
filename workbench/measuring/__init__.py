"""From request records and counters to a valid sample, or to why it is not (METHOD.md 4-6)."""
