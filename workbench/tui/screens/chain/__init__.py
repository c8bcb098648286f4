"""Screen 2, the chain builder."""
