"""The race of breakpoint searches as tables: quality and seconds, overheads, grids and faults.

What was searched is kept by method and by the code that searched, cell by cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import msgspec

from science import searches, tables
from science.devices import FAULTS, KINDS, NOISES
from science.report import save
from science.searches import GRIDS, OVERHEADS_S, SEARCHES, VCPUS, WIDTHS, Cell, Searched
from science.stored import Store, digest
from science.svg import Series, lines

KNEE, USUAL = "hard knee", 1
"""The device and the noise of tables that show one of each."""


class Job(msgspec.Struct, frozen=True, array_like=True):
    """`what` is `cell`, `grid`, `fault` or `swept`; `number` a noise or a fault."""

    what: str
    method: str
    kind: str = KNEE
    number: int = USUAL
    width: float = 0.05
    overhead_s: float = 0.0
    repetitions: int = 50


class Done(msgspec.Struct, frozen=True):
    job: Job
    found: list[Searched] = []
    counts: list[float] = []


def do(job: Job) -> Done:
    """The searches of a job."""
    if job.what == "fault":
        counts = searches.faulty(job.method, FAULTS[job.number], job.repetitions, job.width)
        return Done(job, counts=list(counts))
    if job.what == "grid":
        noise = NOISES[job.number]
        cell = searches.grid_cell(job.method, noise, job.width, job.repetitions, job.overhead_s)
        return Done(job, list(cell.found))
    if job.what == "swept":
        way = searches.time_and_error(job.method, job.repetitions, NOISES[job.number])
        return Done(job, counts=[figure for point in way for figure in point])
    kind = KINDS[[str(k) for k in KINDS].index(job.kind)]
    noise = NOISES[job.number]
    cell = searches.cell(job.method, kind, noise, job.width, job.repetitions, job.overhead_s)
    return Done(job, list(cell.found))


def kept(store: Store, job: Job) -> Done:
    """A job, from the store where the same code did it."""
    key = f"searches/{job.method.replace(' ', '-')}-{digest('science.searches')}"
    for known in store.lines(key, Done):
        if known.job == job:
            return known
    done = do(job)
    store.add(key, done)
    return done


def report(store: Store, workers: int, devices: int, grids: int) -> str:
    """All tables and the figure."""
    methods, noises = tuple(SEARCHES), range(len(NOISES))
    cells = [
        Job("cell", m, k, n, w, repetitions=devices)
        for w in WIDTHS for k in KINDS for n in noises for m in methods
    ]  # fmt: skip
    overheads = [
        Job("cell", m, overhead_s=o, repetitions=devices) for m in methods for o in OVERHEADS_S
    ]
    gridded = [Job("grid", m, number=n, repetitions=grids) for m in GRIDS for n in noises]
    faults = [
        Job("fault", m, number=f, repetitions=devices) for m in methods for f in range(len(FAULTS))
    ]
    swept = [Job("swept", m, repetitions=devices) for m in searches.SWEPT]
    jobs = [*cells, *overheads, *gridded, *faults, *swept]
    with ProcessPoolExecutor(workers) as executor:
        done = dict(zip(jobs, executor.map(partial(kept, store), jobs), strict=True))

    def cell(job: Job) -> Cell:
        return Cell(job.width, done[job].found)

    parts: list[str] = []
    for width in WIDTHS:
        rows = [
            (k, NOISES[n].name, [cell(Job("cell", m, k, n, width, 0.0, devices)) for m in methods])
            for k in KINDS
            for n in noises
        ]
        parts += [
            f"Width {100 * width:g} %, {devices} devices a row: seconds of load, median (p90), "
            "where p90 of the error is within the width and coverage at least 90 %; p90 of the "
            "error; coverage.",
            tables.table(["device", "noise", *methods], searches.table_rows(rows)),
        ]
    parts += [
        "Overhead per trial, charged (hard knee, 1 %, width 5 %):",
        _by_method(
            [f"{o:g} s" for o in OVERHEADS_S],
            methods,
            [_wall(cell(job)) for job in overheads],
        ),
        f"Grids of {len(VCPUS)} configurations, per configuration, neighbours charged (width 5 %):",
        _by_method(
            [noise.name for noise in NOISES],
            tuple(GRIDS),
            [searches.table_rows([("", "", [cell(job)])])[0][2] for job in gridded],
        ),
        "Faults (hard knee, 1 %, width 5 %):",
        _by_method(
            FAULTS,
            methods,
            ["{:g} right, {:g} refused, {:g} wrong".format(*done[job].counts) for job in faults],
        ),
    ]
    series = [Series(job.method, done[job].counts[::2], done[job].counts[1::2]) for job in swept]
    svg = lines(
        "Breakpoint search: time and error (hard knee, noise 1 %)",
        "seconds of load, median", "error, p90, %", series,
    )  # fmt: skip
    return "\n\n".join([*parts, save("searches", svg)])


def _wall(cell: Cell) -> str:
    missed = "" if cell.fair else " (quality missed)"
    return f"{cell.spent('wall_s'):.0f} s, {cell.spent('trials'):.0f} trials{missed}"


def _by_method(head: Sequence[str], methods: Sequence[str], cells: Sequence[str]) -> str:
    """Cells in rows of `head`, a method each."""
    rows = [
        [method, *cells[place * len(head) : (place + 1) * len(head)]]
        for place, method in enumerate(methods)
    ]
    return tables.table(["method", *head], rows)
