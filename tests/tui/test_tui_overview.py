"""Many configurations at once on Live: a plot for each target, a sparkline for each of them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from fake_link import FakeClient, opened, redrawn, screen_text, story, until

from workbench.domain.events import CampaignPlanned
from workbench.domain.parameters import Configuration
from workbench.domain.profiles import BREAKPOINT_RULES
from workbench.domain.samples import Estimate
from workbench.tui.plots.canvas import GLYPHS
from workbench.tui.plots.figure import draw
from workbench.tui.plots.sparkline import sparkline
from workbench.tui.present import Shown, ViewChoice
from workbench.tui.screens.live.overview import multiples, overview

TARGETS = ("haproxy 25 %", "tinyproxy 50 %", "haproxy-tinyproxy 25+50 %", "tinyproxy-haproxy 50+25")


def shown() -> Shown:
    return Shown(FakeClient(story(finished=True)).view())


@pytest.mark.parametrize(("size", "plots"), [((160, 50), 4), ((80, 24), 4), ((60, 18), 1)])
async def test_every_target_has_a_plot_where_there_is_room(
    size: tuple[int, int], plots: int
) -> None:
    async with opened(FakeClient(story(finished=True)), size) as pilot:
        await pilot.press("v")
        await until(pilot, lambda: screen_text(pilot.app).count("╭─") == plots, "the plots")
        text = await redrawn(pilot)
        assert sum(name in text for name in TARGETS) == plots
        assert "tinyproxy-haproxy 50+25" in text, "the one shown is among them"
        assert (f"{plots} of 4 targets, V shows all" in text) == (plots < 4), "the rest is told of"
        await pilot.press("v")
        await until(pilot, lambda: "cpu" in screen_text(pilot.app), "all panels again")


async def test_before_anything_is_planned_that_is_said() -> None:
    async with opened(FakeClient(story()[:1]), (120, 30)) as pilot:
        assert "nothing planned yet" in screen_text(pilot.app)
        await pilot.press("v")
        await until(pilot, lambda: "no configuration" in screen_text(pilot.app), "one plot")
        text = await redrawn(pilot)
        assert "nothing planned yet" in text
        assert "shows all" not in text


async def test_no_more_than_nine_stand_side_by_side_and_that_is_said() -> None:
    events = story(finished=True)
    plan = next(event.fact for event in events if isinstance(event.fact, CampaignPlanned)).plan
    first = next(c for c in plan.configurations if c.target == "haproxy")
    many = tuple(
        replace(first, configuration=Configuration({"haproxy.vcpu": 0.1 * n}, {}))
        for n in range(1, 13)
    )
    told = replace(plan, configurations=many)
    client = FakeClient([events[0], replace(events[1], fact=CampaignPlanned(told))])
    async with opened(client, (160, 50)) as pilot:
        await pilot.press("v")
        await until(pilot, lambda: screen_text(pilot.app).count("╭─") == 9, "the plots")
        assert "9 of 12 configurations, V shows all" in await redrawn(pilot)


async def test_the_overview_has_a_line_for_each_and_moves_with_the_choice() -> None:
    async with opened(FakeClient(story(finished=True))) as pilot:
        await pilot.press("V")
        await until(pilot, lambda: "8 configurations" in screen_text(pilot.app), "the overview")
        text = await redrawn(pilot)
        assert "›✓ tinyproxy-haproxy 50+25 %" in text
        assert text.count("▁") > 8
        await pilot.press("j")
        assert "›✓ haproxy 12.5 %" in await redrawn(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: "╭─" in screen_text(pilot.app), "the plot again")
        assert pilot.app.screen.NAME == "live"


async def test_panels_come_back_whole_where_the_terminal_grew_meanwhile() -> None:
    async with opened(FakeClient(story(finished=True)), (60, 18)) as pilot:
        await pilot.press("V")
        await until(pilot, lambda: "8 configurations" in screen_text(pilot.app), "the overview")
        await pilot.resize_terminal(160, 50)
        await pilot.press("V")
        await until(pilot, lambda: "✓ haproxy-tinyproxy 25+50 %" in screen_text(pilot.app), "names")
        await until(pilot, lambda: " cpu at " in screen_text(pilot.app), "bars")


def test_hundreds_are_shown_a_page_at_a_time_with_the_one_shown_on_it() -> None:
    seen = shown()
    items = seen.view.configurations
    seen.view.configurations = [items[i % len(items)] for i in range(3)] + items * 40
    last = ViewChoice(key=items[-1].key)
    rows, places = overview(seen, last, 160, 40, False)
    assert len(rows) == 40
    assert any("›" in span for row in rows for span, _ in row)
    assert len({(line, column) for line, column, _ in places}) == len(places)


def test_a_single_target_is_shown_by_its_configurations() -> None:
    seen = shown()
    seen.view.configurations = seen.view.configurations[:2]
    made = multiples(seen, ViewChoice(), 4)
    assert [title.split(" ·")[0] for _, title in made] == ["haproxy 12.5 %", "haproxy 25 %"]


def test_a_sparkline_is_on_the_scale_of_all() -> None:
    assert sparkline([1.0, 10.0, None, 100.0], (1.0, 100.0), False) == "▁▅ █"
    assert sparkline([1.0, 100.0], (1.0, 100.0), True) == ".#"
    assert sparkline([None, None], None, False) == "  "
    assert sparkline([5.0], (5.0, 5.0), False) == "▁"


def line_of(seen: Shown, name: str, width: int = 80) -> str:
    """The sparkline of a configuration."""
    rows, _ = overview(seen, ViewChoice(), width, 20, False)
    row = next(row for row in rows if any(name in span for span, _ in row))
    return next(text for text, look in row if look == "accent" and len(text) > 10)


def test_a_sparkline_shows_saturation_where_the_fit_has_ended() -> None:
    seen = shown()
    item = seen.view.configurations[0]
    low, high = (lambda p: (p.low, p.high))(seen.view.campaign.target_plan(item.target).primary)
    assert item.curve is not None
    half = math.sqrt(low * high)
    fitted = [(wl, 1.0) for wl in (low, math.sqrt(low * half), half)]
    item.curve = replace(
        item.curve, wl=tuple(wl for wl, _ in fitted), mean=tuple(y for _, y in fitted)
    )
    samples = [sample for sample in item.samples if sample.valid][:2]
    item.samples = [
        replace(samples[0], wl=high, kpis={"p95_ms": Estimate(5000.0, 5000.0, 5000.0)}),
        replace(samples[1], wl=half, kpis={"p95_ms": Estimate(1.0, 1.0, 1.0)}),
    ]
    seen.view.configurations = [item]
    line = line_of(seen, "haproxy 12.5 %")[1:]
    assert line[0] == "▁"
    assert line[-1] == "█", "the saturated sample, which no fit covers"
    assert line[len(line) // 2 + 1 : -1].strip() == "", "what nobody measured is blank"
    assert len(line[: len(line) // 2].strip()) == len(line) // 2


def test_all_configurations_of_a_target_have_one_axis_of_loads() -> None:
    seen = shown()
    item = seen.view.configurations[0]
    half = replace(item, curve=None, samples=[s for s in item.samples if s.valid][:1])
    seen.view.configurations = [half]
    load = seen.view.campaign.target_plan(item.target).primary
    half.samples = [replace(half.samples[0], wl=math.sqrt(load.low * load.high))]
    line = line_of(seen, "haproxy 12.5 %")[1:]
    assert abs(line.index(line.strip()) - len(line) / 2) <= 1, "in the middle of the range"


def test_the_head_of_the_overview_fits_the_narrowest_terminal() -> None:
    seen = shown()
    head = overview(seen, ViewChoice(), 60, 15, False)[0][0][0][0]
    assert "…" not in head
    assert "over the load" in head
    seen.view.configurations = seen.view.configurations * 40
    head = overview(seen, ViewChoice(), 60, 15, False)[0][0][0][0]
    assert head.startswith(" 1–14 of 320 · p95 ")
    assert "…" not in head


def test_plots_side_by_side_have_one_scale() -> None:
    made = [figure for figure, _ in multiples(shown(), ViewChoice(), 4)]
    assert len(made) == 4
    drawn = [draw(figure, 60, 16, GLYPHS["braille"]).cells[:14] for figure in made]
    axes = {tuple("".join(sign for sign, _ in row[:4]) for row in rows) for rows in drawn}
    assert len(axes) == 1, "the same figures at the same heights"


def test_a_plot_among_others_names_its_breakpoint() -> None:
    seen = shown()
    titles = [title for _, title in multiples(seen, ViewChoice(), 4)]
    found = [c for c in seen.view.configurations if any(b.wl for b in c.breakpoints)]
    assert found
    named = [title for title in titles if "[" in title]
    assert named, titles
    assert all(title.split(" · ")[2].split()[0] in BREAKPOINT_RULES for title in named)
    planned = multiples(Shown(FakeClient(story()[:3]).view()), ViewChoice(), 4)
    assert all(title.endswith("planned") for _, title in planned), "else how far it is"
