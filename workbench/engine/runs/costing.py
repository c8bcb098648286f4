"""What a campaign would cost, asked before anything runs; and what of it a budget reaches for."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from workbench import plugins
from workbench.domain.campaign import Campaign
from workbench.domain.errors import UsageError
from workbench.domain.lab import SIMULATION
from workbench.domain.messages import PlanCampaign, RunCampaign
from workbench.domain.sessions import Plan, SamplerCost
from workbench.engine.learning.pool import Pool, WorkerLost
from workbench.engine.runs.fitting import fit_to
from workbench.engine.runs.opening import (
    argument_of,
    choose_lab,
    host_of,
    made_lab,
    why_too_small,
)
from workbench.engine.runs.planning import make_plan
from workbench.engine.runs.sampler_cost import cost_of
from workbench.engine.runs.sharing_out import over_hosts
from workbench.engine.sessions.library import Library
from workbench.labs.base import LabCosts, LabSettings

FORETELLING_S = 60.0
"""Seconds after which a sampler that is played for a plan is taken to hang."""


class Costing:
    """Answers what a campaign would cost; no lab is opened, and nothing is stored."""

    def __init__(self, library: Library, pool: Pool) -> None:
        self._library, self._pool = library, pool

    async def plan(self, request: PlanCampaign) -> Plan:
        """Samples and lab time, and what every sampler would take, where that is asked."""
        from workbench.descriptors.loading import load_campaign

        workspace = self._library.workspace
        loaded = await asyncio.to_thread(load_campaign, request.campaign, workspace=workspace)
        campaign = loaded.campaign
        lab_name, why = await choose_lab(request.lab, campaign.lab)
        warnings = [why] if why else []
        if request.fit:
            campaign, left_out = await self.fitted(campaign, lab_name, request)
            warnings += left_out
        try:
            if small := why_too_small(request, campaign, lab_name, workspace):
                lab_name = SIMULATION
                warnings.append(small)
        except UsageError as error:
            warnings.append(str(error))
        argument = await argument_of(self._library, lab_name)
        settings = LabSettings(session="plan", seed=request.seed, argument=argument)
        lab = await made_lab(lab_name, campaign, settings)
        plan = await self._pool.run(make_plan, campaign, lab_name, lab.costs, tuple(warnings))
        if request.most_hosts:
            hosts, enough = await self._pool.run(
                over_hosts, campaign, lab_name, lab.costs, request.seed, request.most_hosts
            )
            plan = replace(plan, hosts=hosts, enough=enough)
        if not request.samplers and not request.chosen:
            return plan
        every = request.only or plugins.names("samplers")
        names = (campaign.sampling.method,) if request.chosen else every
        found = [
            await self._predicted_cost(campaign, lab_name, lab.costs, request.seed, name)
            for name in names
        ]
        return replace(plan, samplers=tuple(sorted(found, key=_by_cost)))

    async def _predicted_cost(
        self, campaign: Campaign, lab_name: str, costs: LabCosts, seed: int, sampler: str
    ) -> SamplerCost:
        """One call of the worker each: a run that is under way has its turn in between."""
        told = self._pool.run(cost_of, campaign, lab_name, costs, seed, sampler)
        try:
            return await asyncio.wait_for(told, FORETELLING_S)
        except TimeoutError:
            self._pool.kill()
            note = f"has not answered for {FORETELLING_S:g} s"
        except WorkerLost as error:
            note = error.what
        chosen = sampler == campaign.sampling.method
        return SamplerCost(sampler, 0, 0.0, "unknown", chosen, note)

    async def fitted(
        self, campaign: Campaign, lab_name: str, request: RunCampaign | PlanCampaign
    ) -> tuple[Campaign, tuple[str, ...]]:
        """The part of a campaign that this host and the budget can give; what was left out."""
        argument = await argument_of(self._library, lab_name)
        lab = await made_lab(lab_name, campaign, LabSettings(session="plan", argument=argument))
        fitted = await self._pool.run(
            fit_to, campaign, host_of(lab_name)[0], request.budget_s, lab_name, lab.costs
        )
        return fitted.campaign, fitted.notes


def _by_cost(cost: SamplerCost) -> tuple[bool, float, str]:
    return cost.figure == "unknown", cost.lab_s, cost.sampler
