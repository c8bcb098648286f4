"""Whatever a file holds, the answer is located sentences or a descriptor, never a trace."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from broken_descriptors import FILES
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from workbench import paths
from workbench.descriptors.checking import lint
from workbench.descriptors.loading import load_campaign
from workbench.domain.errors import DescriptorError
from workbench.paths import Workspace

SOURCES = sorted(paths.shipped("templates").rglob("*.yaml"))
MODERATE = settings(
    max_examples=examples(60),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["haproxy", "25%", "10kB", "300/s", "3s", "rate", "closed", "${X}", "vnf"]),
)
KEYS = st.sampled_from(
    """kind targets vnf chain series parallel share name range values resource_parameters
    primary_workload_parameter load sla windows files""".split()
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)


def check(path: Path, raw: bytes) -> None:
    path.write_bytes(raw)
    workspace = Workspace(path.parent)
    for mistake in lint(path, workspace=workspace):
        assert mistake.line >= 1
        assert mistake.column >= 1
        assert str(mistake).isprintable()
    try:
        load_campaign(str(path), workspace=workspace)
    except DescriptorError:
        return
    assert not lint(path, workspace=workspace)


@MODERATE
@given(raw=st.binary(max_size=200))
def test_random_bytes(raw: bytes, tmp_path: Path) -> None:
    check(tmp_path / "x.yaml", raw)


@MODERATE
@given(text=st.text(alphabet=st.sampled_from("abk:[]{}&*!|>%@`'\"#,-? \n\t<1.~=\\"), max_size=80))
def test_random_yaml_punctuation(text: str, tmp_path: Path) -> None:
    check(tmp_path / "x.yaml", text.encode())


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield from _places(value[key], (*path, key))


def _dumped(value: Any, path: Path) -> bytes:
    yaml = YAML(typ="safe", pure=True)
    yaml.dump(value, path)
    return path.read_bytes()


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_any_value_may_stand_anywhere(source: Path, tmp_path: Path) -> None:
    values = YAML(typ="safe", pure=True).load(source.read_text())
    places = list(_places(values))

    @settings(MODERATE, max_examples=examples(25))
    @given(place=st.sampled_from(places), tree=TREES)
    def replaced(place: tuple[Any, ...], tree: Any) -> None:
        root: Any = {"": deepcopy(values)}
        parent, key = root, ""
        for part in place:
            parent, key = parent[key], part
        parent[key] = tree
        check(tmp_path / "x.yaml", _dumped(root[""], tmp_path / "dump.yaml"))

    replaced()


@MODERATE
@given(source=st.sampled_from([*SOURCES, *FILES]), cut=st.integers(0, 2000), data=st.data())
def test_any_byte_may_go_wrong(source: Path, cut: int, data: st.DataObject, tmp_path: Path) -> None:
    raw = bytearray(source.read_bytes())
    position = cut % len(raw)
    raw[position : position + data.draw(st.integers(0, 30))] = data.draw(st.binary(max_size=5))
    check(tmp_path / "x.yaml", bytes(raw))
