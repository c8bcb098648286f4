"""How often each cause was right in trials; written by `make bench-why` from its results."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.domain.diagnoses import TrialRecord

TRIALS: Mapping[str, TrialRecord] = {
    "CPU wait by a neighbour": TrialRecord(3, 3, 0.292, 1.0),
    "delayed acknowledgement": TrialRecord(80, 80, 0.955, 1.0),
    "listen overflow": TrialRecord(2, 2, 0.158, 1.0),
    "quota throttling": TrialRecord(23, 23, 0.852, 1.0),
    "retransmission stall": TrialRecord(2, 2, 0.158, 1.0),
}
