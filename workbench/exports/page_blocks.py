"""What a report is made of before it is Markdown or HTML."""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree.ElementTree import Element

from workbench.domain.answer_tables import AnswerTable


@dataclass(frozen=True)
class Heading:
    text: str


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class Illustration:
    """A plot as SVG, with what stands below it."""

    svg: Element
    caption: str


Block = Heading | Paragraph | AnswerTable | Illustration


@dataclass(frozen=True)
class Report:
    """A title that is a sentence of its own, and what follows."""

    title: str
    blocks: tuple[Block, ...]
