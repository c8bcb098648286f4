"""The state of a screen is the fold of events, however the events arrived."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import cast

import pytest

from workbench.domain import codec
from workbench.domain.canaries import CanaryPlan, CanaryView
from workbench.domain.event_log import LOG_LINES
from workbench.domain.events import (
    ConfigurationFinished,
    Event,
    InfluenceMeasured,
    ModelFitted,
    PauseRequested,
    PointAsked,
    RunContinued,
    RunFinished,
    RunPaused,
    RunStarted,
    SampleTaken,
    TargetDeployed,
    TargetModelled,
    TrialsFinished,
    TrialsStarted,
)
from workbench.domain.messages import Viewed
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.profiles import Breakpoint, ModelScore, ParameterInfluence, TargetModel
from workbench.domain.projection import SessionView
from workbench.domain.samples import Estimate, Finding, Sample
from workbench.domain.session_tables import ending
from workbench.domain.trials import TrialsView

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


def modelled(version: int, kpi: str = "p95_ms") -> TargetModelled:
    score = ModelScore("haproxy", kpi, "lasso2", 1, log_error=0.1, best=True)
    model = TargetModel(
        "haproxy", kpi, version, "profile", "lasso2", {"degree": 2}, 1000.0, ("haproxy/x/100/0",),
        (0.5, 1.5), 2, score, {"numpy": "2"},
    )  # fmt: skip
    return TargetModelled(model, (score,), 0.2)


def influence(share: float) -> InfluenceMeasured:
    weights = ((share, 1.0 - share),)
    return InfluenceMeasured(
        ParameterInfluence("haproxy", ("haproxy.vcpu", "rate_rps"), ("p95_ms",), weights, 3)
    )


def mutable(value: object) -> dict[int, str]:
    """Ids of all that can change within a view, by where it is."""
    found: dict[int, str] = {}

    def walk(each: object, where: str) -> None:
        frozen = is_dataclass(each) and type(each).__dataclass_params__.frozen  # type: ignore[attr-defined]
        if isinstance(each, (list, dict)):
            found[id(each)] = where
            children = enumerate(each) if isinstance(each, list) else each.items()
            for key, child in children:
                walk(child, f"{where}[{key}]")
        elif is_dataclass(each) and not frozen:
            found[id(each)] = where
            for item in fields(each):
                walk(getattr(each, item.name), f"{where}.{item.name}")

    walk(value, "view")
    return found


def test_a_copy_of_a_view_equals_it_and_shares_nothing_that_can_change() -> None:
    view = SessionView("s")
    for event in story():
        view.apply(event)
    view.canaries.append(CanaryView(cast("CanaryPlan", None), "p95_ms", "ann", 1.0))
    view.trials.append(TrialsView("canary", "ann", 1.0))
    assert view.configurations
    copy = view.copy()
    assert copy == view
    shared = mutable(view).keys() & mutable(copy).keys()
    assert [mutable(view)[each] for each in shared] == []
    assert {".written", ".models", ".drifts", ".canaries[0].steps", ".trials[0].samples"} <= {
        where.removeprefix("view") for where in mutable(copy).values()
    }


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
        modelled(1),
        influence(0.25),
        modelled(1, "mean_ms"),
        modelled(2),
        influence(0.5),
    ]
    return [Event(i, float(i), "demo-1", fact) for i, fact in enumerate(facts, start=1)]


def trials_story() -> list[Event]:
    """Two canaries after the campaign, of which the engine survived the second."""
    taken = replace(sample(100.0), id="haproxy/x/100/0/canary", purpose="canary")
    started = TrialsStarted("canary", "ann", 60.0)
    facts = [
        *(event.fact for event in story()),
        started,
        TargetDeployed("haproxy", "simulated 1", True, "answers", 1.5, 7),
        SampleTaken(taken),
        RunPaused("somebody"),
        started,
        RunPaused("somebody"),
        RunContinued("somebody"),
        SampleTaken(replace(taken, id="haproxy/x/100/1/canary", valid=False)),
        TrialsFinished("budget", 1, 1, 9.0, 6.0, "60 s of 60 s"),
    ]
    return [Event(i, float(i), "demo-1", fact) for i, fact in enumerate(facts, start=1)]


def fold(events: list[Event]) -> SessionView:
    view = SessionView("demo-1")
    for event in events:
        view.apply(event)
    return view


def test_snapshot_plus_later_events_equals_the_whole_fold() -> None:
    events = trials_story()
    for cut in range(len(events) + 1):
        snapshot = Viewed(fold(events[:cut]))
        arrived = codec.message_of(codec.dumps(codec.message_to_plain(snapshot)))
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


@pytest.mark.parametrize(("wl", "told"), [(122.222, "122.2"), (1234567.8, "1234568")])
def test_a_sample_is_told_in_the_log_without_powers_of_ten(wl: float, told: str) -> None:
    slow = replace(sample(wl), kpis={"p95_ms": Estimate(3331.2, 3000.0, 3600.0)})
    facts = [RunStarted(resumed=False, budget_s=None), SampleTaken(slow)]
    view = fold([Event(i, float(i), "demo-1", fact) for i, fact in enumerate(facts, start=1)])
    assert view.log[-1].text == f"haproxy {QUARTER.key} at {told}: p95 3330 ms"


def test_models_have_versions_by_kpi_and_influence_is_the_latest() -> None:
    view = fold(story())
    assert [(m.kpi, m.version, m.seq) for m in view.models] == [
        ("p95_ms", 1, 9),
        ("mean_ms", 1, 11),
        ("p95_ms", 2, 12),
    ]
    assert view.model("haproxy", "p95_ms") == view.models[-1]
    assert view.model("haproxy", "loss_pct") is None
    assert [view.next_version("haproxy", kpi) for kpi in ("p95_ms", "mean_ms", "loss_pct")] == [
        3,
        2,
        1,
    ]
    assert view.influences == [influence(0.5).influence]
    assert view.finished is not None, "a session that is modelled stays finished"


def test_trials_are_beside_the_campaign() -> None:
    before, view = fold(story()), fold(trials_story())
    assert (view.state, view.finished) == ("finished", before.finished)
    assert view.configurations == before.configurations
    assert [(t.outcome, len(t.samples), t.invalid, t.lab_s) for t in view.trials] == [
        ("interrupted", 1, 0, 6.0),
        ("budget", 1, 1, 6.0),
    ]
    assert view.lab_s == before.lab_s + view.trials_s
    assert (view.samples_taken, view.trial_samples) == (2, 2)


def test_the_log_is_bounded() -> None:
    events = [Event(i, 0.0, "demo-1", RunPaused("")) for i in range(1, LOG_LINES + 50)]
    view = fold(events)
    assert len(view.log) == LOG_LINES
    assert view.log[-1].seq == LOG_LINES + 49


def test_runs_are_counted_by_the_clock_without_pauses_and_without_what_others_did() -> None:
    view = SessionView("s")
    asked = PointAsked("haproxy", QUARTER, 100.0, 0, 100.0, 100.0, "")
    facts = [
        (0.0, RunStarted(False, 600.0)),
        (10.0, asked),
        (25.0, RunPaused("")),
        (1000.0, RunContinued("")),
        (1010.0, asked),  # its engine is killed: nothing says when
        (9000.0, InfluenceMeasured(ParameterInfluence("haproxy", "p95_ms", 0, 0, ()))),
        (9500.0, RunStarted(True, 600.0)),
        (9520.0, asked),
        (9580.0, RunFinished("budget", 0, 0, 1.0, 1.0, (), waited_s=40.0)),
    ]
    for seq, (at, fact) in enumerate(facts, start=1):
        view.apply(Event(seq, at, "s", fact))
    assert view.ran_s == 25.0 + 10.0 + 20.0 + 60.0 - 40.0
    assert "1.2 min on the clock, pauses left out" in ending(view)  # its last run took 1.0 s


def test_who_is_paused_and_continued_in_the_queue_waits_on() -> None:
    view = SessionView("s")
    for seq, fact in enumerate((PauseRequested("ann"), RunContinued("ann")), start=1):
        view.apply(Event(seq, float(seq), "s", fact))
        assert (view.state, view.ran_until) == ("planned", None)
