"""Random keys over every screen, with an engine that lives and a simulated run that goes on."""

from __future__ import annotations

import asyncio
import random
import shutil
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textual.events import Key, Paste
from textual.pilot import Pilot

from workbench.domain.events import Event
from workbench.domain.messages import RunAccepted, RunCampaign
from workbench.engine.core import Engine
from workbench.link.local import LocalClient
from workbench.paths import Workspace
from workbench.tui.app import WorkbenchApp
from workbench.tui.commands.actions import ACTIONS
from workbench.tui.commands.catalogue import SCREENS
from workbench.tui.places import Files
from workbench.tui.replaying.replay import Replay

LONGEST_S = 120.0
"""After which an application that does not deal with a key hangs, on a host as busy as can be."""
SIZES = ((80, 24), (160, 50), (60, 15), (100, 18), (40, 10))
WORDS = ("25, 50", "12.5%, 25%", "haproxy", "p95<=50ms @ rate=600/s", "-1", "nan", "", "ä\x1b[2J")
LEFT_OUT = {"q", "ctrl+c", "ctrl+z", "f12"}
"""They end or stop the application, which is what they are for."""
CAMPAIGN = """\
kind: campaign
summary: two functions and their chain, as small as can be
targets:
  - vnf: haproxy
    resource_parameters: [{vnf: haproxy, name: vcpu, values: [12.5%, 25%]}]
  - vnf: tinyproxy
    resource_parameters: [{vnf: tinyproxy, name: vcpu, values: [25%]}]
  - chain: tinyproxy-haproxy
    resource_parameters:
      - {vnf: haproxy, name: vcpu, values: [25%]}
      - {vnf: tinyproxy, name: vcpu, values: [25%]}
workload_parameters:
  - {name: filesize, values: [10 kB]}
primary_workload_parameter: {name: rate, range: [100/s, 4000/s], scale: log}
load: {kind: open, connections: 64}
kpi: p95
kpi_max: 1000 ms
sla: p95<=50ms @ rate=600/s, filesize=10kB
sampling: {method: bisection, max_samples: 4, model: interpolation}
"""


@dataclass
class Found:
    """What came of it."""

    presses: int = 0
    failures: list[str] = field(default_factory=list)
    """Traces, each with the keys before it."""
    screens: Counter[str] = field(default_factory=Counter)
    """How often a key was pressed on each."""


class Monkey:
    """Presses keys; `seed` alone decides which."""

    def __init__(self, app: WorkbenchApp, pilot: Pilot[Any], seed: int, found: Found) -> None:
        self._app, self._pilot, self._found = app, pilot, found
        self._random = random.Random(seed)
        keys = {key for action in ACTIONS for key in action.keys} - LEFT_OUT
        self._keys = sorted(keys)
        self._moves = ["enter", "escape", "tab", "shift+tab", "up", "down", "left", "right", "y"]
        self._digits = [screen.key for screen in SCREENS]
        self._recent: list[str] = []

    def log(self, error: Exception) -> str:
        trace = "".join(traceback.format_exception(error))
        self._found.failures.append(f"after {' '.join(self._recent[-25:])}\n{trace}")
        return "the log"

    def _next(self) -> str:
        kind = self._random.random()
        if kind < 0.07:
            return "escape"  # else it would type into the first form for long
        if kind < 0.6:
            return self._random.choice(self._keys)
        if kind < 0.85:
            return self._random.choice(self._moves)
        if kind < 0.95:
            return self._random.choice(self._digits)
        return self._random.choice("abcdefghijklmnoprstuvwxyz")

    async def press(self, key: str) -> None:
        """Press it and wait until it has been dealt with. Raises `AssertionError` on a hang."""
        self._recent.append(key)
        del self._recent[:-40]
        screen = self._app.full_screen
        self._found.screens[screen.NAME if screen is not None else ""] += 1
        self._app.post_message(Key(key, key if len(key) == 1 else _character(key)))
        await self._dealt_with()
        self._found.presses += 1

    async def _dealt_with(self) -> None:
        try:
            async with asyncio.timeout(LONGEST_S):
                await self._app.keyboard.dealt_with()
                done = asyncio.Event()
                assert self._app.call_later(done.set), "the application is gone"
                await done.wait()
        except TimeoutError:
            raise AssertionError(f"it hangs after {' '.join(self._recent)}") from None

    async def play(self, presses: int, sessions: tuple[str, ...]) -> None:
        for number in range(presses):
            app = self._app
            if number % 50 == 0 and (not app.is_open or self._random.random() < 0.5):
                session = self._random.choice(sessions)
                replay = Replay(64.0) if self._random.random() < 0.3 else None
                app.open_session(session, replay=replay, screen=self._random.choice(OF_SESSION))
            if number % 125 == 60:
                await self._pilot.resize_terminal(*self._random.choice(SIZES))
            if self._random.random() < 0.02:
                text = self._random.choice(WORDS)
                self._recent.append(f"paste({text!r})")
                app.post_message(Paste(text))
            await self.press(self._next())
            assert app.return_code is None, f"it ended after {' '.join(self._recent)}"


OF_SESSION = tuple(screen.name for screen in SCREENS if screen.of_session)


def _character(key: str) -> str | None:
    from textual.keys import KEY_NAME_REPLACEMENTS, _get_unicode_name_from_key

    if key in ("enter", "escape", "tab") or "+" in key:
        return {"enter": "\r", "escape": "\x1b", "tab": "\t"}.get(key)
    import unicodedata

    del KEY_NAME_REPLACEMENTS
    try:
        return unicodedata.lookup(_get_unicode_name_from_key(key))
    except KeyError:
        return None


async def play(folder: Path, seed: int, presses: int, *, recordings: bool = False) -> Found:
    """A session that is measured, one that goes on, a draft; then so many keys."""
    workspace = Workspace(folder)
    (folder / "sessions").mkdir(parents=True)
    campaign = folder / "two.yaml"
    campaign.write_text(CAMPAIGN, encoding="utf-8")
    engine, found = Engine(workspace), Found()
    await engine.start()
    link = LocalClient(engine, "ann")
    try:
        run = RunCampaign(str(campaign), "measured", "sim")
        assert isinstance(await link.ask(run), RunAccepted)
        async with link.follow("measured") as feed, asyncio.timeout(LONGEST_S):
            async for change in feed.changes:
                feed.view.apply(change) if isinstance(change, Event) else None
                if feed.view.state not in ("planned", "running"):
                    break
        await link.ask(RunCampaign(str(campaign), "going-on", "sim", pace=2.0))

        async def connect() -> LocalClient:
            return link

        monkeys: list[Monkey] = []
        app = WorkbenchApp(
            connect,
            session="measured",
            files=Files(memory=folder / "memory", pictures=lambda: folder / "exports"),
            log=lambda error: monkeys[0].log(error),
        )
        async with app.run_test(size=(80, 24)) as pilot:
            monkeys.append(Monkey(app, pilot, seed, found))
            sessions = ("measured", "going-on", *(("chain-real", "demo-real") * recordings))
            await monkeys[0].play(presses, sessions)
    finally:
        await engine.close()
    shutil.rmtree(folder, ignore_errors=True)
    return found
