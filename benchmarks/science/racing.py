"""The race of breakpoint searches as tables: quality and seconds, overheads, grids and faults.

What was searched is kept by method and by the version of the searches, cell by cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import msgspec

from science import ours, searches, tables
from science.devices import FAULTS, KINDS, NOISES, device
from science.report import save
from science.searches import OVERHEADS_S, VCPUS, WIDTHS, Cell, Searched
from science.stored import Store, version
from science.svg import Series, lines

SEARCHES = {**searches.SEARCHES, **ours.SEARCHES}
GRIDS = {**searches.GRIDS, **ours.GRIDS}
SWEPT = {**searches.SWEPT, **ours.SWEPT}
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
        counts = searches.faulty(
            SEARCHES[job.method], FAULTS[job.number], job.repetitions, job.width
        )
        return Done(job, counts=list(counts))
    if job.what == "grid":
        noise = NOISES[job.number]
        grid = GRIDS[job.method]
        cell = searches.grid_cell(grid, noise, job.width, job.repetitions, job.overhead_s)
        return Done(job, list(cell.found))
    if job.what == "swept":
        way = searches.time_and_error(SWEPT[job.method], job.repetitions, NOISES[job.number])
        return Done(job, counts=[figure for point in way for figure in point])
    kind = KINDS[[str(k) for k in KINDS].index(job.kind)]
    noise = NOISES[job.number]
    search = SEARCHES[job.method]
    trial_s = searches.TRIAL_S.get(job.method, 1.0)
    devices = [device(kind, noise, seed, job.overhead_s) for seed in range(job.repetitions)]
    return Done(job, list(searches.cell(search, devices, job.width, trial_s).found))


def kept(store: Store, job: Job) -> Done:
    """A job, from the store where the same version did it."""
    code = "science.ours" if job.method.startswith("ours") else "science.searches"
    key = f"searches/{job.method.replace(' ', '-')}-{version(code)}"
    for known in store.lines(key, Done):
        if known.job == job:
            return known
    done = do(job)
    store.add(key, done)
    return done


def jobs(devices: int, grids: int) -> list[Job]:
    """All that the tables need, each once."""
    return [
        *(job for w in WIDTHS for job in _cells(w, devices)),
        *_overheads(devices),
        *(Job("grid", m, number=n, repetitions=grids) for m in GRIDS for n in range(len(NOISES))),
        *(Job("fault", m, number=f, repetitions=_few(devices))
          for m in SEARCHES for f in range(len(FAULTS))),
        *(Job("swept", m, repetitions=_few(devices)) for m in SWEPT),
    ]  # fmt: skip


def _few(devices: int) -> int:
    """Where a search takes minutes of load, or a row says less: two fifths of the devices."""
    return max(2 * devices // 5, 1)


def _cells(width: float, devices: int) -> list[Job]:
    """By device, noise and method."""
    count = devices if width == max(WIDTHS) else _few(devices)
    return [
        Job("cell", m, k, n, width, repetitions=count)
        for k in KINDS for n in range(len(NOISES)) for m in SEARCHES
    ]  # fmt: skip


def _overheads(devices: int) -> list[Job]:
    return [
        Job("cell", m, overhead_s=o, repetitions=_few(devices))
        for m in SEARCHES for o in OVERHEADS_S
    ]  # fmt: skip


def report(store: Store, workers: int, devices: int, grids: int) -> str:
    """All tables and the figure."""
    methods = tuple(SEARCHES)
    wanted = jobs(devices, grids)
    with ProcessPoolExecutor(workers) as executor:
        done = dict(zip(wanted, executor.map(partial(kept, store), wanted), strict=True))
    overheads = _overheads(devices)
    gridded, faults, swept = (
        [job for job in wanted if job.what == what] for what in ("grid", "fault", "swept")
    )

    def cell(job: Job) -> Cell:
        return Cell(job.width, done[job].found)

    parts: list[str] = []
    for width in WIDTHS:
        own = [cell(job) for job in _cells(width, devices)]
        rows = [
            (job.kind, NOISES[job.number].name, own[place : place + len(methods)])
            for place, job in enumerate(_cells(width, devices))
            if job.method == methods[0]
        ]
        parts += [
            f"Width {100 * width:g} %, {len(own[0].found)} devices a row: seconds of load, median "
            "(p90), where p90 of the error is within the width and coverage at least 90 %; p90 of "
            "the error; coverage.",
            tables.table(["device", "noise", *methods], searches.table_rows(rows)),
            f"Both questions, width {100 * width:g} %: p90 of the error · coverage, of the load "
            "whose expected loss is the goal / of the load at which half of the trials pass (of "
            "1 s; of the method's own 30 or 60 s for MLRsearch E, RFC 2544 and bisection 30 s).",
            tables.table(["device", "noise", *methods], searches.both_rows(rows)),
        ]
    parts += [
        f"Overhead per trial, charged (hard knee, 1 %, width 5 %, {_few(devices)} devices):",
        _by_method(
            [f"{o:g} s" for o in OVERHEADS_S],
            methods,
            [_wall(cell(job)) for job in overheads],
        ),
        f"{grids} grids of {len(VCPUS)} configurations, per configuration, neighbours charged "
        "(hard knee, width 5 %):",
        _by_method(
            [noise.name for noise in NOISES],
            tuple(GRIDS),
            [searches.table_rows([("", "", [cell(job)])])[0][2] for job in gridded],
        ),
        f"Faults (hard knee, 1 %, width 5 %, {_few(devices)} devices):",
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
