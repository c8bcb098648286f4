"""The screens: sessions, one session live or replayed, help, questions."""
