"""What a Prometheus of the site says beside a sample: per window, pooled, or why it is no figure.

A query is planned for a window (`plan`), so that its answer holds nothing but the window: what it
looks back over (`[30s]`, `[{{ window }}]`) has to lie inside. What comes back (`SiteAnswer`) is an
observation of the window, and over all windows a column of the sample, its interval from batches
(METHOD.md 6). What is missing is never zero: it is an observation without a value and the remark
`site_metric`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.domain.observations import SITE, Observation
from workbench.domain.samples import Estimate, Finding, Measurement, Remark
from workbench.measuring.intervals import t_quantile
from workbench.measuring.records import Floats

BATCHES = 6
"""Of a window, at most: as many as a window of ours has (METHOD.md 6)."""
READINGS = 2.5
"""Readings that a stretch of a rate holds at least: two make a rate, and one may lie outside."""
MOST_POINTS = 120
"""Of one answer."""
MOST_TOLD = 20
"""Remarks of one sample."""

_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_RANGE = re.compile(r"\[\s*((?:\d+(?:ms|[smhdwy]))+)\s*[\]:]")
_PART = re.compile(r"(\d+)(ms|[smhdwy])")
_SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 3.15e7}
WINDOW = "window"


@dataclass(frozen=True)
class SiteQuery:
    """What is asked for: at `count` instants, `step_s` apart, the last at the window's end."""

    text: str
    count: int
    step_s: float


@dataclass(frozen=True)
class SitePlan:
    """Of one metric over one window: the query of its figure, and that of batches if another."""

    figure: SiteQuery
    batches: SiteQuery | None = None


class NoFigure(Exception):
    """Why there is no figure, as a clause."""


@dataclass(frozen=True)
class SiteAnswer:
    """Of one metric of one component over one window.

    Attributes
    ----------
    column : the metric as the descriptor names it, with `*` filled in.
    value : None: there is none, and `why` says so.
    batches : float, shape (k,); k may be 0.
    """

    window: int
    component: str
    column: str
    value: float | None
    batches: Floats
    why: str = ""

    @property
    def name(self) -> str:
        return self.column.rpartition(":")[2]


def filled(template: str, known: Mapping[str, str]) -> str:
    """The template with its placeholders, but `window`. Raises `NoFigure`."""

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        if name == WINDOW:
            return match[0]
        if name not in known:
            raise NoFigure(f"this lab does not know what {{{{ {name} }}}} is here")
        return known[name].replace("\\", "\\\\").replace('"', '\\"')

    return _PLACEHOLDER.sub(fill, template)


def plan(template: str, window_s: float, scrape_s: float) -> SitePlan:
    """Queries that look at nothing but a window. Raises `NoFigure` where there are none.

    Parameters
    ----------
    template : placeholders filled in, but `window`.
    window_s : float, its length.
    scrape_s : float, how often the server reads.
    """
    if scrape_s > window_s:
        raise NoFigure(
            f"it is read every {scrape_s:g} s and the window lasted {window_s:.3g} s: nothing of "
            "it is the window's own; lengthen the window"
        )
    ranges = [_seconds(text) for text in _RANGE.findall(template)]
    longest = max(ranges, default=0.0)
    if longest > window_s + scrape_s / 2:
        raise NoFigure(
            f"it looks back {longest:g} s and the window lasted {window_s:.3g} s: most of it was "
            "before; write [{{ window }}], or lengthen the window"
        )
    if any(match[1] == WINDOW for match in _PLACEHOLDER.finditer(template)):
        if window_s < READINGS * scrape_s:
            raise NoFigure(
                f"it is read every {scrape_s:g} s and the window lasted {window_s:.3g} s: too few "
                f"readings; a window of {READINGS * scrape_s:g} s has enough"
            )
        whole = SiteQuery(_over(template, window_s), 1, window_s)
        count = min(BATCHES, int(window_s / (READINGS * scrape_s)))
        if count < 2:
            return SitePlan(whole)
        length = window_s / count
        return SitePlan(whole, SiteQuery(_over(template, length), count, length))
    # A range that is half a reading longer than its window is that window.
    step_s = max(scrape_s, min(longest, window_s), window_s / MOST_POINTS)
    return SitePlan(SiteQuery(template, max(1, int(window_s / step_s + 1e-9)), step_s))


def _over(template: str, seconds: float) -> str:
    text = f"{max(1, round(seconds * 1e3))}ms"
    return _PLACEHOLDER.sub(lambda match: text if match[1] == WINDOW else match[0], template)


def _seconds(text: str) -> float:
    return sum(int(count) * _SECONDS[unit] for count, unit in _PART.findall(text))


def figure(values: Floats) -> tuple[float, Floats]:
    """The figure of an answer's points, and its batches.

    Parameters
    ----------
    values : float, shape (n,), n > 0; neighbours are read from the same counters, and are one
        batch where there are more of them than `BATCHES`.
    """
    groups = np.array_split(values, min(BATCHES, values.size))
    return float(values.mean()), np.array([group.mean() for group in groups])


def with_site(
    measurement: Measurement,
    answers: Sequence[SiteAnswer],
    alerts: Sequence[str],
    faults: Sequence[str],
) -> Measurement:
    """The measurement with what the site's servers said of it.

    Parameters
    ----------
    alerts : a sentence for each alert that fired while it was measured.
    faults : a sentence for each thing that could not be asked besides metrics.
    """
    lengths = [window.duration_s for window in measurement.windows]
    columns = dict.fromkeys(answer.column for answer in answers)
    kpis, remarks = dict(measurement.sample.kpis), [Remark("site_metric", 0.0, f) for f in faults]
    for column in columns:
        own = [answer for answer in answers if answer.column == column]
        lacking = next((answer for answer in own if answer.value is None), None)
        estimate = None if lacking else _pooled(own, lengths)
        if lacking is not None:
            told = f"{column} has no figure: {lacking.why}"
            remarks.append(Remark("site_metric", 0.0, told))
        elif estimate is None:
            told = f"{column} is one reading, which has no interval: it is in the evidence only"
            remarks.append(Remark("site_metric", 1.0, told))
        else:
            kpis[column] = estimate
    sample = measurement.sample
    found = tuple(Finding("site_alert", 1.0, 0.0, text) for text in alerts)
    if len(remarks) > MOST_TOLD:
        more = f"and {len(remarks) - MOST_TOLD + 1} more of the site's metrics"
        remarks = [*remarks[: MOST_TOLD - 1], Remark("site_metric", 0.0, more)]
    return replace(
        measurement,
        sample=replace(
            sample,
            kpis=kpis,
            findings=(*sample.findings, *found),
            valid=sample.valid and not found,
            remarks=(*sample.remarks, *remarks),
            labels=tuple(dict.fromkeys((*sample.labels, *(one.label for one in remarks)))),
        ),
        observations=(*measurement.observations, *map(_observed, answers)),
    )


def _observed(answer: SiteAnswer) -> Observation:
    component = answer.component or SITE
    return Observation(answer.window, component, answer.name, answer.value, answer.why)


def _pooled(own: Sequence[SiteAnswer], lengths: Sequence[float]) -> Estimate | None:
    """The mean over windows by their lengths; its interval by Student's t over all batches."""
    weights = np.array([lengths[answer.window] for answer in own])
    values = np.array([answer.value for answer in own], dtype=float)
    batches = np.concatenate([answer.batches for answer in own])
    if batches.size < 2:
        return None
    value = float(values @ weights / weights.sum())
    half = t_quantile(batches.size - 1) * float(batches.std(ddof=1)) / math.sqrt(batches.size)
    return Estimate(value, value - half, value + half)
