"""Sessions, what they differ by, and their samples: in words and tables."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from workbench.cli.tables import lines_of, table
from workbench.domain import kpis
from workbench.domain import session_tables as tables
from workbench.domain.event_log import Repeated, said_once

if TYPE_CHECKING:
    from workbench.domain.messages import Compared
    from workbench.domain.projection import SessionView
    from workbench.domain.samples import Sample


def comparison(compared: Compared) -> str:
    """Figures side by side, visible differences first, then what else is to be known."""
    lines = lines_of(tables.differences(compared)) if compared.differences else []
    if compared.factors:
        lines += ["", *_factors(compared)]
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


def _factors(compared: Compared) -> list[str]:
    """What each figure of the second is as a multiple of the first's."""
    rows = [
        [
            factor.figure,
            f"{factor.value:.3f} [{factor.low:.3f}, {factor.high:.3f}]",
            str(factor.places),
            f"{factor.least:.3f} to {factor.most:.3f}",
            factor.note,
        ]
        for factor in compared.factors
    ]
    headings = ["figure", f"{compared.second} / {compared.first}", "configurations", "of each", ""]
    return [table(headings, rows)]


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def explain(view: SessionView) -> str:
    """A session in words and tables."""
    from workbench.domain.gains import nothing_gained

    lines = [*tables.about(view), ""]
    for target in dict.fromkeys(c.target for c in view.configurations):
        lines += [target, *lines_of(tables.configurations(view, target))]
        lines += [f"  {text}" for text in tables.collapses(view, target)]
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


def samples_table(taken: list[Sample]) -> str:
    """What a sample was taken for, its interval beside it, and what else was carried."""
    from workbench.domain.tables import COMMON

    of_packets = any(kpis.carried("packets") in sample.kpis for sample in taken)
    kpi, rates = (
        (kpis.LOSS, {kpis.carried("packets"): "packets/s", "jitter_ms": "jitter_ms"})
        if of_packets
        else (kpis.P95, {kpis.THROUGHPUT: "requests/s"})
    )
    rows = []
    for sample in taken:
        stated = sample.kpis.get(kpi)
        rows.append(
            [
                sample.point.target,
                sample.point.configuration.key,
                f"{sample.point.wl:.4g}",
                f"{stated.value:.3g} [{stated.low:.3g}, {stated.high:.3g}]" if stated else "-",
                *(_figure(sample.kpi(name)) for name in rates),
                " ".join(
                    f"{vnf}={usage.cpu_share:.0%}"
                    for vnf, usage in sample.usage.items()
                    if vnf not in COMMON
                ),
                f"{sample.throttled_share:.0%}",
                "yes" if sample.valid else sample.reason,
                sample.purpose,
                " ".join(sample.labels),
            ]
        )
    headings = ["target", "configuration", "wl", kpi, *rates.values(), "usage", "throttled"]
    return table([*headings, "valid", "purpose", "labels"], rows)
