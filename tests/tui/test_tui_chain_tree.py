"""Compositions as trees: read from YAML, edited, drawn."""

from __future__ import annotations

from typing import Any

from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.domain.topology import Parallel, Series, Vnf
from workbench.tui.screens.chain import chain_rows
from workbench.tui.screens.chain.chain_drawing import drawing, window
from workbench.tui.screens.chain.chain_tree import (
    Leaf,
    PartGroup,
    Tree,
    added_behind,
    added_beside,
    at,
    auto_name,
    composition,
    field_of,
    instances,
    leaves,
    moved,
    removed,
    share_text,
    shared,
    tree_of,
    way_through,
    with_tree,
)

NAMES = st.sampled_from(["haproxy", "tinyproxy", "squid", "nginx"])
LEAVES = st.builds(Leaf, NAMES, st.sampled_from(["", "edge"]), passive=st.booleans())
TREES = st.recursive(
    LEAVES,
    lambda below: st.builds(
        PartGroup,
        st.sampled_from(["series", "parallel"]),
        st.lists(below, min_size=2, max_size=3).map(tuple),
    ),
    max_leaves=8,
)


def drawn(tree: Tree, width: int = 200, height: int = 40) -> list[str]:
    found = drawing(tree, lambda _: "", width, height, ("source", "sink"))
    rows, _, _ = window(found, (), width, height)
    return ["".join(text for text, _ in row).rstrip() for row in rows]


@given(TREES)
@settings(max_examples=examples(100), deadline=None, derandomize=True)
def test_a_tree_survives_its_descriptor(tree: Tree) -> None:
    back = tree_of(composition(tree))
    alone = isinstance(tree, Leaf) and (tree.name or tree.passive)
    assert back == (PartGroup("series", (tree,)) if alone else tree)


@given(TREES, st.data())
@settings(max_examples=examples(100), deadline=None, derandomize=True)
def test_edits_lose_no_function(tree: Tree, data: Any) -> None:
    count = len(list(leaves(tree)))
    path = data.draw(st.sampled_from([path for path, _ in leaves(tree)]))
    new = Leaf("firewall")
    for add in (added_behind, added_beside):
        more, where = add(tree, path, new)
        assert at(more, where) == new
        assert len(list(leaves(more))) == count + 1
    less, where = removed(tree, path)
    assert less is None if count == 1 else less is not None
    if less is not None:
        assert len(list(leaves(less))) == count - 1
        assert isinstance(at(less, where), Leaf)
    for by in (-1, 1):
        other, where = moved(tree, path, by)
        assert at(other, where) == at(tree, path)
        assert sorted(repr(leaf) for _, leaf in leaves(other)) == sorted(
            repr(leaf) for _, leaf in leaves(tree)
        )


@given(TREES)
@settings(max_examples=examples(100), deadline=None, derandomize=True)
def test_every_function_is_drawn_and_found_again(tree: Tree) -> None:
    found = drawing(tree, lambda _: "", 500, 200, ("source", "sink"))
    assert len({sum(len(text) for text, _, _ in row) for row in found.rows}) == 1
    seen = {found.part_at(x, y) for y in range(found.height) for x in range(found.width)}
    assert seen - {None} == {path for path, _ in leaves(tree)}


def test_boxes_where_there_is_room_and_lines_where_not() -> None:
    tree = PartGroup("series", (Leaf("haproxy"), PartGroup("parallel", (Leaf("a"), Leaf("b")))))
    assert drawn(tree) == [
        "                                    ┌───┐",
        "          ┌─────────┐    ┌─ 50 % ─▶ │ a │─┐",
        "source ─▶ │ haproxy │ ───┤          └───┘ ├──▶ sink",
        "          └─────────┘    │          ┌───┐ │",
        "                         └─ 50 % ─▶ │ b │─┘",
        "                                    └───┘",
    ]
    assert drawn(tree, height=4) == [
        "source ─▶  haproxy  ───┬─ 50 % ─▶  a ─┬──▶ sink",
        "                       └─ 50 % ─▶  b ─┘",
    ]


