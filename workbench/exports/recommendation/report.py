"""What a report says, before it is Markdown or HTML: headings, sentences, tables and plots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.domain.answer_tables import AnswerTable
from workbench.domain.durations import duration
from workbench.domain.recommendation_tables import chance
from workbench.domain.recommendations import Choice, Deployment, GreedyRun, Recommendation, priced
from workbench.exports.page_blocks import Block, Heading, Illustration, Paragraph, Report
from workbench.exports.recommendation.base import Context
from workbench.exports.recommendation.functions import functions_of
from workbench.exports.recommendation.naming import one_line
from workbench.exports.recommendation.plot import PlottedAllocation, figure, plot
from workbench.exports.recommendation.provenance import (
    cautions,
    limit_text,
    provenance,
    sla_texts,
)


def report(recommendation: Recommendation, context: Context) -> Report:
    """Everything that is to be said of a recommendation, in the order of how much it matters."""
    simulated = "Simulated, not measured: " if context.host and context.host.is_simulated else ""
    title = one_line(f"{simulated}{recommendation.chain}: {sla_texts(recommendation)}")
    warned = (Paragraph(f"Caution: {one_line(caution)}.") for caution in cautions(context))
    return Report(
        title, (*warned, *body(recommendation, context), *_origin(recommendation, context))
    )


def in_words(deployment: Deployment, context: Context) -> str:
    """`tinyproxy 0.5 vCPU; haproxy 2 × 0.25 vCPU, 64 MiB (small)`."""
    each = (f"{f.function} {f.in_words}" for f in functions_of(deployment, context))
    return one_line("; ".join(each)) or "no resources"


def body(recommendation: Recommendation, context: Context) -> Iterator[Block]:
    """The verdict and what it rests on, without title, cautions and origin."""
    yield Paragraph(_verdict(recommendation, context))
    judged = recommendation.chosen or recommendation.closest
    for doubt in _doubts(judged) if judged else ():
        yield Paragraph(doubt)
    if recommendation.verified:
        yield Paragraph(_verification(recommendation))
    if note := one_line(recommendation.note):
        yield Paragraph(note)
    if why := one_line(context.why):
        yield Paragraph(f"Why the chain is slower than its functions: {why}")
    if judged:
        yield Heading("Allocations")
        yield _allocations(recommendation, context)
    figures = tuple(_figures(recommendation, context))
    if figures:
        yield Heading("Over the load")
        yield from figures
    if recommendation.greedy:
        yield Heading("Beside greedy scaling")
        yield _beside_greedy(recommendation, recommendation.greedy, context)
        if note := one_line(recommendation.greedy.note):
            yield Paragraph(note)


def _origin(recommendation: Recommendation, context: Context) -> Iterator[Block]:
    yield Heading("Where it comes from")
    facts = provenance(recommendation, context)
    yield AnswerTable.of(
        ("", ""),
        tuple((key.replace("-", " "), text) for key, text in facts.items() if key != "note"),
    )


def _verdict(recommendation: Recommendation, context: Context) -> str:
    asked = f"{recommendation.confidence:.4g}"
    chosen, closest = recommendation.chosen, recommendation.closest
    span = "in steady state" if recommendation.probability_of == "long_run" else "in a window"
    if recommendation.met and chosen:
        what, sure = in_words(chosen.deployment, context), chance(chosen.probability)
        return one_line(
            f"Recommended: {what}, at {_cost(chosen)}. It holds the SLA with a probability of "
            f"{sure} {span}; a confidence of {asked} was asked."
        )
    nothing = f"Nothing meets the SLA with a confidence of {asked}."
    if closest is None:
        return f"{nothing} No allocation could be judged, so none can be called the closest."
    what, sure = in_words(closest.deployment, context), chance(closest.probability)
    return one_line(
        f"{nothing} Closest comes {what}, at {_cost(closest)}, which holds it with a probability "
        f"of {sure} {span}{_short_of(closest)}."
    )


def _short_of(closest: Choice) -> str:
    if closest.margin_wl is None:
        return " and carries no load with that confidence"
    if closest.margin_wl < 0:
        return f" and carries {-closest.margin_wl:.4g} less than asked with that confidence"
    return ""


def _doubts(choice: Choice) -> Iterator[str]:
    if choice.extrapolated:
        yield one_line(
            f"Extrapolated: {', '.join(choice.extrapolated)} outside of what was profiled. "
            "Verify it on the lab before it is relied on."
        )
    elif not choice.profiled:
        yield "This allocation was not profiled itself; it lies between allocations that were."


def _verification(recommendation: Recommendation) -> str:
    verified = recommendation.verified
    assert verified is not None
    shown = ", ".join(f"{kpi} {figure(e)}" for kpi, e in verified.kpis.items())
    outcome = "the SLA holds" if verified.met else "the SLA is MISSED: do not deploy it as it is"
    note = f" {verified.note}" if verified.note else ""
    return one_line(
        f"Measured on the lab at the asked load: {shown or 'no KPI could be stated'}; {outcome} "
        f"(sample {verified.sample_id}, {duration(verified.lab_s)} of lab time).{note}"
    )


# --------------------------------------------------------------------------------- tables


def _allocations(recommendation: Recommendation, context: Context) -> AnswerTable:
    ranked: list[tuple[str, Choice]] = [
        *([("chosen", recommendation.chosen)] if recommendation.chosen else []),
        *(("runner-up", choice) for choice in recommendation.runners_up),
        *([("closest", recommendation.closest)] if recommendation.closest else []),
    ]
    kpis = tuple(dict.fromkeys(kpi for _, choice in ranked for kpi in choice.kpis))
    headings = ("", "allocation", "cost", "probability", f"margin, {context.wl_label}", *kpis)
    return AnswerTable.of(
        tuple(map(one_line, (*headings, "CPU used", "basis"))),
        tuple(
            (
                role,
                in_words(choice.deployment, context),
                _cost(choice),
                chance(choice.probability),
                _margin(choice),
                *(figure(choice.kpis[kpi]) if kpi in choice.kpis else "-" for kpi in kpis),
                one_line(", ".join(f"{f} {u:.0%}" for f, u in choice.usage.items())) or "-",
                _basis(choice),
            )
            for role, choice in ranked
        ),
    )


def _margin(choice: Choice) -> str:
    if choice.margin_wl is None:
        return "carries no load"
    return f"{choice.margin_wl:+.4g}" + (" or more" if choice.margin_open else "")


def _basis(choice: Choice) -> str:
    if choice.extrapolated:
        return one_line(f"extrapolated: {', '.join(choice.extrapolated)}")
    return "profiled" if choice.profiled else "interpolated"


def _beside_greedy(
    recommendation: Recommendation, greedy: GreedyRun, context: Context
) -> AnswerTable:
    """As paper A's Table 1: allocation, cost, what it took on the lab."""
    chosen = recommendation.chosen
    last = greedy.steps[-1] if greedy.steps else None
    lab_s, profiling_s = recommendation.lab_s, recommendation.profiling_s
    headings = (
        *("", "allocation", "cost", "probability", "SLA", "lab iterations", "lab time"),
        "with profiling",
    )
    sure = greedy.probability is None or greedy.probability >= recommendation.confidence
    return AnswerTable.of(
        headings,
        (
            (
                "recommended",
                in_words(chosen.deployment, context) if chosen else "nothing",
                _cost(chosen) if chosen else "-",
                chance(chosen.probability) if chosen else "-",
                "met" if recommendation.met else "not met",
                str(recommendation.lab_iterations),
                duration(lab_s),
                duration(lab_s + profiling_s),
            ),
            (
                "greedy",
                in_words(last.deployment, context) if last else "nothing",
                one_line(priced(greedy.cost, greedy.cost_unit)),
                "-" if greedy.probability is None else chance(greedy.probability),
                ("met" if sure else "not surely met") if greedy.met else "not met",
                str(greedy.lab_iterations),
                duration(greedy.lab_s),
                "needs none",
            ),
        ),
    )


def _cost(choice: Choice) -> str:
    return one_line(priced(choice.cost, choice.cost_unit))


# ---------------------------------------------------------------------------------- plots


def _figures(recommendation: Recommendation, context: Context) -> Iterator[Illustration]:
    first = "chosen" if recommendation.chosen else "closest"
    names = (first, "next cheaper")
    verified = recommendation.verified
    for number, sla in enumerate(recommendation.slas, start=1):
        lines, words = [], []
        for name, trend in zip(names, context.trends, strict=False):
            curve = next((c for c in trend.curves if c.kpi == sla.kpi and c.wl), None)
            if curve:
                lines.append(PlottedAllocation(name, curve, trend.choice.kpis.get(sla.kpi)))
                what = in_words(trend.choice.deployment, context)
                words.append(f"{name.capitalize()}: {what} ({curve.model})")
        if lines:
            measured = verified.kpis.get(sla.kpi) if verified else None
            drawing = plot(lines, sla, context.wl_label, measured, number)
            yield Illustration(drawing, _caption(limit_text(sla), words))


def _caption(limit: str, words: Sequence[str]) -> str:
    return one_line(
        f"{limit}. {'. '.join(words)}. Lines are means, bands and bars their 95% intervals."
    )
