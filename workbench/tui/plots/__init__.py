"""Plots in terminal cells, and pictures of screens."""
