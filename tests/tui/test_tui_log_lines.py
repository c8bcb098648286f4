"""A log that others write faster than anybody reads."""

from __future__ import annotations

from textual.app import App, ComposeResult

from workbench.domain.event_log import LogLine
from workbench.tui.widgets.log_lines import LogLines
from workbench.tui.widgets.rows import Look

HEIGHT = 5


class Log(App[None]):
    CSS = f"LogLines {{ height: {HEIGHT}; scrollbar-size: 0 0; }}"

    def compose(self) -> ComposeResult:
        yield LogLines()

    @property
    def log_lines(self) -> LogLines:
        return self.query_one(LogLines)

    def seen(self) -> list[str]:
        return [self.log_lines.render_line(y).text.rstrip() for y in range(HEIGHT)]


class Writer:
    """Words for lines, and which lines it was asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def __call__(self, line: LogLine) -> tuple[str, Look]:
        self.asked.append(line.seq)
        return f"{line.seq} {line.text}", ""


def lines(first: int, count: int) -> list[LogLine]:
    return [LogLine(seq, 0.0, "info", "said") for seq in range(first, first + count)]


async def test_of_many_lines_only_those_that_are_seen_are_made() -> None:
    app, words = Log(), Writer()
    async with app.run_test() as pilot:
        app.log_lines.show(lines(1, 500), words)
        await pilot.pause()
        assert app.seen() == [f"{n} said" for n in range(496, 501)]
        app.log_lines.show(lines(301, 500), words)
        await pilot.pause()
        assert app.seen() == [f"{n} said" for n in range(796, 801)]
        assert set(words.asked) == {*range(496, 501), *range(796, 801)}


async def test_the_same_lines_are_not_made_again() -> None:
    app, words, same = Log(), Writer(), lines(1, 20)
    async with app.run_test() as pilot:
        app.log_lines.show(same, words)
        await pilot.pause()
        words.asked.clear()
        app.log_lines.show(list(same), words)
        await pilot.pause()
        assert words.asked == []


async def test_who_scrolled_away_is_left_there_until_he_comes_back() -> None:
    app, words = Log(), Writer()
    async with app.run_test() as pilot:
        written = lines(1, 20)
        app.log_lines.show(written, words)
        app.log_lines.focus()
        await pilot.press("home")
        await pilot.pause()
        assert app.seen()[0] == "1 said"
        written += lines(21, 10)
        app.log_lines.show(written, words)
        await pilot.pause()
        assert app.seen()[0] == "1 said"
        await pilot.press("end")
        await pilot.pause()
        written += lines(31, 10)
        app.log_lines.show(written, words)
        await pilot.pause()
        assert app.seen()[-1] == "40 said"


async def test_a_line_that_is_cut_says_so() -> None:
    app, words = Log(), Writer()
    async with app.run_test(size=(20, 10)) as pilot:
        long = [LogLine(1, 0.0, "info", "answers 200 with 10000 bytes")]
        app.log_lines.show(long, words)
        await pilot.pause()
        assert app.seen()[0] == "1 answers 200 with …"


async def test_another_log_takes_the_place_of_a_longer_one() -> None:
    app, words = Log(), Writer()
    async with app.run_test() as pilot:
        app.log_lines.show(lines(1, 300), words)
        await pilot.pause()
        app.log_lines.show(lines(1, 3), words)
        await pilot.pause()
        assert app.seen() == ["1 said", "2 said", "3 said", "", ""]
