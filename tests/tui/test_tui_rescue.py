"""A run whose session file was removed says so on its screens, and a key writes it again."""

from __future__ import annotations

from fake_link import SESSION, FakeClient, opened, screen_text, until

from workbench.domain.events import Progress
from workbench.domain.housekeeping import RESCUE, RescueSession

NOTE = f"the session was replaced or removed. Write it again with `{RESCUE} {SESSION}`"


async def test_a_key_writes_a_removed_session_again() -> None:
    link = FakeClient()
    async with opened(link, (120, 34)) as pilot:
        await pilot.press("ctrl+s")  # nothing has to be written again
        assert "^s Write again" not in screen_text(pilot.app)
        link.tick(Progress(SESSION, "waiting", "", None, None, 21, 80, 105.0, None, NOTE))
        await until(pilot, lambda: "^s Write again" in screen_text(pilot.app))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: RescueSession(SESSION) in link.commands())
    assert link.commands().count(RescueSession(SESSION)) == 1
