"""From a recommendation to the rows of the screen Recommend; plain functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from workbench.domain.counts import counted
from workbench.domain.load_words import load_words
from workbench.domain.parameters import PrimaryWorkload
from workbench.domain.profiles import Curve
from workbench.domain.recommendations import (
    Choice,
    ComparisonRow,
    Deployment,
    Recommendation,
    Trend,
    Verification,
    priced,
)
from workbench.domain.samples import OVERLOAD, Estimate
from workbench.tui import text
from workbench.tui.plots.figure import AxisStretch, BreakpointLine, Figure, Fit, Limit
from workbench.tui.screens.proposals.chain_names import limit_text, per
from workbench.tui.screens.recommend import recommend_words as words_of
from workbench.tui.widgets.rows import Look, Row, Span, fit

Lab = Callable[[Deployment], Verification | None]
"""What the lab said of an allocation; None where it was not asked."""
NOT_ASKED: Lab = lambda _: None  # noqa: E731  # it has the shape of what others give
BAR = "█"
INDENT = 15
BEYOND = 1.5
"""How far beyond an overload the axis reaches, so that it is seen."""
"""Cells of a label in the lower part."""


@dataclass(frozen=True)
class Allotted:
    """An allocation as a line of the list."""

    choice: Choice
    recommended: bool = False
    closest: bool = False
    """Nothing holds, and this comes nearest."""


def allotted(found: Recommendation) -> list[Allotted]:
    """Every allocation that is named, by rising cost."""
    lines = [Allotted(choice) for choice in found.runners_up]
    if found.chosen is not None:
        lines.insert(0, Allotted(found.chosen, recommended=True))
    elif found.closest is not None:
        lines.insert(0, Allotted(found.closest, closest=True))
    return sorted(lines, key=lambda line: line.choice.cost)


# ------------------------------------------------------------------- the head


def asked_row(found: Recommendation, width: int) -> Row:
    """The question in a line."""
    chain = f" {text.plain(found.chain)} "
    words = f"with {words_of.confidence(found.confidence)}: {words_of.slas_text(found)}"
    return ((chain, "strong"), (fit(words, max(0, width - len(chain))), "dim"))


def verdict_rows(found: Recommendation, width: int) -> list[Row]:
    """The answer in a sentence, and what the lab says of it."""
    named = f"{found.id}: " if found.id else "not stored: "
    run = "in steady state" if found.probability_of == "long_run" else "in the next window"
    sign: str
    look: Look
    if (chosen := found.chosen) is not None:
        words = f"{named}{words_of.in_words(chosen.deployment)} – holds with "
        words += f"{words_of.probability(chosen.probability)} {run}, for {_cost(chosen)}"
        sign, look = ("✓", "good") if _good(found) else ("!", "warn")
    elif found.closest is not None:
        near = found.closest
        words = f"{named}nothing meets the SLA, of {counted(found.judged, 'allocation')}; "
        chance = words_of.probability(near.probability)
        words += f"what comes closest is {words_of.in_words(near.deployment)}, with {chance}"
        sign, look = "✗", "bad"
    else:
        words, sign, look = f"{named}nothing meets the SLA", "✗", "bad"
    rows = _said(sign, words, look, width)
    if found.verified is not None:
        rows += verified_rows(found.verified, found.chosen, width)
    return rows


def _cost(choice: Choice) -> str:
    return text.plain(priced(choice.cost, choice.cost_unit))


def _good(found: Recommendation) -> bool:
    return found.verified is None or found.verified.met


def verified_rows(verified: Verification, chosen: Choice | None, width: int) -> list[Row]:
    kpis = ", ".join(_measured(kpi, sample, chosen) for kpi, sample in verified.kpis.items())
    said = "the lab confirms it" if verified.met else "the lab does NOT confirm it"
    words = f"{said}{f': {kpis}' if kpis else ''}; {text.duration(verified.lab_s)} of lab time"
    words += f". {verified.note}" if verified.note else ""
    return _said("✓" if verified.met else "✗", words, "good" if verified.met else "bad", width)


def _measured(kpi: str, sample: Estimate, chosen: Choice | None) -> str:
    """A measured KPI, and what was expected where that is something else."""
    name, unit = text.kpi_parts(kpi)
    expected = chosen.kpis.get(kpi) if chosen is not None else None
    words = f"{name} {text.estimate(sample)} {unit}"
    if expected is None or (expected.low <= sample.high and sample.low <= expected.high):
        return words
    return f"{words} where {text.estimate(expected)} was expected"


def _said(sign: str, words: str, look: Look, width: int) -> list[Row]:
    lines = text.wrapped(text.sentence(words), max(20, width - 4))
    return [((f" {sign if not i else ' '} ", look), (line, look)) for i, line in enumerate(lines)]


# ------------------------------------------------------------------- the list


@dataclass(frozen=True)
class Columns:
    """Cells of each column; 0 is left out."""

    allocation: int
    cost: int = 8
    chance: int = 12
    margin: int = 9
    bar: int = 0
    usage: int = 0
    lab: int = 15
    marks: int = 14

    @classmethod
    def within(cls, found: Recommendation, width: int) -> Columns:
        """What fits: marks before usage, usage before the margin's bar."""
        lines, allocation = allotted(found), _allocation_cells(found)
        used = 2 + max([len("CPU"), *(len(words_of.usage(line.choice)) for line in lines)])
        left = width - 3 - allocation - cls.cost - cls.chance - cls.margin - cls.lab - cls.marks
        share = used if left >= used else 0
        left -= share
        bar = min(16, left - 1) if left >= 6 else 0
        return cls(allocation, bar=bar, usage=share)


