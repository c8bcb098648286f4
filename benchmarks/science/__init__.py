"""Sampling and models against each other on surfaces whose truth is known, and on recordings.

`make bench-science` fills docs/science.md; `cd benchmarks && python -m science --help`.
"""
