"""docs/science.md is short, its tables are those that commands wrote, its links lead somewhere."""

import re
from pathlib import Path

import pytest
from science import report

PAGES = [report.PAGE, report.PAGE.with_name("sampling.md")]


def stored(name):
    return (report.TABLES / f"{name.replace(':', '-')}.md").read_text()


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


def test_a_table_is_written_beside_its_results_and_where_the_page_has_it(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- bench-science: a -->\nold\n<!-- end -->\nafter\n")
    report.publish({"a": "new", "b:c": "other"}, page, tmp_path / "tables")
    assert page.read_text() == "before\n<!-- bench-science: a -->\nnew\n<!-- end -->\nafter\n"
    assert (tmp_path / "tables" / "b-c.md").read_text() == "# b:c\n\nother\n"


def test_pictures_in_tables_are_there():
    for file in sorted(Path(report.TABLES).glob("*.md")):
        for target in re.findall(r"!\[.*?\]\((.*?)\)", file.read_text()):
            assert (file.parent / target).exists(), (file.name, target)
