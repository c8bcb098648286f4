"""Recommendations over a session: what is chosen, refused, stored, replayed and handed on."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Never

import pytest
import yaml
from modelling_session import InlinePool
from recommending_session import (
    CHAIN,
    LAB_S,
    PRIMARY,
    SESSION,
    campaign,
    make_workspace,
    measured_chain,
    write_session,
)

from workbench.chains import handover
from workbench.domain.errors import (
    ConfidenceRefused,
    DescriptorError,
    KpiUnknown,
    OutsideProfile,
    PluginUnknown,
    SlaContradiction,
    SlaIncomplete,
    UsageError,
    WorkbenchError,
)
from workbench.domain.events import RecommendationIssued
from workbench.domain.export_requests import PreviewRecommendation
from workbench.domain.messages import ExportRecommendation
from workbench.domain.questions import Recommend
from workbench.domain.topology import Parallel, Series, Target, Vnf
from workbench.engine.answers import performance, recommendation_export, recommending
from workbench.engine.answers.chain_models import Accepted, InForce
from workbench.engine.answers.recommendation_export import export_recommendation, options, preview
from workbench.engine.answers.recommending import balancers_of, recommend
from workbench.engine.sessions.housekeeping import duplicate
from workbench.engine.sessions.library import Library
from workbench.exports.bundle import export_bundle
from workbench.models.forecast import Forecast, Forecaster, Points
from workbench.paths import Workspace
from workbench.sla import max_load
from workbench.store.session_file import SessionFile

SLA = "p95<=1000ms @ concurrent=80, filesize=10kB"
MANY = "p95<=1000ms @ concurrent=300, filesize=10kB"


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few loads and halvings: how finely a margin is searched is not the point."""
    monkeypatch.setattr(max_load, "LOADS", 5)
    monkeypatch.setattr(max_load, "ROUNDS", 5)
    monkeypatch.setattr(performance, "LOADS", 5)
    # What other chains have added is for tests/engine/test_measured_first.py.
    monkeypatch.setattr(handover, "MEASURED", {})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return make_workspace(tmp_path_factory.mktemp("made"))


def no_lab(*_: object, **__: object) -> Never:
    raise AssertionError("nothing is measured")


def asked(*slas: str, chain: str | None = CHAIN, **others: object) -> Recommend:
    return replace(Recommend(SESSION, slas or (SLA,), chain), **others)  # type: ignore[arg-type]


async def test_the_cheapest_that_holds_is_recommended_and_stored(
    library: Library, pool: InlinePool
) -> None:
    told = await recommend(library, pool, no_lab, asked())
    found = told.recommendation
    assert (found.id, found.session, found.chain) == ("r1", SESSION, CHAIN)
    assert found.met
    assert found.chosen is not None
    assert found.chosen.allocation == {"haproxy.vcpu": 0.25, "tinyproxy.vcpu": 1.0}
    assert found.chosen.cost == 1.25
    assert found.chosen.probability >= 0.95
    assert found.chosen.kpis["p95_ms"].value == pytest.approx(800.0, rel=0.02)
    assert found.chosen.usage == pytest.approx({"haproxy": 0.4, "tinyproxy": 1.0}, rel=0.05)
    assert 0 < (found.chosen.margin_wl or 0) < 20
    assert [one.cost for one in found.runners_up] == [1.5, 2.0]
    assert (found.model_version, found.lab_iterations, found.lab_s) == (0, 0, 0.0)
    assert found.profiling_s == 28 * LAB_S
    assert told.notes == ()
    again = await recommend(library, pool, no_lab, asked())
    assert again.recommendation.id == "r2"
    async with library.borrow(SESSION) as channel:
        stored = [issued.recommendation for issued in channel.view.recommendations]
        assert stored == [found, again.recommendation]
        assert channel.view.state == "finished"
        assert channel.view.log[-1].text.endswith(f"recommendation r2 for {SLA}: 1.25 vCPU")


