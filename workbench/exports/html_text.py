"""A report as one HTML file: no script, nothing loaded, light, dark and printed.

Whatever it is given is put on one line and escaped here.
"""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree.ElementTree import Element, indent, tostring

from workbench.domain.answer_tables import AnswerTable
from workbench.exports.page_blocks import Block, Heading, Illustration, Paragraph, Report
from workbench.exports.recommendation.markup import element
from workbench.exports.recommendation.naming import one_line

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
figure{margin:1rem 0;break-inside:avoid}figcaption{font-size:.9rem}
"""


def page_text(content: Report, facts: Mapping[str, str]) -> str:
    """The whole file; `facts` become its metadata."""
    page = _page(content, facts)
    indent(page)
    text = tostring(page, encoding="unicode", method="html")
    return f"<!doctype html>\n{text}\n"


def _page(content: Report, facts: Mapping[str, str]) -> Element:
    # Were something to slip past the escaping, the browser would still run and load nothing.
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        *(
            element("meta", name=f"workbench:{key}", content=one_line(text))
            for key, text in facts.items()
        ),
        element("title", one_line(content.title)),
        element("style", _STYLE),
    )
    main = element("main", element("h1", one_line(content.title)), *map(_rendered, content.blocks))
    return element("html", head, element("body", main), lang="en")


def _rendered(block: Block) -> Element:
    match block:
        case Heading(text):
            return element("h2", one_line(text))
        case Paragraph(text):
            return element("p", one_line(text))
        case AnswerTable():
            return element("div", _table(block), class_="scroll")
        case Illustration(drawing, caption):
            return element("figure", drawing, element("figcaption", one_line(caption)))


def _table(table: AnswerTable) -> Element:
    headings = tuple(map(one_line, table.headings))
    head = element("tr", *(element("th", h, scope="col") for h in headings))
    rows = [
        element("tr", element("th", name, scope="row"), *(element("td", cell) for cell in cells))
        for name, *cells in (map(one_line, row) for row in table.texts)
    ]
    return element(
        "table", *([element("thead", head)] if any(headings) else []), element("tbody", *rows)
    )
