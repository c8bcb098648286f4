"""A session of very many samples, made in a minute instead of by measuring for weeks.

    PYTHONPATH=tests python benchmarks/large_session.py FILE [--samples 1000000]

One round of 400 configurations at 25 loads is stored as the engine stores it; SQL repeats it. The
configurations take turns, as samplers that measure in blocks let them, so that the samples of one
lie all over the file: the worst case for whoever wants to see it.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from session_making import EPOCH, created, measurement

from workbench.domain.campaign import Campaign, SamplingPlan
from workbench.domain.events import (
    CampaignPlanned,
    ConfigurationFinished,
    Event,
    Fact,
    ModelFitted,
    PointAsked,
    RunFinished,
    RunStarted,
    SampleTaken,
)
from workbench.domain.parameters import Parameter
from workbench.domain.profiles import Breakpoint, Curve, FittedModel
from workbench.domain.sessions import Plan, PlannedConfiguration
from workbench.store import reading
from workbench.store.database import Database
from workbench.store.rows import TransactionRows, payload_of
from workbench.store.session_file import SessionFile
from workbench.store.writer import write

TARGET = "haproxy"
CONFIGURATIONS = 400
LOADS = 25
ROUND = CONFIGURATIONS * LOADS
"""Samples of a round; each configuration is fitted once in it. A real run fits after every sample,
which fills a file with curves; how many lie between two samples changes little of what is measured
here, since only the last of a configuration is drawn."""
SECONDS_EACH = 5.0
CURVE_POINTS = 100
TABLES = ("sample_kpis", "sample_usage", "findings", "remarks", "models", "breakpoints")


def campaign(samples: int) -> Campaign:
    small = created().campaign
    plan = small.targets[0]
    shares = tuple(round(0.1 + 0.05 * i, 3) for i in range(20))
    sizes = tuple(1000.0 * (i + 1) for i in range(CONFIGURATIONS // 20))
    return replace(
        small,
        name="large",
        targets=(replace(plan, resources=(Parameter(f"{TARGET}.vcpu", shares, "cores"),)),),
        workload=(Parameter("filesize_bytes", sizes, "bytes"),),
        sampling=SamplingPlan(max_samples=samples // CONFIGURATIONS),
    )


def one_round(chosen: Campaign) -> Iterator[Fact]:
    plan = chosen.targets[0]
    low, high = plan.primary.low, plan.primary.high
    wls = [low * (high / low) ** (i / (LOADS - 1)) for i in range(LOADS)]
    curve_at = tuple(low * (high / low) ** (i / (CURVE_POINTS - 1)) for i in range(CURVE_POINTS))
    for turn in range(LOADS):
        wl = wls[turn * 7 % LOADS]
        for number, cell in enumerate(chosen.configurations(plan)):
            yield PointAsked(TARGET, cell, wl, 0, 0.9 * wl, 1.1 * wl, "its turn")
            valid = (number + turn) % 10 != 0
            yield SampleTaken(measurement(TARGET, cell, wl, valid=valid).sample)
            if turn == number % LOADS:
                mean = tuple(x / cell.vcpu(TARGET) for x in curve_at)
                low_band, high_band = (tuple(f * m for m in mean) for f in (0.9, 1.1))
                curve = Curve("p95_ms", "gaussian-process", curve_at, mean, low_band, high_band)
                found = Breakpoint(TARGET, cell, "capacity", "p95_ms", "found", 500, 450, 560)
                model = FittedModel("gaussian-process", {"length": 0.5}, (), (1.5,))
                yield ModelFitted(TARGET, cell, curve, (found,), model, 0.05)


async def make(path: Path, samples: int) -> None:
    """Write the session file; its last event is the end of the run."""
    chosen = campaign(samples)
    rounds = samples // ROUND
    cells = chosen.configurations(chosen.targets[0])
    each, lab_s = samples // len(cells), SECONDS_EACH * samples
    planned = tuple(PlannedConfiguration(0, TARGET, c, each, SECONDS_EACH * each) for c in cells)
    file = await SessionFile.create(path, replace(created(), campaign=chosen), at=EPOCH)
    plan = Plan("large", "sim", planned, samples, lab_s)
    await file.append(CampaignPlanned(plan), at=EPOCH)
    await file.append(RunStarted(False, None), at=EPOCH)
    first = file.last_seq + 1
    await file.close()
    _repeat(path, chosen, first, rounds)
    file = await SessionFile.open(path)
    end = EPOCH + lab_s
    for cell in cells:
        ended = ConfigurationFinished(TARGET, cell, "max_samples", each, each // 10)
        await file.append(ended, at=end)
    await file.append(RunFinished("done", samples, samples // 10, lab_s, lab_s, ()), at=end)
    await file.checkpoint()
    await file.close()


def _repeat(path: Path, chosen: Campaign, first: int, rounds: int) -> None:
    database = Database(path, read_only=False)
    with database.reading() as cursor:
        rows = TransactionRows(reading.configurations(cursor), frozenset())
        seq, at, number = first, EPOCH, 0
        for fact in one_round(chosen):
            if isinstance(fact, SampleTaken):
                number += 1
                at = EPOCH + SECONDS_EACH * number
            rows.add(Event(seq, at, path.stem, fact), payload_of(fact), None)
            seq += 1
        write(cursor, rows.tables)
        length, seconds = seq - first, SECONDS_EACH * ROUND
        here = f"WHERE seq >= {first} AND seq < {first + length} ORDER BY seq"
        for turn in range(1, rounds):
            shift = turn * length
            cursor.execute(
                f"INSERT INTO events SELECT seq + {shift}, happened_at + {turn * seconds}, type,"
                f" replace(replace(payload, '/0\"', '/{turn}\"'),"
                f" '\"repetition\":0', '\"repetition\":{turn}') FROM events {here}"
            )
            cursor.execute(
                f"INSERT INTO samples SELECT * REPLACE (seq + {shift} AS seq, {turn} AS repetition,"
                f" id[:-2] || '{turn}' AS id) FROM samples {here}"
            )
            for table in TABLES:
                cursor.execute(
                    f"INSERT INTO {table} SELECT * REPLACE (seq + {shift} AS seq) FROM {table}"
                    f" {here}"
                )
        cursor.execute("CHECKPOINT")
    database.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--samples", type=int, default=1_000_000)
    given = parser.parse_args()
    asyncio.run(make(given.file, given.samples))
