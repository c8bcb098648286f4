"""Screen 6, the models of a session."""
