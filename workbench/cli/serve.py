"""`serve`: screens and commands over SSH, or requests over HTTP. `web`: screens in a browser."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli.option_values import refuse_ignored, with_values

if TYPE_CHECKING:
    from workbench.serve.api import ApiServer
    from workbench.serve.keys import KeyRing
    from workbench.serve.server import SshServer
    from workbench.serve.web import WebServer


@dataclass(frozen=True)
class SshGiven:
    """Who may come over SSH, where, and how many."""

    authorized_keys: Annotated[
        Path | None,
        typer.Option(help="Public keys, with `operator` before those that may run campaigns."),
    ] = None
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1"
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 2222
    connections: Annotated[int, typer.Option(min=1, help="At the same time.")] = 32
    idle: Annotated[str, typer.Option(help="Disconnect after so long without a key; 0: never.")] = (
        "8h"
    )


@dataclass(frozen=True)
class HttpGiven:
    """Where requests are answered over HTTP instead, and for whom."""

    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Serve HTTP there instead of SSH, for tokens of `workbench token`.",
        ),
    ] = None
    insist: Annotated[
        bool, typer.Option("--insist", help="With --http: accept connections from other hosts.")
    ] = False
    name: Annotated[
        list[str] | None,
        typer.Option(help="With --http: a further host name that it answers to; repeatable."),
    ] = None


def register(app: typer.Typer) -> None:
    app.command("serve")(with_values(serve))
    app.command("web")(web)


def serve(ssh: SshGiven, http: HttpGiven) -> None:
    """Let people with a known SSH key see the screens, run a few commands and fetch exports.

    Keys without `operator` before them see everything and change nothing. With --http programs
    with a token ask the same of an HTTP port, whose operations are in its /openapi.json.

    Example: workbench serve --authorized-keys lab_keys
    """
    if http.http is not None:
        if ssh.authorized_keys is not None:
            raise typer.BadParameter("one server has SSH keys, another one --http; start two")
        names = ("host", "port", "connections", "idle")
        refuse_ignored(ssh, *names, remedy="Leave it out: it is of SSH")
        _serve_http(http.http, http.insist, http.name or [])
        return
    if ssh.authorized_keys is None:
        raise typer.BadParameter("say --authorized-keys FILE for SSH, or --http HOST:PORT")
    from workbench.cli.context import current_workspace, execute
    from workbench.cli.spans import seconds
    from workbench.serve.limits import ServerLimits
    from workbench.serve.server import SshServer, authorized_keys

    idle_s = 0.0 if ssh.idle == "0" else seconds(ssh.idle, "--idle")
    assert idle_s is not None
    keys = authorized_keys(ssh.authorized_keys)
    server = SshServer(
        current_workspace(),
        keys,
        [sys.executable, "-m", "workbench"],
        _engine_up,
        ServerLimits(connections=ssh.connections, idle_s=idle_s),
    )
    execute(_serve(server, keys, ssh.host, ssh.port))


def _serve_http(address: str, insist: bool, names: list[str]) -> None:
    from workbench.cli.context import current_workspace, execute
    from workbench.domain.messages import REQUESTS, Cancel, Unsubscribe
    from workbench.engine.handlers import HANDLERS
    from workbench.own_names import EVERYWHERE, address_of
    from workbench.serve.api import ApiServer
    from workbench.serve.openapi import Answerable

    host, port = address_of(address)
    _refuse_exposed(host, port, insist, "--http", "the API has no encryption, so that its tokens "
                    "can be read on the way")  # fmt: skip
    _refuse_no_names(names)
    handled = [(kind, HANDLERS.by_kind[kind]) for kind in REQUESTS]
    offers = [
        Answerable(kind, handler.changes, not handler.changes and handler.measures is None)
        for kind, handler in handled
        if not handler.of_the_host and kind not in (Cancel, Unsubscribe)  # of a lasting link
    ]
    public = (name for name in (host, *names) if name not in EVERYWHERE)
    execute(_answer(ApiServer(current_workspace(), offers, _engine_up, public), host, port))


async def _answer(server: ApiServer, host: str, port: int) -> None:
    from workbench.cli.context import say
    from workbench.log import open_log

    close_log = open_log(server.workspace.log)
    try:
        roles = [token.role for token in server.tokens.known()]
        listening = await server.open(host, port)
        there = f"[{host}]" if ":" in host else host
        say(f"listening at http://{there}:{listening}, operations in /openapi.json")
        say(f"{roles.count('operator')} operators, {roles.count('observer')} observers; "
            f"audit log {server.workspace.audit}")  # fmt: skip
        if not roles:
            say("nobody has a token yet: workbench token add NAME [--operator]")
        await _interrupted()
    finally:
        await server.close()
        close_log()


def _refuse_exposed(host: str, port: int, insist: bool, where: str, why: str) -> None:
    """What has no encryption is for this host alone, unless somebody insists."""
    from workbench.domain.errors import UsageError
    from workbench.own_names import is_loopback

    if not (is_loopback(host) or insist):
        raise UsageError(
            why,
            where=f"{where} {host}",
            remedy=f"Leave it out and come by `ssh -L {port}:127.0.0.1:{port} HOST`, take "
            "`workbench serve --authorized-keys`, or say --insist",
        )


def _refuse_no_names(names: list[str]) -> None:
    from workbench.domain.errors import UsageError
    from workbench.own_names import HOST

    for given in names:
        if not HOST.fullmatch(given) or given.partition(":")[2].isdecimal():
            raise UsageError(
                f"{given!r} is not a name", where="--name", remedy="Write it like lab.example"
            )


async def _serve(server: SshServer, keys: KeyRing, host: str, port: int) -> None:
    from workbench.cli.context import say
    from workbench.log import open_log

    close_log = open_log(server.workspace.log)
    try:
        listening = await server.open(host, port)
        for mistake in keys.mistakes:
            say(f"left out: {mistake}")
        roles = [grant.role for grant in keys.grants()]
        say(f"listening at {host}:{listening}, host key {server.fingerprint}")
        say(f"{roles.count('operator')} operators, {roles.count('observer')} observers; "
            f"audit log {server.workspace.audit}")  # fmt: skip
        for line in _how_to_log_in(host, listening, keys.path):
            say(line)
        await _interrupted()
    finally:
        await server.close()
        close_log()


def _how_to_log_in(host: str, port: int, keys: Path) -> list[str]:
    """What to type, from where it works, and how a key becomes an operator's."""
    from workbench.own_names import EVERYWHERE, is_loopback

    name = socket.gethostname()
    there = name if host in EVERYWHERE else host
    where = " (on this host)" if is_loopback(host) else ""
    return [
        f"to see the screens: ssh -p {port} {there}{where}",
        *(
            [f"from elsewhere, with an account here: ssh -J {name} -p {port} {host}"]
            if where
            else []
        ),
        f"to become operator: write `operator ` before your public key in {keys}; "
        "it holds from the next log-in",
    ]


