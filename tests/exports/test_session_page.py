"""A session as one page: what it holds, that it loads nothing, that no text of others breaks it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from driving import REPOSITORY
from recommended import case_study
from test_recommendation_hostile import NASTY
from test_recommendation_reports import Page

from workbench import plugins
from workbench.domain.diagnoses import Diagnosis, Verdict
from workbench.domain.event_log import LogLine
from workbench.domain.projection import SessionView
from workbench.domain.recommendations import IssuedRecommendation
from workbench.domain.sample_review import SampleDecided
from workbench.domain.session_tables import invalid_samples
from workbench.exports.recommendation.naming import one_line
from workbench.exports.session_page import ChainAnswers, session_page
from workbench.store.session_file import SessionFile

RECORDINGS = REPOSITORY / "sessions" / "recorded"
HARMLESS = set(
    "html head meta title style body main h1 h2 p div table thead tbody tr th td figure figcaption "
    "svg desc rect line path circle text".split()
)


@pytest.fixture
async def recorded() -> AsyncIterator[SessionFile]:
    file = await SessionFile.open(RECORDINGS / "chain-first", read_only=True)
    yield file
    await file.close()


async def test_a_recording_becomes_one_file_that_loads_nothing(
    recorded: SessionFile, tmp_path: Path
) -> None:
    (path,) = await plugins.load("exports", "html")(recorded, tmp_path / "out")
    assert path == tmp_path / "out" / "chain-first.html"
    assert list(path.parent.iterdir()) == [path]
    page, view = path.read_text(encoding="utf-8"), await recorded.view()
    assert set(Page(page).tags) <= HARMLESS
    assert not re.search(r"(?:src|href)=|url\(|@import", page)
    assert page.count("<svg") == sum(c.curve is not None for c in view.configurations) == 8
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids)) == 16
    said = " ".join(Page(page).text.split())
    assert view.host is not None
    for fact in (view.host.cpu_model, view.host.kernel, "haproxy 0.125 vCPU", "1776 [1510, 2021]"):
        assert fact in said
    assert "Recommendation r1: tinyproxy-haproxy" in said
    assert "Smallest visible difference of this host: 38.0% (throughput_rps)" in said
    assert "`workbench report` also compares chains" in said


async def test_samples_are_counted_by_the_reason_why_they_count_for_nothing(
    recorded: SessionFile,
) -> None:
    view = await recorded.view()
    table = invalid_samples(view)
    assert sum(int(str(row[1])) for row in table.rows) == sum(
        [c.invalid for c in view.configurations] + [t.invalid for t in view.trials]
    )
    first = view.configurations[0]
    first.samples[0] = replace(first.samples[0], valid=False, reason="steal")
    assert ("steal", "1") in invalid_samples(view).texts


def told_by(text: str, view: SessionView) -> tuple[SessionView, ChainAnswers]:
    """A session that says `text` wherever others may write."""
    view = view.copy()
    assert view.host is not None
    assert view.campaign is not None
    view.session = view.lab = text
    view.campaign = replace(view.campaign, name=text)
    view.host = replace(view.host, cpu_model=text, kernel=text, details={text: text})
    view.decisions = {text: SampleDecided(text, "rejected", text, text)}
    view.log = [LogLine(1, 0.0, "warning", text)]
    view.recommendations = [IssuedRecommendation(replace(case_study(), chain=text, note=text), 1)]
    for one in view.configurations:
        one.target = text
        one.breakpoints = tuple(replace(b, note=text, rule="collapse") for b in one.breakpoints)
        if one.curve is not None:
            one.curve = replace(one.curve, kpi=text, model=text)
    verdict = Verdict(text, text, 0.5, text, (text,), text, text, text)
    here = view.configurations[0].configuration
    why = Diagnosis(text, here, 1.0, text, text, None, None, (verdict,), (), ())
    return view, ChainAnswers(text, diagnosis=why, refusals=(text,))


@pytest.fixture(scope="module")
def view() -> SessionView:
    async def read() -> SessionView:
        file = await SessionFile.open(RECORDINGS / "chain-first", read_only=True)
        try:
            return await file.view()
        finally:
            await file.close()

    return asyncio.run(read())


@pytest.mark.parametrize("text", NASTY)
def test_text_of_others_is_text(view: SessionView, text: str) -> None:
    told, chain = told_by(text, view)
    page = session_page(told, (chain,))
    assert set(Page(page).tags) <= HARMLESS
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u0085\u2028]", page)
    said = " ".join(Page(page).text.split())
    assert one_line(f"{text}: predicted and measured") in said