async def test_a_session_with_recommendations_replays_to_the_same_state(
    library: Library, workspace: Workspace, pool: InlinePool
) -> None:
    told = await recommend(library, pool, no_lab, asked())
    async with library.borrow(SESSION) as channel:
        live = channel.snapshot()
    await library.close()
    file = await SessionFile.open(workspace.sessions / f"{SESSION}.duckdb", read_only=True)
    try:
        view = await file.view()
        assert view == live
        (issued,) = view.recommendations
        assert issued.recommendation == told.recommendation
        (event,) = await file.events(issued.seq - 1, 1)
        assert isinstance(event.fact, RecommendationIssued)
        assert event.fact.templates["haproxy"] == "haproxy"
        chosen, cheaper = event.fact.trends
        assert chosen.choice == told.recommendation.chosen
        assert cheaper.choice.cost < chosen.choice.cost
        (curve,) = chosen.curves
        assert (curve.kpi, curve.model) == ("p95_ms", "bottleneck-and-sum")
        assert 80.0 in curve.wl
        assert (await file.view(issued.seq - 1)).recommendations == []
    finally:
        await file.close()


async def test_what_no_single_instance_carries_gets_several_behind_the_balancer_of_the_chain(
    library: Library, pool: InlinePool
) -> None:
    told = await recommend(library, pool, no_lab, asked(MANY, greedy=True))
    found = told.recommendation
    assert found.chosen is not None
    assert found.chosen.replicas == {"haproxy": 1, "tinyproxy": 4}
    assert found.chosen.allocation == {"haproxy.vcpu": 0.5, "tinyproxy.vcpu": 1.0}
    assert found.chosen.cost == 4.5
    greedy = found.greedy
    assert greedy is not None
    assert greedy.met
    assert greedy.steps[0].allocation == {"haproxy.vcpu": 0.25, "tinyproxy.vcpu": 0.25}
    assert greedy.steps[-1].replicas["tinyproxy"] >= 3
    assert greedy.lab_iterations == 0, "it was played on the model"
    assert greedy.probability is not None, "with which confidence its answer holds"
    assert greedy.probability > 0.5, "by what is expected it holds"
    assert [row.method for row in told.rows] == ["greedy", "profiled"]


async def test_a_function_alone_is_recommended_with_a_balancer_of_its_own(
    library: Library, pool: InlinePool
) -> None:
    told = await recommend(library, pool, no_lab, asked(MANY, chain="tinyproxy"))
    chosen = told.recommendation.chosen
    assert chosen is not None
    assert chosen.replicas == {"tinyproxy": 4, "tinyproxy-balancer": 1}
    assert chosen.allocation == {"tinyproxy.vcpu": 1.0, "tinyproxy-balancer.vcpu": 0.5}
    exported = await export_recommendation(library, ExportRecommendation(SESSION, "r1", "compose"))
    services = yaml.safe_load(Path(exported.path).read_text(encoding="utf-8"))["services"]
    assert services["tinyproxy-balancer"]["cpus"] == "0.5"
    assert services["tinyproxy"]["deploy"]["replicas"] == 4


async def test_a_duplicate_exports_under_its_own_name(library: Library, pool: InlinePool) -> None:
    """Its files said, and were called, what they were issued as, over the other's."""
    await recommend(library, pool, no_lab, asked(MANY, chain="tinyproxy"))
    await duplicate(library, SESSION, "copy")
    paths = []
    for session in (SESSION, "copy"):
        exported = await export_recommendation(
            library, ExportRecommendation(session, "r1", "compose")
        )
        paths.append(exported.path)
        assert session in Path(exported.path).name
        assert f"session: {session}" in Path(exported.path).read_text(encoding="utf-8")
    assert len(set(paths)) == 2


