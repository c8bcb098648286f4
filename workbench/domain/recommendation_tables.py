"""A recommendation laid out: its allocations in words, and greedy scaling beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.domain import resources
from workbench.domain.answer_tables import AnswerTable
from workbench.domain.durations import duration
from workbench.domain.parameters import ParameterValue, Sla
from workbench.domain.recommendations import (
    Choice,
    ComparisonRow,
    Deployment,
    GreedyRun,
    Recommendation,
    priced,
)


def beside_greedy(
    found: Recommendation, judged: Choice, rows: Sequence[ComparisonRow]
) -> AnswerTable:
    """Functions by methods: allocations, then what they cost and took (paper A, Table 1)."""
    ours, greedy = judged.deployment, found.greedy
    theirs = next(
        (Deployment(r.allocation, r.replicas) for r in rows if r.method == "greedy"), Deployment({})
    )
    functions = tuple(dict.fromkeys((*ours.functions, *theirs.functions)))
    lines: list[tuple[str | None, ...]] = [
        (vnf, allotted(ours, vnf), _used(judged, vnf)) for vnf in functions
    ]
    lines += [
        ("cost", priced(judged.cost, judged.cost_unit), ""),
        ("holds", "yes" if holds(found) else "no", ""),
        ("lab iterations", str(found.lab_iterations), ""),
        ("lab time", duration(found.lab_s), ""),
        ("with profiling", duration(found.lab_s + found.profiling_s), ""),
    ]
    headings = ("", "profiles" if found.chosen else "comes closest", "CPU used")
    if greedy is None:
        return AnswerTable.of(headings, lines)
    beside = (*(allotted(theirs, vnf) for vnf in functions), *_spent(greedy, found.confidence))
    return AnswerTable.of(
        (*headings, "greedy" if greedy.lab_iterations else "greedy, on the model"),
        ((*line, cell) for line, cell in zip(lines, beside, strict=True)),
    )


def _spent(greedy: GreedyRun, confidence: float) -> Iterator[str | None]:
    """On the model it goes by what is expected alone: how sure that is, decides."""
    unsure = greedy.probability is not None and greedy.probability < confidence
    took = duration(greedy.lab_s) if greedy.lab_iterations else None
    yield priced(greedy.cost, greedy.cost_unit)
    yield ("not surely" if unsure else "yes") if greedy.met else "no"
    yield str(greedy.lab_iterations or greedy.tried)
    yield from (took, took)


def _used(judged: Choice, vnf: str) -> str | None:
    return f"{judged.usage[vnf]:.0%}" if vnf in judged.usage else None


def holds(found: Recommendation) -> bool:
    """By the lab where it was asked, else by the models."""
    return found.met if found.verified is None else found.verified.met


def in_words(deployment: Deployment) -> str:
    """`tinyproxy 200%, firewall 4 × 100%`."""
    return ", ".join(f"{vnf} {allotted(deployment, vnf)}" for vnf in deployment.functions)


def allotted(deployment: Deployment, vnf: str) -> str:
    """`4 × 100%, 64 MiB`; a dash for a function that is not there."""
    own = deployment.functions.get(vnf)
    if own is None:
        return "-"
    words = ", ".join(_amount(key, value) for key, value in own.items())
    count = deployment.instances(vnf)
    return f"{count} × {words}" if count > 1 else words


def _amount(key: str, value: ParameterValue) -> str:
    return value if isinstance(value, str) else resources.shown(key, value)


def chance(probability: float) -> str:
    """Never 0 or 100 %, which would claim a certainty that no model has."""
    if probability > 0.999:
        return "over 99.9%"
    return "under 0.1%" if probability < 0.001 else f"{probability:.1%}"


def asked(found: Recommendation) -> str:
    """The limits as they were written."""
    return "; ".join(dict.fromkeys(map(limit, found.slas)))


def limit(sla: Sla) -> str:
    return " ".join(sla.text.split()) or f"{sla.kpi}{sla.direction}{sla.limit:g}"
