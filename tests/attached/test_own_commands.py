"""Resources that a program sets: a real command of the test's own, and a stand-in for systemctl."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from driving import Workbench
from killing import killed_and_put_back
from running_system import Attach, RunningSystem, a_running_system

from workbench.descriptors.loading import load_campaign
from workbench.domain.attaching import Attached, OwnCommand
from workbench.domain.errors import DescriptorError, LabError, LabStopped
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Usage
from workbench.labs.attached import AttachedLab, command_journal, own_settings
from workbench.labs.attached.command_journal import CommandJournal
from workbench.labs.attached.own_settings import OwnSetting, said_by, value_of
from workbench.labs.docker.strays import Owner
from workbench.paths import Workspace, attached_folder
from workbench.probes.process import PROC

SMALL = Configuration({"web.vcpu": 0.35}, {})
POINT = OperatingPoint("web", SMALL, 50)
LIMIT = """\
#!/bin/sh
# limit FILE [PERCENT]: says or sets the share of a core, in percent, that a group may use.
set -eu
here=$(dirname "$0")
if [ $# -eq 1 ]; then
  read -r quota rest <"$1"
  echo $((quota / 500))
  exit
fi
case $(cat "$here/mode") in
  well) ;;
  fails) echo "no more today" >&2; exit 3 ;;
  hangs) sleep 600 & echo $! >"$here/hanging"; wait ;;
  lies) exit 0 ;;
  half) set -- "$1" 7; echo well >"$here/mode"; trap 'exit 1' EXIT ;;
esac
case "$1" in
  */cpu.max) echo "$(($2 * 500)) 50000" >"$1" ;;
  *) echo $(($2 * 500)) >"$1" ;;
esac
"""
SYSTEMCTL = """\
#!/bin/sh
# A stand-in for systemctl: keeps a unit's CPUQuota in a file and writes it to the group.
set -eu
here=$(dirname "$0")
percent=$(cat "$here/quota" 2>/dev/null || echo 80)
case "$1" in
  show)
    [ "$5" = "UNIT" ] && [ "$2" = --property=CPUQuotaPerSecUSec ] && [ "$3 $4" = "--value --" ]
    echo "$((percent * 10))ms" ;;
  set-property)
    [ "$2 $3" = "--runtime --" ] && [ "$4" = "UNIT" ]
    percent=${5#CPUQuota=}; percent=${percent%\\%}
    echo "$percent" >"$here/quota"
    [ ! -e "$here/asleep" ] || exit 0
    case "FILE" in
      */cpu.max) echo "$((percent * 500)) 50000" >"FILE" ;;
      *) echo $((percent * 500)) >"FILE" ;;
    esac ;;
