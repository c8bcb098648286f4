"""Of a recording nothing can be asked but what was recorded, whichever sampler asks."""

from __future__ import annotations

from dataclasses import replace

from synthetic_function import CONFIGURATION, OPEN, RATE, TARGET

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
