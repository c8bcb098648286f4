"""The demo campaign in code: two functions and both chains, as issue 2 describes it."""

from collections.abc import Callable

import pytest

from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.parameters import LoadModel, Parameter, PrimaryWorkload
from workbench.domain.topology import Series, Target, Vnf, VnfTemplate

VCPU = {"haproxy": ((0.125, 0.25), (0.25,)), "tinyproxy": ((0.25, 0.5), (0.25, 0.5))}

# Round figures; what was measured is in templates/vnfs.
HAPROXY = {"service_us": 10.0, "per_kb_us": 0.5, "delayed_ack_ms": 44.0}
TINYPROXY = {"service_us": 240.0, "per_kb_us": 5.0, "closes": 1.0, "split_writes": 1.0}
SMALL = {"per_kb_us": 0.0, "cv": 0.2}


def demo_campaign(load: LoadModel = LoadModel("open")) -> Campaign:  # noqa: B008 - frozen
    def plan(*names: str) -> TargetPlan:
        alone = len(names) == 1
        vnfs = tuple(Vnf(name, name) for name in names)
        return TargetPlan(
            Target("-".join(names), vnfs[0] if alone else Series(vnfs)),
            tuple(Parameter(f"{n}.vcpu", VCPU[n][0 if alone else 1]) for n in names),
            PrimaryWorkload("rate", 50.0, 20_000.0),
        )

    return Campaign(
        name="demo",
        targets=(
            plan("haproxy"),
            plan("tinyproxy"),
            plan("haproxy", "tinyproxy"),
            plan("tinyproxy", "haproxy"),
        ),
        templates=(
            VnfTemplate("haproxy", simulated=HAPROXY),
            VnfTemplate("tinyproxy", simulated=TINYPROXY),
            VnfTemplate("source", role="source", simulated={"service_us": 40.0, **SMALL}),
            VnfTemplate("sink", role="sink", simulated={"service_us": 12.0, **SMALL}),
        ),
        workload=(Parameter("filesize_bytes", (10_000.0,)),),
        load=load,
    )


@pytest.fixture
def make_demo() -> Callable[..., Campaign]:
    return demo_campaign
