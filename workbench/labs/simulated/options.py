"""What can be switched in the simulated lab, written as `sim:source_cap=0.7,noise=0`."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from workbench.domain.errors import UsageError


@dataclass(frozen=True)
class SimulationOptions:
    """Host, source, sink, network, noise and costs of a simulated lab.

    Every default is a figure of DESIGN.md ("The lab, as found ...") or METHOD.md 6 and 11, or
    says that it is a choice; docs/simulated-lab.md has the table.

    Attributes
    ----------
    host_cores : cores shared by all components.
    source_cores, sink_cores : CPU allotment of the generator and of the answering server.
    source_cap, sink_cap : 0 for none, else the share of what the target's functions carry that
        the source (sink) is allotted CPU for: 0.7 is a generator that gives out first.
    hop_us : pure delay of one hop there and back, µs.
    noise : all of the following, or none of them.
    window_sd : log-sd of a common factor on the functions' service times, per drive.
    jitter_sd : log-sd of a further factor for each half second's worth of requests.
    delay_sd : log-sd of a factor on the pure delay of the hops, per drive.
    restart_sd : log-sd of a factor per function and start of it.
    drift_sd, drift_s : log-sd and correlation time of a slow AR(1) drift. It follows the nominal
        schedule of the campaign, not the clock, so that a resumed run drifts like a whole one.
    delayed_ack : hold answers where the pair of functions delays acknowledgements.
    delayed_ack_share : share of the requests that meet the delay.
    in_phase : the quota periods of all functions begin together.
    deploy_s, allocate_s, drive_overhead_s : lab seconds that these cost.
    """

    host_cores: int = 4
    source_cores: float = 1.0
    sink_cores: float = 1.0
    source_cap: float = 0.0
    sink_cap: float = 0.0
    hop_us: float = 120.0
    noise: bool = True
    window_sd: float = 0.03
    jitter_sd: float = 0.02
    delay_sd: float = 0.05
    restart_sd: float = 0.01
    drift_sd: float = 0.02
    drift_s: float = 300.0
    delayed_ack: bool = True
    delayed_ack_share: float = 0.95
    in_phase: bool = False
    deploy_s: float = 5.0
    allocate_s: float = 0.5
    drive_overhead_s: float = 0.3

    @classmethod
    def parse(cls, text: str) -> SimulationOptions:
        """Options from `name=number,...`; switches take 0 or 1. Raises `UsageError`."""
        options = cls()
        names = [field.name for field in fields(cls)]
        for pair in filter(None, (part.strip() for part in text.split(","))):
            name, _, value = pair.partition("=")
            if name not in names:
                raise UsageError(
                    f"{name!r} is no option of the simulated lab",
                    where=f"sim:{text}",
                    remedy=f"Choose from: {', '.join(names)}",
                )
            kind = type(getattr(options, name))
            try:
                number = float(value)
                if not number >= 0.0 or (kind is bool and number not in (0.0, 1.0)):
                    raise ValueError
                options = replace(options, **{name: kind(number)})
            except (ValueError, OverflowError):
                allowed = "0 or 1" if kind is bool else "a number, not negative"
                raise UsageError(
                    f"{name} is {value!r}", where=f"sim:{text}", remedy=f"Give {allowed}"
                ) from None
        if options.host_cores < 1:
            raise UsageError(
                "host_cores is 0", where=f"sim:{text}", remedy="Give at least one core"
            )
        return options
