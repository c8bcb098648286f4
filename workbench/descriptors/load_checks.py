"""What is wrong between a campaign's load and its other fields; the load in the domain's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from workbench.descriptors.load_text import LoadText, trace_of
from workbench.descriptors.rate_traces import RateTrace
from workbench.descriptors.reading import DescriptorReading, Located
from workbench.descriptors.units import PACKET_RATE, STREAMS, shown
from workbench.descriptors.workload_text import PrimaryText, WindowsText, WorkloadText
from workbench.domain import kpis
from workbench.domain.load_shapes import USUAL_PERIOD_S, LoadShape, cycles_needed, whole
from workbench.domain.parameters import LoadModel, LoadUnit

PRIMARIES_OF_LOAD: Mapping[str, tuple[str, ...]] = {
    "open": ("rate", PACKET_RATE),
    "closed": ("concurrent", STREAMS),
}
_UNITS: Mapping[str, LoadUnit] = {PACKET_RATE: "packets", STREAMS: "streams"}


def load_mistakes(reading: DescriptorReading, primary: PrimaryText | None) -> Iterator[Located]:
    load: LoadText | None = reading.valid.get("load")
    if load and primary:
        yield from _kind_mistakes(load, primary)
    yield from _shape_mistakes(reading, load, primary)


def load_model(text: LoadText, primary_name: str, shape: LoadShape | None = None) -> LoadModel:
    """How the source offers load, in the domain's words."""
    return LoadModel(
        text.kind,
        text.think_time or 0.0,
        text.arrivals or LoadModel.arrivals,
        text.connections or LoadModel.connections,
        _UNITS.get(primary_name, "requests"),
        shape,
        text.sizes or LoadModel.sizes,
    )


def shape_of(
    load: LoadText | None, workload: list[WorkloadText], trace: RateTrace | None
) -> LoadShape | None:
    """The shape of a campaign's load as far as it can be told; None where the rate is constant."""
    if any(p.name == "duty" and _varied(p) != [1.0] for p in workload):
        return LoadShape("bursts")
    if load is None or load.shape is None:
        return None
    wrong = next(load.shape.mistakes(), None) or (load.shape.file and trace is None)
    return None if wrong else load.shape.resolved(trace)


def _kind_mistakes(load: LoadText, primary: PrimaryText) -> Iterator[Located]:
    if primary.name not in PRIMARIES_OF_LOAD[load.kind]:
        yield (
            ("load", "kind"),
            f"is {load.kind}, but the primary workload parameter is {primary.name}; "
            f"a load of kind {load.kind} varies {PRIMARIES_OF_LOAD[load.kind][0]}",
        )
    if primary.name == STREAMS and load.think_time:
        yield ("load", "think_time"), "is of clients; players wait for their movies"
    if primary.name == PACKET_RATE:
        if load.connections:
            yield ("load", "connections"), "is of requests; packets have flows"
        if load.shape:
            yield ("load", "shape"), "is of requests; packets vary in bursts only (duty)"
        for key, given in (("arrivals", load.arrivals), ("sizes", load.sizes)):
            if given not in (None, "constant") and not load.generator:
                yield (
                    ("load", key),
                    f"is {given}; packets come at a constant rate and of one size, unless "
                    "load.generator is d-itg",
                )
        return
    if load.arrivals not in (None, "constant", "poisson"):
        yield ("load", "arrivals"), f"are {load.arrivals}, which is of packets ({PACKET_RATE})"
    if load.sizes:
        yield ("load", "sizes"), f"is of packets ({PACKET_RATE})"


def _shape_mistakes(
    reading: DescriptorReading, load: LoadText | None, primary: PrimaryText | None
) -> Iterator[Located]:
    """Of loads whose rate varies, bursts among them."""
    workload: list[WorkloadText] = reading.valid.get("workload_parameters", [])
    places = {p.name: index for index, p in enumerate(workload)}
    duty, period = places.get("duty"), places.get("period")
    if period is not None and duty is None:
        yield ("workload_parameters", period), "is of bursts: give duty too, the share with load"
    if duty is not None:
        here = ("workload_parameters", duty)
        values = _varied(workload[duty])
        if primary and primary.name not in ("rate", PACKET_RATE):
            yield here, f"is of requests that are due at a rate, and {primary.name} is varied"
        if load and (load.shape or load.arrivals not in (None, "constant")):
            yield here, "makes bursts, and load says already when requests are due; remove one"
        if 1.0 in values and len(values) > 1:
            yield (
                (*here, "values", values.index(1.0)),
                "is 100 %, which is constant load and never fitted together with bursts; "
                "measure it in a campaign of its own",
            )
    trace = trace_of(load.shape, reading) if load else None
    shape = shape_of(load, workload, trace)
    recovers = reading.valid.get("kpi") == kpis.RECOVERY
    if recovers and not reading.document.mistakes and (shape is None or shape.kind != "spikes"):
        yield ("kpi",), f"is {kpis.RECOVERY}, which takes load of spikes: load.shape.kind"
    yield from _time_mistakes(reading, shape, workload)


def _time_mistakes(
    reading: DescriptorReading, shape: LoadShape | None, workload: list[WorkloadText]
) -> Iterator[Located]:
    """Whether the time-out leaves room for warm-up and window in whole cycles."""
    windows = reading.valid.get("windows")
    if shape is None or (windows is None and "windows" in reading.document.root):
        return
    given = [v for p in workload if p.name == "period" for v in _varied(p) if isinstance(v, float)]
    longest_s = shape.cycle_s or max(given, default=USUAL_PERIOD_S)
    windows = windows or WindowsText()
    cycles = cycles_needed(longest_s)
    needed_s = whole(windows.warmup, longest_s) + whole(windows.window, longest_s, cycles)
    if windows.timeout < needed_s:
        yield (
            ("windows", "timeout"),
            f"is {windows.timeout:g} s, must leave time for a warm-up and {cycles} cycles of "
            f"{longest_s:g} s: {needed_s:g} s",
        )


def _varied(parameter: WorkloadText) -> list[float | str]:
    """Its values; of those that are wrong by themselves, what was given."""
    values: list[float | str] = []
    for given in parameter.values:
        try:
            values.append(parameter.read(given))
        except ValueError:
            values.append(shown(given))
    return values
