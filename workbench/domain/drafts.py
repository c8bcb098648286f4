"""Drafts: campaigns that are being written; what they are made of; how they become templates.

A draft is a file of the workspace that the engine writes with every change, mistakes and all, so
that a screen that is killed loses nothing. `PlanCampaign` and `RunCampaign` take it by the name
that `campaign_of` gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from workbench.domain.campaign import Campaign
from workbench.domain.errors import Mistake
from workbench.domain.requests import Command, Done, Query
from workbench.domain.topology import Node, Placement, Role, VnfTemplate

UNTITLED = "untitled"
"""What a draft from nothing is called: `campaign campaign` reads like a mistake."""
PREFIX = "draft:"
"""Before a draft's name where campaigns are named."""

TemplateKind = Literal["campaign", "chain"]
Origin = Literal["workspace", "shipped"]


def campaign_of(draft: str) -> str:
    """What `PlanCampaign` and `RunCampaign` are given for a draft."""
    return PREFIX + draft


# --------------------------------------------------------------------------- replies


@dataclass(frozen=True)
class DraftShown:
    """A draft as it stands in its file.

    Attributes
    ----------
    text : YAML, unless somebody wrote something else; then `document` is None.
    revision : changes with the text.
    campaign : None where there are mistakes.
    beyond_host : why the engine's host cannot give what the campaign asks for; empty: it can.
    """

    name: str
    text: str
    revision: str
    document: Mapping[str, Any] | None
    campaign: Campaign | None
    mistakes: tuple[Mistake, ...] = ()
    beyond_host: str = ""


@dataclass(frozen=True)
class DraftRevision:
    """Which text stands in a draft's file; as `DraftShown` has it."""

    name: str
    revision: str


@dataclass(frozen=True)
class DraftSummary:
    name: str
    summary: str
    targets: tuple[str, ...]
    mistakes: int
    changed_at: float
    """Seconds since 1970."""


@dataclass(frozen=True)
class DraftList:
    """The one that was changed last comes first."""

    drafts: tuple[DraftSummary, ...]


@dataclass(frozen=True)
class PaletteVnf:
    """A VNF that can be used; the fields of its template that people choose by."""

    name: str
    summary: str
    role: Role
    placement: Placement
    passage: str
    balances: bool
    """It can split its traffic over branches behind it."""
    default_vcpu: float
    parameters: tuple[str, ...]
    """Workload parameters that a source offers."""
    settings: Mapping[str, str]
    origin: Origin

    @classmethod
    def of(cls, template: VnfTemplate, origin: Origin) -> PaletteVnf:
        return cls(
            template.name,
            template.summary,
            template.role,
            template.placement,
            template.passage,
            template.balances,
            template.default_vcpu,
            template.parameters,
            dict(template.settings),
            origin,
        )


@dataclass(frozen=True)
class PaletteChain:
    """A chain that has a descriptor of its own."""

    name: str
    summary: str
    graph: Node
    source: str
    sink: str
    origin: Origin


@dataclass(frozen=True)
class Palette:
    """By name; `samplers`, `models` and `generators` are what is registered, plugins included."""

    functions: tuple[PaletteVnf, ...] = ()
    ends: tuple[PaletteVnf, ...] = ()
    """Sources and sinks."""
    chains: tuple[PaletteChain, ...] = ()
    samplers: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    generators: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    kpis: tuple[str, ...] = ()
    workload: Mapping[str, str] = field(default_factory=dict)
    """Workload parameters besides the primary one, each with an example of a value."""
    primaries: Mapping[str, str] = field(default_factory=dict)
    """What the primary workload parameter can be, likewise."""
    notes: tuple[str, ...] = ()
    """Sentences on descriptors that cannot be used."""

    def vnf(self, name: str) -> PaletteVnf | None:
        return next((v for v in (*self.functions, *self.ends) if v.name == name), None)

    def chain(self, name: str) -> PaletteChain | None:
        return next((c for c in self.chains if c.name == name), None)


@dataclass(frozen=True)
class TemplateSaved:
    name: str
    kind: TemplateKind
    path: str


# --------------------------------------------------------------------------- commands


@dataclass(frozen=True)
class StartDraft(Command[DraftShown]):
    """A new draft; of a campaign that is a template, or of another draft. Reply: `DraftShown`."""

    name: str = ""
    """Empty: the template's, else `campaign`; with a counter where that is taken."""
    template: str = ""
    """Name of a campaign, or `draft:NAME`; empty: a campaign without targets."""


@dataclass(frozen=True)
class ChangeDraft(Command[DraftShown]):
    """Write a draft anew: as a document, or as text. Reply: `DraftShown`.

    Mistakes are no reason to refuse it. One that is gone comes back by it.
    """

    name: str
    document: Mapping[str, Any] | None = None
    """Mappings, lists, texts, numbers, truth values and None, as in YAML."""
    text: str | None = None
    """Instead of the document, and the only way to write what is no YAML."""
    revision: str = ""
    """Of the draft that was changed; refused where somebody else changed it since. Empty: never."""


@dataclass(frozen=True)
class DiscardDraft(Command[Done]):
    """Remove a draft. Reply: `Done`. `ChangeDraft` with its text brings it back."""

    name: str


@dataclass(frozen=True)
class SaveTemplate(Command[TemplateSaved]):
    """Write a draft, or the chain of one of its targets, among the workspace's templates.

    Reply: `TemplateSaved`. A draft with mistakes is refused.
    """

    draft: str
    name: str
    kind: TemplateKind = "campaign"
    target: int = 0
    """Which target's chain."""
    replace: bool = False
    """Whether one of that name may go; else `NameTaken`."""


# --------------------------------------------------------------------------- queries


@dataclass(frozen=True)
class ListDrafts(Query[DraftList]):
    """Reply: `DraftList`."""


@dataclass(frozen=True)
class ReadDraft(Query[DraftShown]):
    """Reply: `DraftShown`."""

    name: str


@dataclass(frozen=True)
class GetDraftRevision(Query[DraftRevision]):
    """Whether somebody changed it: nothing of it is checked. Reply: `DraftRevision`."""

    name: str


@dataclass(frozen=True)
class GetPalette(Query[Palette]):
    """What campaigns can be made of. Reply: `Palette`."""
