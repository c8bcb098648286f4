"""Predicted against measured: curves, errors, functions alone and chained, two sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

from textual.app import ComposeResult
from textual.widgets import Static

from workbench.domain import departures
from workbench.domain.counts import counted
from workbench.domain.parameters import Configuration
from workbench.domain.topology import Target
from workbench.tui.plots.figure import Figure
from workbench.tui.plots.legends import compare_marks, legend
from workbench.tui.plots.plot import ProfilePlot
from workbench.tui.present import Shown, ViewChoice
from workbench.tui.screens.base import HasList
from workbench.tui.screens.compare import (
    compare_figures,
    compare_lines,
    compare_tables,
    comparing,
    session_diff,
)
from workbench.tui.screens.compare.compare_asking import CompareAskingScreen
from workbench.tui.screens.compare.compare_lines import VIEWS, CompareLine
from workbench.tui.screens.compare.comparing import ComparisonSoFar
from workbench.tui.screens.dialogs import ChoiceScreen
from workbench.tui.text import kpi_name, plain, sentence
from workbench.tui.widgets.listing import Listing, RowOf
from workbench.tui.widgets.rows import Row, Rows, fit

ZOOMS = ("", "plot", "list")
LIST_MOST = {"-tall": 15, "-short": 4, "-low": 3}
"""Rows of the list by the height of the terminal; 6 elsewhere."""
PLOT_LEAST = 9
"""Rows that a plot keeps; tables get what is left."""
NO_CHAIN = """This session has no chain: a comparison needs a target of several functions.

{new} on the list of sessions starts a campaign that has one, and
`workbench canary {session} --chain NAME` measures a template's chain.

{view} goes on to two sessions against each other."""
NO_OTHER = """Two sessions against each other: what got worse or better
beyond chance and beyond the host's own A/A noise.

