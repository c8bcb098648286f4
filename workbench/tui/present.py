"""What is shown of a session, and the rows that all its screens have; plain functions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from workbench.domain.configurations import ConfigurationView
from workbench.domain.event_log import LogLine
from workbench.domain.events import Progress, UsageTick
from workbench.domain.kpis import P95
from workbench.domain.lab import SIMULATION, WHY_THIS_LAB
from workbench.domain.projection import SessionView
from workbench.domain.sessions import UNDER_WAY
from workbench.tui import text
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
    "waiting": "waiting",
}


ALIKE, ALIKE_S = 0.2, 2.0
"""Lab time and the clock's that differ by no more are one, as a share and in seconds."""


@dataclass(frozen=True)
class ViewChoice:
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

    @property
    def queued(self) -> bool:
        """Whether a run of it, or what is tried after one, waits for its turn at the lab."""
        waits = self.progress is not None and self.progress.phase == "queued"
        return waits and self.view.state not in UNDER_WAY and self.view.under_trial is None

    def frozen(self) -> Shown:
        """A copy that later events leave alone."""
        return Shown(self.view.copy(), self.usage, self.progress)

    def selected(self, choice: ViewChoice) -> ConfigurationView | None:
        """What to show: the chosen one, else the one being measured, else the first."""
        view = self.view
        for key in (choice.key, view.current):
            if key and (found := view.configuration(key)):
                return found
        return view.configurations[0] if view.configurations else None

    def kpi(self, choice: ViewChoice) -> str:
        if choice.kpi:
            return choice.kpi
        return self.view.campaign.kpi if self.view.campaign else P95

    def kpis(self) -> tuple[str, ...]:
        """KPIs that there are figures of, the campaign's own first."""
        own = self.kpi(ViewChoice())
        found = {
            name: None for c in self.view.configurations for s in c.samples[:1] for name in s.kpis
        }
        return (own, *(name for name in found if name != own))


def name_of(view: SessionView, configuration: ConfigurationView) -> str:
    return text.configuration_name(view.campaign, configuration.target, configuration.configuration)


def header(shown: Shown, frozen: bool, replay: str, width: int) -> Row:
    view = shown.view
    looks: dict[str, Look] = {
        "running": "badge",
        "pausing": "alert",
        "paused": "alert",
        "waiting": "alert",
        "failed": "alert",
    }
    tick = shown.progress if view.state == "running" else None
    state: str = "waiting" if tick and tick.phase == "waiting" else view.state
    state = "queued" if shown.queued else state
    spans: list[Span] = [
        (f" {text.plain(view.session)} ", "strong"),
        (f" {state.upper()} ", looks.get(state, "strong")),
    ]
    if replay:
        badge = f" {replay} "
        if sum(len(words) for words, _ in spans) + 1 + len(badge) > width:
            del spans[1]  # the state as of then; that this is a replay matters more
        spans += [(" ", ""), (badge, "alert")]
    if frozen:
        goes_on = ", measuring goes on" if view.state == "running" else ""
        spans += [(" ", ""), (f" FROZEN {text.clock(view.at)}{goes_on} ", "alert")]
    campaign = view.campaign.name if view.campaign else ""
    about = " · ".join(text.plain(p) for p in (campaign, view.lab, f"seed {view.seed}") if p)
    return spread(tuple(spans), ((f"{about} ", "dim"),), width)


def notice(view: SessionView, width: int) -> str:
    """One line that nobody may miss, also where the line is short: whose figures these are, and
    why; empty where the lab is not the simulated one."""
    if view.lab.partition(":")[0] != SIMULATION:
        return ""
    known = view.host.details.get(WHY_THIS_LAB, "") if view.host else ""
    whole = text.SIMULATED_NOTICE.format(text.WHY_SIMULATED.get(known, ""))
    return whole if len(whole) < width else text.SIMULATED_NOTICE.format("")


def log_line(view: SessionView, line: LogLine) -> str:
    """A line of the log, with configurations named as on the rest of the screen."""
    words = line.text
    if line.sample and line.sample in words:
        words = words.replace(line.sample, _sample_named(view, line.sample))
    for item in view.configurations:
        key = item.configuration.key
        if key and key in words:
            name = name_of(view, item)
            words = _named(_named(words, item.key, name), f"{item.target} {key}", name)
    return text.sentence(_trials_named(view, words) if "=" in words else words)


def _sample_named(view: SessionView, id: str) -> str:
    """What it is a sample of, in place of its id."""
    for item in view.configurations:
        if found := next((sample for sample in item.samples if sample.id == id), None):
            return f"of {name_of(view, item)} at {text.number(found.wl)}"
    return id


