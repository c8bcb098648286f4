"""The link refuses what the command line refuses (`domain.limits`), whatever client asks."""

from __future__ import annotations

import pytest
from engine_watching import SMALL

from workbench.domain.errors import UsageError
from workbench.domain.messages import (
    ListSamples,
    ListSessions,
    Request,
    RunCampaign,
    SessionList,
    ViewSession,
)
from workbench.link.socket import SocketClient

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (RunCampaign(SMALL, lab="sim", seed=-1), "-1 is not a seed"),
        (RunCampaign(SMALL, lab="sim", pace=-1.0), "-1 is not a pace"),
        (RunCampaign(SMALL, lab="sim", budget_s=-1.0), "-1 is not a time"),
        (ListSamples("demo-real", limit=-1), "-1 is not a limit"),
        (ViewSession("a" * 5000), "has 5000 letters"),
        (RunCampaign(SMALL, lab="sim", session="a" * 5000), "has 5000 letters"),
    ],
)
async def test_what_no_command_would_send_is_a_sentence(
    client: SocketClient, request_: Request, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        await client.ask(request_)
    listed = await client.ask(ListSessions())
    assert isinstance(listed, SessionList)
    assert {session.kind for session in listed.sessions} == {"bundle"}, "nothing was begun"