{other} chooses the session to compare this one with."""

OF_CHAINS = ("chain", "rule", "profiles", "read_left", "read_right", "show_live", "anew")
OF_CURVES = ("read_left", "read_right", "series", "log_y", "log_x", "zoom", "show_live")
"""Actions that need a chain, or something that is drawn."""
ASKED_ANEW = "comparing again …"
"""In place of why nothing could be compared before: that may hold no longer."""


class CompareScreen(CompareAskingScreen, HasList):
    """A list of configurations, outliers first; the plot follows its cursor."""

    NAME: ClassVar[str] = "compare"

    def __init__(self) -> None:
        super().__init__()
        self.zoomed = 0
        self._lines: tuple[CompareLine, ...] = ()
        self._loads: dict[Configuration, float] = {}
        """By configuration, the load that was chosen to be read out."""
        self.off: frozenset[str] = frozenset()
        """Names of series that are switched off, in every plot that has them."""
        self._said = ""
        """What stands in place of plot and list; empty where they are shown."""

    def middle(self) -> ComposeResult:
        yield Rows(id="views")
        yield Rows(id="verdict")
        yield Rows(id="busy")
        yield Rows(id="note")
        yield ProfilePlot(id="plot")
        yield Rows(id="limits")
        yield Rows(id="readout")
        yield Rows(id="tables")
        yield Listing(id="lines")
        yield Static("", id="empty", markup=False)

    def listing(self) -> Listing:
        return self.query_one(Listing)

    # ------------------------------------------------------------------------- what is shown

    @property
    def line(self) -> CompareLine | None:
        """The configuration under the cursor: the first, until somebody moves it."""
        first = self._lines[0] if self._lines else None
        return next((line for line in self._lines if line.configuration == self.here), first)

    def _load(self, line: CompareLine | None, loads: list[float]) -> float | None:
        """What is read out of a configuration."""
        chosen = self._loads.get(line.configuration) if line is not None else None
        return chosen if chosen in loads else compare_tables.default_load(line, loads)

    # ------------------------------------------------------------------------- drawing

    def draw_middle(self, shown: Shown, choice: ViewChoice) -> None:
        subject = self.subject()
        answer = self.answers.get(subject) if subject is not None else None
        if (
            self.answer is None
            or subject is None
            or (answer is not None and self._replaces(answer))
        ):
            self.answer = answer
        self.go_on()
        sessions = self.view == "sessions"
        target = self.target(self.answer.subject.chain if self.answer else "")
        self._draw_frame_of(target)
        self._said = said = self._empty(target)
        self._lay_out(said)
        if said:
            self._lines = self._lines if sessions else ()
            self.query_one("#empty", Static).update(said)
        elif sessions:
            self._draw_contrast(shown, choice)
        elif target is not None:
            self._draw_chain(target, shown, choice)

    def _replaces(self, answer: ComparisonSoFar) -> bool:
        """Whether it is drawn from now on. Where it is refused once more, and there are curves all
        the same, those before stay until the new ones are there."""
        if not answer.here:
            return False
        same = self.answer is not None and self.answer.subject == answer.subject
        return not same or answer.compared is not None or not self._wanted(answer)

    def _draw_frame_of(self, target: Target | None) -> None:
        width, found = self.size.width, comparing.chains(self.shown.view)
        name = target.name if target is not None and self.view != "sessions" else ""
        at = next((i for i, t in enumerate(found, 1) if t.name == name), 0)
        place = f"{at} of {len(found)}" if at and len(found) > 1 else ""
        row = compare_lines.views_row(self.view, name, place, self.answer if name else None, width)
        self.query_one("#views", Rows).show([row])
        busy = self.query_one("#busy", Rows)
        busy.display = self.asking.busy is not None
        if self.asking.busy is not None:
            subject, besides = self.subject(), ""
            if self.answer and self.answer.here and subject and self.answer.subject != subject:
                before = self.answer.subject
                besides = f"shown: {plain(before.chain)} {kpi_name(before.kpi)}, as before"
            words = self.asking.busy.ended_by(self.key("compare.drop"), besides)
            busy.show([((fit(f" … {words}", width), "accent"),)])

    def _empty(self, target: Target | None) -> str:
        """What to say in place of plot and list; empty where there is something to show."""
        key = self.key
        if self.view == "sessions":
            if self.contrast is None:
                return NO_OTHER.format(other=key("compare.other"))
            if self.contrast.refused is not None:
                advice = f"{key('compare.other')} chooses another session."
                return "\n".join(compare_lines.trouble_lines(self.contrast.refused, advice))
            seeing = self.seeing.busy
            return f"… {seeing.text}" if seeing is not None else ""
        if target is None:
            return NO_CHAIN.format(
                new=key("session.new"), view=key("compare.view"), session=plain(self.opened.session)
            )
        drawn = self.answer
        if drawn is not None and self.answers.get(drawn.subject) is not drawn:
            return ASKED_ANEW if not (drawn.charts or drawn.compared) else ""
        trouble = drawn.uncharted or drawn.refused if drawn is not None else None
        if drawn is None or trouble is None or drawn.charts or drawn.compared:
            return ""
        advice = f"{key('compare.anew')} tries again; {key('compare.profiles')} takes the profiles "
        advice += "of another session"
        advice += f"; {key('compare.insist')} uses them anyway." if self._can_insist() else "."
        if newer := self.came_since(drawn):
            came = f"{counted(newer, 'sample')} came since: {key('compare.anew')} compares again."
            advice = f"{came}\n{advice}"
        return "\n".join(compare_lines.trouble_lines(trouble, advice))

    def _lay_out(self, empty: str) -> None:
        zoom = ZOOMS[self.zoomed]
        self.query_one("#empty").display = bool(empty)
        self.query_one("#plot").display = not empty and zoom != "list"
        self.query_one("#lines").display = not empty and zoom != "plot"
        for id in ("#verdict", "#note", "#limits", "#readout", "#tables"):
            self.query_one(id).display = False

    def _put(self, id: str, rows: list[Row]) -> None:
        """Show these rows, or nothing."""
        widget = self.query_one(id, Rows)
        widget.display = bool(rows)
        widget.styles.height = max(1, len(rows))
        widget.show(rows)

    def _draw_chain(self, target: Target, shown: Shown, choice: ViewChoice) -> None:
        drawn, width = self.answer, self.size.width
        compared = drawn.compared if drawn is not None else None
        self._lines = compare_lines.lines_of(shown.view, target, compared)
        self._draw_verdict(target, width)
        self._draw_list(width)
        line = self.line
        kpi = drawn.subject.kpi if drawn is not None else shown.kpi(choice)
        chart = drawn.charts.get(line.configuration) if drawn is not None and line else None
        samples = comparing.samples_of(shown.view, target.name, line.configuration) if line else ()
        loads = compare_tables.loads_of(samples, kpi)
        at = self._load(line, loads)
        over = compare_lines.over(shown.view, target)
        name = f"{line.name} · " if line is not None else ""
        title = f"{name}{kpi_name(kpi)}{compare_lines.rule_of(drawn)} over {over}"
        tall = self.has_class("-tall")
        if self.view == "errors":
            noise = departures.error_of_noise(compared.comparison) if compared else 0.0
            figure = compare_figures.strip(self._lines, line, noise)
            title = f"error of each configuration in %, sorted · {kpi_name(kpi)}"
            self._put("#tables", self._error_tables(tall=tall))
        else:
            draw = compare_figures.functions if self.view == "functions" else compare_figures.curves
            figure = draw(
                compare_figures.Charted(
                    shown.view, target, chart, samples, kpi, at, choice.log_x, choice.log_y
                )
            )
            if self.view == "curves" or not self.has_class("-short"):
                self._put("#readout", [compare_tables.readout(chart, samples, kpi, at, width)])
            if tall and chart is not None:
                self._put("#limits", [compare_tables.limits_row(chart, width)])
            if self.view == "functions":
                self._put("#tables", compare_tables.function_rows(chart, at, kpi, width))
        self._plot(figure, title)

    def _draw_verdict(self, target: Target, width: int) -> None:
        drawn = self.answer
        verdict = compare_lines.verdict_row(drawn, width)
        if drawn is not None and not verdict and drawn.refused is not None:
            verdict = ((fit(f" ! {plain(str(drawn.refused))}", width), "warn"),)
        self._put("#verdict", [verdict] if verdict else [])
        note = compare_lines.notes_row(
            drawn,
            self._news(drawn, target) if drawn is not None else "",
            (self.key("compare.anew"), self.key("compare.rule")),
            width,
            tall=self.has_class("-tall"),
            replay=self.opened.replay is not None,
        )
        self._put("#note", [note] if note else [])

    def _news(self, drawn: ComparisonSoFar, target: Target) -> str:
        """What the answer that is drawn does not know of; empty where it knows all."""
        if drawn.refused is not None:
            newer = self.came_since(drawn)
        else:
            newer = comparing.valid_samples(self.shown.view, target.name) - drawn.samples
        if not drawn.here:
            return ""
        if newer > 0:
            return f"{counted(newer, 'sample')} came since"
        now = comparing.basis_of(self.shown.view, drawn.subject)
        changed = drawn.refused is None and drawn.basis not in (None, now)
        return "what it rests on has changed" if changed else ""

    def _error_tables(self, *, tall: bool) -> list[Row]:
        """Buckets, and where there is room the scores above them."""
        compared = self.answer.compared if self.answer is not None else None
        if compared is None:
            return []
        rows = compare_tables.bucket_rows(compared.comparison, self.size.width)
        if tall or ZOOMS[self.zoomed]:
            rows = [*compare_tables.score_rows(compared, self.size.width), ((" ", ""),), *rows]
        room = self.query_one("#middle").size.height - self._list_most()
        room -= 2 if ZOOMS[self.zoomed] else PLOT_LEAST
        return rows[: max(0, room)]

    def _draw_list(self, width: int) -> None:
        lines = self._lines
        most = max((line.score.mape for line in lines if line.score), default=0.0)
        compared = self.answer.compared if self.answer is not None else None
        kpi = compared.comparison.kpi if compared is not None else ""

        def row(index: int, here: bool, width: int) -> Row:
            return compare_lines.line_row(
                lines[index], kpi, here, most, width, awaited=self.asking.busy is not None
            )

        cursor = next((i for i, line in enumerate(lines) if line is self.line), 0)
        self._show_lines(compare_lines.heading(width), len(lines), row, cursor)

    def _show_lines(self, heading: Row, count: int, row: RowOf, cursor: int) -> None:
        """The list, as high as it needs to be; the plot gets the rest."""
        height = "1fr" if ZOOMS[self.zoomed] == "list" else min(self._list_most(), count + 1)
        self.listing().styles.height = height
        self.listing().show_lines(heading, count, row, cursor)

    def _list_most(self) -> int:
        """Rows that the list may have beside the plot."""
        most = next((rows for name, rows in LIST_MOST.items() if self.has_class(name)), 6)
        return min(most, len(self._lines) + 1) if self.view != "sessions" else most

    def _draw_contrast(self, shown: Shown, choice: ViewChoice) -> None:
        contrast, width = self.contrast, self.size.width
        assert contrast is not None
        assert contrast.compared is not None
        changes = self.changes
        rows = session_diff.summary_rows(contrast.compared, changes, width)
        self._put("#verdict", rows[:1])
        self._put("#note", rows[1:] if self.has_class("-tall") else rows[1:2])

        def row(index: int, here: bool, width: int) -> Row:
            return session_diff.change_row(shown.view, changes[index], here, width)

        cursor = min(self.change, max(0, len(changes) - 1))
        self._show_lines(session_diff.heading(width), len(changes), row, cursor)
        change = changes[cursor] if changes else None
        kpi = shown.kpi(choice)
        if change is not None and change.difference.figure in shown.kpis():
            kpi = change.difference.figure
        figure = session_diff.figure(
            shown.view, contrast.view, change, kpi, log_x=choice.log_x, log_y=choice.log_y
        )
        name = session_diff.name_of(shown.view, change.difference) if change is not None else ""
        self._plot(figure, f"{name} · {kpi_name(kpi)}".removeprefix(" · "))

    def _plot(self, figure: Figure, title: str) -> None:
        title = fit(title, self.size.width - 6).rstrip()
        if self.asking.busy is not None and not figure.marks and figure.fit is None:
            figure = replace(figure, empty="computing …")
        self.query_one(ProfilePlot).show(replace(figure, off=self.off), title)

    # ------------------------------------------------------------------------- actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        condition = self._conditions.get(action)
        return super().check_action(action, parameters) if condition is None else condition()

    @cached_property
    def _conditions(self) -> Mapping[str, Callable[[], bool]]:
        """When an action can be done, by its method; each drawing asks for all of them."""
        return {
            "chain": lambda: len(self._chains()) > 1,
            "kpi": lambda: len(self.shown.kpis()) > 1,
            "rule": lambda: bool(self._chains()) and len(self.rules) > 1,
            "drop": lambda: self.asking.busy is not None,
            "back": lambda: self.asking.busy is None,
            "anew": lambda: (
                self.asking.busy is None and (self.contrast is not None or bool(self._chains()))
            ),
            "profiles": lambda: bool(self._chains()),
            "insist": lambda: self._can_insist() and bool(self._chains()),
            "read_left": self._has_chain_curves,
            "read_right": self._has_chain_curves,
            "series": lambda: self.ready and not self._said and bool(self._series),
            "log_y": self._has_curves,
            "log_x": self._has_curves,
            "zoom": lambda: not self._said,
            "show_live": lambda: self._key_here() != "",
        }

    def why_not(self, method: str) -> str:
        if said := super().why_not(method):
            return said
        if method == "anew" and self.asking.busy is not None:
            return "It is being computed."
        if method == "insist":
            return "No profiles of another host were refused."
        if method in OF_CHAINS and not self._chains():
            return self._why_no_chain(method)
        if method in OF_CURVES and self._said:
            return "There is nothing to be drawn yet."
        no_axis = f"Errors have no such axis: {self.key('compare.view')} goes on to curves."
        return {
            **dict.fromkeys(("read_left", "read_right", "log_y", "log_x"), no_axis),
            "chain": "There is no other chain.",
            "kpi": "There is no other KPI.",
            "rule": "There is no other rule: the first answer says which ones apply.",
            "series": "The plot has no series.",
            "show_live": "Live has no curve of it.",
        }.get(method, "")

    def _why_no_chain(self, method: str) -> str:
        if self.view != "sessions":
            return "This session has no chain of several functions."
        if method == "anew":
            return f"No other session is chosen yet: {self.key('compare.other')} chooses one."
        return f"Two sessions are compared: {self.key('compare.view')} goes back to chains."

    def _chains(self) -> Sequence[object]:
        """Those that can be compared; none where sessions are."""
        return () if self.view == "sessions" else comparing.chains(self.shown.view)

    def _has_curves(self) -> bool:
        return self.view != "errors" and not self._said

    def _has_chain_curves(self) -> bool:
        return self._has_curves() and bool(self._chains())

    def _can_insist(self) -> bool:
        refused = self.answer is not None and self.answer.refused is not None
        return refused and self.profiles is not None and not self.insist

    def legend(self) -> tuple[str, ...]:
        return (
            *legend(self.query_one(ProfilePlot).glyphs, compare_marks),
            *([""] + [f"! {sentence(n)}" for n in self.answer.notes] if self.answer else []),
        )

    def copied(self) -> tuple[str, str]:
        return "the configurations and their errors", compare_lines.table(self._lines)

    def on_listing_moved(self) -> None:
        cursor = self.listing().cursor
        if self.view == "sessions":
            self.change = cursor
        elif cursor < len(self._lines):
            self.here = self._lines[cursor].configuration
        self.draw()

    def on_listing_opened(self) -> None:
        self.action_show_live()

    def action_view(self) -> None:
        self.view = VIEWS[(VIEWS.index(self.view) + 1) % len(VIEWS)]
        self.listing().cursor = self.listing().top = 0
        self.draw()

    def action_read_left(self) -> None:
        self._read(-1)

    def action_read_right(self) -> None:
        self._read(1)

    def _read(self, by: int) -> None:
        line, drawn = self.line, self.answer
        if line is None or drawn is None:
            return
        samples = comparing.samples_of(self.shown.view, drawn.subject.chain, line.configuration)
        loads = compare_tables.loads_of(samples, drawn.subject.kpi)
        at = self._load(line, loads)
        if loads:
            place = loads.index(at) if at in loads else 0
            self._loads[line.configuration] = loads[min(max(place + by, 0), len(loads) - 1)]
        self.draw()

    @property
    def _series(self) -> tuple[str, ...]:
        """Names of what the plot has, on or off."""
        return self.query_one(ProfilePlot).figure.names

    def action_series(self) -> None:
        """Choose one: it goes off, or on again."""
        options = [(n, f"{'off' if n in self.off else 'on '}  {n}") for n in self._series]

        def chosen(name: str | None) -> None:
            if name is not None:
                self.off ^= {name}
                self.draw()

        self.app.push_screen(ChoiceScreen("Switch off, or on again", options), chosen)

    def action_log_y(self) -> None:
        self.choose(replace(self.choice, log_y=not self.choice.log_y))

    def action_log_x(self) -> None:
        now = True if self.choice.log_x is None else self.choice.log_x
        self.choose(replace(self.choice, log_x=not now))

    def action_zoom(self) -> None:
        self.zoomed = (self.zoomed + 1) % len(ZOOMS)
        for name in ZOOMS[1:]:
            self.set_class(name == ZOOMS[self.zoomed], f"zoom-{name}")
        self.tell_zoom(ZOOMS[1:], self.zoomed)
        self.call_after_refresh(self.draw)

    def _key_here(self) -> str:
        """The key of the configuration under the cursor, where Live can show it."""
        line, drawn = self.line, self.answer
        if line is None or self._said or self.view == "sessions":
            return ""
        chain = drawn.subject.chain if drawn is not None else ""
        key = f"{chain}/{line.configuration.key}"
        return key if self.shown.view.configuration(key) is not None else ""

    def take_along(self, name: str) -> None:
        """Why is asked of the sample that is read out: of an outlier, where it departs most."""
        key, line = self._key_here(), self.line
        if name != "why" or not key or line is None or self.answer is None:
            return
        subject = self.answer.subject
        samples = comparing.samples_of(self.shown.view, subject.chain, line.configuration)
        at = self._load(line, compare_tables.loads_of(samples, subject.kpi))
        found = next((s for s in samples if s.wl == at and s.valid), None)
        if found is None and at is not None:
            found = min(samples, key=lambda s: abs(s.wl - at), default=None)
        if found is not None:
            self.opened.choose(replace(self.choice, key=key, sample=found.id, span=None))

    def action_show_live(self) -> None:
        if key := self._key_here():
            self.opened.choose(ViewChoice(key, kpi=self.choice.kpi))
            self.workbench.go("live")
