"""The pooled model on samples of hundreds of configurations, from where it begins to learn them."""

import json
from pathlib import Path

import pytest
from science import judging
from science.surfaces import BY_NAME

from workbench.models.pooled.law import Law

SURFACE = BY_NAME["firewall-law"]
STEEP = Path(__file__).parents[1] / "data" / "steep_samples.json"
"""Numbers of configurations and loads of 270 samples that the sampler `pooled` once asked for: of
most configurations one, on the steep piece."""


def error() -> float:
    judged = judging.judge_of(SURFACE)
    own = SURFACE.configurations
    points = [(own[number], wl, 0) for number, wl in json.loads(STEEP.read_text())]
    score = judged.score(judging.factory("pooled")(), judged.table(points, "train-1"))
    assert score.sane
    return score.rmse


def test_a_steep_sample_alone_is_no_base_line() -> None:
    assert error() < 0.25


def test_begun_from_those_alone_capacities_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the second beginning is for: this is how it was without."""
    monkeypatch.setattr(Law, "with_one_base", lambda self: self)
    assert error() > 0.4
