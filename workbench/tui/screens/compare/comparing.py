"""What the screen Compare is about, what came of its questions, and who asks them.

Answers take seconds. Each belongs to the `ComparedChain` that was asked about; one that comes when
something else is looked at is kept for later, and never drawn in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from workbench.domain.chains import ChainChart
from workbench.domain.configurations import SamplePoint
from workbench.domain.errors import WorkbenchError
from workbench.domain.messages import Compared, CompareSessions, ViewSession
from workbench.domain.parameters import Configuration
from workbench.domain.projection import SessionView
from workbench.domain.questions import (
    ChainCharted,
    ChainCompared,
    ChainQuery,
    ChartChain,
    CompareChain,
)
from workbench.domain.topology import Target
from workbench.link.client import Client

AT_ONCE = 12
"""Configurations whose curves are asked for in one go; they take a second or two."""


@dataclass(frozen=True)
class ComparedChain:
    """A chain's KPI, by a rule, from profiles."""

    session: str
    chain: str
    kpi: str
    rule: str = ""
    """Empty: the default, or the accepted model."""
    profiles: str | None = None
    """Another session that has the functions; None: the same."""
    insist: bool = False


@dataclass(frozen=True)
class ComparisonBasis:
    """What an answer rests on, as far as the view tells. Profiles of another session are not in it.

    Attributes
    ----------
    valid : how many samples of the chain and, where they are profiled here, of its functions.
    rejected : those of them that somebody rejected.
    version : of the chain's own model, where it may answer; 0: the profiles do.
    """

    valid: int
    rejected: frozenset[str]
    version: int


@dataclass
class ComparisonSoFar:
    """What came so far.

    Attributes
    ----------
    compared : None while it is computed, or where `refused` says why it cannot be.
    charts : by configuration, as far as somebody looked there; `asked` are all that were asked for.
    charted : the last reply with curves: rules, methods, notes.
    refused : why nothing is compared; `uncharted` why nothing is drawn.
    samples : valid ones of the chain when it was asked; `measured` those of all targets, which
        a refusal may have been about; `basis` all that the answer rests on, as of then.
    asked_at : when it was asked last, by `time.monotonic`; `cost_s` all that the answers took.
    """

    subject: ComparedChain
    samples: int
    compared: ChainCompared | None = None
    charts: dict[Configuration, ChainChart] = field(default_factory=dict)
    asked: set[Configuration] = field(default_factory=set)
    charted: ChainCharted | None = None
    refused: WorkbenchError | None = None
    uncharted: WorkbenchError | None = None
    measured: int = 0
    basis: ComparisonBasis | None = None
    asked_at: float = 0.0
    cost_s: float = 0.0

    @property
    def here(self) -> bool:
        """Whether there is anything to look at, if only why there is nothing."""
        return self.compared is not None or self.refused is not None

    @property
    def rules(self) -> tuple[str, ...]:
        return self.charted.rules if self.charted else ()

    @property
    def notes(self) -> tuple[str, ...]:
        found = [*(self.compared.notes if self.compared else ())]
        found += self.charted.notes if self.charted else ()
        if self.compared and self.compared.comparison.note:
            found.append(self.compared.comparison.note)
        return tuple(dict.fromkeys(found))

    async def compare(self, client: Client) -> None:
        """Ask how far the prediction is off. A refusal is kept, not raised."""
        s = self.subject
        question = CompareChain(ChainQuery(s.session, s.chain, s.kpi, s.rule, s.profiles, s.insist))
        try:
            reply = await client.ask(question)
        except WorkbenchError as error:
            self.refused = error
            return
        self.compared, self.refused = reply, None

    async def chart(self, client: Client, wanted: Sequence[Configuration]) -> None:
        """Ask for curves, each once. A refusal is kept, not raised."""
        self.asked.update(wanted)
        s = self.subject
        query = ChainQuery(s.session, s.chain, s.kpi, s.rule, s.profiles, s.insist)
        question = ChartChain(query, tuple(wanted))
        try:
            reply = await client.ask(question)
        except WorkbenchError as error:
            self.uncharted = error
            return
        self.charted, self.uncharted = reply, None
        self.charts |= {chart.configuration: chart for chart in reply.charts}


@dataclass
class Contrast:
    """Another session beside the open one; it is the earlier of the two.

    `view` is the other session as it stands, for its samples and curves.
    """

    other: str
    compared: Compared | None = None
    view: SessionView | None = None
    refused: WorkbenchError | None = None

    async def ask(self, client: Client, session: str) -> None:
        """What differs between them, and the other's samples. A refusal is kept, not raised."""
        try:
            compared = await client.ask(CompareSessions(self.other, session))
            viewed = await client.ask(ViewSession(self.other))
        except WorkbenchError as error:
            self.refused = error
            return
        self.compared, self.view = compared, viewed.view


# --------------------------------------------------------------------- from the open session


def chains(view: SessionView) -> tuple[Target, ...]:
    """Targets of several functions: those of the campaign, then those of trials after it."""
    plans = [*(view.campaign.targets if view.campaign else ())]
    plans += [plan for trials in view.trials for plan in trials.plans]
    found = {plan.target.name: plan.target for plan in plans if len(plan.target.vnfs) > 1}
    return tuple(found.values())


def samples_of(
    view: SessionView, target: str, configuration: Configuration
) -> tuple[SamplePoint, ...]:
    """Of the campaign and of trials, by rising `wl`."""
    found = [
        sample
        for c in view.configurations
        if (c.target, c.configuration) == (target, configuration)
        for sample in c.samples
    ]
    found += [
        point.sample
        for trials in view.trials
        for point in trials.samples
        if (point.target, point.configuration) == (target, configuration)
    ]
    return tuple(sorted(found, key=lambda sample: sample.wl))


def configurations_of(view: SessionView, target: str) -> tuple[Configuration, ...]:
    """Those that are planned or were measured."""
    found = [c.configuration for c in view.configurations if c.target == target]
    found += [p.configuration for t in view.trials for p in t.samples if p.target == target]
    return tuple(dict.fromkeys(found))


def valid_samples(view: SessionView, target: str) -> int:
    """How many samples of a chain a comparison may rest on."""
    own = sum(s.valid for c in view.configurations if c.target == target for s in c.samples)
    return own + sum(p.sample.valid for t in view.trials for p in t.samples if p.target == target)


def all_valid_samples(view: SessionView) -> int:
    """How many samples of all targets: of a chain and of the functions that predict it."""
    own = sum(s.valid for c in view.configurations for s in c.samples)
    return own + sum(p.sample.valid for t in view.trials for p in t.samples)


def basis_of(view: SessionView, subject: ComparedChain) -> ComparisonBasis:
    """What an answer would rest on now."""
    chain = next((t for t in chains(view) if t.name == subject.chain), None)
    parts = {vnf.template for vnf in chain.vnfs} if chain and subject.profiles is None else set()
    alone = [p.target for p in view.campaign.targets] if view.campaign else []
    names = {t.name for t in alone if len(t.vnfs) == 1 and t.vnfs[0].template in parts}
    own = [c for c in view.configurations if c.target in {subject.chain, *names}]
    tried = [p.sample for t in view.trials for p in t.samples if p.target == subject.chain]
    model = view.chain_model(subject.chain, subject.kpi)
    return ComparisonBasis(
        sum(c.taken - c.invalid for c in own) + sum(sample.valid for sample in tried),
        frozenset(s.id for c in own for s in c.samples if s.verdict == "rejected"),
        model.current if model is not None and not subject.rule else 0,
    )
