"""A diagnosis laid out: what limits each function, and its figures alone and in the chain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from workbench.domain.answer_tables import AnswerColumn, AnswerTable
from workbench.domain.chain_figures import figure
from workbench.domain.counts import counted
from workbench.domain.diagnoses import Bound, EvidenceRow, Experiment, Verdict
from workbench.domain.observations import OBSERVABLES

NAMED = 4
"""Counters that are named one by one; of more it is said how many are of what."""
_LAYERS = {
    "cpu": "CPU", "memory": "memory", "disk": "disks", "tcp": "TCP", "hop": "packets",
    "kernel": "the kernel", "host": "the host", "workbench": "the workbench", "load": "the load",
}  # fmt: skip


def bounds(found: Sequence[Bound]) -> AnswerTable:
    """What limits each function."""
    share, fine = ".0%", ".1%"
    return AnswerTable.of(
        (
            "function",
            "bound by",
            AnswerColumn("computing", fine),
            AnswerColumn("waits for CPU", fine),
            AnswerColumn("throttled", share),
        ),
        (
            (
                bound.component,
                f"{bound.by} ({bound.share:{share}})",
                bound.ran,
                "not collected" if bound.waited is None else bound.waited,
                bound.throttled,
            )
            for bound in found
        ),
    )


def evidence(found: Sequence[EvidenceRow]) -> AnswerTable:
    """A column for each function; a figure that nobody has of any is left out."""
    functions = list(dict.fromkeys(row.component for row in found))
    by_what: dict[tuple[str, str], dict[str, EvidenceRow]] = {}
    for row in found:
        by_what.setdefault((row.what, row.unit), {})[row.component] = row
    return AnswerTable.of(
        ("alone → chained", *functions),
        (
            (f"{what}, {unit}", *(_both(own.get(name)) for name in functions))
            for (what, unit), own in by_what.items()
            if any(row.alone is not None or row.chained is not None for row in own.values())
        ),
    )


def _both(row: EvidenceRow | None) -> str | None:
    if row is None:
        return None
    return " → ".join("-" if v is None else figure(v) for v in (row.alone, row.chained))


def not_judged(missing: Mapping[str, str]) -> dict[str, list[str]]:
    """By the reason: what it would take."""
    reasons: dict[str, list[str]] = {}
    for name, reason in sorted(missing.items()):
        reasons.setdefault(reason, []).append(name)
    return reasons


def counters_named(names: Sequence[str]) -> str:
    """Up to `NAMED` by name; more as "26 counters (8 of TCP, 4 of packets, ...)", most first."""
    if len(names) <= NAMED:
        return ", ".join(names)
    of: Counter[str] = Counter()
    for name in names:
        known = OBSERVABLES.get(name)
        of[_LAYERS[known.layer] if known else "others"] += 1
    parts = ", ".join(f"{count} of {layer}" for layer, count in of.most_common())
    return f"{counted(len(names), 'counter')} ({parts}; `workbench why --json` names them)"


def how_often_right(verdict: Verdict) -> str:
    """How sure one can be of it, from trials whose cause was known."""
    tried = verdict.trials
    if tried is None:
        return "no bench trial has named it"
    return (
        f"right in {tried.right} of {tried.named} bench trials "
        f"({100 * tried.low:.0f} to {100 * tried.high:.0f} %)"
    )


def experiment(one: Experiment) -> str:
    """What to measure, and what that tells."""
    return f"{one.what}, at {figure(one.wl)}: {one.tells}"
