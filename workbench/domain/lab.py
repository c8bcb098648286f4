"""Facts about a lab host, and what the doctor found there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class HostFacts:
    """What a sample's host was: stored with every session."""

    lab: str
    cores: int
    memory_bytes: int
    kernel: str
    cpu_model: str
    cgroup: Literal["v1", "v2", "none"]
    engine: str
    """Container engine and its version; `none` in the simulated lab."""
    image_digests: Mapping[str, str]
    """By template name; a session never mixes two digests (decision 5)."""
    details: Mapping[str, str]
    """Offload settings, governor, conntrack table, seed ... as text."""


CheckState = Literal["ok", "warning", "missing"]


@dataclass(frozen=True)
class Check:
    """One line of `workbench doctor`."""

    name: str
    state: CheckState
    found: str
    remedy: str = ""
