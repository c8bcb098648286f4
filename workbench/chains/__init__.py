"""From stand-alone profiles to the chain.

=================  ================================================================================
module             what
=================  ================================================================================
`base`             what a rule must do and what it is given; walking a chain
`rules`            the built-in rules, and which one is the default for a KPI
`distributions`    response times as distributions made from percentiles; their sums
`quasi_random`     seeded, evenly spread random numbers
`function_profiles`  the functions of a chain, their profiles, and whether these may meet
`composition`      `ChainForecaster`: a chain where a profile would do
`prediction`       one operating point: what limits, where that changes, the next step of vCPU
`usage`            the CPU that each function is expected to use
=================  ================================================================================
"""
