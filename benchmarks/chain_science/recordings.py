"""Grids of real labs: the bundles below sessions/recorded."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from chain_science.grids import Grid
from chain_science.stored import ROOT
from chain_science.worlds import simulated
from workbench.domain.campaign import Campaign
from workbench.domain.events import SessionCreated
from workbench.domain.samples import Sample
from workbench.store.recordings import read_whole

BUNDLES = {
    "science-open": (),
    "science-open-second": ("science-open",),
    "demo-real": (),
    "chain-first": (),
    "science-closed-chains": ("science-closed", "science-closed-second"),
}
"""Bundles, and those that have their functions where they hold chains alone; of a function that
several have the last one speaks (tinyproxy of `science-closed` was stopped on a busy host)."""
UNSEEN = ("chain-real",)
"""Recorded after all that is told of chains was chosen; looked at once, for the table `unseen`."""
OTHER_HOST = "science-open-second"
"""Its host is another one than that of its functions (docs/chain-science.md)."""


def recorded(name: str) -> Grid:
    """A bundle's chains, and its functions or those of another bundle."""
    campaign, samples = _profiled(name)
    lent = {}
    for bundle in BUNDLES.get(name, ()):
        whole, more = _profiled(bundle)
        for plan in whole.targets:
            own = [s for s in more if s.point.target == plan.target.name]
            if len(plan.target.vnfs) == 1 and own:
                lent[plan.target.name] = plan, own
    if lent:
        functions = tuple(plan for plan, _ in lent.values())
        campaign = replace(campaign, targets=(*functions, *campaign.targets))
        samples = (*(s for _, own in lent.values() for s in own), *samples)
    return Grid(name, 0, campaign, samples)


@cache
def _profiled(bundle: str) -> tuple[Campaign, tuple[Sample, ...]]:
    """Its campaign and what that measured: no canaries, no verification."""
    events, measurements = read_whole(ROOT / "sessions" / "recorded" / bundle)
    campaign = next(e.fact.campaign for e in events if isinstance(e.fact, SessionCreated))
    own = (m.sample for m in measurements)
    return campaign, tuple(s for s in own if s.purpose == "profile")


def grid_of(name: str, seed: int) -> Grid:
    """Recorded, of which there is one, whatever the seed; or simulated."""
    return recorded(name) if name in BUNDLES else simulated(name, seed)
