"""How often a screen draws by itself."""

from __future__ import annotations

import pytest

from workbench.tui.draw_throttle import LEAST_S, MOST_S, DrawThrottle


class Host:
    """A clock, a CPU meter and a share that tests turn."""

    def __init__(self) -> None:
        self.now = 100.0
        self.spent = 3.0
        self.share: float | None = None
        self.pace = DrawThrottle(lambda: self.share, lambda: self.now, lambda: self.spent)

    def draw(self, cost_s: float) -> None:
        self.pace.drawing()
        self.spent += cost_s


def test_the_first_drawing_is_due_at_once() -> None:
    assert Host().pace.wait_s == 0


def test_where_nothing_is_measured_it_is_drawn_as_fast_as_people_read() -> None:
    host = Host()
    host.draw(cost_s=5.0)
    assert host.pace.wait_s == pytest.approx(LEAST_S)
    host.now += LEAST_S
    assert host.pace.wait_s == 0


def test_what_drawing_costs_is_spread_until_it_keeps_to_the_share() -> None:
    host = Host()
    host.share = 0.1 / 20
    host.draw(cost_s=0.012)
    assert host.pace.wait_s == pytest.approx(0.012 / host.share)
    host.share = 0.1  # the others have left
    assert host.pace.wait_s == pytest.approx(LEAST_S)


def test_a_screen_is_never_still_for_long() -> None:
    host = Host()
    host.share = 0.1 / 20
    host.draw(cost_s=4.0)  # such as a form that somebody opened
    assert host.pace.wait_s == pytest.approx(MOST_S)
