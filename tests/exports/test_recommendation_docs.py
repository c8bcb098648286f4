"""docs/exports.md shows what is written, and every format comes in by its entry point."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from recommended import case_study, context, export, shown

from workbench import plugins

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "exports.md").read_text()
BLOCKS = re.findall(r"^```\w+ (\S+)\n(.*?)^```$", DOCS, re.MULTILINE | re.DOTALL)
FORMATS = ("json", "csv", "md", "html", "kustomize", "helm", "compose", "tosca")


def test_every_format_is_registered_and_documented() -> None:
    assert set(plugins.names("recommendation_exports")) >= set(FORMATS)
    assert "--as json|csv|md|html|kustomize|helm|compose|tosca" in DOCS
    assert {name.rpartition(".")[2] for name, _ in BLOCKS} == {"json", "csv", "md", "yaml"}


@pytest.mark.parametrize(("name", "block"), BLOCKS, ids=[name for name, _ in BLOCKS])
def test_examples_of_the_docs_are_what_is_written(name: str, block: str) -> None:
    files = {n: text for f in FORMATS for n, text in shown(f).items()}
    text, position = files[name], 0
    for part in re.split(r"^ *\.\.\.\n|\.\.\.$", block, flags=re.MULTILINE):
        found = text.find(part, position)
        assert found >= 0, f"{name} has no more\n{part}"
        position = found + len(part)


def test_the_plot_of_the_docs_is_what_is_drawn() -> None:
    (report,) = export("md")(case_study(), context()).values()
    drawn = report[report.index("<svg") : report.index("</svg>") + len("</svg>\n")]
    assert (ROOT / "docs" / "images" / "recommendation.svg").read_text() == drawn


@pytest.mark.parametrize("format", FORMATS)
def test_an_export_is_pure(format: str) -> None:
    made, about = case_study(), context()
    first = export(format)(made, about)
    assert export(format)(made, about) == first
    assert (made, about) == (case_study(), context())
