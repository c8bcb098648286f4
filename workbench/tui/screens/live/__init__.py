"""Screen 4, one session while it is measured, or replayed."""
