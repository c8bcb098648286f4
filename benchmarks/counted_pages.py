"""Figures of `results/counted_tables.json` as tables: at a terminal, and of counters-science.md."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from doc_blocks import with_blocks
from scipy.stats import hypergeom

from workbench.domain import kpis

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "counters-science.md"
RESULTS = HERE / "results" / "counted_tables.json"
MOST_LOST_POINTS = 3.0
"""By which coverage may fall beside a competitor that was not trained with (issue 23)."""
RARE = 0.05
"""What chance makes less often is not called chance."""
THEIRS = {
    "throughput": "| paper C's, hardware counters, their testbed | | 98 / 92 / 83 / 65 % |",
    "p95": "| paper C's, latency | | 86 / 79 % |",
}
MODELS = ("ours", "MLP (paper C)", "boosting (SLOMO)", "SLOMO, extrapolated", "linear")
"""The columns of the page."""

Results = Mapping[str, Any]


@dataclass(frozen=True)
class UsualCoverage:
    """Of held-out experiments with all competitors in training: windows, and those that their
    interval held."""

    windows: int
    held: int

    @classmethod
    def of(cls, found: Results) -> UsualCoverage:
        return cls(found["windows"], round(found["coverage"] * found["windows"]))

    @property
    def share(self) -> float:
        return self.held / self.windows

    def joined(self, other: UsualCoverage) -> UsualCoverage:
        return UsualCoverage(self.windows + other.windows, self.held + other.held)

    def chance(self, held: int, answered: int) -> float:
        """How often so few of the answered are held, or fewer, if they are held as often as these:
        Fisher's exact test, one-sided. A binomial would take the usual share for known, and call
        one miss impossible where all of 40 windows were held."""
        windows, all_held = self.windows + answered, self.held + held
        return float(hypergeom.cdf(held, windows, all_held, answered))

    def told_from(self, answered: int) -> int:
        """Misses among that many from which on chance is `RARE`; one more than there are where no
        number of them shows anything."""
        return next(
            (n for n in range(answered + 1) if self.chance(answered - n, answered) <= RARE),
            answered + 1,
        )


@dataclass(frozen=True)
class HeldOut:
    """Windows beside a competitor that training had not seen.

    Attributes
    ----------
    missing : of the windows, those without an answer as a counter that was learned from was not
        counted in them.
    outside : those answered by "outside of what was learned".
    held : of the others, those within their interval.
    """

    competitor: str
    windows: int
    missing: int
    outside: int
    held: int

    @property
    def answered(self) -> int:
        return self.windows - self.missing - self.outside

    def lost(self, usual: float) -> float:
        """By how much the coverage of what was answered is below the usual one, from 0 to 1."""
        return max(0.0, usual - self.held / self.answered) if self.answered else 0.0


def read_results(path: Path | None = None) -> dict[str, Any]:
    """What was found so far: `functions`, `unseen`, `designed`, `explained`; each may be empty."""
    path = path or RESULTS
    kept = json.loads(path.read_text()) if path.is_file() else {}
    return {"functions": {}, "unseen": {}, "designed": {}, "explained": {}, **kept}


def write_results(found: Results, path: Path | None = None) -> None:
    """Add what was found; a function that is there already is replaced."""
    kept = read_results(path)
    for part, of_it in found.items():
        kept[part] = of_it if part == "unseen" else {**kept[part], **of_it}
    (path or RESULTS).write_text(json.dumps(_rounded(kept), indent=1, sort_keys=True) + "\n")


def _rounded(value: Any) -> Any:
    """Six digits are more than any table has."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {key: _rounded(of_it) for key, of_it in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list | tuple) else value


