"""How far a run is and what is left of it, in lab time and by the clock."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from session_making import facts

from workbench.domain.events import CampaignPlanned, Progress
from workbench.domain.sessions import Plan, PlannedConfiguration
from workbench.engine.runs.progress import ProgressReport


class Run:
    """A run of which a test moves the clock, the lab's time and the samples."""

    def __init__(self, samples: int, each_s: float, besides_s: float) -> None:
        self.wall = self.lab = 0.0
        self.taken = 0
        self.ticks: list[Progress] = []
        (first,) = (f for f, _ in facts() if isinstance(f, CampaignPlanned))
        configuration = first.plan.configurations[0]
        planned = PlannedConfiguration(
            0, configuration.target, configuration.configuration, samples, samples * each_s
        )
        plan = Plan("demo", "sim", (planned,), samples, samples * each_s + besides_s)
        place = SimpleNamespace(state="sampling", ended=False)
        view = SimpleNamespace(session="s", plan=plan, configuration=lambda key: place)
        self._view, self._place = view, place
        out = SimpleNamespace(view=view, tick=self.ticks.append)
        self.report = ProgressReport(out, lambda: self.lab, 0.0, lambda: self.wall)  # type: ignore[arg-type]
        self.phase("queued")

    def phase(self, phase: str, wall_s: float = 0.0, lab_s: float = 0.0) -> Progress:
        self.wall, self.lab = self.wall + wall_s, self.lab + lab_s
        self._view.samples_taken = self._place.taken = self.taken
        self.report.phase(phase, None)
        return self.ticks[-1]

    def sample(self, lab_s: float, wall_s: float) -> None:
        self.phase("fitting", wall_s, lab_s)
        self.report.samples_s += lab_s
        self.taken += 1


def test_what_is_left_once_the_bypass_is_measured() -> None:
    """It was once spread over all samples, as if it were still to come."""
    run = Run(samples=10, each_s=5.0, besides_s=30.0)
    assert run.phase("deploying").eta_s == pytest.approx(80.0)
    run.phase("measuring", 30.0, 30.0)
    run.sample(lab_s=5.0, wall_s=5.0)
    assert run.phase("measuring", 1.0).eta_s == pytest.approx(45.0)


def test_by_the_clock_it_is_what_samples_take_with_their_fits_and_without_pauses() -> None:
    run = Run(samples=10, each_s=5.0, besides_s=30.0)
    run.phase("deploying", wall_s=100.0)
    run.phase("measuring", 30.0, 30.0)
    assert run.ticks[-1].eta_wall_s is None, "nothing was measured yet"
    for _ in range(3):
        run.sample(lab_s=5.0, wall_s=5.0)
        run.phase("measuring", wall_s=2.5)
    run.phase("paused")
    tick = run.phase("measuring", wall_s=1000.0)
    assert tick.eta_s == pytest.approx(35.0)
    assert tick.eta_wall_s == pytest.approx(35.0 * 1.5, rel=0.3)
    assert tick.wall_s == pytest.approx(30.0 + 3 * 7.5 + 1000.0)
