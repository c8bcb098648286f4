"""What `counters` adds to its models: SHAP values, principal components, an unseen function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.models.counter_rows import CounterRows
    from workbench.models.counter_scores import HeldOutModel


def components(rows: CounterRows) -> list[dict[str, Any]]:
    """How few directions the counters vary in, and how the KPI goes with each."""
    from dataclasses import asdict

    from workbench.models.counter_components import components_of

    return [asdict(one) for one in components_of(rows, 0)]


def explained(rows: CounterRows, models: list[HeldOutModel]) -> dict[str, Any]:
    """Which counters moved the predictions of models, on the rows that these had not seen."""
    from dataclasses import asdict

    from workbench.cli.piece_progress import PieceProgress
    from workbench.models.counter_effects import company_effects, effects_of, row_effects

    with PieceProgress("rows explained") as progress:
        found = row_effects(rows, models, 0, progress.tell)
    return {
        "rows": len(found.base),
        "counters": [{**asdict(one), "says": says(one.name)} for one in effects_of(found)],
        "beside": [{**asdict(one), "says": says(one.name)} for one in company_effects(found)],
    }


def transfer(by_function: Mapping[str, CounterRows], unseen: str) -> dict[str, Any]:
    """What models of the other functions say of one that they were not trained on."""
    from dataclasses import asdict

    from workbench.models.counter_transfer import transferred

    return asdict(transferred(by_function, unseen, 0))


def says(counter: str) -> str:
    """What a counter stands for, in the words of `why`; empty where that is not known."""
    from workbench.domain.observations import OBSERVABLES
    from workbench.measuring.window_counters import counter_says
    from workbench.probes.perf_stat import EVENTS

    if own := counter_says(counter):
        return own
    function, _, event = counter.rpartition("_")
    named = next((name for name, perf in EVENTS.items() if perf.event == event), "")
    return f"{function}: {OBSERVABLES[named].says}" if function and named else ""
