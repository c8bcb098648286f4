"""Closed and open queueing models with CPU quota: for the simulated lab and the benchmarks."""