def test_what_does_not_fit_is_cut_around_the_part_that_is_chosen() -> None:
    tree = PartGroup("series", tuple(Leaf(f"function-{i}") for i in range(8)))
    found = drawing(tree, lambda _: "", 40, 5, ("source", "sink"))
    for index in range(8):
        rows, _, _ = window(found, (index,), 40, 5)
        text = "".join(text for text, _ in rows[0])
        assert f"function-{index}" in text
        assert len(text) == 40


def test_shares_that_are_given_leave_the_rest_to_the_others() -> None:
    tree = PartGroup("parallel", (Leaf("a"), Leaf("b"), Leaf("c")))
    assert _shares(shared(tree, (1,), "40%")) == ["30%", "40%", "30%"]
    assert _shares(shared(tree, (1,), "lots")) == [None, "lots", None]
    given = shared(tree, (1,), "40%")
    assert _shares(shared(given, (0,), "20%")) == ["20%", "40%", "30%"]
    assert _shares(shared(given, (0,), "")) == [None, None, None]


def _shares(tree: Tree) -> list[Any]:
    assert isinstance(tree, PartGroup)
    return [part.share for part in tree.parts]


def test_a_target_keeps_what_is_still_true() -> None:
    target = {
        "vnf": "haproxy",
        "resource_parameters": [{"name": "vcpu", "values": ["25%"]}],
        "primary_workload_parameter": {"range": ["1/s", "9/s"]},
    }
    both = PartGroup("series", (Leaf("haproxy"), Leaf("squid")))
    changed = with_tree(target, both, None, set())
    assert changed["name"] == "haproxy-squid"
    assert changed["resource_parameters"] == [{"vnf": "haproxy", "name": "vcpu", "values": ["25%"]}]
    assert changed["primary_workload_parameter"] == target["primary_workload_parameter"]
    renamed = with_tree(
        changed, PartGroup("series", (Leaf("haproxy", "edge"), Leaf("squid"))), None, set()
    )
    assert renamed["resource_parameters"][0]["vnf"] == "edge"
    assert renamed["name"] == "edge-squid"
    own = with_tree({**changed, "name": "mine"}, Leaf("squid"), None, set())
    assert own == {
        "name": "mine",
        "vnf": "squid",
        "primary_workload_parameter": {"range": ["1/s", "9/s"]},
    }
    assert with_tree(changed, both, None, {"haproxy-squid"})["name"] == "haproxy-squid-2"


def test_instances_and_fields() -> None:
    tree = tree_of({"series": ["a", {"parallel": ["b", {"vnf": "b", "name": "c"}]}]})
    assert tree is not None
    assert instances(tree, None) == ["a", "b", "c"]
    assert field_of(tree, (1, 1), 3) == ("targets", 3, "series", 1, "parallel", 1)


def test_lines_of_a_target_in_text_that_people_wrote() -> None:
    text = (
        "# a comment\nkind: campaign\ntargets:\n"
        "  # the first\n  - vnf: a\n    resource_parameters:\n      - {name: vcpu, values: [1]}\n"
        "\n  - vnf: b\nkpi: p95\n"
    )
    assert chain_rows.target_lines(text, 0) == (5, 9)
    assert chain_rows.target_lines(text, 1) == (9, 10)
    assert chain_rows.target_lines(text, 2) == (0, 0)
    assert chain_rows.target_lines("targets: []\n", 0) == (0, 0)


def test_a_split_is_called_a_split() -> None:
    pair = (Leaf("haproxy"), Leaf("tinyproxy"))
    assert auto_name(PartGroup("series", pair)) == "haproxy-tinyproxy"
    assert auto_name(PartGroup("parallel", pair)) == "split-haproxy-tinyproxy"
    behind = PartGroup("series", (Leaf("lb"), PartGroup("parallel", pair)))
    assert auto_name(behind) == "lb-split-haproxy-tinyproxy"
    a, b, lb = Vnf("a", "haproxy"), Vnf("b", "haproxy"), Vnf("lb", "haproxy")
    split = Parallel((a, Series((b, Vnf("c", "nginx")))), (0.5, 0.5))
    assert way_through(Series((lb, split))) == "lb → split (a | b → c)"
    assert way_through(lb) == "lb"


def test_shares_are_written_alike_however_they_were_typed() -> None:
    assert [share_text(s) for s in ("30%", "70 %", " 50 % ", "lots")] == [
        "30 %", "70 %", "50 %", "lots",
    ]  # fmt: skip
