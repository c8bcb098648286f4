"""Formats of exports; what a recommendation can be asked with, and what its files would hold."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.domain.requests import Query


@dataclass(frozen=True)
class ExportFormat:
    """A registered export, a plug-in's too."""

    name: str
    meaning: str
    """What it is, as a phrase; of one that does not load, why."""


@dataclass(frozen=True)
class SessionFormats:
    formats: tuple[ExportFormat, ...]


@dataclass(frozen=True)
class ListFormats(Query[SessionFormats]):
    """In what a session can be written (`workbench.exports`). Reply: `SessionFormats`."""


@dataclass(frozen=True)
class RecommendOptions:
    """Names to choose from.

    Attributes
    ----------
    chains : the campaign's chains first, then its single functions, then chains of the library
        whose functions it profiled.
    costs : cost functions, the default first, then price tables.
    formats : of `workbench.recommendation_exports`.
    unmeasurable : why nothing can be measured in this session, as a sentence; empty where it can.
    """

    chains: tuple[str, ...]
    costs: tuple[str, ...]
    formats: tuple[ExportFormat, ...]
    unmeasurable: str = ""


@dataclass(frozen=True)
class PreviewedFile:
    """A file as it would be written; `text` is the beginning of a very long one."""

    path: str
    text: str
    characters: int
    """Of the whole."""


@dataclass(frozen=True)
class Previewed:
    """The files of one format, the main one first."""

    files: tuple[PreviewedFile, ...]


@dataclass(frozen=True)
class GetRecommendOptions(Query[RecommendOptions]):
    """What `Recommend` can be given in a session, by name. Reply: `RecommendOptions`."""

    session: str


@dataclass(frozen=True)
class PreviewRecommendation(Query[Previewed]):
    """The text that `ExportRecommendation` would write; nothing is written. Reply: `Previewed`."""

    session: str
    recommendation: str
    """Its id: `r1`."""
    format: str
    """Of `workbench.recommendation_exports`."""
