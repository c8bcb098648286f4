"""A stored session played again: where it is, where one can go, what was decided when."""
