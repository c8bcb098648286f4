"""The tables of docs/chain-science.md, and the page itself; `figures.py` has paper A's."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from science import tables
from scipy.stats import binomtest

from chain_science.canaries import Error
from chain_science.capacities import Saturation
from chain_science.case_study import Answer
from chain_science.harms import Harm
from chain_science.held_out import STAGES, Held
from chain_science.low_load import CLOSE, HANDS_OVER, LowLoad
from chain_science.predicting import OURS, PAPER, PREDICTION, SIMPLE
from chain_science.recommending import CONFIDENCE, Asked
from chain_science.recordings import OTHER_HOST
from chain_science.risks import LeftOut, Risks
from chain_science.stored import ROOT
from workbench.chains.capacity import CpuScale
from workbench.chains.handover import HandoverRisk

PAGE = ROOT / "docs" / "chain-science.md"
BEGIN, END = "<!-- bench-chains: {} -->", "<!-- end -->"


def risk(found: Risks) -> str:
    """What the interval of an unmeasured chain covers of each chain, told by all others."""
    lines = [_left_out(found.chains), ""]
    for kpi, one in found.risks.items():
        own = [c for c in found.chains if c.kpi == kpi]
        here = [c for c in own if c.grid != OTHER_HOST]
        each, same = (float(np.mean([c.covered for c in some])) for some in (own, here))
        lines.append(
            f"- {kpi}: covers {each:.1%} (each chain counted once; target 93 to 97 %), "
            f"{same:.1%} without that of another host; `{_told(one)}`"
        )
    return "\n".join(lines)


def unseen(found: Sequence[LeftOut]) -> str:
    """The same of chains that nothing was chosen on, and of all their samples together."""
    samples = sum(one.samples for one in found)
    inside = sum(round(one.samples * one.covered) for one in found)
    alone = sum(round(one.samples * one.profiles) for one in found)
    return (
        f"{_left_out(found)}\n\nOf {samples} samples {inside} ({inside / samples:.1%}) are "
        f"covered, {alone} ({alone / samples:.0%}) by the profiles' interval alone."
    )


def _left_out(found: Sequence[LeftOut]) -> str:
    rows = [
        [c.grid, c.chain, c.kpi, str(c.samples), f"{c.added:.1f}", f"{c.profiles:.0%}",
         f"{c.covered:.1%}", "-" if math.isnan(c.known) else f"{c.known:.1%}", f"{c.width:.0f}"]
        for c in found
    ]  # fmt: skip
    head = ["grid", "chain", "KPI", "samples", "added at low load", "profiles' interval covers"]
    head += ["with the risk of the others", "inside of the profiles", "its ends, ratio"]
    return tables.table(head, rows)


def _told(risk: HandoverRisk) -> str:
    def shown(each: Sequence[float]) -> str:
        told = ", ".join(f"{one:.3f}" for one in each)
        return f"({told},)" if len(each) == 1 else f"({told})"

    at = ", AT_MS" if risk.at else ""
    return f"HandoverRisk({risk.added:.2f}, {shown(risk.below)}, {shown(risk.above)}{at})"


def harm(found: Sequence[Harm]) -> str:
    """How often random canaries make a chain worse, as taught and as accepted."""
    rows = [
        [h.grid, h.chain, h.kpi, str(h.samples), f"{np.median(h.before):.3f}",
         f"{np.median(h.taught):.3f}", f"{np.median(h.after):.3f}",
         f"{h.worse(h.taught)} of {len(h.before)}, {h.worst(h.taught):.2f}",
         f"{h.worse(h.after)} of {len(h.before)}, {h.worst(h.after):.2f}"]
        for h in found
    ]  # fmt: skip
    head = ["grid", "chain", "KPI", "samples", "profiles", "taught", "accepted"]
    every, draws = sum(h.worse(h.after) for h in found), sum(len(h.before) for h in found)
    return (
        tables.table([*head, "taught: worse, at most", "accepted: worse, at most"], rows)
        + f"\n\nWorse by what is accepted: {every} of {draws} draws (target at most 1 of 20)."
    )


def low_load(found: Sequence[LowLoad]) -> str:
    """How far off the lowest loads are after ten canaries, and how many draws are close."""
    rows = [
        [o.grid, o.chain, o.kpi, *(f"{np.median(e):.3f}" for e in (o.before, o.taught, o.after)),
         f"{np.quantile(o.after, 0.95):.3f}", f"{o.close} of {len(o.after)}"]
        for o in found
    ]  # fmt: skip
    head = ["grid", "chain", "KPI", "profiles", "taught", "accepted", "accepted, 95 % of draws"]
    lines = [tables.table([*head, f"draws under {CLOSE:g}"], rows), ""]
    for kpi in dict.fromkeys(o.kpi for o in found):
        own = [o for o in found if (o.chain, o.kpi) == (HANDS_OVER, kpi)]
        close, draws = sum(o.close for o in own), sum(len(o.after) for o in own)
        lines.append(f"- {HANDS_OVER}, {kpi}: {close} of {draws} draws (target 19 of 20)")
    return "\n".join(lines)


def capacities(found: Sequence[Saturation]) -> str:
    """CPU per request of each function, and how far off it says what chains carry."""
    rows = []
    for key in dict.fromkeys((s.grid, s.chain) for s in found):
        own = [s for s in found if (s.grid, s.chain) == key]
        names = list(dict.fromkeys(name for s in own for name in s.scales))
        ratios = "; ".join(f"{name} {_ratios([s.scales[name] for s in own])}" for name in names)
        rows.append(
            [
                *key,
                str(len(own)),
                ratios,
                str(sum(len(s.alone) for s in own)),
                _centre([e for s in own for e in s.alone]),
                _centre([e for s in own for e in s.by_cpu]),
            ]
        )
    head = ["grid", "chain", "seeds", "CPU per request, chain over alone", "saturated pairs"]
    return tables.table([*head, "error of the profiles", "error by CPU"], rows)


def _centre(errors: Sequence[float]) -> str:
    return f"{np.median(np.abs(errors)):.1%}" if errors else "-"


def _ratios(scales: Sequence[CpuScale]) -> str:
    """Of one seed with its interval, of several from the least to the largest."""
    factors = sorted(scale.factor for scale in scales)
    low, high = scales[0].interval if len(scales) == 1 else (factors[0], factors[-1])
    return f"{float(np.median(factors)):.2f} ({low:.2f} to {high:.2f})"


def canaries(errors: Sequence[Error]) -> str:
    """Median over seeds of each method's error, and how many seeds meet the two targets."""
    rows = []
    for key in dict.fromkeys((e.grid, e.chain, e.kpi) for e in errors):
        own = [e for e in errors if (e.grid, e.chain, e.kpi) == key]
        judged = [e.halved for e in own if e.halved is not None]
        names = (PREDICTION, *SIMPLE, *PAPER, OURS)
        rows.append(
            [
                " ".join(key),
                str(len(own)),
                f"{np.median([e.noise for e in own]):.1%}",
                *(_median([e.errors[name] for e in own]) for name in names),
                f"{sum(e.small for e in own)}/{len(own)}",
                f"{sum(judged)}/{len(judged)}" if judged else "-",
            ]
        )
    head = ["grid, chain, KPI", "seeds", "noise", PREDICTION, *SIMPLE, *PAPER, OURS]
    return tables.table([*head, "within 10 % or 1.5 x noise", "at most half"], rows)


