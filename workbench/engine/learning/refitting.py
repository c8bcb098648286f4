"""A model as data: what a fit is stored as, and the fit that is made of it again.

All of this runs in the worker process; what crosses over to it can be pickled.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from workbench import plugins
from workbench.domain.campaign import Campaign
from workbench.domain.counts import counted
from workbench.domain.errors import PluginError, WorkbenchError
from workbench.domain.profiles import (
    Coefficient,
    MethodFormulas,
    ModelFormula,
    Setting,
    TargetModel,
)
from workbench.domain.samples import Sample

if TYPE_CHECKING:  # their imports take seconds, and the engine only hands these values on
    from workbench.models.forecast import ProfileForecaster
    from workbench.models.table import Table

TOLERANCE = 1e-4
"""A fit is the stored one if each coefficient is within this share of its own size, or within a
millionth of the median size where it is smaller: libraries and processors round differently, and
an optimiser that stops early carries that on."""
SMALL = 1e-6

MOST_COEFFICIENTS = 10_000
"""Of more, evenly spread ones are stored: an interpolation keeps every sample as coefficients."""

LIBRARIES = ("numpy", "scipy", "scikit-learn")

KEPT_FITS = 128
"""Fits that the worker keeps for the next question, one that was made for all samples twice: a
chain asks for four to ten, of some tenths of a second each."""


@dataclass(frozen=True)
class StoredFit:
    """What is stored of a fit; see `TargetModel`."""

    parameters: Mapping[str, Setting]
    coefficients: tuple[float, ...]
    coefficient_count: int
    libraries: Mapping[str, str]
    cpu_s: float
    formulas: tuple[ModelFormula, ...]


@dataclass(frozen=True)
class StoredModel:
    """A model with what it takes to fit it again.

    Attributes
    ----------
    samples : those it was fitted to, in that order, as far as the session has them.
    unstored : why no session holds it, as a sentence; its version is 0 then.
    """

    campaign: Campaign
    model: TargetModel
    samples: tuple[Sample, ...]
    unstored: str = ""


@dataclass(frozen=True)
class Loaded:
    """A model that is fitted again.

    Attributes
    ----------
    warning : how it differs from what was stored, as a sentence; empty where it is the same.
    """

    forecaster: ProfileForecaster
    warning: str = ""


def fit_to_all(table: Table, method: str, samples: Sequence[Sample]) -> StoredFit:
    """Fit a method to a whole table; `samples` are those that it was made of, or more.

    Raises `WorkbenchError` if it cannot be fitted, or says nonsense.
    """
    made = _fitted(table, method, {})
    fit = _fit_of(made.model, table, method, made.cpu_s, samples)
    # Who loads the stored model asks for these settings by name: it is the same fit.
    _keep(digest(table, method, fit.parameters), made)
    return fit


def formulas_in(
    table: Table, methods: Sequence[str], samples: Sequence[Sample]
) -> tuple[MethodFormulas, ...]:
    """What methods come to on a whole table; those that are no formulas are not fitted for it.

    `samples` are those that the table was made of, or more.
    """
    found = []
    for method in methods:
        formulas: tuple[ModelFormula, ...] = ()
        trouble = ""
        try:
            if not hasattr(
                getattr(plugins.load("models", method)(), "estimator", None), "describe"
            ):
                continue
            formulas = formulas_of(_fitted(table, method, {}).model, table, samples)
        except WorkbenchError as error:
            trouble = str(error)
        found.append(MethodFormulas(table.target, table.kpi, method, formulas, trouble))
    return tuple(found)


def formulas_of(model: Any, table: Table, samples: Sequence[Sample]) -> tuple[ModelFormula, ...]:
    """Of a fitted model of each configuration that can describe itself, in the table's order."""
    return tuple(_formulas(model, table, {sample.id: sample for sample in samples}))


