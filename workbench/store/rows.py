"""Domain values to rows: which fact goes into which tables, beside the event itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import fields
from operator import attrgetter

from workbench.domain import codec
from workbench.domain.errors import SessionError
from workbench.domain.events import (
    CampaignPlanned,
    Event,
    Fact,
    ModelFitted,
    SampleTaken,
    SessionCreated,
)
from workbench.domain.observations import Observation
from workbench.domain.parameters import Configuration
from workbench.domain.profiles import Setting
from workbench.domain.samples import (
    Bypass,
    Estimate,
    Finding,
    LatencyHistogram,
    Measurement,
    Remark,
    Sample,
    Usage,
    UsageSecond,
    Window,
)

Row = tuple[object, ...]

SAMPLE_SCALARS = (
    "valid",
    "load_model",
    "kpi_definition",
    "generator",
    "planned",
    "completed",
    "errors",
    "unfinished",
    "windows",
    "batches",
    "throttled_share",
    "straddle_share",
    "started_at",
    "measured_s",
    "lab_s",
    "block",
    "purpose",
)
"""Fields of a sample that are columns of the same name, in the same type."""

WINDOW_SCALARS = ("start_s", "duration_s", "planned", "completed", "errors", "unfinished")
_second, _estimate, _usage, _bypass, _finding, _remark, _observation = (
    attrgetter(*(field.name for field in fields(kind)))
    for kind in (UsageSecond, Estimate, Usage, Bypass, Finding, Remark, Observation)
)
"""A second and so on as a row; `astuple` would copy every value, and there are many."""
_HISTOGRAM = tuple(field.name for field in fields(LatencyHistogram))

BYPASS = tuple(f"bypass_{field.name}" for field in fields(Bypass))
"""Columns of a sample's `Bypass`, all null where it has none."""

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "meta": ("key", "value"),
    "events": ("seq", "happened_at", "type", "payload"),
    "descriptors": ("position", "path", "text"),
    "host_facts": (
        "lab",
        "cores",
        "memory_bytes",
        "kernel",
        "cpu_model",
        "cgroup",
        "engine",
        "image_digests",
        "details",
    ),
    "targets": (
        "position",
        "target",
        "source",
        "sink",
        "vnfs",
        "graph",
        "wl_name",
        "wl_low",
        "wl_high",
        "wl_scale",
        "wl_unit",
        "wl_integer",
    ),
    "configurations": ("configuration", "key", "resources", "workload"),
    "samples": (
        "seq",
        "id",
        "target",
        "configuration",
        "wl",
        "repetition",
        "labels",
        *SAMPLE_SCALARS,
        "p_sla",
        "p_sla_low",
        "p_sla_high",
        *BYPASS,
    ),
    "sample_kpis": ("seq", "position", "kpi", "value", "low", "high"),
    "sample_usage": ("seq", "position", "component", *(field.name for field in fields(Usage))),
    "findings": ("seq", "position", *(field.name for field in fields(Finding))),
    "remarks": ("seq", "position", *(field.name for field in fields(Remark))),
    "windows": (
        "seq",
        "position",
        *WINDOW_SCALARS,
        *(f"service_{name}" for name in _HISTOGRAM),
        *(f"response_{name}" for name in _HISTOGRAM),
    ),
    "series": ("seq", "position", *(field.name for field in fields(UsageSecond))),
    "observations": ("seq", "position", *(field.name for field in fields(Observation))),
    "models": (
        "seq",
        "target",
        "configuration",
        "method",
        "parameters",
        "sample_ids",
        "coefficients",
        "fit_cpu_s",
    ),
    "breakpoints": (
        "seq",
        "target",
        "configuration",
        "rule",
        "kpi",
        "state",
        "wl",
        "low",
        "high",
        "note",
    ),
}
"""Every table with a session's content and its columns, in the order of the rows made here."""


def identity(configuration: Configuration) -> str:
    """What makes two configurations the same in a file; `Configuration.key` rounds for the eye."""
    both = (configuration.resources, configuration.workload)
    return repr(
        [
            sorted((k, v if isinstance(v, str) else float(v)) for k, v in values.items())
            for values in both
        ]
    )