def model_table(function: str, kpi: str, found: Results) -> str:
    """All models on held-out experiments, for a terminal."""
    lines = [
        f"{kpi} of {function}: {found['windows']} windows of {found['seconds']:g} s in "
        f"{found['experiments']} experiments, {found['counters']} counters "
        f"({found['dropped']} constant or double ones left out)",
        "",
        "| model | within 5 % | median error | mean error |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {of['within_5']:.0%} | {of['median']:.1%} | {of['mean']:.1%} |"
        for name, of in found["models"].items()
    ]
    return "\n".join(
        [*lines, "", f"ours is {found['ours_is']}; the interval of `watch` holds "
         f"{found['coverage']:.0%}, and its upper end is {found['width']:.2f} times its lower one "
         "(median)"]
    )  # fmt: skip


def competitor_table(unseen: Sequence[HeldOut], usual: UsualCoverage) -> str:
    """What became of each competitor that training had not seen, for a terminal."""
    lines = [
        f"with all competitors in training, by experiment, the interval holds {usual.held} of "
        f"{usual.windows}",
        "",
        "| held out of training | windows | outside of what was learned | counter missing | others "
        "held | lost | by chance |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in unseen:
        share = f"{one.held / one.answered:.0%}" if one.answered else "none was answered"
        lines.append(
            f"| {one.competitor} | {one.windows} | {one.outside} | {one.missing} | {share} | "
            f"{100 * one.lost(usual.share):.0f} points (at most {MOST_LOST_POINTS:g}) | "
            f"{_chance(one, usual)} |"
        )
    return "\n".join(lines)


def published(page: str, found: Results) -> str:
    """The page with what was found; a table of which nothing is there stays as it is."""
    functions = found["functions"]
    blocks = {}
    if functions:
        blocks["counted: by experiment"] = _by_experiment(functions)
        blocks["counted: held out"] = _held_out(functions)
    if found["unseen"]:
        blocks["counted: unseen"] = transfer_table(found["unseen"]["functions"])
    if found["designed"]:
        blocks["counted: designed"] = "\n\n".join(
            design_table(function, kpi, of_kpi)
            for function, of in sorted(found["designed"].items())
            for kpi, of_kpi in sorted(of["kpis"].items(), reverse=True)
        )
    if found["explained"]:
        blocks["counted: explained"] = explained_table(found["explained"])
    return with_blocks(page, blocks)


def _kind(kpi: str) -> str:
    return "throughput" if kpis.of(kpi).carried else "p95"


def _of_kind(functions: Results, kind: str) -> Iterator[tuple[str, Results]]:
    """Functions that have a KPI of that kind, and what was found of it."""
    for name, of in functions.items():
        for kpi, found in of["kpis"].items():
            if _kind(kpi) == kind:
                yield name, found


def _by_experiment(functions: Results) -> str:
    parts = []
    for kind in THEIRS:
        head = " | ".join(MODELS)
        lines = [
            f"| {kind} | windows, counters | {head} | interval holds | its ends, times |",
            "|---" * (len(MODELS) + 4) + "|",
        ]
        best: dict[str, int] = dict.fromkeys(MODELS, 0)
        rows = list(_of_kind(functions, kind))
        for name, found in rows:
            models = found["models"]
            least = min(of["median"] for model, of in models.items() if model in MODELS)
            cells = []
            for model in MODELS:
                of = models.get(model)
                cell = "" if of is None else f"{of['within_5']:.0%}, {of['median']:.1%}"
                if of is not None and f"{of['median']:.1%}" == f"{least:.1%}":
                    best[model] += 1
                    cell = f"**{cell}**"
                cells.append(cell)
            lines.append(
                f"| {name} | {found['windows']}, {found['counters']} | {' | '.join(cells)} | "
                f"{found['coverage']:.0%} | {found['width']:.1f} |"
            )
        lines.append(THEIRS[kind] + " |" * (len(MODELS) + 1))
        ahead = ", ".join(f"{model} on {many}" for model, many in best.items())
        parts.append(
            "\n".join(lines)
            + f"\n\nLeast median error at {kind}, of {len(rows)} functions: {ahead} "
            "(those that are equal to 0.1 % count each)."
        )
    aside = [
        f"{name}: {many} of {of['samples']} samples ({why})"
        for name, of in functions.items()
        for why, many in sorted(of["set_aside"].items())
    ]
    parts.append(f"Not in the tables: {'; '.join(aside) or 'no sample'}.")
    return "\n\n".join(parts)


def _held_out(functions: Results) -> str:
    lines = [
        "| held out | KPI | windows | outside | counter missing | others held | usually | lost | "
        "by chance | misses that chance hardly makes |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    tried: list[tuple[HeldOut, UsualCoverage, str]] = []
    all_usual = UsualCoverage(0, 0)
    for kind in THEIRS:
        for name, found in _of_kind(functions, kind):
            usual = UsualCoverage.of(found)
            all_usual = all_usual.joined(usual)
            for given in found["held_out"]:
                one = HeldOut(**given)
                tried.append((one, usual, f"{name} beside `{one.competitor}`, {kind}"))
                held = f"{one.held} of {one.answered}" if one.answered else "none"
                lines.append(
                    f"| {name}: `{one.competitor}` | {kind} | {one.windows} | {one.outside} | "
                    f"{one.missing} | {held} | {usual.share:.0%} | "
                    f"{100.0 * one.lost(usual.share):.1f} points | {_chance(one, usual)} | "
                    f"{usual.told_from(one.answered) if one.answered else ''} |"
                )
    if not tried:
        return "\n".join(lines)
    told = (_lost_by_competitor(tried), _lost_of_all(tried, all_usual), _lost_by_chance(tried))
    return "\n\n".join(("\n".join(lines), *told))


def _chance(one: HeldOut, usual: UsualCoverage) -> str:
    """As a cell; empty where nothing was lost."""
    return f"{usual.chance(one.held, one.answered):.1%}" if one.lost(usual.share) else ""


Tried = Sequence[tuple[HeldOut, UsualCoverage, str]]
"""Competitors that were held out, what is usual of the function and KPI, and which these are."""


def _together(tried: Tried) -> tuple[int, int, float]:
    """Answered windows that were held, how many there are, and the share that would be usual; some
    were answered."""
    held, answered = (sum(getattr(one, of) for one, _, _ in tried) for of in ("held", "answered"))
    return held, answered, sum(one.answered * usual.share for one, usual, _ in tried) / answered


def _lost_by_competitor(tried: Tried) -> str:
    """Of each competitor, over all functions and KPIs."""
    lines = [
        "| held out, of all functions and KPIs | answered | held | usually | lost |",
        "|---|---|---|---|---|",
    ]
    for name in sorted({one.competitor for one, _, _ in tried}):
        of_it = [row for row in tried if row[0].competitor == name and row[0].answered]
        if not of_it:
            continue
        held, answered, usually = _together(of_it)
        lost = max(0.0, 100.0 * (usually - held / answered))
        lines.append(
            f"| `{name}` | {answered} | {held} ({held / answered:.1%}) | {usually:.1%} | "
            f"{lost:.1f} points |"
        )
    return "\n".join(lines)


def _lost_of_all(tried: Tried, all_usual: UsualCoverage) -> str:
    lost = [(100.0 * one.lost(usual.share), where) for one, usual, where in tried]
    over = sum(points > MOST_LOST_POINTS for points, _ in lost)
    worst, where = max(lost)
    said = f"{over or 'None'} of {len(lost)} lose{'s' * (over == 1)} more than 3 points"
    most = f"; the most is {worst:.1f} ({where})" if worst > 0.0 else ""
    if not any(one.answered for one, _, _ in tried):
        return f"{said}{most}; no window was answered."
    held, answered, usually = _together(tried)
    chance = all_usual.chance(held, answered)
    return (
        f"{said}{most}; of all {answered} windows that were answered {held} held "
        f"({held / answered:.1%}, usually {usually:.1%}; by chance {chance:.0%})."
    )


def _lost_by_chance(tried: Tried) -> str:
    """Which losses are more than groups of that size have by chance."""
    chances = [usual.chance(one.held, one.answered) for one, usual, _ in tried]
    beyond = [
        f"{where}: {chance:.1%}"
        for chance, (_, _, where) in zip(chances, tried, strict=True)
        if chance <= RARE
    ]
    many, which = len(tried), f" ({'; '.join(beyond)})" if beyond else ""
    together = sum(chance <= RARE / many for chance in chances)
    return (
        f"**By chance** is how often a group of that size would hold so few, if it were held as "
        f"the usual windows are (Fisher's exact test): at most {RARE:.0%} in "
        f"{len(beyond) or 'none'} of {many}{which}, where chance alone makes up to "
        f"{RARE * many:.1f}; at most {RARE:.0%} for all of them together "
        f"(each {RARE / many:.2%}) in {together or 'none'}."
    )


def transfer_table(found: Results) -> str:
    """Each function by models of the others."""
    lines = [
        "| not trained on | KPI | outside | median error of the others | their interval holds | "
        "its ends, times | median error, if nothing were outside |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, of in found.items():
        for kpi, one in of.items():
            some = one["coverage"] is not None
            told = (
                f"{one['median_error']:.1%} | {one['coverage']:.0%} | {1 + one['width']:.1f}"
                if some
                else "none | | "
            )
            lines.append(
                f"| {name} | {_kind(kpi)} | {one['outside']} of {one['rows']} | {told} | "
                f"{one['unguarded_error']:.1%} |"
            )
    return "\n".join(lines)


def design_table(function: str, kpi: str, found: Results) -> str:
    """Errors after so many samples that were chosen by their stimuli alone."""
    lines = [
        f"{kpi} of {function}: {found['samples']} samples of one session, median error on those "
        f"that a model is not given, mean over {found['draws']} draws; the intervals are over "
        "these draws alone, not over sessions",
        "",
        "| given | at random | in steps | designed | designed / random, 95 % of draws | "
        "designed / steps |",
        "|---|---|---|---|---|---|",
    ]
    for row in found["shares"]:
        ratios = " | ".join(
            f"{middle:.2f} ({low:.2f} to {high:.2f})"
            for middle, low, high in (row["over_random"], row["over_steps"])
        )
        lines.append(
            f"| {row['given']} | {row['random']:.1%} | {row['steps']:.1%} | "
            f"{row['designed']:.1%} | {ratios} |"
        )
    return "\n".join(lines)


def explained_table(found: Results) -> str:
    """By competitor the counters that move what ours predicts most, and how counters vary."""
    return "\n\n".join(_explained(function, of) for function, of in found.items())


def _explained(function: str, found: Results) -> str:
    kind = _kind(found["kpi"])
    lines = [
        f"Of {function}'s {kind}, {found['windows']} windows, of which ours errs by "
        f"{found['mean_error']:.0%} (mean):",
        "",
        f"| competitor | counter | the counter is | predicted {kind} |",
        "|---|---|---|---|",
    ]
    for one in found["beside"]:
        alike = f" (and {len(one['alike'])} that go with it)" if one["alike"] else ""
        moved = "0 on one side" if one["moved"] is None else f"{one['moved']:.3g} times"
        lines.append(
            f"| `{one['competitor']}` | {one['says'] or one['name']}{alike} | {moved} | "
            f"{one['factor']:.2f} times |"
        )
    told = [
        f"component {one['number']} ({', '.join(one['counters'])}) has {one['share']:.0%} of the "
        f"counters' variance and correlates with {kind} by {_correlation(one)}"
        for one in found["components"]
    ]
    if told:
        together = f"together they tell {found['components'][-1]['told']:.0%} of its variance"
        lines += ["", f"Principal components of these windows: {'; '.join(told)}; {together}."]
    return "\n".join(lines)


def _correlation(one: Results) -> str:
    ends = "" if one["low"] is None else f" ({one['low']:+.2f} to {one['high']:+.2f})"
    return f"{one['pearson']:+.2f}{ends}"
