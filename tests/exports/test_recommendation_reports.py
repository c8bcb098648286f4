"""Recommendations as people read them: JSON, CSV, Markdown and HTML, plots included."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt
from recommended import P95, case_study, context, curve, export, unmet

from workbench.domain.codec import from_plain
from workbench.domain.profiles import Curve
from workbench.domain.recommendations import Recommendation
from workbench.domain.samples import OVERLOAD, Estimate
from workbench.exports.recommendation.axis import PixelAxis
from workbench.exports.recommendation.base import Context
from workbench.exports.recommendation.plot import PlottedAllocation, plot

SVG = "{http://www.w3.org/2000/svg}"


def text_of(format: str, recommendation: Recommendation, about: Context | None = None) -> str:
    ((name, text),) = export(format)(recommendation, about or context(recommendation)).items()
    assert name == f"case-1-{recommendation.id}.{format}"
    return text


class Page(HTMLParser):
    """Tags that were opened, and the text between them, styles apart."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] != "style":
            self.text += " " + data


def words(format: str, text: str) -> str:
    """What a reader sees."""
    if format == "md":
        text = MarkdownIt("commonmark").enable("table").render(text)
    return " ".join(Page(text).text.split())


def rows(recommendation: Recommendation) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text_of("csv", recommendation))))


# ------------------------------------------------------------------------------------- data


@pytest.mark.parametrize("made", [case_study(), unmet()])
def test_json_reads_back_as_the_recommendation_it_was_made_of(made: Recommendation) -> None:
    document = json.loads(text_of("json", made))
    assert from_plain(document["recommendation"], Recommendation) == made
    assert document["provenance"]["date"] == "2026-09-21T14:13:20Z"
    assert document["host"]["cores"] == 2


def test_csv_has_a_row_for_every_allocation_that_was_considered() -> None:
    made = case_study()
    found = rows(made)
    roles = [row["role"] for row in found]
    assert roles == ["chosen", "runner_up", "runner_up", "verified", "greedy", "greedy"]
    assert {row["sla"] for row in found} == {
        "p95<=5000ms @ concurrent=400, filesize=1MB; throughput>=90/s"
    }
    chosen, _, dear, verified, first, last = found
    assert made.chosen is not None
    assert float(chosen["haproxy.vcpu"]) == 0.0625
    assert chosen["tinyproxy.flavor"] == "small"
    assert chosen["firewall.replicas"] == "4"
    assert (chosen["p95_ms"], chosen["p95_ms_low"], chosen["p95_ms_high"]) == (
        "4100.0", "3700.0", "4600.0",
    )  # fmt: skip
    assert (dear["extrapolated"], dear["profiled"]) == ("haproxy.vcpu", "false")
    assert (verified["p95_ms"], verified["met"]) == ("4310.0", "true")
    assert [row["met"] for row in (first, last)] == ["false", "true"]
    assert first["probability"] == ""


def test_csv_keeps_negative_numbers_and_disarms_formulas() -> None:
    made = unmet()
    (closest, *_) = rows(made)
    assert closest["margin_wl"] == "-85.0"
    armed = replace(made, slas=(replace(P95, text='=HYPERLINK("x")'),), chain="-2+3")
    (closest, *_) = rows(armed)
    assert closest["sla"] == '\'=HYPERLINK("x")'
    assert closest["chain"] == "'-2+3"


def test_csv_says_where_it_comes_from_even_without_an_allocation() -> None:
    nothing = replace(unmet(), closest=None, greedy=None)
    (row,) = rows(nothing)
    assert (row["role"], row["met"], row["session"]) == ("none", "false", "case-1")


# ---------------------------------------------------------------------------------- reports


