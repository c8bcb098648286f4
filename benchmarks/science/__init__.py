"""Sampling and models against each other on surfaces whose truth is known, and on recordings.

`make bench-science` writes the tables behind docs/science.md;
`cd benchmarks && python -m science --help`.
"""
