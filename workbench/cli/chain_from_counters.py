"""`counters --session NAME --chain CHAIN`: models of functions from counters, composed."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workbench.domain.campaign import Campaign
    from workbench.domain.topology import Target
    from workbench.engine.answers.counted_chains import CountedFunction, CountedPoint, Measured


def chain_from_counters(session: str, wanted: str, kpi: str) -> dict[str, Any]:
    """What `--json` has of a chain. Raises what `CountedChain` does."""
    from workbench.cli.context import execute, learned_here

    return learned_here(_composed_of, *execute(_read(session, wanted, kpi)), kpi)


def _composed_of(
    campaign: Campaign,
    chain: Target,
    functions: Sequence[CountedFunction],
    measured: Measured,
    kpi: str,
) -> dict[str, Any]:
    from workbench.cli.context import say
    from workbench.cli.piece_progress import PieceProgress
    from workbench.domain import kpis
    from workbench.engine.answers.chain_inputs import cores_of_chain
    from workbench.engine.answers.counted_chains import (
        MOST_POINTS,
        CountedChain,
        needed_kpis,
        score_of_chain,
    )

    cores = cores_of_chain(campaign, chain)
    ceiling = campaign.ceiling(kpi)
    load_model = functions[0].samples[0].load_model
    of, number = len(functions) * len(needed_kpis(kpi, load_model)), count(1)
    composed = CountedChain(
        chain, functions, kpi, cores, ceiling,
        learning=lambda words: say(f"model {next(number)} of {of}: {words}"),
    )  # fmt: skip
    asked = list(measured.items())[:MOST_POINTS]
    points: list[CountedPoint] = []
    with PieceProgress("operating points of the chain") as progress:
        for (configuration, wl), known in asked:
            progress.tell(len(points), len(asked))
            points.append(composed.at(configuration, wl, known))
    notes = []
    if left_out := len(measured) - len(points):
        notes.append(f"{left_out} of {len(measured)} operating points are left out")
    if not composed.shares_cores:
        notes.append("no two of its functions are pinned to the same cores (managers.NAME.cpuset)")
    return {
        "layout": "chain",
        "chain": chain.name,
        "kpi": kpi,
        "unit": kpis.of(kpi).unit,
        "rule": composed.composed.rule.name,
        "topology_trained_on": False,
        "functions": [_learned(one) for one in functions],
        "points": [_plain(point) for point in points],
        "score": _plain(score_of_chain(points)),
        "notes": notes,
    }


def _learned(one: CountedFunction) -> dict[str, Any]:
    loads = [window.wl for window in one.windows]
    return {
        "target": one.target,
        "samples": len(one.samples),
        "windows": len(one.windows),
        "beside": list(one.learned_beside),
        "lowest": min(loads),
        "highest": max(loads),
    }


def _plain(item: Any) -> dict[str, Any] | None:
    from dataclasses import asdict

    return None if item is None else asdict(item)


async def _read(
    session: str, wanted: str, kpi: str
) -> tuple[Campaign, Target, Sequence[CountedFunction], Measured]:
    """The campaign, the chain, its functions with their counters, and where it is asked."""
    from workbench.cli.context import any_client
    from workbench.cli.session_counters import samples_alone, samples_listed
    from workbench.computing import computed
    from workbench.domain.errors import UsageError
    from workbench.domain.messages import ViewSession
    from workbench.engine.answers.chain_profiles import profiles_for
    from workbench.engine.answers.counted_chains import (
        counted_function,
        measured_of,
        points_for,
    )

    async with any_client() as client:
        campaign = (await client.ask(ViewSession(session))).view.campaign
        if campaign is None:
            raise UsageError("holds no campaign yet", where=session)
        chain = await computed(_chain, campaign, wanted)
        functions = []
        for target in profiles_for(campaign, chain):
            taken = await samples_alone(client, session, target.name)
            primary = campaign.target_plan(target.name).primary
            functions.append(counted_function(target, taken, primary, kpi))
        measured = measured_of(await samples_listed(client, session, chain.name), kpi)
        return campaign, chain, functions, measured or points_for(chain, functions)


def _chain(campaign: Campaign, wanted: str) -> Target:
    """A chain by its name, or functions of the campaign in a series: `A,B,C`.

    Functions in a series that the campaign measured by a name are that chain.
    """
    from workbench.cli.context import current_workspace
    from workbench.domain.errors import UsageError
    from workbench.domain.topology import Series, Target
    from workbench.engine.answers.chain_profiles import chain_of, stand_alone

    if "," not in wanted:
        chain = chain_of(campaign, wanted, current_workspace())
    else:
        alone = {target.name: target for target in stand_alone(campaign)}
        names = [name.strip() for name in wanted.split(",")]
        if missing := [name for name in names if name not in alone]:
            raise UsageError(
                f"{', '.join(map(repr, missing))} was not measured alone",
                where="--chain",
                remedy=f"Name functions of: {', '.join(alone) or 'none'}",
            )
        if len({*names}) < len(names):
            raise UsageError("names a function twice", where="--chain", remedy="Name each once")
        first = alone[names[0]]
        graph = Series(tuple(alone[name].vnfs[0] for name in names))
        chain = Target("-".join(names), graph, first.source, first.sink)
        same = (p.target for p in campaign.targets if p.target.graph == graph)
        chain = next(same, chain)
    if len(chain.vnfs) < 2 or chain.copies:
        what = "is one function" if len(chain.vnfs) < 2 else "has a passive function"
        raise UsageError(
            f"{what}: no chain is composed of it",
            where=f"chain {chain.name}",
            remedy="Name a chain that traffic passes through; --function tells of a single one",
        )
    return chain
