"""The contract of a recommendation's export, and what it is told beside the recommendation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from workbench.domain.lab import HostFacts
from workbench.domain.recommendations import Recommendation, Trend
from workbench.domain.topology import VnfTemplate


@dataclass(frozen=True)
class Context:
    """What a recommendation does not say itself, and its readers want to know.

    Attributes
    ----------
    version : of the workbench.
    templates : of the functions, by their name in the chain, from the source's side.
    host : where the profiles were measured; a recommendation holds there.
    trends : the chosen (else the closest) allocation first, then the next cheaper one.
    wl_label : the primary workload with its unit, as an axis names it: `rate (requests/s)`.
    why : why the chain takes longer than its functions alone, in sentences; empty where it does
        not, or where nothing was measured that would say so.
    """

    version: str
    templates: Mapping[str, VnfTemplate] = field(default_factory=dict)
    host: HostFacts | None = None
    trends: tuple[Trend, ...] = ()
    wl_label: str = "wl"
    why: str = ""


class RecommendationExport(Protocol):
    """Registered under `workbench.recommendation_exports`.

    Pure: no I/O and no clock. Returns the text of every file by its name, the main file first;
    names are relative and hold no folder. Raises `WorkbenchError` where there is nothing to write:
    formats that deploy do so when nothing meets the SLA, reports do not.
    """

    def __call__(
        self, recommendation: Recommendation, context: Context, /
    ) -> Mapping[str, str]: ...
