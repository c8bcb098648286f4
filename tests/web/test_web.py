"""The screens in a browser, by the websocket that its page opens, and without the browser."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pyte
import pytest
from driving import Workbench
from forked_commands import Started

PATIENCE_S = 180
"""What a test waits for comes long before; no test asserts a time."""


class Browser:
    """A websocket with a terminal emulator on it, as textual-serve's page is one."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self._screen = pyte.Screen(80, 24)
        self._stream = pyte.ByteStream(self._screen)

    async def press(self, text: str) -> None:
        await self.socket.send_json(["stdin", text])

    async def resize(self, columns: int, rows: int) -> None:
        self._screen.resize(rows, columns)
        await self.socket.send_json(["resize", {"width": columns, "height": rows}])

    async def until(self, wanted: str) -> str:
        """Read until the screen shows `wanted`; its text then."""
        async with asyncio.timeout(PATIENCE_S):
            while wanted not in (text := "\n".join(self._screen.display)):
                message = await self.socket.receive()
                assert message.type is aiohttp.WSMsgType.BINARY, f"{message} with\n{text}"
                self._stream.feed(message.data)
        return text

    async def until_closed(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not self.socket.closed:
                await self.socket.receive()


@dataclass
class Page:
    """`workbench web` on loopback."""

    workbench: Workbench
    address: str
    process: subprocess.Popen[str] | Started = field(repr=False)
    token: str = ""

    @asynccontextmanager
    async def opened(self, **headers: str) -> AsyncIterator[Browser]:
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.ws_connect(f"{self.address}ws?width=80&height=24") as socket,
        ):
            yield Browser(socket)

    def told(self, what: str) -> list[dict[str, Any]]:
        path = self.workbench.root / ".workbench" / "audit.log"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        return [line for line in lines if line["what"] == what]

    async def until_told(self, what: str, count: int = 1) -> list[dict[str, Any]]:
        await until(lambda: len(self.told(what)) >= count)
        return self.told(what)

    def screens(self) -> list[int]:
        """Process ids of the screens; an engine has a session of its own and outlives the page."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in children.split() if "engine" not in command_of(int(pid))]


def command_of(pid: int) -> list[str]:
    """Empty if it is gone (also between opening and reading), or a zombie."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    except (FileNotFoundError, ProcessLookupError):
        return []


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - what others do sets no event of ours
            await asyncio.sleep(0.05)


async def until_gone(pid: int) -> None:
    await until(lambda: not command_of(pid))


@contextmanager
def shown(workbench: Workbench, *options: str) -> Iterator[Page]:
    process = workbench.begin("web", "--port", "0", *options)
    line = process.stderr.readline()
    found = re.search(r"http://\S+:(\d+)/(?:\?token=([\w-]+))?", line)
    assert found, line + process.stderr.read()
    yield Page(workbench, f"http://127.0.0.1:{found[1]}/", process, found[2] or "")
    process.terminate()
    process.communicate(timeout=PATIENCE_S)


@pytest.fixture
def page(workbench: Workbench) -> Iterator[Page]:
    with shown(workbench) as page:
        yield page


async def test_a_browser_sees_a_screen_and_drives_it_by_keys(page: Page) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.get(page.address) as index:
            text = await index.text()
            assert "frame-ancestors 'none'" in index.headers["Content-Security-Policy"]
        assert page.address.replace("http", "ws") + "ws" in text
        script = re.search(r'src="(\S+textual\.js)"', text)
        assert script
        async with session.get(script[1]) as found:
            assert found.status == 200
    async with page.opened() as browser:
        await browser.until("demo-real")
        (pid,) = page.screens()
        await browser.press("?")
        await browser.until("esc close")
        await browser.press("\x1b")
        await browser.resize(120, 36)
        assert "9 Events" in await browser.until("targets")
        await browser.socket.send_json(["ping", "7"])
        async with asyncio.timeout(PATIENCE_S):
            while (message := await browser.socket.receive()).type is aiohttp.WSMsgType.BINARY:
                pass
        assert message.json() == ["pong", "7"]
    await until_gone(pid)
    (ended,) = await page.until_told("screen_ended")
    assert (ended["role"], ended["door"], ended["who"]) == ("observer", "web", "browser@127.0.0.1")


async def test_who_leaves_by_key_closes_the_connection(page: Page) -> None:
    async with page.opened() as browser:
        await browser.until("Quit")
        (pid,) = page.screens()
        await browser.press("q")
        await browser.until_closed()
    await until_gone(pid)
    (ended,) = await page.until_told("screen_ended")
    assert ended["code"] == 0


async def test_pages_of_other_sites_open_nothing(page: Page) -> None:
    host = page.address.removeprefix("http://").rstrip("/")
    for headers in (
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Host": "rebound.example", "Origin": "http://rebound.example"},
        {"Host": f"{host}.example"},
    ):
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            async with page.opened(**headers):
                pass
    assert len(page.told("page_refused")) == 4
    assert page.told("screen_begun") == []
    async with page.opened(Origin=f"http://{host}") as browser:
        await browser.until("Quit")


