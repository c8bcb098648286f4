"""`doctor`, `reap`, `images`, `engine`: the host and what runs on it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli.command_groups import WholeSentences
from workbench.cli.run import within

if TYPE_CHECKING:
    from workbench.domain.lab import Check, HostMeasured
    from workbench.domain.messages import EngineStatus

STOP_TIMEOUT_S = 60.0
"""What an engine gets to remove its containers and close its sessions."""

JsonOption = Annotated[bool, typer.Option("--json", help="JSON instead of text.")]


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)
    app.command("reap")(reap)
    images = typer.Typer(
        cls=WholeSentences, help="Container images of the lab.", rich_markup_mode=None
    )
    images.command("build")(build_images)
    app.add_typer(images, name="images")
    engine = typer.Typer(
        cls=WholeSentences, help="The process that owns this workspace.", rich_markup_mode=None
    )
    engine.command("status")(engine_status)
    engine.command("stop")(engine_stop)
    engine.command("serve", hidden=True)(engine_serve)
    app.add_typer(engine, name="engine")


def doctor(
    measure: Annotated[
        bool,
        typer.Option(
            "--measure", help="Measure the noise of this host (A/A pairs); takes minutes."
        ),
    ] = False,
    lab: Annotated[str | None, typer.Option(help="With --measure: docker or sim.")] = None,
    pairs: Annotated[
        int | None, typer.Option(help="With --measure: interleaved pairs, a deployment each.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(callback=within("seed"), help="With --measure: seed of the simulated lab."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Say what this host has for a lab, what is missing and how to get it.

    With --measure: what generator and bare sink carry, and the smallest difference that two
    sessions of this host can show. It is kept, and stored with every session made here.

    Example: workbench doctor --measure --lab docker
    """
    from workbench.cli.context import ask_patiently, execute, put_json
    from workbench.domain.codec import to_plain
    from workbench.domain.errors import FINDING, UsageError
    from workbench.domain.lab import MeasureHost, RunDoctor

    if measure:
        from workbench.cli.headless import measure_host

        asked = MeasureHost(lab)
        if pairs is not None:
            asked = replace(asked, pairs=pairs)
        if seed is not None:
            asked = replace(asked, seed=seed)
        measured = execute(measure_host(asked))
        if json:
            put_json(to_plain(measured))
        else:
            _put_noise(measured)
        return
    if (lab, pairs, seed) != (None, None, None):
        raise UsageError(
            "--lab, --pairs and --seed say how to measure",
            remedy="Add --measure, or leave them out",
        )
    reply = ask_patiently(RunDoctor())
    if json:
        put_json(to_plain(reply.checks))
    else:
        _put_checks(reply.checks)
    if any(check.state == "missing" for check in reply.checks):
        raise typer.Exit(FINDING)


def _put_checks(checks: tuple[Check, ...]) -> None:
    from workbench.cli.context import put
    from workbench.cli.tables import whole
    from workbench.domain import host_tables

    put(whole(host_tables.checks(checks)))
    remedies = [c for c in checks if c.remedy and c.state != "ok"]
    if remedies:
        put("\nWhat to do:")
        put("\n".join(f"  {check.name}: {check.remedy}" for check in remedies))


def _put_noise(measured: HostMeasured) -> None:
    from workbench.cli.context import put
    from workbench.cli.tables import whole
    from workbench.domain import host_tables

    noise = measured.noise
    _put_checks(measured.checks)
    put(f"\nLab {noise.lab}, {noise.generator}: {noise.deployments} deployments, two visits each")
    put(whole(host_tables.noise(noise)))


def reap(json: JsonOption = False) -> None:
    """Remove containers and networks of dead sessions; nothing without our label is touched.

    Limits of running systems that they changed (`docs/attach.md`) are put back.

    Example: workbench reap
    """
    from workbench.cli.context import ask, put, put_json, say
    from workbench.domain.lab import ReapStrays

    reply = ask(ReapStrays())
    if json:
        put_json(list(reply.removed))
        return
    for removed in reply.removed:
        put(removed)
    if not reply.removed:
        say("no strays")


