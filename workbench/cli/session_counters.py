"""Counters of a stored session's functions, as `counters` and `watch` learn from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.domain.campaign import Campaign
    from workbench.domain.projection import SessionView
    from workbench.domain.sample_review import SampleDetail
    from workbench.domain.samples import Sample
    from workbench.engine.answers.counter_learning import CountedRows
    from workbench.link.client import Client

MOST_SAMPLES = 2_000
"""Of a function in a session: the last ones."""


def told_kpi(given: str) -> str:
    """The name of a KPI that windows state. Raises `UsageError` for another."""
    from workbench.domain import kpis
    from workbench.domain.errors import UsageError

    known = kpis.find(given)
    if known is None or (known.quantile is None and not known.carried):
        raise UsageError(
            f"{given!r} is not told from counters",
            where="--kpi",
            remedy="Name throughput (of packets: throughput_pps), p50, p95 or p99",
        )
    return known.name


def must_be_carried(campaign: Campaign, kpi: str) -> None:
    """Raises `UsageError` of a rate in another unit than what the campaign's load consists of."""
    from workbench.domain import kpis
    from workbench.domain.errors import UsageError

    own = kpis.carried("packets" if campaign.load.unit == "packets" else "requests")
    if kpis.of(kpi).carried and kpi != own:
        raise UsageError(
            f"is told in {kpis.of(own).unit} of this session, whose load is of those",
            where="--kpi throughput",
            remedy=f"--kpi {own}",
        )


def counted_campaign(session: str, view: SessionView, function: str, kpi: str) -> Campaign:
    """The campaign of a session whose function, measured alone, has counters beside the KPI.

    Raises `UsageError` where it has none, as of a simulation, or of a chain; and as
    `must_be_carried`.
    """
    from workbench.domain.errors import UsageError

    campaign = view.campaign
    if campaign is None:
        raise UsageError("holds no campaign yet", where=session)
    if view.host is not None and view.host.is_simulated:
        raise UsageError(
            "was measured on the simulated lab, where no kernel counts anything of a function",
            where=session,
            remedy="Run it with --lab docker; `counters --chain A,B` also takes simulated sessions",
        )
    target = next((p.target for p in campaign.targets if p.target.name == function), None)
    if target is not None and len(target.vnfs) > 1:
        raise UsageError(
            f"{function} is a chain: its functions have counters, and it has none of its own",
            where=session,
            remedy=f"Name one of {', '.join(vnf.name for vnf in target.vnfs)}, or ask `counters "
            f"--session {session} --chain {function}`",
        )
    must_be_carried(campaign, kpi)
    return campaign


async def samples_alone(client: Client, session: str, function: str) -> list[SampleDetail]:
    """A session's samples of one function alone, with their evidence.

    Raises `UsageError` where there is none.
    """
    from workbench.domain.errors import UsageError
    from workbench.domain.sample_review import GetSample

    samples = await samples_listed(client, session, function)
    if not samples:
        raise UsageError(
            f"has no samples of {function} alone",
            where=session,
            remedy="Name a function that was measured alone; `workbench show` lists them",
        )
    return [await client.ask(GetSample(session, one.id)) for one in samples[-MOST_SAMPLES:]]


async def samples_listed(client: Client, session: str, target: str) -> list[Sample]:
    """A session's samples of a target, without their evidence."""
    from workbench.link.paging import all_samples

    taken = (await all_samples(client, session)).samples
    return [one for one in taken if one.point.target == target]


async def counted_of(
    session: str, function: str, kpi: str, with_others: bool
) -> dict[str, CountedRows]:
    """Rows of a function that the session measured alone, and with those of all others.

    Another that taught nothing is left out, and said.
    """
    from workbench.cli.context import any_client, say
    from workbench.computing import computed
    from workbench.domain.errors import DataError, UsageError
    from workbench.domain.messages import ViewSession
    from workbench.engine.answers.counter_learning import counted_rows

    found: dict[str, CountedRows] = {}
    async with any_client() as client:
        view = (await client.ask(ViewSession(session))).view
        campaign = counted_campaign(session, view, function, kpi)
        targets = (plan.target for plan in campaign.targets if with_others)
        alone = [target.name for target in targets if len(target.vnfs) == 1]
        for name in dict.fromkeys((function, *alone)):
            try:
                taken = await samples_alone(client, session, name)
                found[name] = await computed(counted_rows, taken, name, kpi, campaign.ceiling(kpi))
            except (DataError, UsageError) as error:
                if name == function:
                    raise
                say(f"nothing is learned from {name}: {error}")
    return found
