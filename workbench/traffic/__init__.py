"""Load generators: how each is called and what its output means."""
