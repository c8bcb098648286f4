"""The tables of docs/truth.md: `python -m bench_truth [--seeds 500] [--workers 2]`."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from pathlib import Path
from statistics import median
from typing import TypeVar

import msgspec

from bench_truth import tables
from bench_truth.families import BASELINE, BY_NAME, FAMILIES, METHOD, WORLDS, Family
from bench_truth.faults import FAULTS, Fault, Played, Visit, played, visits
from bench_truth.playing import play
from bench_truth.scoring import PUBLISHED, Outcome, counts, outcomes
from bench_truth.seconds import FAMILIES as NOISES
from bench_truth.seconds import PROTOCOLS, Race, races
from bench_truth.stored import Seed, Store, digest
from bench_truth.truths import Known

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "bench-truth"
PAGE = ROOT / "docs" / "truth.md"
ALL, SOME = "make bench-truth", "families played since"
BEGIN, END = "<!-- tables: {} -->", "<!-- end of tables -->"
T = TypeVar("T")


def play_one(family: Family, method: str, seed: int) -> bytes:
    """All samples of one seed, encoded for the store."""
    campaign = family.campaign(method)
    found = asyncio.run(play(campaign, campaign.targets[0], seed, family.lab_options(seed)))
    return msgspec.json.encode(Seed(seed, *found))


def play_missing(
    store: Store, families: Iterable[Family], method: str, seeds: int, executor: Executor
) -> None:
    """Play what is not stored yet, family by family, and store it as it comes."""
    for family in families:
        done = {stored.seed for stored in store.seeds(method, family.name)}
        wanted = [seed for seed in range(1, seeds + 1) if seed not in done]
        begin = time.perf_counter()
        jobs = [executor.submit(play_one, family, method, seed) for seed in wanted]
        for job in as_completed(jobs):
            store.add(method, family.name, job.result())
        if wanted:
            took = time.perf_counter() - begin
            print(f"{method} {family.name}: {len(wanted)} seeds in {took:.0f} s", flush=True)


def score(
    store: Store,
    families: Iterable[Family],
    method: str,
    seeds: int,
    known: Known,
    executor: Executor,
) -> list[Outcome]:
    """Outcomes of stored samples by the rules as they are now."""
    jobs = [
        executor.submit(outcomes, family, [one], known)
        for family in families
        for one in store.seeds(method, family.name)
        if one.seed <= seeds
    ]
    return _all(jobs)


def cost(store: Store, families: Iterable[Family], method: str, seeds: int) -> str:
    """Samples and lab seconds of a seed, as a sentence."""
    taken = [
        stored
        for family in families
        for stored in store.seeds(method, family.name)
        if stored.seed <= seeds
    ]
    if not taken:
        return ""
    most = max(
        n for one in taken for n in Counter(s.point.configuration.key for s in one.samples).values()
    )
    samples = median(len(one.samples) for one in taken)
    lab_s = median(one.lab_s for one in taken)
    return (
        f"`{method}`: {samples:g} samples of two configurations in {lab_s:.0f} lab seconds, "
        f"deployments and bypass included (medians); at most {most} of one configuration."
    )


def inject(
    executor: Executor, known: Known, repetitions: int, faults: Sequence[Fault] = FAULTS
) -> tuple[list[Visit], list[Played]]:
    """Every fault under so many seeds: visits, and whole campaigns."""
    jobs = [(fault, seed) for fault in faults for seed in range(1, repetitions + 1)]
    visited = [executor.submit(visits, fault, seed, known) for fault, seed in jobs]
    campaigns = [executor.submit(played, fault, seed) for fault, seed in jobs]
    return _all(visited), _all(campaigns)


def race(
    executor: Executor,
    known: Known,
    repetitions: int,
    families: Sequence[str] = NOISES,
    protocols: Sequence[float] = tuple(PROTOCOLS),
) -> list[Race]:
    """Fixed protocols and ours, by families of noise."""
    jobs = [(family, seed) for family in families for seed in range(1, repetitions + 1)]
    return _all([executor.submit(races, family, protocols, seed, known) for family, seed in jobs])


def _all(jobs: Iterable[Future[list[T]]]) -> list[T]:
    return [one for job in jobs for one in job.result()]


def publish(page: Path, text: str, what: str = ALL) -> None:
    """Put the tables between their markers."""
    begin = BEGIN.format(what)
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{begin}\n{text}\n{END}{after}", encoding="utf-8")


def publish_counts(found: Sequence[Outcome], *, replacing: bool) -> None:
    """What tests hold shorter runs against: of all families, or of some beside the others'."""
    others = {} if replacing else msgspec.json.decode(PUBLISHED.read_bytes())
    plain = msgspec.json.format(msgspec.json.encode(others | counts(found)), indent=1)
    PUBLISHED.write_bytes(plain + b"\n")


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench_truth", description=__doc__)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--baseline-seeds", type=int, default=100)
    parser.add_argument("--repetitions", type=int, default=20, help="of faults and protocols")
    some = "names, with commas; all by default. Published, they have tables of their own"
    parser.add_argument("--families", default="", help=some)
    parser.add_argument("--method", default=METHOD, help="the sampler")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--samples", default="", help="score that folder of samples, play nothing")
    parser.add_argument("--anew", action="store_true", help="compute the truths again")
    parser.add_argument(
        "--publish",
        action="store_true",
        help="write docs/truth.md and what the tests hold shorter runs against",
    )
    given = parser.parse_args()
    families = [BY_NAME[n] for n in given.families.split(",")] if given.families else FAMILIES
    store, known = Store(CACHE / (given.samples or digest())), Known()
    print(f"samples in {store.folder}", flush=True)
    baseline_seeds = min(given.seeds, given.baseline_seeds)
    with ProcessPoolExecutor(given.workers) as executor:
        worlds = [(f, seed) for f in families for seed in range(1, min(given.seeds, WORLDS) + 1)]
        known.complete(worlds, executor, anew=given.anew)
        if not given.samples:
            play_missing(store, families, given.method, given.seeds, executor)
            play_missing(store, families, BASELINE, baseline_seeds, executor)
        found = score(store, families, given.method, given.seeds, known, executor)
        baseline = score(store, families, BASELINE, baseline_seeds, known, executor)
        held_out = [
            [o for o in outcomes if BY_NAME[o.family].held_out] for outcomes in (found, baseline)
        ]
        whole = ["### Pooled over families", tables.pooled(found, baseline)]
        sections = [
            "### Families that were held out", tables.pooled(*held_out),
            *([] if given.families else whole),
            "### By family", tables.cells(found),
            "### Where there is no breakpoint", tables.states(found),
        ]  # fmt: skip
        if given.repetitions:
            sections += ["### Faults", tables.faults(*inject(executor, known, given.repetitions))]
            raced = race(executor, known, given.repetitions)
            sections += ["### Seconds per valid sample", tables.seconds(raced)]
    counted = (
        f"{given.seeds} seeds of {len(families)} families by `{given.method}`, "
        f"{baseline_seeds} by `{BASELINE}`, {given.repetitions} of each fault and protocol."
    )
    costs = [cost(store, families, m, given.seeds) for m in dict.fromkeys((given.method, BASELINE))]
    text = "\n\n".join([counted, " ".join(costs), *sections])
    print(text)
    if given.publish:
        publish(PAGE, text, SOME if given.families else ALL)
        publish_counts(found, replacing=not given.families)


if __name__ == "__main__":
    main()
