"""When the lab can be asked about a recommendation, and how that is stopped."""

from __future__ import annotations

from fake_link import flashed, opened, redrawn
from recommending_link import RecommendingClient, held


async def test_it_is_verified_once_the_campaign_has_ended() -> None:
    async with opened(RecommendingClient(held(), finished=False), screen="recommend") as pilot:
        await redrawn(pilot)
        assert "recommend.verify" not in {action.id for action in pilot.app.screen.offered()}
        await pilot.press("f5")
        assert flashed(pilot.app) == "The campaign comes first: it is running."
        assert not pilot.app.screen.is_modal
