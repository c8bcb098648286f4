"""The harness itself: what it keeps, and what it computes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from bench_truth.families import BY_NAME
from bench_truth.playing import play
from bench_truth.scoring import agree, binomial
from bench_truth.stored import Seed, Store
from bench_truth.truths import Known, truths_of


def test_kept_truths_are_those_of_the_simulation_as_it_is() -> None:
    """A tenth of the interval widths: a simulation that changed more needs its truths anew."""
    family = BY_NAME["default"]
    kept = Known().of(family, 1)
    for configuration, by_rule in truths_of(family, 1).items():
        for rule, true in by_rule.items():
            there = kept[configuration][rule]
            assert there.state == true.state, rule
            if true.wl is not None:
                assert there.wl == pytest.approx(true.wl, rel=0.02), rule


def test_a_store_that_was_cut_short_goes_on(tmp_path: Path) -> None:
    family = BY_NAME["below-range"]
    campaign = family.campaign()
    (plan,) = campaign.targets
    played = Seed(1, *asyncio.run(play(campaign, plan, 1, family.lab_options(1))))
    store = Store(tmp_path)
    for seed in (1, 2):
        store.add("m", "f", msgspec.json.encode(Seed(seed, played.samples, played.lab_s)))
    (path,) = tmp_path.rglob("*.gz")
    path.write_bytes(path.read_bytes()[:-7])
    assert [one.seed for one in store.seeds("m", "f")] == [1]
    store.add("m", "f", msgspec.json.encode(Seed(3, played.samples, played.lab_s)))
    stored = list(store.seeds("m", "f"))
    assert [one.seed for one in stored] == [1, 3]
    assert stored[0].samples == played.samples


def test_binomial_intervals() -> None:
    # Clopper & Pearson 1934: 0 of n leaves 1 - (alpha/2)^(1/n); table of 95 of 100 at 99 %.
    assert binomial(0, 20)[1] == pytest.approx(1 - 0.005 ** (1 / 20))
    assert binomial(95, 100) == pytest.approx((0.8654, 0.9893), abs=2e-3)
    assert agree(19, 20, 950, 1000)
    assert not agree(10, 20, 950, 1000)