esac
"""


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def campaign(system: RunningSystem, folder: Path, resources: str, samples: int = 2) -> Path:
    path = system.campaign(folder, resources="fixed", guard="p95<=2s", samples=samples)
    text = path.read_text().replace("resources: fixed", resources)
    shares = "    resource_parameters: [{name: vcpu, values: [35%]}]\n"
    path.write_text(text.replace("  - vnf: web\n", f"  - vnf: web\n{shares}"))
    return path


def commanded(system: RunningSystem, folder: Path, mode: str = "well", samples: int = 2) -> Path:
    limit = script(folder / "commands" / "limit", LIMIT)
    (folder / "commands" / "mode").write_text(mode)
    return campaign(
        system,
        folder,
        "resources: command\n    commands:\n      vcpu:\n"
        f"        set: [{limit}, {system.quota}, '{{value}}']\n"
        f"        read: [{limit}, {system.quota}]\n        unit: percent",
        samples,
    )


async def standing(lab: AttachedLab) -> AttachedLab:
    await lab.open()
    await lab.deploy(lab._campaign.targets[0].target, SMALL)
    return lab


def note(usage: Mapping[str, Usage]) -> None:
    """What is used meanwhile is of no interest here."""


async def test_a_command_sets_it_while_it_is_loaded_and_sets_it_back(
    system: RunningSystem, attach: Attach, tmp_path: Path
) -> None:
    before, seen = system.settings(), list[bytes]()
    lab = await standing(attach(commanded(system, tmp_path)))
    assert system.settings() == before
    drive = await lab.drive(POINT, 1.0, lambda usage: seen.append(system.quota.read_bytes()))
    assert seen[0].split()[0] == b"17500"
    assert system.settings() == before
    assert drive.allotted_cores["web"] == 0.35
    assert drive.records.succeeded.sum() > 10
    await lab.close()
    assert not list(attached_folder().glob("*"))


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("fails", r"`\S+limit \S+ 35` ended with exit code 3: no more today"),
        ("hangs", r"`\S+limit \S+ 35` did not end within 1 s, and was ended"),
        ("lies", r"was to set vcpu to 35 and ended well, and it is 80 still"),
        ("half", r"`\S+limit \S+ 35` ended with exit code 1"),
    ],
)
async def test_a_command_that_does_not_do_as_told_is_a_sentence(
    system: RunningSystem,
    attach: Attach,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    said: str,
) -> None:
    monkeypatch.setattr(own_settings, "COMMAND_S", 10.0 if mode != "hangs" else 1.0)
    before = system.settings()
    lab = await standing(attach(commanded(system, tmp_path, mode)))
    with pytest.raises(LabError, match=said):
        await lab.drive(POINT, 1.0, note)
    assert system.settings() == before
    assert not list(attached_folder().glob("*"))
    if mode == "hangs":  # and nothing that it started is left
        left = int((tmp_path / "commands" / "hanging").read_text())
        until = time.monotonic() + 20
        while (PROC / str(left)).exists() and b"sleep" in (
            PROC / str(left) / "cmdline"
        ).read_bytes():
            assert time.monotonic() < until
            time.sleep(0.02)


async def test_what_cannot_be_set_back_is_told_and_set_back_by_reap(
    system: RunningSystem, attach: Attach, tmp_path: Path
) -> None:
    before = system.settings()
    lab = await standing(attach(commanded(system, tmp_path)))

    def spoil(usage: Mapping[str, Usage]) -> None:
        (tmp_path / "commands" / "mode").write_text("fails")

    with pytest.raises(LabStopped, match=r"its vcpu is left changed, it was 80 before: `"):
        await lab.drive(POINT, 1.0, spoil)
    await lab.close()
    assert system.settings() != before
    (journal,) = attached_folder().glob("*.commands")
    journal.chmod(0o666)
    (said,) = await CommandJournal.reap()
    assert "no command in it is run" in said
    journal.chmod(0o600)
    (said,) = await CommandJournal.reap()
    assert said.startswith("not put back: ")
    assert "no more today" in said
    (tmp_path / "commands" / "mode").write_text("well")
    assert await CommandJournal.reap() == (f"process {system.pid}: its vcpu is 80 again",)
    assert system.settings() == before
    assert not list(attached_folder().glob("*"))


async def test_what_somebody_else_sets_meanwhile_stays(tmp_path: Path) -> None:
    file = tmp_path / "cpu.cfs_quota_us"
    file.write_text("40000\n")
    limit = script(tmp_path / "commands" / "limit", LIMIT)
    (tmp_path / "commands" / "mode").write_text("well")
    setting = OwnSetting(
        "web", "vcpu", "command", (str(limit), str(file), "{value}"), (str(limit), str(file))
    )
    journal = CommandJournal.new("one")
    await journal.change(setting, "35")
    assert command_journal.changed_by(setting) is not None
    file.write_text("30000\n")
    (said,) = await journal.restore()
    assert said == "web: somebody set its vcpu to 60 meanwhile; that stays"
    assert file.read_text() == "30000\n"
    assert command_journal.changed_by(setting) is None


async def test_what_a_dead_lab_left_limited_is_not_measured(
    system: RunningSystem, attach: Attach, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its limit would be noted as the function's own."""
    mode = tmp_path / "commands" / "mode"
    lab = await standing(attach(commanded(system, tmp_path)))
    before = system.settings()
    with pytest.raises(LabStopped, match="is left changed"):
        await lab.drive(POINT, 1.0, lambda usage: mode.write_text("fails"))
    await lab.close()
    monkeypatch.setattr(Owner, "may_live", lambda owner: False)
    with pytest.raises(LabError, match=r"changed its vcpu, and it is not put back yet"):
        await standing(attach(commanded(system, tmp_path, "fails")))
    mode.write_text("well")
    assert await CommandJournal.reap() == (f"process {system.pid}: its vcpu is 80 again",)
    assert system.settings() == before


async def test_a_program_whose_child_left_its_group_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The child holds the pipes open, for good."""
    monkeypatch.setattr(own_settings, "COMMAND_S", 0.5)
    argv = ["sh", "-c", "setsid sleep 6 & exec sleep 60"]
    async with asyncio.timeout(4.0):
        with pytest.raises(LabError, match=r"did not end within 0.5 s"):
            await own_settings.said_by(argv)


@pytest.mark.long
def test_what_a_killed_engine_changed_is_put_back(
    workbench: Workbench, system: RunningSystem, full_length: bool
) -> None:
    path = commanded(system, workbench.root, samples=20)
    again = f"process {system.pid}: its vcpu is 80 again"
    killed_and_put_back(workbench, path, system.settings, again, 20 if full_length else 2)


# ------------------------------------------------------------------ systemd, by a stand-in


@pytest.fixture
def unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningSystem]:
    """A system in a group that is named as a unit's, and a stand-in for systemctl."""
    with a_running_system(tmp_path, kind=".service") as system:
        text = SYSTEMCTL.replace("UNIT", Path(system.path).name).replace("FILE", str(system.quota))
        script(tmp_path / "stand-in" / "systemctl", text)
        path = f"{tmp_path}/stand-in:{os.environ['PATH']}"
        monkeypatch.setattr(own_settings, "ENVIRONMENT", {"PATH": path, "LC_ALL": "C"})
        yield system


