"""What the recordings that ship are promised to hold (sessions/README.md)."""

from __future__ import annotations

import asyncio

import pytest

from workbench import paths
from workbench.domain.projection import SessionView
from workbench.store.session_file import open_session

CHAIN = "tinyproxy-haproxy"


def recorded(name: str) -> SessionView:
    session = open_session(paths.shipped("sessions") / name, read_only=True)
    return asyncio.run(session.view())


@pytest.mark.parametrize("name", ["demo-real", "chain-first", "chain-real", "science-open"])
def test_every_recording_opens_with_its_samples(name: str) -> None:
    view = recorded(name)
    assert view.samples_taken >= 79
    assert {"haproxy", "tinyproxy", CHAIN} <= {c.target for c in view.configurations}


@pytest.mark.parametrize(
    ("name", "target", "samples", "invalid"),
    [
        ("science-open-second", "haproxy-tinyproxy", 320, 0),
        ("science-closed", "haproxy", 192, 7),
        ("science-closed-second", "tinyproxy", 192, 14),
        ("science-closed-chains", "tinyproxy-haproxy", 320, 1),
        ("science-closed-chains", "haproxy-tinyproxy", 320, 13),
    ],
)
def test_a_sitting_holds_both_passes_of_its_target(
    name: str, target: str, samples: int, invalid: int
) -> None:
    view = recorded(name)
    own = [s for c in view.configurations if c.target == target for s in c.samples]
    assert len(own) == samples
    assert sum(not s.valid for s in own) == invalid
    assert {s.repetition for s in own} == {0, 1}


@pytest.mark.parametrize("name", ["chain-first", "chain-real"])
def test_one_holds_an_accepted_canary_and_a_verified_recommendation(name: str) -> None:
    view = recorded(name)
    models = view.chain_model(CHAIN, "p95_ms")
    assert models is not None
    assert models.current == 1
    decided = models.versions[0]
    assert decided.decision.by
    assert decided.proposal.gain
    issued = view.recommendation("r1")
    assert issued is not None
    found = issued.recommendation
    assert found.model_version == 1
    assert found.verified is not None
    assert found.verified.met
    assert found.verified.sample_id
