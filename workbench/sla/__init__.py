"""Which allocation carries an SLA, at what cost and how surely. Pure.

==================  ===============================================================================
module              what
==================  ===============================================================================
`sla_query`         SLAs as one question: its limits, load and confidence, or why it is none
`profiled`          what samples were taken of
`performance`       what is predicted of a deployment; how far that is from a limit
`costs`             cost functions, and allowed allocations by rising cost
`calibration`       the risk of what was selected because it passed (METHOD.md 10)
`max_load`          the largest load that a deployment carries (paper A, Eq. 3)
`recommendation`    the cheapest allocation that holds (paper A, Eq. 2)
`replicas`          several instances of a function behind a load balancer
`greedy`            scaling without profiles (paper A, Algorithm 1)
==================  ===============================================================================
"""
