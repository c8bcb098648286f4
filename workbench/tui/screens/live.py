"""One session, live or replayed: profile, configurations, usage, progress, event log."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Container
from textual.geometry import Offset
from textual.widgets import RichLog

from workbench.domain.messages import SkipConfiguration
from workbench.domain.projection import LOG_LINES, LogLine
from workbench.tui import present
from workbench.tui.legends import legend, plot_marks
from workbench.tui.plot import ProfilePlot
from workbench.tui.present import Choice, Shown
from workbench.tui.screens.base import Target
from workbench.tui.screens.session import SessionScreen
from workbench.tui.text import clock
from workbench.tui.widgets.configurations import ConfigurationList
from workbench.tui.widgets.rows import Rows

ZOOMS = ("", "plot", "configurations", "usage", "log")


class LiveScreen(SessionScreen):
    """Follows what is being measured until the user chooses a configuration."""

    NAME: ClassVar[str] = "live"

    def __init__(self) -> None:
        super().__init__()
        self.zoomed = 0
        self._logged = 0

    def middle(self) -> ComposeResult:
        yield ProfilePlot(id="plot")
        yield Rows(id="breakpoints")
        yield Rows(id="sample")
        with Container(id="panels"):
            yield ConfigurationList(id="configurations")
            yield Rows(id="usage")
        yield RichLog(id="log", max_lines=LOG_LINES, wrap=False, markup=False, min_width=20)

    def on_mount(self) -> None:
        self.query_one(RichLog).can_focus = False  # until it is zoomed

    # ------------------------------------------------------------------------- drawing

    def draw_middle(self, shown: Shown, choice: Choice) -> None:
        width = self.size.width
        self.query_one("#breakpoints", Rows).show([present.breakpoints(shown, choice, width)])
        self.query_one("#sample", Rows).show([present.sample_row(shown, choice)])
        self._draw_list(shown, choice)
        plot = self.query_one(ProfilePlot)
        title = present.plot_title(shown, choice, plot.size.width - 4)
        plot.show(present.figure(shown, choice), title)
        usage = self.query_one("#usage", Rows)
        usage.show(present.usage_rows(shown, choice, usage.size.width, usage.size.height))
        self._draw_log(shown)

    def _draw_list(self, shown: Shown, choice: Choice) -> None:
        panel = self.query_one(ConfigurationList)
        selected, items, width = shown.selected(choice), shown.view.configurations, panel.size.width
        index = next((i for i, item in enumerate(items) if item is selected), 0)
        rows = [present.list_row(shown, item, i == index, width) for i, item in enumerate(items)]
        panel.show_list(present.list_heading(shown, width), rows, index)

    def _draw_log(self, shown: Shown) -> None:
        log = self.query_one(RichLog)
        if not log.size or self.opened.frozen:
            return
        for line in shown.view.log:
            if line.seq > self._logged:
                log.write(_log_text(line, present.log_line(shown.view, line)))
                self._logged = line.seq

    # ------------------------------------------------------------------------- actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        watch = self.opened
        live = watch.commandable and watch.live.view.state in ("running", "paused")
        conditions = {
            "skip": live and bool(watch.live.view.configurations),
            "follow": self.choice.key is not None or bool(self.choice.sample),
        }
        return conditions.get(action, super().check_action(action, parameters))

    def legend(self) -> tuple[str, ...]:
        return legend(self.query_one(ProfilePlot).glyphs, plot_marks)

    def copied(self) -> tuple[str, str]:
        name, table = present.table_of(self.shown, self.choice)
        return f"the samples of {name}" if table else "", table

    def jump_targets(self) -> Iterator[Target]:
        yield from super().jump_targets()
        panel = self.query_one(ConfigurationList)
        for row, index in panel.visible_rows():
            yield panel.region.offset + Offset(1, row), partial(self._pick, index)

    def action_skip(self) -> None:
        selected = self.shown.selected(self.choice)
        if selected is not None:
            self.confirm(
                f"Skip {present.name_of(self.opened.live.view, selected)}?",
                f"Its {len(selected.samples)} samples stay; no more are taken.",
                SkipConfiguration(self.opened.session, selected.target, selected.configuration),
                "skipped",
            )

    def action_next_configuration(self) -> None:
        self._step(1)

    def action_previous_configuration(self) -> None:
        self._step(-1)

    def action_follow(self) -> None:
        self.choose(key=None, sample="")

    def action_log_y(self) -> None:
        self.choose(log_y=not self.choice.log_y)

    def action_log_x(self) -> None:
        now = present.figure(self.shown, self.choice).log_x
        self.choose(log_x=not now)

    def action_kpi(self) -> None:
        kpis = self.shown.kpis()
        now = self.shown.kpi(self.choice)
        self.choose(kpi=kpis[(kpis.index(now) + 1) % len(kpis)] if now in kpis else kpis[0])

    def action_zoom(self) -> None:
        self._zoom((self.zoomed + 1) % len(ZOOMS))

    def action_back(self) -> None:
        if self.zoomed:
            self._zoom(0)
        else:
            super().action_back()

    def on_configuration_list_picked(self, message: ConfigurationList.Picked) -> None:
        self._pick(message.index)

    def _pick(self, index: int) -> None:
        self.choose(key=self.shown.view.configurations[index].key, sample="")

    def _step(self, by: int) -> None:
        items = self.shown.view.configurations
        selected = self.shown.selected(self.choice)
        if selected is not None:
            index = next(i for i, item in enumerate(items) if item is selected)
            self._pick((index + by) % len(items))

    def _zoom(self, zoomed: int) -> None:
        for name in ZOOMS[1:]:
            self.set_class(name == ZOOMS[zoomed], f"zoom-{name}")
        self.zoomed = zoomed
        log = self.query_one(RichLog)
        log.can_focus = ZOOMS[zoomed] == "log"
        self.set_focus(log if log.can_focus else None)
        self.call_after_refresh(self.draw)


_LEVELS = {"warning": ("!", "bold"), "error": ("×", "bold reverse")}


def _log_text(line: LogLine, words: str) -> Text:
    sign, style = _LEVELS.get(line.level, (" ", ""))
    return Text(f"{clock(line.at)} {sign} {words}", style=style, end="")
