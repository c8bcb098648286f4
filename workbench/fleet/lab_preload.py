"""Makes a lab host of a Dask worker that somebody else starts:

    dask worker tls://HOST:PORT --tls-ca-file CA --tls-cert CERT --tls-key KEY --name lab-a \\
        --nthreads 1 --no-nanny --resources lab=1 --preload workbench.fleet.lab_preload

The worker's workspace is that of WORKBENCH_WORKSPACE; which host of a fleet it is, the command that
measures with it tells it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from workbench.domain.fleets import LabHost
from workbench.engine.process import serving
from workbench.fleet import tasks
from workbench.fleet.host_engine import HostEngine
from workbench.paths import workspace

if TYPE_CHECKING:
    from distributed import Worker

CLOSING_S = 20.0
"""How long a worker that ends waits for what is torn down."""


class BesideWorker:
    """The engine of a worker, in a task of its own: who ends the worker twice, such as its
    scheduler and Slurm, does not end it half torn down."""

    def __init__(self, name: str) -> None:
        self._ending, self._ready = asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._serve(name))

    async def _serve(self, name: str) -> None:
        try:
            async with serving(workspace()) as engine:
                tasks.be(HostEngine(engine, LabHost(name, "dask")))
                self._ready.set()
                await self._ending.wait()
        finally:
            tasks.be(None)
            self._ready.set()

    async def open(self) -> None:
        """Raises what keeps the engine from being there."""
        await self._ready.wait()
        if self._task.done():
            self._task.result()

    async def close(self) -> None:
        self._ending.set()
        deadline = asyncio.get_running_loop().time() + CLOSING_S
        while not self._task.done() and asyncio.get_running_loop().time() < deadline:
            with suppress(asyncio.CancelledError):  # a worker whose end is cancelled stays for ever
                await asyncio.wait({self._task}, timeout=1.0)


_open: list[BesideWorker] = []


async def dask_setup(worker: Worker) -> None:
    """Open this host's engine beside the worker; Dask calls it."""
    beside = BesideWorker(str(worker.name))
    await beside.open()
    _open.append(beside)


async def dask_teardown(worker: Worker) -> None:
    """End what is measured, and the engine; Dask calls it."""
    del worker
    while _open:
        await _open.pop().close()
