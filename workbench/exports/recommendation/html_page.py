"""The report as one HTML file: no script, nothing loaded, light and dark."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree.ElementTree import Element, indent, tostring

from workbench.domain.recommendations import Recommendation
from workbench.exports.recommendation.base import Context
from workbench.exports.recommendation.markup import element
from workbench.exports.recommendation.provenance import provenance, stem
from workbench.exports.recommendation.report import (
    Block,
    Figure,
    Heading,
    Paragraph,
    Report,
    Table,
    report,
)

_STYLE = """
:root{color-scheme:light dark;--ink:#1b1b1b;--paper:#fff;--faint:#d9d9d9}
@media (prefers-color-scheme:dark){:root{--ink:#ececec;--paper:#161616;--faint:#454545}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);
max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.9rem}
th,td{text-align:left;vertical-align:top;padding:.3rem .8rem .3rem 0;
border-bottom:1px solid var(--faint)}
figure{margin:1rem 0}figcaption{font-size:.9rem}
"""


def export_html(recommendation: Recommendation, context: Context) -> Mapping[str, str]:
    page = _page(report(recommendation, context), provenance(recommendation, context))
    indent(page)
    text = tostring(page, encoding="unicode", method="html")
    return {f"{stem(recommendation)}.html": f"<!doctype html>\n{text}\n"}


def _page(content: Report, facts: Mapping[str, str]) -> Element:
    # Were something to slip past the escaping, the browser would still run and load nothing.
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        *(element("meta", name=f"workbench:{key}", content=text) for key, text in facts.items()),
        element("title", content.title),
        element("style", _STYLE),
    )
    main = element("main", element("h1", content.title), *map(_rendered, content.blocks))
    return element("html", head, element("body", main), lang="en")


def _rendered(block: Block) -> Element:
    match block:
        case Heading(text):
            return element("h2", text)
        case Paragraph(text):
            return element("p", text)
        case Table():
            return element("div", _table(block), class_="scroll")
        case Figure(drawing, caption):
            return element("figure", drawing, element("figcaption", caption))


def _table(table: Table) -> Element:
    named = any(table.headings)
    head = element("tr", *(element("th", h, scope="col") for h in table.headings))
    rows = (
        element("tr", element("th", row[0], scope="row"), *(element("td", c) for c in row[1:]))
        for row in table.rows
    )
    return element("table", *([element("thead", head)] if named else []), element("tbody", *rows))
