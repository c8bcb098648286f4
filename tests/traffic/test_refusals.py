"""Each generator refuses what it cannot measure, with a sentence (METHOD.md 3)."""

from dataclasses import replace

import pytest
from recorded_outputs import CLOSED, PLAIN, THINKING

from workbench.domain.parameters import LoadModel
from workbench.plugins import load
from workbench.traffic.base import Generator

OPEN = LoadModel("open")
POISSON = LoadModel("open", arrivals="poisson")


def generator(name: str) -> Generator:
    made: Generator = load("traffic", name)()
    return made


@pytest.mark.parametrize(
    ("name", "model", "kpi", "sentence"),
    [
        ("oha", POISSON, "p95_ms", "oha sends at a constant rate, not with poisson arrivals"),
        ("oha", LoadModel("open", unit="packets"), "loss_pct", "oha sends requests, not packets"),
        ("oha", THINKING, "p95_ms", "oha's clients do not think between requests"),
        ("hey", OPEN, "p95_ms", "which is not an open loop"),
        ("hey", THINKING, "p95_ms", "hey's clients do not think between requests"),
        ("h2load", OPEN, "p95_ms", "what waited for a busy client is not seen"),
        ("h2load", THINKING, "p95_ms", "h2load's clients do not think between requests"),
        ("wrk", OPEN, "throughput_rps", "which is not an open loop"),
        ("wrk", THINKING, "throughput_rps", "wrk's clients do not think between requests"),
        ("wrk", CLOSED, "p95_ms", "wrk measures throughput alone"),
        ("locust", OPEN, "p95_ms", "which is not an open loop"),
        ("locust", CLOSED, "p95_ms", "would measure its own Python"),
        ("steady", CLOSED, "p95_ms", "which is not a closed loop"),
        ("steady", POISSON, "p95_ms", "not with poisson arrivals"),
        ("steady", LoadModel("open", unit="packets"), "loss_pct", "sends requests, not packets"),
    ],
)
def test_loads_and_questions(name: str, model: LoadModel, kpi: str, sentence: str) -> None:
    assert sentence in str(generator(name).unable(model, (kpi,), 64))


def test_what_each_can_offer() -> None:
    fit = {
        "oha": OPEN,
        "steady": OPEN,
        "hey": CLOSED,
        "h2load": CLOSED,
        "wrk": CLOSED,
        "locust": THINKING,
    }
    for name, model in fit.items():
        assert generator(name).unable(model, ("throughput_rps",), 64) is None
        assert generator(name).unfit(PLAIN) is None


def test_locust_is_capped_where_its_own_cpu_would_spoil_the_sample() -> None:
    locust = generator("locust")
    assert locust.unable(THINKING, ("p95_ms",), 200) is None
    assert locust.unable(THINKING, ("p95_ms",), 201) == (
        "201 clients that think 0.1 s ask for up to 2010 requests/s, and above 2000 Locust's own "
        "CPU (200 µs each, on one thread) would spoil the response times"
    )


@pytest.mark.parametrize("name", ["oha", "steady", "hey", "h2load", "wrk", "locust"])
def test_redirections(name: str) -> None:
    assert "the path redirects" in str(generator(name).unfit(replace(PLAIN, redirects=True)))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("h2load", "does not connect again"), ("wrk", "a close as a read error")],
)
def test_paths_that_close(name: str, sentence: str) -> None:
    assert sentence in str(generator(name).unfit(replace(PLAIN, keep_alive=False)))
    for other in ("oha", "steady", "hey", "locust"):
        assert generator(other).unfit(replace(PLAIN, keep_alive=False)) is None
