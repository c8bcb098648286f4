"""What to measure next and when to stop, as ask and tell."""
