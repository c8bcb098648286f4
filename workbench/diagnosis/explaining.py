"""From the readings of a session to the diagnosis of one operating point."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from workbench.diagnosis.base import ALIKE, Case, Match, Rule
from workbench.diagnosis.figures import influential, rows
from workbench.diagnosis.readings import NOTHING, Reading
from workbench.diagnosis.rule_phrases import wait_share
from workbench.diagnosis.rules_tcp import has_mode
from workbench.diagnosis.trial_record import TRIALS
from workbench.domain.diagnoses import Bound, BoundBy, Diagnosis, Verdict
from workbench.domain.observations import NOT_COLLECTED, OBSERVABLES
from workbench.domain.topology import Target
from workbench.measuring.remarks import PLATEAU, THROTTLED_LABEL
from workbench.measuring.usage import HOST

SAME_RATE = 1.5
"""Factor up to which a stand-alone sample counts as one at the same carried rate."""
DEPARTS = 1.3
"""Factor above the functions' own times from which there is something to explain."""
LEAST = 0.1
"""Strength under which a rule's match is no verdict."""
EXPLAINS = 0.3
"""Strength from which the first verdict answers the question."""
WAITS = 0.2
"""Share of a request that waiting for CPU takes where it is what limits."""


@dataclass(frozen=True)
class Known:
    """All that a session knows of a target and of its functions on their own.

    Attributes
    ----------
    target : what is asked about.
    own : its samples.
    alone : by function, the samples of its stand-alone target; the function may have another name
        there (`names`).
    names : by function of the target, its name in its stand-alone target.
    """

    target: Target
    own: Sequence[Reading]
    alone: Mapping[str, Sequence[Reading]]
    names: Mapping[str, str]


def case_of(known: Known, seen: Reading) -> Case:
    """A sample beside the stand-alone samples at its carried rate and its siblings."""
    order = tuple(vnf.name for vnf in known.target.vnfs if vnf.placement == "inline")
    alone, reallocated = {}, []
    for function in order:
        same, usable = usable_alone(known, function, seen)
        found = _at_rate(same, seen)
        if not found and (found := _at_rate(usable, seen)):
            reallocated.append(function)
        if found:
            alone[function] = [renamed(one, known.names[function], function) for one in found]
    siblings = [
        (one.sample.point.configuration, one)
        for one in known.own
        if one.sample.point.configuration != seen.sample.point.configuration
        and one.sample.point.configuration.workload == seen.sample.point.configuration.workload
        and one.sample.valid
        and _near(one.sample.point.wl, seen.sample.point.wl, 1.1)
    ]
    passive = tuple(copied.name for copied, _ in known.target.copies)
    return Case(seen, order, alone, siblings, passive, reallocated)


def _at_rate(among: Sequence[Reading], seen: Reading) -> list[Reading]:
    """Those at about the same carried rate, else at the next higher one at which the function was
    not throttled: with less load it is no slower.
    """
    near = [one for one in among if _near(one.rate, seen.rate, SAME_RATE)]
    higher = [
        one
        for one in among
        if one.rate > seen.rate and one.sample.throttled_share <= THROTTLED_LABEL
    ]
    for chosen in (near, higher):
        if chosen:
            nearest = min(abs(math.log(one.rate / seen.rate)) for one in chosen)
            far = (abs(math.log(one.rate / seen.rate)) - nearest for one in chosen)
            return [one for one, more in zip(chosen, far, strict=True) if more <= ALIKE]
    return []


def usable_alone(known: Known, function: str, seen: Reading) -> tuple[list[Reading], list[Reading]]:
    """Valid stand-alone samples of a function and of the same workload: those at the allocation
    that it has here, and all."""
    name = known.names.get(function, "")
    wanted = seen.sample.point.configuration
    usable = [
        one
        for one in known.alone.get(function, ())
        if one.sample.valid
        and one.sample.id != seen.sample.id
        and one.sample.point.configuration.workload == wanted.workload
    ]
    there, here = f"{name}.vcpu", wanted.resources.get(f"{function}.vcpu")
    same = [one for one in usable if one.sample.point.configuration.resources.get(there) == here]
    return same, usable


def over_load(known: Known, seen: Reading) -> tuple[list[Reading], dict[str, list[Reading]]]:
    """Valid samples of the same configuration at all loads, and by function the stand-alone ones
    that it is held against, at all loads."""
    point = seen.sample.point
    chained = [
        one
        for one in known.own
        if one is seen
        or (one.sample.valid and one.sample.point.configuration == point.configuration)
    ]
    alone = {}
    for vnf in known.target.vnfs:
        same, usable = usable_alone(known, vnf.name, seen)
        found = same or usable
        alone[vnf.name] = [renamed(one, known.names[vnf.name], vnf.name) for one in found]
    return chained, alone


