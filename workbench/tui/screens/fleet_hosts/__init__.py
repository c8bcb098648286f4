"""The screen Hosts."""
