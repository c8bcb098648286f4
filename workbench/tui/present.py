"""From the state of a session to rows and figures; plain functions, tested without a terminal."""

from __future__ import annotations

from dataclasses import dataclass, replace

from workbench.domain.configurations import ConfigurationView, SamplePoint
from workbench.domain.event_log import LogLine
from workbench.domain.events import Progress, UsageTick
from workbench.domain.profiles import Breakpoint
from workbench.domain.projection import SessionView
from workbench.domain.samples import Usage
from workbench.tui import text
from workbench.tui.plots.figure import Asked, Figure, Fit, Limit, Line, Mark
from workbench.tui.sample_rows import within
from workbench.tui.widgets.rows import Look, Row, Span, fit, spread

STATES: dict[str, tuple[str, str, Look]] = {
    "planned": ("·", "planned", "dim"),
    "sampling": ("▶", "sampling", "accent"),
    "converged": ("✓", "converged", "good"),
    "max_samples": ("✓", "all samples", "good"),
    "skipped": ("»", "skipped", "dim"),
    "budget": ("$", "out of budget", "warn"),
    "unusable": ("!", "unusable", "bad"),
    "stopped": ("■", "stopped", "dim"),
}
"""Sign, words and look of a configuration's state."""

PHASES = {
    "queued": "queued",
    "deploying": "deploying",
    "allocating": "setting resources",
    "warming_up": "warming up",
    "measuring": "measuring",
    "fitting": "fitting",
    "paused": "paused",
}
BUSY_SHARE = 0.9
"""Usage of source, sink or a function that is marked as full (METHOD.md 4)."""
BUSY_HOST_SHARE = 0.85


@dataclass(frozen=True)
class Choice:
    """What the user chose to look at; None is *whatever is being measured* or the default."""

    key: str | None = None
    sample: str = ""
    """Id of a sample that was gone to; empty: the last one of the configuration."""
    kpi: str | None = None
    log_x: bool | None = None
    log_y: bool = True
    span: tuple[float, float] | None = None
    """The part of the range of loads that is looked at; None: all."""


@dataclass
class Shown:
    """Everything that one drawing of the live screen is made from."""

    view: SessionView
    usage: UsageTick | None = None
    progress: Progress | None = None

    def frozen(self) -> Shown:
        """A copy that later events leave alone. Its parts are immutable, so it is shallow."""
        view = replace(
            self.view,
            configurations=[replace(c, samples=list(c.samples)) for c in self.view.configurations],
            log=list(self.view.log),
            written=list(self.view.written),
            trials=[replace(t, samples=list(t.samples)) for t in self.view.trials],
            canaries=[replace(c, steps=list(c.steps)) for c in self.view.canaries],
        )
        return Shown(view, self.usage, self.progress)

    def selected(self, choice: Choice) -> ConfigurationView | None:
        """What to show: the chosen one, else the one being measured, else the first."""
        view = self.view
        for key in (choice.key, view.current):
            if key and (found := view.configuration(key)):
                return found
        return view.configurations[0] if view.configurations else None

    def kpi(self, choice: Choice) -> str:
        if choice.kpi:
            return choice.kpi
        return self.view.campaign.kpi if self.view.campaign else "p95_ms"

    def kpis(self) -> tuple[str, ...]:
        """KPIs that there are figures of, the campaign's own first."""
        own = self.kpi(Choice())
        found = {
            name: None for c in self.view.configurations for s in c.samples[:1] for name in s.kpis
        }
        return (own, *(name for name in found if name != own))


def name_of(view: SessionView, configuration: ConfigurationView) -> str:
    return text.configuration_name(view.campaign, configuration.target, configuration.configuration)


# ------------------------------------------------------------------------------------ figure


def figure(shown: Shown, choice: Choice) -> Figure:
    return within(_whole_figure(shown, choice), choice.span)


