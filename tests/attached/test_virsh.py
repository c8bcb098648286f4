"""What is asked of `virsh`, as far as it needs no domain that runs: libvirt's own driver of domains
that are none (`test:///default`), and a stand-in for `virsh` where a quota is set.

`test_libvirt_domains.py` has a real domain, in `make accept`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from running_system import Attach, RunningSystem

from workbench.descriptors.loading import load_campaign
from workbench.domain.attaching import Attached
from workbench.domain.errors import DescriptorError, LabError, LabStopped
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Usage
from workbench.labs.attached import virsh
from workbench.labs.attached.command_journal import CommandJournal
from workbench.labs.attached.discovering import Candidate, campaign_of, domains
from workbench.labs.attached.domain_function import find_domain
from workbench.labs.attached.own_settings import SettingGone
from workbench.labs.attached.virsh import DomainLook, asked
from workbench.paths import Workspace, attached_folder

TEST = "test:///default"
REAL = pytest.mark.needs("virsh")
CONNECT = "qemu+ssh://root@lab-a/system"
UUID = "cdece3df-d3ae-4d87-8cdb-1cc1e7e6fcd0"
POINT = OperatingPoint("web", Configuration({"web.vcpu": 0.25}, {}), 50)
STAND_IN = """\
#!/bin/sh
# A stand-in for virsh: one domain, its quota and number kept in files; its CPU is a clock's.
set -eu
here=$(dirname "$0")
[ "$1 $2 $3" = "--quiet --connect CONNECT" ]
shift 3
tell() { cat "$here/$1"; }
if [ "$(tell says)" != well ]; then echo "error: $(tell says)" >&2; exit 1; fi
case "$1" in
  domuuid) echo UUID ;;
  list) tell runs ;;
  dumpxml) echo "<domain type='kvm' id='$(tell number)'>" ;;
  nodeinfo)
    echo "CPU model:           x86_64"; echo "CPU(s):              4"
    echo "CPU frequency:       2400 MHz"; echo "Memory size:         8388608 KiB" ;;
  domifaddr)
    [ "$4" = arp ]
    echo " lo    00:00:00:00:00:00    ipv4         127.0.0.1/8"
    echo " vnet0 aa:bb:cc:dd:ee:ff    ipv4         192.0.2.7/0" ;;
  schedinfo)
    [ "$2 $3 $4" = "UUID --live --set" ]
    echo "${5#global_quota=}" >"$here/quota" ;;
  "schedinfo UUID; domid UUID; domstate --reason UUID; domstats --raw "*)
    echo "global_period  : 50000"; echo "global_quota   : $(tell quota)"
    tell number; tell state
    read -r up rest </proc/uptime
    echo "Domain: 'web'"; echo "  vcpu.current=2"; echo "  balloon.rss=4096"
    echo "  cpu.time=${up%.*}000000000"; echo "  net.0.rx.bytes=7"; echo "  vcpu.0.delay=5" ;;
  *) exit 9 ;;
esac
"""


@pytest.fixture
def stand_in_virsh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its folder."""
    folder = tmp_path / "stand-in"
    folder.mkdir()
    script = folder / "virsh"
    script.write_text(STAND_IN.replace("UUID", UUID).replace("CONNECT", CONNECT))
    script.chmod(0o755)
    for name, held in (
        ("runs", UUID),
        ("quota", "-1"),
        ("number", "3"),
        ("state", "running (booted)"),
    ):
        (folder / name).write_text(f"{held}\n")
    (folder / "says").write_text("well")
    monkeypatch.setattr(virsh, "VIRSH", str(script))
    return folder


def campaign(system: RunningSystem, folder: Path) -> Path:
    found = f"domain: web\n    connect: {CONNECT}"
    path = system.campaign(folder, found, "p95<=2s", resources="schedinfo")
    shares = "    resource_parameters: [{name: vcpu, values: [25%]}]\n"
    text = path.read_text().replace("  - vnf: web\n", f"  - vnf: web\n{shares}")
    path.write_text(text)
    return path


async def test_a_stand_in_s_quota_is_set_while_it_is_loaded_and_set_back(
    stand_in_virsh: Path, system: RunningSystem, attach: Attach, tmp_path: Path
) -> None:
    quota, seen = stand_in_virsh / "quota", list[str]()
    lab = attach(campaign(system, tmp_path))
    facts = await lab.open()
    assert (facts.cores, facts.memory_bytes, facts.is_emulated) == (4, 8 << 30, False)
    await lab.deploy(lab._campaign.targets[0].target, POINT.configuration)
    drive = await lab.drive(POINT, 1.0, lambda usage: seen.append(quota.read_text()))
    assert seen[0] == "12500\n"
    assert quota.read_text() == "-1\n"
    assert drive.allotted_cores["web"] == 0.25
    assert drive.counters[-1].observed["web", "cpu_wait_s", ""] == pytest.approx(5e-9)
    assert drive.counters[-1].components["web"].memory_bytes == 4 << 20
    assert "libvirt" in drive.absent["web", "throttled_s"]
    assert not list(attached_folder().glob("*"))


