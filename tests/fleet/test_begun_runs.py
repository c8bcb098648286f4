"""The command of a stopped campaign over a fleet goes on with what it was begun with."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from workbench.cli import lab_fleet, run
from workbench.descriptors.loading import load_campaign
from workbench.domain import codec
from workbench.domain.errors import EngineError, SessionTaken, UsageError
from workbench.domain.fleet_requests import BeginFleetSession
from workbench.domain.fleets import Fleet, FleetRun, LabHost
from workbench.fleet.begun_runs import as_begun, keep_begun
from workbench.fleet.cuts import cut_orders, keep_cut
from workbench.fleet.fleet_runs import run_over_fleet
from workbench.fleet.fleet_standing import FleetError, FleetFolder
from workbench.locks import Holder
from workbench.paths import Workspace
from workbench.store.catalogue import session_path

FLEET = Fleet("hosts", (LabHost("alpha", "simulated", "sim"),))


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Of a fleet session `m1` that was begun and stopped, by commands that name no workspace."""
    monkeypatch.setattr("workbench.cli.context.settings.workspace", None)
    made = Workspace(tmp_path)
    session_path(made, "m1").parent.mkdir()
    session_path(made, "m1").touch()
    typed = "demo --fleet hosts.yaml --session m1 --seed 7 --share 2"
    keep_begun(FleetFolder.of(made, "hosts").run("m1"), asked_for(typed))
    return made


def asked_for(typed: str) -> FleetRun:
    """What `run` asks a fleet for, of these words."""
    app, found = typer.Typer(), []
    run.register(app)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lab_fleet, "run_over", lambda hosts, asked, *_, **__: found.append(asked))
        done = CliRunner().invoke(app, ["run", *typed.split()])
    assert done.exit_code == 0, done.output
    (asked,) = found
    return asked


