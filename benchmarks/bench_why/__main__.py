"""`python -m bench_why [--times N]`: causes injected on the Docker lab, what is said of them."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from scipy.special import betaincinv

from bench_why.causes import CAUSES, HEALTHY
from bench_why.playing import Trial, play
from workbench.diagnosis import trial_record
from workbench.diagnosis.readings import Reading
from workbench.domain.diagnoses import TrialRecord
from workbench.domain.errors import WorkbenchError

RESULTS = Path(__file__).parents[1] / "results" / "why.json"
RECORD = Path(trial_record.__file__)
BEGINS = "TRIALS: Mapping[str, TrialRecord] = {\n"

COLUMNS = (
    *("injected", "how much", "for tuning", "trials", "right first", "right among two"),
    *("said else", "baseline right"),
)


def table(trials: Sequence[Trial]) -> str:
    """What was said of each injected cause; the host's own neighbours are told apart."""
    by_cause: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        by_cause[trial.cause].append(trial)
    rows = [COLUMNS, ("---",) * len(COLUMNS)]
    rows += [_row(name, found) for name, found in by_cause.items()]
    rows.append(_row("all", trials))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(name: str, found: Sequence[Trial]) -> tuple[str, ...]:
    wrong = Counter(
        "the host's own neighbours" if t.of_the_host else t.said or "nothing"
        for t in found
        if not t.right_first
    )
    amounts = "; ".join(dict.fromkeys(t.amount for t in found if t.amount))
    tuned = {t.tuned for t in found}
    counts = (
        sum(t.right_first for t in found),
        sum(t.right_among_two for t in found),
        sum(t.baseline in (t.right or (HEALTHY,)) for t in found),
    )
    first, two, trivial = (
        f"{n} ({n / len(found):.0%})" if name == "all" else str(n) for n in counts
    )
    return (
        name,
        "" if name == "all" else amounts or "-",
        ""
        if name == "all"
        else "in part"
        if len(tuned) > 1
        else "yes"
        if tuned == {True}
        else "held out",
        str(len(found)),
        first,
        two,
        ", ".join(f"{said} {n}" for said, n in wrong.most_common()) or "-",
        trivial,
    )


def record_of(trials: Sequence[Trial]) -> dict[str, TrialRecord]:
    """By cause, how often it was right where it was named first; where the host's own neighbours
    were rightly named, nobody knows what else there was, and the trial does not count."""
    named: dict[str, list[bool]] = defaultdict(list)
    for trial in trials:
        if trial.said != HEALTHY and not trial.of_the_host:
            named[trial.said].append(trial.right_first)
    return {
        cause: TrialRecord(sum(found), len(found), *_interval(sum(found), len(found)))
        for cause, found in sorted(named.items())
    }


def _interval(right: int, named: int) -> tuple[float, float]:
    """95 %, Clopper-Pearson, to three digits."""
    low = float(betaincinv(right, named - right + 1, 0.025)) if right else 0.0
    high = float(betaincinv(right + 1, named - right, 0.975)) if right < named else 1.0
    return round(low, 3), round(high, 3)


def write_record(trials: Sequence[Trial]) -> None:
    """What ships of them, beside the rules."""
    lines = "\n".join(
        f'    "{cause}": TrialRecord({one.right}, {one.named}, {one.low}, {one.high}),'
        for cause, one in record_of(trials).items()
    )
    head = RECORD.read_text().split(BEGINS)[0]
    RECORD.write_text(f"{head}{BEGINS}{lines}\n}}\n")


def _stored() -> list[Trial]:
    if not RESULTS.exists():
        return []
    rows = json.loads(RESULTS.read_text())
    return [Trial(**{**one, "right": tuple(one["right"])}) for one in rows]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3, help="trials of each cause")
    parser.add_argument("--only", default="", help="causes whose names hold this")
    parser.add_argument("--show", action="store_true", help="the table of what is stored, no trial")
    given = parser.parse_args()
    trials = _stored()
    alone: dict[tuple[str, float, float], Reading] = {}
    for number in range(0 if given.show else given.times):
        for cause in CAUSES:
            if given.only not in cause.name:
                continue
            try:
                played = await play(cause, alone)
            except WorkbenchError as error:
                print(f"{cause.name}, trial {number + 1}: {error}", file=sys.stderr, flush=True)
                continue
            trials += played
            RESULTS.write_text(json.dumps([asdict(t) for t in trials], indent=1) + "\n")
            for trial in played:
                print(f"{cause.name}: {trial.mean_ms:.3g} ms: {trial.sentence}", flush=True)
    write_record(trials)
    print(table(trials))


if __name__ == "__main__":
    asyncio.run(main())
