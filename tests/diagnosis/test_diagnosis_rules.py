"""Each rule names its cause from the evidence for it, and is silent without."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from evidence_making import (
    CHAIN,
    QUIET,
    RATE,
    REQUESTS,
    SECONDS,
    alone,
    chained,
    known,
    measurement,
    usage,
)

from workbench.diagnosis.base import Case, Match, Rule
from workbench.diagnosis.explaining import Known, answer_of, departing, diagnose, sentence
from workbench.diagnosis.readings import Reading, read
from workbench.diagnosis.rules import RULES
from workbench.diagnosis.rules_tcp import DELAYED_ACKNOWLEDGEMENT
from workbench.domain.diagnoses import Diagnosis
from workbench.domain.observations import NOT_COLLECTED, Observation
from workbench.domain.samples import Finding, Usage

SLOW = (0.0435, 0.044, 0.0445)


def said(seen: Reading, given: Known | None = None) -> list[str]:
    found = diagnose(given or known(seen), seen, RULES)
    assert not found.failed
    return [verdict.cause for verdict in found.verdicts]


def explained(seen: Reading) -> Diagnosis:
    return diagnose(known(seen), seen, RULES)


def test_a_chain_like_its_functions_has_nothing() -> None:
    seen = chained()
    found = explained(seen)
    assert found.verdicts == ()
    assert found.sentence == "Nothing stands out: no rule finds a cause"
    assert found.departure == pytest.approx(1.2, rel=0.01)


def test_delayed_acknowledgements_are_named_with_their_figures() -> None:
    seen = chained(SLOW, ha={"delayed_acks": REQUESTS})
    found = explained(seen)
    verdict = found.verdicts[0]
    assert (verdict.cause, verdict.component) == ("delayed acknowledgement", "ha")
    assert verdict.strength == pytest.approx(0.04 / 0.044, rel=0.01)
    assert found.sentence.startswith("Delayed acknowledgements of ha, 1.0 per request, for which")
    assert "tiny waits" in found.sentence
    assert "TCP_NODELAY" in verdict.remedy
    assert found.sentence.endswith("not CPU (usage at most 10%, waiting at most 0% of a request)")
    assert "on its own: 0.00 late acknowledgements per request" in verdict.evidence
    assert found.departure == pytest.approx(44, rel=0.02)
    assert (found.agree, found.samples) == (1, 1)


@pytest.mark.parametrize(
    ("answers_s", "acks"),
    [
        (SLOW, 0.4 * REQUESTS),
        ((0.0005,), REQUESTS),
        (tuple(0.02 + 0.001 * i for i in range(60)), REQUESTS),
    ],
    ids=["too few of them", "nobody waits for them", "no mode"],
)
def test_either_half_of_the_evidence_alone_is_not_enough(
    answers_s: tuple[float, ...], acks: float
) -> None:
    assert "delayed acknowledgement" not in said(chained(answers_s, ha={"delayed_acks": acks}))


def test_a_quota_is_told_from_a_neighbour() -> None:
    busy = Usage(2.0, 1.0)
    burner = Observation(0, "host", "burner_cores", 1.4, "container 0a1b2c (stress-ng)")
    waits = {"cpu_wait_s": 2.0}
    stopped = {"tiny": usage(0.25, 1.0, 0.9), "ha": usage(0.02, 0.04)}
    quota = chained((0.3,), tiny=waits, functions=stopped, host=busy, details=(burner,))
    assert said(quota)[0] == "quota throttling"
    assert "CPU wait by a neighbour" not in said(quota)
    pushed = chained((0.02,), tiny=waits, host=busy, details=(burner,))
    verdict = explained(pushed).verdicts[0]
    assert (verdict.cause, verdict.component) == ("CPU wait by a neighbour", "tiny")
    assert "container 0a1b2c (stress-ng) the most with 1.4" in verdict.sentence
    assert verdict.strength == pytest.approx(2.0 / REQUESTS / 0.02), "5 ms of 20"
    assert said(chained((0.02,), tiny=waits, details=(burner,))) == [], "of a host with idle cores"


def test_a_source_that_is_starved_blurs_no_mode_and_is_told_second() -> None:
    busy, burner = Usage(2.0, 1.0), Observation(0, "host", "burner_cores", 0.3, "rustc")
    starved = Observation(0, "source", "cpu_wait_s", 2.0)
    seen = chained(
        SLOW,
        ha={"delayed_acks": REQUESTS},
        host=busy,
        details=(burner, starved),
        late_s=tuple(0.002 * i for i in range(20)),
    )
    assert seen.lateness_s == pytest.approx(0.019, rel=0.05)
    assert said(seen) == ["delayed acknowledgement", "CPU wait by a neighbour"]


def test_connections_that_it_does_not_open_alone_are_churn() -> None:
    many = {"connections_opened": float(REQUESTS), "time_wait": 9000.0}
    assert said(chained((0.002,), ha=many)) == ["connection churn"]
    own = known(chained((0.002,), ha=many), ha=alone("ha", connections_opened=float(REQUESTS)))
    assert said(own.own[0], own) == [], "it does so alone, too"
    exhausted = {"connections_opened": float(REQUESTS), "time_wait": 50_000.0}
    own = known(chained((0.002,), ha=exhausted), ha=alone("ha", connections_opened=float(REQUESTS)))
    assert said(own.own[0], own) == ["connection churn"], "and runs out of ports"


def test_a_full_accept_queue_and_lost_segments() -> None:
    full = explained(chained((0.05,), ha={"listen_overflows": 20.0}))
    assert [(v.cause, v.component) for v in full.verdicts] == [("listen overflow", "ha")]
    some = (0.0005,) * 9 + (0.205,)
    lost = {"tcp_timeouts": 0.1 * REQUESTS, "retransmitted": 0.1 * REQUESTS}
    assert said(chained(some, tiny=lost)) == ["retransmission stall"]
    assert said(chained(some)) == []


def test_a_quota_that_reading_pages_again_uses_up_comes_after_the_lack_of_memory() -> None:
    """Seen on the bench: squid at 14 MiB is throttled in all its periods."""
    functions = {"tiny": usage(0.5, 1.0, throttled=1.0), "ha": usage(0.02, 0.04)}
    found = explained(chained(functions=functions, tiny={"major_faults": 1500.0 * SECONDS}))
    assert [verdict.cause for verdict in found.verdicts[:2]] == [
        "memory reclaim or OOM",
        "quota throttling",
    ]
    assert found.verdicts[1].evidence[-1].endswith("1500 times a second")


def test_memory_at_its_limit_and_processes_that_were_ended() -> None:
    assert said(chained((0.01,), ha={"limit_hits": 900.0, "major_faults": 400.0})) == [
        "memory reclaim or OOM"
    ]
    killed = explained(chained((0.01,), ha={"oom_kills": 1.0}))
    assert killed.verdicts[0].strength == 1.0
    assert "ended 1 processes of ha" in killed.sentence


def test_a_disk_whose_rate_is_used_up() -> None:
    resources = {"tiny.vcpu": 0.5, "ha.vcpu": 0.5, "ha.disk_mbps": 2.0}
    for written_mbps, causes in ((1.9, ["disk rate used up"]), (1.2, [])):
        seen = chained((0.01,), ha={"disk_bytes": 1e6 * written_mbps * SECONDS})
        point = replace(
            seen.sample.point,
            configuration=replace(seen.sample.point.configuration, resources=resources),
        )
        seen = replace(seen, sample=replace(seen.sample, point=point))
        assert [c for c in said(seen) if c == "disk rate used up"] == causes
    without = chained((0.01,), ha={"disk_bytes": 9e6 * SECONDS})
    assert "disk rate used up" not in said(without)


def test_a_source_that_sets_the_pace_is_not_put_down_to_the_chain() -> None:
    finding = Finding("source_saturated", 0.93, 0.8, "thread 2 of oha was busy 93 % of the time")
    found = explained(chained((0.01,), findings=(finding,)))
    assert [(v.cause, v.component) for v in found.verdicts] == [
        ("source or sink limited", "source")
    ]
    assert "thread 2 of oha" in found.sentence


def test_cpu_that_nobody_is_charged_for() -> None:
    from workbench.measuring.usage import OWN

    functions = {"tiny": usage(0.05, 0.1), "ha": usage(0.02, 0.04), OWN: usage(0.05, 0.03)}
    counts = chained((0.01,), functions=functions, host=Usage(1.5, 0.75))
    given = Known(CHAIN, [counts], {}, {})
    assert said(counts, given) == ["softirq not charged"]


def test_one_thread_that_fills_a_core() -> None:
    threads = tuple(
        Observation(0, "ha", "thread_cpu_s", cpu, f"thread {n}")
        for n, cpu in enumerate((0.96 * SECONDS, 0.05))
    )
    functions = {"tiny": usage(0.05, 0.1), "ha": usage(1.0, 0.5)}
    seen = chained((0.01,), functions=functions, details=threads, host=Usage(1.3, 0.4))
    assert said(seen) == ["one hot thread"]
    full = {"tiny": usage(0.05, 0.1), "ha": usage(0.48, 0.96)}
    assert said(chained((0.01,), functions=full)) == ["CPU used up"]


def test_more_vcpu_that_brings_nothing_follows_from_what_does() -> None:
    slow = chained(SLOW, ha={"delayed_acks": REQUESTS})
    larger = chained(SLOW, ha={"delayed_acks": REQUESTS}, vcpu=1.0)
    assert said(slow, known(slow, larger)) == [
        "delayed acknowledgement",
        "more vCPU brings nothing",
    ]
    assert diagnose(known(slow, larger), slow, RULES).agree == 2


def at_rate(
    function: str, rate: float, answer_s: float, *, label: str = "", vcpu: float = 0.5
) -> Reading:
    """A function by itself at another rate or allocation."""
    seen = {function: QUIET}
    given = {function: usage(0.04, 0.08)}
    one = read(measurement(function, given, (answer_s,), seen, rate=rate, vcpu=vcpu))
    return replace(one, sample=replace(one.sample, labels=(label,) if label else ()))


def test_a_chain_is_held_against_functions_that_had_no_more_to_bear_alone() -> None:
    seen = chained((0.005,))

    def beside(tiny: Reading) -> Diagnosis:
        return diagnose(known(seen, tiny=tiny), seen, ())

    assert beside(at_rate("tiny", 400.0, 0.001)).departure == pytest.approx(5 / 1.5, rel=0.01)
    steep, far = at_rate("tiny", 140.0, 0.126), at_rate("tiny", 400.0, 0.126)
    overloaded = at_rate("tiny", RATE, 0.002, label="overloaded")
    smaller = at_rate("tiny", RATE, 0.002, vcpu=0.25)
    for other in (steep, far, overloaded, smaller):
        found = beside(other)
        assert (found.alone_ms, found.departure) == (None, None)
        assert "no stand-alone sample tells how long it should take" in found.sentence


def test_a_simulated_lab_quotes_no_kernel() -> None:
    functions = {"tiny": usage(0.5, 1.0, 0.6), "ha": usage(0.02, 0.04)}
    seen = chained(functions=functions)
    bare = replace(seen, components={})
    told = [" ".join(explained(one).verdicts[0].evidence) for one in (seen, bare)]
    assert ["kernel" in one for one in told] == [True, False]


# ---------------------------------------------------------------------- when things are wrong


def test_nobody_can_tell_without_evidence_and_that_is_said() -> None:
    old = chained(SLOW)
    old = Reading(old.sample, old.seconds, old.requests, old.counts, 0.0, {})
    found = explained(old)
    assert found.verdicts == ()
    assert found.sentence.startswith("Cannot tell: it takes 44 times as long as its functions")
    assert NOT_COLLECTED in found.sentence
    assert "answers pile up at 40-45 ms" in found.sentence
    assert found.missing["delayed_acks"] == NOT_COLLECTED


def test_a_cause_that_explains_too_little_is_named_by_who_cannot_tell() -> None:
    seen = chained(SLOW, ha={"delayed_acks": REQUESTS})
    answer = answer_of(known(seen), seen, RULES)
    weak = replace(answer.verdicts[0], strength=0.25)
    said = sentence(answer.case, (weak,), {}, answer.alone_s, implied=False)
    assert said.startswith("Cannot tell: ")
    named = f"{weak.cause} at {weak.component}"
    assert f"{named}, the strongest cause, explains too little (strength 25%)" in said
    said = sentence(answer.case, (weak,), {}, answer.alone_s, implied=True)
    assert f"and {named} is no cause by itself" in said
    assert "no rule finds the cause" in sentence(answer.case, (), {}, answer.alone_s, implied=True)


def test_a_counter_that_a_host_lacks_takes_its_rules_away_and_no_others() -> None:
    lacks = dict.fromkeys(("delayed_acks",))
    seen = chained(SLOW, tiny=lacks, ha=lacks)
    found = explained(seen)
    assert found.missing == {"delayed_acks": "no such counter"}
    assert "what would tell and is missing: acknowledged late" in found.sentence
    assert seen.per_request("ha", "delayed_acks") is None, "missing is not zero"
    row = next(r for r in found.rows if r.component == "ha" and r.what == "late acknowledgements")
    assert (row.alone, row.chained, row.note) == (0.0, None, "no such counter")


def _raises(case: Case) -> Match | None:
    raise KeyError(case.order[0])


def _boasts(_: Case) -> Match | None:
    return Match("ha", math.nan, "it is the moon", ())


@pytest.mark.parametrize(
    ("find", "why"),
    [(_raises, "KeyError: 'tiny'"), (_boasts, "ValueError: a strength of nan")],
)
def test_a_rule_of_a_plugin_that_fails_is_named_and_the_rest_stands(find: object, why: str) -> None:
    broken = Rule("the moon", (), "-", "-", "-", "-", find)  # type: ignore[arg-type]
    seen = chained(SLOW, ha={"delayed_acks": REQUESTS})
    found = diagnose(known(seen), seen, (broken, DELAYED_ACKNOWLEDGEMENT))
    assert found.failed["the moon"].startswith(why)
    assert [v.cause for v in found.verdicts] == ["delayed acknowledgement"]


def test_the_sample_to_explain_is_the_one_that_departs_most() -> None:
    usual, slow = chained(), chained(SLOW, repetition=1)
    both = known(usual, slow)
    assert departing(both, slow) > departing(both, usual)


def test_what_a_function_does_not_say_of_itself_is_not_made_up() -> None:
    seen = chained()
    assert seen.amount("ha", "pressure_cpu_s") is None
    assert seen.why_absent("ha", "pressure_cpu_s") == "not collected"
    assert seen.per_second("ha", "rx_packets") == QUIET["rx_packets"] / SECONDS


def test_every_rule_says_all_that_a_verdict_needs() -> None:
    assert len({rule.cause for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert all((rule.threshold, rule.remedy, rule.rival, rule.tells_apart))
