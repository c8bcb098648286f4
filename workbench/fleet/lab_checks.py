"""Whether a lab can measure on this host, as `doctor` would find it."""

from __future__ import annotations

import asyncio

from workbench.domain.errors import LabError
from workbench.engine.runs.doctor import examine_lab

CHECKING_S = 60.0


async def must_be_able(lab: str, where: str) -> None:
    """Raises `LabError` where a lab, options included, cannot measure here, and `PluginUnknown`
    where there is none of that name; `where` is the host's name."""
    name = lab.partition(":")[0]
    try:
        async with asyncio.timeout(CHECKING_S):
            checks = await examine_lab(name)
    except TimeoutError:
        raise says_nothing(name, where, CHECKING_S) from None
    if wrong := next((check for check in checks if check.state == "missing"), None):
        raise LabError(
            f"the lab {name} cannot measure there: {wrong.name}: {wrong.found}",
            where=where,
            remedy=wrong.remedy or None,
        )


def says_nothing(name: str, where: str, within_s: float) -> LabError:
    """Of a lab that takes longer than that to say whether it can measure."""
    return LabError(
        f"the lab {name} did not say within {within_s:g} s whether it can measure there",
        where=where,
        remedy="Run `workbench doctor` on it",
    )