def _whole_figure(shown: Shown, choice: Choice) -> Figure:
    selected = shown.selected(choice)
    if selected is None:
        return Figure(empty="nothing planned yet")
    view, kpi = shown.view, shown.kpi(choice)
    plan = view.campaign.target_plan(selected.target) if view.campaign else None
    log_x = choice.log_x if choice.log_x is not None else not plan or plan.primary.scale == "log"
    curve = selected.curve if selected.curve and selected.curve.kpi == kpi else None
    asked = selected.asked
    return Figure(
        x_range=(plan.primary.low, plan.primary.high) if plan else None,
        marks=tuple(mark(sample, kpi, choice.sample) for sample in selected.samples),
        fit=Fit(curve.wl, curve.mean, curve.low, curve.high) if curve else None,
        asked=Asked(asked.wl, asked.low, asked.high) if asked else None,
        lines=tuple(
            Line(b.wl, b.low or b.wl, b.high or b.wl, text.plain(text.breakpoint_text(b)))
            for b in ranked(view, selected)
            if b.state == "found" and b.wl is not None
        ),
        limit=sla_limit(view, kpi),
        log_x=log_x,
        log_y=choice.log_y,
        empty=f"no samples yet: {STATES.get(selected.state, ('', selected.state, ''))[1]}",
    )


def mark(sample: SamplePoint, kpi: str, chosen: str = "") -> Mark:
    estimate, this = sample.kpis.get(kpi), sample.id == chosen
    if estimate is None:
        return Mark(sample.wl, None, None, None, sample.valid, this)
    pinned = sample.verdict == "pinned"
    return Mark(
        sample.wl,
        estimate.value,
        estimate.low,
        estimate.high,
        sample.valid,
        this,
        pinned=pinned,
    )


def sla_limit(view: SessionView, kpi: str) -> Limit | None:
    sla = view.campaign.sla if view.campaign else None
    if sla is None or sla.kpi != kpi:
        return None
    sign = {"<=": "≤", ">=": "≥"}[sla.direction]
    name, unit = text.kpi_parts(kpi)
    return Limit(sla.limit, f"SLA {name} {sign} {text.number(sla.limit)} {unit}".rstrip())


def plot_title(shown: Shown, choice: Choice, width: int) -> str:
    selected = shown.selected(choice)
    if selected is None:
        return "no configuration"
    name, unit = text.primary(shown.view, selected.target)
    over = f"{name} ({unit})" if unit else name
    kpi = text.kpi_name(shown.kpi(choice))
    title = f"{name_of(shown.view, selected)} · {kpi} over {over}"
    state = STATES.get(selected.state, ("", selected.state, ""))[1]
    return f"{title} · {state}" if len(title) + len(state) + 3 <= width else title


# ------------------------------------------------------------------------------------ rows


def header(shown: Shown, frozen: bool, replay: str, width: int) -> Row:
    view = shown.view
    looks: dict[str, Look] = {"running": "badge", "paused": "alert", "failed": "alert"}
    spans: list[Span] = [
        (f" {text.plain(view.session)} ", "strong"),
        (f" {view.state.upper()} ", looks.get(view.state, "strong")),
    ]
    if replay:
        spans += [(" ", ""), (f" {replay} ", "alert")]
    if frozen:
        spans += [(" ", ""), (f" FROZEN {text.clock(view.at)}, measuring goes on ", "alert")]
    campaign = view.campaign.name if view.campaign else ""
    about = " · ".join(text.plain(p) for p in (campaign, view.lab, f"seed {view.seed}") if p)
    return spread(tuple(spans), ((f"{about} ", "dim"),), width)


def notice(width: int) -> str:
    """One line that nobody may miss, also where the line is short."""
    if len(text.SIMULATED_NOTICE) < width:
        return text.SIMULATED_NOTICE
    return text.SIMULATED_NOTICE.replace(" (no Docker engine answered)", "")


def breakpoints(shown: Shown, choice: Choice, width: int) -> Row:
    selected = shown.selected(choice)
    title = " breakpoints " if width >= 78 else " "
    if selected is None or not selected.breakpoints:
        return ((title, "dim"), ("no breakpoint yet: too few samples", "dim"))
    spans: list[Span] = [(title, "dim")]
    for index, found in enumerate(ranked(shown.view, selected)):
        look: Look = "good" if found.state == "found" else "dim"
        spans += [(" · ", "dim")] * bool(index)
        spans.append((text.plain(text.breakpoint_text(found)), look))
    return tuple(spans)


def ranked(view: SessionView, item: ConfigurationView) -> list[Breakpoint]:
    """The breakpoints, the one that the list names first."""
    return sorted(item.breakpoints, key=lambda b: b.rule != _headline_rule(view))


