"""Small widgets of the screens: rows of text, configurations, the line of keys."""