async def test_where_nothing_holds_what_comes_closest_is_named(
    library: Library, pool: InlinePool
) -> None:
    told = await recommend(library, pool, no_lab, asked("p95<=10ms @ concurrent=80"))
    found = told.recommendation
    assert not found.met
    assert found.chosen is None
    assert found.closest is not None
    assert found.closest.probability < 0.5
    assert "None of" in found.note
    with pytest.raises(WorkbenchError, match="nothing to deploy"):
        await export_recommendation(library, ExportRecommendation(SESSION, "r1", "helm"))
    report = await export_recommendation(library, ExportRecommendation(SESSION, "r1", "md"))
    assert "closest" in Path(report.path).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("request_", "kind", "sentence"),
    [
        (asked("p95 below a second"), UsageError, "must be an SLA such as"),
        (asked("p100<=10ms @ concurrent=80"), UsageError, "is no KPI"),
        (asked("p95<=10MB @ concurrent=80"), UsageError, "the limit"),
        (asked("p95>=10ms @ concurrent=80"), UsageError, "its limit is <="),
        (asked("p95<=1s @ rate=80/s"), UsageError, "behind the @"),
        (asked("p95<=1s @ concurrent=ten"), UsageError, "concurrent"),
        (asked("p95<=1s"), SlaIncomplete, "does not say the load"),
        (asked("jitter<=10ms @ concurrent=80"), KpiUnknown, "was not profiled"),
        (asked("p95<=2min @ concurrent=80"), KpiUnknown, "tells nothing apart"),
        (asked("p95<=1s @ concurrent=8000"), OutsideProfile, " to 500 clients"),
        (
            asked("p95<=1s @ concurrent=80, filesize=1MB"),
            OutsideProfile,
            "haproxy and tinyproxy at 10kB",
        ),
        (asked(SLA, "p95<=1s @ concurrent=81"), SlaContradiction, "different loads"),
        (asked(SLA, confidence=1.0), ConfidenceRefused, "Nothing measured is certain"),
        (asked(SLA, confidence=0.0), ConfidenceRefused, "must be over 0.5"),
        (asked(SLA, chain=None), UsageError, f"tinyproxy, haproxy, {CHAIN}"),
        (asked(SLA, chain="tiny"), UsageError, "has a chain 'tiny'"),
        (asked(SLA, chain="study"), UsageError, "stand-alone profile of study-tinyproxy"),
        (asked(SLA, cost="marbles"), UsageError, "no cost is called 'marbles'"),
        (asked(SLA, cost="broken"), DescriptorError, "broken.yaml"),
    ],
)
async def test_what_cannot_be_judged_is_refused_with_a_sentence_before_any_model_is_made(
    request_: Recommend,
    kind: type[WorkbenchError],
    sentence: str,
    library: Library,
    workspace: Workspace,
    pool: InlinePool,
) -> None:
    (workspace.templates / "prices").mkdir(parents=True)
    (workspace.templates / "prices" / "broken.yaml").write_text("kind: prices\n", encoding="utf-8")
    with pytest.raises(kind) as raised:
        await recommend(library, pool, no_lab, request_)
    assert sentence in str(raised.value)
    assert raised.value.exit_code == 2
    assert set(pool.asked) <= {"examine"}
    async with library.borrow(SESSION) as channel:
        assert channel.view.models == []
        assert channel.view.recommendations == []


async def test_several_limits_hold_at_once(library: Library, pool: InlinePool) -> None:
    told = await recommend(library, pool, no_lab, asked(SLA, "throughput>=150/s @ concurrent=80"))
    chosen = told.recommendation.chosen
    assert chosen is not None
    assert chosen.kpis.keys() == {"p95_ms", "throughput_rps"}
    assert chosen.replicas["tinyproxy"] == 2, "one is fast enough, and carries but 100/s"


async def test_costs_come_from_a_price_table(library: Library, pool: InlinePool) -> None:
    told = await recommend(library, pool, no_lab, asked(cost="example"))
    chosen = told.recommendation.chosen
    assert chosen is not None
    assert chosen.cost_unit == "EUR/h"
    assert chosen.cost == pytest.approx(2 * 0.005 + 1.25 * 0.04)


