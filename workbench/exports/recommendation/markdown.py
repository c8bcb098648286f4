"""The report as Markdown, plots as SVG within it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree.ElementTree import indent, tostring

from workbench.domain.answer_tables import AnswerTable
from workbench.domain.recommendations import Recommendation
from workbench.exports.page_blocks import Block, Heading, Illustration, Paragraph
from workbench.exports.recommendation.base import Context
from workbench.exports.recommendation.provenance import stem
from workbench.exports.recommendation.report import report

_MARKS = re.compile(r"([\\`*_{}\[\]<>()#|~&$!])")
_LIST_MARK = re.compile(r"^(\d*)([-+=.)])")


def export_markdown(recommendation: Recommendation, context: Context) -> Mapping[str, str]:
    """Markdown: a report with plots, in CommonMark with GitHub's tables."""
    content = report(recommendation, context)
    parts = [f"# {_escaped(content.title)}", *map(_rendered, content.blocks)]
    return {f"{stem(recommendation)}.md": "\n\n".join(parts) + "\n"}


def _rendered(block: Block) -> str:
    match block:
        case Heading(text):
            return f"## {_escaped(text)}"
        case Paragraph(text):
            return _paragraph(text)
        case AnswerTable():
            lines = [map(_escaped, block.headings), ["---"] * len(block.columns)]
            lines += (map(_escaped, row) for row in block.texts)
            return "\n".join(f"| {' | '.join(line)} |" for line in lines)
        case Illustration(drawing, caption):
            indent(drawing)  # a tag a line and no empty one: an empty line would end the block
            svg = tostring(drawing, encoding="unicode")
            return f"<figure>\n{svg}\n</figure>\n\n{_paragraph(caption)}"


def _paragraph(text: str) -> str:
    """Escaped where it begins, too: `1. ` and `- ` would begin a list."""
    return _LIST_MARK.sub(r"\1\\\2", _escaped(text))


def _escaped(text: str) -> str:
    """Text in which nothing is a mark; it holds no line feed (`report`)."""
    return _MARKS.sub(r"\\\1", text)
