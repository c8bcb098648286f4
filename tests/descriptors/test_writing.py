"""Descriptors are written so that they are read back as they were, and read well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import paths
from workbench.descriptors.document import parsed, read_document
from workbench.descriptors.writing import WIDTH, written

SHIPPED = sorted(
    path
    for kind in ("campaigns", "chains", "metrics")
    for path in (paths.shipped("templates") / kind).glob("*.yaml")
)

# The reader refuses control characters and halves of a pair, whoever wrote them.
TEXTS = st.text(
    st.one_of(
        st.characters(exclude_categories=("Cc", "Cs")),
        st.sampled_from("\n\t:#-?*&!|>'\"%@`{}[],= .~"),
    ),
    max_size=30,
)
SCALARS = st.one_of(
    TEXTS,
    st.sampled_from(
        [
            "yes",
            "no",
            "on",
            "null",
            "~",
            "true",
            "1",
            "1.5",
            "1e3",
            "0x1F",
            "1_000",
            ".inf",
            "2001-01-01",
            "12:30",
            "<<",
            "=",
            "---",
            "...",
            "",
            " a",
            "a ",
            "a: b",
            "a #b",
            "25%",
            "100/s",
            "p95<=200ms @ rate=300/s, filesize=10kB",
            "${NAME}",
        ]
    ),
    st.integers(-(10**18), 10**18),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
)
DOCUMENTS = st.dictionaries(
    TEXTS,
    st.recursive(
        SCALARS,
        lambda below: st.lists(below, max_size=5) | st.dictionaries(TEXTS, below, max_size=5),
        max_leaves=20,
    ),
    max_size=6,
)


def read_back(document: dict[str, Any]) -> Any:
    found = parsed(written(document), "draft")
    assert not found.mistakes
    return found.root


@given(DOCUMENTS)
@settings(max_examples=examples(100), deadline=None, derandomize=True)
def test_read_back_as_written(document: dict[str, Any]) -> None:
    assert repr(read_back(document)) == repr(document)  # 1 is not 1.0, nor True


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_descriptors_survive(path: Path) -> None:
    document = read_document(path).root
    text = written(document)
    assert parsed(text, "draft").root == document
    assert max(map(len, text.splitlines())) <= WIDTH + 20  # a text alone may be longer
    assert text == written(parsed(text, "draft").root), "writing twice changes nothing"


def test_written_as_people_write() -> None:
    document = {
        "kind": "campaign",
        "summary": "two functions",
        "targets": [
            {
                "vnf": "haproxy",
                "resource_parameters": [
                    {"vnf": "haproxy", "name": "vcpu", "values": ["12.5%", "25%"]}
                ],
            },
            {"name": "both", "series": ["tinyproxy", {"parallel": ["haproxy", "squid"]}]},
        ],
        "primary_workload_parameter": {"name": "rate", "range": ["100/s", "4000/s"]},
        "kpi": "p95",
        "sla": "p95<=100ms @ rate=400/s, filesize=10kB",
    }
    assert written(document) == (
        "kind: campaign\n"
        "summary: two functions\n"
        "\n"
        "targets:\n"
        "  - vnf: haproxy\n"
        "    resource_parameters:\n"
        "      - {vnf: haproxy, name: vcpu, values: [12.5%, 25%]}\n"
        "  - name: both\n"
        "    series:\n"
        "      - tinyproxy\n"
        "      - parallel: [haproxy, squid]\n"
        "\n"
        "primary_workload_parameter: {name: rate, range: [100/s, 4000/s]}\n"
        "kpi: p95\n"
        "sla: p95<=100ms @ rate=400/s, filesize=10kB\n"
    )


@pytest.mark.parametrize("value", [object(), {1: "a"}, {"a": (1,)}, b"bytes"])
def test_what_yaml_files_do_not_hold_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=r"must be text|do not hold"):
        written({"a": value})


def test_what_begins_with_a_zero_is_a_text_and_no_number() -> None:
    """A mode or a code of a function's environment lost its zeros."""
    found = parsed("a: 0755\nb: 0\nc: 10\nd: '007'\ne: 007\nf: 0.5\n", "draft").root
    assert found == {"a": "0755", "b": 0, "c": 10, "d": "007", "e": "007", "f": 0.5}
