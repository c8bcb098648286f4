"""What a sampler may not ask: of a recording what was not recorded, blocks that go back."""

from __future__ import annotations

from dataclasses import replace

from synthetic_function import CONFIGURATION, OPEN, RATE, TARGET, make_sample

from workbench.sampling.base import Ask, Space
from workbench.sampling.guard import complaint


def test_a_load_that_was_not_recorded_is_no_answer_of_a_sampler() -> None:
    space = Space(TARGET, (CONFIGURATION,), RATE, OPEN, "p95_ms", 1000.0, 0.005, None, 1)
    recorded = replace(space, loads={CONFIGURATION: (40.0, 160.0, 640.0)})
    ask = Ask(CONFIGURATION, 150.0, 0, 40.0, 160.0, "between two of them")
    assert complaint(ask, space, ()) == ""
    assert complaint(ask, recorded, ()) == (
        "asks for a load of 150, which is not among those recorded"
    )
    assert complaint(replace(ask, wl=160.0), recorded, ()) == ""


def test_blocks_that_a_sampler_does_not_plan_are_those_of_points_asked_for_by_others() -> None:
    space = Space(TARGET, (CONFIGURATION,), RATE, OPEN, "p95_ms", 1000.0, 0.005, None, 1)
    ask = Ask(CONFIGURATION, 150.0, 0, 40.0, 160.0, "one more")
    taken = [make_sample(160.0, {"p95_ms": 5.0}, block=3)]
    assert complaint(ask, space, taken) == "asks for block 0 after block 3"
    assert complaint(ask, space, taken, 4) == "asks for block 0 after block 3"
    assert complaint(ask, space, taken, 1) == ""
