"""What a user writes to go somewhere in a replay, as the place that the engine is asked for."""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta

from workbench.domain.errors import UsageError
from workbench.domain.projection import SessionView
from workbench.domain.timeline import FindMoment, TimeLine
from workbench.tui.text import configuration_name

HINT = (
    "14:03:20 a time (11-22 14:03 with the day)   +90s -5m +2h from here   40% of the replay\n"
    "120 the 120th sample   #812 an event   other words: a configuration, at its first sample"
)
UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "": 1.0}


def place_of(written: str, line: TimeLine, at: float, view: SessionView) -> FindMoment | int:
    """An event's number, or what is to be searched for.

    Parameters
    ----------
    at : where the replay is, in seconds since the epoch.
    view : names the configurations, as far as they are known there.

    Raises
    ------
    UsageError
        If there is no such place, with what could be written.
    """
    text = written.strip()
    if found := re.fullmatch(r"#(\d{1,15})", text):
        return min(int(found[1]), line.last_seq)
    if found := re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text):
        share = min(1.0, float(found[1]) / 100)
        return _at(view, line.at_share(share), line)
    if found := re.fullmatch(r"([+-])\s*(\d+(?:\.\d+)?)\s*([smhd]?)", text):
        distance_s = float(found[2]) * UNITS_S[found[3]]
        return _at(view, at + (distance_s if found[1] == "+" else -distance_s), line)
    if found := re.fullmatch(r"(?:(\d{1,2})-(\d{1,2})\s+)?(\d{1,2}):(\d{2})(?::(\d{2}))?", text):
        return _at(view, _clock(found, line), line)
    if re.fullmatch(r"\d{1,15}", text):
        number = int(text)
        if not 1 <= number <= line.samples:
            raise UsageError(f"there are samples 1 to {line.samples}", where=text)
        return FindMoment(view.session, sample=number)
    return _configuration(text, view)


def _at(view: SessionView, at: float, line: TimeLine) -> FindMoment | int:
    if at < line.started_at:
        return 0
    return FindMoment(view.session, at=min(at, line.ended_at))


def _clock(found: re.Match[str], line: TimeLine) -> float:
    """The first such time of day that is not before the session's begin."""
    month, day, hour, minute, second = (int(part or 0) for part in found.groups())
    begin = datetime.fromtimestamp(line.started_at).astimezone()
    try:
        wanted = begin.replace(hour=hour, minute=minute, second=second, microsecond=0)
        if month:
            wanted = wanted.replace(month=month, day=day)
    except ValueError:
        raise UsageError("is no time", where=found[0], remedy="Write it as 14:03:20") from None
    if not month and wanted < begin.replace(microsecond=0):
        wanted += timedelta(days=1)
    if month and wanted < begin - timedelta(days=1):
        wanted = wanted.replace(year=wanted.year + 1)
    at = wanted.timestamp()
    if not line.started_at - 1 <= at <= line.ended_at + 1:
        first, last = (
            time.strftime("%m-%d %H:%M:%S", time.localtime(edge))
            for edge in (line.started_at, line.ended_at)
        )
        raise UsageError(f"the session lasted from {first} to {last}", where=found[0])
    return max(at, line.started_at)


def _configuration(text: str, view: SessionView) -> FindMoment:
    words = text.casefold().split()
    for item in view.configurations:
        name = configuration_name(view.campaign, item.target, item.configuration).casefold()
        if words and all(word in name for word in words):
            return FindMoment(view.session, target=item.target, configuration=item.configuration)
    raise UsageError(
        "is no place in this session",
        where=text or "nothing",
        remedy="Write a time, a sample's number, #event, 40% or words of a configuration",
    )
