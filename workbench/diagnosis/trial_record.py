"""How often each cause was right in trials; written by `make bench-why` from its results."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.domain.diagnoses import TrialRecord

TRIALS: Mapping[str, TrialRecord] = {
    "CPU wait by a neighbour": TrialRecord(9, 9, 0.664, 1.0),
    "delayed acknowledgement": TrialRecord(90, 90, 0.96, 1.0),
    "listen overflow": TrialRecord(7, 7, 0.59, 1.0),
    "memory reclaim or OOM": TrialRecord(6, 6, 0.541, 1.0),
    "offload off": TrialRecord(5, 5, 0.478, 1.0),
    "quota throttling": TrialRecord(42, 42, 0.916, 1.0),
    "retransmission stall": TrialRecord(14, 14, 0.768, 1.0),
    "small window": TrialRecord(8, 9, 0.518, 0.997),
}
