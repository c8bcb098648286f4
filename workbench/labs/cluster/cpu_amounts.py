"""CPU as Kubernetes writes it (`500m` is half a core, and `0.5` is the same), and memory."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

UNITS = {"": Decimal(1), "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3")}
UNITS |= {"k": Decimal(1000)}
SIZES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
SIZES |= {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
SIZE = re.compile(r"([0-9]{1,18})([kMGT]|[KMGT]i)?")
AMOUNT = re.compile(r"([0-9]{1,12}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})([numk]?)")


def cores_of(text: str) -> float:
    """Cores; 0 for nothing. Raises `ValueError` for what is no amount of CPU."""
    if not text:
        return 0.0
    match = AMOUNT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is no amount of CPU")
    return float(Decimal(match[1]) * UNITS[match[2]])


def bytes_of(text: str) -> int:
    """Memory in bytes, as nodes tell it (`16384256Ki`). Raises `ValueError` for anything else."""
    match = SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is no amount of memory")
    return int(match[1]) * SIZES[match[2] or ""]


def amount_of(cores: float) -> str:
    """As the API takes it: whole thousandths of a core, one at least."""
    return f"{max(1, round(cores * 1000))}m"


@dataclass(frozen=True)
class CpuGiven:
    """CPU of one container: what it may use, and what is kept for it; empty for nothing."""

    limit: str = ""
    request: str = ""

    @classmethod
    def of(cls, resources: Any) -> CpuGiven:
        """As a container's `resources` say it."""
        given = resources if isinstance(resources, dict) else {}
        limits, requests = given.get("limits") or {}, given.get("requests") or {}
        return cls(str(limits.get("cpu", "")), str(requests.get("cpu", "")))

    @property
    def cores(self) -> float:
        """Its limit; 0 without one."""
        return cores_of(self.limit)

    def same(self, other: CpuGiven) -> bool:
        """Whether both mean the same, however they are written."""
        return (self.cores, cores_of(self.request)) == (other.cores, cores_of(other.request))

    def plain(self) -> dict[str, dict[str, str]]:
        """As a patch of a container's `resources`."""
        patch = {"limits": {"cpu": self.limit}, "requests": {"cpu": self.request}}
        return {kind: cpu for kind, cpu in patch.items() if cpu["cpu"]}

    def __str__(self) -> str:
        return f"limit {self.limit or 'none'}, request {self.request or 'none'}"
