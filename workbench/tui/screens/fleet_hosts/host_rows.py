"""From the hosts of a campaign to the rows of the screen Hosts; plain functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from workbench.domain.counts import counted
from workbench.domain.fleets import FleetSeen, HostDoes, HostSeen
from workbench.domain.profiles import HostFactor
from workbench.domain.projection import SessionView
from workbench.tui import text
from workbench.tui.widgets.rows import Look, Row, fit

SIGNS: Mapping[HostDoes, tuple[str, Look]] = {
    "starting": ("·", "dim"),
    "queued": ("·", "dim"),
    "idle": ("·", ""),
    "measuring": ("▶", "accent"),
    "waiting": ("·", "warn"),
    "lost": ("×", "bad"),
    "held": ("■", "warn"),
    "out": ("■", "bad"),
}
NAME, STATE, FIGURE = 12, 11, 8
"""Widths of columns, in cells."""


@dataclass(frozen=True)
class HostLine:
    """A host of the list."""

    host: HostSeen
    unsteady: str = ""
    """Why it disagrees with itself; empty where it does not."""


def host_lines(view: SessionView) -> list[HostLine]:
    """In the order of the hosts file; of sessions from before that was stored, by name."""
    unsteady = view.hosts_compared.unsteady if view.hosts_compared is not None else {}
    if view.fleet is not None:
        hosts = view.fleet.hosts
    else:
        hosts = tuple(_folded(view, name) for name in sorted({s.host for s in view.shards}))
    if _is_over(view):  # nobody says any more what they do
        hosts = tuple(_at_rest(host) for host in hosts)
    return [HostLine(host, unsteady.get(host.name, "")) for host in hosts]


def _is_over(view: SessionView) -> bool:
    return view.finished is not None or view.state == "interrupted"


def _folded(view: SessionView, name: str) -> HostSeen:
    """A host of which nothing is known but what it measured."""
    own = [shard for shard in view.shards if shard.host == name]
    return HostSeen(
        name,
        "idle",
        shards=len(own),
        samples=sum(shard.samples for shard in own),
        lab_s=sum(shard.lab_s for shard in own),
    )


def _at_rest(host: HostSeen) -> HostSeen:
    done = host.does in ("measuring", "waiting", "starting", "queued", "held")
    return replace(
        host, does="idle" if done else host.does, shard="", since=None,
        note="" if done else host.note,
    )  # fmt: skip


def summary_row(view: SessionView, width: int) -> Row:
    """How far the whole is, and when it ends with the hosts that are there."""
    fleet = view.fleet
    if fleet is None:
        names = {shard.host for shard in view.shards}
        return ((fit(f" measured by {counted(len(names), 'host')}", width), "strong"),)
    left = "" if _is_over(view) else _left(fleet, view.at)
    aside = f", {fleet.set_aside} set aside" if fleet.set_aside else ""
    there = f"{fleet.there} of {counted(len(fleet.hosts), 'host')}"
    if _is_over(view):
        there = counted(len(fleet.hosts), "host")
    words = f" {there} · {fleet.so_far}{aside}{left}"
    return ((fit(words, width), "strong"),)


def _left(fleet: FleetSeen, at: float) -> str:
    if fleet.hosts and all(host.does == "lost" for host in fleet.hosts):
        return " · waits until a host is back"
    if fleet.eta_s is None and fleet.in_rounds:
        return " · to go: unknown (in rounds)"
    if fleet.eta_s is None:
        return " · to go: unknown yet"
    return f" · {text.duration(fleet.eta_s)} to go, until {text.clock(at + fleet.eta_s)}"


def heading(width: int) -> Row:
    return ((fit(_columns("host", "state", "shards", "samples", "pace", "noise") + "now", width),
             "strong"),)  # fmt: skip


def _columns(name: str, state: str, *figures: str) -> str:
    cells = "".join(f"{figure:>{FIGURE}}" for figure in figures)
    return f" {fit(name, NAME)} {fit(state, STATE)}{cells}  "


def host_row(line: HostLine, width: int) -> Row:
    """What a host does, and what it has done."""
    host = line.host
    sign, look = SIGNS[host.does]
    pace = "-" if host.pace is None else f"×{text.number(host.pace)}"
    noise = "-" if host.noise is None else f"{host.noise:.1%}"
    head = _columns(host.name, f"{sign} {host.does}", f"{host.shards - host.anchors}",
                    f"{host.samples - host.anchor_samples}", pace,
                    noise + ("!" if line.unsteady else ""))  # fmt: skip
    now = text.plain(host.note or host.shard)
    return ((head, look), (fit(now, max(0, width - len(head))), "dim"))


def detail_rows(view: SessionView, line: HostLine, width: int) -> list[Row]:
    """All that is known of one host."""
    host, rows = line.host, []
    shards = counted(host.shards - host.anchors, "shard")
    besides = " and its anchor points" if host.anchors else ""
    words = f" {host.name}: {shards}{besides} in {text.duration(host.lab_s)} of lab time"
    if host.wall_s > 0:
        words += f", {text.duration(host.wall_s)} on the clock"
    if host.shard and host.since is not None:
        words += f"; {host.shard} since {text.clock(host.since)}"
    rows.append(words)
    if host.noise is not None:
        rows.append(f" noise: its own deployments scatter by {host.noise:.1%} at the lowest load")
    factors = _factors(view, host.name)
    rows += factors
    if line.unsteady:
        rows.append(f" disagrees with itself: {line.unsteady}")
    if host.note:
        rows.append(f" {host.note}")
    found: list[Row] = []
    for said in rows:
        look: Look = "dim" if found else ""
        parts = text.wrapped(text.plain(said).strip(), max(10, width - 2))
        found += [((f" {part}", look),) for part in parts]
    return found


def _factors(view: SessionView, name: str) -> list[str]:
    compared = view.hosts_compared
    if compared is None:
        return []
    if compared.reference == name:
        return [" the host that the others are compared with"]
    return [f" {_factor(f, compared.reference)}" for f in compared.factors if f.host == name]


def _factor(factor: HostFactor, reference: str) -> str:
    return (
        f"{text.kpi_name(factor.figure)} ×{factor.value:.3f} of {reference} "
        f"({factor.low:.3f} to {factor.high:.3f})"
    )
