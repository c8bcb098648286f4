"""`recommend`: the cheapest allocation that carries SLAs, beside greedy scaling."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.cli.completion import chains
from workbench.cli.option_values import with_values
from workbench.cli.profile_options import ProfilesGiven
from workbench.cli.run import BudgetOption
from workbench.cli.spans import seconds
from workbench.domain import kpis
from workbench.domain import recommendation_tables as tables
from workbench.domain.limits import confidence_of
from workbench.domain.recommendations import priced

if TYPE_CHECKING:
    from workbench.domain.questions import Recommended
    from workbench.domain.recommendations import (
        Choice,
        Recommendation,
        Verification,
    )

WIDTH = 79


class ComparedWith(StrEnum):
    """What a recommendation is put beside."""

    GREEDY = "greedy"


def _confidence(written: str | float) -> float:
    try:
        return confidence_of(str(written))
    except ValueError:
        raise typer.BadParameter(
            f"{written} is not a finite number; write it as 0.95, 95 or 95%"
        ) from None


@dataclass(frozen=True)
class AskedGiven:
    """What is to hold, on which chain, how surely, and what counts as cheap."""

    sla: Annotated[
        list[str],
        typer.Option(help="As p95<=200ms @ rate=300/s, filesize=10kB; can be repeated."),
    ]
    chain: Annotated[
        str | None,
        typer.Option(help="Default: the only chain, or the only target.", autocompletion=chains),
    ] = None
    confidence: Annotated[
        float,
        typer.Option(
            parser=_confidence,
            metavar="SHARE",
            help="Probability with which the limits must hold: 0.95, 95 or 95%.",
        ),
    ] = 0.95
    cost: Annotated[
        str, typer.Option(help="vcpu-hours, a price table or its path, or a plugin's cost.")
    ] = "vcpu-hours"

    @property
    def cost_found(self) -> str:
        """A path as it is from any folder, since the engine stands in another one."""
        from workbench import paths

        is_path = "/" in self.cost or self.cost.endswith((".yaml", ".yml"))
        return str(paths.absolute(self.cost)) if is_path else self.cost


@dataclass(frozen=True)
class LabGiven:
    """What it is put beside, and what is measured for it."""

    compare: Annotated[
        ComparedWith | None, typer.Option(help="Compare it with greedy scaling.")
    ] = None
    on_lab: Annotated[
        bool, typer.Option("--on-lab", help="Run greedy scaling on the lab, not on the model.")
    ] = False
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Measure up to two allocations on the lab, and recommend by the result.",
        ),
    ] = False
    budget: BudgetOption = None
    oversubscribe: Annotated[
        bool,
        typer.Option(
            "--oversubscribe",
            help="Also deploy allocations that need more cores than the host has.",
        ),
    ] = False

    def check(self) -> None:
        """Raise `UsageError` for what is said of a measurement that is not asked for."""
        from workbench.domain.errors import UsageError

        if self.on_lab and self.compare is not ComparedWith.GREEDY:
            raise UsageError("says where greedy scaling runs", where="--on-lab",
                             remedy="Add --compare greedy")  # fmt: skip
        if (self.budget or self.oversubscribe) and not (self.verify or self.on_lab):
            raise UsageError("nothing is measured", where="--budget, --oversubscribe",
                             remedy="Add --verify, or --compare greedy --on-lab")  # fmt: skip


def register(app: typer.Typer) -> None:
    app.command("recommend")(with_values(recommend))


def recommend(
    asked: AskedGiven,
    lab: LabGiven,
    json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
    *,
    given: ProfilesGiven,
) -> None:
    """Recommend the cheapest allocation of a chain that holds SLAs; exit with 1 where none does.

    With --verify the lab is asked before, and what it does not confirm is an exit with 1, too.

    Example: workbench recommend demo-1 --chain tinyproxy-haproxy --sla "p95<=50ms @ rate=300/s"
    """
    from workbench.cli.context import ask_patiently, put, put_json, say
    from workbench.domain.errors import FINDING
    from workbench.domain.questions import Recommend

    lab.check()
    others = given.sessions()
    request = Recommend(
        given.asked("recommend"),
        tuple(asked.sla),
        asked.chain,
        asked.confidence,
        asked.cost_found,
        lab.compare is ComparedWith.GREEDY,
        lab.on_lab,
        lab.verify,
        seconds(lab.budget),
        lab.oversubscribe,
        profiles=others[0] if others else None,
        insist=given.insist,
        more_profiles=others[1:],
    )
    reply = ask_patiently(request, *dict.fromkeys((request.session, *others)))
    if json:
        put_json(_plain(reply.recommendation))
    else:
        put(_text(reply))
    for note in reply.notes:
        say(note)
    if json and reply.recommendation.note:
        say(reply.recommendation.note)
    unseen = lab.verify and reply.recommendation.verified is None
    if unseen or not tables.holds(reply.recommendation):
        raise typer.Exit(FINDING)


# ------------------------------------------------------------------------------- as JSON


def _plain(found: Recommendation) -> dict[str, Any]:
    """One object, of the chosen allocation, or of what comes closest where none holds."""
    from workbench.domain.codec import to_plain

    judged = found.chosen or found.closest
    plain: dict[str, Any] = {
        "id": found.id or None,
        "sla": tables.asked(found),
        "confidence": found.confidence,
        "met": found.met,
        **(_judged(judged) if judged else {}),
        "runners_up": [_judged(one) for one in found.runners_up],
        "model_version": found.model_version,
        "whose": dict(found.whose),
        "after": found.after or None,
        "lab_iterations": found.lab_iterations,
        "lab_s": found.lab_s,
    }
    if found.greedy is not None:
        run = found.greedy
        plain["greedy"] = {
            "allocation": dict(run.steps[-1].allocation),
            "replicas": dict(run.steps[-1].replicas),
            "met": run.met,
            "probability": run.probability,
            "cost": run.cost,
            "iterations": run.tried,
            "lab_iterations": run.lab_iterations,
            "lab_s": run.lab_s,
            "note": run.note,
            "slas_to_break_even": found.slas_to_break_even,
            "steps": to_plain(run.steps),
        }
    if found.verified is not None:
        plain["verified"] = to_plain(found.verified)
    return plain


def _judged(choice: Choice) -> dict[str, Any]:
    return {
        "allocation": dict(choice.allocation),
        "replicas": dict(choice.replicas),
        "usage": dict(choice.usage),
        "cost": choice.cost,
        "probability": choice.probability,
        "margin_wl": choice.margin_wl,
        "extrapolated": list(choice.extrapolated),
    }


# ------------------------------------------------------------------------------- as text


def _text(reply: Recommended) -> str:
    """The answer in a sentence, a table like paper A's Table 1, and what else there was."""
    from workbench.cli.tables import lines_of

    found = reply.recommendation
    judged = found.chosen or found.closest
    lines = list(_wrapped(_verdict(found)))
    if judged is not None:
        lines += ["", *lines_of(tables.beside_greedy(found, judged, reply.rows))]
        lines += ["", *(line for text in _sentences(found, judged) for line in _wrapped(text))]
    if found.runners_up:
        lines += ["", "Others that hold:", "", *_runners_up(found)]
    return "\n".join(lines)


