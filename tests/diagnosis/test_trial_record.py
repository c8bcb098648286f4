"""What ships of the trials of `make bench-why` is what its results say."""

from __future__ import annotations

import json
from pathlib import Path

from evidence_making import REQUESTS, chained, known

from workbench.diagnosis.explaining import diagnose
from workbench.diagnosis.rules import RULES
from workbench.diagnosis.trial_record import TRIALS
from workbench.domain.diagnosis_tables import how_often_right

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "why.json"
NEIGHBOUR = "CPU wait by a neighbour"


def test_the_record_is_that_of_the_stored_trials() -> None:
    rows = json.loads(RESULTS.read_text())
    of_host = [
        r for r in rows
        if r["said"] == NEIGHBOUR and NEIGHBOUR not in r["right"] and r["others_cores"] > 0.5
    ]  # fmt: skip
    rows = [r for r in rows if r["said"] and r not in of_host]
    assert set(TRIALS) == {r["said"] for r in rows}
    assert set(TRIALS) <= {rule.cause for rule in RULES}
    for cause, record in TRIALS.items():
        own = [r["said"] in r["right"] for r in rows if r["said"] == cause]
        assert (record.right, record.named) == (sum(own), len(own))
        assert record.low <= record.right / record.named <= record.high


def test_a_verdict_says_how_often_it_was_right() -> None:
    seen = chained((0.0435, 0.044, 0.0445), ha={"delayed_acks": float(REQUESTS)})
    first = diagnose(known(seen), seen, RULES).verdicts[0]
    assert first.trials is TRIALS["delayed acknowledgement"]
    assert f"right in {first.trials.right} of {first.trials.named} bench trials" in how_often_right(
        first
    )
