"""What `compare --chain` prints: where a chain deviates, and how far off its prediction is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.cli.chain_words import allocation, model, wrapped
from workbench.cli.tables import lines_of
from workbench.domain import comparison_tables as tables
from workbench.domain import departures

if TYPE_CHECKING:
    from collections.abc import Iterable

    from workbench.domain.parameters import Configuration
    from workbench.domain.questions import ChainCompared
    from workbench.domain.retraining import ChainComparison


def compared(reply: ChainCompared) -> str:
    """Where the chain deviates, then how far the prediction is off: in all, by configuration, by
    KPI."""
    found = reply.comparison
    lines = [
        *wrapped(tables.compared_with(found)),
        *wrapped(f"It is {departures.of_all_samples(found)}."),
        "",
        *_deviations(found),
        "",
        *lines_of(tables.scores(reply)),
        "",
        "By configuration, the worst first:",
        "",
        *lines_of(tables.by_configuration(found)),
        "",
        *_legend(row.configuration for row in found.configurations),
        "",
        *lines_of(tables.by_bucket(found)),
    ]
    notes = [f"Models: {'; '.join(map(model, reply.models))}."]
    if found.note:
        notes.insert(0, f"{found.note.rstrip('.')}.")
    return "\n".join([*lines, "", *(line for note in notes for line in wrapped(note))])


def _deviations(found: ChainComparison) -> list[str]:
    beyond = tables.beyond(found)
    if not found.outliers:
        return wrapped(f"In no configuration is the chain better or worse than predicted {beyond}.")
    return [
        *wrapped(f"The chain is not as predicted, {beyond}:"),
        "",
        *lines_of(tables.deviations(found)),
        "",
        *_legend(outlier.configuration for outlier in found.outliers),
    ]


def _legend(configurations: Iterable[Configuration]) -> list[str]:
    """Which allocation a number in a table is."""
    texts = (f"{n}: {allocation(one)}" for n, one in enumerate(configurations, 1))
    return [line for text in texts for line in wrapped(text)]