def _formulas(model: Any, table: Table, by_id: Mapping[str, Sample]) -> Iterator[ModelFormula]:
    import numpy as np

    models = getattr(model, "models_", ())
    for row, own in zip(getattr(model, "configurations_", ()), models, strict=False):
        if not hasattr(own, "describe"):
            return
        first = int(np.flatnonzero((table.X[:, :-1] == row).all(axis=1))[0])
        configuration = by_id[table.sample_ids[first]].point.configuration
        for region in own.describe():
            yield ModelFormula(
                configuration,
                region.region,
                region.formula,
                region.low,
                region.high,
                tuple(
                    Coefficient(name, _sayable(value), _stated(region.errors.get(name)))
                    for name, value in region.coefficients.items()
                ),
                region.function,
                _stated(region.standard_error),
            )


def _sayable(value: float) -> float:
    """JSON has no infinity."""
    return value if math.isfinite(value) else math.copysign(1e300, value or 1.0)


def _stated(error: float | None) -> float | None:
    return error if error is not None and math.isfinite(error) else None


def fitted(table: Table, method: str) -> ProfileForecaster:
    """A method fitted to a whole table, ready to be asked. Raises `WorkbenchError` as above."""
    return _fitted(table, method, {}).forecaster(table)


def load(stored: StoredModel) -> Loaded:
    """Fit a stored model again and check it against its coefficients.

    Raises
    ------
    WorkbenchError
        If its samples make no table any more, or if the method is gone or cannot be fitted.
    """
    from workbench.models.table import table_of

    model = stored.model
    table = table_of(
        model.target,
        stored.samples,
        kpi=model.kpi,
        kpi_max=model.kpi_max,
        primary=stored.campaign.target_plan(model.target).primary,
    )
    made = _fitted(table, model.method, model.parameters)
    fit = _fit_of(made.model, table, model.method, 0.0, stored.samples)
    return Loaded(made.forecaster(table), _difference(model, table, fit, made.gone))


@dataclass
class _Kept:
    factory: Any
    model: Any
    gone: list[str]
    """Settings that the method does not know."""
    cpu_s: float
    _forecaster: ProfileForecaster | None = None

    def forecaster(self, table: Table) -> ProfileForecaster:
        """One for all questions: it knows again what it was asked before."""
        from workbench.chains.bounded_forecaster import BoundedForecaster

        if self._forecaster is None:
            self._forecaster = BoundedForecaster(table, self.model)
        return self._forecaster


_kept_fits: dict[str, _Kept] = {}
"""Of this process, by `digest`, the latest used last; nobody changes a model that is fitted."""


def _fitted(table: Table, method: str, settings: Mapping[str, Setting]) -> _Kept:
    """The method made with the settings and fitted.

    The same fit to the same table is not made twice.
    """
    factory = plugins.load("models", method)
    key = digest(table, method, settings)
    kept = _kept_fits.get(key)
    if kept is None or kept.factory is not factory:
        begin = time.process_time()
        model, gone = _fitted_anew(table, method, settings)
        kept = _Kept(factory, model, gone, time.process_time() - begin)
    _keep(key, kept)
    return kept


def _keep(key: str, kept: _Kept) -> None:
    _kept_fits.pop(key, None)
    _kept_fits[key] = kept
    while len(_kept_fits) > KEPT_FITS:
        del _kept_fits[next(iter(_kept_fits))]


def digest(table: Table, method: str, settings: Mapping[str, Setting]) -> str:
    """Of all that a fit, or a score of one, depends on."""
    plain = (table.target, table.kpi, table.columns, table.sample_ids, table.ceiling)
    found = hashlib.sha256(repr((method, sorted(settings.items()), plain)).encode())
    for array in (table.X, table.y, table.noise, table.points, table.configurations):
        found.update(array.tobytes())
    return found.hexdigest()


