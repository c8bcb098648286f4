"""What a run concludes when it ends."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.domain.campaign import Campaign
from workbench.domain.configurations import ConfigurationView
from workbench.domain.events import ConfigurationFinished, RunFinished
from workbench.domain.profiles import BREAKPOINT_RULES, Breakpoint
from workbench.domain.projection import SessionView
from workbench.domain.sessions import ConfigurationOutcome, Outcome
from workbench.engine.runs.control import Place
from workbench.engine.runs.faults import GivenUp


def unfinished(
    view: SessionView, outcome: Outcome, note: str, given_up: Mapping[Place, GivenUp]
) -> list[ConfigurationFinished]:
    """Ends of the configurations that a run leaves unfinished; of its note the first sentence."""
    ends = []
    for c in view.configurations:
        if c.ended:
            continue
        fault = given_up.get((c.target, c.configuration))
        ended: ConfigurationOutcome = "budget" if outcome == "budget" else "stopped"
        ends.append(
            ConfigurationFinished(
                c.target,
                c.configuration,
                "unusable" if fault else ended,
                len(c.samples),
                c.invalid,
                fault.note if fault else note.partition(". ")[0],
            )
        )
    return ends


def finished(
    view: SessionView, campaign: Campaign, outcome: Outcome, note: str, wall_s: float, lab_s: float
) -> RunFinished:
    """The last word of a run, with the breakpoints of every configuration."""
    return RunFinished(
        outcome=outcome,
        samples=view.samples_taken,
        invalid=sum(c.invalid for c in view.configurations),
        wall_s=wall_s,
        measured_s=lab_s,
        breakpoints=tuple(
            b for c in view.configurations for b in c.breakpoints or _unresolved(c, campaign)
        ),
        note=note,
    )


def _unresolved(view: ConfigurationView, campaign: Campaign) -> tuple[Breakpoint, ...]:
    sla = campaign.sla
    return tuple(
        Breakpoint(
            view.target,
            view.configuration,
            rule,
            sla.kpi if rule == "sla" and sla else campaign.kpi,
            "unresolved",
            note="no sample was taken",
        )
        for rule in BREAKPOINT_RULES
        if rule != "collapse" and (rule != "sla" or sla is not None)
    )