async def test_a_stand_in_for_systemctl_sets_a_unit_s_quota_and_sets_it_back(
    unit: RunningSystem, attach: Attach, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workbench.labs.attached import commanded_function

    before, seen = unit.settings(), list[bytes]()
    lab = await standing(attach(campaign(unit, tmp_path, "resources: set-property")))
    await lab.drive(POINT, 1.0, lambda usage: seen.append(unit.quota.read_bytes()))
    assert seen[0].split()[0] == b"17500"
    assert unit.settings() == before
    monkeypatch.setattr(commanded_function, "KERNEL_S", 0.1)
    (tmp_path / "stand-in" / "asleep").touch()
    with pytest.raises(LabError, match=r"systemd says that it has 0.35 cores, and its .* has 0.8"):
        await lab.drive(POINT, 1.0, note)
    assert (tmp_path / "stand-in" / "quota").read_text() == "80\n"


async def test_a_group_that_is_no_unit_is_a_sentence(
    system: RunningSystem, attach: Attach, tmp_path: Path
) -> None:
    lab = attach(campaign(system, tmp_path, "resources: set-property"))
    with pytest.raises(LabError, match=r"control group attach-test\S+ is no unit of systemd"):
        await standing(lab)


@pytest.mark.parametrize(
    ("resource", "says", "value"),
    [
        ("vcpu", "infinity", ""),
        ("vcpu", "250ms", "25%"),
        ("vcpu", "1s 500ms", "150%"),
        ("vcpu", "333.300ms", "33.33%"),
        ("vcpu", "1min", "6000%"),
        ("memory", "infinity", "infinity"),
        ("memory", "67108864", "67108864"),
        ("memory", "64M", None),
        ("vcpu", "[not set]", None),
    ],
)
async def test_what_systemctl_shows_is_read(resource: str, says: str, value: str | None) -> None:
    setting = OwnSetting("web", resource, "systemd", ("true",), ("echo", says))
    if value is None:
        with pytest.raises(LabError, match="says '"):
            await setting.held()
    else:
        assert await setting.held() == value


async def test_what_is_said_is_one_value_and_no_shell_reads_an_argument(tmp_path: Path) -> None:
    assert await said_by(["printf", "%s", "$(id); `id` 'x'"]) == "$(id); `id` 'x'"
    assert len(await said_by(["head", "-c", "100000", "/dev/zero"])) == own_settings.LONGEST
    with pytest.raises(LabError, match=r"exit code 127: setpriv: .*no-such-program"):
        await said_by(["no-such-program"])
    for says in ("one\ntwo", "x" * 300, "", "\x1b[2J"):
        with pytest.raises(LabError, match="print"):
            await OwnSetting("web", "vcpu", "command", ("true",), ("printf", "%s", says)).held()


def test_amounts_are_given_in_the_unit_that_is_asked_for() -> None:
    def asked(resource: str, unit: str, amount: float) -> str:
        one = OwnCommand(resource, ("a", "{value}"), ("b",), unit)  # type: ignore[arg-type]
        return value_of(Attached("web", "pid", "7", commands=(one,)), resource, amount)

    assert asked("vcpu", "cores", 0.25) == "0.25"
    assert asked("vcpu", "percent", 0.35) == "35"
    assert asked("memory", "bytes", 64 * 2**20) == "67108864"
    assert asked("memory", "MiB", 64 * 2**20) == "64"
    assert value_of(Attached("web", "pid", "7"), "vcpu", 0.3333) == "33.33%"
    assert value_of(Attached("web", "pid", "7"), "memory", 2.0**26) == "67108864"


SET = "commands: {vcpu: {set: [a, '{value}'], read: [b]}}"
READ = SET.replace("[b]", "[b, 'x{value}']")


@pytest.mark.parametrize(
    ("resources", "field", "said"),
    [
        ("resources: command", "attach.web.commands", "is missing"),
        (f"resources: fixed\n    {SET}", "attach.web.commands", "belongs to `resources: command`"),
        (f"resources: command\n    host: lab-a\n    {SET}", "attach.web.resources", "this host"),
        ("resources: command\n    commands: {vcpu: {set: [a], read: [b]}}", "", "needs {value}"),
        ("resources: command\n    commands: {vcpu: {set: 'a {value}', read: [b]}}", "", "list"),
        (f"resources: command\n    {READ}", "", "is given none"),
        (f"resources: command\n    {SET.replace('[b]', '[b], unit: MiB')}", "", "cores, percent"),
        (f"resources: command\n    {SET.replace('vcpu', 'memory')}", "targets[0]", "no command"),
    ],
)
def test_mistakes_in_a_campaign(tmp_path: Path, resources: str, field: str, said: str) -> None:
    system = RunningSystem((), "/web", tmp_path / "delay", port=8080)
    fixed = system.campaign(tmp_path, "pid: 7", resources="fixed").read_text()
    shares = "    resource_parameters: [{name: vcpu, values: [35%]}]\n"
    text = fixed.replace("resources: fixed", resources)
    path = tmp_path / "running.yaml"
    path.write_text(text.replace("  - vnf: web\n", f"  - vnf: web\n{shares}"))
    with pytest.raises(DescriptorError) as caught:
        load_campaign(str(path), workspace=Workspace(tmp_path))
    assert any(m.field.startswith(field) and said in m.message for m in caught.value.mistakes), (
        caught.value.mistakes
    )
