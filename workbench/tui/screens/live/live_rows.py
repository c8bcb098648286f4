"""The rows of the screen Live: configurations, breakpoints, the last sample, CPU."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.domain.competitors import COMPETITOR
from workbench.domain.configurations import ConfigurationView, SamplePoint
from workbench.domain.gains import nothing_gained
from workbench.domain.profiles import Breakpoint
from workbench.domain.projection import SessionView
from workbench.domain.samples import Usage
from workbench.tui import text
from workbench.tui.present import STATES, Shown, ViewChoice, name_of
from workbench.tui.profile_figure import headline_rule, ranked
from workbench.tui.sample_rows import in_order
from workbench.tui.widgets.rows import Look, Row, Span, fit

BUSY_SHARE = 0.9
"""Usage of source, sink or a function that is marked as full (METHOD.md 4)."""
BUSY_HOST_SHARE = 0.85


def breakpoints(shown: Shown, choice: ViewChoice, width: int) -> Row:
    selected = shown.selected(choice)
    title = " breakpoints " if width >= 78 else " "
    if selected is None or not selected.breakpoints:
        return ((title, "dim"), ("no breakpoint yet: too few samples", "dim"))
    spans: list[Span] = [(title, "dim")]
    used, all_found = len(title), ranked(shown.view, selected)
    for index, found in enumerate(all_found):
        look: Look = "good" if found.state == "found" else "dim"
        words = text.plain(text.breakpoint_text(found))
        left = len(all_found) - index
        if index and used + 3 + len(words) + 5 * (left > 1) > width:  # five for how many follow
            spans.append((f" · +{left}", "dim"))
            break
        spans += [(" · ", "dim")] * bool(index)
        spans.append((words, look))
        used += 3 * bool(index) + len(words)
    for gain in nothing_gained(shown.view):
        words = text.sentence(gain.text)
        if gain.keys[1] == selected.key and used + 3 + len(words) <= width:
            spans += [(" · ", "dim"), (words, "warn")]
            used += 3 + len(words)
    return tuple(spans)


def sample_row(shown: Shown, choice: ViewChoice, width: int, why: str = "") -> Row:
    """The sample that was gone to, else the last one; `why` is the key that asks for the cause."""
    selected = shown.selected(choice)
    if selected is None or not selected.samples:
        return ((" last sample ", "dim"), ("none", "dim"))
    chosen = next((s for s in selected.samples if s.id == choice.sample), None)
    sample, kpi = chosen or selected.samples[-1], shown.kpi(choice)
    value = sample.kpis.get(kpi)
    figure = text.estimate(value) if value else "not stated"
    # By load, as the cursor goes: the first one taken is often that of the highest.
    number = [s.id for s in in_order(selected.samples)].index(sample.id) + 1
    place = f" sample {number} of {len(selected.samples)}{' shown' * bool(selected.left_out)} "
    spans: list[Span] = [
        (place if chosen else " last sample ", "dim"),
        (f"load {text.number(sample.wl)}  {text.kpi_name(kpi)} {figure}  ", ""),
    ]
    spans += flags(sample, width - sum(len(words) for words, _ in spans))
    words = f"  {why} why?"
    if why and chosen and not sample.valid and sum(len(w) for w, _ in spans) + len(words) <= width:
        spans.append((words, "accent"))
    return tuple(spans)


def table_of(shown: Shown, choice: ViewChoice) -> tuple[str, str]:
    """The configuration's name, and its samples with the KPI as tab-separated text."""
    selected, kpi = shown.selected(choice), shown.kpi(choice)
    if selected is None or not selected.samples:
        return "", ""
    lines = ["\t".join(("wl", "repetition", kpi, "low", "high", "valid", "reason"))]
    for sample in selected.samples:
        value = sample.kpis.get(kpi)
        figures = (value.value, value.low, value.high) if value else ("", "", "")
        fields = (sample.wl, sample.repetition, *figures, sample.valid, sample.reason)
        lines.append("\t".join(text.plain(str(field)) for field in fields))
    return name_of(shown.view, selected), "\n".join(lines) + "\n"


