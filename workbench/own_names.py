"""By what names this host's pages may be asked for: `/status`, `/metrics` and `workbench web`.

A page of another site can make a browser ask here under a name of its own that it lets point here
(DNS rebinding), and would read the answer as its own. So a request is answered whose `Host` is a
name of ours, and whose `Origin`, where there is one, is that name.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Awaitable, Callable, Iterable

from aiohttp import web

from workbench.domain.errors import UsageError

HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)\.?(?::\d{1,5})?", re.IGNORECASE)
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - what is listened at; nobody asks for a page there
BY_ADDRESS = "Open this page by its own address"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def is_loopback(host: str) -> bool:
    """Whether only this host reaches that address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def address_of(text: str) -> tuple[str, int]:
    """Host and port of `127.0.0.1:9464`, as an option `--http` has it. Raises `UsageError`."""
    host, colon, port = text.rpartition(":")
    host = host.strip("[]")
    if not colon or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise UsageError(
            f"{text!r} is not an address", where="--http", remedy="Write it like 127.0.0.1:9464"
        )
    return host, int(port)


class OwnNames:
    """The names that are answered to: this host's own, and those that are listed.

    Its own are loopback's, and the address that a request came in at: who writes an address asks
    for no other site's name.

    Parameters
    ----------
    listed : names as in a URL, without a port.
    told : called with `host` and `origin` of what is refused.
    remedy : what to do about a refusal, for who asked.
    """

    def __init__(
        self,
        listed: Iterable[str] = (),
        told: Callable[[web.Request], None] | None = None,
        remedy: str = BY_ADDRESS,
    ) -> None:
        self._remedy = remedy
        self._listed = frozenset(_plain(name) for name in listed)
        self._told = told

    def answer_to(self, host: str, origin: str | None, came_in_at: str) -> bool:
        """Whether a request with these headers, at that address of ours, is for us."""
        found = HOST.fullmatch(host)
        if found is None or (origin is not None and origin.partition("://")[2] != host):
            return False
        name = _plain(found[1])
        return is_loopback(name) or name in self._listed or name == _plain(came_in_at)

    @web.middleware
    async def only(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """403 for whoever asks under another name."""
        hosts, origins = request.headers.getall("Host", []), request.headers.getall("Origin", [])
        origin = origins[0] if origins else None
        address = request.transport and request.transport.get_extra_info("sockname")
        came_in_at = str(address[0]) if address else ""
        once = len(hosts) == 1 and len(origins) <= 1
        if not (once and self.answer_to(hosts[0], origin, came_in_at)):
            if self._told is not None:
                self._told(request)
            raise web.HTTPForbidden(text=f"{self._remedy}.\n")
        return await handler(request)


def _plain(name: str) -> str:
    """A name or an address in the one way of writing it that is compared."""
    bare = name.strip("[]").rstrip(".").lower()
    try:
        address = ipaddress.ip_address(bare.partition("%")[0])
    except ValueError:
        return bare
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
