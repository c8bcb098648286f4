"""What `counters` found in a sentence: what ours came to, the best model, what explains the KPI."""

from __future__ import annotations

from typing import Any

from workbench.cli.counter_explaining import says
from workbench.domain import kpis
from workbench.domain.counts import counted

LEAST_ADDED = 0.01
"""To the error, below which shuffling a counter says nothing."""
EQUAL_TO = 3
"""Decimals of the median error that are compared: 0.1 %."""


def with_summary(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer with `summary` in front: `sentence`, and by name what it speaks of.

    `best` is the model whose median error on what was held out is the least, ours where others err
    by as little; `counter` and `says` are null where nothing is told of counters, as of chains.
    """
    counter = None
    if answer["layout"] == "chain":
        best, words = None, _of_chain(answer)
    elif not answer["models"]:
        best, words = None, _of_others(answer)
    else:
        best = best_of(answer["models"])
        counter, told = _counter(answer)
        words = f"{_models(answer, best)}; {told}"
    summary = {
        "sentence": f"{_subject(answer)}: {words}",
        "best": best,
        "counter": counter,
        "says": None if counter is None else says(counter),
    }
    return {"summary": summary, **answer}


def best_of(models: list[dict[str, Any]]) -> str:
    """The model that errs least; the first of those that err by as little, which is ours."""
    return str(min(models, key=lambda one: round(one["median"], EQUAL_TO))["model"])


def _subject(answer: dict[str, Any]) -> str:
    of = answer.get("chain") or answer.get("function")
    return f"{kpis.of(answer['kpi']).short} of {of}" if of else str(answer["kpi"])


def _models(answer: dict[str, Any], best: str) -> str:
    ours, rows = answer["models"][0], "windows" if answer["layout"] == "session" else "rows"
    found = (
        f"ours is within 5 % in {_whole(ours['within_5'])} of {ours['rows']} held-out {rows}, "
        f"median error {_tenths(ours['median'])}"
    )
    if best == ours["model"]:
        return f"{found}; no other model errs by less"
    other = next(one for one in answer["models"] if one["model"] == best)
    return (
        f"{found}; the best is {best} ({_whole(other['within_5'])}, median error "
        f"{_tenths(other['median'])})"
    )


def _counter(answer: dict[str, Any]) -> tuple[str | None, str]:
    """The counter that explains the KPI best, and how that is known: what SHAP says of ours where
    that was asked for, else what shuffling adds to the error of boosted trees."""
    if answer["explained"] is not None and answer["explained"]["counters"]:
        first = answer["explained"]["counters"][0]
        moves = f"it moves ours by a factor of {first['factor']:.3g} on average"
        return first["name"], f"{_named(first['name'])} explains it best: {moves}"
    first = max(answer["weights"], key=lambda one: one["importance"] or 0.0)
    if (first["importance"] or 0.0) < LEAST_ADDED:
        return None, "no counter explains it by itself: shuffling any adds less than 1 % of error"
    return first["name"], (
        f"{_named(first['name'])} explains it best: shuffled, it adds "
        f"{_tenths(first['importance'])} of error (Pearson {first['pearson']:+.2f})"
    )


def _named(counter: str) -> str:
    """In the words of `why`, where it has some."""
    words = says(counter)
    return f"{words} ({counter})" if words else counter


def _of_others(answer: dict[str, Any]) -> str:
    """Of a function with too few experiments, by models that were not trained on it."""
    found = answer["transfer"]
    inside = found["rows"] - found["outside"]
    of = f"models of {' and '.join(found['learned_from'])}, not trained on it,"
    few = "too few experiments for models of its own"
    if not inside:
        return f"{few}; to {of} all {found['rows']} rows are outside of what was learned"
    error = _tenths(found["median_error"])
    return f"{few}; {of} have a median error of {error} on {inside} of {found['rows']} rows"


def _of_chain(answer: dict[str, Any]) -> str:
    score = answer["score"]
    if score is None:
        outside = sum(point["outside"] for point in answer["points"])
        return (
            f"predicted at {counted(len(answer['points']), 'operating point')}, {outside} of them "
            "outside of what was learned; nobody has measured it in this session"
        )
    counts = {
        "outside of what was learned": score["outside"],
        "where a function is overloaded": score["overloaded"],
    }
    others = [f"{count} {what}" for what, count in counts.items() if count]
    if score["coverage"] is None:
        return f"none of its {score['samples']} samples can be judged: {', '.join(others)}"
    rest = f"; {', '.join(others)}" if others else ""
    return (
        f"not trained on, median error {_tenths(score['median_error'])} on {score['judged']} of "
        f"{score['samples']} samples, {_whole(score['coverage'])} within their interval{rest}; if "
        "what others take of its cores is not counted, the error is "
        f"{_tenths(score['apart_error'])}"
    )


def _whole(share: float) -> str:
    return f"{100.0 * share:.0f} %"


def _tenths(share: float) -> str:
    return f"{100.0 * share:.1f} %"
