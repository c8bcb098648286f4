"""Screen 3, the campaign of the open draft: its settings and what it would cost."""
