"""What the statistics of a diagnosis say, in sentences: commands and screens show the same."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.domain.counts import counted
from workbench.domain.diagnoses import Diagnosis, EvidenceRow

BOUNDARY = 3.0
"""Standard deviations; paper E, section 6.3."""
FEWEST = 3
"""Stand-alone samples without which nothing is said."""
MOST_SIGMAS = 999.0
"""More is told as this much: stand-alone samples that are all alike have no deviation."""
CARRIED = "answered"
"""The figure that is the load at which a component was seen: no effect of the chain on it."""
SAME_LOAD = 1.25
"""Factor of carried rate up to which figures alone and here are of one load."""
MOST_NAMED = 6
"""Figures of one function, and configurations, that are named."""


def deviation_lines(found: Diagnosis) -> list[str]:
    """Function by function what is beyond three sigma of it alone, the furthest first, or why that
    is not said; then the configurations that stand out by Cook's distance."""
    by_component: dict[str, list[EvidenceRow]] = {}
    for row in found.rows:
        by_component.setdefault(row.component, []).append(row)
    lines = [_line(component, rows) for component, rows in by_component.items()]
    lines += [f"{row.what} of {row.component}: {row.note}" for row in found.rows if _dropped(row)]
    if found.suspects:
        named = "; ".join(
            f"{one.configuration.key} ({one.mean_distance:.3g}: "
            f"{', '.join(one.beyond[:MOST_NAMED])})"
            for one in found.suspects[:MOST_NAMED]
        )
        lines.append(f"Influential by Cook's distance, {found.suspects_note}: {named}")
    elif found.suspects_note:
        lines.append(f"Influential by Cook's distance: none ({found.suspects_note})")
    return lines


def other_load(component: str, rows: Sequence[EvidenceRow]) -> str:
    """That a component alone was never seen at about the load that it carries here; empty where it
    was: what stands beside each other differs by the load, too."""
    row = next((row for row in rows if row.what == CARRIED), None)
    if row is None or not row.alone or not row.chained:
        return ""
    if max(row.alone / row.chained, row.chained / row.alone) <= SAME_LOAD:
        return ""
    return (
        f"{component}: seen alone at {row.alone:.4g} {row.unit}, here at {row.chained:.4g}: its "
        "figures differ by the load, too, and are not held against 3 sigma"
    )


def _line(component: str, rows: list[EvidenceRow]) -> str:
    if said := other_load(component, rows):
        return said
    most = max((row.repetitions for row in rows), default=0)
    if most < FEWEST:
        return (
            f"{component}: {counted(most, 'stand-alone sample')} at this carried rate, and "
            f"{FEWEST} are needed to hold it against 3 sigma"
        )
    off = [(row, row.sigmas) for row in rows if row.sigmas is not None and row.what != CARRIED]
    beyond = sorted((one for one in off if abs(one[1]) > BOUNDARY), key=lambda one: -abs(one[1]))
    if not beyond:
        return f"{component}: all of {len(off)} figures within 3 sigma of {most} samples alone"
    named = ", ".join(_by_how_many(row, sigmas) for row, sigmas in beyond[:MOST_NAMED])
    more = f" and {len(beyond) - MOST_NAMED} more" if len(beyond) > MOST_NAMED else ""
    return f"{component}: beyond 3 sigma of {most} samples alone: {named}{more}"


def _by_how_many(row: EvidenceRow, sigmas: float) -> str:
    """`CPU +10`; of what does not differ alone no number of deviations, but both figures."""
    if abs(sigmas) < MOST_SIGMAS or row.alone is None or row.chained is None:
        return f"{row.what} {sigmas:+.3g}"
    return f"{row.what} ({row.alone:.3g} alone each time, here {row.chained:.3g})"


def _dropped(row: EvidenceRow) -> bool:
    return row.chained is not None and bool(row.note)
