"""The screens in a browser: the page is textual-serve's, each connection gets a screen process.

Observers need no log-in: whoever reaches the page watches. So it listens on this host alone unless
told otherwise, and takes nobody whom another site's page sends. Where the page commands, it opens
for those alone who have the token that is shown to who started it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from aiohttp import WSCloseCode, web
from textual_serve.server import Server

from workbench import __version__
from workbench.audit import AuditLog
from workbench.domain.messages import PROTOCOL_VERSION, Hello, Role
from workbench.log import logger
from workbench.own_names import BY_ADDRESS, EVERYWHERE, OwnNames, is_loopback
from workbench.paths import Workspace
from workbench.serve.browser import BrowserScreen
from workbench.serve.links import Links
from workbench.serve.listening import cannot_listen

MOST_SCREENS = 16
"""At the same time; each is a process of 70 MB."""
LONGEST_MESSAGE = 1 << 16
"""Bytes that a browser may send at once: what somebody pastes."""
HEARTBEAT_S = 15.0
END_S = 4.0
"""For the screens to end when the server does; then their connections are cut."""
COOKIE = "workbench-token"
"""With the port behind it: a browser sends the cookies of all ports of a host to each."""
LISTS_NAMES = f"{BY_ADDRESS}, or list that name (`workbench web --name`)"
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'"
)
"""The page loads nothing from elsewhere (its font would come from Google, and a lab without a way
out would wait for it), and no other page may show it in a frame."""

log = logger("web")


@dataclass(frozen=True)
class WebAddress:
    """Where the page is, and names by which it may be asked for, beside this host's own."""

    host: str
    port: int
    names: tuple[str, ...] = ()


class WebServer(Server):
    """One page; each browser that opens it gets a screen of its own.

    Parameters
    ----------
    role : of everybody who comes.
    command : argument vector of `workbench`; alone it opens the screen.
    engine_up : sees to it that an engine serves the workspace's socket.

    Attributes
    ----------
    listed : names that it answers to, beside loopback's and the address that one comes in at.
    token : what opens the page where it commands; empty for observers.
    """

    def __init__(
        self,
        workspace: Workspace,
        role: Role,
        command: Sequence[str],
        engine_up: Callable[[], Awaitable[None]],
        at: WebAddress,
    ) -> None:
        # It would give its command to a shell; ours is an argument vector for `BrowserScreen`.
        super().__init__("", host=at.host, port=at.port, title="workbench")
        self.audit = AuditLog(workspace.audit)
        self.workspace = workspace
        self.role: Role = role
        self.token = secrets.token_urlsafe() if role == "operator" else ""
        public = (name for name in (at.host, *at.names) if name not in EVERYWHERE)
        self.listed = tuple(name for name in public if not is_loopback(name))
        self._names = OwnNames(self.listed, self._tell_refused, LISTS_NAMES)
        self._argv = tuple(command)
        self._links = Links(workspace.socket, engine_up)
        self._screens: set[web.WebSocketResponse] = set()
        self._runner: web.AppRunner | None = None

    # ------------------------------------------------------------------ life

    async def open(self) -> int:
        """Listen; returns the port. Raises `UsageError` if the address cannot be used."""
        app = await self._make_app()
        app.middlewares.extend((self._names.only, self._only_with_token))
        app.on_response_prepare.append(_say_policy)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=END_S)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self.host, self.port).start()
        except (OSError, UnicodeError) as error:
            await self.close()
            raise cannot_listen(
                error, self.host, self.port, "Choose another --host or --port"
            ) from None
        listening: int = self._runner.addresses[0][1]
        self.audit.write("listening", host=self.host, port=listening, door="web", role=self.role)
        return listening

    async def close(self) -> None:
        """End every screen; campaigns go on."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def on_startup(self, app: web.Application) -> None:
        """Its own banner shows the command; `workbench web` says what there is to say."""

    async def on_shutdown(self, app: web.Application) -> None:  # noqa: ARG002 - aiohttp's words
        """Browsers are told, and their screens end with that."""
        goodbyes = [screen.close(code=WSCloseCode.GOING_AWAY) for screen in self._screens]
        await asyncio.gather(*goodbyes, return_exceptions=True)

    # ------------------------------------------------------------------ who comes

    def _tell_refused(self, request: web.Request) -> None:
        said = {name: request.headers.get(name.title(), "") for name in ("host", "origin")}
        self.audit.write("page_refused", door="web", address=request.remote or "", **said)

    @web.middleware
    async def _only_with_token(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        """Where the page commands: a token in its address, which becomes a cookie."""
        if not self.token or request.path.startswith("/static/"):
            return await handler(request)
        cookie = f"{COOKIE}-{request.url.port}"  # as the browser knows it, through any tunnel
        if self._is_token(request.query.get("token")):
            opened = web.HTTPSeeOther("/")  # and the token is in nobody's history
            opened.set_cookie(cookie, self.token, httponly=True, samesite="Strict")
            raise opened
        if not self._is_token(request.cookies.get(cookie)):
            self._tell_refused(request)
            raise web.HTTPForbidden(
                text="Open the address with the token that it was shown with.\n"
            )
        return await handler(request)

    def _is_token(self, said: str | None) -> bool:
        return secrets.compare_digest((said or "").encode(errors="replace"), self.token.encode())

    async def handle_index(self, request: web.Request) -> web.StreamResponse:
        """The page, with the address by which this browser came, a tunnel's for instance."""
        self.public_url = f"{request.scheme}://{request.host}"  # read before anything else is done
        page: web.StreamResponse = await super().handle_index(request)
        return page

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """A screen for as long as the browser, or who sits at it, stays."""
        if len(self._screens) >= MOST_SCREENS:
            raise web.HTTPServiceUnavailable(text=f"There are {MOST_SCREENS} screens already.\n")
        websocket = web.WebSocketResponse(heartbeat=HEARTBEAT_S, max_msg_size=LONGEST_MESSAGE)
        await websocket.prepare(request)
        self._screens.add(websocket)
        address = request.remote or ""
        details = {"door": "web", "address": address}
        who = Hello(PROTOCOL_VERSION, __version__, f"browser@{address}", self.role, details=details)
        facts = {"who": who.identity, "role": who.role, "address": address, "door": "web"}
        self.audit.write("screen_begun", **facts)
        screen = BrowserScreen(websocket, request.query.get("width"), request.query.get("height"))
        code = 1
        try:
            code = await screen.run(self._argv, self.workspace.root, partial(self._links.open, who))
        except Exception as error:  # one screen must not take the others down
            log.error("a screen in a browser broke", exc_info=error)
        finally:
            self._screens.discard(websocket)
            self.audit.write("screen_ended", code=code, **facts)
            await websocket.close()
        return websocket


async def _say_policy(_: web.Request, response: web.StreamResponse) -> None:
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "same-origin"
