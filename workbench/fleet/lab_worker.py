"""The process of a lab host: a Dask worker with one lab, around this host's engine.

It is given everything on its standard input, so that no secret stands in a command line, and ends
when that is closed: a fleet that is gone leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from workbench import __version__
from workbench.domain import codec
from workbench.domain.errors import WorkbenchError
from workbench.engine.process import serving
from workbench.fleet import tasks
from workbench.fleet.host_engine import HostEngine
from workbench.fleet.security import configure
from workbench.fleet.tasks import DOWN, LONGEST_WORD, UP, Posting
from workbench.paths import workspace


async def work(posting: Posting) -> None:
    """Be a worker until the scheduler, or standard input, is gone."""
    from distributed import Worker

    async with serving(workspace(Path(posting.folder))) as engine:
        tasks.be(HostEngine(engine, posting.host))
        configure()
        async with Worker(
            posting.scheduler,
            name=posting.host.name,
            nthreads=1,
            resources={"lab": 1},
            security=posting.secrets.security(),
            host=posting.listen,
            local_directory=str(engine.workspace.state / "dask"),
            dashboard=False,
            validate=False,
        ) as worker:
            say(UP, __version__)
            ends = [
                asyncio.ensure_future(worker.finished()),
                asyncio.ensure_future(asyncio.to_thread(sys.stdin.buffer.read)),
                asyncio.ensure_future(engine.stopping.wait()),
            ]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            await engine.interrupt_runs()


def say(word: str, text: str) -> None:
    print(word, text, file=sys.stdout, flush=True)  # noqa: T201 - the keeper reads it


def main() -> None:
    """Entry point of the process (`python -m workbench.fleet.lab_worker`)."""
    try:
        line = sys.stdin.buffer.readline(LONGEST_WORD)
        asyncio.run(work(codec.from_plain(codec.loads(line), Posting)))
    except (WorkbenchError, OSError) as error:
        say(DOWN, str(error).replace("\n", " "))
        os._exit(1)
    os._exit(0)  # a thread may still wait for standard input


if __name__ == "__main__":
    main()
