"""The form of the screen Recommend: its fields, what they ask, and where mistakes belong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.domain.errors import (
    ConfidenceRefused,
    DescriptorError,
    SlaError,
    WorkbenchError,
)
from workbench.domain.export_requests import RecommendOptions
from workbench.domain.limits import confidence_of
from workbench.domain.projection import SessionView
from workbench.domain.questions import Recommend
from workbench.domain.recommendations import Recommendation
from workbench.tui.screens.recommend.recommend_words import confidence, sla_text
from workbench.tui.widgets.field import Field, Form

SLAS = ("sla", "sla-2", "sla-3", "sla-4")
NO_GREEDY, ON_MODEL, ON_LAB = "no", "on the model", "on the lab"
DEFAULT_COST = "vcpu-hours"
DEFAULT_CONFIDENCE = "95 %"
EXAMPLE = "p95<=200ms @ rate=300/s"
GUIDE = """An SLA is a KPI with its limit, the load at which it is to hold,
and workload values: p95<=200ms @ rate=300/s, filesize=10kB

KPIs: p50, p95, p99, mean, jitter <= a time; loss, errors <= a share;
throughput, goodput >= a rate"""


def fields() -> list[Field]:
    return [
        Field("chain", "chain", options=()),
        *(
            Field(
                name,
                "SLA" if number == 0 else "and",
                hint=f"such as {EXAMPLE}" if number == 0 else "",
            )
            for number, name in enumerate(SLAS)
        ),
        Field("confidence", "confidence", DEFAULT_CONFIDENCE),
        Field("cost", "cost", DEFAULT_COST, options=(DEFAULT_COST,)),
        Field("greedy", "greedy", NO_GREEDY, options=(NO_GREEDY, ON_MODEL)),
    ]


def chains_of(view: SessionView) -> tuple[str, ...]:
    """The campaign's targets, chains first, and what was recommended for; until the engine says
    what else there is."""
    targets = [plan.target for plan in view.campaign.targets] if view.campaign else []
    names = [target.name for target in sorted(targets, key=lambda t: len(t.vnfs) == 1)]
    names += [issued.recommendation.chain for issued in view.recommendations]
    return tuple(dict.fromkeys(names))


def offer(form: Form, options: RecommendOptions, measures: bool) -> None:
    """Let the form choose from these; greedy scaling on the lab where it `measures`."""
    greedy = (NO_GREEDY, ON_MODEL, *([ON_LAB] if measures else ()))
    for name, values in (("chain", options.chains), ("cost", options.costs), ("greedy", greedy)):
        form.field(name).offer(values)


def fill(form: Form, found: Recommendation) -> None:
    """The question that was answered so, to be changed and asked again."""
    form.field("chain").value = found.chain
    form.field("confidence").value = confidence(found.confidence)
    texts = [sla_text(sla) for sla in found.slas]
    for name, words in zip(SLAS, [*texts, *[""] * len(SLAS)], strict=False):
        form.field(name).value = words
    unfold(form)


def unfold(form: Form) -> None:
    """One more line for an SLA than is filled."""
    filled = [bool(form.field(name).value) for name in SLAS]
    for number, name in enumerate(SLAS):
        form.field(name).display = number == 0 or any(filled[number - 1 :])


def request_of(session: str, values: Mapping[str, str]) -> tuple[Recommend, dict[str, str]]:
    """The question, and the mistakes that can be seen without the engine, by field."""
    slas = tuple(values[name] for name in SLAS if values[name])
    mistakes = {} if slas else {"sla": f"Nothing is asked. Write an SLA as {EXAMPLE}."}
    sure = 0.0
    try:
        sure = confidence_of(values["confidence"])
    except ValueError:
        mistakes["confidence"] = "Not a number. Write it as 95 %, 95 or 0.95."
    request = Recommend(
        session,
        slas,
        values["chain"] or None,
        sure,
        values["cost"] or DEFAULT_COST,
        greedy=values["greedy"] != NO_GREEDY,
        on_lab=values["greedy"] == ON_LAB,
    )
    return request, mistakes


def placed(error: WorkbenchError, values: Mapping[str, str]) -> dict[str, str]:
    """The engine's sentence at the field that it is about; empty where it is about none."""
    sentence = f"{error.what}. {error.remedy}." if error.remedy else f"{error.what}."
    where = error.where or ""
    name = ""
    if isinstance(error, ConfidenceRefused):
        name = "confidence"
    elif where == "cost":
        name = "cost"
    elif where.startswith("chain "):
        name, sentence = "chain", str(error)
    elif where.startswith("SLA"):
        # The form may have been changed since it was asked.
        lines = _asked(values)
        name = lines[min(_number(where), len(lines)) - 1]
    elif isinstance(error, SlaError):
        name, sentence = "sla", str(error)
    elif isinstance(error, DescriptorError):
        name, sentence = "cost", str(error)
    return {name: sentence} if name else {}


def _asked(values: Mapping[str, str]) -> Sequence[str]:
    """Names of the lines that hold an SLA, in their order."""
    return [name for name in SLAS if values[name]] or [SLAS[0]]


def _number(where: str) -> int:
    """`SLA 2` is the second one; `SLA` is the only one."""
    number = where.removeprefix("SLA").strip()
    return int(number) if number.isdigit() else 1