def sample_row(shown: Shown, choice: Choice) -> Row:
    """The sample that was gone to, else the last one."""
    selected = shown.selected(choice)
    if selected is None or not selected.samples:
        return ((" last sample ", "dim"), ("none", "dim"))
    chosen = next((s for s in selected.samples if s.id == choice.sample), None)
    sample, kpi = chosen or selected.samples[-1], shown.kpi(choice)
    value = sample.kpis.get(kpi)
    figure = text.estimate(value) if value else "not stated"
    place = f" sample {selected.samples.index(sample) + 1 + selected.left_out} of {selected.taken} "
    spans: list[Span] = [
        (place if chosen else " last sample ", "dim"),
        (f"wl {text.number(sample.wl)}  {text.kpi_name(kpi)} {figure}  ", ""),
        *flags(sample),
    ]
    return tuple(spans)


def table_of(shown: Shown, choice: Choice) -> tuple[str, str]:
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


def flags(sample: SamplePoint) -> tuple[Span, ...]:
    """Validity, then throttling, then the labels that remark on it."""
    spans: list[Span] = (
        [("valid", "good")] if sample.valid else [(f"× not valid: {sample.reason}", "bad")]
    )
    if sample.verdict == "pinned":
        spans.append((" · pinned", "strong"))
    if sample.throttled_share > 0:
        spans.append((f" · throttled {text.percent(sample.throttled_share)} of periods", "warn"))
    others = [label for label in sample.labels if label != "throttled"]
    if others:
        spans.append((f" · {text.plain(' '.join(others))}", "dim"))
    return tuple(spans)


def log_line(view: SessionView, line: LogLine) -> str:
    """A line of the log, with configurations named as on the rest of the screen."""
    words = line.text
    for item in view.configurations:
        key = item.configuration.key
        if key and key in words:
            name = name_of(view, item)
            words = words.replace(item.key, name).replace(f"{item.target} {key}", name)
    return text.plain(words)


LIST_FIXED = 2 + 6 + 4
"""Columns of the list beside name and breakpoint: sign, samples, invalid."""


def list_heading(shown: Shown, width: int) -> Row:
    done = sum(c.state not in ("planned", "sampling") for c in shown.view.configurations)
    title = f" configurations {done}/{len(shown.view.configurations)}"
    found = _found_width(width)
    rule = _headline_rule(shown.view)
    name = fit(title, width - LIST_FIXED - found)
    return ((name, "strong"), (f"{'samples':>7}  ×  ", "dim"), (fit(rule, found), "dim"))


def list_row(shown: Shown, item: ConfigurationView, selected: bool, width: int) -> Row:
    sign, _, look = STATES.get(item.state, ("?", item.state, ""))
    found = _found_width(width)
    planned = shown.view.campaign.sampling.max_samples if shown.view.campaign else 0
    of = f"/{planned}" if planned else ""
    name = fit(name_of(shown.view, item), width - LIST_FIXED - found - 1)
    invalid = f"{item.invalid:>3}" if item.invalid else "   "
    return (
        (("›" if selected else " "), "accent"),
        (f"{sign} ", look),
        (name, "badge" if selected else ""),
        (f"{item.taken:>3}{of:<3}", ""),
        (f"{invalid} ", "bad" if item.invalid else "dim"),
        (fit(_headline(shown.view, item, wide=found > 12), found), "good"),
    )


def _found_width(width: int) -> int:
    return 20 if width >= 60 else 10


def _headline_rule(view: SessionView) -> str:
    """The breakpoint that the list names: the SLA's where there is one, else capacity or knee."""
    campaign = view.campaign
    if campaign and campaign.sla:
        return "sla"
    return "knee" if campaign and campaign.load.kind == "closed" else "capacity"


def _headline(view: SessionView, item: ConfigurationView, wide: bool) -> str:
    rule = _headline_rule(view)
    found: Breakpoint | None = next((b for b in item.breakpoints if b.rule == rule), None)
    if found is None:
        return ""
    if found.state != "found" or not found.wl:
        words = {"none_in_range": "not in range", "below_range": "below range"}
        return words.get(found.state, "…") if wide else found.state.partition("_")[0]
    if found.low is None or found.high is None:
        return text.number(found.wl)
    if wide:
        return f"{text.number(found.wl)} {text.interval(found.low, found.high)}"
    half = 50 * (found.high - found.low) / found.wl
    return f"{text.number(found.wl)} ±{half:.0f}%"