def _allocation_cells(found: Recommendation) -> int:
    """Of the list and of greedy scaling's table below it: one column, so that it is read down."""
    given = [words_of.shares(line.choice.deployment) for line in allotted(found)]
    given += [words_of.shares(Deployment(way.allocation, way.replicas)) for way in found.ways]
    return min(max(12, *(len(words) + 2 for words in given)) if given else 12, 40)


def heading(columns: Columns) -> Row:
    cells = [
        " " * 3 + fit("allocation", columns.allocation),
        f"{'cost':>{columns.cost}}",
        f"{'probability':>{columns.chance}}",
        f"{'margin':>{columns.margin}}",
        " " * columns.bar,
        fit("  CPU", columns.usage) if columns.usage else "",
        fit("  lab", columns.lab),
    ]
    return (("".join(cells), "dim"),)


def line_row(
    line: Allotted, found: Recommendation, columns: Columns, here: bool, lab: Lab = NOT_ASKED
) -> Row:
    choice = line.choice
    said = lab(choice.deployment)
    sign = "✓" if line.recommended else "≈" if line.closest else " "
    body: Look = "badge" if here else "strong" if line.recommended else ""
    chance: Look = "badge" if here else _chance_look(choice, found)
    spans: list[Span] = [
        ("›" if here else " ", "accent"),
        (f"{sign} ", "good" if line.recommended else "warn"),
        (fit(words_of.shares(choice.deployment), columns.allocation), body),
        (f"{text.number(choice.cost):>{columns.cost}}", body),
        (f"{words_of.probability(choice.probability):>{columns.chance}}", chance),
        (f"{words_of.margin(choice):>{columns.margin}}", body),
    ]
    if columns.bar:
        spans.append((" " + _margin_bar(choice, found, columns.bar - 1), "accent"))
    if columns.usage:
        spans.append(("  " + fit(words_of.usage(choice), columns.usage - 2), ""))
    look: Look = "dim" if said is None else "good" if said.met else "bad"
    spans.append(("  " + fit(words_of.checked(said), columns.lab - 2), look))
    spans.append((f"  {words_of.marks(choice)}", "warn"))
    return tuple(spans)


def _chance_look(choice: Choice, found: Recommendation) -> Look:
    return "good" if choice.probability >= found.confidence else "bad"


def _margin_bar(choice: Choice, found: Recommendation, width: int) -> str:
    """Against the widest margin of the list."""
    widest = max((line.choice.margin_wl or 0.0 for line in allotted(found)), default=0.0)
    if not widest or choice.margin_wl is None or choice.margin_wl <= 0:
        return " " * width
    return fit(BAR * max(1, round(width * choice.margin_wl / widest)), width)


# ------------------------------------------------------------------- below the list