def flags(sample: SamplePoint, width: int) -> tuple[Span, ...]:
    """Validity, then throttling, then the labels that remark on it; whole ones, as far as there is
    room."""
    spans: list[Span] = (
        [("valid", "good")] if sample.valid else [(f"× not valid: {sample.reason}", "bad")]
    )
    if sample.verdict == "pinned":
        spans.append((" · pinned", "strong"))
    if sample.throttled_share > 0:
        periods = " of periods" if width >= 60 else ""
        spans.append((f" · throttled {text.percent(sample.throttled_share)}{periods}", "warn"))
    others = [label for label in sample.labels if label != "throttled"]
    spans += [(f" · {text.plain(label)}", "dim") for label in others]
    while len(spans) > 1 and sum(len(words) for words, _ in spans) > width:
        spans.pop()
    return tuple(spans)


LIST_FIXED = 2 + 6 + 4
"""Columns of the list beside name and breakpoint: sign, samples, invalid."""


def list_heading(shown: Shown, width: int) -> Row:
    done = sum(c.ended for c in shown.view.configurations)
    title = f" configurations {done}/{len(shown.view.configurations)}"
    found = _found_width(width)
    rule = headline_rule(shown.view)
    name = fit(title, width - LIST_FIXED - found)
    return ((name, "strong"), (f"{'samples':>7}  ×  ", "dim"), (fit(rule, found), "dim"))


def list_row(shown: Shown, item: ConfigurationView, selected: bool, width: int) -> Row:
    sign, _, look = STATES.get(item.state, ("?", item.state, ""))
    found = _found_width(width)
    planned = shown.view.campaign.sampling.max_samples if shown.view.campaign else 0
    of = f"/{planned}" if planned else ""
    name = _listed(shown.view, item, width - LIST_FIXED - found - 1)
    invalid = f"{item.invalid:>3}" if item.invalid else "   "
    return (
        (("›" if selected else " "), "accent"),
        (f"{sign} ", look),
        (name, "badge" if selected else ""),
        (f"{item.taken:>3}{of:<3}", ""),
        (f"{invalid} ", "bad" if item.invalid else "dim"),
        (fit(_headline(shown.view, item, wide=found > 12), found), "good"),
    )


def _listed(view: SessionView, item: ConfigurationView, room: int) -> str:
    """Its name; where that is too long, not the target that all have: the end tells them apart."""
    name = name_of(view, item)
    if len(name) > room and view.campaign is not None and len(view.campaign.targets) == 1:
        name = name.removeprefix(f"{text.plain(item.target)} ")
    return fit(name, room)


def _found_width(width: int) -> int:
    return 20 if width >= 60 else 10


def _headline(view: SessionView, item: ConfigurationView, wide: bool) -> str:
    rule = headline_rule(view)
    found: Breakpoint | None = next((b for b in item.breakpoints if b.rule == rule), None)
    if found is None:
        return ""
    if found.state != "found" or not found.wl:
        return _beyond(view, item.target, found, wide)
    if found.low is None or found.high is None:
        return text.number(found.wl)
    if wide:
        return f"{text.number(found.wl)} {text.interval(found.low, found.high)}"
    half = f" ±{min(999.0, 50 * (found.high - found.low) / found.wl):.0f} %"
    whole = text.number(found.wl)
    for digits in (2, 1):  # what is so unsure needs no third digit
        if len(whole) + len(half) > _found_width(0):
            whole = text.number(float(f"{found.wl:.{digits}g}"))
    return whole + half


def _beyond(view: SessionView, target: str, found: Breakpoint, wide: bool) -> str:
    """On which side of the range of loads it lies; a figure says it in the least room."""
    plan = view.campaign.find_target(target) if view.campaign is not None else None
    if found.state not in ("none_in_range", "below_range") or plan is None:
        return "…"
    above = found.state == "none_in_range"
    end = text.number(plan.primary.high if above else plan.primary.low)
    return f"{'above' if above else 'below'} {end}" if wide else f"{'>' if above else '<'} {end}"


