"""From a proposal to rows: what would change, what it is worth, how far it was seen."""

from __future__ import annotations

from collections.abc import Collection

from workbench.domain import canary_tables, departures
from workbench.domain.canaries import ProposalView
from workbench.domain.counts import counted
from workbench.domain.load_words import load_words
from workbench.domain.projection import SessionView
from workbench.domain.retraining import TermChange
from workbench.tui import text
from workbench.tui.answer_rows import laid_out
from workbench.tui.screens.proposals.chain_names import configuration_name, per, primary
from workbench.tui.widgets.rows import Look, Row, fit

SHOWN_CHANGES = 6


def proposal_rows(
    view: SessionView, made: ProposalView, keys: tuple[str, str], width: int
) -> list[Row]:
    """What would change, what it is worth, how far it was seen, and what was decided."""
    proposal = made.proposal
    name, unit = primary(view, proposal.chain)
    based = f"model {proposal.based_on}" if proposal.based_on else "the profiles"
    head = f" proposal {proposal.id[:6]}"
    method = f"  {text.plain(proposal.model.method)} on {based}"
    rows: list[Row] = [((head, "strong"), (method, "")), _verdict_row(made, keys, width)]
    look: Look = "good" if proposal.gain else "warn"
    sign = "✓" if proposal.gain else "!"
    for place, words in enumerate(
        text.wrapped(text.sentence(departures.statement_of(proposal)), width - 4)
    ):
        rows.append(((f" {'  ' if place else sign + ' '}", look), (words, look)))
    rows += _score_rows(made, width)
    for change in proposal.changes[:SHOWN_CHANGES]:
        rows.append(_change_row(view, proposal.chain, change, width))
    if (more := len(proposal.changes) - SHOWN_CHANGES) > 0:
        rows.append(((f"  and {more} more {'term' if more == 1 else 'terms'}", "dim"),))
    for reach in proposal.reach:
        where = configuration_name(view, proposal.chain, reach.configuration)
        load = load_words(name, text.number(reach.wl))
        words = f"beyond {load}, the highest that was measured at {where}, it is a guess"
        rows += [((f" {line}", "warn"),) for line in text.wrapped(words, width - 2)]
    samples = proposal.model.sample_ids
    loads = _loads(view, samples)
    spread = f", {text.number(loads[0])} to {text.number(loads[-1])}{per(unit)}" if loads else ""
    rows.append(((f" made by {counted(len(samples), 'sample')}{spread}", "dim"),))
    return rows


def _loads(view: SessionView, samples: Collection[str]) -> list[float]:
    """At which those samples were taken, ascending."""
    own = set(samples)
    points = [taken.sample for trials in view.trials for taken in trials.samples]
    points += [sample for item in view.configurations for sample in item.samples]
    return sorted({point.wl for point in points if point.id in own})


def _verdict_row(made: ProposalView, keys: tuple[str, str], width: int) -> Row:
    decision = made.decision
    if decision is None:
        accept, reject = keys
        words = f"waits: {accept} accepts, {reject} rejects" if accept else "waits for an operator"
        if not made.proposal.gain:
            words = "not in force, no gain: "
            words += f"{accept} accepts all the same, {reject} rejects" if accept else "waits"
        return ((" ▶ ", "accent"), (words, "strong"))
    verb, look = ("accepted", "good") if decision.accepted else ("rejected", "bad")
    who = f" by {text.plain(decision.by)} {text.day(decision.at)}"
    why = f": {text.plain(decision.why)}" if decision.why else ""
    sign = "✓" if decision.accepted else "×"
    shown: Look = "good" if look == "good" else "bad"
    return ((f" {sign} {verb}", shown), (fit(who + why, max(0, width - len(verb) - 4)), ""))


def _score_rows(made: ProposalView, width: int) -> list[Row]:
    proposal = made.proposal
    held = {"leave-one-load-out": "one load left out after the other"}.get(
        proposal.held_out, "points held out"
    )
    laid = laid_out(canary_tables.errors(proposal), width - 1)
    note = f"  {held}" if len(laid.heading) + len(held) + 3 <= width else ""
    rows: list[Row] = [((f" {laid.heading}", "dim"), (note, "dim"))]
    looks: tuple[Look, Look] = ("", "strong")
    for cells, look in zip(laid.lines, looks, strict=True):
        rows.append(((f" {''.join(cells)}", look),))
    return rows


def _change_row(view: SessionView, chain: str, change: TermChange, width: int) -> Row:
    where = "all"
    if change.configuration is not None:
        where = configuration_name(view, chain, change.configuration).partition(" ")[2]
    unit = f" {text.plain(change.unit)}" if change.unit else ""
    words = f" {text.plain(change.title)} of {where}: {text.number(change.before)} → "
    words += f"{text.number(change.after)}{unit}"
    interval = text.interval(change.low, change.high)
    words += f", samples say {interval}: not clear" if change.is_withheld else f" {interval}"
    return ((fit(words, width), ""),)
