"""What the statistics of a diagnosis say, in sentences: commands and screens show the same."""

from __future__ import annotations

from workbench.domain.counts import counted
from workbench.domain.diagnoses import Diagnosis, EvidenceRow

BOUNDARY = 3.0
"""Standard deviations; paper E, section 6.3."""
FEWEST = 3
"""Stand-alone samples without which nothing is said."""
MOST_SIGMAS = 999.0
"""More is told as this much: stand-alone samples that are all alike have no deviation."""
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


def _line(component: str, rows: list[EvidenceRow]) -> str:
    most = max((row.repetitions for row in rows), default=0)
    if most < FEWEST:
        return (
            f"{component}: {counted(most, 'stand-alone sample')} at this carried rate, and "
            f"{FEWEST} are needed to hold it against 3 sigma"
        )
    off = [(row, row.sigmas) for row in rows if row.sigmas is not None]
    beyond = sorted((one for one in off if abs(one[1]) > BOUNDARY), key=lambda one: -abs(one[1]))
    if not beyond:
        return f"{component}: all of {len(off)} figures within 3 sigma of {most} samples alone"
    named = ", ".join(f"{row.what} {sigmas:+.3g}" for row, sigmas in beyond[:MOST_NAMED])
    more = f" and {len(beyond) - MOST_NAMED} more" if len(beyond) > MOST_NAMED else ""
    return f"{component}: beyond 3 sigma of {most} samples alone: {named}{more}"


def _dropped(row: EvidenceRow) -> bool:
    return row.chained is not None and bool(row.note)
