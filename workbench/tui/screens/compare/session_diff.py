"""From two sessions side by side to the rows and the plot of a regression view."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.domain.campaign import Campaign
from workbench.domain.configurations import ConfigurationView
from workbench.domain.kpis import of
from workbench.domain.messages import Compared
from workbench.domain.profiles import BREAKPOINT_RULES, Difference
from workbench.domain.projection import SessionView
from workbench.tui import profile_figure, text
from workbench.tui.plots.figure import Figure, Fit, Mark
from workbench.tui.screens.compare.compare_lines import NARROW
from workbench.tui.widgets.rows import Look, Row, Span, fit

ORDER = ("worse", "better", "not_comparable", "same")
WORDS: dict[str, tuple[str, str, Look]] = {
    "worse": ("▼", "worse", "bad"),
    "better": ("▲", "better", "good"),
    "not_comparable": ("?", "not comparable", "warn"),
    "same": (" ", "within the noise", "dim"),
}
SHORT = 6
"""Width of a ratio without its interval."""
RATIOS = (0.25, 4.0)
"""Ends of the scale on which ratios are drawn."""


@dataclass(frozen=True)
class Change:
    """A figure of both sessions, and whether the second is better or worse."""

    difference: Difference
    verdict: str

    @property
    def departure(self) -> float:
        ratio = self.difference.ratio
        return abs(math.log(ratio)) if ratio else 0.0


def changes_of(reply: Compared) -> tuple[Change, ...]:
    """What got worse first, the largest departure first; then better, then what says nothing."""
    found = [Change(d, _verdict(d)) for d in reply.differences]
    return tuple(sorted(found, key=lambda c: (ORDER.index(c.verdict), -c.departure)))


def _verdict(difference: Difference) -> str:
    if difference.verdict == "no_visible_difference":
        return "same"
    if difference.verdict == "not_comparable":
        return "not_comparable"
    more = difference.verdict == "higher"
    wanted = difference.figure in BREAKPOINT_RULES or of(difference.figure).more_is_better
    return "better" if more == wanted else "worse"


def summary_rows(reply: Compared, changes: Sequence[Change], width: int) -> list[Row]:
    """Which session against which, how much changed, and what is to be known of both."""
    spans: list[Span] = [
        (f" {text.plain(reply.second)}", "strong"),
        (" against ", "dim"),
        (f"{text.plain(reply.first)}  ", "strong"),
    ]
    for verdict in ORDER:
        count = sum(change.verdict == verdict for change in changes)
        sign, word, look = WORDS[verdict]
        if count:
            spans.append((f"{sign.strip()}{' ' * bool(sign.strip())}{count} {word}  ", look))
    if not changes:
        spans.append(("no figure in common", "warn"))
    rows: list[Row] = [tuple(spans)]
    if floors := _floors(changes):
        rows.append(((fit(f" beyond the interval and the A/A floor: {floors}", width), "dim"),))
    rows += [
        ((fit(f" ! {text.sentence(warning)}", width), "warn"),) for warning in reply.warnings[:2]
    ]
    return rows


def _floors(changes: Sequence[Change]) -> str:
    """`p95 30 %, throughput 6 %`."""
    floors = {
        _figure(c.difference.figure): c.difference.floor
        for c in changes
        if c.difference.floor
        and c.verdict != "not_comparable"
        and c.difference.figure not in BREAKPOINT_RULES
    }
    return ", ".join(f"{name} {text.percent(floor)}" for name, floor in floors.items())


def _figure(figure: str) -> str:
    return figure if figure in BREAKPOINT_RULES else text.kpi_parts(figure)[0]


def heading(width: int) -> Row:
    name, ratio, scale = _columns(width)
    figures = f"{'before':>9}{'after':>9}  {fit('ratio', ratio)}"
    marks = fit("worse or better beyond ░", scale) if scale else ""
    names = f"   {fit('configuration', name - 1)} {fit('figure', 12)}{'wl':>6}"
    return ((f"{names}{figures}{marks}", "dim"),)


def change_row(view: SessionView, change: Change, here: bool, width: int) -> Row:
    name, wide, scale = _columns(width)
    d = change.difference
    sign, _, look = WORDS[change.verdict]
    place = _place(view, d)
    wl = text.number(d.wl) if d.wl is not None else ""
    before, after = (text.number(v) if v is not None else "–" for v in (d.first, d.second))
    spans: list[Span] = [
        ("›" if here else " ", "accent"),
        (f"{sign} ", look),
        (fit(place, name - 1), "badge" if here else ""),
        (f" {fit(_figure(d.figure), 12)}{wl:>6}{before:>9}{after:>9}  ", ""),
    ]
    if d.ratio is None or d.low is None or d.high is None:
        return (*spans, (fit(text.sentence(d.note), max(0, width - name - 41)), "dim"))
    interval = f" {text.interval(d.low, d.high)}" if wide > SHORT else ""
    spans.append((fit(f"{d.ratio:.2f}{interval}", wide), look if change.verdict != "same" else ""))
    if scale:
        spans += [(scale_text(d, scale), look)]
    return tuple(spans)


def _place(view: SessionView, d: Difference) -> str:
    """The allocation first: in a short line that is what tells one from the next."""
    name = name_of(view, d)
    return f"{name.removeprefix(d.target).strip()} {text.plain(d.target)}"


def name_of(view: SessionView, d: Difference) -> str:
    return text.configuration_name(_campaign(view, d.target), d.target, d.configuration)


def _campaign(view: SessionView, target: str) -> Campaign | None:
    known = {plan.target.name for plan in view.campaign.targets} if view.campaign else set()
    return view.campaign if target in known else None


def _columns(width: int) -> tuple[int, int, int]:
    """Widths of the name, of the ratio and of the scale."""
    scale = min(41, width - 96) if width >= 112 else 0
    ratio = 20 if width >= NARROW else SHORT
    return max(10, width - 3 - 12 - 6 - 18 - 2 - ratio - scale), ratio, scale


def scale_text(d: Difference, width: int) -> str:
    """The ratio with its interval on a logarithmic scale around 1; the floor is shaded."""
    assert d.ratio is not None
    assert d.low is not None
    assert d.high is not None
    low, high = math.log(RATIOS[0]), math.log(RATIOS[1])

    def cell(ratio: float) -> int:
        share = (math.log(max(ratio, 1e-9)) - low) / (high - low)
        return min(max(round(share * (width - 1)), 0), width - 1)

    cells = [" "] * width
    for place in range(cell(1 / (1 + d.floor)), cell(1 + d.floor) + 1):
        cells[place] = "░"
    cells[cell(1.0)] = "┊"
    for place in range(cell(d.low), cell(d.high) + 1):
        cells[place] = "─"
    cells[cell(d.ratio)] = "●"
    return "".join(cells)


# ----------------------------------------------------------------------------- the plot


def figure(
    view: SessionView,
    other: SessionView | None,
    change: Change | None,
    kpi: str,
    *,
    log_x: bool | None,
    log_y: bool,
) -> Figure:
    """Both sessions' samples and curves of the configuration of a change."""
    if change is None:
        return Figure(empty="no figure in common")
    d = change.difference
    own, before = (_configuration(v, d) for v in (view, other))
    marks: list[Mark] = []
    fits: list[Fit] = []
    for found, second in ((before, True), (own, False)):
        if found is None:
            continue
        for sample in found.samples:
            made = profile_figure.mark(sample, kpi)
            chosen = not second and d.wl is not None and f"{sample.wl:.6g}" == f"{d.wl:.6g}"
            marks.append(Mark(made.x, made.y, made.low, made.high, made.valid, chosen, second))
        curve = found.curve if found.curve and found.curve.kpi == kpi else None
        if curve is not None:
            fits.append(
                Fit(curve.wl, curve.mean, curve.low, curve.high, "dashed", "second", "before")
                if second
                else Fit(curve.wl, curve.mean, curve.low, curve.high, "solid", "curve", "after")
            )
    campaign = _campaign(view, d.target)
    plan = campaign.target_plan(d.target).primary if campaign is not None else None
    return Figure(
        x_range=(plan.low, plan.high) if plan else None,
        marks=tuple(marks),
        fit=fits[-1] if fits else None,
        more=tuple(fits[:-1]),
        series=("after (this session)", "before"),
        limit=profile_figure.sla_limit(view, kpi),
        log_x=log_x if log_x is not None else plan is None or plan.scale == "log",
        log_y=log_y,
        empty="no samples of this configuration",
    )


def _configuration(view: SessionView | None, d: Difference) -> ConfigurationView | None:
    found = view.configurations if view is not None else ()
    return next(
        (c for c in found if (c.target, c.configuration) == (d.target, d.configuration)), None
    )
