"""A screen of the catalogue, made when it is first opened: one that nobody opens costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from workbench.tui.screens.base import WorkbenchScreen


def _sessions() -> WorkbenchScreen:
    from workbench.tui.screens.sessions.sessions import SessionsScreen

    return SessionsScreen()


def _chain() -> WorkbenchScreen:
    from workbench.tui.screens.chain.chain import ChainScreen

    return ChainScreen()


def _grid() -> WorkbenchScreen:
    from workbench.tui.screens.campaign.grid import GridScreen

    return GridScreen()


def _live() -> WorkbenchScreen:
    from workbench.tui.screens.live.live import LiveScreen

    return LiveScreen()


def _compare() -> WorkbenchScreen:
    from workbench.tui.screens.compare.compare import CompareScreen

    return CompareScreen()


def _models() -> WorkbenchScreen:
    from workbench.tui.screens.models.models import ModelsScreen

    return ModelsScreen()


def _recommend() -> WorkbenchScreen:
    from workbench.tui.screens.recommend.recommend import RecommendScreen

    return RecommendScreen()


def _canary() -> WorkbenchScreen:
    from workbench.tui.screens.canary.canary import CanaryScreen

    return CanaryScreen()


def _events() -> WorkbenchScreen:
    from workbench.tui.screens.events import EventsScreen

    return EventsScreen()


def _why() -> WorkbenchScreen:
    from workbench.tui.screens.why.why_screen import WhyScreen

    return WhyScreen()


def _hosts() -> WorkbenchScreen:
    from workbench.tui.screens.fleet_hosts.hosts_screen import HostsScreen

    return HostsScreen()


MAKERS: Mapping[str, Callable[[], WorkbenchScreen]] = {
    "sessions": _sessions,
    "chain": _chain,
    "grid": _grid,
    "live": _live,
    "compare": _compare,
    "models": _models,
    "canary": _canary,
    "recommend": _recommend,
    "events": _events,
    "why": _why,
    "hosts": _hosts,
}
"""By the names of the catalogue."""


def make_screen(name: str) -> WorkbenchScreen:
    """The screen of that name. Raises `KeyError` where there is none."""
    return MAKERS[name]()
