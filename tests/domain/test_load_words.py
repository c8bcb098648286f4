"""Loads and ranges of loads, as people say them."""

from __future__ import annotations

import pytest

from workbench.domain.load_words import load_words, profiled_words


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
