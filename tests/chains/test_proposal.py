"""A proposal says what it changes and what that is worth; decisions and versions are a fold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, reduce

import numpy as np
import pytest
from synthetic_chain import CHAIN, CLIENTS, KPI_MAX, SETTINGS, SyntheticChain, sample, upper_half

from workbench.chains.alignment import measured
from workbench.chains.proposal import (
    SET_ASIDE,
    Method,
    correction,
    direct,
    propose,
    refitted,
)
from workbench.domain import codec
from workbench.domain.errors import DataError, UsageError
from workbench.domain.retraining import (
    Decision,
    Models,
    Proposal,
    RetrainingRecord,
    Rollback,
    after,
)
from workbench.domain.samples import Sample
from workbench.models.forecast import Forecaster
from workbench.models.interpolation import LogInterpolation


def proposed(
    chain: SyntheticChain,
    samples: list[Sample],
    held_out: list[Sample] | None = None,
    method: Method | None = None,
    based_on: int = 0,
) -> Proposal:
    return propose(
        CHAIN, samples, method or correction(chain, chain), chain, kpi_max=KPI_MAX,
        primary=CLIENTS, held_out=held_out or (), based_on=based_on,
    )  # fmt: skip


@cache
def gained() -> tuple[SyntheticChain, tuple[Sample, ...], Proposal]:
    chain = SyntheticChain(0)
    samples = chain.lower_half(10, *SETTINGS)
    return chain, tuple(samples), proposed(chain, samples)


def test_a_proposal_says_what_it_changes_and_what_that_is_worth() -> None:
    _, samples, found = gained()
    assert found.gain
    assert found.held_out == "leave-one-load-out"
    assert found.before.samples == found.after.samples == 10
    assert found.after.log_error < 0.2 < found.before.log_error
    assert found.after.rmse < 0.5 * found.before.rmse
    assert re.match(r"Before it was .* off, now .* off \(median of 10 held-out", found.statement)
    assert found.model.method == "correction-two-terms"
    assert set(found.model.sample_ids) == {s.id for s in samples}
    assert {c.name for c in found.changes} == {"kappa", "delta"}
    highest = {c: max(s.point.wl for s in samples if s.point.configuration == c) for c in SETTINGS}
    assert {r.configuration: r.wl for r in found.reach} == highest


def test_given_held_out_samples_are_scored_instead() -> None:
    chain, samples, _ = gained()
    above = [chain.measure(c, wl) for c, wl in upper_half(SETTINGS[0])]
    found = proposed(chain, list(samples), held_out=above)
    assert found.held_out == "given"
    assert found.after.samples == len(above)
    assert found.after.log_error < 0.12


@pytest.mark.parametrize("terms", [True, False], ids=["terms", "offset"])
def test_a_prediction_within_the_noise_says_that_nothing_can_be_gained(terms: bool) -> None:
    for seed in range(3):
        chain = SyntheticChain(seed, knee=None)
        method = correction(chain, chain if terms else None)
        found = proposed(chain, chain.lower_half(8, *SETTINGS[:2]), method=method)
        assert not found.gain
        assert "already within the noise" in found.statement
        assert "nothing can be gained" in found.statement
        assert found.after.log_error < found.before.log_error + 0.03


GRID = [(c, float(wl)) for c in SETTINGS for wl in (1, 2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128)]


def random_canaries(chain: SyntheticChain, seed: int, stalled: float = 0.0) -> list[Sample]:
    """Ten at random of `GRID`; that share of them met a stall of 44 ms that the chain has not."""
    random = np.random.default_rng(100 + seed)
    chosen = [GRID[k] for k in random.choice(len(GRID), 10, replace=False)]
    return [
        sample(
            wl, chain.measure(c, wl).kpis["mean_ms"].value + 44.0 * (random.random() < stalled), c
        )
        for c, wl in chosen
    ]


def off(said: Forecaster, chain: SyntheticChain) -> float:
    """Median |log error| over the whole grid."""
    truth = np.log([chain.truth(c, wl) for c, wl in GRID])
    return float(np.median(np.abs(said.forecast(GRID).mean - truth)))


@pytest.mark.parametrize("seed", [7, 10])
def test_what_random_canaries_of_a_right_prediction_teach_is_set_aside(seed: int) -> None:
    """The evidence of all ten speaks for a correction; those that were left out speak against."""
    chain = SyntheticChain(seed, knee=None)
    samples = random_canaries(chain, seed, stalled=0.4)
    method = correction(chain, chain)
    seen = measured(CHAIN, samples, kpi="mean_ms", kpi_max=KPI_MAX, primary=CLIENTS)
    assert off(method.train(seen), chain) > 10.0 * off(chain, chain)
    assert method.learned(seen) is chain
    found = proposed(chain, samples, method=method)
    assert not found.gain
    assert found.statement.endswith(SET_ASIDE)
    assert found.after == found.before


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_what_random_canaries_teach_of_a_real_handover_is_kept(seed: int) -> None:
    chain = SyntheticChain(seed)
    samples = random_canaries(chain, seed)
    method = correction(chain, chain)
    seen = measured(CHAIN, samples, kpi="mean_ms", kpi_max=KPI_MAX, primary=CLIENTS)
    learned = method.learned(seen)
    assert learned is not chain
    assert off(learned, chain) < 0.2 * off(chain, chain)
    found = proposed(chain, samples, method=method)
    assert found.gain
    assert SET_ASIDE not in found.statement


def test_what_is_retrained_again_starts_from_the_accepted_terms() -> None:
    chain, samples, first = gained()
    accepted = refitted(first, samples, correction(chain, chain), kpi_max=KPI_MAX, primary=CLIENTS)
    more = [*samples, *(chain.measure(c, wl) for c in SETTINGS[:2] for wl in (50.0, 60.0))]
    found = propose(
        CHAIN, more, correction(chain, chain), accepted, kpi_max=KPI_MAX, primary=CLIENTS,
        based_on=1,
    )  # fmt: skip
    assert [c.before for c in found.changes] == [c.after for c in first.changes]
    assert found.based_on == 1
    assert found.id != first.id


def test_a_model_of_the_samples_alone_can_be_proposed_too() -> None:
    chain, samples, _ = gained()
    found = proposed(chain, list(samples), method=direct("interpolation", LogInterpolation))
    assert found.model.method == "interpolation"
    assert found.model.coefficients
    assert found.changes == ()


def test_a_stored_proposal_is_fitted_again_and_checked() -> None:
    chain, samples, found = gained()
    plain = codec.loads(codec.dumps(codec.to_plain(found)))
    stored = codec.from_plain(plain, Proposal)
    assert stored == found
    again = refitted(
        stored, samples[::-1], correction(chain, chain), kpi_max=KPI_MAX, primary=CLIENTS
    )
    assert again.kpi == "mean_ms"

    other = SyntheticChain(7)
    with pytest.raises(DataError, match="other coefficients"):
        refitted(stored, samples, correction(other, other), kpi_max=KPI_MAX, primary=CLIENTS)
    with pytest.raises(DataError, match="has lost 1 sample that it rests on"):
        refitted(stored, samples[1:], correction(chain, chain), kpi_max=KPI_MAX, primary=CLIENTS)
    with pytest.raises(DataError, match="was made by correction-two-terms"):
        refitted(stored, samples, correction(chain), kpi_max=KPI_MAX, primary=CLIENTS)


def test_the_same_samples_make_the_same_proposal_and_others_another() -> None:
    chain, samples, found = gained()
    assert proposed(chain, list(samples)) == found
    assert proposed(chain, list(samples[1:])).id != found.id


def test_too_little_to_hold_anything_out_is_named() -> None:
    chain = SyntheticChain(0)
    with pytest.raises(DataError, match="1 sample at 1 operating point"):
        proposed(chain, [chain.measure(SETTINGS[0], 8.0)])
    with pytest.raises(DataError, match="none can be held out"):
        proposed(chain, [chain.measure(SETTINGS[0], wl) for wl in (8.0, 16.0)])
    with pytest.raises(DataError, match="only bound it"):
        proposed(chain, [sample(8.0, 100.0, overloaded=True)])
    with pytest.raises(DataError, match="has no samples"):
        proposed(chain, [])


# ------------------------------------------------------------------------- versions


def named(name: str, kpi: str = "mean_ms") -> Proposal:
    return replace(gained()[2], id=name, kpi=kpi)


def yes(name: str) -> Decision:
    return Decision(name, accepted=True, by="ann", at=1.0)


def no(name: str) -> Decision:
    return Decision(name, accepted=False, by="bob", at=2.0, why="too few canaries")


def back(version: int) -> Rollback:
    return Rollback(CHAIN, "mean_ms", version, "ann", 3.0, "slower since")


def history() -> list[RetrainingRecord]:
    """Not at import: every worker that collects would train it."""
    return [
        named("a"), yes("a"), named("b"), no("b"), named("c"), yes("c"), back(1), named("d"),
    ]  # fmt: skip


def models_of(records: Iterable[RetrainingRecord]) -> Models:
    """The state that records lead to."""
    return reduce(after, records, {})


def test_accepted_rejected_and_rolled_back_models_replay_to_the_same_state() -> None:
    state = models_of(history())
    (models,) = state.values()
    assert models.current == 1
    assert models.model == named("a")
    assert [v.proposal.id for v in models.versions] == ["a", "c"]
    assert [v.decision.by for v in models.versions] == ["ann", "ann"]
    assert [d.why for d in models.rejected] == ["too few canaries"]
    assert [p.id for p in models.pending] == ["d"]
    stored = [
        codec.from_plain(codec.loads(codec.dumps(codec.to_plain(r))), type(r)) for r in history()
    ]
    assert models_of(stored) == state


def test_versions_are_never_used_again() -> None:
    models = models_of([*history(), yes("d")])[CHAIN, "mean_ms"]
    assert (models.current, models.model) == (3, named("d"))
    models = models_of([*history(), yes("d"), back(0)])[CHAIN, "mean_ms"]
    assert (models.current, models.model) == (0, None)
    models = models_of([*history(), yes("d"), back(0), back(2)])[CHAIN, "mean_ms"]
    assert models.model == named("c")


def test_chains_and_kpis_have_versions_of_their_own() -> None:
    state = models_of([named("a"), named("p", "p95_ms"), yes("p")])
    assert state[CHAIN, "mean_ms"].current == 0
    assert state[CHAIN, "p95_ms"].current == 1


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: yes("x"), "proposal x: does not exist"),
        (lambda: yes("a"), "proposal a: was decided already"),
        (lambda: no("b"), "proposal b: was decided already"),
        (lambda: named("a"), "proposal a: was decided already"),
        (lambda: back(7), "no version 7. Choose from: 0, 1, 2"),
        (lambda: back(1), "version 1 is in force"),
        (lambda: back(-1), "no version -1"),
    ],
)
def test_what_cannot_follow_is_refused(made: Callable[[], RetrainingRecord], said: str) -> None:
    state = models_of(history())
    with pytest.raises(UsageError) as error:
        after(state, made())
    assert said in str(error.value)
    assert models_of(history()) == state


def test_proposing_the_same_again_before_a_decision_changes_nothing() -> None:
    models = models_of([named("a"), named("a")])[CHAIN, "mean_ms"]
    assert [p.id for p in models.pending] == ["a"]
