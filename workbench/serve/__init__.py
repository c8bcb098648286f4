"""The SSH door: screens, a few commands and exported files for those whose key is known."""
