"""A lab host is checked as `doctor` does before it takes part."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_dispatch_shares import FakeClient, dispatched

from workbench.domain import codec
from workbench.domain.errors import LabError, PluginUnknown
from workbench.domain.fleets import LabHost
from workbench.domain.lab import Check
from workbench.fleet import lab_worker, tasks
from workbench.fleet.host_engine import HostEngine
from workbench.fleet.lab_checks import must_be_able
from workbench.fleet.security import Secrets


async def test_a_host_whose_lab_cannot_measure_is_refused_with_what_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    with pytest.raises(
        LabError, match="the lab docker cannot measure there: docker engine"
    ) as told:
        await must_be_able("docker", "alpha")
    assert told.value.where == "alpha"
    with pytest.raises(PluginUnknown, match="nothing is registered as 'dokcer'"):
        await must_be_able("dokcer", "alpha")


@pytest.mark.parametrize(
    ("host", "seen"),
    [
        (LabHost("alpha", "ssh"), []),
        (LabHost("alpha", "simulated", lab="sim"), []),
        (LabHost("alpha", "ssh", lab="netns:noise=0"), ["netns"]),
    ],
)
async def test_a_worker_looks_at_the_lab_that_its_hosts_file_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: LabHost, seen: list[str]
) -> None:
    """A warning keeps nobody away."""
    asked: list[str] = []

    async def examine(name: str) -> tuple[Check, ...]:
        asked.append(name)
        return (Check("cores", "warning", "few"),)

    class Begun(Exception):
        pass

    def begun(*_: object) -> Any:
        raise Begun

    monkeypatch.setattr("workbench.fleet.lab_checks.examine_lab", examine)
    monkeypatch.setattr(lab_worker, "_hung_up", asyncio.Event)
    monkeypatch.setattr(lab_worker, "serving", begun)
    with pytest.raises(Begun):
        await lab_worker.work(SimpleNamespace(host=host, folder=str(tmp_path)))  # type: ignore[arg-type]
    assert asked == seen


async def test_the_campaign_s_lab_is_looked_at_before_the_first_shard_and_may_start_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    lacks = ["not found"] * 2

    async def examine(name: str) -> tuple[Check, ...]:
        asked.append(name)
        return (Check("engine", "missing" if lacks else "ok", lacks.pop() if lacks else "there"),)

    monkeypatch.setattr("workbench.fleet.lab_checks.examine_lab", examine)
    monkeypatch.setattr("workbench.fleet.host_engine.ABLE_PAUSE_S", 0.01)
    nothing: Any = SimpleNamespace(workspace=None)
    tasks.be(HostEngine(nothing, LabHost("alpha", "dask")))
    try:
        assert [await tasks.see_lab(lab) for lab in ("docker", "docker:cores=2")] == ["", ""]
        assert asked == ["docker"] * 3
        lacks[:] = ["not found"] * 999
        monkeypatch.setattr("workbench.fleet.host_engine.ABLE_S", 0.3)
        why = "the lab netns cannot measure there: engine: not found"
        assert await tasks.see_lab("netns") == why
    finally:
        tasks.be(None)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (0, "the lab docker did not say within 0.05 s whether it can measure there"),
        (1, "the lab docker cannot measure there: engine: not found"),
    ],
)
async def test_a_lab_that_hangs_takes_no_longer_than_one_that_lacks_something(
    answers: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a campaign takes its host for silent."""
    left = list(range(answers))

    async def examine(_: str) -> tuple[Check, ...]:
        if not left:
            await asyncio.sleep(20.0)
        left.pop()
        return (Check("engine", "missing", "not found"),)

    monkeypatch.setattr("workbench.fleet.lab_checks.examine_lab", examine)
    monkeypatch.setattr("workbench.fleet.host_engine.ABLE_S", 0.05)
    monkeypatch.setattr("workbench.fleet.host_engine.ABLE_PAUSE_S", 0.001)
    nothing: Any = SimpleNamespace(workspace=None)
    host = HostEngine(nothing, LabHost("alpha", "ssh"))
    with pytest.raises(LabError, match=words):
        await asyncio.wait_for(host.must_be_able("docker"), 5.0)


async def stubborn(_: str) -> tuple[Check, ...]:
    """A lab that says nothing and goes on though it is cancelled, once."""
    for _ in range(2):
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(20.0)
    return ()


async def test_a_worker_whose_keeper_is_gone_ends_while_it_still_asks_its_lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begun(*_: object) -> Any:
        raise AssertionError("nobody waits for it")

    hung_up = asyncio.Event()
    monkeypatch.setattr("workbench.fleet.lab_checks.examine_lab", stubborn)
    monkeypatch.setattr(lab_worker, "_hung_up", lambda: hung_up)
    monkeypatch.setattr(lab_worker, "serving", begun)
    posting: Any = SimpleNamespace(host=LabHost("alpha", "ssh", lab="vm"), folder=str(tmp_path))
    working = asyncio.create_task(lab_worker.work(posting))
    await asyncio.sleep(0.05)
    assert not working.done()
    hung_up.set()
    await asyncio.wait_for(asyncio.shield(working), 4.0)


async def test_who_leaves_waits_for_no_lab_and_none_has_longer_than_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("workbench.fleet.lab_checks.examine_lab", stubborn)
    asking = asyncio.create_task(must_be_able("vm:cores=2", "alpha"))
    await asyncio.sleep(0.05)
    asking.cancel()
    done, _ = await asyncio.wait({asking}, timeout=4.0)
    assert done
    assert asking.cancelled()
    monkeypatch.setattr("workbench.fleet.lab_checks.CHECKING_S", 0.05)
    asking = asyncio.create_task(must_be_able("vm:cores=2", "alpha"))
    done, _ = await asyncio.wait({asking}, timeout=4.0)
    assert done
    assert "the lab vm did not say within 0.05 s" in str(asking.exception())


WAITED_FOR = """
import asyncio, threading, time
from workbench.fleet import lab_worker

async def work(posting, owner):
    asyncio.get_running_loop().run_in_executor(None, time.sleep, 60)
    await asyncio.sleep(0.1)

lab_worker.work = work
lab_worker.main()
"""


def test_a_worker_that_ends_waits_for_no_thread() -> None:
    """One that asks a lab, or fits a model, may take minutes."""
    posting = tasks.Posting(LabHost("alpha", "ssh"), "", "", "", Secrets("", ""))
    line = codec.dumps(codec.to_plain(posting)) + b"\n"
    done = subprocess.run([sys.executable, "-c", WAITED_FOR], input=line, check=False, timeout=30)
    assert done.returncode == 0


class AnotherFirst(FakeClient):
    """Another campaign measures on all hosts before they look at their lab."""

    async def run(self, work: Any, argument: Any, *, workers: list[str], **_: Any) -> Any:
        del work, argument
        return dict.fromkeys(workers, "s of ann")

    async def _answer(self, work: str, argument: bytes, address: str) -> Any:
        if work == "see_lab":
            await asyncio.sleep(0.5)
        return await super()._answer(work, argument, address)


def test_a_host_that_measures_for_another_campaign_before_it_looks_at_its_lab_is_not_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.fleet.patience.TICK_S", 0.005)
    monkeypatch.setattr("workbench.fleet.patience.RETURN_S", 0.2)
    monkeypatch.setattr("workbench.fleet.host_waits.FIRST_S", 0.01)
    said: list[str] = []
    dispatched(tmp_path, AnotherFirst(""), None, "ssh", said)
    assert "alpha answers once it has measured s of ann" in said
    assert not any("has not said for" in text for text in said)