class TransactionRows:
    """The rows of one transaction, by table.

    Parameters
    ----------
    configurations : numbers of the configurations that the file holds, by `identity`.
    samples : ids of the samples that the file holds. Neither is copied: there may be a million,
        and a transaction many times a second.

    Attributes
    ----------
    new_configurations, new_samples : what the file holds besides, once this is committed.
    """

    def __init__(self, configurations: Mapping[str, int], samples: Set[str]) -> None:
        self.tables: dict[str, list[Row]] = defaultdict(list)
        self.new_configurations: dict[str, int] = {}
        self.new_samples: set[str] = set()
        self._configurations, self._samples = configurations, samples

    def add(self, event: Event, payload: bytes, measurement: Measurement | None) -> None:
        """Take in one event. Raises `SessionError`, with nothing taken in, for a stored sample."""
        fact = event.fact
        if isinstance(fact, SampleTaken) and self._holds(fact.sample.id):
            raise SessionError(
                f"sample {fact.sample.id} is stored already",
                where=event.session,
                remedy="Measure it as another repetition",
            )
        seq = event.seq
        self._put("events", (seq, event.at, type(fact).__name__, payload.decode()))
        match fact:
            case SessionCreated():
                self._session(event, fact)
            case CampaignPlanned(plan=plan):
                for planned in plan.configurations:
                    self._configuration(planned.configuration)
            case SampleTaken(sample=sample):
                self._sample(seq, sample)
                if measurement is not None:
                    self._measurement(seq, measurement)
            case ModelFitted():
                self._model(seq, fact)

    def _holds(self, sample: str) -> bool:
        return sample in self._samples or sample in self.new_samples

    def _put(self, table: str, *rows: Row) -> None:
        self.tables[table].extend(rows)

    def _session(self, event: Event, fact: SessionCreated) -> None:
        campaign, host = fact.campaign, fact.host
        meta = {
            "session": event.session,
            "campaign": campaign.name,
            "lab": fact.lab,
            "seed": str(fact.seed),
            "tool_version": fact.tool_version,
        }
        self._put("meta", *meta.items())
        self._put("descriptors", *numbered((d.path, d.text) for d in fact.descriptors))
        *plain, digests, details = attrgetter(*COLUMNS["host_facts"])(host)
        self._put("host_facts", (*plain, _map(digests), _map(details)))
        for position, plan in enumerate(campaign.targets):
            target, wl = plan.target, plan.primary
            self._put(
                "targets",
                (
                    position,
                    target.name,
                    target.source,
                    target.sink,
                    [vnf.name for vnf in target.vnfs],
                    codec.dumps(codec.to_plain(target.graph)).decode(),
                    wl.name,
                    wl.low,
                    wl.high,
                    wl.scale,
                    wl.unit,
                    wl.integer,
                ),
            )

    def _configuration(self, configuration: Configuration) -> int:
        same = identity(configuration)
        number = self._configurations.get(same, self.new_configurations.get(same))
        if number is None:
            number = len(self._configurations) + len(self.new_configurations)
            self.new_configurations[same] = number
            resources, workload = _values(configuration.resources), _values(configuration.workload)
            self._put("configurations", (number, configuration.key, resources, workload))
        return number

    def _sample(self, seq: int, sample: Sample) -> None:
        point, p_sla, bypass = sample.point, sample.p_sla, sample.bypass
        self.new_samples.add(sample.id)
        self._put(
            "samples",
            (
                seq,
                sample.id,
                point.target,
                self._configuration(point.configuration),
                point.wl,
                point.repetition,
                list(sample.labels),
                *attrgetter(*SAMPLE_SCALARS)(sample),
                *(_estimate(p_sla) if p_sla else (None, None, None)),
                *(_bypass(bypass) if bypass else (None,) * len(BYPASS)),
            ),
        )
        kpis = ((name, *_estimate(estimate)) for name, estimate in sample.kpis.items())
        usage = ((name, *_usage(used)) for name, used in sample.usage.items())
        self._put("sample_kpis", *numbered(kpis, seq))
        self._put("sample_usage", *numbered(usage, seq))
        self._put("findings", *numbered(map(_finding, sample.findings), seq))
        self._put("remarks", *numbered(map(_remark, sample.remarks), seq))

    def _measurement(self, seq: int, measurement: Measurement) -> None:
        self._put("windows", *numbered(map(_window, measurement.windows), seq))
        self._put("series", *numbered(map(_second, measurement.series), seq))
        observed = map(_observation, measurement.observations)
        self._put("observations", *numbered(observed, seq))

    def _model(self, seq: int, fact: ModelFitted) -> None:
        where = (fact.target, self._configuration(fact.configuration))
        if (model := fact.model) is not None:
            row = (
                model.method,
                _values(model.parameters),
                list(model.sample_ids),
                list(model.coefficients),
                fact.fit_cpu_s,
            )
            self._put("models", (seq, *where, *row))
        for found in fact.breakpoints:
            row = attrgetter("rule", "kpi", "state", "wl", "low", "high", "note")(found)
            self._put("breakpoints", (seq, *where, *row))


def numbered(rows: Iterable[Row], *first: object) -> list[Row]:
    """Rows with their place in the list in front, behind what all of them begin with."""
    return [(*first, position, *row) for position, row in enumerate(rows)]


def payload_of(fact: Fact) -> bytes:
    """A fact as the JSON that the events table keeps."""
    return codec.dumps(codec.to_plain(fact))


def _window(window: Window) -> Row:
    return (
        *attrgetter(*WINDOW_SCALARS)(window),
        *_histogram(window.service),
        *_histogram(window.response),
    )


def _histogram(histogram: LatencyHistogram) -> Row:
    growth, *lists = attrgetter(*_HISTOGRAM)(histogram)
    return (growth, *map(list, lists))


def _values(values: Mapping[str, Setting]) -> dict[str, list[object]]:
    """Values as the tables keep them: a number (a switch is 1 or 0) or a text, neither for None."""
    return _map(
        {
            key: {
                "number": None if value is None or isinstance(value, str) else float(value),
                "text": value if isinstance(value, str) else None,
            }
            for key, value in values.items()
        }
    )


def _map(values: Mapping[str, object]) -> dict[str, list[object]]:
    """What DuckDB takes for a MAP; a plain dict would pass through a STRUCT and lose odd keys."""
    return {"key": list(values.keys()), "value": list(values.values())}