def build_images() -> None:
    """Build the images of all VNF templates, the source with each generator, and oha.

    Example: workbench images build
    """
    from workbench.cli.context import current_workspace, execute, put, say
    from workbench.descriptors.loading import load_vnf_templates
    from workbench.labs.docker.images import build_all_images
    from workbench.labs.programs import Listener

    templates = load_vnf_templates(workspace=current_workspace())
    built = execute(build_all_images(templates, listener=Listener(say, say)))
    for name, digests in built.items():
        for digest in digests:
            put(f"{name} {digest}")


def engine_status(json: JsonOption = False) -> None:
    """Say whether an engine runs in this workspace, and what it does.

    Example: workbench engine status --json
    """
    from workbench.cli.context import current_workspace, execute, put, put_json, say
    from workbench.domain.codec import to_plain

    status = execute(_status())
    if status is None:
        say(f"no engine runs in {current_workspace().root}")
        raise typer.Exit(1)
    if json:
        put_json(to_plain(status))
        return
    put(f"engine {status.version}, process {status.pid}, workspace {status.workspace}")
    measuring = status.running or status.host_measuring or "nothing"
    put(f"measuring: {measuring}; queued: {', '.join(status.queued) or 'nothing'}")
    if status.preparing:
        put(f"starting {status.preparing}")
    if status.idle_work:
        put(f"for later sessions: {status.idle_work}")
    put(f"clients: {status.clients}; loop lag p99 {status.loop_lag_p99_ms:.1f} ms")
    if status.http:
        put(f"http://{status.http}/status and /metrics")


async def _status() -> EngineStatus | None:
    from workbench.cli.context import live_client
    from workbench.domain.messages import GetStatus

    client = await live_client()
    if client is None:
        return None
    try:
        return await client.ask(GetStatus())
    finally:
        await client.close()


def engine_stop() -> None:
    """End the engine of this workspace; a running campaign can be resumed.

    Example: workbench engine stop
    """
    from workbench.cli.context import current_workspace, execute, say

    stopped = execute(_stop())
    root = current_workspace().root
    say(f"the engine of {root} has ended" if stopped else f"no engine runs in {root}")


async def _stop() -> bool:
    """Whether there was an engine to stop; returns when it has closed its sessions and its lab."""
    import asyncio
    import os
    import signal
    import time

    from workbench.cli.context import current_workspace, live_client
    from workbench.domain.errors import EngineError
    from workbench.domain.messages import StopEngine
    from workbench.locks import FileLock

    workspace = current_workspace()
    lock = FileLock(workspace.engine_lock)
    holder = lock.holder()
    try:
        client = await live_client()
    except EngineError:  # it speaks another protocol: a signal ends it just as cleanly
        if holder is None or not holder.pid:
            raise
        os.kill(holder.pid, signal.SIGTERM)
    else:
        if client is None:
            return False
        try:
            await client.ask(StopEngine())
        finally:
            await client.close()
    deadline = time.monotonic() + STOP_TIMEOUT_S
    # Its sessions are closed after its socket has gone.
    while workspace.socket.exists() or (holder is not None and lock.holder() == holder):
        if time.monotonic() > deadline:
            raise EngineError(
                f"the engine was told to end and has not within {STOP_TIMEOUT_S:g} s",
                where=str(workspace.root),
                remedy="See `workbench logs`",
            )
        await asyncio.sleep(0.05)
    return True


def engine_serve(
    http: Annotated[str | None, typer.Option(help="Serve /status and /metrics here.")] = None,
    linger: Annotated[
        float, typer.Option(help="End after so many seconds without campaign and client.")
    ] = 60.0,
) -> None:
    """Own this workspace and serve its socket; what `workbench` starts in the background."""
    from workbench.cli.context import current_workspace, execute
    from workbench.engine.process import serve

    execute(serve(current_workspace(), http=http, linger_s=linger))
