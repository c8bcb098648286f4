"""Chains in numbers: predictions from stand-alone profiles, canaries, recommendations.

`make bench-chains` fills the tables of docs/chain-science.md.
"""