def parts(
    here: Allotted | None,
    found: Recommendation,
    notes: Sequence[str],
    primary: PrimaryWorkload | None,
    width: int,
    lab: Lab = NOT_ASKED,
) -> list[list[Row]]:
    """What stands below the list: of an allocation, greedy scaling beside it, notes."""
    about = detail_rows(here, found, primary, width) if here else []
    told = (about, ways_rows(found, width, lab), note_rows(found, notes, width))
    return [part for part in told if part]


def whole(
    found: Recommendation,
    notes: Sequence[str],
    primary: PrimaryWorkload | None,
    width: int,
    lab: Lab = NOT_ASKED,
) -> list[Row]:
    """Everything, of the first allocation, to be copied."""
    lines = allotted(found)
    columns = Columns.within(found, width)
    rows = [asked_row(found, width), *verdict_rows(found, width), (), heading(columns)]
    rows += [line_row(line, found, columns, False, lab) for line in lines]
    first = next((line for line in lines if line.recommended), lines[0] if lines else None)
    for part in parts(first, found, notes, primary, width, lab):
        rows += [(), *part]
    return rows


def detail_rows(
    line: Allotted, found: Recommendation, primary: PrimaryWorkload | None, width: int
) -> list[Row]:
    """The allocation under the cursor: what is expected of it, function by function."""
    choice, rows = line.choice, []
    at = words_of.load(found)
    name = text.plain(primary.name) if primary else "wl"
    for kpi, expected in choice.kpis.items():
        limit = next((sla for sla in found.slas if sla.kpi == kpi), None)
        short, unit = text.kpi_parts(kpi)
        held = limit is None or limit.holds(expected.value)
        words = f"{text.estimate(expected)} {unit}".rstrip()
        if at is not None:
            words += f" at {text.number(at)}{per(primary.unit if primary else '')}"
        if limit is not None:
            words += f", limit {limit_text(limit).removeprefix(short).strip()}"
        rows.append(_labelled(f" {short}", words, "" if held else "bad"))
    rows += _usage_rows(choice, width)
    rows.append(_labelled(" carries", _carries(choice, found, name), ""))
    if choice.extrapolated:
        words = f"outside of what was profiled: {', '.join(map(text.plain, choice.extrapolated))}"
        rows.append(_labelled(" marks", words, "warn"))
    elif not choice.profiled:
        words = "interpolated: between allocations that were profiled, never measured itself"
        rows.append(_labelled(" marks", words, "warn"))
    return rows


def _labelled(label: str, words: str, look: Look) -> Row:
    return ((fit(label, max(INDENT, len(label))) + " ", "dim"), (words, look))


def _usage_rows(choice: Choice, width: int) -> list[Row]:
    """A row for each function, with bars of one length."""
    functions = choice.deployment.functions
    widest = max((len(words_of.instances(choice.deployment, vnf)) for vnf in functions), default=0)
    bar = max(8, min(24, width - INDENT - widest - 24))
    return [_usage_row(choice, vnf, bar) for vnf in functions]


def _usage_row(choice: Choice, vnf: str, bar: int) -> Row:
    share = choice.usage.get(vnf)
    name = fit(f" {text.plain(vnf)}", INDENT)
    allotment = words_of.instances(choice.deployment, vnf)
    if share is None:
        return ((f"{name} ", "dim"), (f"{allotment}, CPU not known", ""))
    full = round(min(max(share, 0.0), 1.0) * bar)
    look: Look = "warn" if share >= 0.9 else "accent"
    return (
        (f"{name} ", "dim"),
        (BAR * full, look),
        ("·" * (bar - full), "dim"),
        (f" uses {text.percent(share)} of its {allotment}", ""),
    )


def _carries(choice: Choice, found: Recommendation, name: str) -> str:
    sure = words_of.confidence(found.confidence)
    at = words_of.load(found)
    if choice.margin_wl is None or at is None:
        return f"no load with {sure}"
    least = "at least " if choice.margin_open else ""
    load = load_words(name, text.number(at + choice.margin_wl))
    words = f"{least}{load} with {sure}: {words_of.margin(choice)}"
    return f"{words} ({100 * choice.margin_wl / at:+.0f} %)"


