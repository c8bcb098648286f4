"""A Dask scheduler that exists already, in a process of its own, with certificates of its own."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from driving import Workbench
from test_fleet_whole_way import CAMPAIGN, SAMPLES, lives, standing

from workbench.descriptors.checking import lint
from workbench.descriptors.lab_hosts import load_fleet
from workbench.domain.errors import DescriptorError, UsageError
from workbench.domain.fleets import NamedScheduler
from workbench.fleet import named_scheduler
from workbench.fleet.fleet_standing import FleetError
from workbench.fleet.named_scheduler import secrets_of
from workbench.fleet.security import Secrets, made
from workbench.paths import Workspace

SCHEDULER = """
import asyncio, sys
from distributed import Scheduler, Security
protocol, *files = sys.argv[1:]
own = dict(zip(("tls_ca_file", "tls_scheduler_cert", "tls_scheduler_key"), files))
async def serve():
    security = Security(require_encryption=True, **own) if own else None
    async with Scheduler(
        host="127.0.0.1", port=0, protocol=protocol, security=security, dashboard=False
    ) as scheduler:
        print(scheduler.address, flush=True)
        await asyncio.to_thread(sys.stdin.read)
asyncio.run(serve())
"""


@dataclass(frozen=True)
class Files:
    """Certificate and key, its own authority, as files."""

    folder: Path
    name: str

    def written(self, now: datetime | None = None) -> Files:
        secrets = made(now)
        self.folder.mkdir(exist_ok=True)
        self.certificate.write_text(secrets.certificate)
        self.key.write_text(secrets.key)
        return self

    @property
    def certificate(self) -> Path:
        return self.folder / f"{self.name}.pem"

    @property
    def key(self) -> Path:
        return self.folder / f"{self.name}.key"

    def named(self, address: str) -> NamedScheduler:
        return NamedScheduler(address, *map(str, (self.certificate, self.certificate, self.key)))

    @property
    def plain(self) -> dict[str, str]:
        there = f"certificates/{self.name}"
        return {"authority": f"{there}.pem", "certificate": f"{there}.pem", "key": f"{there}.key"}


@contextmanager
def scheduler(protocol: str, files: Files | None = None) -> Iterator[str]:
    """The address of one that is there while the body runs."""
    own = [str(files.certificate), str(files.certificate), str(files.key)] if files else []
    with subprocess.Popen(
        [sys.executable, "-c", SCHEDULER, protocol, *own],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(timeout=60)


@contextmanager
def worker(workbench: Workbench, address: str, files: Files, name: str) -> Iterator[int]:
    """A worker that somebody else has started, with `dask worker`."""
    words = (
        f"-m distributed.cli.dask_worker {address} --name {name} --nthreads 1 --no-nanny "
        f"--resources lab=1 --preload workbench.fleet.lab_preload --no-dashboard "
        f"--tls-ca-file {files.certificate} --tls-cert {files.certificate} --tls-key {files.key}"
    )
    there = workbench.runtime / name
    (there / "runtime").mkdir(parents=True, mode=0o700)
    own = {"WORKBENCH_WORKSPACE": str(there), "XDG_RUNTIME_DIR": str(there / "runtime")}
    with subprocess.Popen(
        [sys.executable, *words.split()], env=workbench.environment | own, cwd=there,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            yield process.pid
        finally:
            process.terminate()
            process.wait(timeout=60)


def hosts_file(workbench: Workbench, files: Files, hosts: object) -> None:
    text = {"kind": "hosts", "certificates": files.plain, "hosts": hosts}
    (workbench.root / "hosts.yaml").write_text(json.dumps(text))
    (workbench.root / "small.yaml").write_text(CAMPAIGN)


@pytest.mark.long
def test_a_scheduler_that_exists_is_used_with_workers_of_ours_and_of_others(
    workbench: Workbench,
) -> None:
    files = Files(workbench.root / "certificates", "fleet").written()
    hosts_file(workbench, files, {"own": {"kind": "simulated"}, "theirs": {"kind": "dask"}})
    with scheduler("tls", files) as address, worker(workbench, address, files, "theirs") as other:
        assert address.startswith("tls://")
        up = workbench.run("fleet", "up", "hosts.yaml", "--scheduler", address)
        assert "own     up" in up.stdout
        assert "theirs  up" in up.stdout
        known = standing(workbench)
        assert known["scheduler"] == address

        words = "run ./small.yaml --fleet hosts.yaml --session s --seed 7 --lab sim"
        done = workbench.run(*words.split())
        assert len(workbench.samples("s")) == SAMPLES
        assert "2 hosts" in done.stdout
        assert list((workbench.runtime / "theirs" / "exports").glob("s.*.bundle"))

        workbench.run("fleet", "down", "hosts.yaml")
        assert not any(map(lives, [known["pid"], *(h["pid"] for h in known["hosts"] if h["pid"])]))
        assert lives(other)  # it is not ours to end


def test_a_worker_that_is_not_there_is_missed_with_the_command_that_starts_it(
    workbench: Workbench,
) -> None:
    files = Files(workbench.root / "certificates", "fleet").written()
    hosts_file(workbench, files, {"theirs": {"kind": "dask"}})
    alone = workbench.run("fleet", "up", "hosts.yaml", expect=2)
    assert "--scheduler tls://HOST:PORT" in " ".join(alone.stderr.split())


def test_what_is_not_encrypted_or_signed_by_others_is_refused(workbench: Workbench) -> None:
    files = Files(workbench.root / "certificates", "fleet").written()
    hosts_file(workbench, files, {"own": {"kind": "simulated"}})

    def refused(address: str, code: int) -> str:
        said = workbench.run("fleet", "up", "hosts.yaml", "--scheduler", address, expect=code)
        assert "Traceback" not in said.stderr
        return " ".join(said.stderr.split())

    with scheduler("tcp") as address:
        assert "must begin with tls://" in refused(address, 2)
        said = refused(address.replace("tcp://", "tls://"), 3)
        assert "uses no scheduler that is not encrypted" in said
    others = Files(workbench.root / "certificates", "others").written()
    with scheduler("tls", others) as address:
        assert "not of the authority fleet.pem" in refused(address, 3)
    assert "does not answer" in refused(address, 3)
    assert not standing(workbench)["hosts"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("scheduler: tcp://a:8786", "uses no scheduler that is not encrypted"),
        ("scheduler: tls://a", "must be tls://HOST:PORT"),
        ("scheduler: tls://a:99999", "must be tls://HOST:PORT"),
        ("scheduler: tls://a:8786", "name them on top under certificates"),
        ("certificates: {authority: a, key: b}", "certificate"),
    ],
)
def test_mistakes_of_a_hosts_file_are_located(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "hosts.yaml"
    path.write_text(f"kind: hosts\n{line}\nhosts: {{a: {{kind: simulated}}}}\n")
    with pytest.raises(DescriptorError) as raised:
        load_fleet(path, workspace=Workspace(tmp_path))
    assert said in str(raised.value)
    assert "hosts.yaml:2:" in str(raised.value)


def test_a_port_for_the_fleet_s_own_scheduler_beside_one_that_exists_is_refused(
    tmp_path: Path,
) -> None:
    """It would be ignored, and a firewall opened for nothing."""
    path = tmp_path / "hosts.yaml"
    text = {
        "kind": "hosts",
        "certificates": {"authority": "a", "certificate": "c", "key": "k"},
        "ports": {"scheduler": 8786},
        "hosts": {"alpha": {"kind": "simulated"}},
    }
    path.write_text(json.dumps(text))
    workspace = Workspace(tmp_path)
    with pytest.raises(UsageError, match=r"hosts\.yaml a port for the fleet's own: 8786") as caught:
        load_fleet(path, workspace=workspace, scheduler="tls://a:8787")
    assert caught.value.where == "--scheduler"
    assert "Take `scheduler` off `ports`" in str(caught.value)
    assert load_fleet(path, workspace=workspace).ports.scheduler == 8786
    text["ports"] = {"workers": "9000-9009"}
    path.write_text(json.dumps(text))
    assert load_fleet(path, workspace=workspace, scheduler="tls://a:8787").scheduler is not None


def test_certificates_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    good, other = (Files(tmp_path / "c", name).written() for name in ("good", "other"))
    old = Files(tmp_path / "c", "old").written(datetime.now(UTC) - timedelta(days=99))
    named = good.named("tls://127.0.0.1:1")
    assert secrets_of(named).authority == good.certificate.read_text()

    def why(wrong: NamedScheduler) -> str:
        with pytest.raises(UsageError) as raised:
            secrets_of(wrong)
        return str(raised.value)

    assert "expired on" in why(old.named(named.address))
    later = datetime.now(UTC) + timedelta(days=9)
    young = Files(tmp_path / "c", "young").written(later)
    from_then = f"from {later - timedelta(days=2):%Y-%m-%d %H:%M} UTC on"
    assert f"young.pem: is not valid yet: it is {from_then}" in why(young.named(named.address))
    assert "cannot be read" in why(Files(tmp_path / "c", "none").named(named.address))
    crossed = NamedScheduler(named.address, named.authority, named.certificate, str(other.key))
    assert "is not the key of good.pem" in why(crossed)
    os.truncate(good.certificate, 40)
    assert "no certificate in PEM" in why(named)


async def test_a_scheduler_that_does_not_answer_for_a_moment_has_lost_no_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its workers would be ended, and jobs of Slurm cancelled, though they measure on."""
    answers = asyncio.Event()
    answers.set()

    @asynccontextmanager
    async def client(*_: object) -> AsyncIterator[None]:
        yield

    async def workers(*_: object) -> dict[str, str]:
        if not answers.is_set():
            raise TimeoutError
        return {"alpha": "tls://192.0.2.1:1"}

    monkeypatch.setattr(named_scheduler, "client_of", client)
    monkeypatch.setattr(named_scheduler, "workers_of", workers)
    monkeypatch.setattr(named_scheduler, "LOOKING_S", 0.02)
    monkeypatch.setattr(named_scheduler, "VANISHED_S", 1.0)
    named = NamedScheduler("tls://192.0.2.1:2", "", "", "")
    async with asyncio.timeout(20.0), named_scheduler.listening(named, Secrets("", "")) as present:
        await until(lambda: present() == ("alpha",))
        answers.clear()
        await asyncio.sleep(0.2)
        assert present() == ("alpha",)
        await until(lambda: not present())
        answers.set()
        await until(lambda: present() == ("alpha",))