def _median(values: Sequence[float]) -> str:
    middle = float(np.median(values))
    return "never" if np.isinf(middle) else f"{middle:.1%}"


def recommendations(asked: Sequence[Asked]) -> str:
    """What became of all SLAs, by chain and together, before and after the lab was asked; beside a
    share stands its 95 % interval. Then those of which a function is more than a step off."""
    rows = []
    groups = {c: [a for a in asked if a.chain == c] for c in dict.fromkeys(a.chain for a in asked)}
    for name, own in {**groups, "both": list(asked)}.items():
        for when in ("before", "after"):
            found = [(a, getattr(a, when)) for a in own]
            steps = [step for a, one in found if (step := a.steps(one)) is not None]
            issued, missed = len(steps), sum(a.missed(one) for a, one in found)
            near, exact = sum(s <= 1 for s in steps), sum(s == 0 for s in steps)
            iterations = [a.iterations for a in own if a.before] if when == "after" else [0]
            rows.append(
                [
                    f"{name}, {when}",
                    str(len({a.seed for a in own})),
                    str(len(own)),
                    _share(issued, len(own)),
                    _share(exact, issued),
                    _share(near, issued),
                    _share(missed, issued),
                    f"{np.mean(iterations):.1f} ({max(iterations)})",
                    "-" if when == "before" else str(sum(not a.tried for a in own if a.after)),
                ]
            )
    risk = f"missed at {1.0 - CONFIDENCE:.0%} stated risk"
    head = ["chain", "seeds", "SLAs that can be met", "answered", "the optimum", "within one step"]
    table = tables.table([*head, risk, "lab iterations (most)", "untried"], rows)
    return "\n\n".join([table, *_far_off(asked)])


