"""Live movies and players: ffmpeg pushes over RTMP, `play` fetches over HLS beside it.

A script of ours (`templates/vnfs/hls-source/play`) starts both and notes every request, so that
whether playback stood still is computed here (`measuring.playback`). What goes wrong with movies,
playlists or its log makes a sample invalid and no lab error: the next one may be well.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import numpy as np

from workbench.domain.parameters import LoadModel
from workbench.domain.samples import KpiDefinition
from workbench.measuring.records import Floats, Playback, RequestRecords
from workbench.traffic.base import Offer, PathFacts
from workbench.traffic.rebuild import RequestRows, records

PROGRAM = "/usr/local/bin/play"
COLUMNS = 10
"""Player, movie, kind, number, seconds of media, begin, first byte, end, status, bytes."""
PLAYLIST, SEGMENT = 0, 1
MOST_ROWS = 1 << 21
MOST_PLAYERS = 1000
"""Its Python is one thread: about 0.4 ms of CPU a player and second, ffmpeg with it."""
MOST_FAULTS = 20
LONGEST_S, MOST_BYTES = 3600.0, 1 << 30
_TICKS = re.compile(r"^ticks (\d{1,12}) (\d{1,12})$", re.MULTILINE)
_ROWS = re.compile(r"^rows (\d{1,12})$", re.MULTILINE)
_FAULT = re.compile(r"^fault (.{1,300})$", re.MULTILINE)


class Hls:
    """Speaks to `play` 1."""

    name = "hls"
    kpi_definition: KpiDefinition = "request"
    packages: tuple[str, ...] = ()
    plays_streams = True

    def unable(self, load: LoadModel, kpis: Collection[str], most: float) -> str | None:
        del kpis
        if load.unit != "streams":
            return f"hls plays streams, it cannot offer {load.unit}"
        if most > MOST_PLAYERS:
            return f"{most:g} players are more than the {MOST_PLAYERS} that its one thread plays"
        return None

    def unfit(self, path: PathFacts) -> str | None:
        return "the path redirects, and players would not follow" if path.redirects else None

    def version_argv(self) -> tuple[str, ...]:
        return (PROGRAM, "--version")

    def parse_version(self, output: str) -> str:
        return (output.split()[1:] or ["unknown"])[0]

    def argv(self, offer: Offer) -> tuple[str, ...]:
        asked = parse_qs(urlsplit(offer.url).query)
        return (
            *(PROGRAM, "--players", str(round(offer.wl)), "--movies", asked["movies"][0]),
            *("--kbps", asked["kbps"][0], "--seconds", repr(offer.seconds)),
            *("--timeout", repr(offer.request_timeout_s), "--records", offer.result_path),
            offer.url.partition("?")[0],
        )

    def parse(
        self, offer: Offer, result: bytes, output: str, begin_s: float, stop_s: float
    ) -> RequestRecords:
        faults = [f"{text}" for text in _FAULT.findall(output)[:MOST_FAULTS]]
        told, ticks = _ROWS.search(output), _TICKS.search(output)
        table = np.frombuffer(result[: len(result) // (8 * COLUMNS) * 8 * COLUMNS], dtype="<f8")
        table = table.reshape(-1, COLUMNS)[:MOST_ROWS].astype(np.float64)
        rows = int(told[1]) if told else -1
        if len(result) % (8 * COLUMNS) or rows != len(table):
            whole = f" of {rows}" if told else ""
            faults.insert(0, f"the players' log is cut off after {len(table)}{whole} requests")
        players = round(offer.wl)
        held = _requests(table, players, stop_s - begin_s)
        if not held.all():
            bad = int(np.argmin(held))
            faults.insert(0, f"the players' log is none: row {bad + 1} is no request")
            table = table[held]
        late = int(ticks[2]) / max(1, int(ticks[1])) if ticks else 0.0
        return _records(table, players, begin_s, stop_s, (min(1.0, late), tuple(faults)))


def _requests(table: Floats, players: int, seconds: float) -> np.ndarray:
    """Which rows can be requests, of shape (n,)."""
    player, movie, kind, number, media, begin, first, end, status, size = table.T
    with np.errstate(invalid="ignore"):
        held = np.isfinite(table[:, [0, 1, 2, 3, 4, 5, 8, 9]]).all(axis=1)
        held &= (player >= 0) & (player < players) & (movie >= 0) & (number >= -1)
        held &= (kind == PLAYLIST) | ((kind == SEGMENT) & (media > 0) & (media < LONGEST_S))
        held &= (begin >= 0) & (begin <= seconds + LONGEST_S) & ~(end < begin) & ~np.isinf(end)
        held &= ~(first < begin) & ~np.isinf(first)
        held &= (status >= 0) & (status <= 999) & (status == np.round(status))
        return np.asarray(held & (size >= 0) & (size <= MOST_BYTES) & (player == np.round(player)))


def _records(
    table: Floats, players: int, begin_s: float, stop_s: float, told: tuple[float, tuple[str, ...]]
) -> RequestRecords:
    """Requests until the load stopped, and the segments among them."""
    seconds = stop_s - begin_s
    table = table[table[:, 5] < seconds]
    player, _, kind, _, media, begin, first, end, status, size = table.T
    rows = RequestRows(begin, begin, first, end, status, size).until(seconds)
    arrived = (kind == SEGMENT) & (rows.status == 200) & (rows.bytes > 0)
    order = np.argsort(end[arrived], kind="stable")
    began = np.full(players, np.inf)
    np.minimum.at(began, player.astype(np.int64), begin_s + begin)
    playback = Playback(
        player[arrived].astype(np.int64)[order],
        media[arrived][order],
        begin_s + end[arrived][order],
        players,
        np.where(np.isfinite(began), began, np.nan),
        *told,
    )
    return replace(records([rows], begin_s), playback=playback)
