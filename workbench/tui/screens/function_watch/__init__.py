"""The screen Watch."""
