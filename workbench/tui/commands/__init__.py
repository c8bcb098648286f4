"""What can be done, and by which key: the registry, the key map, palette and jump mode."""
