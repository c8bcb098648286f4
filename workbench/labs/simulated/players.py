"""Players of live movies in the simulated lab: a segment each second, whether the last came or not.

Each player asks for a segment of its movie when it appears, players one after the other in the
course of a second. A segment with its playlist is one request, whose service is by the byte as the
function's stand-in says; pushing movies costs nothing here. A player that falls behind gives
nothing up, so that it is later than one that jumps to the live edge.
"""

from __future__ import annotations

import numpy as np

from workbench.domain.parameters import LoadModel
from workbench.labs.simulated.scene import SEGMENT_S
from workbench.measuring.records import Playback, RequestRecords

BUFFERED = 2
"""Segments that a player holds when it begins: it begins at the third from the live edge."""


def offered(load: LoadModel, wl: float) -> tuple[LoadModel, float]:
    """The load and its rate as they go through the network: of players, segments as they appear."""
    if load.unit != "streams":
        return load, wl
    count = max(1, round(wl))
    return LoadModel("open", connections=count), count / SEGMENT_S


def played(records: RequestRecords, players: int) -> RequestRecords:
    """The requests of players, with what they saw: request i is of player i modulo `players`."""
    index = np.arange(len(records)) % max(1, players)
    arrived = records.succeeded
    order = np.argsort(records.end_s[arrived], kind="stable")
    began = np.full(players, np.nan)
    first = min(players, len(records))
    began[:first] = records.planned_s[:first]
    media = np.full(len(records), SEGMENT_S)
    # What it held when it began: its first segment lasts for as much longer.
    media[:players] *= 1 + BUFFERED
    playback = Playback(
        index[arrived][order].astype(np.int64),
        media[arrived][order],
        records.end_s[arrived][order],
        players,
        began,
    )
    sent = np.isfinite(records.start_s)
    # In a closed loop a request that is not sent yet is not due either.
    return RequestRecords(
        records.start_s[sent],
        records.start_s[sent],
        records.first_byte_s[sent],
        records.end_s[sent],
        records.status[sent],
        records.bytes[sent],
        playback,
    )