def usage_rows(shown: Shown, choice: ViewChoice, width: int, height: int) -> list[Row]:
    """A heading and a bar per component; one line with figures alone where there is one line."""
    usage, when = _usage(shown, choice)
    if height <= 1:
        parts: list[Span] = [(" cpu ", "dim")]
        for name, used in usage:
            words = f"{text.plain(name)} {_share(used)}{_mark_usage(name, used)}"
            if sum(len(part) for part, _ in parts) + len(words) <= width:
                parts.append((f"{words}  ", ""))
        return [tuple(parts)]
    rows: list[Row] = [_usage_heading(shown, choice, when, usage, width)]
    label = min(max((len(name) for name, _ in usage), default=6), 16 if width >= 44 else 10)
    bar = max(4, width - label - 16)
    for name, used in usage:
        share = min(max(used.cpu_share, 0.0), 1.0)
        full = round(share * bar)
        mark = _mark_usage(name, used)
        look: Look = "warn" if mark else "accent"
        rows.append(
            (
                (f" {fit(text.plain(name), label)} ", ""),
                ("█" * full, look),
                ("·" * (bar - full), "dim"),
                (f"{_share(used):>6}", ""),
                (mark, "warn"),
            )
        )
    if not usage:
        rows.append(((" nothing measured yet", "dim"),))
    return rows


def _usage_heading(
    shown: Shown, choice: ViewChoice, when: str, usage: Sequence[tuple[str, Usage]], width: int
) -> Row:
    """At which load of which configuration; what the marks mean, where there is room."""
    selected, view = shown.selected(choice), shown.view
    words = f" cpu {when}"
    if selected is not None and usage:
        name = text.configuration_name(view.campaign, selected.target, selected.configuration)
        short = name.removeprefix(selected.target).strip()
        said = next((s for s in (name, short) if len(words) + len(s) + 3 <= width), "")
        words += f" · {said}" if said else ""
    legend = "  T: periods throttled by the quota"
    throttled = any(used.throttled_share >= THROTTLED for _, used in usage)
    room = throttled and len(words) + len(legend) <= width
    return ((fit(words, width - len(legend) * room), "strong"), (legend * room, "dim"))


def _share(used: Usage) -> str:
    return text.percent(used.cpu_share)


def _mark_usage(name: str, used: Usage) -> str:
    """`T37 %` where quota throttled 37 % of the periods, `!` where there is no CPU left."""
    limit = BUSY_HOST_SHARE if name == "host" else BUSY_SHARE
    full = "!" if used.cpu_share >= limit else ""
    share = used.throttled_share
    throttled = f" T{100 * share:.0f} %" if share >= THROTTLED else ""
    return full + throttled


def _usage(shown: Shown, choice: ViewChoice) -> tuple[list[tuple[str, Usage]], str]:
    """Usage now if the configuration shown is being measured, else in its last sample."""
    selected, view = shown.selected(choice), shown.view
    if selected is None:
        return [], ""
    live = shown.usage if view.state == "running" and selected.key == view.current else None
    if live:
        usage, when = live.usage, "now"
    elif selected.samples:
        usage, when = selected.samples[-1].usage, f"at {text.number(selected.samples[-1].wl)}"
    else:
        return [], ""
    vnfs: tuple[str, ...] = ()
    if view.campaign:
        target = view.campaign.target_plan(selected.target).target
        vnfs = tuple(v.name for v in target.vnfs)
    order = (*vnfs, *(n for n in usage if n not in vnfs and n not in _OTHERS), *_OTHERS)
    return [(name, usage[name]) for name in order if name in usage], when


THROTTLED = 0.005
"""Share of the periods from which on throttling is marked."""
_OTHERS = ("source", "sink", COMPETITOR, "host", "workbench")
