"""Figures as the tables of docs/truth.md."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

from bench_truth.families import BY_NAME, SCORED
from bench_truth.faults import FAULTS, Played, Visit
from bench_truth.scoring import Cell, Outcome, binomial, cell
from bench_truth.seconds import PROTOCOLS, Race

POOLED = (0.94, 0.96)
NOMINAL = 0.95
WIDTH = 0.20
SECONDS = 0.2
"""Of a fixed protocol's."""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def mark(holds: bool) -> str:
    return "OK" if holds else "MISS"


def per_cent(share: float) -> str:
    return "-" if math.isnan(share) else f"{100 * share:.1f} %"


def pooled(found: Sequence[Outcome], baseline: Sequence[Outcome]) -> str:
    """A row per rule over all families."""
    rows = []
    for rule in SCORED:
        of_rule = cell([o for o in found if o.rule == rule])
        seeds = {(o.family, o.seed) for o in baseline}
        paired = cell([o for o in found if o.rule == rule and (o.family, o.seed) in seeds])
        without = cell([o for o in baseline if o.rule == rule])
        if of_rule is None:
            continue
        low, high = POOLED
        rows.append(
            [
                f"`{rule}`",
                f"{of_rule.stated}/{of_rule.of}",
                per_cent(of_rule.error),
                f"{per_cent(of_rule.coverage)} {mark(low <= of_rule.coverage <= high)}",
                f"{per_cent(of_rule.width)} {mark(of_rule.width <= WIDTH)}",
                *(
                    [
                        f"{paired.score:.3f}",
                        f"{without.score:.3f} {mark(paired.score < without.score)}",
                    ]
                    if paired and without
                    else ["-", "-"]
                ),
            ]
        )
    header = ["rule", "stated", "median error", "coverage", "median width", "score", "bisection"]
    return table(header, rows)


def cells(found: Sequence[Outcome]) -> str:
    """A row per family and rule with a breakpoint."""
    rows = []
    for family in dict.fromkeys(o.family for o in found):
        for rule in SCORED:
            of_cell = cell([o for o in found if o.family == family and o.rule == rule])
            if of_cell is not None:
                held_out = " (held out)" if BY_NAME[family].held_out else ""
                rows.append([f"{family}{held_out}", f"`{rule}`", *_figures(of_cell)])
    header = ["family", "rule", "stated", "median error", "coverage", "99 % interval", "width"]
    return table(header, rows)


def _figures(of_cell: Cell) -> list[str]:
    low, high = of_cell.confidence
    return [
        f"{of_cell.stated}/{of_cell.of}",
        per_cent(of_cell.error),
        per_cent(of_cell.coverage),
        f"{100 * low:.0f}-{100 * high:.0f} % {mark(low <= NOMINAL <= high)}",
        f"{per_cent(of_cell.width)} {mark(of_cell.width <= WIDTH)}",
    ]


def states(found: Sequence[Outcome]) -> str:
    """A row per family and rule where some seeds have no breakpoint."""
    rows = []
    for family in dict.fromkeys(o.family for o in found):
        for rule in SCORED:
            absent = [
                o for o in found if (o.family, o.rule) == (family, rule) and o.truth.wl is None
            ]
            if not absent:
                continue
            right = sum(o.found.state == o.truth.state for o in absent)
            wrong = Counter(o.found.state for o in absent if o.found.state != o.truth.state)
            low, high = binomial(right, len(absent))
            rows.append(
                [
                    family,
                    f"`{rule}`",
                    ", ".join(sorted({o.truth.state for o in absent})),
                    f"{right}/{len(absent)}",
                    f"{100 * low:.0f}-{100 * high:.0f} %",
                    ", ".join(f"{n} {state}" for state, n in wrong.most_common()) or "-",
                ]
            )
    return table(["family", "rule", "truth", "said so", "99 % interval", "said instead"], rows)


def faults(visits: Sequence[Visit], played: Sequence[Played]) -> str:
    """A row per fault."""
    rows = []
    for fault in FAULTS:
        verdicts = Counter(v.verdict for v in visits if v.fault == fault.name)
        instead = Counter(
            v.said for v in visits if v.fault == fault.name and v.verdict in ("wrong", "missed")
        )
        campaigns = [p for p in played if p.fault == fault.name]
        states = Counter(p.state for p in campaigns)
        right = verdicts["wrong"] == verdicts["missed"] == 0 and verdicts["blamed"] > 0
        unfitted = all(p.allowed and p.untouched for p in campaigns)
        rows.append(
            [
                fault.name,
                ", ".join(f"`{name}`" for name in (fault.reason, *fault.labels) if name),
                f"{verdicts['blamed']} / {verdicts['clean']}",
                f"{verdicts['wrong'] + verdicts['missed']} {mark(right)}",
                ", ".join(f"{n} {said or 'nothing'}" for said, n in instead.most_common()) or "-",
                ", ".join(f"{n} {state}" for state, n in states.most_common()),
                mark(unfitted),
            ]
        )
    header = [
        "fault", "blame", "blamed / unharmed", "otherwise", "said instead", "`capacity`",
        "never fitted",
    ]  # fmt: skip
    return table(header, rows)


def seconds(races: Sequence[Race]) -> str:
    """A row per noise family and protocol, and one per protocol pooled."""
    names = [*dict.fromkeys(r.family for r in races), "all"]
    rows = []
    for name in names:
        for protocol, paper in PROTOCOLS.items():
            own = [r for r in races if name in ("all", r.family) and r.protocol_s == protocol]
            if len(own) < 2:
                continue
            low, middle, high = statistics.quantiles([r.ratio for r in own], n=4)
            ours, fixed = (
                statistics.median(errors)
                for errors in ([r.ours_error for r in own], [r.fixed_error for r in own])
            )
            rows.append(
                [
                    name,
                    paper,
                    f"{len(own)}",
                    f"{statistics.median(r.ours_s for r in own):.1f} s",
                    f"{middle:.2f} {mark(middle <= SECONDS)}",
                    f"{low:.2f}-{high:.2f}",
                    f"{per_cent(ours)} / {per_cent(fixed)}",
                ]
            )
    header = [
        "noise", "protocol", "points", "ours", "seconds, ratio", "quartiles",
        "median error, ours / fixed",
    ]  # fmt: skip
    return table(header, rows)
