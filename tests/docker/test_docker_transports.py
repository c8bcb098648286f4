"""An engine over TCP with TLS, and over SSH: a proxy and an sshd of the test, both on loopback."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from docker_targets import OpenLab, configuration, ignore, point, target, throughput

from workbench.domain.errors import LabError
from workbench.domain.parameters import LoadModel
from workbench.labs.docker.engine import connect

pytestmark = [pytest.mark.docker, pytest.mark.unhurried]

SOCKET = "/var/run/docker.sock"
HAPROXY = target("haproxy")
QUARTER = configuration(haproxy=0.25)


# ---------------------------------------------------------------------- TLS


class Authority:
    """A certificate authority of one test run."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir()
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._write("ca", self._key, self._sign(self._key, self._name, is_authority=True))

    def issue(self, file: str) -> None:
        """A certificate for 127.0.0.1, for either end of a connection."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, file)])
        self._write(file, key, self._sign(key, subject, is_authority=False))

    def _sign(
        self, key: ec.EllipticCurvePrivateKey, subject: x509.Name, *, is_authority: bool
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        loopback = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([loopback]), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def _write(
        self, file: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate
    ) -> None:
        pem = serialization.Encoding.PEM
        (self.folder / f"{file}.pem").write_bytes(certificate.public_bytes(pem))
        plain = key.private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        (self.folder / ("key.pem" if file == "cert" else f"{file}-key.pem")).write_bytes(plain)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority(tmp_path / "certificates", "lab")
    made.issue("server")
    made.issue("cert")
    return made


@pytest.fixture
async def tls_engine(authority: Authority) -> AsyncIterator[str]:
    """The local engine behind a TLS proxy that asks every client for a certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    folder = authority.folder
    context.load_cert_chain(folder / "server.pem", folder / "server-key.pem")
    context.load_verify_locations(folder / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_unix_connection(SOCKET)
        await asyncio.gather(_pump(reader, inner_writer), _pump(inner_reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    yield f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while block := await source.read(1 << 16):
            sink.write(block)
            await sink.drain()
    except (ConnectionError, ssl.SSLError):
        pass  # the other side hung up, as it may
    finally:
        sink.close()


async def test_a_sample_through_an_engine_over_tls(
    open_lab: OpenLab, tls_engine: str, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    monkeypatch.setenv("DOCKER_CERT_PATH", str(authority.folder))
    lab = await open_lab(LoadModel("closed"), HAPROXY, url=tls_engine)
    await lab.deploy(HAPROXY, QUARTER)
    drive = await lab.drive(point(HAPROXY, QUARTER, 2), 2.0, ignore)
    assert throughput(drive) > 100
    assert drive.counters[-1].components["haproxy"].cpu_s > 0


async def test_tls_that_does_not_fit_is_a_sentence(
    tls_engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = Authority(tmp_path / "stranger", "somebody else")
    stranger.issue("cert")
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    monkeypatch.setenv("DOCKER_CERT_PATH", str(stranger.folder))
    with pytest.raises(LabError, match=r"does not answer: .*certificate verify failed"):
        async with connect(tls_engine):
            pass
    monkeypatch.setenv("DOCKER_CERT_PATH", str(tmp_path / "nowhere"))
    with pytest.raises(LabError, match=r"there is no Docker engine: .*No such file") as caught:
        async with connect(tls_engine):
            pass
    assert caught.value.remedy
    monkeypatch.delenv("DOCKER_TLS_VERIFY")
    with pytest.raises(LabError, match="does not answer"):
        async with connect(tls_engine):
            pass


# ---------------------------------------------------------------------- SSH


@pytest.fixture
def sshd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An sshd on loopback that knows one key; the home folder of this test has it."""
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    host_key, user_key = tmp_path / "host_key", home / ".ssh" / "id_ed25519"
    for key in (host_key, user_key):
        _make_key(key)
    port = _free_port()
    public = host_key.with_suffix(".pub").read_text().split()
    (home / ".ssh" / "known_hosts").write_text(f"[127.0.0.1]:{port} {public[0]} {public[1]}\n")
    settings = tmp_path / "sshd_config"
    settings.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {host_key}\nPidFile none\n"
        f"AuthorizedKeysFile {user_key}.pub\nPasswordAuthentication no\nStrictModes no\n"
        "UsePAM no\nPermitRootLogin prohibit-password\nAcceptEnv *\nForceCommand "
        f"{shutil.which('env')} > {tmp_path}/environment; exec $SSH_ORIGINAL_COMMAND\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    program = shutil.which("sshd") or "/usr/sbin/sshd"
    command = [program, "-D", "-q", "-f", str(settings)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        _wait_for(port, process)
        monkeypatch.setenv("HOME", str(home))
        yield f"ssh://{os.environ.get('USER', 'root')}@127.0.0.1:{port}"
        process.terminate()


def _make_key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.02)
    raise AssertionError("sshd ended")


@pytest.mark.needs("sshd", "ssh", "ssh-keygen")
async def test_a_sample_through_an_engine_over_ssh(
    open_lab: OpenLab, sshd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_TOKEN", "not for the other side")
    lab = await open_lab(LoadModel("closed"), HAPROXY, url=sshd)
    await lab.deploy(HAPROXY, QUARTER)
    drive = await lab.drive(point(HAPROXY, QUARTER, 2), 2.0, ignore)
    assert throughput(drive) > 100
    assert drive.counters[-1].components["haproxy"].cpu_s > 0
    assert drive.counters[-1].host_busy_s > drive.counters[0].host_busy_s
    assert "SITE_TOKEN" not in (tmp_path / "environment").read_text()


async def test_ssh_that_does_not_fit_is_a_sentence(sshd: str, tmp_path: Path) -> None:
    known_hosts = tmp_path / "home" / ".ssh" / "known_hosts"
    known = known_hosts.read_text()
    _make_key(tmp_path / "other")
    stranger = (tmp_path / "other.pub").read_text().split()[1]
    known_hosts.write_text(f"{known.split()[0]} ssh-ed25519 {stranger}\n")
    with pytest.raises(LabError, match=r"does not answer: .*[Hh]ost key") as caught:
        async with connect(sshd):
            pass
    assert "ssh HOST docker version" in str(caught.value.remedy)
    known_hosts.unlink()
    with pytest.raises(LabError, match="Host key verification is required") as caught:
        async with connect(sshd):
            pass
    assert "Connect once" in str(caught.value.remedy)
    known_hosts.write_text(known)
    (tmp_path / "home" / ".ssh" / "id_ed25519").unlink()
    with pytest.raises(LabError, match=r"does not answer: .*[Pp]ermission denied"):
        async with connect(sshd):
            pass
