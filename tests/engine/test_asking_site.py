"""What a sample asks of the site: every component and window, in bounded time, secrets unspoken."""

from __future__ import annotations

import socket
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from session_making import campaign, measurement

from workbench.domain.campaign import Campaign, Metric, MetricsServer
from workbench.domain.errors import UsageError
from workbench.domain.parameters import Configuration
from workbench.domain.projection import SessionView
from workbench.domain.samples import Estimate, Measurement, Sample
from workbench.engine.learning import scoring
from workbench.engine.runs import asking_site
from workbench.engine.runs.asking_site import SiteMetrics, TwoClocks
from workbench.engine.sessions.library import Library
from workbench.labs.base import Lab
from workbench.probes import prometheus

METRICS = (
    Metric("heat", "node_heat", "C", "site"),
    Metric("*:opened", 'opened{name="{{ component }}"}', "connections", "site"),
    Metric("haproxy:inside", 'inside{id="{{ container }}"}', "things", "site"),
    Metric("p95_ms", "quantile(0.95, response)", "ms", "requests"),
)


TAKEN = measurement("haproxy", Configuration({"haproxy.vcpu": 0.25}, {}), 100.0)


class Site:
    """Answers every query with `1`, and remembers what was asked."""

    def __init__(self) -> None:
        self.queries: list[str] = []
        self.tokens: set[str | None] = set()
        self.status = 200
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        self.tokens.add(request.headers.get("Authorization"))
        if request.match_info["what"] == "alerts":
            return web.json_response({"status": "success", "data": {"alerts": []}})
        query = request.query
        self.queries.append(query["query"])
        if self.status != 200:
            return web.Response(status=self.status, text="secret of theirs")
        first, last, step = (float(query[key]) for key in ("start", "end", "step"))
        values = [[first + i * step, "1"] for i in range(round((last - first) / step) + 1)]
        result = [] if query["query"].startswith("ALERTS") else [{"metric": {}, "values": values}]
        data = {"resultType": "matrix", "result": result}
        return web.json_response({"status": "success", "data": data})


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    made = Site()
    app = web.Application()
    app.router.add_get("/api/v1/{what}", made.answer)
    server = TestServer(app, host="127.0.0.1")
    await server.start_server()
    made.url = f"http://127.0.0.1:{server.port}"
    yield made
    await server.close()


@pytest.fixture
def silent() -> Iterator[str]:
    """Accepts connections, and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def asking(site: Site, lab: object = None, **server: Any) -> SiteMetrics:
    one = MetricsServer("site", **{"url": site.url, "scrape_interval_s": 0.1, **server})
    given: Campaign = replace(campaign(), metrics=METRICS, servers=(one,))
    return SiteMetrics(given, "s-1", cast(Lab, lab or SimpleNamespace()))


async def beside(asked: SiteMetrics) -> Measurement:
    clocks = TwoClocks(time.monotonic)
    clocks.note()
    try:
        return await asked.beside(TAKEN, time.monotonic() - 10, clocks)
    finally:
        await asked.close()


async def test_each_component_is_asked_for_by_its_name(site: Site) -> None:
    lab = SimpleNamespace(known_as=lambda component: {"container": f"id-of-{component}"})
    found = await beside(asking(site, lab))
    components = set(found.sample.usage) - {"workbench"}
    windows = len(found.windows)
    asked = [query for query in site.queries if query.startswith("opened")]
    due = [f'opened{{name="{component}"}}' for component in components]
    assert sorted(asked) == sorted(due * windows)
    assert 'inside{id="id-of-haproxy"}' in site.queries
    assert found.sample.kpis["heat"].value == found.sample.kpis["haproxy:opened"].value == 1.0
    assert not any("quantile" in query for query in site.queries)
    assert found.sample.valid == TAKEN.sample.valid


async def test_a_lab_that_knows_no_container_says_so(site: Site) -> None:
    found = await beside(asking(site))
    told = [one.evidence for one in found.sample.remarks if one.label == "site_metric"]
    assert told == [
        "haproxy:inside has no figure: this lab does not know what {{ container }} is here"
    ]


@pytest.mark.parametrize("fault", ["gone", "slow", "refused", "no variable", "not a URL"])
async def test_a_server_at_fault_is_asked_once_for_a_sample(
    site: Site, silent: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus, "ANSWER_S", 0.3)
    given: dict[str, Any] = {}
    if fault == "gone":
        given["url"] = "http://user:hidden@127.0.0.1:9"
    elif fault == "slow":
        given["url"] = silent
    elif fault == "refused":
        site.status = 403
    elif fault == "no variable":
        given["token"] = "${NO_SUCH_TOKEN_HERE}"
    else:
        given["url"] = "http://[half"
    found = await beside(asking(site, **given))
    told = [one.evidence for one in found.sample.remarks if one.label == "site_metric"]
    assert len(site.queries) == (1 if fault == "refused" else 0)
    said = {
        "gone": "the Prometheus at 127.0.0.1:9: it cannot be reached",
        "slow": "it gave no answer within 0.3 s",
        "refused": "it refuses us (403): is its token set?",
        "no variable": "the environment has no NO_SUCH_TOKEN_HERE",
        "not a URL": "its URL is none",
    }[fault]
    assert told
    assert all(said in one or "does not know" in one for one in told), told
    assert any("alerts of probe site are not known" in one for one in told)
    assert not any("hidden" in one or "secret" in one for one in told)
    assert "heat" not in found.sample.kpis
    assert found.sample.valid == TAKEN.sample.valid


async def test_all_questions_together_are_bounded(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_site, "ASKING_S", -1.0)
    found = await beside(asking(site))
    assert site.queries == []
    assert any("not asked" in one.evidence for one in found.sample.remarks)


async def test_a_token_is_sent_and_never_told(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_TOKEN", "hush")
    found = await beside(asking(site, token="${SITE_TOKEN}"))
    assert site.tokens == {"Bearer hush"}
    assert "hush" not in repr(found)


async def test_a_lab_whose_clock_is_its_own_is_told_apart(site: Site) -> None:
    clocks = TwoClocks(iter((0.0, 3600.0)).__next__)
    clocks.note()
    asked = asking(site)
    found = await asked.beside(TAKEN, 0.0, clocks)
    assert site.queries == []
    assert any("moved by 3600.0 s against" in one.evidence for one in found.sample.remarks)


async def test_a_column_of_the_site_is_modelled_by_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kpis = {**TAKEN.sample.kpis, "haproxy:opened": Estimate(1.0, 0.9, 1.1)}
    sample = replace(TAKEN.sample, kpis=kpis)

    async def everything(library: object, session: str) -> tuple[SessionView, list[Sample]]:
        return replace(SessionView(session), campaign=campaign()), [sample]

    monkeypatch.setattr(scoring, "_everything", everything)
    library = cast(Library, None)
    assert (await scoring.material(library, "s", "haproxy:opened")).kpi == "haproxy:opened"
    assert (await scoring.material(library, "s", "p95")).kpi == "p95_ms"
    with pytest.raises(UsageError, match="which is no KPI"):
        await scoring.material(library, "s", "haproxy:closed")
