"""`why` by the installed command: old sessions say what was not collected, new ones the cause."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from driving import Workbench
from session_making import EPOCH, created, facts

from workbench.cli.why import DIAGNOSIS
from workbench.domain.events import SampleTaken
from workbench.domain.observations import NOT_COLLECTED, Observation
from workbench.measuring.histograms import build
from workbench.store.session_file import SessionFile

SESSION = "waits"


@pytest.fixture(scope="module")
def measured(shared: Workbench) -> Workbench:
    """A session whose chain takes 44 ms with an acknowledgement delayed for each request."""
    asyncio.run(_write(shared))
    return shared


async def _write(bench: Workbench) -> None:
    file = await SessionFile.create(
        bench.root / "sessions" / f"{SESSION}.duckdb", created(), at=EPOCH
    )
    slow = build(np.linspace(0.0425, 0.0455, 33))
    for number, (fact, taken) in enumerate(facts(), 1):
        if isinstance(fact, SampleTaken) and taken is not None:
            windows = tuple(replace(w, response=slow, service=slow) for w in taken.windows)
            seen = tuple(
                Observation(window, name, "delayed_acks", 33.0 if name == "ha" else 0.0)
                for window in range(len(windows))
                for name in fact.sample.usage
            )
            taken = replace(taken, windows=windows, observations=seen)
        await file.append(fact, at=EPOCH + number, measurement=taken)
    await file.close()


def test_a_recording_from_before_says_what_was_not_collected(shared: Workbench) -> None:
    narrow = replace(shared, variables={"COLUMNS": "80", "NO_COLOR": "1"})
    done = narrow.run("why", "chain-first", "--chain", "tinyproxy-haproxy")
    text = " ".join(done.stdout.split())
    assert text.startswith("Cannot tell: it takes 32.1 times as long as its functions alone")
    assert NOT_COLLECTED in text
    assert "more vCPU brings nothing" in text, "what it does say is told all the same"
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_recording_that_ships_names_the_delayed_acknowledgement_first(
    shared: Workbench,
) -> None:
    found = shared.json("why", "chain-real", "--json")
    assert found["target"] == "tinyproxy-haproxy", "of two chains the one that departs most"
    first = found["verdicts"][0]
    assert (first["cause"], first["component"]) == ("delayed acknowledgement", "haproxy")
    assert found["sentence"].startswith("Delayed acknowledgements of haproxy, 1.0 per request")
    assert "not CPU (usage at most" in found["sentence"]
    assert found["agree"] >= 0.7 * found["samples"]
    other = shared.json("why", "chain-real", "--chain", "haproxy-tinyproxy", "--json")
    assert "delayed acknowledgement" not in {v["cause"] for v in other["verdicts"]}


def test_the_cause_comes_first_with_its_evidence(measured: Workbench) -> None:
    found = measured.json("why", SESSION, "--chain", "tiny-ha", "--at", "filesize=10kB", "--json")
    assert list(found) == list(DIAGNOSIS)
    first = found["verdicts"][0]
    assert (first["cause"], first["component"]) == ("delayed acknowledgement", "ha")
    assert found["sentence"].startswith("Delayed acknowledgements of ha, 1.0 per request")
    assert (found["agree"], found["samples"]) == (4, 4)
    assert found["missing"]["cpu_wait_s"] == "not collected"
    done = measured.run("why", SESSION, "--sample", found["sample"])
    assert "What to do: Set TCP_NODELAY" in done.stdout


def test_what_nobody_measured_is_refused_with_what_there_is(measured: Workbench) -> None:
    done = measured.run("why", SESSION, "--chain", "tiny-ha", "--at", "filesize=50kB", expect=2)
    assert "Measured are 100, 200, 400, 800" in done.stderr
    done = measured.run("why", SESSION, "--sample", "nobody/took/this/0", expect=2)
    assert "has no sample 'nobody/took/this/0' of haproxy, tiny-ha" in done.stderr