def _near(first: float, second: float, factor: float) -> bool:
    return first > 0 and second > 0 and abs(math.log(first / second)) <= math.log(factor)


def renamed(reading: Reading, name: str, function: str) -> Reading:
    if name == function:
        return reading
    sample = reading.sample
    usage = {function if n == name else n: u for n, u in sample.usage.items()}
    components = {function if n == name else n: e for n, e in reading.components.items()}
    seconds = {function if n == name else n: s for n, s in reading.by_second.items()}
    renamed_sample = replace(sample, usage=usage)
    return replace(reading, sample=renamed_sample, components=components, by_second=seconds)


@dataclass(frozen=True)
class SampleVerdicts:
    """What the rules say of one sample, without the figures beside it.

    Attributes
    ----------
    alone_s : as `Case.alone_s`; None for a single function.
    verdicts, missing, failed : as in `Diagnosis`.
    """

    case: Case
    sentence: str
    alone_s: float | None
    verdicts: tuple[Verdict, ...]
    missing: Mapping[str, str]
    failed: Mapping[str, str]


def answer_of(known: Known, seen: Reading, rules: Sequence[Rule]) -> SampleVerdicts:
    """What the rules say of one sample."""
    case = case_of(known, seen)
    verdicts, missing, failed = judge(case, rules)
    causes = {rule.cause for rule in rules if not rule.implied}
    implied = not any(verdict.cause in causes for verdict in verdicts)
    alone_s = case.alone_s if len(case.order) + len(case.passive) > 1 else None
    said = sentence(case, verdicts, missing, alone_s, implied=implied)
    return SampleVerdicts(case, said, alone_s, verdicts, missing, failed)


def diagnose(known: Known, seen: Reading, rules: Sequence[Rule]) -> Diagnosis:
    """What the rules say of one sample, in how many others the same, and what it rests on."""
    answer = answer_of(known, seen, rules)
    verdicts, agree = answer.verdicts, 0
    if verdicts:
        first = [rule for rule in rules if rule.cause == verdicts[0].cause]
        agree = sum(
            any(v.cause == verdicts[0].cause for v in judge(case_of(known, one), first)[0])
            for one in known.own
        )
    sample, alone_s, mean_s = seen.sample, answer.alone_s, seen.mean_s
    return Diagnosis(
        known.target.name,
        sample.point.configuration,
        sample.point.wl,
        sample.id,
        answer.sentence,
        None if mean_s is None else 1e3 * mean_s,
        None if alone_s is None else 1e3 * alone_s,
        verdicts,
        tuple(rows(answer.case, *over_load(known, seen))),
        tuple(bounds(seen, (*answer.case.order, *answer.case.passive))),
        agree,
        len(known.own),
        answer.missing,
        answer.failed,
        *influential(known.own, seen, answer.case.order),
    )


def judge(
    case: Case, rules: Sequence[Rule]
) -> tuple[tuple[Verdict, ...], dict[str, str], dict[str, str]]:
    """Verdicts, the strongest first; what was missing; which rules failed.

    A rule whose observations are missing everywhere is not asked: nothing rests on what is not
    there. One that raises or breaks its contract is named, and the others go on.
    """
    missing: dict[str, str] = {}
    failed: dict[str, str] = {}
    found: list[tuple[bool, float, Verdict]] = []
    for rule in rules:
        lacking = _lacking(case, rule)
        if lacking:
            missing |= lacking
            continue
        try:
            match = rule.find(case)
            if match is None:
                continue
            verdict = _verdict(rule, match)
        except Exception as error:  # noqa: BLE001 - a plugin may fail in any way
            failed[rule.cause] = f"{type(error).__name__}: {error}"
            continue
        if verdict.strength >= LEAST:
            found.append((rule.implied, -verdict.strength, verdict))
    found.sort(key=lambda one: one[:2])
    return tuple(verdict for *_, verdict in found), missing, failed


def _verdict(rule: Rule, match: Match) -> Verdict:
    if not 0.0 <= match.strength <= 1.0:
        raise ValueError(f"a strength of {match.strength:g} is not within 0 to 1")
    return Verdict(
        rule.cause,
        match.component,
        float(match.strength),
        match.sentence,
        tuple(match.evidence),
        rule.remedy,
        rule.rival,
        rule.tells_apart,
        TRIALS.get(rule.cause),
    )


