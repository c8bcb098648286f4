"""Speed of the session file, each figure with its target.

    PYTHONPATH=tests python benchmarks/store_speed.py

What is stored are the sessions of the tests, with windows as large as real ones (200 buckets).
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from session_making import EPOCH, campaign, created, measurement

from workbench.domain.events import Noted, SampleTaken
from workbench.domain.samples import LatencyHistogram, Measurement, UsageSecond
from workbench.paths import Workspace
from workbench.store.catalogue import list_sessions
from workbench.store.session_file import SessionFile, import_bundle

BUCKETS = tuple(range(600, 800))
HISTOGRAM = LatencyHistogram(1.01, BUCKETS, tuple(7 * b for b in BUCKETS))
LONG_SERIES = 50_000
ROWS_TARGET = "> 100,000 /s"
CONFIGURATION = campaign().configurations(campaign().targets[0])[0]


def print_line(what: str, figure: str, target: str) -> None:
    print(f"{what:<52} {figure:>16}   target {target}")


def large(number: int) -> Measurement:
    """A sample as a real run yields it, at a point of its own."""
    made = measurement("haproxy", CONFIGURATION, 100.0 + number)
    windows = tuple(replace(w, service=HISTOGRAM, response=HISTOGRAM) for w in made.windows)
    return replace(made, windows=windows)


@asynccontextmanager
async def session(folder: Path, name: str) -> AsyncIterator[SessionFile]:
    made = await SessionFile.create(folder / f"{name}.duckdb", created(), at=EPOCH)
    try:
        yield made
    finally:
        await made.close()


async def each(count: int, work: Callable[[int], Awaitable[object]]) -> list[float]:
    """Milliseconds of every call."""
    times = []
    for number in range(count):
        begin = perf_counter()
        await work(number)
        times.append((perf_counter() - begin) * 1000)
    return times


def percentiles(times: list[float]) -> str:
    cuts = quantiles(times, n=100)
    return f"{cuts[49]:.1f} / {cuts[98]:.1f} ms"


async def appending(folder: Path) -> None:
    async with session(folder, "events") as file:
        times = await each(500, lambda n: file.append(Noted("info", f"note {n}"), at=EPOCH))
        print_line("one event, durable: median / p99", percentiles(times), "p99 < 20 ms")
        notes = [Noted("info", f"note {n}") for n in range(5000)]
        begin = perf_counter()
        await asyncio.gather(*(file.append(note, at=EPOCH) for note in notes))
        print_line("events in a burst", f"{5000 / (perf_counter() - begin):,.0f} /s", "> 5,000 /s")
    async with session(folder, "samples") as file:
        taken = [large(number) for number in range(200)]
        times = await each(
            200, lambda n: file.append(SampleTaken(taken[n].sample), at=EPOCH, measurement=taken[n])
        )
        print_line("one sample with windows and series", percentiles(times), "p99 < 100 ms")
    print_line("series rows, committed", f"{await series_rows_per_s(folder):,.0f} /s", ROWS_TARGET)


async def series_rows_per_s(folder: Path) -> float:
    """Rows of usage seconds that are on the disk per second: samples with long series, one each.

    The median of several, since another process may hold the disk.
    """
    second = UsageSecond(0.0, "haproxy", 0.2, 0.1, 5e6, 1.5, 80.0)
    series = tuple(replace(second, second=float(n)) for n in range(LONG_SERIES))
    speeds = []
    async with session(folder, "series") as file:
        for number in range(5):
            long = replace(large(number), series=series)
            begin = perf_counter()
            await file.append(SampleTaken(long.sample), at=EPOCH, measurement=long)
            speeds.append(len(series) / (perf_counter() - begin))
    return median(speeds)


async def reading(folder: Path) -> None:
    path = folder / "samples.duckdb"
    begin = perf_counter()
    file = await SessionFile.open(path)
    print_line("open, 201 samples", f"{(perf_counter() - begin) * 1000:.0f} ms", "< 200 ms")
    for what, work in (
        ("view", file.view),
        ("all samples", file.samples),
        ("write a bundle", lambda: file.write_tables(folder / "samples.bundle")),
        ("import it", lambda: import_bundle(folder / "samples.bundle", folder / "copy.duckdb")),
    ):
        begin = perf_counter()
        result = await work()  # type: ignore[no-untyped-call]  # each of another type
        print_line(f"{what}, 201 samples", f"{(perf_counter() - begin) * 1000:.0f} ms", "< 1000 ms")
        if isinstance(result, SessionFile):
            await result.close()
    await file.close()
    print_line("size of 201 samples", f"{path.stat().st_size / 1e6:.1f} MB", "-")


async def listing(folder: Path) -> None:
    workspace = Workspace(folder / "workspace")
    workspace.sessions.mkdir(parents=True)
    async with session(workspace.sessions, "s-0"):
        pass
    content = (workspace.sessions / "s-0.duckdb").read_bytes()
    for number in range(1, 200):
        (workspace.sessions / f"s-{number}.duckdb").write_bytes(content)
    for what, target in (("at first", "-"), ("again", "< 100 ms")):
        begin = perf_counter()
        await asyncio.to_thread(list_sessions, workspace, folder)
        figure = f"{(perf_counter() - begin) * 1000:.0f} ms"
        print_line(f"list of 200 sessions, {what}", figure, target)


async def main(figure: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        if figure:
            print(await series_rows_per_s(Path(folder)))
            return
        await appending(Path(folder))
        await reading(Path(folder))
        await listing(Path(folder))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", action="store_true", help="series rows per second alone")
    asyncio.run(main(parser.parse_args().figure))
