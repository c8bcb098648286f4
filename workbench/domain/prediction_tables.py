"""A chain's prediction laid out: a row for each allocation, and each function on its own."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.domain import departures
from workbench.domain.answer_tables import AnswerColumn, AnswerTable
from workbench.domain.chain_figures import amount, figure, interval, shown_allocation
from workbench.domain.chains import ChainPrediction, NeighbourCost, SharedCores


def by_allocation(found: Sequence[ChainPrediction]) -> AnswerTable:
    """Each allocation in columns of its own, in the order of the chain."""
    allotted = [_shown(one) for one in found]
    keys = list(dict.fromkeys(key for shown in allotted for key in shown))
    cells = [[shown.get(key) for key in keys] for shown in allotted]
    return AnswerTable.of(
        (*keys, *_headings(found)), ((*c, *_row(p)) for c, p in zip(cells, found, strict=True))
    )


def by_number(found: Sequence[ChainPrediction]) -> AnswerTable:
    """Narrower: allocations by number, as they are in `found`."""
    return AnswerTable.of(
        ("", *_headings(found)), ((number, *_row(p)) for number, p in enumerate(found, 1))
    )


def functions(found: ChainPrediction) -> AnswerTable:
    """What each function is alone, and how much that counts."""
    unit = f" in {found.unit}" if found.unit else ""
    return AnswerTable.of(
        ("function", "load", f"alone{unit}", AnswerColumn("counts", ".0%")),
        ((one.vnf, one.wl, one.value, one.effect) for one in found.functions),
    )


def neighbours(found: SharedCores) -> AnswerTable:
    """What each function is beside those that run on its cores."""
    return AnswerTable.of(
        (
            "function",
            "beside",
            AnswerColumn("of its cores", ".0%"),
            "alone",
            "beside them",
            "between",
        ),
        (
            (
                one.vnf,
                ", ".join(one.neighbours),
                one.share.value,
                one.alone,
                one.beside,
                " and ".join(one.between),
            )
            for one in found.functions
        ),
    )


def beside_neighbours(kpi: str, cost: NeighbourCost) -> str:
    """`haproxy: 34 % slower beside tinyproxy (0.4 of their shared core)`."""
    told = departures.than_alone(kpi, cost.beside.value / cost.alone.value)
    whose = "shared core" if cost.cores == 1 else f"{cost.cores} shared cores"
    much = f"{figure(cost.share.value)} of their {whose}"
    return f"{cost.vnf}: {told} beside {', '.join(cost.neighbours)} ({much})"


def allotted(found: ChainPrediction) -> str:
    """`tinyproxy 50 %, haproxy 25 %`, in the order of the chain."""
    return ", ".join(f"{name} {value}" for name, value in _shown(found).items())


def guessed(found: ChainPrediction) -> bool:
    """Whether its row has a mark of extrapolation."""
    return any(mark in cell for cell in _row(found) for mark in "*?")


def _shown(found: ChainPrediction) -> dict[str, str]:
    return shown_allocation(found.configuration, [function.vnf for function in found.functions])


def _headings(found: Sequence[ChainPrediction]) -> tuple[str, ...]:
    return (f"{found[0].kpi} [95 %]", "limits", "takes over", "next step")


def _row(found: ChainPrediction) -> tuple[str, ...]:
    return (
        f"{interval(found.value)}{' *' * found.extrapolates}",
        found.limiting or "nothing",
        _takeover(found),
        _step(found),
    )


def _takeover(found: ChainPrediction) -> str:
    """The first above this load: `haproxy 867/s`."""
    above = [t for t in found.takeovers if t.wl > found.wl]
    return f"{above[0].vnf} {figure(above[0].wl)}{'?' * above[0].extrapolates}" if above else "-"


def _step(found: ChainPrediction) -> str:
    step = found.next_step
    if step is None:
        return "-"
    reached = f"{amount(step.key, step.after)}: {figure(step.value.value)}"
    return reached + " *" * step.extrapolates