def _lacking(case: Case, rule: Rule) -> dict[str, str]:
    """Observations that the rule needs and that no component has, with the reason."""
    everybody = [*case.order, "source", "sink", HOST]
    lacking = {}
    if rule.needs and not case.seen.collected:
        return dict.fromkeys(rule.needs, NOT_COLLECTED)
    for name in rule.needs:
        if any(case.seen.amount(one, name) is not None for one in everybody):
            continue
        if name == "burner_cores" and case.seen.amount(HOST, "others_cores") is not None:
            continue  # nobody else burned anything worth naming
        where = HOST if name in case.seen.components.get(HOST, NOTHING).absent else everybody[0]
        lacking[name] = case.seen.why_absent(where, name)
    return lacking


def sentence(
    case: Case,
    verdicts: Sequence[Verdict],
    missing: Mapping[str, str],
    alone_s: float | None,
    *,
    implied: bool,
) -> str:
    """The answer in one sentence; `implied`: no verdict is of a cause by itself."""
    seen, mean_s = case.seen, case.seen.mean_s
    if verdicts and not implied and verdicts[0].strength >= EXPLAINS:
        return _begun(verdicts[0].sentence)
    if mean_s is not None and alone_s is not None and mean_s > DEPARTS * alone_s:
        missing_all = "" if seen.collected else f" ({NOT_COLLECTED})"
        return (
            f"Cannot tell: it takes {mean_s / alone_s:.3g} times as long as its functions alone, "
            f"and {_unexplained(verdicts, implied=implied)}{missing_all}; "
            f"{_would_tell(case, missing)}"
        )
    if verdicts:
        return _begun(verdicts[0].sentence)
    if not seen.collected:
        return f"Cannot tell: {NOT_COLLECTED}; measure the point on a real lab"
    if len(case.order) > 1 and alone_s is None:
        return (
            "No cause stands out, and no stand-alone sample tells how long it should take at this "
            "carried rate and allocation: measure each function alone there"
        )
    return "Nothing stands out: no rule finds a cause"


def _unexplained(verdicts: Sequence[Verdict], *, implied: bool) -> str:
    """That no cause was found, or none that is enough."""
    if not verdicts:
        return "no rule finds the cause"
    first = verdicts[0]
    what = f"{first.cause} at {first.component}"
    if implied:
        return f"{what} is no cause by itself"
    return f"{what}, the strongest cause, explains too little (strength {first.strength:.0%})"


def _begun(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _would_tell(case: Case, missing: Mapping[str, str]) -> str:
    if not case.seen.collected:
        piles = has_mode(case.seen)
        return "measure the point on a real lab" + (
            ", and look at acknowledgements first: answers pile up at 40-45 ms" if piles else ""
        )
    if missing:
        names = ", ".join(OBSERVABLES[n].says if n in OBSERVABLES else n for n in missing)
        return f"what would tell and is missing: {names}"
    if not case.siblings:
        return "the same load at another allocation would tell whether CPU has a part in it"
    return "the functions in another order would tell whether it is their meeting"


def bounds(seen: Reading, order: Sequence[str]) -> Iterator[Bound]:
    """Function by function, what its time goes to and what limits it."""
    mean_s = seen.mean_s
    for name in order:
        used = seen.usage(name)
        if used is None or not mean_s or not seen.rate:
            continue
        ran = min(1.0, used.cpu_cores / seen.rate / mean_s)
        waited = wait_share(seen, name)
        by: BoundBy
        if used.throttled_share > THROTTLED_LABEL:
            by, share = "quota", used.throttled_share
        elif used.cpu_share >= PLATEAU:
            by, share = "cpu", used.cpu_share
        elif waited is not None and waited > max(WAITS, ran):
            by, share = "cpu wait", waited
        elif (seen.per_second(name, "limit_hits") or 0.0) >= 5.0:
            by, share = "memory", 1.0 - ran
        elif (pressed := seen.per_second(name, "pressure_io_s")) is not None and pressed > WAITS:
            by, share = "disk", pressed
        else:
            by, share = "peer or network", max(0.0, 1.0 - ran - (waited or 0.0))
        yield Bound(name, by, share, ran, waited, used.throttled_share)


def departing(known: Known, seen: Reading) -> tuple[bool, bool, bool, float]:
    """By which a sample is more worth explaining than another: the larger, the more.

    How many times as long it takes as its functions alone; without stand-alone samples, how long.
    In overload times grow for as long as one watches: such samples only where there are no others.
    """
    alone_s, mean_s = case_of(known, seen).alone_s, seen.mean_s or 0.0
    steady = "overloaded" not in seen.sample.labels
    return seen.sample.valid, steady, alone_s is not None, mean_s / (alone_s or 1.0)
