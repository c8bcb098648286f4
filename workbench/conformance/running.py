"""The parts that a package brings, and their checks, each in a process of its own."""

from __future__ import annotations

import importlib
import multiprocessing
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection

from workbench import plugins
from workbench.domain.errors import PluginUnknown

LIMIT_S = 60.0
"""For one check; a model fits ten samples in milliseconds."""
_HANGS = "does not end"
CHECKED: dict[plugins.Group, str] = {
    "models": "workbench.conformance.models",
    "samplers": "workbench.conformance.samplers",
    "chain_rules": "workbench.conformance.chain_rules",
    "costs": "workbench.conformance.costs",
    "recommendation_exports": "workbench.conformance.recommendation_exports",
}
"""Groups whose contract can be checked without a lab, and where their checks are."""


@dataclass(frozen=True)
class CheckedPart:
    """One entry point of a package."""

    group: plugins.Group
    name: str


@dataclass(frozen=True)
class CheckResult:
    """One check of one part; `found` says what is wrong with the part, empty if it passed."""

    group: plugins.Group
    part: str
    check: str
    passed: bool
    optional: bool = False
    found: str = ""


def parts_of(package: str) -> tuple[CheckedPart, ...]:
    """What a distribution registers. Raises `PluginUnknown` if that is nothing."""
    found = tuple(
        CheckedPart(group, name)
        for group in plugins.GROUPS
        for name in plugins.names(group)
        if plugins.distribution(group, name) == plugins.normalized(package)
    )
    if not found:
        raise PluginUnknown(
            "registers no part of the workbench",
            where=package,
            remedy="Install it beside the workbench, and look at its entry points",
        )
    return found


def examine(package: str, limit_s: float = LIMIT_S) -> Iterator[CheckResult]:
    """Verdicts as they come: that every part loads, and the checks of its group."""
    parts = parts_of(package)
    # Forked from a process that has imported the checks and what models are made of, and nothing
    # else: a check must inherit nothing of this one, and imports take longer than most checks.
    groups = {part.group for part in parts} & CHECKED.keys()
    imported = [CHECKED[group] for group in groups] + ["sklearn.base"] * ("models" in groups)
    multiprocessing.get_context("forkserver").set_forkserver_preload(imported)
    for part in parts:
        if part.group not in CHECKED:
            yield _judged(part, "loads", limit_s)
            continue
        checks = importlib.import_module(CHECKED[part.group])
        for name in checks.CHECKS:
            verdict = _judged(part, name, limit_s, optional=name in checks.OPTIONAL)
            yield verdict
            if verdict.found.startswith(_HANGS):
                break  # it would cost as long again each time


def _judged(
    part: CheckedPart, check: str, limit_s: float, *, optional: bool = False
) -> CheckResult:
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("forkserver").Process(
        target=_run, args=(part, check, there), daemon=True
    )
    process.start()
    there.close()
    process.join(limit_s)
    if process.is_alive():
        process.kill()
        process.join()
        found = f"{_HANGS} within {limit_s:g} s; its other checks are left out"
    else:
        try:
            found = str(here.recv_bytes(), "utf-8")
        except EOFError:
            found = f"ends the process (exit code {process.exitcode})"
    here.close()
    return CheckResult(part.group, part.name, check, not found, optional, found)


def _run(part: CheckedPart, check: str, answer: Connection) -> None:
    """In the process of a check: what is wrong, as a sentence; empty if nothing is."""
    found = ""
    try:
        factory = plugins.load(part.group, part.name)
        if check != "loads":
            importlib.import_module(CHECKED[part.group]).CHECKS[check](factory)
    except AssertionError as error:
        found = str(error) or "an assertion of its own fails"
    except BaseException as error:  # noqa: BLE001 - a plugin may fail in any way; SystemExit, too
        found = f"raises {type(error).__name__}: {error}"
    answer.send_bytes(found.encode())
    answer.close()
