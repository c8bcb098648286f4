"""A long session at one of its events: looked up in tables, it is what the fold would be."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from pathlib import Path

import pytest
from session_making import closed_session, created, facts, make_session, measurement

from workbench import paths
from workbench.domain.events import PointAsked, SampleTaken
from workbench.domain.projection import MOST_POINTS, SessionView
from workbench.domain.sample_review import PointRequested
from workbench.domain.timeline import FindMoment, Moment
from workbench.store import earlier_events, reading, view_at_event
from workbench.store.session_file import SessionFile, open_session

RECORDED = paths.shipped("sessions") / "demo-real"


@pytest.fixture(scope="module")
def recorded() -> SessionFile:
    return open_session(RECORDED, read_only=True)


def compare(looked_up: SessionView, folded: SessionView) -> None:
    """All but what is said to differ: the logs begin later, old questions are not known, and time
    is counted up to the last event that was looked up; the next one of the run counts the rest."""
    differing = ("configurations", "log", "written", "written_since", "lab_s", "ran_s", "ran_until")
    for name in (field.name for field in fields(SessionView)):
        if name not in differing:
            assert getattr(looked_up, name) == getattr(folded, name), name
    assert (looked_up.ran_until is None) == (folded.ran_until is None)
    assert looked_up.ran_s - (looked_up.ran_until or 0.0) == pytest.approx(
        folded.ran_s - (folded.ran_until or 0.0)
    )
    assert looked_up.lab_s == pytest.approx(folded.lab_s)
    since = looked_up.written_since
    assert looked_up.written == [line for line in folded.written if line.seq >= since]
    assert folded.log[-len(looked_up.log) :] == looked_up.log or not looked_up.log
    for one, other in zip(looked_up.configurations, folded.configurations, strict=True):
        for field in fields(one):
            if field.name != "asked":
                assert getattr(one, field.name) == getattr(other, field.name), one.key


@pytest.mark.parametrize("share", [0.02, 0.1, 0.35, 0.5, 0.72, 0.93, 1.0])
def test_it_is_the_fold(
    recorded: SessionFile, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    monkeypatch.setattr(view_at_event, "TAIL", 7)
    monkeypatch.setattr(view_at_event, "POINTS", 10**5)
    until = max(8, int(share * recorded.last_seq))
    with recorded._database.reading() as cursor:
        looked_up = view_at_event.view(cursor, recorded.name, until)
        compare(looked_up, reading.view(cursor, recorded.name, until))
    assert looked_up.seq == until


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> SessionFile:
    path = asyncio.run(closed_session(tmp_path_factory.mktemp("small") / "s.duckdb"))
    return open_session(path, read_only=True)


@pytest.fixture(scope="module")
def folds(small: SessionFile) -> dict[int, SessionView]:
    """What it was at each of its events."""
    with small._database.reading() as cursor:
        return {seq: reading.view(cursor, "s", seq) for seq in range(4, small.last_seq + 1)}


def test_at_every_event_of_a_small_session(
    small: SessionFile, folds: dict[int, SessionView], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_at_event, "TAIL", 3)
    monkeypatch.setattr(view_at_event, "POINTS", 10**5)
    with small._database.reading() as cursor:
        for until, folded in folds.items():
            compare(view_at_event.view(cursor, "s", until), folded)


@pytest.mark.parametrize("stretch", [1, 4, 10**6])
@pytest.mark.parametrize("backwards", [False, True])
def test_what_was_found_out_of_the_past_serves_at_every_other_event(
    small: SessionFile,
    folds: dict[int, SessionView],
    monkeypatch: pytest.MonkeyPatch,
    stretch: int,
    backwards: bool,
) -> None:
    monkeypatch.setattr(view_at_event, "TAIL", 3)
    monkeypatch.setattr(view_at_event, "POINTS", 10**5)
    monkeypatch.setattr(earlier_events, "STRETCH", stretch)
    known = earlier_events.EarlierEvents()
    with small._database.reading() as cursor:
        for until in reversed(folds) if backwards else folds:
            compare(view_at_event.view(cursor, "s", until, past=known), folds[until])


@pytest.mark.parametrize("stretch", [20, 333])
def test_the_one_that_is_looked_at_has_its_latest_samples_wherever_they_lie(
    recorded: SessionFile, monkeypatch: pytest.MonkeyPatch, stretch: int
) -> None:
    monkeypatch.setattr(view_at_event, "TAIL", 5)
    monkeypatch.setattr(view_at_event, "POINTS", 1)
    monkeypatch.setattr(view_at_event, "FOCUS_POINTS", 4)
    monkeypatch.setattr(earlier_events, "STRETCH", stretch)
    known, last = earlier_events.EarlierEvents(), recorded.last_seq
    with recorded._database.reading() as cursor:
        for until in (last, last // 2, last // 3, last - 40):
            whole = reading.view(cursor, recorded.name, until)
            head = reading.view(cursor, recorded.name, until - view_at_event.TAIL)
            for item in head.configurations:
                view = view_at_event.view(cursor, recorded.name, until, item.key, known)
                found = view.configuration(item.key)
                own = whole.configuration(item.key)
                assert found is not None
                assert own is not None
                before = head.configuration(item.key)
                assert before is not None
                later = len(own.samples) - len(before.samples)
                wanted = min(len(before.samples), 4) + later
                assert found.samples == own.samples[len(own.samples) - wanted :]
                assert found.taken == own.taken


async def test_the_past_of_a_session_that_goes_on_is_learnt_as_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_at_event, "LONG", 0)
    monkeypatch.setattr(view_at_event, "TAIL", 1)
    monkeypatch.setattr(earlier_events, "STRETCH", 3)
    file = await SessionFile.create(tmp_path / "s.duckdb", created(), at=0.0)
    for number, (fact, measured) in enumerate(facts()):
        event = await file.append(fact, at=float(number), measurement=measured)
        with file._database.reading() as cursor:
            compare(await file.view(), reading.view(cursor, "s", event.seq))
    await file.close()


async def test_a_point_that_was_requested_waits_no_longer_once_it_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long session that was opened again asked for all of them anew."""
    monkeypatch.setattr(view_at_event, "LONG", 0)
    monkeypatch.setattr(view_at_event, "TAIL", 1)
    told = facts()
    first = next(i for i, (fact, _) in enumerate(told) if isinstance(fact, SampleTaken))
    fact = told[first][0]
    assert isinstance(fact, SampleTaken)
    where = fact.sample.point
    wanted, never = (
        PointRequested(where.target, where.configuration, wl, 5, "ann") for wl in (123.0, 321.0)
    )
    taken = measurement(where.target, where.configuration, 123.0, 5)
    asked = [(wanted, None), (never, None), (SampleTaken(taken.sample), taken)]
    file = await SessionFile.create(tmp_path / "s.duckdb", created(), at=0.0)
    for number, (fact, measured) in enumerate([*told[: first + 1], *asked, *told[first + 1 : -1]]):
        event = await file.append(fact, at=float(number), measurement=measured)
        with file._database.reading() as cursor:
            compare(await file.view(), reading.view(cursor, "s", event.seq))
    assert (await file.view()).requested == [never]
    await file.close()


