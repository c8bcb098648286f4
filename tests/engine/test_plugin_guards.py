"""A plugin's cost or rule that breaks its contract is named before anything is said by it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Never

import numpy as np
import pytest
from session_making import campaign

from workbench import plugins
from workbench.domain.campaign import SamplingPlan
from workbench.domain.errors import DataError, PluginError, UsageError
from workbench.domain.parameters import ParameterValue
from workbench.domain.samples import Sample
from workbench.domain.topology import Vnf
from workbench.engine.answers.plugin_guards import CheckedCost, CheckedRule
from workbench.engine.learning.guarded import GuardedSampler
from workbench.engine.learning.pool import Pool, WorkerLost
from workbench.engine.learning.sampler_client import SamplerCase, SamplerClient
from workbench.engine.learning.sampler_worker import SamplerQuestion, advise, space_of
from workbench.engine.learning.scoring import compared
from workbench.engine.runs.costing import Costing
from workbench.engine.runs.sampler_cost import stand_in
from workbench.labs.base import LabCosts
from workbench.models.crossvalidation import Row
from workbench.sampling.base import Ask

COSTS = LabCosts(deploy_s=1.0, allocate_s=0.1, drive_overhead_s=0.5)


class Says:
    unit = "EUR/h"

    def __init__(self, amount: Any) -> None:
        self.amount = amount

    def of_instance(self, vnf: str, resources: Mapping[str, ParameterValue]) -> Any:
        if isinstance(self.amount, BaseException):
            raise self.amount
        return self.amount


@pytest.mark.parametrize(
    ("amount", "sentence"),
    [
        (math.nan, "'mine' says that an instance of haproxy costs nan"),
        (math.inf, "'mine' says that an instance of haproxy costs inf"),
        (-1, "'mine' says that an instance of haproxy costs -1"),
        ("much", "'mine' raises ValueError: could not convert"),
        (None, "'mine' raises TypeError"),
        (SystemExit(3), "'mine' raises SystemExit: 3"),
        (ZeroDivisionError("by my own fault"), "'mine' raises ZeroDivisionError: by my own fault"),
    ],
    ids=str,
)
def test_what_is_no_cost_is_named(amount: Any, sentence: str) -> None:
    with pytest.raises(PluginError, match=sentence) as error:
        CheckedCost("mine", Says(amount)).of_instance("haproxy", {"vcpu": 1.0})
    assert str(error.value).startswith("workbench.costs: ")


def test_a_cost_says_what_it_is_of_and_what_has_no_price() -> None:
    class Unsaid:
        def of_instance(self, vnf: str, resources: Mapping[str, ParameterValue]) -> float:
            return 1.0

    with pytest.raises(PluginError, match="does not say in `unit`"):
        CheckedCost("mine", Unsaid())  # type: ignore[arg-type]
    free = CheckedCost("mine", Says(0))
    assert (free.unit, free.of_instance("haproxy", {})) == ("EUR/h", 0.0)
    with pytest.raises(UsageError, match="no price"):
        CheckedCost("mine", Says(UsageError("no price"))).of_instance("haproxy", {})


class Composes:
    name = "mine"

    def __init__(self, figures: Any) -> None:
        self.figures = figures

    def refusal(self, kpi: str, load: str) -> str:
        return ""

    def needs(self, kpi: str) -> tuple[str, ...]:
        return (kpi,)

    def compose(self, graph: Any, kpi: str, figures: Any) -> Any:
        if isinstance(self.figures, BaseException):
            raise self.figures
        return self.figures


ROWS = SimpleNamespace(dependence=np.zeros(3))


@pytest.mark.parametrize(
    ("figures", "sentence"),
    [
        (np.full((3, 2), math.nan), "'mine' composes mean_ms to what is no number"),
        (np.ones(3), r"shape \(3,\), not of 3 rows"),
        (np.ones((2, 2)), r"shape \(2, 2\), not of 3 rows"),
        ("x", "'mine' raises ValueError"),
        (SystemExit(3), "'mine' raises SystemExit: 3"),
    ],
    ids=["nan", "flat", "short", "text", "exit"],
)
def test_what_is_no_composition_is_named(figures: Any, sentence: str) -> None:
    rule = CheckedRule("mine", Composes(figures))
    assert (rule.refusal("mean_ms", "open"), rule.needs("mean_ms")) == ("", ("mean_ms",))
    with pytest.raises(PluginError, match=sentence):
        rule.compose(Vnf("a", "a"), "mean_ms", ROWS)  # type: ignore[arg-type]


def test_a_rule_may_say_that_nothing_is_carried_in_time() -> None:
    rule = CheckedRule("mine", Composes([[1.0], [2.0], [math.inf]]))
    composed = rule.compose(Vnf("a", "a"), "mean_ms", ROWS)  # type: ignore[arg-type]
    assert composed[:, 0].tolist() == [1.0, 2.0, math.inf]


async def test_a_model_that_ends_its_process_has_a_row_beside_the_others() -> None:
    class Mortal(Pool):
        async def run(self, work: Any, table: Any, method: str, *_: Any) -> Row:
            if method == "deadly":
                raise WorkerLost("the worker process died twice over 'row_of'")
            return Row(table.target, table.kpi, method, None, "too few samples")

    table = SimpleNamespace(target="haproxy", kpi="p95_ms", columns=(), sample_ids=(), ceiling=None)
    for name in ("X", "y", "noise", "points", "configurations"):
        setattr(table, name, np.zeros(0))
    rows = await compared(Mortal(), table, ("deadly", "harmless"))  # type: ignore[arg-type]
    assert [(row.method, row.trouble) for row in rows] == [
        ("deadly", "the worker process died twice over 'row_of'."),
        ("harmless", "too few samples"),
    ]


async def test_a_sampler_that_ends_its_process_has_an_unknown_cost() -> None:
    class Mortal:
        async def run(self, *_: Any) -> Never:
            raise WorkerLost("the worker process died twice over 'cost_of'")

    costing = Costing(None, Mortal())  # type: ignore[arg-type]
    cost = await costing._predicted_cost(campaign(), "sim", COSTS, 1, "deadly")
    assert (cost.sampler, cost.figure, cost.chosen) == ("deadly", "unknown", False)
    assert cost.note == "the worker process died twice over 'cost_of'"


def test_a_sampler_that_cannot_be_made_is_set_aside_from_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Unmade:
        def __init__(self, space: Any, plan: Any) -> None:
            raise ZeroDivisionError("by my own fault")

    shipped = plugins.load
    monkeypatch.setattr(
        plugins, "load", lambda group, name: Unmade if name == "unmade" else shipped(group, name)
    )
    asked = replace(campaign(), sampling=replace(campaign().sampling, method="unmade"))
    sampler = GuardedSampler(asked, space_of(asked, "haproxy", 1))
    assert sampler.set_aside == (
        "the sampler 'unmade' cannot be made: ZeroDivisionError: by my own fault; "
        "'bisection' takes over"
    )
    assert sampler.ask() is not None


async def test_a_sampler_that_ends_its_process_is_set_aside() -> None:
    class Mortal:
        async def advise(self, question: SamplerQuestion, _: Any) -> str:
            if not question.distrusted:
                raise WorkerLost("the worker process died twice over 'advise'")
            return "advice of what ships"

    advisor = SamplerClient(Mortal(), SamplerCase(campaign(), "haproxy", 1, COSTS), (), ())  # type: ignore[arg-type]
    assert await advisor.advise() == "advice of what ships"  # type: ignore[comparison-overlap]
    assert advisor.distrusted.startswith("sampler 'bisection' or model 'gaussian-process' ends its")


class Model:
    """A model of the campaign that has `predicted`, or raises it."""

    def __init__(self, predicted: Any) -> None:
        self.predicted = predicted

    def fit(self, X: Any, y: Any, noise: Any = None) -> Model:
        return self

    def predict(self, X: Any) -> Any:
        if isinstance(self.predicted, BaseException):
            raise self.predicted
        return np.full((len(X), *self.predicted.shape), self.predicted)

    def predict_band(self, X: Any) -> Any:
        return self.predict(X), self.predict(X)


def played(method: str, model: str) -> tuple[GuardedSampler, list[Ask]]:
    """A sampler that is told what plans are played against, to its end."""
    sampling = SamplingPlan(method, 30, model=model)
    asked = replace(campaign(), sampling=sampling)
    space = space_of(asked, "haproxy", 1)
    sampler, asks = GuardedSampler(asked, space), []
    while (ask := sampler.ask()) is not None:
        asks.append(ask)
        sampler.tell([stand_in(ask, space)])
    return sampler, asks


@pytest.mark.parametrize("method", ["bisection", "heuristic"])
@pytest.mark.parametrize(
    ("predicted", "sentence"),
    [
        (np.array(math.nan), "predicts what is not finite"),
        (np.ones(1), "does not predict one number for each row"),
        (ZeroDivisionError("by its own fault"), "raises ZeroDivisionError: by its own fault"),
        (DataError("no law fits"), "raises DataError: no law fits"),
        (SystemExit(3), "raises SystemExit: 3"),
        (PluginError("'mine' cannot be loaded: no"), "cannot be loaded: no"),
    ],
    ids=["nan", "shape", "raises", "data", "exit", "unloadable"],
)
def test_a_model_that_fails_its_sampler_is_set_aside_and_the_sampler_stays(
    monkeypatch: pytest.MonkeyPatch, method: str, predicted: Any, sentence: str
) -> None:
    shipped = plugins.load

    def load(group: plugins.Group, name: str) -> Any:
        if name == "mine" and isinstance(predicted, PluginError):
            raise predicted
        return (lambda: Model(predicted)) if name == "mine" else shipped(group, name)

    monkeypatch.setattr(plugins, "load", load)
    sampler, asks = played(method, "mine")
    assert sampler.set_aside == "", "the sampler did nothing wrong"
    assert sampler.model_set_aside == (
        f"the model 'mine' {sentence}; 'gaussian-process' takes over"
    )
    # All was told again to the sampler with the model that ships: it goes on as if it had had it.
    assert asks == played(method, "gaussian-process")[1]


def test_curves_are_drawn_by_the_model_that_ships_once_the_campaigns_own_is_set_aside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also by one that exits while a curve is drawn, of which the sampler knows nothing."""
    shipped = plugins.load
    monkeypatch.setattr(
        plugins,
        "load",
        lambda group, name: (
            (lambda: Model(SystemExit(3))) if name == "mine" else shipped(group, name)
        ),
    )
    for method, said in (("bisection", True), ("uniform", False)):
        asked = replace(campaign(), sampling=SamplingPlan(method, 12, model="mine"))
        where = asked.configurations(asked.target_plan("haproxy"))[0]
        space = space_of(asked, "haproxy", 1)
        samples: list[Sample] = []
        told = 0
        while True:
            new = tuple(samples[told:])
            question = SamplerQuestion(method, asked, "haproxy", 1, told, new, (), (where,))
            advice = advise(question)
            assert advice is not None
            if advice.ask is None:
                break
            told = len(samples)
            samples.append(stand_in(advice.ask, space))
        (fit,) = advice.fits
        assert fit.curve is not None
        assert fit.curve.model == "gaussian-process"
        # Who is set aside already is not tried anew.
        assert (bool(advice.set_aside), bool(fit.set_aside)) == (said, not said)
        (sentence,) = {*advice.set_aside, fit.set_aside} - {""}
        assert sentence == "the model 'mine' raises SystemExit: 3; 'gaussian-process' takes over"