async def until(so: Callable[[], bool]) -> None:
    while not so():  # noqa: ASYNC110 - it rings no bell
        await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("ahead", "said"), [(-99, "'c/own.pem' expired on "), (9, "'c/own.pem' is not valid yet: ")]
)
def test_lint_says_of_a_certificate_that_it_does_not_hold(
    tmp_path: Path, ahead: int, said: str
) -> None:
    """And whoever ends the fleet may do so all the same."""
    Files(tmp_path / "c", "own").written(datetime.now(UTC) + timedelta(days=ahead))
    path = tmp_path / "hosts.yaml"
    path.write_text(
        "kind: hosts\nscheduler: tls://a:8786\n"
        "certificates:\n  authority: c/own.pem\n  certificate: c/own.pem\n  key: c/own.key\n"
        "hosts: {a: {kind: simulated}}\n"
    )
    (mistake,) = lint(path, workspace=Workspace(tmp_path))
    assert (mistake.line, mistake.field) == (5, "certificates.certificate")
    assert mistake.message.startswith(said)
    assert load_fleet(path, workspace=Workspace(tmp_path)).scheduler is not None
    Files(tmp_path / "c", "own").written()
    assert not lint(path, workspace=Workspace(tmp_path))


async def test_a_scheduler_whose_own_certificate_expired_is_told_as_that(tmp_path: Path) -> None:
    old = Files(tmp_path / "c", "old").written(datetime.now(UTC) - timedelta(days=99))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(old.certificate, old.key)
    server = await asyncio.start_server(lambda _, w: w.close(), "127.0.0.1", 0, ssl=context)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(FleetError) as raised:
            await named_scheduler.must_answer(old.named(f"tls://127.0.0.1:{port}"), Secrets("", ""))
    said = str(raised.value)
    assert "its certificate, or that of its authority old.pem, has expired. Have" in said
    assert "not of the authority" not in said