async def test_what_is_left_out_is_counted_and_the_focus_keeps_more(
    recorded: SessionFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_at_event, "LONG", 10)
    monkeypatch.setattr(view_at_event, "TAIL", 5)
    monkeypatch.setattr(view_at_event, "POINTS", 1)
    with recorded._database.reading() as cursor:
        whole = reading.view(cursor, recorded.name, None)
    item = max(whole.configurations, key=lambda c: len(c.samples))
    few = await recorded.view()
    assert [(c.taken, c.invalid) for c in few.configurations] == [
        (c.taken, c.invalid) for c in whole.configurations
    ]
    assert few.points < whole.points
    focused = (await recorded.view(focus=item.key)).configuration(item.key)
    assert focused is not None
    assert focused.samples == item.samples
    assert focused.left_out == 0


async def test_pages_of_events_are_whole_where_events_are_missing(tmp_path: Path) -> None:
    file = await make_session(tmp_path / "s.duckdb")
    with file._database.reading() as cursor:
        cursor.execute("DELETE FROM events WHERE seq BETWEEN 5 AND 20")
    assert [event.seq for event in await file.events(4, 3)] == [21, 22, 23]
    assert [event.seq for event in await file.events(1, 5)] == [2, 3, 4]
    await file.close()


async def test_moments_are_found(tmp_path: Path) -> None:
    file = await make_session(tmp_path / "s.duckdb")
    events = await file.events(0, 100)
    taken = [event for event in events if isinstance(event.fact, SampleTaken)]
    second = taken[1]
    assert await file.moment(FindMoment("s", sample=2)) == Moment(second.seq, second.at)
    assert await file.moment(FindMoment("s", sample_after=second.seq - 1)) == Moment(
        second.seq, second.at
    )
    before = await file.moment(FindMoment("s", sample_before=second.seq))
    assert before == Moment(taken[0].seq, taken[0].at)
    assert await file.moment(FindMoment("s", sample_before=taken[0].seq)) is None
    at = await file.moment(FindMoment("s", at=second.at + 0.5))
    assert at == Moment(second.seq, second.at)
    last = taken[-1].fact.sample.point
    place = FindMoment("s", target=last.target, configuration=last.configuration)
    first = next(e for e in taken if e.fact.sample.point.configuration == last.configuration)
    assert await file.moment(place) == Moment(first.seq, first.at)
    assert await file.moment(FindMoment("s")) is None
    await file.close()


