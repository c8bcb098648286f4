"""When the lab can be asked about a recommendation, and how that is stopped."""

from __future__ import annotations

from fake_link import SESSION, flashed, opened, redrawn, until
from recommending_link import RecommendingClient, held

from workbench.domain.events import TrialsStarted
from workbench.domain.messages import StopRun


async def test_it_is_verified_once_the_campaign_has_ended() -> None:
    async with opened(RecommendingClient(held(), finished=False), screen="recommend") as pilot:
        await redrawn(pilot)
        assert "recommend.verify" not in {action.id for action in pilot.app.screen.offered()}
        await pilot.press("f5")
        assert flashed(pilot.app) == "The campaign comes first: it is running."
        assert not pilot.app.screen.is_modal


async def test_a_verification_is_stopped_also_after_its_screen_was_left() -> None:
    client = RecommendingClient(held())
    client.tell(TrialsStarted("verification", "ann", None))
    async with opened(client, screen="recommend") as pilot:
        await redrawn(pilot)
        pilot.app.go("live")
        await until(pilot, lambda: pilot.app.screen.NAME == "live", "another screen")
        await redrawn(pilot)
        await pilot.press("s")
        assert flashed(pilot.app).endswith("a verification does: s on Recommend (8) stops it.")
        pilot.app.go("recommend")
        await until(pilot, lambda: pilot.app.screen.NAME == "recommend", "its screen")
        await redrawn(pilot)
        assert "recommend.verify" not in {action.id for action in pilot.app.screen.offered()}
        await pilot.press("s", "y")
        await until(pilot, client.commands, "the stop")
        assert client.commands() == [StopRun(SESSION)]
