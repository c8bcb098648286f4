"""docs/science.md is short, its tables are those that commands wrote, its links lead somewhere."""

import re

import pytest
from science import report

PAGES = [report.PAGE, report.PAGE.with_name("sampling.md")]


def stored(name):
    text = report.TABLES.read_text()
    found = re.search(
        rf"<!-- bench-science: {re.escape(name)} -->\n(.*?)<!-- end -->", text, re.DOTALL
    )
    return found.group(1)


def test_the_page_is_short():
    assert len(report.PAGE.read_text().splitlines()) < 250


def test_tables_on_the_page_are_those_that_are_stored():
    blocks = re.findall(
        r"<!-- bench-science: (.*?) -->\n(.*?)\n<!-- end -->", report.PAGE.read_text(), re.DOTALL
    )
    assert {name for name, _ in blocks} >= {"overview", "accuracy", "visits"}
    for name, block in blocks:
        assert block in stored(name), name


def test_real_recordings_come_first_and_our_own_law_is_called_so():
    page = report.PAGE.read_text()
    assert page.index("## Real recordings") < page.index("## Simulated surfaces")
    lines = [line for line in page.splitlines() if "1/60" in line]
    assert lines
    for line in lines:
        assert "our own law" in line, line


def test_what_the_page_says_of_samplers_is_in_its_table():
    page, table = report.PAGE.read_text(), stored("both-ways")
    for sampler in ("pooled", "heuristic-endless", "sobol", "heuristic"):
        said = re.search(rf"^\| `{sampler}`.* of 40.*$", page, re.MULTILINE).group()
        median, mean = re.search(r"([\d.]+) \(([\d.]+)\)", said).groups()
        came, harmed = re.search(r"\| (\d+) of 40", said).group(1), said.split("|")[-2].split()[0]
        found = re.search(rf"^`{sampler}`:.*$", table, re.MULTILINE).group()
        assert f"on {came}, with {median} times" in found
        assert f"{mean} times in the geometric mean" in found
        assert found.rstrip(".").endswith(f"never, on {harmed}")


def test_what_the_page_says_of_models_is_in_its_table():
    table = stored("ranking")
    rows = [line for line in report.PAGE.read_text().splitlines() if "p95 / mean |" in line]
    assert len(rows) == 8
    said = [figure for row in rows for figure in re.findall(r"[\d.]+ %", row.split("|")[2])]
    of_pooled = " ".join(re.findall(r"^\| pooled .*$", table, re.MULTILINE))
    assert len(said) == 16
    assert all(f"({figure})" in of_pooled for figure in said)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_a_table_is_written_among_all_and_where_the_page_has_it(tmp_path):
    page, every = tmp_path / "page.md", tmp_path / "tables.md"
    page.write_text("before\n<!-- bench-science: a -->\nold\n<!-- end -->\nafter\n")
    every.write_text("# All\n")
    report.publish({"a": "new", "b:c": "other"}, page, every)
    report.publish({"a": "newer"}, page, every)
    assert page.read_text() == "before\n<!-- bench-science: a -->\nnewer\n<!-- end -->\nafter\n"
    assert every.read_text() == (
        "# All\n\n## a\n\n<!-- bench-science: a -->\nnewer\n<!-- end -->\n"
        "\n## b:c\n\n<!-- bench-science: b:c -->\nother\n<!-- end -->\n"
    )


def test_pictures_in_tables_are_there():
    targets = re.findall(r"!\[.*?\]\((.*?)\)", report.TABLES.read_text())
    assert len(targets) > 10
    for target in targets:
        assert (report.TABLES.parent / target).exists(), target


def test_links_to_tables_name_one_that_is_there():
    """By the anchors that forges make of headings: lower case, no colons."""
    headings = re.findall(r"^## (.*)$", report.TABLES.read_text(), re.MULTILINE)
    anchors = {heading.replace(":", "").lower() for heading in headings}
    for page in PAGES:
        for anchor in re.findall(r"science/tables\.md#([^)]+)\)", page.read_text()):
            assert anchor in anchors, (page.name, anchor)
