"""Screen 7, canaries and what they propose."""
