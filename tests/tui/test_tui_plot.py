"""The plot, as text: everything on it must be told apart without colour."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.tui.plots.canvas import GLYPHS, Axis
from workbench.tui.plots.figure import (
    Asked,
    AxisStretch,
    BreakpointLine,
    Figure,
    Fit,
    Limit,
    Mark,
    draw,
)

WLS = tuple(10 * 160 ** (i / 99) for i in range(100))
MEAN = tuple(2 + (wl / 400) ** 3 for wl in WLS)
FULL = Figure(
    (10, 1600),
    (
        Mark(10, 2.0, 1.7, 2.4, True),
        Mark(400, 3.0, 1.0, 12.0, True),
        Mark(900, 14.0, 13.0, 15.0, False),
        Mark(1500, None, None, None, False),
    ),
    Fit(WLS, MEAN, tuple(0.5 * m for m in MEAN), tuple(2 * m for m in MEAN)),
    Asked(700, 500, 900),
    (
        BreakpointLine(780, 740, 820, "capacity 780 [740–820]"),
        BreakpointLine(512, 420, 560, "knee 512 [420–560]"),
    ),
    Limit(40.0, "SLA p95 ≤ 40 ms"),
)


def text(figure: Figure, width: int = 78, height: int = 16, glyphs: str = "braille") -> list[str]:
    canvas = draw(figure, width, height, GLYPHS[glyphs])
    rows = ["".join(character for character, _ in row) for row in canvas.cells]
    assert len(rows) == height
    assert all(len(row) == width for row in rows)
    return rows


def styles(figure: Figure, style: str) -> set[tuple[int, int]]:
    canvas = draw(figure, 78, 16, GLYPHS["braille"])
    return {
        (x, y)
        for y, row in enumerate(canvas.cells)
        for x, (_, found) in enumerate(row)
        if found == style
    }


def test_everything_is_on_the_plot_and_has_a_shape_of_its_own() -> None:
    shown = "\n".join(text(FULL))
    for part in ("●", "×", "┬", "┴", "░", "┝", "◇", "┥ next", "┊", "╌ SLA p95 ≤ 40 ms"):
        assert part in shown
    assert "capacity 780 [740–820]" in shown
    assert "knee 512 [420–560]" in shown
    assert any(0x2800 < ord(c) < 0x2900 for c in shown), "the curve is drawn in braille"


def test_the_band_surrounds_the_curve() -> None:
    flat = Fit((10.0, 1000.0), (10.0, 10.0), (3.0, 3.0), (30.0, 30.0))
    figure = Figure((10, 1000), (Mark(10, 1.0, 1.0, 1.0, True), Mark(10, 100.0, 1, 1, True)), flat)
    band, curve = styles(figure, "band"), styles(figure, "curve")
    (row,) = {y for _, y in curve}
    columns = {x for x, _ in curve}
    assert len(columns) > 60
    for x in columns:
        rows = sorted(y for column, y in band if column == x)
        assert rows[0] < row < rows[-1]
        assert abs((row - rows[0]) - (rows[-1] - row)) <= 1, "even on a log axis"


def test_unequal_intervals_are_drawn_unequal() -> None:
    figure = Figure((10, 1000), (Mark(100, 10.0, 9.9, 900.0, True),))
    rows = text(figure)
    column = next(row.index("●") for row in rows if "●" in row)
    drawn = [row[column] for row in rows]
    assert drawn.index("┬") < drawn.index("●") - 5
    assert "┴" not in drawn, "a low end in the same cell as the mark has no cap"


def test_a_sample_without_a_figure_stands_at_the_top_edge() -> None:
    assert text(FULL)[0].rstrip().endswith("×")


def test_the_next_interval_lies_on_the_axis_at_its_place() -> None:
    rows = text(FULL)
    axis = rows[-2]
    assert axis.index("┝") < axis.index("◇") < axis.index("┥")
    assert rows[-1].split()[0] == "10"


def test_a_limit_far_away_is_named_at_the_edge_with_an_arrow() -> None:
    shown = text(Figure((10, 1000), FULL.marks, limit=Limit(9e6, "SLA p95 ≤ 9000 s")))
    assert "SLA p95 ≤ 9000 s ↑" in shown[0]


def test_labels_do_not_cover_each_other() -> None:
    lines = tuple(BreakpointLine(700 + i, 690, 720, f"rule{i} {700 + i}") for i in range(5))
    shown = "\n".join(text(Figure((10, 1600), FULL.marks, lines=lines), height=40))
    assert all(f"rule{i} {700 + i}" in shown for i in range(5))


def test_a_low_plot_names_the_first_two_breakpoints_only() -> None:
    lines = tuple(BreakpointLine(700 + i, 690, 720, f"rule{i}") for i in range(5))
    shown = "\n".join(text(Figure((10, 1600), FULL.marks, lines=lines), height=9))
    assert [f"rule{i}" in shown for i in range(5)] == [True, True, False, False, False]


def test_the_limit_covers_no_curve_where_both_lie_in_one_row() -> None:
    flat = Fit((10.0, 1000.0), (10.0, 10.0), (9.9, 9.9), (10.1, 10.1))
    figure = Figure((10, 1000), (Mark(10, 1.0, 1, 1, True),), flat, limit=Limit(10.0, "SLA"))
    assert len(styles(figure, "curve")) > 70


def test_ascii_says_the_same_with_ascii_alone() -> None:
    shown = "\n".join(text(FULL, glyphs="ascii"))
    assert shown.isascii()
    assert "capacity 780 [740-820]" in shown
    assert all(mark in shown for mark in ("o", "x", "?", ":", "*", "!", "next"))


def test_block_dots_are_half_cells() -> None:
    shown = "\n".join(text(FULL, glyphs="block"))
    assert any(c in shown for c in "▀▄█")


def test_no_samples_is_said() -> None:
    assert "no samples yet" in "\n".join(text(Figure(empty="no samples yet")))


@pytest.mark.parametrize("size", [(0, 0), (1, 1), (15, 3), (16, 4), (20, 5), (300, 90)])
def test_any_size_can_be_drawn(size: tuple[int, int]) -> None:
    shown = "".join(text(FULL, *size))
    large_enough = size[0] >= 16 and size[1] >= 4
    assert any(mark in shown for mark in "●×") == large_enough
    assert bool(shown.strip()) == large_enough, "no half of a plot where there is no room"


@given(
    st.lists(
        st.tuples(st.floats(1e-3, 1e7), st.one_of(st.none(), st.floats(0, 1e6)), st.floats(0, 10)),
        max_size=12,
    ),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["braille", "block", "ascii"]),
)
@settings(max_examples=examples(60), deadline=None)
def test_any_samples_can_be_drawn(
    points: list[tuple[float, float | None, float]], log_x: bool, log_y: bool, glyphs: str
) -> None:
    marks = tuple(
        Mark(x, y, None if y is None else y / (1 + w), None if y is None else y * (1 + w), w < 5)
        for x, y, w in points
    )
    figure = Figure(None, marks, log_x=log_x, log_y=log_y)
    assert len(text(figure, 60, 12, glyphs)) == 12
    known = GLYPHS[glyphs]
    drawn = {cell for row in draw(figure, 60, 12, known).cells for cell in row}
    valid = any(mark.valid for mark in marks)
    assert ((known.valid, "sample") in drawn) == valid, "none is left out, or hidden by what is not"
    if marks and not valid:
        assert (known.invalid, "invalid") in drawn


@given(st.floats(1e-6, 1e6), st.floats(1.01, 1e6), st.integers(1, 20), st.booleans())
@settings(deadline=None)
def test_ticks_are_few_and_inside(low: float, factor: float, most: int, log: bool) -> None:
    axis = Axis(low, low * factor, log)
    ticks = axis.ticks(most)
    assert len(ticks) <= 2 * most + 2
    assert all(-0.01 <= axis.at(tick) <= 1.01 for tick in ticks)


def test_log_ticks_are_round() -> None:
    assert Axis(9, 2000, log=True).ticks(8) == pytest.approx(
        (10, 20, 50, 100, 200, 500, 1000, 2000)
    )
    assert Axis(1, 1e6, log=True).ticks(4) == pytest.approx((1, 100, 1e4, 1e6))
    assert Axis(100, 140, log=True).ticks(5) == pytest.approx((100, 110, 120, 130, 140))


def test_linear_ticks_are_round() -> None:
    assert Axis(0, 95, log=False).ticks(5) == pytest.approx((0, 20, 40, 60, 80))


def test_an_axis_puts_values_where_they_belong() -> None:
    assert Axis(1, 100, log=True).at(10) == pytest.approx(0.5)
    assert Axis(0, 10, log=False).at(2.5) == pytest.approx(0.25)
    assert math.isfinite(Axis(1, 100, log=True).at(0.0))


# ------------------------------------------------------------------- several curves, names


def several() -> Figure:
    ends = (10.0, 1000.0)
    flat = Fit(ends, (3.0, 3.0), (2.0, 2.0), (5.0, 5.0), label="predicted")
    other = Fit(ends, (30.0, 30.0), (3.0, 3.0), (60.0, 60.0), "dashed", "second", "measured")
    third = Fit(ends, (300.0, 300.0), (), (), "dotted", "third", "alone")
    return Figure(
        ends,
        (Mark(20.0, 1.0, None, None, True), Mark(90.0, 900.0, None, None, True, other=True)),
        flat,
        more=(third, other),
        along=(
            AxisStretch(10.0, 100.0, "tinyproxy"),
            AxisStretch(100.0, 1000.0, "haproxy", sure=False),
        ),
        series=("chain", "before"),
    )


@pytest.mark.parametrize("glyphs", ["braille", "block", "ascii"])
def test_curves_are_told_apart_by_their_lines(glyphs: str) -> None:
    canvas = draw(several(), 78, 20, GLYPHS[glyphs])
    inked = {
        look: sum(style == look for row in canvas.cells for _, style in row)
        for look in ("curve", "second", "third")
    }
    characters = {
        look: frozenset(c for row in canvas.cells for c, style in row if style == look)
        for look in inked
    }
    assert inked["curve"] == 78 - 4, "solid: every column of the plot"
    assert inked["second"] < inked["curve"]
    assert len({(inked[look], characters[look]) for look in inked}) == 3


def test_where_two_bands_lie_over_each_other_is_seen() -> None:
    shown = "\n".join(text(several(), height=24))
    assert all(band in shown for band in "░▒▓")
    alone = "\n".join(text(replace(several(), more=()), height=24))
    assert "░" in alone
    assert "▓" not in alone


def test_names_stand_along_the_axis_as_far_as_they_fit() -> None:
    wide, narrow = text(several())[-3], text(several(), width=24)[-3]
    assert "├ tinyproxy ─" in wide
    assert "├ haproxy ? ╌" in wide
    assert "tinyp" in narrow
    assert "…?" in narrow, "that it is a guess is said in any width"


def test_a_name_too_long_for_its_stretch_is_what_stands_before_its_colon() -> None:
    def said(label: str) -> str:
        return text(replace(several(), along=(AxisStretch(316.0, 1000.0, label),)))[-3]

    assert "├ overload ─" in said("overload: grows without bound")
    assert "├ nat: overload ─" in said("nat: overload: grows without bound")
    assert "…┤" in said("overload grows without bound"), "else as far as it fits"


def test_the_key_names_marks_and_curves_the_most_important_first() -> None:
    key = list(several().key(GLYPHS["braille"]))
    assert key == ["● chain", "◆ before", "⠤⠤⠤⠤ predicted", "⠤⠤ ⠤ measured", "⠤ ⠤  alone"]
    assert list(FULL.key(GLYPHS["braille"])) == [], "a profile has the plot's own"


@pytest.mark.parametrize("height", [5, 6, 7, 9, 12, 20])
@pytest.mark.parametrize(("value", "holds"), [(49.0, True), (97.0, True), (103.0, False)])
def test_what_holds_stands_below_the_limit_and_what_does_not_above(
    height: int, value: float, holds: bool
) -> None:
    marks = tuple(Mark(x, value, 0.8 * value, 1.02 * value, True) for x in (100.0, 150.0, 200.0))
    before = Fit((100.0, 200.0), (0.5, 20.0), (), ())
    made = Figure((100, 200), marks, before, limit=Limit(100.0, "guard p95 ≤ 100 ms"))
    rows = text(made, height=height)
    limit = next(i for i, row in enumerate(rows) if "╌╌" in row)
    at = next(i for i, row in enumerate(rows) if "●" in row)
    assert (at > limit) is holds
    assert at != limit
    assert rows[limit].startswith("100┤"), "its very value is on the axis"


@given(low=st.floats(1e-3, 1e5), factor=st.floats(1.3, 1e6), most=st.integers(1, 12))
@settings(max_examples=examples(200), derandomize=True)
def test_a_log_axis_has_two_ticks_at_least(low: float, factor: float, most: int) -> None:
    assert len(Axis(low, low * factor, log=True).ticks(most)) >= 2


@pytest.mark.parametrize("height", range(9, 24))
def test_where_names_stand_along_the_axis_ticks_stay_in_the_rows_of_their_values(
    height: int,
) -> None:
    """The plot is a row shorter then, and the limit's tick stood a row off its line."""
    along = (AxisStretch(10, 1000, "haproxy"),)
    marks = (Mark(10, 2.0, 1.7, 2.4, True), Mark(900, 14000.0, None, None, True))
    rows = text(Figure((10, 1000), marks, limit=Limit(100.0, "SLA"), along=along), height=height)
    assert next(row for row in rows if "╌╌" in row).startswith(("100┤", " 100┤"))
    assert sum("┤" in row.partition("│")[0][:5] for row in rows[:-3]) >= 2, "two ticks at least"
