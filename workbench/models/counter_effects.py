"""Which counter moved a prediction, by how much: SHAP values of ours on rows that it had not seen.

Lundberg and Lee, "A unified approach to interpreting model predictions" (NeurIPS 2017), as paper C
takes it for Fig. 10; by permutations, which are exact in their sum for every model. Ours predicts
logs, so that the values of a row add up in logs, and each is a factor on the KPI.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from workbench.domain.errors import DataError
from workbench.models.base import Floats
from workbench.models.counter_contention import traffic_of
from workbench.models.counter_rows import CounterRows
from workbench.models.counter_scores import HeldOutModel
from workbench.models.estimator import seeded_subset
from workbench.models.folds import Ints

INSTALL = "Install it with `pip install 'vnf-workbench[explain]'`"
BACKGROUND = 30
"""Rows whose mean prediction is the base that values are counted from."""
PERMUTATIONS = 2
"""Orders of the counters, each taken forwards and backwards."""
ALIKE = 0.95
"""Correlation of the logs of two counters, from which they go together."""
FEWEST_EXPLAINED, MOST_EXPLAINED = 20, 200
MOST_ASKED = 400_000
"""Rows that models are asked for in all, but for the fewest that are explained."""
AT_ONCE = 10
"""Rows between two words of progress."""


@dataclass(frozen=True)
class RowEffects:
    """SHAP values of n rows, each by a model that had not seen its experiment.

    Attributes
    ----------
    rows : that were explained.
    values : of shape (n, d), in logs of the KPI; a row's sum and its base are its prediction.
    base : of shape (n,), the mean log prediction of `BACKGROUND` rows by its model.
    predicted : of shape (n,), logs of the KPI.
    """

    rows: CounterRows
    values: Floats
    base: Floats
    predicted: Floats


@dataclass(frozen=True)
class CompanyEffect:
    """What counters do to the KPI beside a competitor, against rows alone at the nearest load.

    Attributes
    ----------
    name : of the counter, of those that go together the one with the largest values.
    alike : the others, which correlate with it (`ALIKE`): how a model shares what they do among
        them is chance, so that their values are added.
    factor : on the predicted KPI, that these values differ by.
    moved : by which factor the counter itself is more (median); None where it is 0 on one side.
    """

    competitor: str
    name: str
    alike: tuple[str, ...]
    factor: float
    moved: float | None


@dataclass(frozen=True)
class CounterEffect:
    """How strongly one counter moves what ours predicts.

    Attributes
    ----------
    factor : exp of the mean |SHAP value|: 1.2 is up or down by a factor of 1.2, 1 is nothing.
    rises : rank correlation of counter and value, from -1 to 1: above 0 more of it is more of the
        KPI. None where one of them is constant.
    """

    name: str
    factor: float
    rises: float | None


def row_effects(
    rows: CounterRows,
    models: Sequence[HeldOutModel],
    seed: int,
    tell: Callable[[int, int], None],
) -> RowEffects:
    """SHAP values of rows drawn by the seed, each of the model that had not seen its experiment.

    Parameters
    ----------
    models : of `held_out_models` on these rows.
    tell : is called with how many rows are done, of how many.

    Raises
    ------
    DataError
        If the package is not installed.
    """
    shap = shap_package()
    columns = rows.x.shape[1]
    cost = PERMUTATIONS * (2 * columns + 1) * BACKGROUND
    most = int(np.clip(MOST_ASKED // cost, FEWEST_EXPLAINED, MOST_EXPLAINED))
    drawn = seeded_subset(len(rows.y), most, seed)
    values = np.zeros((len(drawn), columns))
    base, predicted = np.zeros(len(drawn)), np.zeros(len(drawn))
    # One for all folds: what values are counted from differs by model only, and teaches nothing.
    background = rows.x[seeded_subset(len(rows.y), BACKGROUND, seed)]
    done = 0
    for model, out in models:
        places = np.flatnonzero(np.isin(drawn, out))
        if not len(places):
            continue
        explain = _explainer(shap, model, background, seed)
        for some in np.array_split(places, -(-len(places) // AT_ONCE)):
            x = rows.x[drawn[some]]
            values[some], base[some] = explain(x)
            predicted[some] = np.log(model.predict(x))
            done += len(some)
            tell(done, len(drawn))
    return RowEffects(rows.taken(drawn), values, base, predicted)


def effects_of(found: RowEffects) -> list[CounterEffect]:
    """Of every counter, the strongest first."""
    sizes = np.abs(found.values).mean(axis=0)
    return [
        CounterEffect(
            found.rows.features[i],
            float(np.exp(sizes[i])),
            _rank_correlation(found.rows.x[:, i], found.values[:, i]),
        )
        for i in np.argsort(-sizes, kind="stable")
    ]


def company_effects(found: RowEffects, most: int = 3) -> list[CompanyEffect]:
    """The counters by which predictions beside each competitor differ most from those alone.

    Each row beside one is compared with the row alone whose traffic is nearest: loads are drawn at
    random, and would be taken for contention. None where rows alone or competitors are missing.
    """
    rows = found.rows
    if rows.beside is None or not (rows.beside == 0).any():
        return []
    alone = np.flatnonzero(rows.beside == 0)
    together = _alike(found)
    effects = []
    for rival in np.setdiff1d(rows.beside, [0]):
        beside = np.flatnonzero(rows.beside == rival)
        like = _nearest_alone(rows, alone, beside)
        differ = (found.values[beside] - found.values[like]).mean(axis=0)
        by = [float(differ[columns].sum()) for columns in together]
        for place in np.argsort(-np.abs(by), kind="stable")[:most]:
            first, *rest = together[place]
            before, now = (np.median(rows.x[which, first]) for which in (like, beside))
            effects.append(
                CompanyEffect(
                    rows.competitors[rival],
                    rows.features[first],
                    tuple(rows.features[column] for column in rest),
                    float(np.exp(by[place])),
                    float(now / before) if before > 0.0 and now > 0.0 else None,
                )
            )
    return effects


def _alike(found: RowEffects) -> list[list[int]]:
    """Columns that go together, those with the largest values first."""
    rows = found.rows
    with np.errstate(all="ignore"):  # a counter may be constant among these rows
        between = np.nan_to_num(np.corrcoef(np.log1p(rows.x), rowvar=False)).reshape(
            len(rows.features), -1
        )
    together: list[list[int]] = []
    for column in np.argsort(-np.abs(found.values).sum(axis=0), kind="stable").tolist():
        home = next((one for one in together if between[one[0], column] >= ALIKE), None)
        if home is None:
            together.append([column])
        else:
            home.append(column)
    return together


def _nearest_alone(rows: CounterRows, alone: Ints, beside: Ints) -> Ints:
    """The row alone with the nearest traffic, for each of `beside`; where none is counted, each
    of the rows alone in turn."""
    traffic = traffic_of(rows.features)
    if traffic is None:
        return alone[np.arange(len(beside)) % len(alone)]
    load = np.log(np.maximum(rows.x[:, rows.features.index(traffic)], 1.0))
    nearest = np.abs(load[beside][:, None] - load[alone]).argmin(axis=1)
    return np.asarray(alone[nearest])


def shap_package() -> ModuleType:
    """The package of the extra. Raises `DataError` where it is not installed."""
    try:
        import shap
    except ImportError:
        raise DataError(
            "SHAP values need the package 'shap', which is not installed",
            where="--explain",
            remedy=INSTALL,
        ) from None
    return shap  # type: ignore[no-any-return]  # it has no types


def _explainer(
    shap: ModuleType, model: Any, background: Floats, seed: int
) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Values (n, d) and bases (n,) of rows (n, d), in logs of the KPI."""
    masker = shap.maskers.Independent(background, max_samples=len(background))
    evaluations = PERMUTATIONS * (2 * background.shape[1] + 1)

    def explain(x: Floats) -> tuple[Floats, Floats]:
        before = np.random.get_state()
        try:  # it draws from numpy's common source, which it seeds
            explainer = shap.explainers.Permutation(
                lambda asked: np.log(model.predict(asked)), masker, seed=seed
            )
            said = explainer(x, max_evals=evaluations, silent=True)
        finally:
            np.random.set_state(before)
        return np.asarray(said.values, dtype=float), np.asarray(said.base_values, dtype=float)

    return explain


def _rank_correlation(x: Floats, values: Floats) -> float | None:
    """Spearman's; ranks of equal figures are in the order of the rows."""
    if np.ptp(x) <= 0.0 or np.ptp(values) <= 0.0:
        return None
    ranks = [np.argsort(np.argsort(one, kind="stable")) for one in (x, values)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
