"""Closed and open queueing models with CPU quota: for the simulated lab and the benchmarks.

=============  =========================================================================
module         what it holds
=============  =========================================================================
`laws`         operational laws: bounds of the throughput
`service`      service-time distributions
`stations`     a FIFO station with worker threads under a CFS quota, request by request
`quota`        the same for one thread, vectorised over the requests of a quota period
`network`      stations composed to routes, the load that is offered, what came of it
`simulation`   requests through a network: feed-forward, in order, or event by event
=============  =========================================================================

Times are seconds; time 0 is when the load begins. Nothing here knows a clock or a network
function: `workbench.labs.simulated` gives these their meaning.
"""