def web(
    operator: Annotated[
        bool, typer.Option("--operator", help="Whoever opens the page may also run campaigns.")
    ] = False,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8000,
    insist: Annotated[
        bool, typer.Option("--insist", help="Accept connections from other hosts.")
    ] = False,
    name: Annotated[
        list[str] | None,
        typer.Option(help="A further host name that it answers to, beside --host; repeatable."),
    ] = None,
) -> None:
    """Show the screens in browsers of this host; without a log-in, so that they only watch.

    With --operator the page commands, and opens only by the token in the address that is shown.

    Needs the extra `web`: pip install 'vnf-workbench[web]'.

    Example: workbench web
    """
    from workbench.cli.context import current_workspace, execute
    from workbench.domain.errors import UsageError

    try:
        from workbench.serve.web import WebAddress, WebServer
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "textual_serve":
            raise
        raise UsageError(
            "the page comes from the package 'textual-serve', which is not installed",
            remedy="Install it with `pip install 'vnf-workbench[web]'`",
        ) from None
    _refuse_exposed(host, port, insist, "--host", "the page has no encryption, and no log-in for "
                    "who watches: whoever reaches it gets in")  # fmt: skip
    _refuse_no_names(name or [])
    server = WebServer(
        current_workspace(),
        "operator" if operator else "observer",
        [sys.executable, "-m", "workbench"],
        _engine_up,
        WebAddress(host, port, tuple(name or ())),
    )
    execute(_show(server))


async def _show(server: WebServer) -> None:
    from workbench.cli.context import say
    from workbench.log import open_log
    from workbench.own_names import EVERYWHERE

    close_log = open_log(server.workspace.log)
    try:
        listening = await server.open()
        host = f"[{server.host}]" if ":" in server.host else server.host
        if server.host in EVERYWHERE:
            host = next(iter(server.listed), socket.gethostname())
        token = f"?token={server.token}" if server.token else ""
        say(f"open http://{host}:{listening}/{token}; whoever does is {server.role} here")
        if server.listed:
            say(f"asked for as {', '.join(server.listed)} or by an address of this host; "
                "any other name is refused (--name lists one more)")  # fmt: skip
        await _interrupted()
    finally:
        await server.close()
        close_log()


async def _interrupted() -> None:
    """Wait for Ctrl-C."""
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, asked.set)
    await asked.wait()


async def _engine_up() -> None:
    from workbench.cli.context import started_client

    client = await started_client()
    await client.close()
