"""What is asked of a session's models: of functions, of chains, of what to allot; and the replies.

A question may take seconds; retraining takes minutes, since it measures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from workbench.domain.chains import ChainChart, ChainPrediction, PartModel
from workbench.domain.diagnoses import Diagnosis
from workbench.domain.parameters import Configuration
from workbench.domain.profiles import (
    MethodFormulas,
    ModelFormula,
    ModelScore,
    ModelVersion,
    ParameterInfluence,
    Residual,
)
from workbench.domain.recommendations import ComparisonRow, Recommendation
from workbench.domain.requests import Command, Done, Query, Request
from workbench.domain.retraining import (
    CanaryPlan,
    CanaryRun,
    ChainComparison,
    Decision,
    Drift,
    Proposal,
)

# --------------------------------------------------------------------------- replies


@dataclass(frozen=True)
class ModelsScored:
    """By target, the best first; failed ones last."""

    scores: tuple[ModelScore, ...]
    models: tuple[ModelVersion, ...] = ()
    """The versions in force, of the targets asked for."""
    influences: tuple[ParameterInfluence, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences on what could not be computed or stored."""
    formulas: tuple[MethodFormulas, ...] = ()
    """Of the parametric methods among those that were scored."""


@dataclass(frozen=True)
class Diagnosed:
    diagnosis: Diagnosis
    notes: tuple[str, ...] = ()
    """Sentences on rules that failed or do not load."""


@dataclass(frozen=True)
class ChainPredicted:
    """One prediction for each allocation, in the order of the campaign's grid."""

    predictions: tuple[ChainPrediction, ...]
    models: tuple[PartModel, ...]
    notes: tuple[str, ...] = ()
    """Sentences on what was left out, is marked, or could not be stored."""


@dataclass(frozen=True)
class ChainCompared:
    """`weakest_link` is the papers' rule on the same samples: None where it is the rule that was
    asked for, or does not apply. `profiles` are the profiles alone where an accepted model is
    compared, by the rule that it corrects."""

    comparison: ChainComparison
    weakest_link: ChainComparison | None
    models: tuple[PartModel, ...]
    notes: tuple[str, ...] = ()
    profiles: ChainComparison | None = None


