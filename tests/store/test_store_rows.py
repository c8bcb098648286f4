"""The rows of one transaction, beside what the file holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from typing import Any

import pytest
from session_making import campaign, measurement

from workbench.domain.errors import SessionError
from workbench.domain.events import Event, SampleTaken
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample
from workbench.store.rows import TransactionRows, identity, payload_of


class Asked(Set[str]):
    """Ids that can be asked for and not gone through."""

    def __init__(self, *ids: str) -> None:
        self._ids = ids

    def __contains__(self, id: object) -> bool:
        return id in self._ids

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("with a million of them, a commit would take seconds")

    def __len__(self) -> int:
        return len(self._ids)


def cells() -> list[Configuration]:
    chosen = campaign()
    return list(chosen.configurations(chosen.targets[0]))


def sample(cell: Configuration, wl: float = 100.0) -> Sample:
    return measurement("haproxy", cell, wl).sample


def add(rows: TransactionRows, seq: int, taken: Sample) -> None:
    fact = SampleTaken(taken)
    rows.add(Event(seq, 0.0, "s", fact), payload_of(fact), None)


def numbers(rows: TransactionRows) -> list[Any]:
    return [row[3] for row in rows.tables["samples"]]


def test_what_the_file_holds_is_asked_and_never_gone_through() -> None:
    first, second = cells()
    stored: Mapping[str, int] = {identity(first): 0}
    rows = TransactionRows(stored, Asked("old"))
    add(rows, 1, replace(sample(first), id="new"))
    add(rows, 2, sample(second))
    assert numbers(rows) == [0, 1]
    assert rows.new_configurations == {identity(second): 1}
    assert rows.new_samples == {"new", sample(second).id}
    assert stored == {identity(first): 0}


def test_a_sample_is_refused_that_the_file_or_the_transaction_holds() -> None:
    first, _ = cells()
    rows = TransactionRows({}, Asked("old"))
    with pytest.raises(SessionError, match="stored already"):
        add(rows, 1, replace(sample(first), id="old"))
    add(rows, 1, replace(sample(first), id="new"))
    with pytest.raises(SessionError, match="stored already"):
        add(rows, 2, replace(sample(first), id="new"))
    assert len(rows.tables["samples"]) == len(rows.tables["events"]) == 1