def _verdict(found: Recommendation) -> str:
    asked = f"{tables.asked(found)} with a confidence of {found.confidence:.4g}"
    named = f"Recommendation {found.id} for {found.chain}" if found.id else f"For {found.chain}"
    if found.chosen is None:
        return f"{named}: nothing meets {asked}, of {found.judged} allocations."
    chosen = found.chosen
    return (
        f"{named}: {tables.in_words(chosen.deployment)}. It holds {asked}: the probability is "
        f"{tables.chance(chosen.probability)}{_of(found)}."
    )


def _sentences(found: Recommendation, judged: Choice) -> Iterator[str]:
    from workbench.domain.counts import counted

    if found.chosen is None:
        stated = "; ".join(_figure(kpi, judged) for kpi in judged.kpis)
        yield (
            f"What comes closest is {tables.in_words(judged.deployment)}: {stated}, and a "
            f"probability of {tables.chance(judged.probability)}{_of(found)}."
        )
    else:
        yield f"Expected there: {'; '.join(_figure(kpi, judged) for kpi in judged.kpis)}."
    if found.told_of_trials:
        yield found.told_of_trials
    if found.verified is not None:
        yield _measured(found.verified)
    yield _margin(found, judged)
    if found.note:
        yield found.note
    if judged.extrapolated:
        yield f"Outside of what was profiled: {', '.join(judged.extrapolated)}."
    yield f"Judged by {found.judged_by}, {found.judged} allocations by rising cost."
    greedy = found.greedy
    if greedy is not None:
        where = "on the lab" if greedy.lab_iterations else "on the same model, without the lab"
        yield (
            f"Greedy scaling tries {counted(greedy.tried, 'allocation')} {where}"
            f"{' before the SLA holds' if greedy.met else ' and does not get there'}."
            + (f" {greedy.note}" if greedy.note else "")
        )
        if greedy.probability is not None:
            sure = tables.chance(greedy.probability)
            yield f"The allocation it ends at holds with a probability of {sure}."
        if (count := found.slas_to_break_even) is not None:
            yield f"Profiling has paid for itself after {counted(count, 'SLA')} like this."


def _figure(kpi: str, judged: Choice) -> str:
    from workbench.domain.samples import OVERLOAD

    value, unit = judged.kpis[kpi], kpis.of(kpi).unit
    if value.unbounded:
        return f"{kpi} in {OVERLOAD}"
    return f"{kpi} of {value.value:.4g} [{value.low:.4g}, {value.high:.4g}] {unit}"


def _measured(verified: Verification) -> str:
    """The verdict of the lab."""

    stated = "; ".join(
        f"{kpi} of {e.value:.4g} [{e.low:.4g}, {e.high:.4g}] {kpis.of(kpi).unit}".rstrip()
        for kpi, e in verified.kpis.items()
    )
    verdict = "Measured there, it holds" if verified.met else "Measured there, it does NOT hold"
    return " ".join(filter(None, (f"{verdict}{f': {stated}' if stated else ''}.", verified.note)))


def _margin(found: Recommendation, judged: Choice) -> str:
    if judged.margin_wl is None:
        return "It carries no load with that confidence."
    loads = [sla.wl for sla in found.slas if sla.wl is not None]
    carried = f"{loads[0] + judged.margin_wl:.4g}"
    if judged.margin_wl < 0:
        return f"With that confidence it carries a load of {carried}."
    least = "at least " if judged.margin_open else ""
    return (
        f"With the same confidence it carries a load of {least}{carried}, which is {least}"
        f"{judged.margin_wl:.4g} more than asked."
    )


def _runners_up(found: Recommendation) -> Iterator[str]:
    """What each costs, and below it what it is: several functions do not fit beside it."""
    for one in found.runners_up:
        margin = "no load" if one.margin_wl is None else f"{one.margin_wl:+.4g} load"
        profiled = "" if one.profiled else ", never measured"
        sure = tables.chance(one.probability)
        yield f"  {priced(one.cost, one.cost_unit)}, {sure}, {margin}{profiled}"
        yield from _wrapped(tables.in_words(one.deployment), indent="    ")


def _of(found: Recommendation) -> str:
    return " in steady state" if found.probability_of == "long_run" else " in the next window"


def _wrapped(text: str, indent: str = "") -> Sequence[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
