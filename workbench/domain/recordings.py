"""What the recordings that ship with the workbench show, for those who meet them first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.domain.sessions import SessionSummary

FIRST = "chain-real"
"""The one to start with."""


@dataclass(frozen=True)
class Recording:
    """A word for the list, and a sentence."""

    word: str
    shows: str


RECORDINGS: Mapping[str, Recording] = {
    FIRST: Recording(
        "start here",
        "haproxy, tinyproxy and both their chains on real containers; a chain 42 times slower than "
        "predicted and why, its correction, a recommendation that the lab confirmed.",
    ),
    "chain-first": Recording(
        "earlier",
        "The same campaign taken earlier, without evidence of why; the lab refuted greedy.",
    ),
    "demo-real": Recording(
        "the demo", "What `make demo` measures: haproxy, tinyproxy and both chains, ten loads each."
    ),
    "science-open": Recording(
        "open loop", "Profiles for the models: requests at a fixed rate, over many allocations."
    ),
    "science-open-second": Recording(
        "repeat", "The chains of science-open a second time: models are tested on it."
    ),
    "science-closed": Recording(
        "closed loop", "Profiles for the models: users that wait for each answer, then think."
    ),
    "science-closed-second": Recording(
        "repeat", "science-closed a second time, on other deployments: models are tested on it."
    ),
    "science-closed-chains": Recording(
        "chains", "Chains under users that wait for each answer, at many allocations."
    ),
}


def shipped(session: SessionSummary) -> Recording | None:
    """What is known of a recording that ships with the workbench; None of anything else."""
    return RECORDINGS.get(session.name) if session.kind == "bundle" else None
