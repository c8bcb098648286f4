"""What was counted beside a sample, for the dialog with all that is known of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from workbench.domain.observations import OBSERVABLES, Observation
from workbench.domain.samples import Window
from workbench.tui.text import number, sentence

NONE = "none was collected: of a lab, or a release, that collects none"
MOST_DETAILS = 3
"""Cores, kinds or processes that are named, the largest first."""


def evidence_lines(seen: Sequence[Observation], windows: Sequence[Window]) -> list[str]:
    """By component: what was counted over all windows, what was nothing, what is missing and why.

    Amounts are added up, levels are means over the windows' time. A counter that one window lacks
    is missing as a whole.
    """
    if not seen:
        return [f"evidence: {NONE}"]
    lines = ["evidence, over all windows"]
    for component in dict.fromkeys(one.component for one in seen):
        own = [one for one in seen if one.component == component]
        lines.append(f"  {component}")
        lines += _component_lines(own, [window.duration_s for window in windows])
    return lines


def _component_lines(own: Sequence[Observation], lengths: Sequence[float]) -> Iterator[str]:
    missing = {one.name: one.detail for one in own if one.value is None}
    nothing: list[str] = []
    for name in dict.fromkeys(one.name for one in own if one.name not in missing):
        known = OBSERVABLES.get(name)
        says, unit = (known.says, known.unit) if known is not None else (name, "")
        level = known is not None and known.kind == "level"
        details = _pooled([one for one in own if one.name == name], lengths, level=level)
        total = sum(details.values())
        if not total:
            nothing.append(says)
            continue
        named = [(what, value) for what, value in details.items() if what]
        largest = sorted(named, key=lambda one: -one[1])[:MOST_DETAILS]
        of = ", ".join(f"{what} {number(value)}" for what, value in largest)
        yield f"    {says:<40} {number(total):>8} {unit}{f'  ({of})' if of else ''}"
    if nothing:
        yield f"    nothing of: {'; '.join(nothing)}"
    reasons: dict[str, list[str]] = defaultdict(list)
    for name, why in missing.items():
        known = OBSERVABLES.get(name)
        reasons[why].append(known.says if known is not None else name)
    for why, names in reasons.items():
        yield f"    not known: {'; '.join(names)}: {sentence(why)}"


def _pooled(
    own: Sequence[Observation], lengths: Sequence[float], *, level: bool
) -> dict[str, float]:
    """By detail, over all windows."""
    whole = sum(lengths)
    found: dict[str, float] = defaultdict(float)
    for one in own:
        length = lengths[one.window] if one.window < len(lengths) else 0.0
        weight = length / whole if level and whole else 1.0
        found[one.detail] += weight * (one.value or 0.0)
    return found