def _trials_named(view: SessionView, words: str) -> str:
    """The same for what was measured after the campaign, also of targets that it does not have."""
    for trials in view.trials:
        plans = {plan.target.name: plan for plan in trials.plans}
        for target, configuration in {(p.target, p.configuration) for p in trials.samples}:
            raw = f"{target} {configuration.key}"
            if target in plans and configuration.key and raw in words:
                vnfs = tuple(vnf.name for vnf in plans[target].target.vnfs)
                words = _named(words, raw, f"{target} {text.shares(configuration, vnfs)}")
    return words


def _named(words: str, key: str, name: str) -> str:
    """A name in place of a key, which ends with a figure: not of one that begins with that."""
    return re.sub(re.escape(key) + r"(?!\w|\.\d)", lambda _: name, words)


def progress(shown: Shown, width: int) -> Row:
    """What is done, and how far it is. Where both do not fit, the bar goes, then the end of what
    is done."""
    view, trials = shown.view, shown.view.under_trial
    tick = shown.progress if trials or shown.queued or not view.finished else None
    taken = len(trials.samples) if trials else view.samples_taken
    taken = max(taken, tick.samples if tick else 0)
    plan = None if trials else view.plan
    planned = tick.samples_planned if tick else (plan.samples if plan else 0)
    spent = max(view.lab_s, tick.lab_s if tick else 0.0)
    share = min(1.0, taken / planned) if planned else 0.0
    if view.finished and not trials:
        share = 1.0 if view.state == "finished" else share
    stopped = view.fleet if view.on_hosts and view.state not in UNDER_WAY else None
    spans: list[Span] = [(f"{taken}/{planned or '?'}{' samples' if width >= 78 else ''}", "")]
    if stopped is not None:
        spans = [(stopped.so_far + ", on its hosts" * (width >= 78), "")]
        share, spent = stopped.measured / max(1, stopped.shards), stopped.lab_s
    invalid = trials.invalid if trials else sum(c.invalid for c in view.configurations)
    if invalid:
        spans.append((f" ({invalid} ×)" if width < 120 else f" ({invalid} not valid)", "bad"))
    own_time = view.lab == "sim"  # elsewhere a budget is of the clock, of which the lab is a part
    of = " of" if own_time else ", budget"
    budget = f"{of} {text.duration(view.budget_s)}" if view.budget_s else ""
    spans.append((f"  lab {text.duration(spent)}{budget}", ""))
    left = tick.eta_s if tick else (plan.lab_s - spent if plan else None)
    if view.fleet is not None and tick is None:  # its hosts measure side by side
        left = view.fleet.eta_s
    if left is not None and (trials or not view.finished) and stopped is None:
        spans.append((f"  ETA {_to_go(left, tick.eta_wall_s if tick else None, width)}", "dim"))
    phase, room = _phase(shown), width - sum(len(words) for words, _ in spans) - 3
    bar = 8 if width < 120 else 30
    if width < 78 or len(phase) + bar + 2 > room:
        return ((f" {fit(phase, min(len(phase), room))}  ", "strong"), *spans)
    full = round(share * bar)
    done: list[Span] = [("█" * full, "accent"), ("·" * (bar - full), "dim"), ("  ", "")]
    return ((f" {phase}  ", "strong"), *done, *spans)


def _to_go(lab_s: float, clock_s: float | None, width: int) -> str:
    """Lab time, and what that is on the clock where it is another."""
    lab = text.duration(lab_s)
    if clock_s is None or abs(clock_s - lab_s) < max(ALIKE_S, ALIKE * lab_s):
        return lab
    clock = text.duration(clock_s)
    return f"{lab} (clock {clock})" if width < 120 else f"lab {lab}, about {clock} on the clock"


def _phase(shown: Shown) -> str:
    view, tick = shown.view, shown.progress
    if trials := view.under_trial:
        return f"{trials.purpose}: {_doing(tick)}" if tick else trials.purpose
    if shown.queued:
        return PHASES["queued"]
    if view.finished:
        return {"done": "done", "budget": "budget spent"}.get(
            view.finished.outcome, view.finished.outcome
        )
    if view.state == "paused":
        return "paused"
    if view.state == "pausing":
        return f"pausing after this sample: {_doing(tick)}" if tick else "pausing after this sample"
    if view.state not in ("running", "planned"):
        return view.state
    if tick is None:
        return "running" if view.state == "running" else "planned"
    return _doing(tick)


def _doing(tick: Progress) -> str:
    at = f" at {text.number(tick.wl)}" if tick.wl is not None else ""
    note = f", {text.sentence(tick.note)}" if tick.note else ""
    return PHASES[tick.phase] + at + note
