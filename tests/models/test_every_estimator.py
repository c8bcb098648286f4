"""Every registered model is put through scikit-learn's checks, as a class that a test names."""

from __future__ import annotations

from unittest import SkipTest

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator
from test_parametric_configurations import CHECKED as BY_CONFIGURATION
from test_pooled import CANNOT_APPLY as OF_POOLED
from test_regressors import CANNOT_APPLY, CHECKED

from workbench import plugins
from workbench.models.catalogue import Catalogue
from workbench.models.curve_fit import CurveFit
from workbench.models.interpolation import LogInterpolation
from workbench.models.pooled import Pooled

TESTED = {type(model) for model in (*CHECKED, *BY_CONFIGURATION)} | {Pooled, Catalogue, CurveFit}


def parts(model: object) -> list[object]:
    """A model and the models that it wraps."""
    inner = getattr(model, "estimator", None)
    return [model] if inner is None else [model, *parts(inner)]


def test_no_registered_model_goes_unchecked() -> None:
    for name in plugins.names("models"):
        if plugins.distribution("models", name) == "vnf-workbench":
            assert {type(part) for part in parts(plugins.load("models", name)())} <= TESTED, name


def test_what_cannot_apply_is_the_same_for_all_and_has_a_reason() -> None:
    assert CANNOT_APPLY == OF_POOLED
    assert all(len(why) > 20 for why in CANNOT_APPLY.values())


def test_what_is_left_out_would_still_be_skipped_by_scikit_learn_itself() -> None:
    left_out = set()
    for estimator, check in estimator_checks_generator(LogInterpolation()):
        name = getattr(check, "func", check).__name__
        if name in CANNOT_APPLY:
            left_out.add(name)
            with pytest.raises(SkipTest):
                check(estimator)
    assert left_out == set(CANNOT_APPLY), "whatever passes or is gone is no exception any more"
