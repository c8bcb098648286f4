"""Campaigns on a recording: only what was recorded is asked for, and nothing is made up."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from engine_watching import SMALL, Watched, stored_events, stored_samples

from workbench.domain.events import ModelFitted, Noted
from workbench.domain.messages import RunCampaign
from workbench.domain.questions import ModelsScored, ScoreModels
from workbench.domain.sample_review import RequestPoint
from workbench.engine.learning import scoring
from workbench.link.socket import SocketClient

pytestmark = pytest.mark.asyncio(loop_scope="module")

LOADS = (50, 64, 128, 256, 512, 1024, 2000)
"""None is a middle of the range on its scale."""


def recording(folder: Path) -> Path:
    rows = [
        f"tinyproxy,{vcpu},{wl},{min(wl, 2400 * vcpu)},{3 if wl < 2400 * vcpu else 400}"
        for vcpu in (0.25, 0.5)
        for wl in LOADS
    ]
    head = "target,tinyproxy.vcpu,wl,throughput_rps,p95_ms"
    path = folder / "mine.csv"
    path.write_text("\n".join([head, *rows]), encoding="utf-8")
    return path


async def run(client: SocketClient, session: str, campaign: Path, lab: str) -> None:
    await client.ask(RunCampaign(str(campaign), session=session, lab=lab, seed=7))
    async with client.follow(session) as feed:
        assert (await Watched(feed).finish()).outcome == "done"


@pytest.mark.parametrize("method", ["uniform", "bisection", "pooled", "breakpoint-search"])
async def test_samplers_ask_for_recorded_points_only(
    client: SocketClient, tmp_path: Path, method: str
) -> None:
    campaign = tmp_path / "small.yaml"
    plan = f"sampling: {{method: {method}, max_samples: 6, repetitions: 3"
    campaign.write_text(Path(SMALL).read_text().replace("sampling: {max_samples: 6", plan))
    await run(client, method, campaign, f"recorded:{recording(tmp_path)},spread=0.1")
    samples = await stored_samples(client, method)
    assert samples
    assert {s.point.wl for s in samples} <= set(LOADS)
    assert all(s.valid and s.reason == "" for s in samples)
    facts = [event.fact for event in await stored_events(client, method)]
    said = " ".join(fact.text for fact in facts if isinstance(fact, Noted))
    assert "the recording has 1 repetition of 3 that the campaign asks for" in said
    assert "set aside" not in said
    fits = Counter(fact.configuration for fact in facts if isinstance(fact, ModelFitted))
    assert set(fits.values()) == {1}, "nobody waits for fits between samples that are only read"
    assert len(fits) == 2


async def test_what_is_interpolated_is_shown_and_never_learned_from(
    client: SocketClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "SHORT_LIST", ("interpolation",))
    monkeypatch.setattr(scoring, "FEW_CONFIGURATIONS", 0)
    lab = f"recorded:{recording(tmp_path)},spread=0.1,interpolate=1"
    await run(client, "between", Path(SMALL), lab)
    before = await client.ask(ScoreModels("between", "tinyproxy", methods=("short",)))
    known = await stored_samples(client, "between")
    assert {s.point.wl for s in known} <= set(LOADS), "samplers ask for what there is all the same"
    where = known[0].point.configuration
    await client.ask(RequestPoint("between", "tinyproxy", where, 90.0))
    async with client.follow("between") as feed:
        await Watched(feed).finish()
    (made,) = [s for s in await stored_samples(client, "between") if s.point.wl == 90.0]
    assert (made.valid, made.reason) == (False, "not_measured")
    assert "interpolated" in made.labels
    assert made.kpis["p95_ms"].value == pytest.approx(3.0)
    after = await client.ask(ScoreModels("between", "tinyproxy", methods=("short",)))
    assert isinstance(before, ModelsScored)
    assert isinstance(after, ModelsScored)
    assert after.scores == before.scores
    assert any("assumed, not measured: a log-sd of 0.1" in note for note in after.notes)
