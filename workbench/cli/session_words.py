"""Sessions, what they differ by, and their samples: in words and tables."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from workbench.cli.tables import lines_of
from workbench.domain import session_tables as tables
from workbench.domain.event_log import Repeated, said_once

if TYPE_CHECKING:
    from workbench.domain.messages import Compared
    from workbench.domain.projection import SessionView


def comparison(compared: Compared) -> str:
    """Figures side by side, visible differences first, then what else is to be known."""
    lines = lines_of(tables.differences(compared)) if compared.differences else []
    if compared.factors:
        lines += ["", *lines_of(tables.factors(compared))]
    claimed = sum(d.verdict in ("lower", "higher") for d in compared.differences)
    judged = sum(d.ratio is not None for d in compared.differences)
    lines += ["", *(f"Note: {warning}" for warning in compared.warnings)]
    if compared.factors:
        return "\n".join(lines)
    lines.append(
        f"{claimed} of {judged} figures differ visibly. A figure whose ratio is within the floor "
        "is no difference; of figures that are the same one in twenty is claimed at most."
    )
    return "\n".join(lines)


def explain(view: SessionView) -> str:
    """A session in words and tables."""
    from workbench.domain.gains import nothing_gained

    lines = [*tables.about(view), ""]
    for target in dict.fromkeys(c.target for c in view.configurations):
        lines += [target, *lines_of(tables.configurations(view, target))]
        said = (*tables.collapses(view, target), *tables.unsaturated(view, target))
        lines += [f"  {text}" for text in said]
        if (carried := tables.on_reference(view, target)) is not None:
            lines += ["By the factors between hosts:", *lines_of(carried)]
        lines.append("")
    if wasted := nothing_gained(view):
        lines += ["Where more vCPU brings nothing:", *(f"  {gain.text}" for gain in wasted), ""]
    if view.trials:
        lines += ["Measured after the campaign:", *lines_of(tables.trials(view)), ""]
    notes = said_once(line for line in view.log if line.level != "info")[-10:]
    if notes:
        lines += ["Warnings and errors (the last ten):", *map(_note, notes), ""]
    lines.append(tables.ending(view))
    return "\n".join(lines)


def _note(said: Repeated) -> str:
    """What was said more than once has its number and its first and last time."""
    text = said.line.text
    if said.times > 1:
        text += f" (× {said.times}, {_when(said.since)} to {_when(said.line.at)})"
    return f"  {text}"


def _when(at: float) -> str:
    return time.strftime("%m-%d %H:%M:%S", time.localtime(at))
