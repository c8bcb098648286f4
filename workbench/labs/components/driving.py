"""One stretch of load: the generator runs beside the source while the counters are read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from workbench.domain.errors import DataError, TrafficError
from workbench.labs.base import OnUsage
from workbench.labs.components.component import Component, Ended, Outcome, Program
from workbench.labs.components.preflight import GeneratorChoice
from workbench.labs.components.watching import DriveWatch
from workbench.labs.components.wiring import SOURCE
from workbench.measuring.records import Drive
from workbench.traffic.base import Offer
from workbench.traffic.reading import read_records

EVERY_S = 1.0
RESULT_PATH = "/var/tmp/records.db"  # noqa: S108 - in the source's own container
GRACE_S = 20.0
"""How long a generator may go on after its load: it finishes requests and writes its records."""
POLL_S = 0.002


async def drive(
    watch: DriveWatch, choice: GeneratorChoice, offer: Offer, on_usage: OnUsage
) -> Drive:
    """Offer load and hand over what was seen. Raises `LabError` where a container ends."""
    source = next(c for c in watch.components if c.name == SOURCE)
    # An empty file is an empty database; what the last drive left must not be read again.
    await source.put({offer.result_path: b""})
    argv = choice.generator.argv(offer)
    begin_s, outcome = await send(watch, argv, offer.seconds, offer.request_timeout_s, on_usage)
    if outcome.exit_code != 0:
        raise TrafficError(
            f"{choice.title} ended with exit code {outcome.exit_code}: {outcome.said}",
            where="source",
            remedy="Run it by hand in the source's container",
        )
    stop_s = begin_s + offer.seconds
    result = await source.get(offer.result_path)
    records = await asyncio.to_thread(
        read_records, choice.generator, offer, result, outcome.stdout, begin_s, stop_s
    )
    closed = offer.load.kind == "closed"
    return Drive(
        begin_s,
        stop_s,
        records,
        watch.counters(),
        choice.title,
        choice.generator.kpi_definition if closed else "planned",
        round(offer.wl) if closed else offer.load.connections,
        watch.allotted,
        watch.threads,
        standing=watch.standing(),
        absent=watch.absent(),
    )


async def send(
    watch: DriveWatch, argv: Sequence[str], seconds: float, finishing_s: float, on_usage: OnUsage
) -> tuple[float, Outcome]:
    """Run a generator in the source and watch; when it began to send, and what it left.

    It is not left running, whichever way this ends.

    Parameters
    ----------
    seconds : for how long it sends.
    finishing_s : how long it may wait for answers after that.
    """
    try:
        async with watch.counting():
            return await _sent(watch, argv, seconds, finishing_s, on_usage)
    except Ended as ended:  # maybe before this began
        raise (await ended.component.death() or ended) from ended
    except DataError:  # a counter went back: somebody was cut off, or started anew
        await _all_alive(watch.components)
        raise


async def _sent(
    watch: DriveWatch, argv: Sequence[str], seconds: float, finishing_s: float, on_usage: OnUsage
) -> tuple[float, Outcome]:
    source = next(c for c in watch.components if c.name == SOURCE)
    await watch.read()
    watch.look_round()
    program = await source.begin(argv)
    finishing = asyncio.create_task(program.finish())
    done = False
    try:
        begin_s = await _began(source, program, watch, finishing)
        stop_s = begin_s + seconds
        await _watch(watch, finishing, stop_s, on_usage)
        watch.look_round()
        outcome = await _finished(finishing, stop_s + finishing_s + GRACE_S)
        done = True
        await _all_alive(watch.components)
    finally:
        if not done:
            await _halt(source, finishing)
    return begin_s, outcome


async def _began(
    source: Component, program: Program, watch: DriveWatch, finishing: asyncio.Task[Outcome]
) -> float:
    """When the generator began to send, on the lab's clock.

    On this host it is the instant at which the source begins to send (`Component.sends`), which is
    idle otherwise: the engine takes some 50 ms to start a program. Elsewhere it is the instant at
    which the engine names the program's process.
    """
    before = watch.instants[-1].components[source.name]
    latest_s = time.monotonic() + GRACE_S
    while time.monotonic() < latest_s and not finishing.done():
        if source.probe:
            if source.sends(before):
                break
        elif await program.pid():
            break
        await asyncio.sleep(POLL_S)
    return time.monotonic()


async def _watch(
    watch: DriveWatch, finishing: asyncio.Task[Outcome], stop_s: float, on_usage: OnUsage
) -> None:
    """Read the counters about once a second and when the load stops."""
    begin_s = time.monotonic()
    seconds = 1
    while time.monotonic() < stop_s and not finishing.done():
        until = min(stop_s, begin_s + seconds * EVERY_S)
        # The last second is read as one with what is left of it.
        until = stop_s if stop_s - until < EVERY_S / 2 else until
        await asyncio.wait((finishing,), timeout=max(0.0, until - time.monotonic()))
        await watch.read()
        on_usage(watch.usage())
        seconds += 1


async def _finished(finishing: asyncio.Task[Outcome], latest_s: float) -> Outcome:
    try:
        async with asyncio.timeout(max(0.0, latest_s - time.monotonic())):
            return await asyncio.shield(finishing)
    except TimeoutError:
        raise TrafficError(
            f"the generator did not end {GRACE_S:g} s after its load",
            where="source",
            remedy="Lower the load; its records may not fit into memory",
        ) from None


async def _all_alive(components: Sequence[Component]) -> None:
    deaths = await asyncio.gather(*(component.death() for component in components))
    for death in deaths:
        if death:
            raise death


async def _halt(source: Component, finishing: asyncio.Task[Outcome]) -> None:
    """End whatever runs in the source."""
    finishing.cancel()
    await asyncio.gather(finishing, return_exceptions=True)
    await source.halt()
