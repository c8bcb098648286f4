"""Names and texts of others cannot break a format, nor say anything in it that was not said."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import jsonschema
import yaml
from check_jsonschema.builtin_schemas import get_builtin_schema
from examples import examples
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from recommended import P95, case_study, context, export
from ruamel.yaml import YAML
from test_recommendation_reports import Page

from workbench.domain.codec import from_plain
from workbench.domain.recommendations import Recommendation
from workbench.domain.topology import VnfTemplate
from workbench.exports.recommendation.base import Context
from workbench.exports.recommendation.naming import dns_label, dns_labels, file_stem, one_line
from workbench.exports.recommendation.provenance import sla_texts

NASTY = (
    "</title><script>alert(1)</script>",
    "</style></svg><img src=x onerror=alert(1)>",
    "{{ .Values.secret }} {{{x}}}",
    "$HOME ${TOKEN} $(id)",
    "-- rm -rf",
    '"quoted" \'twice\' \\',
    "a: b\n- c\n# d\r\n---\n...",
    "*x* _y_ `z` [l](http://x) ![i](y) | cell | ~~s~~ <!-- c -->",
    "yes", "1e3", "0x10", "12:30:00", "~", "null", "2026-01-01", "=1+1", "", " ",
    "\u2028\u0085\x00\x1b[31m", "| a |\n|---|\n", "]]>", "&lt;script&gt;", "!!python/object:x",
    "&anchor *alias", "1. one", "+ two",
)  # fmt: skip
texts = st.one_of(st.sampled_from(NASTY), st.text(max_size=40))
gentle = settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)


def hostile(text: str, names: list[str]) -> tuple[Recommendation, Context]:
    """A recommendation that says `text` wherever others may write."""
    made = case_study()
    assert made.chosen is not None
    assert made.verified is not None
    chosen = replace(
        made.chosen,
        allocation={f"{name}.vcpu": 0.5 for name in names} | {f"{names[0]}.flavor": text},
        replicas=dict.fromkeys(names, 2),
        cost_unit=text,
        extrapolated=(text,),
        usage={names[0]: 0.5},
    )
    return (
        replace(
            made,
            id=text,
            session=text,
            chain=text,
            slas=(replace(P95, text=text), replace(P95, kpi=text, text=text)),
            chosen=chosen,
            verified=replace(made.verified, sample_id=text, note=text),
            note=text,
        ),
        replace(
            context(made),
            version=text,
            templates={names[0]: VnfTemplate(text, image=text)},
            wl_label=text,
        ),
    )


everything = st.builds(hostile, texts, st.lists(texts, min_size=1, max_size=3, unique=True))


def written(format: str, about: tuple[Recommendation, Context]) -> Mapping[str, str]:
    found = export(format)(*about)
    for name in found:
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*\.(json|csv|md|html|yaml)", name)
    return found


def read(text: str) -> Any:
    old = yaml.safe_load(text)
    assert old == YAML(typ="safe").load(text)  # YAML 1.1 and 1.2 agree: nothing became a date
    return old


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [s for item in value.values() for s in strings(item)]
    if isinstance(value, list):
        return [s for item in value for s in strings(item)]
    return [value] if isinstance(value, str) else []


@cache
def compose_validator() -> Any:
    schema = get_builtin_schema("vendor.compose-spec")
    return jsonschema.validators.validator_for(schema)(schema)


@gentle
@given(everything)
def test_kubernetes_reads_what_was_written(about: tuple[Recommendation, Context]) -> None:
    made, _ = about
    for name, text in written("kustomize", about).items():
        document = read(text)
        facts = document["metadata"]["annotations"]
        assert facts["workbench/chain"] == one_line(made.chain)
        for key, fact in facts.items():
            assert re.fullmatch(r"workbench/[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", key)
            assert isinstance(fact, str)
        label = document["metadata"]["name"]
        assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", label)
        if name != "kustomization.yaml":
            (container,) = document["spec"]["template"]["spec"]["containers"]
            assert (container["name"], document["spec"]["replicas"]) == (label, 2)
            assert container["resources"]["limits"] == {"cpu": "500m"}


@gentle
@given(everything)
def test_helm_runs_no_template_of_others(about: tuple[Recommendation, Context]) -> None:
    made, _ = about
    assert made.chosen is not None
    (text,) = written("helm", about).values()
    values = read(text)
    assert len(values) == len(made.chosen.replicas)
    assert not any("{{" in s for s in strings(values))


@gentle
@given(everything)
def test_compose_resolves_no_variable_of_others(about: tuple[Recommendation, Context]) -> None:
    made, _ = about
    assert made.chosen is not None
    (text,) = written("compose", about).values()
    document = read(text)
    assert not list(compose_validator().iter_errors(document))
    assert len(document["services"]) == len(made.chosen.replicas)
    for string in strings(document):
        assert "$" not in string.replace("$$", "")
    labels = next(iter(document["services"].values()))["labels"]
    assert labels["workbench.chain"].replace("$$", "$") == one_line(made.chain)


@gentle
@given(everything)
def test_tosca_reads_what_was_written(about: tuple[Recommendation, Context]) -> None:
    made, _ = about
    (text,) = written("tosca", about).values()
    document = read(text)
    assert document["metadata"]["workbench.chain"] == one_line(made.chain)
    for node in document["topology_template"]["node_templates"].values():
        assert node["capabilities"]["virtual_compute"]["properties"]["virtual_cpu"] == {
            "num_virtual_cpu": 1
        }


@gentle
@given(everything)
def test_html_has_only_tags_of_ours(about: tuple[Recommendation, Context]) -> None:
    made, _ = about
    (text,) = written("html", about).values()
    page = Page(text)
    assert set(page.tags) <= {
        "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "div", "table",
        "thead", "tbody", "tr", "th", "td", "figure", "figcaption",
        "svg", "desc", "rect", "line", "path", "circle", "text",
    }  # fmt: skip
    assert page.tags.count("h1") == page.tags.count("body") == 1
    assert " ".join(one_line(made.note).split()) in " ".join(page.text.split())


@gentle
@given(everything)
def test_markdown_has_only_marks_of_ours(about: tuple[Recommendation, Context]) -> None:
    made, _ = about
    (text,) = written("md", about).values()
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    kinds = {t.type for t in tokens} | {c.type for t in tokens for c in t.children or ()}
    assert not kinds & {
        "html_inline", "link_open", "image", "code_inline", "em_open", "strong_open", "s_open",
        "fence", "code_block", "bullet_list_open", "ordered_list_open", "blockquote_open", "hr",
    }  # fmt: skip
    assert sum(t.type == "heading_open" for t in tokens) == 5
    assert sum(t.type == "table_open" for t in tokens) == 3
    said = [t.content for t in tokens if t.type == "inline"]
    shown = MarkdownIt("commonmark").renderInline(said[0])
    title = one_line(f"{made.chain}: {sla_texts(made)}")
    assert " ".join(Page(f"<p>{shown}</p>").text.split()) == title


@gentle
@given(everything)
def test_data_formats_read_back(about: tuple[Recommendation, Context]) -> None:
    made, _ = about
    (text,) = written("json", about).values()
    assert from_plain(json.loads(text)["recommendation"], Recommendation) == made
    (text,) = written("csv", about).values()
    header, *rows = csv.reader(io.StringIO(text))
    assert {len(row) for row in rows} == {len(header)}
    for cell in (cell for row in (header, *rows) for cell in row):
        assert not cell.startswith(("=", "+", "@"))
        assert "\n" not in cell


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(st.lists(texts, unique=True, max_size=6))
@example(["Back", "back", "back-2", "BACK", "b_a"])
@example(["x" * 80, "x" * 81, "x" * 63])
def test_labels_are_valid_distinct_and_kept_where_they_are_labels(names: list[str]) -> None:
    labels = dns_labels(names)
    assert list(labels) == names
    assert len(set(labels.values())) == len(names)
    for name, label in labels.items():
        assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", label)
        if dns_label(name) == name:
            assert label == name


@given(texts, texts)
@settings(max_examples=examples(100), deadline=None, derandomize=True)
def test_file_names_leave_no_folder(session: str, recommendation: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", file_stem(session, recommendation))


def test_one_recommendation_is_not_named_twice_in_its_file() -> None:
    assert file_stem("demo-1", "r1") == "demo-1-r1"
    assert file_stem("demo-1", "demo-1-r1") == "demo-1-r1"
    assert file_stem("..", "../../etc/passwd") == "etc-passwd"
