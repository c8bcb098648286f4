"""Loads and ranges of loads, as people say them."""

from __future__ import annotations

import pytest

from workbench.descriptors.units import WORKLOADS
from workbench.domain.load_words import (
    load_words,
    outside_words,
    profiled_words,
    unsaid_words,
    value_words,
)


@pytest.mark.parametrize(
    ("name", "figure", "said"),
    [
        ("concurrent", "130", "130 clients"),
        ("concurrent", "1", "1 client"),
        ("rate", "300", "300 requests/s"),
        ("packet_rate", "1", "1 packets/s"),
        ("streams", "4", "4 streams"),
        ("players", "4", "players 4"),
    ],
)
def test_a_load_is_said_in_what_is_counted(name: str, figure: str, said: str) -> None:
    assert load_words(name, figure) == said


def test_who_was_profiled_at_what_is_named() -> None:
    loads = {"haproxy": (1.0, 400.0), "tinyproxy": (1.0, 100.0)}
    said = profiled_words("concurrent", loads)
    assert said == "haproxy at 1 to 400 clients, tinyproxy at 1 to 100 clients"
    assert profiled_words("rate", {}) == "of no function"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("filesize_bytes", 1e4, "10kB"),
        ("filesize_bytes", 2.5e6, "2.5MB"),
        ("packetsize_bytes", 64.0, "64B"),
        ("duty", 0.25, "25%"),
        ("period_s", 0.5, "0.5s"),
        ("quality_mbps", 2.0, "2Mbit/s"),
        ("flows", 1000.0, "1000"),
        ("competitor", "cpu:50", "cpu:50"),
        ("firewall.rules", 100.0, "100"),
    ],
)
def test_a_workload_value_reads_as_it_is_typed(key: str, value: float | str, said: str) -> None:
    assert value_words(key, value) == said
    name, _, dimension = key.partition("_")
    if dimension and name in WORKLOADS:
        assert WORKLOADS[name].read(said) == value


def test_a_value_that_nobody_profiled_is_told_with_whose_profile_says_what() -> None:
    sizes = {"haproxy": (1e3, 1e5), "tinyproxy": (1e5, 1e3), "nginx": (1e4,)}
    what, remedy = outside_words("filesize_bytes", 1e6, sizes)
    assert what == (
        "filesize=1MB lies outside everything that was profiled: haproxy and tinyproxy at 1kB to "
        "100kB; nginx at 10kB"
    )
    assert "put 1MB among the values of filesize in the campaign" in remedy
    alike = dict.fromkeys(("a", "b", "c"), (1e4,))
    assert outside_words("filesize_bytes", 1e6, alike)[0].endswith(": a, b and c at 10kB")
    what, _ = outside_words("competitor", "cpu:50", {"haproxy": ("cache", "none")})
    assert what.endswith("profiled: haproxy at cache, none")
    assert outside_words("flows", 4.0, {}) == (
        "flows was not set in any profile",
        "Leave flows out",
    )
    assert unsaid_words("duty", (0.1, 0.5)) == (
        "does not say duty, which was profiled at 10%, 50%",
        "Add it, as duty=10%",
    )