async def test_the_time_line_knows_how_long_a_replay_takes(tmp_path: Path) -> None:
    file = await make_session(tmp_path / "s.duckdb")
    with file._database.reading() as cursor:
        cursor.execute("UPDATE events SET happened_at = seq * 2.0")
        cursor.execute("UPDATE events SET happened_at = happened_at + 7200 WHERE seq > 5")
    line = await file.time_line()
    await file.close()
    whole_s = (line.last_seq - 1) * 2.0 + 1.0  # the night lasts 3 s instead of 2
    assert line.played[0] == (2.0, 0.0)
    assert line.played[-1] == (line.ended_at, whole_s)
    assert line.share_at(10.0) == pytest.approx(8.0 / whole_s)
    assert line.share_at(7212.0) == pytest.approx(11.0 / whole_s)
    assert line.at_share(8.0 / whole_s) == pytest.approx(10.0)


def test_the_time_line_names_what_was_decided(recorded: SessionFile) -> None:
    with recorded._database.reading() as cursor:
        line = view_at_event.time_line(cursor, recorded.name)
        samples, _ = reading.sample_counts(cursor)
    assert (line.last_seq, line.samples) == (recorded.last_seq, samples)
    assert line.started_at < line.ended_at
    assert {"begun", "ended"} <= {mark.kind for mark in line.marks}
    assert all(mark.text for mark in line.marks)
    assert sorted(mark.seq for mark in line.marks) == [mark.seq for mark in line.marks]


def test_a_view_of_very_many_samples_stays_small_and_counts_them_all() -> None:
    from session_making import EPOCH, measurement

    from workbench.domain.events import Event

    view = SessionView("s")
    view.apply(Event(1, EPOCH, "s", created()))
    target, configuration = next(
        (f.target, f.configuration) for f, _ in facts() if isinstance(f, PointAsked)
    )
    valid = measurement(target, configuration, 100.0).sample
    bad = measurement(target, configuration, 100.0, valid=False).sample
    for number in range(2, 3 * MOST_POINTS):
        view.apply(Event(number, EPOCH, "s", SampleTaken(bad if number % 7 == 0 else valid)))
        assert view.points <= MOST_POINTS
    item = view.configurations[0]
    assert view.points == len(item.samples)
    assert view.samples_taken == 3 * MOST_POINTS - 2
    assert item.invalid == sum(n % 7 == 0 for n in range(2, 3 * MOST_POINTS))
    before = view.configuration(item.key)
    assert before is item
