"""An engine elsewhere: reached over tcp, its counters asked of it instead of the kernel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest
from docker_targets import OpenLab, configuration, ignore, left_of, point, target

from workbench.domain.errors import LabError
from workbench.domain.parameters import LoadModel
from workbench.domain.samples import Usage
from workbench.labs.components import driving
from workbench.labs.components.watching import DriveWatch
from workbench.labs.docker.doctor import examine

pytestmark = [pytest.mark.docker, pytest.mark.unhurried]

SOCKET = "/var/run/docker.sock"
HAPROXY = target("haproxy")
QUARTER = configuration(haproxy=0.25)


class Forwarder:
    """The local engine by tcp, until the line is cut."""

    def __init__(self) -> None:
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"tcp://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_unix_connection(SOCKET)
        self._writers += [writer, inner_writer]
        await asyncio.gather(_pump(reader, inner_writer), _pump(inner_reader, writer))

    async def cut(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*(w.wait_closed() for w in self._writers), return_exceptions=True)


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while block := await source.read(1 << 16):
            sink.write(block)
            await sink.drain()
    except ConnectionError:
        pass  # the line was cut, as a test wants it
    finally:
        sink.close()


@pytest.fixture
async def forwarder() -> AsyncIterator[Forwarder]:
    made = Forwarder()
    yield made
    await made.cut()


async def test_an_engine_that_dies_in_mid_drive(
    open_lab: OpenLab, forwarder: Forwarder, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENGINE", await forwarder.start())
    lab = await open_lab(LoadModel("closed"), HAPROXY, url="${ENGINE}")
    await lab.deploy(HAPROXY, QUARTER)
    begun = asyncio.Event()

    def note(usage: Mapping[str, Usage]) -> None:
        begun.set()

    driving = asyncio.create_task(lab.drive(point(HAPROXY, QUARTER, 2), 20.0, note))
    await begun.wait()
    await forwarder.cut()
    with pytest.raises(LabError, match="engine is gone") as caught:
        await driving
    assert caught.value.remedy
    await lab.close()
    assert left_of(session)[0], "what cannot be reached cannot be removed"
    again = await open_lab(LoadModel("closed"), HAPROXY)
    await again.close()
    assert left_of(session) == ([], [])


async def test_the_engines_counters_agree_with_the_kernels(open_lab: OpenLab) -> None:
    lab = await open_lab(LoadModel("closed"), HAPROXY)
    await lab.deploy(HAPROXY, QUARTER)
    await lab.drive(point(HAPROXY, QUARTER, 2), 1.0, ignore)
    assert lab._deployed is not None
    components = lab._deployed.components
    here = await DriveWatch(components, {}, {}).read()
    for component in components:
        component.probe = None
    watch = DriveWatch(components, {}, {})
    assert not watch.local
    asked = await watch.read()
    for name, counted in here.components.items():
        told = asked.components[name]
        assert told.cpu_s == pytest.approx(counted.cpu_s, abs=0.05)
        assert told.rx_bytes == pytest.approx(counted.rx_bytes, rel=0.05)
        assert told.throttled_periods == pytest.approx(counted.throttled_periods, abs=1)
    drive = await driving.drive(
        DriveWatch(components, lab._deployed.allotted(), lab._deployed.threads()),
        lab._choice,
        driving.Offer(
            lab._deployed.url(lab._deployed.entry, QUARTER), LoadModel("closed"), 2, 1.0, True,
            10.0, 10_000,
            driving.RESULT_PATH,
        ),
        ignore,
    )  # fmt: skip
    assert drive.records.succeeded.any()
    assert drive.counters[-1].components["haproxy"].cpu_s > here.components["haproxy"].cpu_s


async def test_the_doctor_knows_the_engine() -> None:
    checks = {check.name: check for check in await examine()}
    assert checks["docker engine"].state == "ok"
    assert checks["cgroups"].found.startswith(("v1", "v2"))