@pytest.mark.parametrize(
    ("file", "holds", "said"),
    [
        ("state", "paused (I/O error)", r"it is paused \(I/O error\), while it was measured"),
        ("state", "crashed (panicked)", "it is crashed"),
        ("number", "4", "it was started again, while it was measured"),
        ("quota", "30000", "somebody set global_quota from 12500 to 30000"),
    ],
)
async def test_what_becomes_of_a_stand_in_stops_the_load(
    stand_in_virsh: Path,
    system: RunningSystem,
    attach: Attach,
    tmp_path: Path,
    file: str,
    holds: str,
    said: str,
) -> None:
    lab = attach(campaign(system, tmp_path))
    await lab.open()
    await lab.deploy(lab._campaign.targets[0].target, POINT.configuration)

    def meanwhile(usage: Mapping[str, Usage]) -> None:
        written = stand_in_virsh / f"{file}.new"  # never read half written
        written.write_text(f"{holds}\n")
        written.replace(stand_in_virsh / file)

    with pytest.raises(LabStopped, match=said):
        await lab.drive(POINT, 20.0, meanwhile)  # it ends as soon as it is seen
    left = {"number": "12500", "quota": "30000"}.get(file, "-1")  # of another start: not ours
    assert (stand_in_virsh / "quota").read_text() == f"{left}\n"
    assert not list(attached_folder().glob("*"))


async def test_a_libvirt_that_is_gone_with_a_quota_set_is_asked_again_by_reap(
    stand_in_virsh: Path, system: RunningSystem, attach: Attach, tmp_path: Path
) -> None:
    lab = attach(campaign(system, tmp_path))
    await lab.open()
    await lab.deploy(lab._campaign.targets[0].target, POINT.configuration)
    refused = "unable to connect to server at 'lab-a:16509': Connection refused"

    def meanwhile(usage: Mapping[str, Usage]) -> None:
        (stand_in_virsh / "says").write_text(refused)

    with pytest.raises(LabStopped, match=r"its global_quota is left changed, it was -1 before"):
        await lab.drive(POINT, 3.0, meanwhile)
    (said,) = await CommandJournal.reap()
    assert said.startswith("not put back: libvirt domain web on root@lab-a: ")
    assert "it cannot be reached" in said
    (stand_in_virsh / "says").write_text("well")
    assert await CommandJournal.reap() == (
        "libvirt domain web on root@lab-a: its global_quota is -1 again",
    )
    assert (stand_in_virsh / "quota").read_text() == "-1\n"


async def test_only_what_libvirt_does_not_list_is_gone(stand_in_virsh: Path) -> None:
    domain = await find_domain(Attached("web", "domain", UUID.upper(), connect=CONNECT))
    assert domain.uuid == UUID
    assert await domain.quota.held() == "-1"
    (stand_in_virsh / "number").write_text("\n")  # as where its connection was lost meanwhile
    with pytest.raises(LabError, match="which start of it runs") as caught:
        await domain.quota.held()
    assert not isinstance(caught.value, SettingGone)
    (stand_in_virsh / "runs").write_text("\n")
    with pytest.raises(SettingGone, match="runs no more there"):
        await domain.quota.held()


async def test_an_address_is_what_libvirt_knows(stand_in_virsh: Path) -> None:
    attached = Attached("web", "domain", "web", url="http://{address}/", connect=CONNECT)
    assert (await find_domain(attached)).address == "192.0.2.7"


@pytest.mark.parametrize(
    ("says", "said"),
    [
        ("Cannot recv data: Host key verification failed.: Connection reset", "key of that host"),
        ("Cannot recv data: root@lab-a: Permission denied (publickey).", "lets this user not in"),
        ("authentication unavailable: no polkit agent available", "lets this user not in"),
        ("CPU tuning is not available in session mode", "can bound no CPU of it"),
        ("something that nobody expected", "something that nobody expected"),
    ],
)
async def test_what_a_stand_in_says_is_a_sentence(
    stand_in_virsh: Path, says: str, said: str
) -> None:
    (stand_in_virsh / "says").write_text(says)
    with pytest.raises(LabError, match=said):
        await asked(CONNECT, "domuuid", "web")


