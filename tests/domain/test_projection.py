"""The state of a screen is the fold of events, however the events arrived."""

from __future__ import annotations

from workbench.domain import codec
from workbench.domain.events import (
    ConfigurationFinished,
    Event,
    ModelFitted,
    PointAsked,
    RunFinished,
    RunPaused,
    RunStarted,
    SampleTaken,
)
from workbench.domain.messages import Viewed
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.profiles import Breakpoint
from workbench.domain.projection import LOG_LINES, SessionView
from workbench.domain.samples import Estimate, Finding, Sample

QUARTER = Configuration({"haproxy.vcpu": 0.25}, {"filesize_bytes": 10_000})


def sample(wl: float, *, valid: bool = True) -> Sample:
    findings = () if valid else (Finding("little", 0.9, 0.99, "half of the plan was sent"),)
    return Sample(
        id=f"haproxy/x/{wl:g}/0",
        point=OperatingPoint("haproxy", QUARTER, wl),
        kpis={"p95_ms": Estimate(2.0, 1.8, 2.2)},
        usage={},
        valid=valid,
        findings=findings,
        labels=(),
        load_model="open-constant",
        kpi_definition="planned",
        generator="simulated 1",
        planned=100,
        completed=100,
        errors=0,
        unfinished=0,
        windows=1,
        batches=6,
        throttled_share=0.0,
        straddle_share=0.0,
        started_at=10.0,
        measured_s=3.0,
        lab_s=4.5,
    )


def story() -> list[Event]:
    asked = PointAsked("haproxy", QUARTER, 100.0, 0, 100.0, 100.0, "lower end")
    found = Breakpoint("haproxy", QUARTER, "capacity", "p95_ms", "found", 900.0, 850.0, 950.0)
    facts = [
        RunStarted(resumed=False, budget_s=None),
        asked,
        SampleTaken(sample(100.0)),
        SampleTaken(sample(1000.0, valid=False)),
        ModelFitted("haproxy", QUARTER, None, (found,), None, 0.1),
        RunPaused("somebody"),
        ConfigurationFinished("haproxy", QUARTER, "converged", 2, 1),
        RunFinished("done", 2, 1, 10.0, 9.0, (found,)),
    ]
    return [Event(i, float(i), "demo-1", fact) for i, fact in enumerate(facts, start=1)]


def fold(events: list[Event]) -> SessionView:
    view = SessionView("demo-1")
    for event in events:
        view.apply(event)
    return view


def test_snapshot_plus_later_events_equals_the_whole_fold() -> None:
    events = story()
    for cut in range(len(events) + 1):
        snapshot = Viewed(fold(events[:cut]))
        arrived = codec.message_from_plain(
            codec.loads(codec.dumps(codec.message_to_plain(snapshot)))
        )
        assert isinstance(arrived, Viewed)
        for event in events[cut:]:
            arrived.view.apply(event)
        assert arrived.view == fold(events)


def test_an_event_that_comes_twice_counts_once() -> None:
    events = story()
    assert fold([event for event in events for _ in range(2)]) == fold(events)


def test_what_the_fold_shows() -> None:
    view = fold(story())
    (configuration,) = view.configurations
    assert view.state == "finished"
    assert (configuration.state, len(configuration.samples), configuration.invalid) == (
        "converged",
        2,
        1,
    )
    assert configuration.asked is None
    assert configuration.breakpoints[0].wl == 900.0
    assert view.lab_s == 9.0
    assert any("not valid: little" in line.text and line.level == "warning" for line in view.log)


def test_the_log_is_bounded() -> None:
    events = [Event(i, 0.0, "demo-1", RunPaused("")) for i in range(1, LOG_LINES + 50)]
    view = fold(events)
    assert len(view.log) == LOG_LINES
    assert view.log[-1].seq == LOG_LINES + 49
