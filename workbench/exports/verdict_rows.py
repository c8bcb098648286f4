"""Why every sample is as it is, as a table: each verdict of the rules, with its evidence."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from workbench import plugins
from workbench.domain.projection import SessionView
from workbench.domain.samples import Measurement
from workbench.domain.tables import CAUTION
from workbench.exports.base import ExportSource, csv_table, file_in, measurement_pages

if TYPE_CHECKING:  # their imports take time, and most exports are of something else
    from workbench.diagnosis.base import Rule
    from workbench.diagnosis.explaining import Known
    from workbench.diagnosis.readings import Reading

COLUMNS: Final = (
    CAUTION, "sample", "target", "configuration", "wl", "valid", "measured_ms", "alone_ms",
    "answer", "place", "cause", "component", "strength", "sentence", "evidence", "remedy", "rival",
    "tells_apart", "not_judged", "failed",
)  # fmt: skip
"""`answer` is the sentence of the sample, `place` the verdict's among those of the sample, the
strongest first; a sample without a verdict has a row without one. `not_judged` are the counters
that were missing, `failed` the rules that raised.
"""


async def export_verdicts(source: ExportSource, destination: Path) -> tuple[Path, ...]:
    """CSV: the likely causes of what each sample shows, the strongest first.

    Writes `NAME.verdicts.csv` into the folder `destination`, or the file of that name.
    Of each target the first samples are judged (`diagnosis.gathering.MOST_SAMPLES`), by the rules
    that are registered now.
    """
    from workbench.diagnosis.gathering import MOST_SAMPLES

    path = await asyncio.to_thread(file_in, destination, source.name, ".verdicts.csv")
    view = await source.view()
    readings: dict[str, list[Reading]] = {}
    async for page in measurement_pages(source):
        for reading in await asyncio.to_thread(_readings, page):
            own = readings.setdefault(reading.sample.point.target, [])
            if len(own) < MOST_SAMPLES:
                own.append(reading)
    await asyncio.to_thread(_write, path, view, readings)
    return (path,)


def _readings(page: Sequence[Measurement]) -> list[Reading]:
    from workbench.diagnosis.readings import read

    return [read(one) for one in page]


def _write(path: Path, view: SessionView, readings: Mapping[str, Sequence[Reading]]) -> None:
    from workbench.diagnosis.gathering import known_of

    rules, broken = _rules()
    campaign = view.campaign
    with csv_table(path, COLUMNS) as write:
        for name, own in readings.items():
            plan = campaign.find_target(name) if campaign is not None else None
            if campaign is None or plan is None:
                continue  # trials of a chain that the campaign does not have
            known = known_of(campaign, plan.target, readings)
            for seen in own:
                write(_rows(known, seen, rules, broken, view.caution))


def _rules() -> tuple[list[Rule], list[str]]:
    """Those registered, and a sentence for each that does not load or is none."""
    from workbench.diagnosis.base import Rule

    parts, errors = plugins.load_all("diagnosis")
    rules = [part for part in parts.values() if isinstance(part, Rule)]
    strange = [f"{name} is no rule" for name, part in parts.items() if not isinstance(part, Rule)]
    return rules, [*map(str, errors), *strange]


def _rows(
    known: Known, seen: Reading, rules: Sequence[Rule], broken: Sequence[str], caution: str
) -> Iterator[tuple[object, ...]]:
    from workbench.diagnosis.explaining import answer_of

    answer = answer_of(known, seen, rules)
    sample, point = seen.sample, seen.sample.point
    times = [None if s is None else 1e3 * s for s in (seen.mean_s, answer.alone_s)]
    of = (
        caution, sample.id, point.target, point.configuration.key, point.wl, sample.valid, *times,
        answer.sentence,
    )  # fmt: skip
    raised = [f"{cause}: {why}" for cause, why in answer.failed.items()]
    beside = (" ".join(sorted(answer.missing)), "; ".join([*broken, *raised]))
    for place, verdict in enumerate(answer.verdicts, 1):
        yield (
            *of, place, verdict.cause, verdict.component, verdict.strength, verdict.sentence,
            "; ".join(verdict.evidence), verdict.remedy, verdict.rival, verdict.tells_apart,
            *beside,
        )  # fmt: skip
    if not answer.verdicts:
        yield (*of, *[""] * 9, *beside)
