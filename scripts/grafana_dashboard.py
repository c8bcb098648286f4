"""Write or check the dashboard that ships: `python scripts/grafana_dashboard.py write|check`.

It is made with Grafana's own builders, which are needed here and in tests only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders.dashboard import (
    AnnotationQuery,
    Dashboard,
    DatasourceVariable,
    QueryVariable,
)
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.stat import Panel as Stat
from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    VariableRefresh,
)

SHIPPED = Path(__file__).parent.parent / "workbench" / "exports" / "grafana_dashboard.json"
SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
OURS = 'session=~"$session"'
THEIRS = 'namespace=~"$session"'
"""cAdvisor's names have the session where a cluster has its namespace."""
RATE = "[$__rate_interval]"


def query(expr: str, legend: str, number: int = 0) -> Dataquery:
    return Dataquery().expr(expr).legend_format(legend).ref_id("ABCDEFGH"[number])


def over_time(
    title: str, unit: str, queries: Sequence[tuple[str, str]], says: str = ""
) -> Timeseries:
    panel = Timeseries().title(title).unit(unit).min(0).height(8).span(12).datasource(SOURCE)
    for number, (expr, legend) in enumerate(queries):
        panel = panel.with_target(query(expr, legend, number))
    return panel.description(says) if says else panel


def rate(metric: str, by: str = "pod, container") -> str:
    return f"sum by ({by}) (rate({metric}{{{THEIRS}}}{RATE}))"


def session_panels() -> list[Stat | Timeseries]:
    """What is measured: load, response time, throughput, breakpoints, what counts."""
    what = Stat().title("Session").height(4).span(24).datasource(SOURCE)
    about = f"workbench_session_info{{{OURS}}}"
    what = what.with_target(query(about, "{{session}}: {{campaign}}, lab {{lab}}"))
    found = "{{target}} {{configuration}}: {{rule}}"
    return [
        what.text_mode("name").description("The lab sim is a simulation: no function was loaded."),
        over_time("Load", "short", [(f"workbench_wl{{{OURS}}}", "{{target}}")]),
        over_time(
            "Response time", "ms",
            [(f'workbench_kpi{{{OURS},kpi="p95_ms"}}', "{{target}} p95")],
            "Of each target's last sample.",
        ),
        over_time(
            "Throughput", "reqps",
            [(f'workbench_kpi{{{OURS},kpi="throughput_rps"}}', "{{target}}")],
            "Of each target's last sample.",
        ),
        over_time(
            "Validity", "short",
            [
                (f"workbench_valid_samples{{{OURS}}}", "valid"),
                (f"workbench_invalid_samples_total{{{OURS}}}", "{{reason}}"),
            ],
            "Samples so far.",
        ),
        over_time("Breakpoints", "short", [(f"workbench_breakpoint{{{OURS}}}", found)]),
    ]  # fmt: skip


def function_panels() -> list[Timeseries]:
    """What each function uses, and where it waits."""
    place = "{{pod}} {{container}}"
    throttled = rate("container_cpu_cfs_throttled_periods_total")
    periods = rate("container_cpu_cfs_periods_total")
    return [
        over_time("CPU", "none", [(rate("container_cpu_usage_seconds_total"), place)], "In cores."),
        over_time(
            "Throttling", "percentunit", [(f"{throttled} / {periods}", place)],
            "Throttled quota periods over all of them.",
        ),
        over_time(
            "Throttled time", "s",
            [(rate("container_cpu_cfs_throttled_seconds_total"), place)],
            "Seconds a second, over all cores.",
        ),
        over_time(
            "CPU pressure", "percentunit",
            [(rate("container_pressure_cpu_waiting_seconds_total"), place)],
            "Share of the time in which some thread waited for CPU (PSI). Empty where nobody "
            "counts it, as in the simulated lab.",
        ),
        over_time(
            "Memory", "bytes",
            [(f"container_memory_working_set_bytes{{{THEIRS}}}", place)],
        ),
        over_time(
            "Network", "Bps",
            [
                (rate("container_network_receive_bytes_total"), f"{place} in"),
                (rate("container_network_transmit_bytes_total"), f"{place} out"),
            ],
        ),
    ]  # fmt: skip


def dashboard() -> dict[str, Any]:
    """As Grafana imports it."""
    board = (
        Dashboard("Workbench: profiling")
        .uid("workbench-profiling")
        .tags(["workbench", "generated"])
        .refresh("10s")
        .time("now-30m", "now")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        .with_variable(
            QueryVariable("session")
            .label("Session")
            .datasource(SOURCE)
            .query("label_values(workbench_session_info, session)")
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .multi(True)
            .include_all(True)
        )
        .annotation(
            AnnotationQuery()
            .name("Breakpoints")
            .datasource(SOURCE)
            .enable(True)
            .icon_color("orange")
            .expr(f"workbench_breakpoint_timestamp_seconds{{{OURS}}} * 1000")
        )
    )
    for panel in (*session_panels(), *function_panels()):
        board = board.with_panel(panel)
    encoded = JSONEncoder(sort_keys=True).encode(board.build())
    made: dict[str, Any] = json.loads(encoded, object_hook=_known)
    # Fields of the Prometheus data source's own, which the builders do not know.
    made["annotations"]["list"][0] |= {
        "titleFormat": "{{rule}} of {{target}}",
        "textFormat": "{{configuration}}, {{kpi}}",
        "tagKeys": "session,target",
        "useValueForTime": True,
    }
    return made


def _known(fields: dict[str, Any]) -> dict[str, Any]:
    """Without what the builders leave open: Grafana has defaults for it."""
    return {name: value for name, value in fields.items() if value is not None}


def text() -> str:
    return json.dumps(dashboard(), indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["write"]:
        SHIPPED.write_text(text())
    elif sys.argv[1:] != ["check"]:
        raise SystemExit(__doc__)
    elif SHIPPED.read_text() != text():
        raise SystemExit(f"{SHIPPED} is not what this script makes; run it with `write`")
