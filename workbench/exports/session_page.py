"""A session as one page: for a ticket, a review, or whoever has no workbench."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from workbench import __version__, files
from workbench.domain import comparison_tables, departures, session_tables
from workbench.domain.answer_tables import AnswerTable
from workbench.domain.campaign import TargetPlan
from workbench.domain.chain_figures import allocation
from workbench.domain.counts import counted
from workbench.domain.diagnoses import Diagnosis
from workbench.domain.diagnosis_tables import how_often_right
from workbench.domain.event_log import said_once
from workbench.domain.projection import SessionView
from workbench.domain.questions import ChainCharted, ChainCompared
from workbench.exports.base import ExportSource, file_in
from workbench.exports.html_text import page_text
from workbench.exports.page_blocks import Block, Heading, Illustration, Paragraph, Report
from workbench.exports.recommendation.base import Context
from workbench.exports.recommendation.provenance import host_in_words, iso_date, sla_texts
from workbench.exports.recommendation.report import body
from workbench.exports.session_plot import chain_plot, profile_plot

MOST_PLOTS = 24
"""Of configurations; of more the first are drawn, and the page says how many are not."""
MOST_CHAIN_PLOTS = 8
"""Of each chain."""
MOST_NOTES = 50
COMPUTED = (
    "`workbench report` also compares chains with their prediction and says why they are slow"
)


@dataclass(frozen=True)
class ChainAnswers:
    """What was computed of one chain for the page.

    Attributes
    ----------
    compared, charted, diagnosis : None where that was refused.
    refusals : why, as sentences.
    """

    chain: str
    compared: ChainCompared | None = None
    charted: ChainCharted | None = None
    diagnosis: Diagnosis | None = None
    refusals: tuple[str, ...] = ()


async def export_html(source: ExportSource, destination: Path) -> tuple[Path, ...]:
    """HTML: the session as a page with plots, to be read anywhere.

    Writes `NAME.html` into the folder `destination`, or the file of that name. It holds what is
    stored; what takes seconds to compute is in `workbench report`.
    """
    path = await asyncio.to_thread(file_in, destination, source.name, ".html")
    view = await source.view()
    await asyncio.to_thread(write_page, path, view, None)
    return (path,)


def write_page(path: Path, view: SessionView, chains: tuple[ChainAnswers, ...] | None) -> None:
    """Write the page, whole or not at all; makes its folder. Raises `OSError`."""
    text = session_page(view, chains)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_whole(path, text)


def session_page(view: SessionView, chains: tuple[ChainAnswers, ...] | None) -> str:
    """The HTML of a session; `chains` is None where nothing was computed for it."""
    simulated = "Simulated, not measured: " if view.host and view.host.is_simulated else ""
    campaign = f": campaign {view.campaign.name}" if view.campaign else ""
    blocks = (*_blocks(view), *_of_chains(view, chains), *_decided(view), *_remarks(view))
    return page_text(Report(f"{simulated}{view.session}{campaign}", blocks), _facts(view))


def _facts(view: SessionView) -> Mapping[str, str]:
    facts = {"session": view.session, "tool": f"workbench {__version__}", "lab": view.lab}
    return facts | ({"caution": view.caution} if view.caution else {})


def _blocks(view: SessionView) -> Iterator[Block]:
    """What was measured and where, then each target."""
    if view.caution:
        yield Paragraph(f"Caution: {view.caution}.")
    for sentence in session_tables.about(view):
        yield Paragraph(f"{sentence}.")
    yield Paragraph(session_tables.ending(view))
    if host := view.host:
        yield Heading("Where it was measured")
        began = [("first run started", iso_date(view.started_at))] if view.started_at else []
        digests = [(f"image of {name}", digest) for name, digest in host.image_digests.items()]
        facts = [("host", host_in_words(host)), *began, *host.details.items(), *digests]
        yield AnswerTable.of(("", ""), facts)
    invalid = session_tables.invalid_samples(view)
    if invalid.rows:
        yield Heading("Samples that count for nothing")
        yield invalid
    drawn = 0
    for target in dict.fromkeys(c.target for c in view.configurations):
        yield Heading(target)
        yield session_tables.configurations(view, target)
        for tell in (session_tables.collapses, session_tables.unsaturated):
            yield from (Paragraph(f"{sentence}.") for sentence in tell(view, target))
        for plot in _profiles(view, target, drawn):
            drawn += 1
            yield plot
    fitted = sum(c.curve is not None for c in view.configurations)
    if fitted > drawn:
        yield Paragraph(f"{counted(fitted - drawn, 'curve')} more: `workbench export --as curves`.")


def _profiles(view: SessionView, target: str, before: int) -> Iterator[Illustration]:
    """The curves of a target, up to `MOST_PLOTS` on the page with those `before`."""
    limit = view.campaign.sla if view.campaign else None
    label = _load_label(view, target)
    own = [one for one in view.configurations if one.target == target]
    for one in own:
        if before >= MOST_PLOTS:
            break
        plot = profile_plot(one, label, limit)
        if plot is not None:
            before += 1
            place = session_tables.told_apart(one, own)
            caption = f"{target}, {place}. The line is the fitted mean, the band its 95 % "
            caption += "interval; samples have theirs, uprights are breakpoints."
            yield Illustration(plot.svg(before), caption)


def _load_label(view: SessionView, target: str) -> str:
    plan = view.campaign.find_target(target) if view.campaign else None
    if plan is None:
        return "load"
    primary = plan.primary
    return f"{primary.name} ({primary.unit})" if primary.unit else primary.name


def _of_chains(view: SessionView, chains: tuple[ChainAnswers, ...] | None) -> Iterator[Block]:
    number = MOST_PLOTS  # identifiers of plots go on behind those of the profiles
    for one in chains or ():
        yield Heading(f"{one.chain}: predicted and measured")
        if one.diagnosis is not None:
            yield from _verdicts(one.diagnosis)
        if one.compared is not None:
            yield from _compared(one.compared)
        if one.charted is not None:
            yield from _charts(view, one.charted, number)
            number += MOST_CHAIN_PLOTS
        for sentence in one.refusals:
            yield Paragraph(sentence)
    if chains is None and any(len(t.target.vnfs) > 1 for t in _targets(view)):
        yield Paragraph(f"{COMPUTED}.")


def _charts(view: SessionView, charted: ChainCharted, before: int) -> Iterator[Illustration]:
    """The chain over its loads; `before` plots stand on the page already."""
    label, chain = _load_label(view, charted.chain), charted.chain
    by = f"predicted by {charted.rule}"
    if charted.model_version:
        by += f" as corrected by the accepted model {charted.model_version}"
    for number, chart in enumerate(charted.charts[:MOST_CHAIN_PLOTS], before + 1):
        here = chart.configuration
        taken = [
            sample
            for one in view.configurations
            if (one.target, one.configuration) == (chain, here)
            for sample in one.samples
        ] + [
            trial.sample
            for one in view.trials
            for trial in one.samples
            if (trial.target, trial.configuration) == (chain, here)
        ]
        svg = chain_plot(chart, taken, charted.kpi, label).svg(number)
        yield Illustration(svg, f"{chain}, {allocation(here)}; {by}.")


def _targets(view: SessionView) -> tuple[TargetPlan, ...]:
    return view.campaign.targets if view.campaign else ()


def _verdicts(found: Diagnosis) -> Iterator[Block]:
    yield Paragraph(f"Why: {found.sentence}.")
    yield AnswerTable.of(
        ("cause", "at", "strength", "how sure", "evidence", "what to do"),
        (
            (
                *(v.cause, v.component, f"{v.strength:.0%}", how_often_right(v)),
                *("; ".join(v.evidence), v.remedy),
            )
            for v in found.verdicts
        ),
    )


def _compared(reply: ChainCompared) -> Iterator[Block]:
    found = reply.comparison
    yield Paragraph(f"{comparison_tables.compared_with(found)}.")
    yield Paragraph(f"It is {departures.of_all_samples(found)}.")
    if found.outliers:
        yield Paragraph(f"Not as predicted, {comparison_tables.beyond(found)}:")
        yield comparison_tables.deviations(found)
    yield comparison_tables.scores(reply)
    yield comparison_tables.by_configuration(found)
    numbered = enumerate(found.configurations, 1)
    yield Paragraph("; ".join(f"{n}: {allocation(c.configuration)}" for n, c in numbered))


def _decided(view: SessionView) -> Iterator[Block]:
    """Recommendations, models, canaries, and what was measured for them."""
    for issued in view.recommendations:
        one = issued.recommendation
        yield Heading(f"Recommendation {one.id}: {one.chain}, {sla_texts(one)}")
        yield from body(one, Context(version=__version__, host=view.host))
    for heading, table in (
        ("Models in force", session_tables.models(view)),
        ("Canaries", session_tables.canaries(view)),
        ("Proposed models", session_tables.proposals(view)),
        ("Measured after the campaign", session_tables.trials(view)),
    ):
        if table.rows:
            yield Heading(heading)
            yield table


def _remarks(view: SessionView) -> Iterator[Block]:
    """What people decided about samples, and warnings."""
    if view.decisions:
        yield Heading("Decisions about samples")
        yield AnswerTable.of(
            ("sample", "verdict", "by", "why"),
            ((d.sample, d.verdict, d.by or None, d.why or None) for d in view.decisions.values()),
        )
    notes = said_once(line for line in view.log if line.level != "info")[-MOST_NOTES:]
    if notes:
        yield Heading("Warnings and errors")
        rows = ((iso_date(n.line.at), n.line.level, n.line.text, n.times) for n in notes)
        yield AnswerTable.of(("last", "", "what", "times"), rows)
