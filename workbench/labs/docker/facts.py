"""What an engine and its host are: stored with every session, shown by the doctor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from workbench.domain.lab import HostFacts
from workbench.labs.components.environment import SYSCTLS
from workbench.probes import host


def facts(
    version: Mapping[str, Any],
    info: Mapping[str, Any],
    digests: Mapping[str, str],
    details: Mapping[str, str],
    local: bool,
) -> HostFacts:
    """From the engine's answers; the processor and its settings only where it is on this host."""
    here = {"cpu_model": host.read_cpu_model(), **host.read_details()} if local else {}
    return HostFacts(
        lab="docker",
        cores=int(info["NCPU"]),
        memory_bytes=int(info["MemTotal"]),
        kernel=str(info["KernelVersion"]),
        cpu_model=here.pop("cpu_model", str(info.get("Architecture", ""))),
        cgroup=cgroup_version(info),
        engine=f"docker {version['Version']}",
        image_digests=dict(digests),
        details={
            "storage_driver": str(info.get("Driver", "")),
            "cgroup_driver": str(info.get("CgroupDriver", "")),
            "operating_system": str(info.get("OperatingSystem", "")),
            **SYSCTLS,
            **here,
            **details,
        },
    )


def cgroup_version(info: Mapping[str, Any]) -> Literal["v1", "v2"]:
    """Engines before 20.10 do not say, and know only version 1."""
    return "v2" if str(info.get("CgroupVersion", "1")) == "2" else "v1"
