"""Causes in the lab itself: source and sink."""

from __future__ import annotations

from workbench.diagnosis.base import Case, Match, Rule
from workbench.measuring.usage import SINK, SOURCE

STARVED = 0.2
"""Strength where the host is saturated, too: who sets the pace may have been starved itself."""
OF_THE_LAB = {
    "source_saturated": SOURCE,
    "little": SOURCE,
    "sink_saturated": SINK,
    "bypass_limited": SINK,
}


def _lab(case: Case) -> Match | None:
    reasons = {finding.reason for finding in case.seen.sample.findings}
    for finding in case.seen.sample.findings:
        if (who := OF_THE_LAB.get(finding.reason)) is not None:
            return Match(
                who,
                STARVED if "host_saturated" in reasons else 1.0,
                f"{who} sets the pace and not the functions: {finding.evidence}",
                (f"{finding.reason}: {finding.figure:.3g}, limit {finding.limit:.3g}",),
            )
    return None


LAB = Rule(
    "source or sink limited",
    (),
    "a finding of the sample says so (docs/validity.md)",
    "Give source and sink cores of their own, another generator, or lower the load",
    "a function that is slow",
    "the bypass: the same load without the functions",
    _lab,
)
