"""The words of the workbench: frozen dataclasses, messages with one JSON codec, errors.

The ground floor of the house. It imports nothing of the workbench, and only `msgspec` from
outside, so that every door can afford it.

=================  =====================================================================
module             words
=================  =====================================================================
`errors`           one base, one subclass per area; every error is a sentence
`parameters`       parameter, configuration, load model, operating point, SLA
`topology`         VNF template, VNF, series, parallel, target
`campaign`         what is to be profiled and how: the test descriptor, resolved
`samples`          what was measured: sample, window, usage, findings
`profiles`         what was concluded: curve, breakpoint
`lab`              facts about a host, what the doctor found
`sessions`         one line per session, and the pages of its tables
`events`           facts, numbered; ticks, not
`messages`         commands, queries, replies, hello
`projection`       the state that a screen shows, folded from events; what an event says of
                   `configurations`, `trials`, `conclusions` (models, recommendations) and
                   `canaries` is theirs to fold, and `event_log` has its lines
`codec`            the one JSON codec of all of the above
=================  =====================================================================
"""