@pytest.mark.parametrize("format", ["md", "html"])
def test_a_report_names_the_allocation_its_chance_and_what_was_measured(format: str) -> None:
    seen = words(format, text_of(format, case_study()))
    assert (
        "Recommended: tinyproxy 0.5 vCPU, 64 MiB (small); haproxy 0.0625 vCPU, 50 MB; "
        "balancer 0.3 vCPU; firewall 4 × 1 vCPU, 12.5 Mbit/s, at 4.862 vCPU. It holds the "
        "SLA with a probability of 97.3% in steady state; a confidence of 0.95 was asked." in seen
    )
    assert "p95_ms 4310 [4020, 4590]; the SLA holds" in seen
    assert "over 99.9%" in seen  # a model is never certain
    assert "extrapolated: haproxy.vcpu" in seen
    assert "p95<=5000ms @ concurrent=400, filesize=1MB" in seen
    assert "2026-09-21T14:13:20Z" in seen


@pytest.mark.parametrize("format", ["md", "html"])
def test_a_report_shows_greedy_scaling_side_by_side(format: str) -> None:
    seen = words(format, text_of(format, case_study()))
    assert "Beside greedy scaling" in seen
    assert "met 1 42 s 30.7 min" in seen
    assert "haproxy 1 vCPU 5.5 vCPU - met 8 16.0 min needs none" in seen


@pytest.mark.parametrize("format", ["md", "html"])
def test_greedy_scaling_says_how_sure_it_is_and_what_the_lab_said(format: str) -> None:
    found = case_study()
    assert found.greedy is not None
    told = "The lab refuted it: p95_ms of 6120 ms."
    unsure = replace(found, greedy=replace(found.greedy, probability=0.62, note=told))
    seen = words(format, text_of(format, unsure))
    assert "5.5 vCPU 62.0% not surely met 8" in seen
    assert told in seen


@pytest.mark.parametrize("format", ["md", "html"])
def test_a_report_says_plainly_that_nothing_meets_the_sla(format: str) -> None:
    seen = words(format, text_of(format, unmet()))
    assert "Nothing meets the SLA with a confidence of 0.95. Closest comes tinyproxy" in seen
    assert "with a probability of 41.0% in steady state and carries 85 less than asked" in seen
    assert "Extrapolated: wl outside of what was profiled." in seen
    assert "haproxy limits: more vCPU of firewall brings nothing." in seen
    assert "Recommended" not in seen


@pytest.mark.parametrize("format", ["md", "html"])
def test_a_report_without_anything_judged_is_still_one(format: str) -> None:
    nothing = replace(unmet(), closest=None, greedy=None)
    seen = words(format, text_of(format, nothing, replace(context(), trends=())))
    assert "No allocation could be judged, so none can be called the closest." in seen
    assert "Allocations" not in seen


@pytest.mark.parametrize("format", ["md", "html"])
def test_a_verification_that_missed_is_said_aloud(format: str) -> None:
    made = case_study()
    assert made.verified is not None
    missed = replace(made, verified=replace(made.verified, met=False))
    assert "the SLA is MISSED: do not deploy it as it is" in words(format, text_of(format, missed))


def test_html_is_one_file_that_loads_and_runs_nothing() -> None:
    text = text_of("html", case_study())
    page = Page(text)
    assert page.tags.count("html") == page.tags.count("title") - 2 == 1  # two plots have theirs
    assert not {"script", "link", "img", "iframe", "object", "a"} & set(page.tags)
    assert "default-src 'none'" in text
    assert "url(" not in text
    assert "prefers-color-scheme:dark" in text
    assert '<html lang="en">' in text


def test_markdown_keeps_its_tables_and_drawings_in_one_piece() -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(text_of("md", case_study()))
    kinds = [token.type for token in tokens]
    assert kinds.count("table_open") == 3
    blocks = [token.content for token in tokens if token.type == "html_block"]
    assert len(blocks) == 2
    assert all(b.startswith("<figure>") and b.endswith("</figure>\n") for b in blocks)
    assert "code_block" not in kinds


# ------------------------------------------------------------------------------------ plots


def drawings(text: str) -> list[ElementTree.Element]:
    parts = text.split("<svg")[1:]
    return [ElementTree.fromstring(f"<svg{part.split('</svg>')[0]}</svg>") for part in parts]


def of_class(drawing: ElementTree.Element, *names: str) -> list[ElementTree.Element]:
    wanted = set(names)
    return [e for e in drawing.iter() if wanted <= set((e.get("class") or "").split())]


