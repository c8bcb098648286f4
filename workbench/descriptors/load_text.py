"""`load:` of a campaign: how the source offers load, and how its rate varies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from workbench.descriptors.fields import Duration, PositiveDuration, ShareOfOne
from workbench.descriptors.plugged import plugin_name
from workbench.descriptors.rate_traces import RateTrace, read_trace
from workbench.descriptors.reading import Described, DescriptorReading, Located
from workbench.domain import load_shapes
from workbench.domain.errors import DescriptorError
from workbench.domain.load_shapes import LONGEST_S, SHORTEST_S, LoadShape
from workbench.domain.parameters import Arrivals, SizeSpread

_FIELDS = {
    "spikes": ("factor", "duration", "period"),
    "sine": ("amplitude", "period"),
    "steps": ("factors", "duration"),
    "trace": ("file",),
}
"""What each kind of shape is given by."""


class ShapeText(Described):
    """How the rate varies about the mean that `wl` is; one cycle is repeated."""

    kind: Literal["spikes", "sine", "steps", "trace"]
    factor: Annotated[float, Field(gt=1, le=100, strict=False)] | None = Field(
        None, description="Spikes: so many times the rate around them"
    )
    amplitude: ShareOfOne | None = Field(None, description="Sine: share of the mean")
    factors: (
        Annotated[
            list[Annotated[float, Field(ge=0, le=100, strict=False)]],
            Field(min_length=2, max_length=50),
        ]
        | None
    ) = Field(None, description="Steps: rates, as multiples of each other")
    duration: PositiveDuration | None = Field(None, description="Of a spike, or of each step")
    period: PositiveDuration | None = Field(None, description="Of a cycle")
    file: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\.csv$")] | None = Field(
        None, description="Trace: a CSV beside the campaign, time_s,rate"
    )

    def mistakes(self) -> Iterator[Located]:
        own = _FIELDS[self.kind]
        every = dict.fromkeys(name for names in _FIELDS.values() for name in names)
        for name in every:
            given = getattr(self, name) is not None
            if given and name not in own:
                yield (name,), f"is not of {self.kind}, which have {', '.join(own)}"
            elif not given and name in own:
                yield (name,), f"is missing; {self.kind} are given by {', '.join(own)}"
        if self.factors is not None and not any(self.factors):
            yield ("factors",), "are all 0, which is no load"
        if self.kind == "spikes" and self.period and (self.duration or 0.0) > self.period / 2:
            yield ("duration",), f"is {self.duration:g} s, must be at most half of the period"
        cycle_s = self.period or (self.duration or 0.0) * len(self.factors or ())
        if cycle_s and not SHORTEST_S <= cycle_s <= LONGEST_S:
            field = "period" if self.period else "duration"
            yield (
                (field,),
                f"makes a cycle of {cycle_s:g} s, must be {SHORTEST_S:g} to {LONGEST_S:g} s",
            )

    def resolved(self, trace: RateTrace | None) -> LoadShape:
        """In the domain's words; `self` has no mistakes."""
        match self.kind:
            case "spikes":
                assert self.factor
                assert self.duration
                assert self.period
                return load_shapes.spikes(self.factor, self.duration, self.period)
            case "sine":
                assert self.amplitude
                assert self.period
                return load_shapes.sine(self.amplitude, self.period)
            case "steps":
                assert self.factors
                assert self.duration
                return load_shapes.steps(self.factors, self.duration)
        assert trace is not None
        return load_shapes.trace(trace.rates, trace.each_s)


class LoadText(Described):
    """How the source offers load."""

    kind: Literal["open", "closed"]
    think_time: Duration | None = None
    arrivals: Arrivals | None = Field(
        default=None, description="How gaps spread; other than constant and poisson: of packets"
    )
    sizes: SizeSpread | None = Field(
        default=None, description="Packets: how their sizes spread about packetsize; none: constant"
    )
    generator: Annotated[str, plugin_name("traffic")] | None = Field(
        default=None, description="The program that drives; none: the pre-flight chooses"
    )
    connections: Annotated[int, Field(ge=1, le=10_000)] | None = None
    shape: ShapeText | None = Field(
        default=None, description="How the rate varies; none: it is constant"
    )

    def mistakes(self) -> Iterator[Located]:
        foreign = (
            ("think_time",)
            if self.kind == "open"
            else ("arrivals", "connections", "shape", "sizes")
        )
        other = "closed" if self.kind == "open" else "open"
        for key in foreign:
            if getattr(self, key) is not None:
                yield (key,), f"belongs to a load of kind {other}, and this one is {self.kind}"
        if self.shape and self.arrivals not in (None, "constant"):
            yield ("arrivals",), f"are {self.arrivals}, but a shape says when each request is due"


def trace_of(shape: ShapeText | None, reading: DescriptorReading) -> RateTrace | None:
    """The trace of a shape, kept for whoever resolves the campaign; what is wrong in its file
    becomes mistakes of the campaign, at their places in that file."""
    if shape is None or shape.file is None:
        return None
    path = Path(reading.path).parent / shape.file
    try:
        found = read_trace(path)
    except DescriptorError as error:
        reading.document.mistakes += error.mistakes
        return None
    reading.library.traces[shape.file] = found
    return found
