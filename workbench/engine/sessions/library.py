"""The sessions of a workspace: opened once, shared by all who ask, listed without opening."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from weakref import WeakValueDictionary

from workbench import paths
from workbench.domain.errors import SessionError, SessionTaken, UsageError, WorkbenchError
from workbench.domain.events import Event, SessionCreated
from workbench.domain.projection import SessionView
from workbench.domain.sessions import UNDER_WAY, SessionSummary
from workbench.engine.sessions.channel import Channel
from workbench.log import logger
from workbench.store import catalogue
from workbench.store.session_file import SessionFile

KEPT_OPEN = 4
"""Sessions that stay open for the next question after nobody uses them any more."""

log = logger("engine.library")


class Locks:
    """One for each key, for as long as somebody holds it or waits for it: names are many, and who
    asks may make them up."""

    def __init__(self) -> None:
        self._held: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    def __getitem__(self, key: Hashable) -> asyncio.Lock:
        lock = self._held.get(key)
        if lock is None:
            lock = self._held[key] = asyncio.Lock()
        return lock

    def __len__(self) -> int:
        return len(self._held)


class Library:
    """Channels by session name."""

    def __init__(self, workspace: paths.Workspace) -> None:
        self.workspace = workspace
        self.recordings = paths.shipped("sessions")
        self._channels: OrderedDict[str, Channel] = OrderedDict()
        self._users: Counter[str] = Counter()
        self._opening = Locks()
        self._returned: dict[str, asyncio.Event] = {}
        """Set when somebody gives a borrowed channel back; there for who waits for that."""
        self.modelling = Locks()
        """By session and target: one at a time decides on the next version of a model."""
        self.heard: Callable[[Event, SessionView], None] | None = None
        """Told of every event that is recorded in any session."""

    def _channel(self, file: SessionFile, view: SessionView | None = None) -> Channel:
        channel = Channel(file, view)
        channel.heard = self.heard
        return channel

    # ------------------------------------------------------------------ names

    async def list(self) -> tuple[SessionSummary, ...]:
        """All sessions and recordings; those being measured as they stand now."""
        found = await asyncio.to_thread(catalogue.list_sessions, self.workspace, self.recordings)
        return tuple(self._as_it_stands(summary) for summary in found)

    def _as_it_stands(self, summary: SessionSummary) -> SessionSummary:
        channel = self._channels.get(summary.name)
        if channel is not None and channel.live:
            view = channel.view
            return replace(
                summary,
                state=view.state,
                samples=view.samples_taken + view.trial_samples,
                invalid=sum(c.invalid for c in view.configurations)
                + sum(t.invalid for t in view.trials),
                changed_at=view.at,
            )
        if summary.state in ("planned", *UNDER_WAY):
            return replace(summary, state="interrupted")
        return summary

    async def path_of(self, name: str) -> Path:
        """The file or bundle of a session. Raises `SessionUnknown`."""
        return await asyncio.to_thread(catalogue.resolve, self.workspace, name, self.recordings)

    async def new_name(self, wanted: str | None, campaign: str) -> str:
        """A name that is free. Raises `SessionTaken`, or `UsageError` for one that cannot be."""
        if wanted is None:
            return await asyncio.to_thread(catalogue.fresh_name, self.workspace, campaign)
        if self.names_recording(wanted):
            raise SessionTaken(
                f"{wanted!r} is the name of a recording that comes with the workbench, which "
                "this session would hide",
                remedy=f"Choose another name, such as {wanted}-1",
            )
        if self.file_of(wanted).exists():
            raise SessionTaken(
                f"there is a session {wanted!r} already",
                remedy=f"Resume it (workbench resume {wanted}), or choose another name",
            )
        return wanted

    def names_recording(self, name: str) -> bool:
        """Whether a shipped recording is called so."""
        catalogue.check_name(name)
        return (self.recordings / name / "manifest.json").is_file()

    def file_of(self, name: str) -> Path:
        """Where the session of that name lies or will lie."""
        return catalogue.session_path(self.workspace, name)

    # ------------------------------------------------------------------ channels

    @asynccontextmanager
    async def borrow(self, name: str, *, folded: bool = True) -> AsyncIterator[Channel]:
        """The channel of a session, open for as long as the body runs.

        Who asks the file alone needs it not `folded`, and a long session is open sooner.
        """
        async with self._opening[name]:
            channel = self._channels.get(name)
            if channel is None:
                file = await SessionFile.open(await self.path_of(name), read_only=True)
                channel = self._channels[name] = self._channel(file)
                for warning in file.damage:
                    log.warning("session file", session=name, warning=warning)
            if folded:
                await channel.fold()
            self._channels.move_to_end(name)
            self._users[name] += 1
        try:
            yield channel
        finally:
            self._let_go(name)
            await self._close_some()

    @asynccontextmanager
    async def writing(self, name: str) -> AsyncIterator[Channel]:
        """The channel of a session, open for writing for as long as the body runs.

        That of a run under way is shared with it. Who asks holds nothing borrowed, and is quick:
        nobody else is given the session meanwhile.

        Raises
        ------
        SessionError, UsageError
            If it is a bundle or another workspace's, or its file cannot be written.
        """
        path = await self.resumable(name)
        async with self._opening[name]:
            channel = self._channels.get(name)
            if channel is None or (channel.file.broken and not channel.live):
                channel = await self._open_for_writing(name, path)
            self._users[name] += 1
            try:
                yield channel
                if not channel.live:
                    await self._sum_up(channel)
            finally:
                self._let_go(name)
        await self._close_some()

    async def _open_for_writing(self, name: str, path: Path) -> Channel:
        """Under the name's lock: those who still read are waited for, followers stay."""
        channel = self._channels.get(name)
        if channel is None:
            file = await SessionFile.open(path)
            channel = self._channels[name] = self._channel(file, await file.view())
            return channel
        await channel.fold()
        await self._until_returned(name, channel)
        await channel.file.close()
        try:
            channel.file = await SessionFile.open(path)
        except SessionError:
            await self._open_again(name, path, channel)
            raise
        return channel

    async def _until_returned(self, name: str, channel: Channel) -> None:
        """Under the name's lock: nobody but followers uses the channel any more."""
        try:
            while self._users[name] > channel.followers:
                returned = self._returned[name] = asyncio.Event()
                await returned.wait()
        finally:
            self._returned.pop(name, None)

    async def _open_again(self, name: str, path: Path, channel: Channel) -> None:
        """What cannot be written can perhaps be read as before."""
        try:
            channel.file = await SessionFile.open(path, read_only=True)
        except SessionError as error:  # its file is closed: who follows it must not wait
            channel.end(error)
            del self._channels[name]

    async def create(self, name: str, created: SessionCreated, at: float) -> Channel:
        """A new session, open for writing until `release`."""
        async with self._opening[name]:
            removed = self._channels.pop(name, None)
            if removed is not None:  # somebody deleted the file while we had it open
                removed.end()
                await removed.file.close()
            file = await SessionFile.create(self.file_of(name), created, at=at)
            channel = self._channel(file, await file.view())
            channel.live = True
            self._channels[name] = channel
            self._users[name] += 1
            return channel

    async def revive(self, name: str) -> Channel:
        """A stored session, open for writing until `release`.

        Those who still read are waited for; its followers stay.
        """
        path = await self.resumable(name)
        async with self._opening[name]:
            channel = self._channels.get(name)
            if channel is not None:
                if channel.live:
                    raise SessionError("is being measured already", where=name)
                await self._until_returned(name, channel)
                await channel.file.close()
            try:
                file = await SessionFile.open(path)
            except BaseException:
                if channel is not None:  # its file is closed: who follows it must not wait
                    channel.end()
                    del self._channels[name]
                raise
            if channel is None:
                channel = self._channels[name] = self._channel(file)
            channel.file = file
            await channel.fold()
            channel.live = True
            self._users[name] += 1
            return channel

    async def resumable(self, name: str) -> Path:
        """The file of a session that can be gone on with: one of this workspace, by its name."""
        path = await self.path_of(name)
        if path.is_dir():
            raise UsageError(
                "is a bundle, and bundles are not changed",
                where=name,
                remedy=f"Make a session of it with `workbench import {path}`, then go on with that",
            )
        if path != self.workspace.sessions / f"{name}{catalogue.SUFFIX}":
            raise UsageError(
                "is not a session of this workspace",
                where=name,
                remedy=f"Give the name of one in {self.workspace.sessions}, or choose its "
                "workspace (--workspace)",
            )
        return path

    @asynccontextmanager
    async def closed(self, name: str, told: SessionError | None = None) -> AsyncIterator[Path]:
        """The file of a session of this workspace, which nobody opens while the body runs.

        Who follows it is told that it is gone, or `told`. Raises `SessionError` where it is in use.
        """
        path = await self.resumable(name)
        async with self.at_rest(name):
            channel = self._channels.pop(name, None)
            if channel is not None:
                channel.end(told or SessionError("was renamed or deleted", where=name))
                await channel.file.close()
            yield path

    @asynccontextmanager
    async def at_rest(self, name: str) -> AsyncIterator[None]:
        """Nothing is written to a session's file while the body runs.

        Raises `SessionError` where it is being measured, or something is computed with it.
        """
        async with self._opening[name]:
            channel = self._channels.get(name)
            if channel is not None and channel.live:
                raise SessionError("is being measured", where=name, remedy="Stop the run first")
            if channel is not None and self._users[name] > channel.followers:
                raise SessionError("is in use", where=name, remedy="Try again in a moment")
            yield

    async def release(self, channel: Channel) -> None:
        """A run is over: its session is summed up and may be closed."""
        channel.rest()
        if channel.file.displaced:
            await self._rescue_beside(channel)
        await self._sum_up(channel)
        self._let_go(channel.view.session)
        await self._close_moved(channel)
        await self._close_some()

    async def _close_moved(self, channel: Channel) -> None:
        """A session that was written again elsewhere is another one there, once its run is over."""
        name = channel.view.session
        if channel.file.path == self.file_of(name):
            return
        async with self._opening[name]:
            if self._channels.get(name) is channel:
                del self._channels[name]
                where = str(channel.file.path)
                channel.end(SessionError("was written again elsewhere", where=where))
                await channel.file.close()

    async def rescue(self, name: str, folder: Path | None) -> Path:
        """Write a session again whose file was replaced or removed; returns where it is.

        Raises `UsageError` where it was not, `SessionError` where it cannot be written there.
        """
        channel = self._channels.get(name)
        if channel is None or not channel.file.displaced:
            raise UsageError(
                "lies where it belongs, or nobody measures it: nothing has to be written again",
                where=name,
                remedy="See workbench ls",
            )
        path = channel.file.path
        path = folder / path.name if folder else path
        await channel.rescue(path)
        log.warning("session was written again", session=name, path=str(path))
        return path

    async def _rescue_beside(self, channel: Channel) -> None:
        """A run ends whose file was replaced or removed, and nobody has rescued it."""
        name = channel.view.session
        path = channel.file.path
        if path.exists():
            begin = name[: catalogue.LONGEST_NAME - len("-rescued-1000")]
            path = self.file_of(catalogue.fresh_name(self.workspace, f"{begin}-rescued"))
        try:
            await channel.rescue(path)
            log.warning("session was written again", session=name, path=str(path))
        except (WorkbenchError, OSError) as error:
            log.error("session is lost", session=name, error=str(error))

    async def _sum_up(self, channel: Channel) -> None:
        try:
            await channel.file.checkpoint()
            await self.note(channel)
        except (SessionError, OSError) as error:
            log.error("session was not summed up", session=channel.view.session, error=str(error))

    async def note(self, channel: Channel) -> None:
        """Bring the catalogue up to date."""
        summary = await channel.file.summary()
        await asyncio.to_thread(catalogue.record, self.workspace, summary)

    def live(self, name: str) -> Channel | None:
        """The channel of a session that a run writes to."""
        channel = self._channels.get(name)
        return channel if channel is not None and channel.live else None

    def end_feeds(self) -> None:
        """Every follower's stream ends."""
        for channel in self._channels.values():
            channel.end()

    async def close(self) -> None:
        """Close every session; every follower's stream ends."""
        while self._channels:  # who still asks may open and close some meanwhile
            _, channel = self._channels.popitem()
            channel.end()
            await channel.file.close()

    def _let_go(self, name: str) -> None:
        self._users[name] -= 1
        if not self._users[name]:
            del self._users[name]
        if name in self._returned:
            self._returned[name].set()

    async def _close_some(self) -> None:
        idle = [
            name for name, c in self._channels.items() if not self._users[name] and not c.followed
        ]
        for name in idle[: max(0, len(idle) - KEPT_OPEN)]:
            async with self._opening[name]:
                channel = self._channels.get(name)
                if channel is None or self._users[name] or channel.followed:
                    continue
                await channel.file.close()
                del self._channels[name]
