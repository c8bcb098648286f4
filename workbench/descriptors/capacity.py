"""Whether a host has the cores that a campaign's hungriest configuration needs."""

from __future__ import annotations

from workbench.domain.campaign import Campaign
from workbench.domain.errors import UsageError

TRAFFIC_CORES = 0.5
"""For the source, and again for the sink."""


THIS_HOST, SIMULATED_HOST = "this host", "the simulated host"


def check_fits_host(campaign: Campaign, cores: float, host: str = THIS_HOST) -> None:
    """Refuse a campaign whose functions, source and sink together need more cores than there are.

    Parameters
    ----------
    cores : of that host.
    host : what it is called.

    Raises
    ------
    UsageError
        With the target, the configuration and the figures.
    """
    functions, target, key = max(
        (
            (sum(c.vcpu(vnf.name) for vnf in plan.target.vnfs), plan.target.name, c.key)
            for plan in campaign.targets
            for c in campaign.configurations(plan)
        ),
        default=(0.0, "", ""),
    )
    needed = functions + 2 * TRAFFIC_CORES
    if needed > cores:
        raise UsageError(
            f"its functions need up to {functions:g} cores ({target} at {key}) and source and "
            f"sink {TRAFFIC_CORES:g} each, {needed:g} in all, but {host} has {cores:g}",
            where=f"campaign {campaign.name}",
            remedy="Lower the resource parameters, or oversubscribe the host (--oversubscribe)",
        )
