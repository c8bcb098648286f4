"""Profile models with the scikit-learn interface, and breakpoints (METHOD.md 7, 8)."""