def ways_rows(found: Recommendation, width: int, lab: Lab = NOT_ASKED) -> list[Row]:
    """Paper A's Table 1: greedy scaling and the profiles beside each other."""
    run = found.greedy
    if run is None:
        return []
    ways = {way.method: way for way in found.ways}
    columns = WayColumns.within(_allocation_cells(found), width)
    rows: list[Row] = [((columns.heading, "dim"),)]
    if found.chosen is not None:
        tried = f"{found.lab_iterations} on lab"
        standing = Standing.of(found, found.chosen.deployment, lab)
        rows.append(_way_row("profiles", ways["profiled"], standing, tried, columns))
    else:
        body = columns.line("nothing", "–", "–", "profiles", "", "", "")
        rows.append(((" ✗ ", "bad"), (body.rstrip(), "")))
    if "greedy" in ways:
        standing = Standing.of(found, run.steps[-1].deployment, lab)
        tried = (
            f"{run.lab_iterations or run.tried} {'on lab' if run.lab_iterations else 'on model'}"
        )
        rows.append(_way_row("greedy", ways["greedy"], standing, tried, columns))
        if run.met and not standing.met:
            said = f"Greedy scaling's answer {_cheaper(found)}{standing.words(found.confidence)}."
            rows += _said("!", said, "warn", width)
    if run.note:
        rows += _said(" ", f"Greedy scaling: {run.note}", "dim", width)
    return rows


@dataclass(frozen=True)
class WayColumns:
    """Cells of the columns of greedy scaling's table; 0 is left out.

    Its first three are those of the list above, in the same cells.
    """

    allocation: int
    cost: int = Columns.cost
    chance: int = Columns.chance
    name: int = 10
    tried: int = 12
    lab: int = 10
    """Lab time after profiling."""

    @classmethod
    def within(cls, allocation: int, width: int) -> WayColumns:
        """What fits: what all of it cost says more than the lab time, and than what was tried."""
        full = cls(allocation)
        for columns in (full, replace(full, lab=0), replace(full, lab=0, tried=0)):
            if len(columns.heading) <= width:
                return columns
        beyond = len(columns.heading) - width
        return replace(columns, allocation=max(12, allocation - beyond))

    @property
    def heading(self) -> str:
        names = ("allocation", "cost", "probability", "found by", "tried", "lab time")
        return "   " + self.line(*names, "+ profiling")

    def line(
        self, given: str, cost: str, chance: str, name: str, tried: str, spent: str, whole: str
    ) -> str:
        parts = [fit(given, self.allocation), f"{cost:>{self.cost}}", f"{chance:>{self.chance}}"]
        parts += [f"  {name:<{self.name - 2}}"]
        parts += [f"{tried:>{self.tried}}"] if self.tried else []
        parts += [f"{spent:>{self.lab}}"] if self.lab else []
        return "".join((*parts, f"{whole:>13}"))


@dataclass(frozen=True)
class Standing:
    """What is known of whether an allocation holds: how probable that is, and what the lab said."""

    probability: float | None
    said: Verification | None
    met: bool
    """It holds where it was tried: on the lab, or as probably as was asked."""

    @classmethod
    def of(cls, found: Recommendation, deployment: Deployment, lab: Lab) -> Standing:
        run = found.greedy
        is_greedys = (
            run is not None and run.steps and run.steps[-1].deployment.key == deployment.key
        )
        chance = run.probability if run is not None and is_greedys else None
        for line in allotted(found):
            if line.choice.deployment.key == deployment.key:
                chance = line.choice.probability
        said = lab(deployment)
        if said is not None:
            return cls(chance, said, said.met)
        on_lab = run is not None and is_greedys and run.met and run.lab_iterations > 0
        return cls(chance, None, on_lab or (chance is not None and chance >= found.confidence))

    def words(self, asked: float) -> str:
        """Why it is not taken to hold."""
        if self.said is not None:
            kpis = ", ".join(_measured(kpi, at, None) for kpi, at in self.said.kpis.items())
            return f"the lab does NOT confirm it{f': {kpis}' if kpis else ''}"
        if self.probability is not None:
            sure = words_of.probability(self.probability)
            return f"holds with {sure} only, not with {words_of.confidence(asked)}"
        return "its chance of holding was not computed, and it was not verified on the lab"


def _cheaper(found: Recommendation) -> str:
    if found.greedy is None or found.chosen is None or found.greedy.cost >= found.chosen.cost:
        return ""
    return "costs less, but "


