"""Whether what a session says holds on this host: a profile is of the host that it was made on."""

from __future__ import annotations

import os
from contextlib import suppress

from workbench.domain.lab import HostFacts
from workbench.domain.projection import SessionView
from workbench.probes.host import read_cpu_model


def elsewhere(session: str, facts: HostFacts | None) -> tuple[str, ...]:
    """That a session was measured on another host than this one, as a sentence; none otherwise.

    A bundle may come from anywhere, and is answered from all the same: its figures are marked. The
    simulated lab is the same everywhere, and of a remote engine this host tells nothing.
    """
    if facts is None or facts.lab != "docker" or "load_average" not in facts.details:
        return ()
    here = (os.cpu_count() or 0, "")
    with suppress(OSError):
        here = (here[0], read_cpu_model())
    there = (facts.cores, facts.cpu_model)
    if here == there:
        return ()
    return (
        f"{session} was measured on another host ({_host(*there)}) than this one ({_host(*here)}): "
        "its figures hold there",
    )


def carried_over(view: SessionView) -> tuple[str, ...]:
    """That figures of several hosts were made those of one, as a sentence; none otherwise."""
    hosts = dict.fromkeys(shard.host for shard in view.shards)
    if len(hosts) < 2 or view.hosts_compared is None:
        return ()
    reference = view.hosts_compared.reference
    others = ", ".join(sorted(hosts.keys() - {reference}))
    return (f"figures hold on {reference}: those of {others} are by the factor between hosts",)


def _host(cores: int, cpu_model: str) -> str:
    return f"{cores} cores, {cpu_model or 'CPU unknown'}"