@REAL
@pytest.mark.parametrize(
    ("connect", "name", "said"),
    [
        ("qemu:///system?socket=/nowhere", "web", "no libvirt answers"),
        ("qemu+tcp://127.0.0.1:1/system", "web", "it cannot be reached"),
        ("qemu+ssh://127.0.0.1:1/system", "web", "it cannot be reached"),
        (TEST, "web", "there is no such domain"),
        (TEST, "test", "does not tell how much CPU it used"),
    ],
)
async def test_what_libvirt_refuses_is_a_sentence(connect: str, name: str, said: str) -> None:
    with pytest.raises(LabError, match=said):
        await find_domain(Attached("web", "domain", name, connect=connect, resources="schedinfo"))


@REAL
async def test_without_a_libvirt_no_domain_is_discovered() -> None:
    assert await domains("qemu:///system?socket=/nowhere") == []


async def test_without_virsh_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virsh, "VIRSH", "no-such-virsh")
    with pytest.raises(LabError, match="no `virsh`") as caught:
        await asked(TEST, "list")
    assert caught.value.remedy == "Install the package libvirt-clients"


@REAL
async def test_libvirt_s_own_domain_is_looked_at() -> None:
    uuid = (await asked(TEST, "domuuid", "test")).strip()
    look = DomainLook.of(await asked(TEST, *virsh.look_words(uuid)))
    assert (look.number, look.state, look.runs) == ("1", "running (unknown)", True)
    assert look.cores == 0.0
    assert look.total("net", "rx.bytes") is None


def test_figures_of_many_disks_and_vcpus_are_added() -> None:
    look = DomainLook.of(
        "7\nrunning (booted)\nglobal_period  : 50000\nglobal_quota   : 25000\nDomain: 'web'\n"
        "  cpu.time=12\n  vcpu.0.delay=3\n  vcpu.11.delay=4\n  block.0.name=vda\n"
        "  block.0.rd.bytes=10\n  block.1.wr.bytes=5\n  block.1.rd.times=9\n"
    )
    assert look.cores == 0.5
    assert look.total("vcpu", "delay") == 7
    assert look.total("block", "rd.bytes", "wr.bytes") == 15
    assert not DomainLook.of("-\nshut off (migrated)\n").runs
    # As libvirt tells of a group of version 2 that has none.
    unlimited = "7\nrunning (booted)\nglobal_period : 100000\nglobal_quota : 17592186044415\n"
    assert DomainLook.of(unlimited).cores == 0.0


@pytest.mark.parametrize(
    ("written", "field", "said"),
    [
        ("connect: qemu:///system", "attach.web.connect", "belongs to a domain"),
        ("resources: schedinfo", "attach.web.resources", "domains of libvirt know"),
        ("domain: web\n    host: lab-a", "attach.web.host", "belongs to `connect`"),
        ("domain: web\n    resources: cgroup", "attach.web.resources", "schedinfo, fixed"),
        ("domain: -web", "attach.web.domain", "match"),
        ("domain: '3'", "attach.web.domain", "match"),
        ("domain: web; list", "attach.web.domain", "match"),
        (
            "domain: web\n    connect: 'qemu+ext:///system?command=/bin/x'",
            "attach.web.connect",
            "be",
        ),
        ("domain: web\n    connect: 'qemu+ssh://a/system?netcat=x'", "attach.web.connect", "be"),
    ],
)
def test_mistakes_of_a_campaign(tmp_path: Path, written: str, field: str, said: str) -> None:
    system = RunningSystem((), "/web", tmp_path / "delay", port=8080)
    found = "pid: 7" if "domain" not in written else ""
    path = system.campaign(tmp_path, f"{found}\n    {written}", resources="fixed")
    if "resources" in written:
        path.write_text(path.read_text().replace("    resources: fixed\n", ""))
    with pytest.raises(DescriptorError) as caught:
        load_campaign(str(path), workspace=Workspace(tmp_path))
    assert any(m.field.startswith(field) and said in m.message for m in caught.value.mistakes), (
        caught.value.mistakes
    )


def test_memory_of_a_domain_stays(tmp_path: Path) -> None:
    system = RunningSystem((), "/web", tmp_path / "delay", port=8080)
    path = system.campaign(tmp_path, "domain: web")
    path.write_text(path.read_text().replace("    resources: cgroup\n", ""))
    with pytest.raises(DescriptorError, match="of a domain, vcpu alone is changed"):
        load_campaign(str(path), workspace=Workspace(tmp_path))


def test_a_domain_s_campaign_names_its_own_means() -> None:
    text = campaign_of(["web"], [Candidate("domain", "web", "kvm", ports=(80,))], "f", [])
    assert "domain: web" in text
    assert "http://{address}:80/" in text
    assert "# or schedinfo" in text
