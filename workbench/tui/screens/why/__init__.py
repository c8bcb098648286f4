"""The screen Why."""
