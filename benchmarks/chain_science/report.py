"""The tables of docs/chain-science.md that say whether targets are met, and the page itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from science import tables

from chain_science.canaries import Error
from chain_science.predicting import OURS, PAPER, PREDICTION, SIMPLE
from chain_science.recommending import CONFIDENCE, Asked
from chain_science.stored import ROOT

PAGE = ROOT / "docs" / "chain-science.md"
BEGIN, END = "<!-- bench-chains: {} -->", "<!-- end -->"


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
                *(_share([e.errors[name] for e in own]) for name in names),
                f"{sum(e.small for e in own)}/{len(own)}",
                f"{sum(judged)}/{len(judged)}" if judged else "-",
            ]
        )
    head = ["grid, chain, KPI", "seeds", "noise", PREDICTION, *SIMPLE, *PAPER, OURS]
    return tables.table([*head, "within 10 % or 1.5 x noise", "at most half"], rows)


def _share(values: Sequence[float]) -> str:
    middle = float(np.median(values))
    return "never" if np.isinf(middle) else f"{middle:.1%}"


def recommendations(asked: Sequence[Asked]) -> str:
    """What became of all SLAs, by chain and together, before and after the lab was asked."""
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
                    f"{issued} ({_of(issued, len(own))})",
                    f"{exact} ({_of(exact, issued)})",
                    f"{near} ({_of(near, issued)})",
                    f"{missed} ({_of(missed, issued)})",
                    f"{np.mean(iterations):.1f} ({max(iterations)})",
                ]
            )
    risk = f"missed at {1.0 - CONFIDENCE:.0%} stated risk"
    head = ["chain", "seeds", "SLAs that can be met", "answered", "the optimum", "within one step"]
    return tables.table([*head, risk, "lab iterations (most)"], rows)


def _of(count: int, all_of: int) -> str:
    return f"{count / all_of:.0%}" if all_of else "-"


def publish(name: str, text: str) -> None:
    """Put a text between its markers; raises `ValueError` where the page has none."""
    page = PAGE.read_text(encoding="utf-8")
    begin = BEGIN.format(name)
    start = page.index(begin) + len(begin)
    stop = page.index(END, start)
    PAGE.write_text(f"{page[:start]}\n{text}\n{page[stop:]}", encoding="utf-8")