def test_a_plot_shows_band_limit_load_and_both_allocations() -> None:
    first, second = drawings(text_of("md", case_study()))
    for kind in ("first", "second"):
        assert len(of_class(first, "band", kind)) == 1
        assert len(of_class(first, "dot", kind)) == 1
    assert len(of_class(first, "limit")) == len(of_class(first, "asked")) == 1
    assert len(of_class(first, "measured")) == 3  # bar, mark, and the legend's
    labels = [e.text for e in first.iter(f"{SVG}text")]
    assert {"p95_ms <= 5000 ms", "asked: 400", "chosen", "next cheaper", "measured"} <= set(labels)
    # The second limit has no curve of the cheaper allocation, and was not measured.
    assert not of_class(second, "second")
    assert not of_class(second, "measured")


def test_plots_can_be_read_aloud_and_share_no_id() -> None:
    found = drawings(text_of("html", case_study()))
    ids = [e.get("id") for drawing in found for e in drawing.iter() if e.get("id")]
    assert len(ids) == len(set(ids)) == 4
    for drawing in found:
        assert drawing.get("role") == "img"
        assert set((drawing.get("aria-labelledby") or "").split()) <= set(ids)
        assert drawing[0].tag.endswith("title")
        assert drawing[1].tag.endswith("desc")
    assert "4310 [4020, 4590]" in (found[0][1].text or "")


def test_limit_and_load_stand_where_the_axes_say() -> None:
    drawing = plot([PlottedAllocation("chosen", curve(), None)], P95, "wl")
    (limit,), (asked,) = of_class(drawing, "limit"), of_class(drawing, "asked")
    texts = [*drawing.iter("text")]
    across = {e.text: float(e.get("x", 0)) for e in texts if e.get("text-anchor") == "middle"}
    up = {e.text: float(e.get("y", 0)) - 4 for e in texts if e.get("text-anchor") == "end"}
    assert across["200"] < float(asked.get("x1", 0)) < across["500"]
    assert float(limit.get("y1", 0)) == pytest.approx(up["5000"])


def test_curves_that_are_not_finite_leave_the_rest_of_the_plot() -> None:
    broken = replace(curve(), mean=(float("nan"),) * 55)
    drawing = plot([PlottedAllocation("chosen", broken, Estimate(4.0, 3.0, 5.0))], P95, "wl")
    assert of_class(drawing, "limit")
    assert not of_class(drawing, "band")
    assert "nan" not in ElementTree.tostring(drawing, encoding="unicode")


@pytest.mark.parametrize(
    "figures",
    [(0.0,), (5.0,), (-3.0, 9.0), (0.0, 1e9), (1e-6, 1e6), (100.0, 3500.0), (1.0, 1.0001)],
)
def test_every_axis_has_ticks_and_stays_on_its_pixels(figures: tuple[float, ...]) -> None:
    axis = PixelAxis.over(figures, 10.0, 400.0)
    assert 2 <= len(axis.ticks) <= 13
    assert all(10.0 <= axis.at(f) <= 400.0 for f in (*figures, *axis.ticks, -1e12, 1e12))
    assert list(axis.ticks) == sorted(axis.ticks)


@pytest.mark.parametrize("format", ["md", "html"])
def test_a_report_says_why_the_chain_is_slower_than_its_functions(format: str) -> None:
    why = "at 400 it takes 32 times as long as they take alone. Acknowledgements are <late>."
    about = case_study()
    told = text_of(format, about, replace(context(about), why=why))
    assert "Why the chain is slower than its functions" in told
    assert "32 times as long" in told
    assert "<late>" in words(format, told)
    assert "Why the chain" not in text_of(format, about, context(about))


def test_a_curve_beyond_what_is_carried_ends_in_the_word_overload() -> None:
    beyond = replace(curve(), overload=1200.0)

    def text(drawn: Curve) -> str:
        plotted = plot([PlottedAllocation("chosen", drawn, None)], P95, "wl")
        return ElementTree.tostring(plotted, encoding="unicode")

    assert text(beyond).count(OVERLOAD) == 2, "drawn, and in its description"
    assert OVERLOAD not in text(curve())
