"""Do the numbers hold? Rules, judge and sampler against the truth of the simulated lab.

=============  =========================================================================
module         what
=============  =========================================================================
`families`     the traps of METHOD.md 11, as campaigns on the simulated lab
`playing`      a campaign under one seed, as the engine runs it, without the engine
`long_runs`    truth of a configuration: long virtual runs without noise
`truths`       true breakpoints: the same rules on long runs without noise; cached
`stored`       samples of a run, so that it can be interrupted and scored again
`scoring`      coverage, width, interval score
`faults`       faults injected, and who was blamed
`seconds`      what a valid sample costs, against the papers' fixed protocols
`tables`       all of it as the tables of docs/truth.md
=============  =========================================================================

`make bench-truth` runs the whole, `tests/truth` twenty seeds of each.
"""