def held_out(found: Sequence[Held]) -> str:
    """What became of SLAs on recordings of which nothing was known, by chain and stage."""
    here = [h for h in found if h.grid != OTHER_HOST]
    groups = [
        ((h.grid, h.chain, h.kpi), [o for o in found if (o.grid, o.chain, o.kpi) == key])
        for key, h in {(h.grid, h.chain, h.kpi): h for h in found}.items()
    ]
    groups += [(("all, own host", "", ""), here)]
    rows = []
    for name, every in groups:
        for stage in STAGES:
            own = [h for h in every if stage in h.said]
            refused = sum(h.refused(stage) for h in own)
            missed, issued = sum(h.missed(stage) for h in own), len(own) - refused
            exact = sum(h.said[stage].cost == h.cost for h in own)
            shares = _share(refused, len(own)), _share(missed, issued), _share(exact, issued)
            rows.append([" ".join(filter(None, name)), stage, str(len(own)), *shares])
    head = ["grid, chain, KPI", "stage", "SLAs", "refused though one holds"]
    risk = f"missed at {1.0 - CONFIDENCE:.0%} stated risk"
    return tables.table([*head, risk, "the optimum"], rows)


def _far_off(asked: Sequence[Asked]) -> list[str]:
    rows = [
        [
            f"{a.chain}, seed {a.seed}",
            f"{a.wl:.0f}",
            tables.number(a.limit),
            _place(a.optimum, a.optimal_kpi),
            *(_place(one.chosen, one.true_kpi) if one else "-" for one in (a.before, a.after)),
            str(a.iterations),
        ]
        for a in asked
        if (a.steps(a.after) or 0) > 1
    ]
    if not rows:
        return []
    head = ["chain, seed", "clients", "limit, ms", "optimum: p95", "before", "after"]
    listed = tables.table([*head, "lab iterations"], rows)
    told = f"The {len(rows)} that are more than one step off after the lab, by place and p95"
    return ["<details>", f"<summary>{told}</summary>", listed, "</details>"]


def _place(allocation: Sequence[int], kpi: float) -> str:
    """Places of the functions' allocations, smallest 0, and the long run there."""
    return f"{' '.join(map(str, allocation))}: {tables.number(kpi)}"


def _share(count: int, all_of: int) -> str:
    """With its interval (Wilson 1927)."""
    if not all_of:
        return "-"
    found = binomtest(count, all_of).proportion_ci(method="wilson")
    return f"{count} ({count / all_of:.0%}, {found.low:.0%} to {found.high:.0%})"


def case_study(found: Sequence[Answer]) -> str:
    """A row for each SLA, then what all three cost with profiling."""
    rows = [
        [
            str(a.seed),
            str(a.load),
            f"{a.allocation}{'' if a.met else ' (missed)'}",
            str(a.iterations),
            f"{a.lab_s:.0f}",
            a.greedy,
            str(a.greedy_iterations),
            f"{a.greedy_s:.0f}",
        ]
        for a in found
    ]
    head = ["seed", "clients", "profiled", "lab iterations", "lab s"]
    text = tables.table([*head, "greedy", "lab iterations", "lab s"], rows)
    sums = []
    for seed in dict.fromkeys(a.seed for a in found):
        own = [a for a in found if a.seed == seed]
        profiling, ours = own[0].profiling_s, sum(a.lab_s for a in own)
        costs = (profiling, ours, profiling + ours, sum(a.greedy_s for a in own))
        sums.append([str(seed), *(f"{seconds:.0f}" for seconds in costs)])
    head = ["seed", "profiling, s", "three answers, s", "together, s", "greedy, three SLAs, s"]
    return f"{text}\n\n{tables.table(head, sums)}"


def publish(name: str, text: str) -> None:
    """Put a text between its markers; raises `ValueError` where the page has none."""
    page = PAGE.read_text(encoding="utf-8")
    begin = BEGIN.format(name)
    start = page.index(begin) + len(begin)
    stop = page.index(END, start)
    PAGE.write_text(f"{page[:start]}\n{text}\n{page[stop:]}", encoding="utf-8")