async def test_an_observer_is_answered_and_nothing_is_stored(
    library: Library, pool: InlinePool
) -> None:
    told = await recommend(library, pool, no_lab, asked(), store=False)
    assert told.recommendation.id == ""
    assert told.recommendation.met
    assert "not stored" in told.notes[0]
    async with library.borrow(SESSION) as channel:
        assert channel.view.recommendations == []
        assert channel.view.models == []


async def test_a_bundle_is_answered_and_not_changed(
    library: Library, pool: InlinePool, tmp_path: Path
) -> None:
    async with library.borrow(SESSION) as channel:
        await export_bundle(channel.file, tmp_path / "kept")
    bundle = next(path for path in tmp_path.iterdir() if (path / "manifest.json").exists())
    told = await recommend(library, pool, no_lab, asked(session=str(bundle)))
    assert told.recommendation.met
    assert told.recommendation.id == ""
    assert "bundles are not changed" in told.notes[0]


async def test_a_chain_that_was_measured_itself_answers_by_its_own_model(
    tmp_path: Path, pool: InlinePool
) -> None:
    workspace = Workspace(tmp_path / "chains")
    workspace.sessions.mkdir(parents=True)
    asked_for = campaign(measured_chain())
    await write_session(workspace.sessions / f"{SESSION}.duckdb", asked_for)
    library = Library(workspace)
    try:
        told = await recommend(library, pool, no_lab, asked(chain=None))
        found = told.recommendation
        assert found.chain == CHAIN
        assert found.model_version == 1
        assert found.chosen is not None
        assert found.chosen.allocation == {"haproxy.vcpu": 0.25, "tinyproxy.vcpu": 1.0}
        used = pytest.approx({"haproxy": 0.4, "tinyproxy": 1.0}, rel=0.05)
        assert found.chosen.usage == used, "its own samples say what CPU it took"
    finally:
        await library.close()


class Doubled:
    """Twice what is predicted of the chain."""

    def __init__(self, prediction: Forecaster) -> None:
        self.kpi, self._prediction = prediction.kpi, prediction

    def forecast(self, points: Points) -> Forecast:
        said = self._prediction.forecast(points)
        mean, low, high = (bound + math.log(2.0) for bound in (said.mean, said.low, said.high))
        return Forecast(mean, low, high, said.extrapolates)


