"""Styles that are remembered are those that Textual looks up."""

from __future__ import annotations

from typing import Any

import pytest
from fake_link import FakeClient, opened, redrawn
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

from workbench.tui.styling import RememberingStylesheet


def found_by(app: Any, stylesheet: Stylesheet) -> list[tuple[object, ...]]:
    """Of every node on the screens, its rules and those of its parts."""
    for screen in app.screen_stack:
        stylesheet.update(screen)
    return [
        (node, dict(node.styles.base._rules), {part: dict(node._component_styles[part].base._rules)
                                               for part in sorted(node._get_component_classes())})
        for screen in app.screen_stack for node in screen.walk_children(with_self=True)
    ]  # fmt: skip


async def check(pilot: Pilot[Any]) -> None:
    await redrawn(pilot)
    remembered = found_by(pilot.app, pilot.app.stylesheet)
    assert len(remembered) >= 20
    textual = Stylesheet(variables=pilot.app.get_css_variables())
    textual.source = dict(pilot.app.stylesheet.source)
    textual.parse()
    for one, other in zip(remembered, found_by(pilot.app, textual), strict=True):
        assert one == other


@pytest.mark.slow
async def test_they_are_the_same_whatever_has_the_focus_and_whichever_theme() -> None:
    for _ in range(2):  # the second application finds all of it known
        async with opened(FakeClient(), screen="recommend") as pilot:
            app: Any = pilot.app
            assert isinstance(app.stylesheet, RememberingStylesheet)
            await check(pilot)
            await pilot.press("e", "down")
            await check(pilot)
            first = app.theme
            for theme in ("workbench-light", first):
                app.theme = theme
                await check(pilot)
            next(iter(app.screen.query("Input"))).disabled = True
            await check(pilot)
            await pilot.resize_terminal(160, 50)
            await check(pilot)
            await pilot.press("escape", "question_mark")
            await check(pilot)


async def test_what_was_found_once_is_not_looked_up_again(monkeypatch: Any) -> None:
    async with opened(FakeClient()):
        pass
    asked: list[object] = []
    look_up = Stylesheet.apply

    def counted(self: Stylesheet, node: Any, **others: Any) -> None:
        asked.append(node)
        look_up(self, node, **others)

    monkeypatch.setattr(Stylesheet, "apply", counted)
    async with opened(FakeClient()) as pilot:
        nodes = len(pilot.app.screen.query("*"))
    assert len(asked) < nodes / 2


async def test_a_part_that_nobody_draws_is_not_looked_up() -> None:
    async with opened(FakeClient()) as pilot:
        await redrawn(pilot)
        widgets = list(pilot.app.screen.walk_children(with_self=True))
        parts = [name for each in widgets for name in each._get_component_classes()]
        looked_up = [name for each in widgets for name in each._component_styles]
        assert 0 < len(looked_up) < len(parts) / 4
        assert all(name in each._component_styles for each in widgets
                   for name in each._get_component_classes())  # fmt: skip
