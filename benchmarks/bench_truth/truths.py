"""True breakpoints of the families, kept in git: they take minutes, and tests have seconds.

`bench_truth.long_runs` says what they are: each rule on long virtual runs of the reported
definition, without noise. `python -m bench_truth truths` computes all of them anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path

import msgspec

from bench_truth.families import BY_NAME, Family
from bench_truth.long_runs import TrueBreakpoint, Truth, quiet
from workbench.domain.profiles import BreakpointRule
from workbench.labs.simulated.options import SimulationOptions

COMMITTED = Path(__file__).parent.parent / "results" / "truths.json"

SECONDS = {"open": 24.0, "closed": 240.0}
"""Virtual length of a truth's runs. In a closed loop all clients are under way when a run ends, and
begin in step: in short runs the unfinished ones reach the percentile, and the first seconds count.
"""

Truths = Mapping[str, Mapping[BreakpointRule, TrueBreakpoint]]
"""By configuration key."""
_Kept = dict[str, dict[str, dict[BreakpointRule, TrueBreakpoint]]]


def key_of(family: Family, seed: int) -> str:
    """Of everything that truth depends on: families that differ in luck alone share it."""
    plain = asdict(SimulationOptions())
    options = asdict(quiet(SimulationOptions.parse(family.lab_options(seed))))
    set_to = sorted((name, value) for name, value in options.items() if value != plain[name])
    # Of all configurations, also where fewer are played.
    what = (
        family.function,
        family.graph,
        family.load,
        BY_NAME[family.name].vcpu,
        family.wl,
        family.sla_ms,
    )
    # What a load leaves as it is by default is not in its key, as when most truths were computed.
    text = repr((what, set_to)).replace(", shape=None", "").replace(", sizes='constant'", "")
    return blake2b(text.encode(), digest_size=8).hexdigest()


def truths_of(family: Family, seed: int) -> Truths:
    """All rules of all configurations."""
    campaign = family.campaign()
    options = SimulationOptions.parse(family.lab_options(seed))
    (plan,) = campaign.targets
    return {
        c.key: Truth(
            campaign, plan.target, c, options, seconds=SECONDS[family.load.kind]
        ).breakpoints()
        for c in campaign.configurations(plan)
    }


class Known:
    """Truths by `key_of`, in a file."""

    def __init__(self, path: Path = COMMITTED) -> None:
        self.path = path
        self._known: dict[str, Truths] = {}
        if path.exists():
            self._known.update(msgspec.json.decode(path.read_bytes(), type=_Kept))

    def of(self, family: Family, seed: int) -> Truths:
        return self._known[key_of(family, seed)]

    def complete(
        self, wanted: Iterable[tuple[Family, int]], executor: Executor, *, anew: bool = False
    ) -> None:
        """Compute what is missing, and write it down."""
        missing: dict[str, tuple[Family, int]] = {}
        for family, seed in wanted:
            key = key_of(family, seed)
            if anew or key not in self._known:
                missing.setdefault(key, (family, seed))
        jobs = {key: executor.submit(truths_of, *job) for key, job in missing.items()}
        if anew:
            self._known = {}
        for key, job in jobs.items():
            self._known[key] = job.result()
        if jobs:
            self._write()

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        rounded = msgspec.json.decode(msgspec.json.encode(self._known), type=_Kept)
        lines = ",\n".join(
            f'"{key}":{msgspec.json.encode(rounded[key]).decode()}' for key in sorted(rounded)
        )
        self.path.write_text(f"{{\n{lines}\n}}\n")
