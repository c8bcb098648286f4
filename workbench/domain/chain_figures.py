"""Allocations, figures and models of a chain, as every answer writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.domain.parameters import Configuration, ParameterValue
from workbench.domain.samples import OVERLOAD, Estimate, is_unbounded

if TYPE_CHECKING:
    from workbench.domain.chains import PartModel


def shown_allocation(configuration: Configuration, order: Sequence[str] = ()) -> dict[str, str]:
    """Resources as a person calls them: a function's vCPU by its name alone.

    Functions are in the given order, else by name.
    """
    shown = {}
    flavored = {k.rpartition(".")[0] for k in configuration.resources if k.endswith(".flavor")}
    places = {vnf: place for place, vnf in enumerate(order)}
    resources = sorted(configuration.resources.items())
    for key, value in sorted(resources, key=lambda r: places.get(r[0].rpartition(".")[0], 0)):
        vnf, _, resource = key.rpartition(".")
        if vnf in flavored and resource != "flavor":
            continue  # its flavor says it
        shown[vnf if resource in ("vcpu", "flavor") else key] = amount(key, value)
    return shown


def allocation(configuration: Configuration) -> str:
    resources = [f"{name} {value}" for name, value in shown_allocation(configuration).items()]
    workload = [f"{key}={amount(key, value)}" for key, value in configuration.workload.items()]
    return ", ".join([*resources, *workload])


def amount(key: str, value: ParameterValue) -> str:
    if isinstance(value, str):
        return value
    return f"{100.0 * value:.4g} %" if key.endswith(".vcpu") else figure(value)


def interval(estimate: Estimate) -> str:
    if estimate.unbounded:
        return OVERLOAD
    return f"{figure(estimate.value)} [{figure(estimate.low)}, {figure(estimate.high)}]"


def figure(value: float) -> str:
    """Three digits, without powers of ten for large ones."""
    if is_unbounded(value):
        return "unbounded"
    return f"{value:.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def model(model: PartModel) -> str:
    version = f"version {model.version}" if model.version else "not stored"
    kpis = ", ".join((model.kpi, *model.also))
    of = f" of {model.whose}" if model.whose else ""
    return f"{model.target}'s {kpis} by {model.method} ({version}, {model.samples} samples{of})"
