"""One session, live or replayed: profile, configurations, usage, progress, event log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Container
from textual.geometry import Offset

from workbench.domain.counts import counted
from workbench.domain.event_log import LogLine
from workbench.domain.messages import SkipConfiguration
from workbench.domain.projection import SessionView
from workbench.domain.sessions import UNDER_WAY
from workbench.domain.timeline import FindMoment
from workbench.tui import present, profile_figure
from workbench.tui.plots.legends import legend, plot_marks
from workbench.tui.plots.plot import ProfilePlot
from workbench.tui.present import Shown, ViewChoice
from workbench.tui.replaying.timeline_rows import timeline_marks
from workbench.tui.screens.base import Target
from workbench.tui.screens.live import live_rows
from workbench.tui.screens.live.overview import beside, multiples, overview
from workbench.tui.screens.live.sampling import SamplingScreen
from workbench.tui.text import clock
from workbench.tui.widgets.configurations import ConfigurationList
from workbench.tui.widgets.log_lines import LogLines
from workbench.tui.widgets.rows import Look, Rows

ZOOMS = ("", "plot", "configurations", "usage", "log")
VIEWS = ("", "targets", "overview")
"""What stands in the place of all panels: a plot for each target, a sparkline for each
configuration."""
MOST_PLOTS = 9
SMALLEST_PLOT = (38, 9)
"""Columns and lines of a plot beside others."""


class LiveScreen(SamplingScreen):
    """Follows what is being measured until the user chooses a configuration."""

    NAME: ClassVar[str] = "live"

    def __init__(self) -> None:
        super().__init__()
        self.zoomed = 0
        self.view = ""
        """Of `VIEWS`."""

    def middle(self) -> ComposeResult:
        yield ProfilePlot(id="plot")
        yield Rows(id="breakpoints")
        yield Rows(id="sample")
        with Container(id="panels"):
            yield ConfigurationList(id="configurations")
            yield Rows(id="usage")
        yield Rows(id="seen")
        with Container(id="multiples"):
            for _ in range(MOST_PLOTS):
                yield ProfilePlot()
        yield Rows(id="overview")
        yield LogLines(id="log")

    def on_mount(self) -> None:
        self.query_one(LogLines).can_focus = False  # until it is zoomed

    # ------------------------------------------------------------------------- drawing

    def draw_middle(self, shown: Shown, choice: ViewChoice) -> None:
        if self.view == "targets":
            self._draw_multiples(shown, choice)
            return
        if self.view == "overview":
            self._draw_overview(shown, choice)
            return
        width = self.size.width
        self.query_one("#breakpoints", Rows).show([live_rows.breakpoints(shown, choice, width)])
        self.query_one("#sample", Rows).show(
            [live_rows.sample_row(shown, choice, width, self.key("go.why"))]
        )
        self.query_one("#sample").set_class(bool(choice.sample), "-chosen")
        self.fill_in(shown, choice)
        self._draw_list(shown, choice)
        plot = self.query_one("#plot", ProfilePlot)
        title = profile_figure.plot_title(shown, choice, plot.size.width - 4)
        plot.show(profile_figure.figure(shown, choice), title)
        usage = self.query_one("#usage", Rows)
        usage.show(live_rows.usage_rows(shown, choice, usage.size.width, usage.size.height))
        self._draw_log(shown)

    def _draw_multiples(self, shown: Shown, choice: ViewChoice) -> None:
        grid, room = self.query_one("#multiples"), self.query_one("#middle").size
        columns = max(1, min(3, room.width // SMALLEST_PLOT[0]))
        lines = max(1, room.height // SMALLEST_PLOT[1])
        made = multiples(shown, choice, min(MOST_PLOTS, columns * lines))
        items, noun = beside(shown, choice)
        seen = self.query_one("#seen", Rows)
        seen.set_class(len(made) < len(items), "-some")
        words = (
            f" {len(made)} of {counted(len(items), noun)}, {self.key('view.overview')} shows all"
        )
        seen.show([((words, "warn"),)])
        lines = max(1, -(-len(made) // columns))
        grid.styles.grid_size_columns = max(1, -(-len(made) // lines))
        grid.styles.grid_size_rows = lines
        for index, plot in enumerate(grid.query(ProfilePlot)):
            plot.display = index < len(made)
            if plot.display:
                plot.show(*made[index])

    def _draw_overview(self, shown: Shown, choice: ViewChoice) -> None:
        panel, room = self.query_one("#overview", Rows), self.query_one("#middle").size
        ascii_only = self.query_one("#plot", ProfilePlot).glyphs.dots == (1, 1)
        rows, _ = overview(shown, choice, room.width, room.height, ascii_only)
        panel.show(rows)

    def _draw_list(self, shown: Shown, choice: ViewChoice) -> None:
        panel = self.query_one(ConfigurationList)
        selected, items, width = shown.selected(choice), shown.view.configurations, panel.size.width
        index = next((i for i, item in enumerate(items) if item is selected), 0)
        panel.show_list(
            live_rows.list_heading(shown, width),
            len(items),
            lambda i: live_rows.list_row(shown, items[i], i == index, width),
            index,
        )

    def _draw_log(self, shown: Shown) -> None:
        log = self.query_one(LogLines)
        if log.size:
            log.show(shown.view.log, lambda line: _log_words(shown.view, line))

    # ------------------------------------------------------------------------- actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        watch = self.opened
        live = watch.commandable and watch.live.view.state in UNDER_WAY
        conditions = {
            "skip": live and bool(watch.live.view.configurations),
            "follow": self.choice.key is not None or bool(self.choice.sample),
        }
        return conditions.get(action, super().check_action(action, parameters))

    def why_not(self, method: str) -> str:
        if method == "follow":
            return "What is being measured is shown already."
        if method == "skip" and self.opened.live.view.state in UNDER_WAY:
            return self.why_no_command() or "Nothing is measured yet."
        return super().why_not(method)

    def legend(self) -> tuple[str, ...]:
        return legend(self.query_one("#plot", ProfilePlot).glyphs, plot_marks, timeline_marks)

    def copied(self) -> tuple[str, str]:
        name, table = live_rows.table_of(self.shown, self.choice)
        return f"the samples of {name}" if table else "", table

    def jump_targets(self) -> Iterator[Target]:
        yield from super().jump_targets()
        panel = self.query_one(ConfigurationList)
        for row, index in panel.visible_rows():
            yield panel.region.offset + Offset(1, row), partial(self._pick, index)

    def take_along(self, name: str) -> None:
        """Why is asked of the sample under the cursor; without one, of that which is nearest to
        the breakpoint of the configuration that was chosen."""
        selected = self.shown.selected(self.choice)
        if name != "why" or self.here is not None or self.choice.key is None or selected is None:
            return
        found = next(iter(profile_figure.ranked(self.shown.view, selected)), None)
        at = found.wl if found is not None else None
        samples = [sample for sample in selected.samples if sample.valid]
        if at is not None and samples:
            nearest = min(samples, key=lambda sample: abs(sample.wl - at))
            self.opened.choose(replace(self.choice, key=selected.key, sample=nearest.id))

    def action_skip(self) -> None:
        selected = self.shown.selected(self.choice)
        if selected is not None:
            self.confirm(
                f"Skip {present.name_of(self.opened.live.view, selected)}?",
                f"Its {counted(selected.taken, 'sample')} stay{'s' * (selected.taken == 1)}; "
                "no more are taken.",
                SkipConfiguration(self.opened.session, selected.target, selected.configuration),
                "skipped",
            )

    def action_replay_from(self) -> None:
        selected = self.shown.selected(self.choice)
        if selected is not None:
            place = FindMoment(
                self.opened.session,
                target=selected.target,
                configuration=selected.configuration,
            )
            self.go_to_moment(place)

    def action_next_configuration(self) -> None:
        self._step(1)

    def action_previous_configuration(self) -> None:
        self._step(-1)

    def action_follow(self) -> None:
        self.choose(replace(self.choice, key=None, sample=""))

    def action_log_y(self) -> None:
        self.choose(replace(self.choice, log_y=not self.choice.log_y))

    def action_log_x(self) -> None:
        now = profile_figure.figure(self.shown, self.choice).log_x
        self.choose(replace(self.choice, log_x=not now))

    def action_kpi(self) -> None:
        kpis = self.shown.kpis()
        now = self.shown.kpi(self.choice)
        later = (kpis.index(now) + 1) % len(kpis) if now in kpis else 0
        self.choose(replace(self.choice, kpi=kpis[later]))

    def action_side_by_side(self) -> None:
        self._show_view("" if self.view == "targets" else "targets")

    def action_overview(self) -> None:
        self._show_view("" if self.view == "overview" else "overview")

    def _show_view(self, view: str) -> None:
        self._zoom(0)
        for name in VIEWS[1:]:
            self.set_class(name == view, f"view-{name}")
        self.view = view

    def action_zoom(self) -> None:
        if self.view:
            self._show_view("")
        self._zoom((self.zoomed + 1) % len(ZOOMS))
        self.tell_zoom(ZOOMS[1:], self.zoomed)

    def action_back(self) -> None:
        if self.view:
            self._show_view("")
        elif self.zoomed:
            self._zoom(0)
        else:
            super().action_back()

    def on_configuration_list_resized(self) -> None:
        """Panels that come back have their size after the drawing that brought them back."""
        self.draw()

    def on_configuration_list_picked(self, message: ConfigurationList.Picked) -> None:
        self._pick(message.index)

    def _pick(self, index: int) -> None:
        self.choose(replace(self.choice, key=self.shown.view.configurations[index].key, sample=""))

    def _step(self, by: int) -> None:
        items = self.shown.view.configurations
        selected = self.shown.selected(self.choice)
        if selected is not None:
            index = next(i for i, item in enumerate(items) if item is selected)
            self._pick((index + by) % len(items))

    def action_first_configuration(self) -> None:
        if self.shown.view.configurations:
            self._pick(0)

    def action_last_configuration(self) -> None:
        if items := self.shown.view.configurations:
            self._pick(len(items) - 1)

    def _zoom(self, zoomed: int) -> None:
        for name in ZOOMS[1:]:
            self.set_class(name == ZOOMS[zoomed], f"zoom-{name}")
        self.zoomed = zoomed
        log = self.query_one(LogLines)
        log.can_focus = ZOOMS[zoomed] == "log"
        self.set_focus(log if log.can_focus else None)
        self.call_after_refresh(self.draw)


_LEVELS: dict[str, tuple[str, Look]] = {"warning": ("!", "strong"), "error": ("×", "alert")}


def _log_words(view: SessionView, line: LogLine) -> tuple[str, Look]:
    sign, look = _LEVELS.get(line.level, (" ", ""))
    return f"{clock(line.at)} {sign} {present.log_line(view, line)}", look