@dataclass(frozen=True)
class ChainCharted:
    """Curves in the order in which configurations were asked for; at most 36.

    Attributes
    ----------
    rule : by which the profiles are composed.
    rules : all that apply to the KPI under this load, the default first.
    method : of the curves of what was measured; empty where `notes` say why there are none.
    model_version : of the accepted model that predicts; 0: the profiles do.
    notes : sentences on what was left out, or is marked.
    """

    chain: str
    kpi: str
    rule: str
    rules: tuple[str, ...]
    method: str
    model_version: int
    charts: tuple[ChainChart, ...]
    models: tuple[PartModel, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recommended:
    """`rows` put what is recommended beside greedy scaling, where that was asked for."""

    recommendation: Recommendation
    """Without id where it was not stored."""
    rows: tuple[ComparisonRow, ...]
    notes: tuple[str, ...] = ()
    """Sentences on what is marked, or could not be stored."""


@dataclass(frozen=True)
class ChainRetrained:
    """What a canary came to, and what was decided.

    Attributes
    ----------
    version : of the model in force now; 0 are the stand-alone profiles.
    canary : None where nothing was measured.
    proposal : None where none could be made; `notes` say why.
    decision : None while the proposal waits for one.
    drift : later samples against the model that was in force before; None without one.
    """

    chain: str
    kpi: str
    version: int
    canary: CanaryRun | None
    proposal: Proposal | None
    decision: Decision | None
    drift: Drift | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class CanaryPlanned:
    """What would be done, to which chain.

    Attributes
    ----------
    kpi : what would be retrained.
    primary, unit : name and unit of its loads.
    lab_s : about what it would cost, each load once; the plan of a canary without steps has none.
    """

    plan: CanaryPlan
    kpi: str
    primary: str
    unit: str
    lab_s: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModelExplained:
    """A model held against samples that it has not seen.

    Attributes
    ----------
    held_out : how these were kept from it, as a phrase.
    residuals : by target's order of samples; of many some hundred, whole points drawn by a seed.
    formulas : of parametric methods: one for each configuration and region.
    notes : sentences on what could not be said, and why.
    """

    target: str
    kpi: str
    version: int
    method: str
    held_out: str
    residuals: tuple[Residual, ...]
    formulas: tuple[ModelFormula, ...]
    notes: tuple[str, ...] = ()


# --------------------------------------------------------------------------- questions


@dataclass(frozen=True)
class ScoreModels(Query[ModelsScored]):
    """How well each registered model predicts samples that it has not seen. Reply: `ModelsScored`.

    All targets where `target` is None, the campaign's KPI where `kpi` is None. `by` is what folds
    are made of: points, or whole configurations that a model has not seen. `methods` are all where
    there are none; `short` among them stands for the short list (`engine.scoring`).

    A comparison by points that leaves out neither the short list nor the method in force chooses
    each target's model anew: what changed is stored, unless an observer asks.
    """

    session: str
    target: str | None = None
    kpi: str | None = None
    by: Literal["point", "configuration"] = "point"
    methods: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChainQuery:
    """Of which chain, for which KPI, by which rule, and from whose profiles."""

    session: str
    chain: str
    """A target of the campaign, or the name of a chain's descriptor."""
    kpi: str | None = None
    """None: the campaign's."""
    rule: str = ""
    """Empty: the default for the KPI and the load."""
    profiles: str | None = None
    """The session that has the functions; None: the same."""
    insist: bool = False
    """Take profiles of another host, too; the answer is marked."""
    more_profiles: tuple[str, ...] = ()
    """Further sessions that have functions, after `profiles`: who profiled one first speaks."""
    shared_cores: bool = False
    """Say what functions cost each other that the session's campaign pins to the same cores; the
    profiles alone answer."""


@dataclass(frozen=True)
class PredictChain(Query[ChainPredicted]):
    """What stand-alone profiles say of a chain. Reply: `ChainPredicted`.

    Models of the functions that are made for it are stored, unless an observer asks.
    """

    query: ChainQuery
    at: str
    """As `rate=300/s, filesize=10kB`."""
    allocation: str = ""
    """As `haproxy=25%, tinyproxy=50%`. Empty: every one of the campaign, or every combination of
    what the functions were profiled at."""


@dataclass(frozen=True)
class CompareChain(Query[ChainCompared]):
    """A chain's samples against what stand-alone profiles say. Reply: `ChainCompared`."""

    query: ChainQuery


@dataclass(frozen=True)
class ChartChain(Query[ChainCharted]):
    """A chain over its loads, configuration by configuration: predicted, measured, and function by
    function. Reply: `ChainCharted`.
    """

    query: ChainQuery
    configurations: tuple[Configuration, ...] = ()
    """None: those that were measured, then those that the campaign plans."""


@dataclass(frozen=True)
class Recommend(Query[Recommended]):
    """The cheapest allocation that carries SLAs. Reply: `Recommended`.

    It is stored, as are models that are made for it, unless an observer asks. An observer may not
    ask for what is measured.
    """

    session: str
    slas: tuple[str, ...]
    """Each as `p95<=200ms @ rate=300/s, filesize=10kB`."""
    chain: str | None = None
    """A target of the campaign, or the name of a chain's descriptor; None: the only chain, or the
    only target."""
    confidence: float = 0.95
    cost: str = "vcpu-hours"
    """A plugin's name, or a price table's name or absolute path."""
    greedy: bool = False
    """Run greedy scaling, too: on the model, or on the lab."""
    on_lab: bool = False
    """Greedy scaling runs on the session's lab."""
    verify: bool = False
    """Measure what is recommended, on the session's lab."""
    budget_s: float | None = None
    """Of both, as a campaign's."""
    oversubscribe: bool = False
    """Measure deployments that need more cores than the host has, too."""
    by: str = ""
    profiles: str | None = None
    """As `ChainQuery` has it, as are these two; what others profiled is not tried on the lab."""
    insist: bool = False
    more_profiles: tuple[str, ...] = ()


@dataclass(frozen=True)
class VerifyRecommendation(Command[Recommended]):
    """Ask the session's lab about a recommendation, as `Recommend` does that is to verify. Reply:
    `Recommended`, with its verdict; where the lab teaches another allocation, that is the reply.

    It takes minutes on a real lab, as `Recommend` does that verifies.
    """

    session: str
    recommendation: str
    """Its id: `r1`."""
    budget_s: float | None = None
    """As a campaign's."""
    oversubscribe: bool = False
    """Also a deployment that needs more cores than the host has."""
    by: str = ""


@dataclass(frozen=True)
class RetrainChain(Command[ChainRetrained]):
    """Load a real chain carefully, learn what it adds to its prediction, decide what comes of it.

    Reply: `ChainRetrained`. It takes minutes on a real lab; `EngineStatus.scoring` says how far it
    is, and `StopRun` ends it. With a `decision`, the latest proposal that is stored is decided, and
    only where there is none something is measured first; what nobody has seen yet is accepted only
    if it is better on held-out points.
    """

    session: str
    chain: str | None = None
    """A target of the campaign, or the name of a chain's descriptor; None: the only one."""
    kpi: str | None = None
    """What the model says; None: the SLA's, else the campaign's."""
    sla: str = ""
    """Empty: the campaign's, if it has one."""
    share: float = 0.5
    """Of the SLA's load, without one of the campaign's range, up to which the chain is loaded."""
    steps: int = 10
    """0: nothing is measured, the model is retrained with what is stored."""
    guards: tuple[str, ...] = ()
    """Limits that stop it, as `p95<=200ms`; none: the SLA's."""
    budget_s: float | None = None
    """As a campaign's."""
    allocation: str = ""
    """As `haproxy=25%, tinyproxy=50%`; empty: the largest of the campaign's."""
    online: bool = False
    """Random loads, as production brings them, not rising ones."""
    method: str = ""
    """Empty: what the chain adds to its prediction. `trend`: the method that says the predicted
    trend best, trained with the chain's samples alone (paper A); or the name of one."""
    decision: Literal["", "accept", "reject"] = ""
    why: str = ""
    by: str = ""
    pace: float | None = None
    """Simulated lab only: lab seconds per second; None is as fast as it goes."""
    align: tuple[str, ...] = ()
    """Rules by which samples to learn from are chosen, beside `fixed-inputs`, such as `sla-band`;
    none: the method's."""


@dataclass(frozen=True)
class PlanCanary(Query[CanaryPlanned]):
    """What a canary would do; nothing is measured and no model made. Reply: `CanaryPlanned`.

    It is refused where the canary would be; the field is named as the command's option: `--sla`.
    """

    canary: RetrainChain


@dataclass(frozen=True)
class DecideProposal(Command[Done]):
    """Accept or reject the proposal of that id. Reply: `Done`."""

    session: str
    proposal: str
    accept: bool
    why: str = ""
    """Who rejects says why."""
    by: str = ""


@dataclass(frozen=True)
class ExplainModel(Query[ModelExplained]):
    """How far a stored model is from samples that it has not seen, and what its coefficients are.

    Reply: `ModelExplained`.
    """

    session: str
    target: str
    kpi: str
    version: int
    retrained: bool = False
    """Of a chain's accepted versions, not of those fitted to the target's own samples."""


@dataclass(frozen=True)
class RollBackModel(Command[Done]):
    """Put another version of a chain's retrained model in force. Reply: `Done`."""

    session: str
    version: int
    """0: the stand-alone profiles as they are."""
    chain: str | None = None
    """None: the only one that has versions; `kpi` likewise."""
    kpi: str | None = None
    why: str = ""
    by: str = ""


@dataclass(frozen=True)
class Diagnose(Query[Diagnosed]):
    """Why a target is as it is at one operating point. Reply: `Diagnosed`. Nothing is stored.

    Without `at` and `sample` it is the sample that takes longest beside its functions alone.
    """

    session: str
    chain: str | None = None
    """A target of the campaign; None for whichever chain departs most."""
    at: str = ""
    """As in `PredictChain`; the nearest sample is taken."""
    sample: str = ""
    """A sample's id."""


def measures(question: Request[Any]) -> bool:
    """Whether the lab is asked, too; the end of that is `StopRun`'s."""
    match question:
        case Recommend(verify=verify, on_lab=on_lab):
            return verify or on_lab
        case RetrainChain(steps=steps):
            return steps > 0
        case VerifyRecommendation():
            return True
    return False
