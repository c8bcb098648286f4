"""What can be done, and by which key: registry of actions, key map, catalogue of screens."""
