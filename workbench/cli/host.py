"""`doctor`, `reap`, `images`, `engine`: the host and what runs on it."""

from __future__ import annotations

from typing import Annotated

import typer

STOP_TIMEOUT_S = 60.0
"""What an engine gets to remove its containers and close its sessions."""

JsonOption = Annotated[bool, typer.Option("--json", help="JSON instead of text.")]


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)
    app.command("reap")(reap)
    images = typer.Typer(help="Container images of the lab.", rich_markup_mode=None)
    images.command("build")(build_images)
    app.add_typer(images, name="images")
    engine = typer.Typer(help="The process that owns this workspace.", rich_markup_mode=None)
    engine.command("status")(engine_status)
    engine.command("stop")(engine_stop)
    engine.command("serve", hidden=True)(engine_serve)
    app.add_typer(engine, name="engine")


def doctor(json: JsonOption = False) -> None:
    """Say what this host has for a lab, what is missing and how to get it.

    Example: workbench doctor
    """
    from workbench.cli.context import ask, put, put_json
    from workbench.cli.sessions import table
    from workbench.domain.codec import to_plain
    from workbench.domain.errors import FINDING
    from workbench.domain.messages import Examined, RunDoctor

    reply = ask(RunDoctor())
    assert isinstance(reply, Examined)
    if json:
        put_json(to_plain(reply.checks))
    else:
        put(table(["check", "state", "found"], [[c.name, c.state, c.found] for c in reply.checks]))
        remedies = [c for c in reply.checks if c.remedy and c.state != "ok"]
        if remedies:
            put("\nWhat to do:")
            put("\n".join(f"  {check.name}: {check.remedy}" for check in remedies))
    if any(check.state == "missing" for check in reply.checks):
        raise typer.Exit(FINDING)


def reap(json: JsonOption = False) -> None:
    """Remove containers and networks of dead sessions; nothing without our label is touched.

    Example: workbench reap
    """
    from workbench.cli.context import ask, put, put_json, say
    from workbench.domain.messages import Reaped, ReapStrays

    reply = ask(ReapStrays())
    assert isinstance(reply, Reaped)
    if json:
        put_json(list(reply.removed))
        return
    for removed in reply.removed:
        put(removed)
    if not reply.removed:
        say("no strays")


def build_images() -> None:
    """Build the images of all VNF templates, source and sink included.

    Example: workbench images build
    """
    from workbench.cli.context import current_workspace, execute, put, say
    from workbench.descriptors.loading import load_vnf_templates
    from workbench.labs.docker.images import build_images as build

    templates = load_vnf_templates(workspace=current_workspace())
    built = execute(build(templates, on_line=say))
    for name, digest in built.items():
        put(f"{name} {digest}")


def engine_status(json: JsonOption = False) -> None:
    """Say whether an engine runs in this workspace, and what it does.

    Example: workbench engine status --json
    """
    from workbench.cli.context import current_workspace, execute, put, put_json, say
    from workbench.domain.codec import to_plain
    from workbench.domain.messages import EngineStatus

    status = execute(_status())
    if status is None:
        say(f"no engine runs in {current_workspace().root}")
        raise typer.Exit(1)
    assert isinstance(status, EngineStatus)
    if json:
        put_json(to_plain(status))
        return
    put(f"engine {status.version}, process {status.pid}, workspace {status.workspace}")
    put(
        f"measuring: {status.running or 'nothing'}; queued: {', '.join(status.queued) or 'nothing'}"
    )
    put(f"clients: {status.clients}; loop lag p99 {status.loop_lag_p99_ms:.1f} ms")
    if status.http:
        put(f"http://{status.http}/status and /metrics")


async def _status() -> object:
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
    import time

    from workbench.cli.context import current_workspace, live_client
    from workbench.domain.errors import EngineError
    from workbench.domain.messages import StopEngine

    client = await live_client()
    if client is None:
        return False
    try:
        await client.ask(StopEngine())
    finally:
        await client.close()
    workspace, deadline = current_workspace(), time.monotonic() + STOP_TIMEOUT_S
    while workspace.socket.exists():
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
    linger: Annotated[float, typer.Option(help="Seconds without campaign and client.")] = 60.0,
) -> None:
    """Own this workspace and serve its socket; what `workbench` starts in the background."""
    from workbench.cli.context import current_workspace, execute
    from workbench.engine.process import serve

    execute(serve(current_workspace(), http=http, linger_s=linger))
