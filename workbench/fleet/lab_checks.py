"""Whether a lab can measure on this host, as `doctor` would find it."""

from __future__ import annotations

import asyncio

from workbench.domain.errors import LabError
from workbench.engine.runs.doctor import examine_lab

CHECKING_S = 60.0


async def must_be_able(lab: str, where: str) -> None:
    """Raises `LabError` where a lab of that kind cannot measure here, or does not say so within
    `CHECKING_S`, and `PluginUnknown` where there is none of that name.

    Whoever cancels this waits for no lab, whatever that does with being cancelled.

    Parameters
    ----------
    lab : as hosts files and campaigns name it. What follows its name as options is not looked at:
        whether the lab takes them its first run says.
    where : the host's name.
    """
    name = lab.partition(":")[0]
    asking = asyncio.create_task(examine_lab(name))
    try:
        done, _ = await asyncio.wait({asking}, timeout=CHECKING_S)
    finally:
        asking.cancel()
    if not done:
        raise says_nothing(name, where, CHECKING_S)
    if wrong := next((check for check in asking.result() if check.state == "missing"), None):
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