def _fitted_anew(
    table: Table, method: str, settings: Mapping[str, Setting]
) -> tuple[Any, list[str]]:
    import numpy as np

    from workbench.models.conformal import Conformal
    from workbench.models.table import fitted_to

    factory = plugins.load("models", method)
    try:
        model = factory()
        if not hasattr(model, "predict_band"):
            model = Conformal(model)  # a forecast without an interval is of no use to anybody
        model = fitted_to(model, table)
        gone = _set(model, settings)
        model.fit(table.X, table.y, table.noise)
        said = (model.predict(table.X), *model.predict_band(table.X))
        if not all(np.isfinite(values).all() for values in said):
            raise PluginError("predicts what is not finite")
    except Exception as error:  # a plugin may fail in any way
        what = f"{type(error).__name__}: {error}"
        if isinstance(error, WorkbenchError):
            what = error.what
        raise PluginError(
            f"the model {method!r} cannot be fitted to {counted(len(table), 'sample')}: {what}",
            where=f"{table.target}, {table.kpi}",
        ) from error
    return model, gone


def _set(model: Any, settings: Mapping[str, Setting]) -> list[str]:
    from workbench.models.settings import settings_of

    offered = settings_of(model)
    changed = {k: v for k, v in settings.items() if k in offered and offered[k] != v}
    if changed:
        model.set_params(**changed)
    return sorted(settings.keys() - offered.keys())


def _fit_of(
    model: Any, table: Table, method: str, cpu_s: float, samples: Sequence[Sample]
) -> StoredFit:
    import numpy as np

    from workbench.models.estimator import fingerprint_rows
    from workbench.models.settings import settings_of

    learned = np.ravel(np.asarray(getattr(model, "coefficients_", ()), dtype=float))
    if not learned.size:  # the contract leaves them to the model
        learned = np.ravel(model.predict(fingerprint_rows(table.X)))
    learned = np.nan_to_num(learned)  # JSON has no infinity
    kept = learned[_kept(learned.size)]
    return StoredFit(
        settings_of(model),
        tuple(float(value) for value in kept),
        int(learned.size),
        _libraries(method),
        cpu_s,
        formulas_of(model, table, samples),
    )


def _kept(count: int) -> Any:
    """Places of the coefficients that are stored of so many."""
    import numpy as np

    return np.unique(np.linspace(0, count - 1, min(count, MOST_COEFFICIENTS)).astype(int))


def _libraries(method: str) -> dict[str, str]:
    names = dict.fromkeys((*LIBRARIES, plugins.distribution("models", method)))
    return {name: version(name) for name in names if name}


def _difference(model: TargetModel, table: Table, fit: StoredFit, gone: list[str]) -> str:
    """How a fit is not the stored one, and what may be to blame; empty if it is the same."""
    missing = len(model.sample_ids) - len(table)
    if missing or table.sample_ids != model.sample_ids:
        what = f"{missing} of its {len(model.sample_ids)} samples cannot be used"
    elif gone:
        what = f"it has no parameter {', '.join(gone)}"
    elif fit.coefficient_count != model.coefficient_count:
        now = counted(fit.coefficient_count, "coefficient")
        what = f"it has {now} and had {model.coefficient_count}"
    else:
        what = _first_difference(model, fit)
    if not what:
        return ""
    changed = [
        f"{name} is {now} and was {model.libraries.get(name, 'not there')}"
        for name, now in fit.libraries.items()
        if model.libraries.get(name) != now
    ]
    why = ", ".join(changed) or "no library has changed: the file has, or a processor's rounding"
    return (
        f"model {model.version} of {model.target}, {model.kpi} ({model.method}), fitted again, is "
        f"not the one that was stored: {what}; {why}"
    )


def _first_difference(model: TargetModel, fit: StoredFit) -> str:
    import numpy as np

    now, then = np.array(fit.coefficients), np.array(model.coefficients)
    if now.shape != then.shape:
        return f"{len(then)} coefficients are stored of {model.coefficient_count}"
    apart = np.abs(now - then) > TOLERANCE * np.abs(then) + SMALL * float(np.median(np.abs(then)))
    if not apart.any():
        return ""
    first = int(np.argmax(apart))
    place = int(_kept(model.coefficient_count)[first]) + 1
    return (
        f"coefficient {place} of {model.coefficient_count} is {now[first]:.6g} "
        f"and was {then[first]:.6g}"
    )
