"""What a function uses, under the names by which cAdvisor and the kubelet publish it.

Source: cAdvisor's `docs/storage/prometheus.md`; for pressure, KEP-4205 of Kubernetes. Dashboards
and alerts of a site that are written for them read our figures, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.domain.projection import SessionView

NAMESPACE, POD, CONTAINER, LAB = "namespace", "pod", "container", "lab"
LABELS = (NAMESPACE, POD, CONTAINER, LAB)
"""Session, target, function (or `source`, `sink`) and kind of lab: a simulated one is `sim`."""


@dataclass(frozen=True)
class ContainerMetric:
    """One figure of a function.

    Attributes
    ----------
    name : cAdvisor's; that of a counter ends in `_total`.
    figure : ours: of `ComponentCounters`, or of `domain.observations`.
    """

    name: str
    figure: str
    says: str

    @property
    def is_counter(self) -> bool:
        return self.name.endswith("_total")


CONTAINER_METRICS = (
    ContainerMetric("container_cpu_usage_seconds_total", "cpu_s", "CPU time used."),
    ContainerMetric("container_cpu_cfs_periods_total", "periods", "Quota periods begun."),
    ContainerMetric(
        "container_cpu_cfs_throttled_periods_total", "throttled_periods", "Of these, throttled."
    ),
    ContainerMetric(
        "container_cpu_cfs_throttled_seconds_total", "throttled_s", "Time that it was throttled."
    ),
    ContainerMetric(
        "container_cpu_schedstat_runqueue_seconds_total", "cpu_wait_s", "Waiting for a core."
    ),
    ContainerMetric(
        "container_memory_working_set_bytes", "memory_bytes", "Memory, without inactive files."
    ),
    ContainerMetric("container_oom_events_total", "oom_kills", "Ended for lack of memory."),
    ContainerMetric("container_network_receive_bytes_total", "rx_bytes", "Bytes in."),
    ContainerMetric("container_network_transmit_bytes_total", "tx_bytes", "Bytes out."),
    ContainerMetric("container_network_receive_packets_total", "rx_packets", "Packets in."),
    ContainerMetric("container_network_transmit_packets_total", "tx_packets", "Packets out."),
    ContainerMetric(
        "container_network_receive_packets_dropped_total", "rx_drops", "Dropped as they came."
    ),
    ContainerMetric(
        "container_network_transmit_packets_dropped_total", "tx_drops", "Dropped as they left."
    ),
    ContainerMetric("container_threads", "threads", "Threads."),
    ContainerMetric(
        "container_pressure_cpu_waiting_seconds_total", "pressure_cpu_s", "Some waited for CPU."
    ),
    ContainerMetric(
        "container_pressure_memory_waiting_seconds_total",
        "pressure_memory_s",
        "Some waited for memory.",
    ),
    ContainerMetric(
        "container_pressure_io_waiting_seconds_total", "pressure_io_s", "Some waited for a disk."
    ),
)

Figures = Mapping[str, float]
"""By `ContainerMetric.figure`: what is not known is not there."""
Place = tuple[str, str]
"""Target and component."""


def lab_of(view: SessionView) -> str:
    """Where its figures come from; of a recording, where that was measured."""
    return view.host.lab if view.host is not None else view.lab
