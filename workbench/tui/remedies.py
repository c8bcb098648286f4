"""What the engine tells to do, in the words of the screens.

A remedy names a thing and, in brackets, what a command has for it: `oversubscribe the host
(--oversubscribe)`. A screen says there which field or key does it; what no screen has is done on
the command line, and the brackets say so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, TypeVar

from workbench.domain.errors import WorkbenchError
from workbench.domain.messages import PlanCampaign, Request, Role
from workbench.link.client import Client, Feed

R = TypeVar("R")

ON_SCREENS: Mapping[str, str] = {
    "--lab": "lab, on Campaign: {go.campaign}",
    "--oversubscribe": "host too small, on Campaign: {go.campaign}",
    "--workspace": "{session.workspace} on Sessions: {go.sessions}",
    "workbench run": "{session.draft} on Sessions makes the draft: {go.sessions}",
    "workbench recommend": "{recommend.compute} on Recommend: {go.recommend}",
    "workbench resume": "{session.resume} on Sessions: {go.sessions}",
    "workbench show": "{events.what} on Events: {go.events}",
    "workbench canary": "{canary.plan} on Canary: {go.canary}",
}
"""What does the same as an option or a command; ids of actions stand for their keys."""
_BRACKETS = re.compile(r"\((--[a-z-]+|workbench [a-z]+)([^)]*)\)")


def on_screen(sentence: str, key: Callable[[str], str]) -> str:
    """A remedy for someone at a screen; `key` says which key an action has."""

    def said(brackets: re.Match[str]) -> str:
        place = ON_SCREENS.get(brackets[1])
        if place is None:
            return f"(on the command line: {brackets[1]}{brackets[2]})"
        return f"({re.sub(r'{(.+?)}', lambda named: key(named[1]), place)})"

    return _BRACKETS.sub(said, sentence)


class RemedyClient:
    """A client whose refusals, and warnings of plans, can be followed at a screen."""

    def __init__(self, client: Client, key: Callable[[str], str]) -> None:
        self._client, self._key = client, key

    @property
    def role(self) -> Role:
        return self._client.role

    @property
    def person(self) -> str:
        return self._client.person

    @property
    def remote(self) -> bool:
        return self._client.remote

    @property
    def share(self) -> float | None:
        return self._client.share

    async def ask(self, request: Request[R]) -> R:
        """Raises what the engine refused it with, its remedy `on_screen`."""
        try:
            reply: Any = await self._client.ask(request)
        except WorkbenchError as error:
            if error.remedy:
                error.remedy = on_screen(error.remedy, self._key)
            raise
        if isinstance(request, PlanCampaign):
            warnings = tuple(on_screen(warning, self._key) for warning in reply.plan.warnings)
            reply = replace(reply, plan=replace(reply.plan, warnings=warnings))
        worded: R = reply
        return worded

    def follow(self, session: str) -> AbstractAsyncContextManager[Feed]:
        return self._client.follow(session)

    async def close(self) -> None:
        await self._client.close()
