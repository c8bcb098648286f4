"""Screen 8, recommendations."""