async def test_under_a_listed_name_and_by_address_and_under_no_other(workbench: Workbench) -> None:
    everywhere = ("--host", "0.0.0.0", "--insist", "--name", "Lab.example")
    with shown(workbench, *everywhere) as page:
        port = page.address.rstrip("/").rpartition(":")[2]
        async with aiohttp.ClientSession() as session:
            for host, status in (
                ("lab.example", 200),
                (f"lab.example:{port}", 200),
                ("LAB.EXAMPLE.", 200),
                (f"127.0.0.1:{port}", 200),
                ("rebound.example", 403),
                ("lab.example.rebound.example", 403),
                ("192.0.2.7", 403),
                ("0.0.0.0", 403),
            ):
                async with session.get(page.address, headers={"Host": host}) as answer:
                    assert answer.status == status, host
        for headers in (
            {"Host": "rebound.example", "Origin": "http://rebound.example"},
            {"Host": "lab.example", "Origin": "http://rebound.example"},
        ):
            with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                async with page.opened(**headers):
                    pass
        async with page.opened(Host="lab.example", Origin="http://lab.example") as browser:
            await browser.until("Quit")


async def test_who_commands_needs_the_token_that_was_shown(workbench: Workbench) -> None:
    with shown(workbench, "--operator") as page:
        assert len(page.token) > 40
        async with aiohttp.ClientSession() as session:
            for address in ("", "?token=", "?token=x", f"?token={page.token[:-1]}"):
                async with session.get(page.address + address) as answer:
                    assert answer.status == 403
                    assert page.token not in await answer.text()
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            async with page.opened():
                pass
        with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
            async with page.opened(Cookie="workbench-token=x"):
                pass
        assert page.told("screen_begun") == []
        jar = aiohttp.CookieJar(unsafe=True)  # a browser keeps an address' cookies, too
        async with aiohttp.ClientSession(cookie_jar=jar) as session:
            async with session.get(f"{page.address}?token={page.token}") as answer:
                assert answer.status == 200
                assert not answer.url.query
                cookie = answer.history[0].headers["Set-Cookie"]
                assert cookie.startswith(f"workbench-token-{answer.url.port}=")
                assert "HttpOnly" in cookie and "SameSite=Strict" in cookie  # noqa: PT018
            async with session.ws_connect(f"{page.address}ws?width=80&height=24") as socket:
                await Browser(socket).until("Quit")
        assert page.told("screen_begun")[0]["role"] == "operator"
        assert page.token not in (workbench.root / ".workbench" / "audit.log").read_text()


def test_a_listed_name_is_a_name(workbench: Workbench) -> None:
    for name in ("http://lab.example", "lab example", "lab.example:80", ""):
        done = workbench.run("web", "--name", name, expect=2)
        assert "is not a name" in done.stderr


async def test_nonsense_ends_the_screen_that_it_was_said_to_and_no_other(page: Page) -> None:
    async with page.opened() as good:
        await good.until("Quit")
        nonsense = ["{", '["stdin"]', '{"stdin": 1}', "[" * 40_000, '["stdin", "\\ud800"]']
        nonsense.append('["stdin", "' + "x" * 70_000 + '"]')
        for text in nonsense:
            async with page.opened() as bad:
                await bad.socket.send_str(text)
                await bad.until_closed()
        async with page.opened() as odd:  # odd, but no nonsense: it is drawn as well as it can be
            await odd.socket.send_str('["stdin", "\\u0000\\u001b]52;c;?\\u0007"]')
            await odd.socket.send_json(["resize", {"width": 10**9, "height": -1}])
            await odd.resize(80, 24)
            await odd.until("Quit")
        await page.until_told("screen_ended", count=len(nonsense) + 1)
        await good.press("?")
        await good.until("esc close")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
async def test_the_page_ends_and_takes_its_screens_with_it(page: Page, how: signal.Signals) -> None:
    async with page.opened() as browser:
        await browser.until("Quit")
        (pid,) = page.screens()
        os.kill(page.process.pid, how)
        await browser.until_closed()
    await until_gone(pid)


def test_it_stays_on_this_host_unless_told_otherwise(workbench: Workbench) -> None:
    done = workbench.run("web", "--host", "0.0.0.0", expect=2)
    assert "no encryption" in done.stderr
    assert "--insist" in done.stderr


def test_without_its_extra_it_says_how_to_get_it(workbench: Workbench) -> None:
    blocked = "import sys; sys.modules['textual_serve'] = None; import workbench.cli as c; c.main()"
    done = subprocess.run(
        [sys.executable, "-c", blocked, "web"],
        env=workbench.environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert "pip install 'vnf-workbench[web]'" in done.stderr
    assert "Traceback" not in done.stderr
