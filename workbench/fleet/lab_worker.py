"""The process of a lab host: a Dask worker with one lab, around this host's engine.

It is given everything on its standard input, so that no secret stands in a command line, and ends
when that is closed: a fleet that is gone leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import __version__
from workbench.domain import codec
from workbench.domain.errors import LabError, WorkbenchError
from workbench.domain.fleets import LabHost
from workbench.engine.process import serving
from workbench.engine.sessions import clock
from workbench.fleet import tasks
from workbench.fleet.fleet_standing import end_stray
from workbench.fleet.host_engine import HostEngine
from workbench.fleet.lab_checks import must_be_able
from workbench.fleet.scheduler_route import own_address
from workbench.fleet.security import configure
from workbench.fleet.tasks import DOWN, LONGEST_WORD, UP, Posting
from workbench.log import logger
from workbench.paths import Workspace, workspace

if TYPE_CHECKING:
    from workbench.engine.core import Engine

CLOSING_S = 5.0
"""How long a worker may take to take leave of its scheduler."""

log = logger("fleet")


async def work(posting: Posting, owner: str = "") -> None:
    """Be a worker until the scheduler, or standard input, is gone.

    Standard input is listened to from the start: a worker that still looks for its scheduler does
    so for ever.

    Parameters
    ----------
    owner : whose worker this is; one that it left here before, which its keeper could not end,
        ends first, and the engine removes what that deployed. Empty: the keeper has seen to it.
    """
    hung_up, own = _hung_up(), workspace(Path(posting.folder))
    preparing = asyncio.create_task(_prepared(posting.host, own, owner))
    await _until_one_ends(preparing, hung_up.wait())
    if preparing.cancelled() or not preparing.done():
        return  # nobody waits for it any more
    killed = preparing.result()
    async with serving(own) as engine:
        if killed:
            log.warning("a worker of before was stuck, and was killed", pid=killed)
        clock.run_ahead(posting.host.clock_s)
        tasks.be(HostEngine(engine, posting.host))
        configure()
        working = asyncio.create_task(_work(posting, engine))
        ends = hung_up.wait(), engine.stopping.wait()
        await _until_one_ends(working, *ends, last=engine.interrupt_runs)
        if working.done() and not working.cancelled():
            working.result()


async def _until_one_ends(
    work: asyncio.Task[Any],
    *others: Coroutine[Any, Any, object],
    last: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Until the work or one of the others is done, and what is to happen `last` has; the rest is
    cancelled, and waited for no longer than `CLOSING_S`."""
    ends = [work, *map(asyncio.create_task, others)]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if last is not None:
        await last()
    for task in ends:
        task.cancel()
    await asyncio.wait(ends, timeout=CLOSING_S)


async def _prepared(host: LabHost, own: Workspace, owner: str) -> int:
    """See that this host may measure; the process of a worker of before that was killed for it,
    else 0. Raises `WorkbenchError`."""
    killed = await end_stray(own.root, owner) if owner else 0
    if host.lab and host.kind != "simulated":  # else the campaign says which
        await must_be_able(host.lab, host.name)
    return killed


async def _work(posting: Posting, engine: Engine) -> None:
    """Serve the scheduler until it is gone."""
    from distributed import Worker

    async with Worker(
        posting.scheduler,
        name=posting.host.name,
        nthreads=1,
        resources={"lab": 1},
        security=posting.secrets.security(),
        host=posting.listen or await own_address(posting.scheduler, posting.secrets),
        port=posting.ports or None,
        local_directory=str(engine.workspace.state / "dask"),
        dashboard=False,
        validate=False,
    ) as worker:
        say(UP, f"{__version__} {worker.address}")
        await worker.finished()


def _hung_up() -> asyncio.Event:
    """Set once standard input is closed; its thread holds nothing up."""
    loop, event = asyncio.get_running_loop(), asyncio.Event()

    def listen() -> None:
        while sys.stdin.buffer.read(LONGEST_WORD):
            pass
        with suppress(RuntimeError):  # the loop may have ended
            loop.call_soon_threadsafe(event.set)

    threading.Thread(target=listen, daemon=True).start()
    return event


def say(word: str, text: str) -> None:
    print(word, text, file=sys.stdout, flush=True)  # noqa: T201 - the keeper reads it


def main() -> None:
    """Entry point of the process (`python -m workbench.fleet.lab_worker [OWNER [VERSION]]`): one of
    another version than the fleet's says so and never comes to its scheduler."""
    owner, version = [*sys.argv[1:3], "", ""][:2]
    try:
        if version and version != __version__:
            raise LabError(
                f"has workbench {__version__}, this is {version}; install the same there"
            )
        line = sys.stdin.buffer.readline(LONGEST_WORD)
        posting = codec.from_plain(codec.loads(line), Posting)
        # Never closed: that waits for threads, such as one that asks a lab or fits a model.
        asyncio.Runner().run(work(posting, owner))
    except (WorkbenchError, OSError) as error:
        say(DOWN, str(error).replace("\n", " "))
        os._exit(1)
    except Exception as error:  # noqa: BLE001 - said, else a thread that reads aborts the process
        traceback.print_exc()
        why = error.__cause__ or error  # Dask's own says only that it did not start
        say(DOWN, f"{type(why).__name__}: {why}".replace("\n", " "))
        os._exit(1)
    os._exit(0)  # a thread waits for standard input, others for the scheduler or a lab


if __name__ == "__main__":
    main()
