"""Screen 5, predicted against measured."""