def _way_row(
    name: str, way: ComparisonRow, standing: Standing, tried: str, columns: WayColumns
) -> Row:
    on_lab = way.method == "profiled" or way.lab_iterations
    spent = text.duration(way.lab_s) if on_lab else "–"
    whole = text.duration(way.lab_s_with_profiling) if on_lab else "–"
    given = words_of.shares(Deployment(way.allocation, way.replicas))
    chance = "–" if standing.probability is None else words_of.probability(standing.probability)
    body = columns.line(given, text.number(way.cost), chance, name, tried, spent, whole)
    if way.met and standing.met:
        return ((" ✓ ", "good"), (body, ""))
    unknown = way.met and standing.said is None and standing.probability is None
    return ((" ? ", "warn") if unknown else (" ✗ ", "bad"), (body, ""))


def note_rows(found: Recommendation, notes: Sequence[str], width: int) -> list[Row]:
    """What is to be known besides, each as a sentence."""
    rows: list[Row] = []
    for note in _notes(found, notes):
        rows += _said("·", note, "dim", width)
    return rows


def _notes(found: Recommendation, notes: Sequence[str]) -> Iterator[str]:
    if found.note:
        yield found.note
    if found.told_of_trials:
        yield found.told_of_trials
    yield from notes
    source = found.judged_by
    judged = found.chosen or found.closest
    several = judged is not None and len(judged.deployment.functions) > 1
    if not found.model_version and not found.rests_on and several:
        source += ", with no canary's correction"
    words = f"Judged by {source}: {counted(found.judged, 'allocation')} by rising cost."
    yield f"{words} {_left_out(found)}".rstrip()


def _left_out(found: Recommendation) -> str:
    """What became of those that were judged and are not listed; empty where all are."""
    listed = len(allotted(found))
    if (others := found.judged - listed) <= 0:
        return ""
    rest = "the other one" if others == 1 else f"the other {others}"
    verb = "does" if others == 1 else "do"
    if found.chosen is None:
        return f"Listed is what comes closest; {rest} {verb} not hold either."
    which = "the cheapest that holds" if listed == 1 else f"the {listed} cheapest that hold"
    return f"Listed: {which}; {rest} {verb} not hold or {'costs' if others == 1 else 'cost'} more."


# ------------------------------------------------------------------- others


def figure(
    line: Allotted | None, trends: Sequence[Trend], found: Recommendation, load: str
) -> Figure:
    """The first limited KPI of an allocation over `wl`, with its limit."""
    limit = found.slas[0]
    curve = _curve(line, trends, limit.kpi)
    if curve is None:
        return Figure(empty="No curve of this allocation is stored.")
    asked = words_of.load(found)
    first, last = curve.wl[:1] or (curve.overload or 1.0,), curve.wl[-1:]
    along: tuple[AxisStretch, ...] = ()
    if curve.overload is not None:
        along = (AxisStretch(curve.overload, BEYOND * curve.overload, OVERLOAD),)
        last = (BEYOND * curve.overload,)
    lines = (
        () if asked is None else (BreakpointLine(asked, asked, asked, f"asked {load}".rstrip()),)
    )
    return Figure(
        x_range=(first[0], last[0]),
        along=along,
        fit=Fit(curve.wl, curve.mean, curve.low, curve.high, label="predicted"),
        lines=lines,
        limit=Limit(limit.limit, f"SLA {limit_text(limit)}"),
    )


def _curve(line: Allotted | None, trends: Sequence[Trend], kpi: str) -> Curve | None:
    for trend in trends:
        if line is not None and trend.choice.deployment == line.choice.deployment:
            return next((curve for curve in trend.curves if curve.kpi == kpi), None)
    return None


def past_line(found: Recommendation) -> str:
    """A recommendation of the session as one line of a list; what is cut off matters least."""
    judged = found.chosen or found.closest
    what = words_of.shares(judged.deployment) if judged else ""
    sign = "✗ closest" if not found.met else "✓" if _good(found) else "!"
    lab = (
        "" if found.verified is None else ", on the lab too" if _good(found) else ", not on the lab"
    )
    head = f"{found.id or 'new':<3} {sign} {what}{lab}: {words_of.slas_text(found)}"
    return f"{head}  {text.plain(found.chain)}, {text.day(found.at)}"


def copied(rows: Sequence[Row]) -> str:
    return "\n".join("".join(words for words, _ in row).rstrip() for row in rows)
