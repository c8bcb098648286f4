"""One client for every door."""