async def test_an_accepted_model_speaks_for_single_instances_and_the_profiles_for_several(
    library: Library, pool: InlinePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = SimpleNamespace(method="correction-two-terms")
    version: Any = SimpleNamespace(version=3, proposal=SimpleNamespace(model=model))

    async def accepted(*_: object) -> dict[str, Accepted]:
        return {"p95_ms": Accepted(version, (), PRIMARY, 60_000.0)}

    monkeypatch.setattr(recommending, "_accepted", accepted)
    monkeypatch.setattr(performance, "in_force", lambda said, one: InForce(Doubled(said), 3))
    told = await recommend(library, pool, no_lab, asked("p95<=1700ms @ concurrent=80"))
    single = told.recommendation
    assert single.chosen is not None
    assert single.chosen.allocation["tinyproxy.vcpu"] == 1.0, "the profiles alone would say 0.5"
    assert single.chosen.kpis["p95_ms"].value == pytest.approx(1600.0, rel=0.02)
    assert single.model_version == 3

    told = await recommend(library, pool, no_lab, asked(SLA))
    several = told.recommendation
    assert several.chosen is not None
    assert several.chosen.replicas["tinyproxy"] == 2
    assert several.model_version == 0
    assert any("several are judged by the stand-alone" in note for note in told.notes)


async def test_every_format_is_written_from_the_stored_recommendation(
    library: Library, pool: InlinePool, workspace: Workspace, tmp_path: Path
) -> None:
    await recommend(library, pool, no_lab, asked())

    async def exported(format: str, destination: Path | None = None) -> tuple[str, ...]:
        where = str(destination) if destination else None
        request = ExportRecommendation(SESSION, "r1", format, where)
        return (await export_recommendation(library, request)).files

    for format, name in (
        ("json", "pair-r1.json"),
        ("csv", "pair-r1.csv"),
        ("md", "pair-r1.md"),
        ("html", "pair-r1.html"),
        ("helm", "pair-r1.values.yaml"),
        ("compose", "pair-r1.compose.yaml"),
        ("tosca", "pair-r1.tosca.yaml"),
    ):
        (file,) = await exported(format)
        assert file == str(workspace.exports / name)
        assert "r1" in Path(file).read_text(encoding="utf-8")
    files = await exported("kustomize")
    assert {Path(file).parent for file in files} == {workspace.exports / "pair-r1"}
    assert Path(files[0]).name == "kustomization.yaml"
    (file,) = await exported("json", tmp_path / "elsewhere" / "own.json")
    document = json.loads(Path(file).read_text(encoding="utf-8"))
    assert file == str(tmp_path / "elsewhere" / "own.json")
    assert document["recommendation"]["id"] == "r1"
    assert document["host"]["lab"] == "sim"
    assert "<svg" in Path(workspace.exports / "pair-r1.html").read_text(encoding="utf-8")

    with pytest.raises(UsageError, match="no recommendation 'r2'") as raised:
        await export_recommendation(library, ExportRecommendation(SESSION, "r2", "json"))
    assert "r1" in (raised.value.remedy or "")
    with pytest.raises(PluginUnknown):
        await exported("pdf")


async def test_a_preview_is_what_would_be_written_and_writes_nothing(
    library: Library, pool: InlinePool, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    await recommend(library, pool, no_lab, asked())
    for format in ("helm", "kustomize", "compose"):
        seen = await preview(library, PreviewRecommendation(SESSION, "r1", format))
        assert not any(Path(file.path).exists() for file in seen.files)
        written = await export_recommendation(library, ExportRecommendation(SESSION, "r1", format))
        assert tuple(file.path for file in seen.files) == written.files
        assert [file.text for file in seen.files] == [
            Path(file).read_text(encoding="utf-8") for file in written.files
        ]
        assert all(file.characters == len(file.text) for file in seen.files)
    monkeypatch.setattr(recommendation_export, "LONGEST_PREVIEW", 10)
    (file,) = (await preview(library, PreviewRecommendation(SESSION, "r1", "json"))).files
    assert len(file.text) == 10 < file.characters


async def test_questions_choose_from_what_there_is(
    library: Library, workspace: Workspace, tmp_path: Path
) -> None:
    found = await options(library, SESSION)
    assert found.chains == ("tinyproxy", "haproxy", CHAIN, "split", "tinyproxy-haproxy")
    assert found.costs[0] == "vcpu-hours"
    assert "example" in found.costs
    assert {"helm", "compose", "tosca"} <= {format.name for format in found.formats}
    assert found.unmeasurable == ""
    async with library.borrow(SESSION) as channel:
        await export_bundle(channel.file, tmp_path / "bundle")
    bundled = await options(library, str(tmp_path / "bundle"))
    assert "bundles are not changed" in bundled.unmeasurable


def test_only_a_balancer_that_carries_all_of_a_function_s_traffic_stands_before_it() -> None:
    front, back = Vnf("front", "haproxy"), Vnf("back", "tinyproxy")
    given = campaign()

    def before(*parts: Vnf | Parallel) -> dict[str, str]:
        found = balancers_of(given, Target("t", Series(parts)))
        return {vnf: balancer.name for vnf, balancer in found.items()}

    assert before(front, back) == {"back": "front"}
    other = Vnf("other", "tinyproxy")
    split = Parallel((back, other), (0.5, 0.5))
    assert before(front, split) == {"back": "back-balancer", "other": "other-balancer"}
    assert before(back, front) == {"back": "back-balancer"}
