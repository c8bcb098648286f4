"""What a function's threads did, where a trace tells: time in each state and changes, per request.

The behaviour analysis of paper E (6.3): stand-alone beside chained, the most frequent changes
first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from workbench.diagnosis.readings import Reading
from workbench.measuring.thread_states import ON_CORE, STATES, WAITING

STATE_S, CHANGES, TRACED_S = "state_s", "state_changes", "traced_s"
MOST_CHANGES = 6
"""Of a function; the rarer ones are in the exported evidence."""


def figures(
    readings: Sequence[tuple[Reading, str]],
) -> Iterator[tuple[str, str, partial[float | None]]]:
    """What can be said of a function: words, unit, and what reads it off a sample.

    Parameters
    ----------
    readings : samples and what the function is called in them; none of another function.
    """
    seen: Counter[str] = Counter()
    states: set[str] = set()
    for reading, name in readings:
        states |= set(reading.details(name, STATE_S))
        seen.update({c: n for c, n in reading.details(name, CHANGES).items() if n > 0})
    for state in STATES:
        if state in states:
            yield f"traced: {state}", "ms per request", partial(_ms, state)
    if states:
        yield "traced: taken off its core", "per request", partial(_taken_off)
    for change, _ in seen.most_common(MOST_CHANGES):
        yield f"traced: {change}", "per request", partial(_changes, (change,))


def _per_request(seen: Reading, name: str, amount: float) -> float | None:
    """Of what came in the traced time, at the rate of the whole sample."""
    traced_s = seen.amount(name, TRACED_S)
    return amount / (traced_s * seen.rate) if traced_s and seen.rate else None


def _ms(state: str, seen: Reading, name: str) -> float | None:
    return _per_request(seen, name, 1e3 * seen.details(name, STATE_S).get(state, 0.0))


def _changes(changes: Sequence[str], seen: Reading, name: str) -> float | None:
    known = seen.details(name, CHANGES)
    return _per_request(seen, name, sum(known.get(change, 0.0) for change in changes))


def _taken_off(seen: Reading, name: str) -> float | None:
    """How often a thread lost its core although it could go on (paper E: hard switch)."""
    return _changes([f"{state} > {WAITING}" for state in ON_CORE], seen, name)