def usage_rows(shown: Shown, choice: Choice, width: int, height: int) -> list[Row]:
    """A heading and a bar per component; one line with figures alone where there is one line."""
    usage, when = _usage(shown, choice)
    if height <= 1:
        parts: list[Span] = [(" cpu ", "dim")]
        for name, used in usage:
            parts += [(f"{text.plain(name)} {_share(used)}{_mark_usage(name, used)}  ", "")]
        return [tuple(parts)]
    rows: list[Row] = [((fit(f" cpu {when}", width), "strong"),)]
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


def _share(used: Usage) -> str:
    return text.percent(used.cpu_share)


def _mark_usage(name: str, used: Usage) -> str:
    """`T37` where quota throttled 37 % of the periods, `!` where there is no CPU left."""
    limit = BUSY_HOST_SHARE if name == "host" else BUSY_SHARE
    full = "!" if used.cpu_share >= limit else ""
    throttled = f" T{100 * used.throttled_share:.0f}" if used.throttled_share >= 0.005 else ""
    return full + throttled


def _usage(shown: Shown, choice: Choice) -> tuple[list[tuple[str, Usage]], str]:
    """Usage now if the configuration shown is being measured, else in its last sample."""
    selected, view = shown.selected(choice), shown.view
    if selected is None:
        return [], ""
    live = shown.usage if view.state == "running" and selected.key == view.current else None
    if live:
        usage, when = live.usage, "now"
    elif selected.samples:
        usage, when = selected.samples[-1].usage, f"at wl {text.number(selected.samples[-1].wl)}"
    else:
        return [], ""
    vnfs: tuple[str, ...] = ()
    if view.campaign:
        target = view.campaign.target_plan(selected.target).target
        vnfs = tuple(v.name for v in target.vnfs)
    order = (*vnfs, *(n for n in usage if n not in vnfs and n not in _OTHERS), *_OTHERS)
    return [(name, usage[name]) for name in order if name in usage], when


_OTHERS = ("source", "sink", "host", "workbench")


def progress(shown: Shown, width: int) -> Row:
    view, trials = shown.view, shown.view.under_trial
    tick = shown.progress if trials or not view.finished else None
    taken = len(trials.samples) if trials else view.samples_taken
    taken = max(taken, tick.samples if tick else 0)
    planned = tick.samples_planned if tick else (view.plan.samples if view.plan else 0)
    spent = max(view.lab_s, tick.lab_s if tick else 0.0)
    share = min(1.0, taken / planned) if planned else 0.0
    if view.finished and not trials:
        share = 1.0 if view.state == "finished" else share
    spans: list[Span] = [(f" {_phase(shown)}  ", "strong")]
    if width >= 78:
        bar = 8 if width < 120 else 30
        full = round(share * bar)
        spans += [("█" * full, "accent"), ("·" * (bar - full), "dim"), ("  ", "")]
    spans.append((f"{taken}/{planned or '?'}{' samples' if width >= 78 else ''}", ""))
    invalid = trials.invalid if trials else sum(c.invalid for c in view.configurations)
    if invalid:
        spans.append((f" ({invalid} ×)" if width < 120 else f" ({invalid} not valid)", "bad"))
    budget = f" of {text.duration(view.budget_s)}" if view.budget_s else ""
    spans.append((f"  lab {text.duration(spent)}{budget}", ""))
    left = tick.eta_s if tick else (view.plan.lab_s - spent if view.plan else None)
    if left is not None and not view.finished:
        spans.append((f"  ETA {text.duration(left)}", "dim"))
    return tuple(spans)


def _phase(shown: Shown) -> str:
    view, tick = shown.view, shown.progress
    if trials := view.under_trial:
        return f"{trials.purpose}: {_doing(tick)}" if tick else trials.purpose
    if view.finished:
        return {"done": "done", "budget": "budget spent"}.get(
            view.finished.outcome, view.finished.outcome
        )
    if view.state == "paused":
        return "paused"
    if view.state not in ("running", "planned"):
        return view.state
    if tick is None:
        return "running" if view.state == "running" else "planned"
    return _doing(tick)


def _doing(tick: Progress) -> str:
    at = f" at {text.number(tick.wl)}" if tick.wl is not None else ""
    note = f" {text.plain(tick.note)}" if tick.note else ""
    return PHASES[tick.phase] + at + note
