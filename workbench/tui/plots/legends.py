"""What the marks of a plot mean, for the help page of every screen that has one."""

from __future__ import annotations

from collections.abc import Callable

from workbench.tui.plots.canvas import Glyphs

Legend = Callable[[Glyphs], tuple[str, ...]]


def legend(glyphs: Glyphs, *parts: Legend) -> tuple[str, ...]:
    """The parts one after the other, in the characters that the terminal can draw."""
    return tuple(line for part in parts for line in part(glyphs))


def plot_marks(g: Glyphs) -> tuple[str, ...]:
    return (
        "Marks",
        f"{g.valid} valid sample   {g.invalid} sample that is not valid, and is not modelled",
        f"{g.pinned} sample that somebody pinned",
        f"{g.bar_top}{g.bar}{g.bar_bottom} its 95 % interval; at the top edge: not stated",
        f"{g.ask_left}{g.valid}{g.ask_right} the sample that you went to",
        f"{g.curve * 2} fitted curve   {g.band * 2} its 95 % band",
        f"{g.ask_left}{g.ask}{g.asked}{g.ask}{g.ask_right} next: interval and point to measure",
        f"{g.vertical} breakpoint   {g.span_left}{g.span}{g.span_right} its 95 % interval",
        f"{g.limit * 2} limit of the SLA",
        "T37 % quota throttled 37 % of the periods   ! no CPU left",
        "bypass_share: source and sink took over a tenth of the response time",
        "",
        "States of a configuration",
        "· planned   ▶ sampling   ✓ done   » skipped",
        "$ out of budget   ! unusable   ■ stopped",
        "",
        "Breakpoints",
        "collapse  where throughput falls as the offered load rises",
        "capacity  largest load that is carried without loss or backlog",
        "knee      where the KPI starts to rise with the load",
        "cpu       where usage stops following the load",
        "sla       where the fitted KPI crosses the limit of the SLA",
        "covariance  paper B's rule, for comparison",
    )


SCORE_COLUMNS = (
    "Scores, of samples that the method has not seen",
    "*            the best: narrowest intervals that hold, of like errors",
    "|log error|  median of |log(predicted / measured)|; 0.1 is about 10 %",
    "             less than 1 ms or 0.1 % counts as that: 0 where both are",
    "RMSE         root of the mean squared error, in the KPI's unit",
    "trimmed      RMSE without the largest tenth of the errors",
    "MAE, MAD     mean and median of the absolute error, in the KPI's unit",
    "MAPE         mean of the absolute error over what was measured",
    "cover        share of the samples within their 95 % intervals",
    "width        median width of these intervals, in logs: 0.4 is ±20 %",
    "fit s        mean seconds of a fit",
    "",
)
"""The columns of the screen Models, in its order."""


def compare_marks(g: Glyphs) -> tuple[str, ...]:
    """Of the screen Compare."""
    return (
        "Marks",
        f"{g.valid} sample of the chain   {g.bar_top}{g.bar}{g.bar_bottom} its 95 % interval",
        f"{g.ask_left}{g.valid}{g.ask_right} the load that is read out below the plot",
        f"{g.line('solid')} predicted   {g.line('dashed')} measured   {g.line('dotted')} profiles",
        f"{g.band} band of the prediction   {g.other_band} of what was measured   "
        f"{g.both_bands} both",
        f"{g.span_left}name{g.span_right} the function that limits there; "
        f"{g.unsure}?{g.unsure} a guess",
        "▼ worse, ▲ better than predicted: the intervals lie apart, and by more",
        "than the host's own A/A noise (noise alone)",
        "worse at 2 of 10: at 2 of its 10 measured loads; those in overload are",
        "loads as well, but no samples: their response times are only bounds",
        "than predicted: the median sample; off: some are slower, some faster",
        "error: mean of |predicted - measured| / measured: 50 % at twice as slow",
        "first line: of all samples; below: of those of each configuration",
        "convolved: the functions' times are added draw by draw, and give percentiles",
        "counts: how much of a small change of a function shows in the chain",
    )