def test_what_is_not_said_is_as_it_was_begun(workspace: Workspace) -> None:
    again = as_begun(asked_for("--fleet hosts.yaml --session m1"), FLEET, workspace)
    assert (again.campaign, again.seed, again.share) == ("demo", 7, None)
    assert again.command("m1") == "workbench run demo --fleet hosts.yaml --session m1 --seed 7"
    said = as_begun(asked_for("demo --fleet hosts.yaml --session m1 --seed 7"), FLEET, workspace)
    assert said == again
    for other in ("m2", ""):  # of which nothing is there
        new = asked_for(f"--fleet hosts.yaml{f' --session {other}' if other else ''}")
        assert as_begun(new, FLEET, workspace) == new


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("table2", "campaign demo and not table2"),
        ("--seed 1", "seed 7 and not 1"),
        ("--pace 20", "no --pace and not 20"),
        ("--lab docker", "no --lab and not docker"),
    ],
)
def test_what_contradicts_it_is_refused_with_the_whole_command(
    workspace: Workspace, typed: str, said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        as_begun(asked_for(f"--fleet hosts.yaml --session m1 {typed}"), FLEET, workspace)
    assert said in str(refused.value)
    whole = "`workbench run demo --fleet hosts.yaml --share 2 --session m1 --seed 7`"
    assert whole in str(refused.value)


@pytest.mark.parametrize("left", [None, b"", b"{"])
def test_what_nothing_is_kept_of_is_not_gone_on_with_by_another_campaign(
    workspace: Workspace, left: bytes | None
) -> None:
    """Where no campaign is named that is `demo`: all of it would be measured into the session."""
    kept = FleetFolder.of(workspace, "hosts").run("m1") / "begun.json"
    kept.unlink() if left is None else kept.write_bytes(left)
    with pytest.raises(UsageError, match="give the whole command that `workbench show m1` tells"):
        as_begun(asked_for("--fleet hosts.yaml --session m1"), FLEET, workspace)
    named = asked_for("demo --fleet hosts.yaml --session m1 --seed 7")
    assert as_begun(named, FLEET, workspace) == named


class Begins:
    """An engine that is told of a session: what was kept of its run by then."""

    def __init__(self, kept: Path, refuses: bool = False) -> None:
        self.kept, self.refuses, self.found = kept / "begun.json", refuses, list[bytes]()

    async def __call__(self) -> Any:
        return self

    async def ask(self, request: object) -> None:
        if isinstance(request, BeginFleetSession):
            self.found.append(self.kept.read_bytes())
            if self.refuses:
                raise SessionTaken("is being measured by process 1", where=request.session)
            raise EngineError("the engine hung up")

    async def close(self) -> None:
        pass


def test_what_a_run_is_begun_with_is_kept_before_its_session(workspace: Workspace) -> None:
    """Else a command that is killed in between leaves a session that nobody knows the campaign of;
    one that is refused leaves nothing."""
    asked = asked_for("demo --fleet hosts.yaml --session m2 --seed 9")
    kept = FleetFolder.of(workspace, "hosts").run("m2")
    for refuses in (False, True):
        engine: Any = Begins(kept, refuses)
        error = SessionTaken if refuses else EngineError
        with pytest.raises(error):
            asyncio.run(run_over_fleet(asked, FLEET, workspace, print, engine))
        assert len(engine.found) == 1
        assert codec.loads(engine.found[0])["seed"] == 9
        assert (kept / "begun.json").exists() != refuses


def test_one_that_is_refused_changes_nothing_of_what_is_measured(workspace: Workspace) -> None:
    kept = FleetFolder.of(workspace, "hosts").run("m1")
    before = (kept / "begun.json").read_bytes()
    asked = FleetRun("table2", "m1", seed=3)
    engine: Any = Begins(kept, refuses=True)
    with pytest.raises(SessionTaken):
        asyncio.run(run_over_fleet(asked, FLEET, workspace, print, engine))
    assert (kept / "begun.json").read_bytes() == before


def test_no_session_is_begun_where_nothing_can_be_kept(workspace: Workspace) -> None:
    runs = FleetFolder.of(workspace, "hosts").run("m2").parent
    shutil.rmtree(runs)
    runs.touch()
    engine: Any = Begins(runs)
    with pytest.raises(FleetError, match=r"begun with cannot be kept.*nothing was measured"):
        asyncio.run(run_over_fleet(FleetRun("demo", "m2"), FLEET, workspace, print, engine))
    assert not engine.found


def test_two_do_not_begin_at_once(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.fleet.begun_runs.LONGEST_S", 0.05)
    folder = FleetFolder.of(workspace, "hosts")
    other = folder.beginning
    assert other.take(Holder(12345, "elsewhere"))
    engine: Any = Begins(folder.run("m2"))
    with pytest.raises(FleetError, match="is still being begun, by process 12345"):
        asyncio.run(run_over_fleet(FleetRun("demo", "m2"), FLEET, workspace, print, engine))
    assert not engine.found
    other.free()


def test_another_fleet_does_not_measure_it_again(workspace: Workspace) -> None:
    other = Fleet("others", FLEET.hosts)
    with pytest.raises(UsageError, match=r"--fleet hosts\.yaml .*and not --fleet others\.yaml"):
        as_begun(asked_for("--fleet others.yaml --session m1"), other, workspace)


def test_a_campaign_is_the_same_by_any_path(workspace: Workspace) -> None:
    own = workspace.root / "own.yaml"
    own.write_text("kind: campaign")
    (workspace.root / "link.yaml").symlink_to(own)
    begun = asked_for(f"{own} --fleet hosts.yaml --session m1")
    keep_begun(FleetFolder.of(workspace, "hosts").run("m1"), begun)
    for name in ("link.yaml", "../{0}/own.yaml"):
        path = workspace.root / name.format(workspace.root.name)
        again = as_begun(asked_for(f"{path} --fleet hosts.yaml --session m1"), FLEET, workspace)
        assert again.campaign == str(own)
    with pytest.raises(UsageError, match=r"campaign .*own\.yaml and not other"):
        as_begun(asked_for("other.yaml --fleet hosts.yaml --session m1"), FLEET, workspace)


def test_a_campaign_that_was_changed_since_is_refused(workspace: Workspace) -> None:
    """Also where nothing says what it was begun with, as in runs of before."""
    kept = FleetFolder.of(workspace, "hosts").run("m1")
    begun = FleetRun("demo", "m1", seed=7)
    cut = cut_orders(load_campaign("demo", workspace=workspace), begun, FLEET, "m1", kept).cut
    keep_cut(kept, cut)
    asked = FleetRun("demo", "m1", seed=1)
    with pytest.raises(UsageError, match="another seed was given then"):
        asyncio.run(run_over_fleet(asked, FLEET, workspace, print))


def test_the_command_that_goes_on_names_the_workspace_that_was_given(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the usual one there is no such session, and all of it would be measured again."""
    monkeypatch.setattr("workbench.cli.context.settings.workspace", Path("/srv/lab"))
    again = as_begun(asked_for("--fleet hosts.yaml --session m1"), FLEET, workspace)
    assert again.command("m1").startswith("workbench --workspace /srv/lab run demo ")
