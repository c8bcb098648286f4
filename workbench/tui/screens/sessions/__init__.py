"""Screen 1, the sessions of a workspace."""
