"""The dashboard that ships: made anew it is the same, and a real Prometheus answers its queries."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator
from importlib import resources
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from driving import REPOSITORY, Workbench
from engine_fakes import FaultyLab
from engine_watching import SMALL, Watched
from site_prometheus import read, scraping

from workbench.domain.events import ModelFitted, SampleTaken
from workbench.domain.messages import RunCampaign
from workbench.engine.core import Engine
from workbench.link.local import LocalClient
from workbench.paths import Workspace

SESSION = "charted"
PACE = 6.0
"""Lab seconds per second: a Prometheus that looks each second sees every sample."""


def shipped() -> str:
    return resources.files("workbench.exports").joinpath("grafana_dashboard.json").read_text()


def test_made_anew_it_is_what_ships() -> None:
    spec = spec_from_file_location("made_here", REPOSITORY / "scripts" / "grafana_dashboard.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.text() == shipped()


def test_a_command_writes_it(workbench: Workbench, tmp_path: Path) -> None:
    assert workbench.run("grafana").stdout == shipped()
    path = tmp_path / "new" / "board.json"
    assert workbench.run("grafana", "--output", str(path)).stdout.strip() == str(path)
    assert path.read_text() == shipped()


def queries() -> Iterator[tuple[str, str]]:
    """Title and PromQL of everything that the dashboard asks for."""
    board: dict[str, Any] = json.loads(shipped())
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for annotation in board["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]


def labels_wanted() -> tuple[str, str]:
    """Metric and label that the choice of a session is made of."""
    board = json.loads(shipped())
    (variable,) = (v for v in board["templating"]["list"] if v["type"] == "query")
    found = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"])
    assert found is not None
    return found[1], found[2]


@pytest.mark.needs("prometheus")
async def test_every_query_returns_data_of_a_running_session(
    root: Path, tmp_path: Path, faulty: type[FaultyLab], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FaultyLab, "pressure", True)
    monkeypatch.setattr(FaultyLab, "busy_host", True)  # one sample that is not valid
    began = time.time()
    engine = Engine(Workspace(root), http="127.0.0.1:0")
    await engine.start()
    client = LocalClient(engine, "tester")
    try:
        with scraping(tmp_path, engine.status().http) as url:
            await client.ask(RunCampaign(SMALL, session=SESSION, lab="faulty", pace=PACE))
            async with client.follow(SESSION) as feed:
                watched = Watched(feed)
                await watched.fact(SampleTaken)
                monkeypatch.setattr(FaultyLab, "busy_host", False)
                await watched.fact(ModelFitted)
                await watched.finish(hurry=False)
            lacking = await asyncio.to_thread(unanswered, url, began)
            metric, label = labels_wanted()
            known = await asyncio.to_thread(
                read, f"{url}/api/v1/label/{label}/values?{urlencode({'match[]': metric})}"
            )
    finally:
        await engine.close()
    assert lacking == []
    assert json.loads(known)["data"] == [SESSION]


def unanswered(url: str, began: float) -> list[tuple[str, str]]:
    """Which queries have no figure at any time since then."""
    return [(title, expr) for title, expr in queries() if not figures(url, expr, began)]


def figures(url: str, expr: str, began: float) -> list[float]:
    asked = expr.replace("$session", SESSION).replace("$__rate_interval", "10s")
    assert "$" not in asked
    times = {"start": began, "end": time.time(), "step": 1}
    answer = json.loads(read(f"{url}/api/v1/query_range?{urlencode({'query': asked, **times})}"))
    assert answer["status"] == "success", answer
    values = [float(v) for series in answer["data"]["result"] for _, v in series["values"]]
    return [value for value in values if value == value]  # no NaN
