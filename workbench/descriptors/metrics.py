"""`metrics/NAME.yaml`: what is recorded, under which name, and how it is gathered (Listing 3)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from workbench.descriptors.fields import (
    REFERENCE,
    NonEmptyText,
    PositiveDuration,
    Summary,
    Url,
    VariableName,
)
from workbench.descriptors.reading import (
    Described,
    Descriptor,
    DescriptorReading,
    Located,
    did_you_mean,
)
from workbench.descriptors.units import shown
from workbench.domain import kpis
from workbench.domain.campaign import ALWAYS_FIRING, Metric, MetricsServer
from workbench.domain.observations import OBSERVABLES
from workbench.domain.tables import USAGE_FIELDS


def _from_environment(text: str) -> str:
    if not REFERENCE.fullmatch(text):
        raise ValueError("holds a secret as text; secrets are never stored, write ${NAME} instead")
    return text


def _is_http(url: str) -> bool:
    return REFERENCE.fullmatch(url) is not None or url.startswith(("http://", "https://"))


PLACEHOLDERS = ("component", "container", "interface", "session", "window")
"""What stands in double braces in a template."""

_PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")
_NAME = re.compile(r"(?:(\*|[a-z0-9-]+):)?([A-Za-z_][A-Za-z0-9_]*)")


class DefinitionText(Described):
    """How a metric is gathered: a query or formula, its unit and the probe that answers it."""

    template: NonEmptyText = Field(
        description="{{ component }}, {{ container }}, {{ interface }}, {{ session }} and "
        "{{ window }}, the length of the window, are filled in"
    )
    unit: NonEmptyText
    probe: str = ""


class ProbeText(Described):
    """Where values come from: the lab's own records and counters, or a Prometheus server."""

    kind: Literal["requests", "cgroup", "proc", "prometheus"] = Field(alias="class")
    url: Url | None = None
    scrape_interval: PositiveDuration = 1.0
    token: Annotated[str, AfterValidator(_from_environment)] | None = Field(
        default=None, description="${NAME} of a bearer token"
    )
    alerts: bool = Field(
        default=True, description="whether an alert that fires during a sample invalidates it"
    )
    ignored_alerts: list[NonEmptyText] = Field(
        default_factory=lambda: list(ALWAYS_FIRING), description="names of alerts that do not count"
    )

    def mistakes(self) -> Iterator[Located]:
        if self.kind == "prometheus" and self.url is None:
            yield ("url",), "is missing; a probe of class prometheus needs one"
        if self.kind != "prometheus" and self.url is not None:
            yield ("url",), f"is given, but a probe of class {self.kind} has none"
        elif self.url is not None and not _is_http(self.url):
            yield ("url",), f"is {shown(self.url)}, must begin with http:// or https://"


class MetricsText(Descriptor):
    """Which metrics are recorded, and what each of them stands for."""

    ENVIRONMENT_FIELDS: ClassVar[tuple[str, ...]] = ("probes.*.url", "probes.*.token")
    TEMPLATE_FIELDS: ClassVar[tuple[str, ...]] = ("definitions.*.template",)

    kind: Literal["metrics"] = "metrics"
    summary: Summary = ""
    metrics: Annotated[list[NonEmptyText], Field(min_length=1)] = Field(
        description="NAME, or COMPONENT:NAME with a VNF, source, sink, host or * for each of them"
    )
    definitions: dict[VariableName, DefinitionText]
    probes: dict[VariableName, ProbeText] = Field(default_factory=dict)

    @classmethod
    def checks(cls, reading: DescriptorReading) -> Iterator[Located]:
        # What is defined is known by its keys even where a definition itself is wrong.
        defined, probes = (reading.document.root.get(key) for key in ("definitions", "probes"))
        seen: set[str] = set()
        for index, name in enumerate(reading.valid.get("metrics", ())):
            match = _NAME.fullmatch(name)
            if match is None:
                yield ("metrics", index), f"is {shown(name)}, must be NAME or COMPONENT:NAME"
            elif name in seen:
                yield ("metrics", index), f"is {shown(name)} for the second time"
            elif isinstance(defined, dict) and match[2] not in defined:
                allowed = did_you_mean(match[2], defined)
                yield ("metrics", index), f"is {shown(name)}, which has no definition; {allowed}"
            seen.add(name)
        for name, definition in reading.valid.get("definitions", {}).items():
            for placeholder in _PLACEHOLDER.findall(definition.template):
                if placeholder.strip() not in PLACEHOLDERS:
                    yield (
                        ("definitions", name, "template"),
                        f"uses {shown(placeholder.strip())} in braces; "
                        f"{did_you_mean(placeholder.strip(), PLACEHOLDERS)}",
                    )
            if _probe_kind(probes, definition.probe) == "prometheus" and (taken := _whose(name)):
                yield (
                    ("definitions", name),
                    f"has the name of {taken}; choose another for the site's",
                )
            known = probes if isinstance(probes, dict) else {}
            if definition.probe and definition.probe not in known:
                yield (
                    ("definitions", name, "probe"),
                    f"is {shown(definition.probe)}, but there is no probe of that name; "
                    f"{did_you_mean(definition.probe, known)}",
                )

    def resolved(self) -> tuple[tuple[Metric, ...], tuple[MetricsServer, ...]]:
        """The metrics, and the servers of the site that are asked for them."""
        found = []
        for name in self.metrics:
            definition = self.definitions[name.rpartition(":")[2]]
            found.append(Metric(name, definition.template, definition.unit, definition.probe))
        servers = tuple(
            MetricsServer(
                name,
                probe.url,
                probe.scrape_interval,
                probe.token or "",
                probe.alerts,
                tuple(probe.ignored_alerts),
            )
            for name, probe in self.probes.items()
            if probe.kind == "prometheus" and probe.url is not None
        )
        return tuple(found), servers


def _probe_kind(probes: Any, name: str) -> Any:
    """Of the document, where a probe may be wrong elsewhere."""
    probe = probes.get(name) if isinstance(probes, dict) else None
    return probe.get("class") if isinstance(probe, dict) else None


def _whose(name: str) -> str:
    """Whose a name is already; empty: nobody's."""
    if kpis.find(name) is not None:
        return "a KPI that the workbench measures itself"
    if name in OBSERVABLES or name in USAGE_FIELDS:
        return "a counter that the workbench reads itself"
    return ""
