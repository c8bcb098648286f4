"""From request records and counters to a valid sample, or to why it is not (METHOD.md 4-6).

=============  =========================================================================
module         what it decides
=============  =========================================================================
`records`      nothing: what a lab hands over
`judging`      whether a visit is settled; the sample; how long to drive next
`warmup`       where the steady part of a drive begins; how long a drive should be
`steadiness`   whether it changes while it is watched; whether a backlog grows
`stretches`    one drive cut to its window, batch by batch
`pool`         the windows of one sample taken together
`kpis`         every KPI with its interval, or as a lower bound, or absent
`validity`     the findings, in the order of METHOD.md 4
`remarks`      the labels, each with the figure that earned it
`stalls`       whether the whole host stood still in a window
`bypass`       what source and sink do on their own at the same load
`lag`          whether the source or the function kept planned requests waiting
`censoring`    percentiles where some requests never ended
`floor`        what a visit scatters by, pooled over the session's repetitions
`narrowing`    whether another window is worth it for the interval
`intervals`    t over batches; Wilson for shares; Poisson for few events
`delays`       one-way delays of packets: percentiles over batches, jitter
`histograms`   log buckets of one per cent: build, merge
`flow`         how many requests are due and in flight over time
`usage`        counters to usage
=============  =========================================================================
"""
