"""A question to many sessions at once: `python benchmarks/many_sessions_query.py`.

The Parquet files that `workbench query` makes of sessions are made up here, row by row as it would
write them: their size is what is measured, their figures mean nothing. Making the files of real
sessions, which is done once, is timed with one session that is copied.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from workbench.paths import shipped
from workbench.store.database import quoted
from workbench.store.kpi_rows import ROWS
from workbench.store.many_sessions import spread, written
from workbench.store.session_file import open_session

KPIS = ("loss_pct", "p95_ms", "throughput_rps")
DIFFERENT = 32
"""Files that are made; the others are links to them, and are read as often as their names say."""
GOAL_S, GOAL_MIB = 3.0, 1024.0
MADE_UP = """
SELECT 's-{i}' AS session, 'made-up' AS campaign, '0.{version}.0' AS version, 'sim' AS lab,
    'host-{host}' AS host, CASE WHEN i % 3 = 0 THEN 'haproxy' ELSE 'tinyproxy' END AS target,
    'tinyproxy.vcpu=' || (i % 10) AS configuration, 100.0 * (i % 20 + 1) AS wl, k.kpi,
    exp(random()) AS value, i % 50 > 0 AS valid, 1.0 * i AS started_at
FROM range({samples}) t(i) CROSS JOIN (SELECT unnest({kpis}) AS kpi) k
ORDER BY kpi, target, wl
"""


def make(folder: Path, sessions: int, samples: int) -> None:
    with duckdb.connect(":memory:", config={"threads": 2}) as database:
        for i in range(min(DIFFERENT, sessions)):
            query = MADE_UP.format(
                i=i, version=i % 7, host=i % 16, samples=samples, kpis=list(KPIS)
            )
            path = quoted(folder / f"s-{i}.1-1.parquet")
            database.execute(
                f"COPY ({query}) TO {path}"
                f" (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROWS})"
            )

    for i in range(DIFFERENT, sessions):
        (folder / f"s-{i}.1-1.parquet").hardlink_to(folder / f"s-{i % DIFFERENT}.1-1.parquet")


def asked(folder: Path) -> None:
    """In a process of its own: every question, and the most memory that it took."""
    for words, by, target in (
        ("p95 of tinyproxy by host", ("host",), "tinyproxy"),
        ("p95 by version and target", ("version", "target"), None),
        ("p95 of tinyproxy by host and load", ("host", "load"), "tinyproxy"),
    ):
        began = time.perf_counter()
        rows = spread(written(folder), "p95_ms", by, target)
        took_s = time.perf_counter() - began
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        counted = sum(row.samples for row in rows)
        verdict = "holds" if took_s <= GOAL_S and most <= GOAL_MIB else "missed"
        print(
            f"{words}: {counted:,} samples in {took_s:.2f} s, {most:.0f} MiB at most so far "
            f"(goal: {GOAL_S:g} s, {GOAL_MIB:g} MiB): {verdict}",
            flush=True,
        )


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--sessions", type=int, default=1000)
    given.add_argument("--samples", type=int, default=10_000)
    given.add_argument("--folder", type=Path)
    arguments = given.parse_args()
    if arguments.folder:
        asked(arguments.folder)
        return
    with tempfile.TemporaryDirectory(prefix="query-") as name:
        folder = Path(name)
        make(folder, arguments.sessions, arguments.samples)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 2**20
        total = arguments.sessions * arguments.samples
        print(
            f"{arguments.sessions} sessions, {total:,} samples of {len(KPIS)} KPIs, {size:.0f} MiB"
        )
        subprocess.run([sys.executable, __file__, "--folder", name], check=True)
    with tempfile.TemporaryDirectory(prefix="query-") as name:
        session = open_session(shipped("sessions") / "demo-real", read_only=True)
        began = time.perf_counter()
        for i in range(10):
            session.write_kpis(Path(name) / f"{i}.parquet")
        print(
            f"rows of one session (demo-real) written in {(time.perf_counter() - began) / 10:.3f} s"
        )
        session.shut()


if __name__ == "__main__":
    main()
