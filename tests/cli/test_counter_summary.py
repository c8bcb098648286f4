"""The sentence that stands first in what `counters` answers, computed of the same answer."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.cli.counter_summary import best_of, with_summary
from workbench.cli.counter_words import text_of


def model(name: str, median: float, within: float) -> dict[str, Any]:
    score = {"model": name, "rows": 40, "mape": median, "median": median, "within_5": within,
             "within_10": within, "coverage": 0.95, "width": 0.3}  # fmt: skip
    return {**score, "by_row": score}


def weight(name: str, importance: float | None, pearson: float) -> dict[str, Any]:
    return {"name": name, "pearson": pearson, "low": None, "high": None, "projected": 1.0,
            "importance": importance, "by_load": None, "by_others": None}  # fmt: skip


def answer(**more: Any) -> dict[str, Any]:
    found = {
        "layout": "session", "function": "haproxy", "kpi": "p95_ms", "rows": 40, "held_out": 40,
        "experiments": 8, "features": ["cpu_wait_s", "rx_packets"], "dropped": [], "notes": [],
        "models": [model("ours", 0.0804, 0.61), model("linear", 0.2, 0.3)],
        "weights": [weight("rx_packets", 0.02, 0.95), weight("cpu_wait_s", 0.351, 0.62)],
        "components": [], "explained": None, "points": [], "transfer": None,
    }  # fmt: skip
    return {**found, **more}


def sentence(**more: Any) -> str:
    return str(with_summary(answer(**more))["summary"]["sentence"])


def test_what_ours_came_to_and_what_explains_it_stand_in_the_words_of_why() -> None:
    told = with_summary(answer())
    assert told["summary"] == {
        "sentence": "p95 of haproxy: ours is within 5 % in 61 % of 40 held-out windows, median "
        "error 8.0 %; no other model errs by less; waiting for CPU, over all threads (cpu_wait_s) "
        "explains it best: shuffled, it adds 35.1 % of error (Pearson +0.62)",
        "best": "ours",
        "counter": "cpu_wait_s",
        "says": "waiting for CPU, over all threads",
    }
    assert text_of(told).startswith(told["summary"]["sentence"])


def test_a_better_model_than_ours_is_named() -> None:
    models = [model("ours", 0.08, 0.61), model("linear", 0.02, 0.9), model("MLP", 0.5, 0.1)]
    assert "the best is linear (90 %, median error 2.0 %)" in sentence(models=models)
    equal = [model("ours", 0.0804, 0.61), model("linear", 0.0801, 0.6)]
    assert best_of(equal) == "ours", "equal to 0.1 %"


def test_shap_is_asked_first_where_it_is_there() -> None:
    first = {"name": "cpu_cores", "says": "CPU that it used", "factor": 1.352, "rises": 0.9}
    explained = {"rows": 40, "counters": [first], "beside": []}
    assert (
        "CPU that it used (cpu_cores) explains it best: it moves ours by a factor of 1.35 on "
        "average"
    ) in sentence(explained=explained)


def test_counters_that_say_nothing_are_not_praised() -> None:
    told = with_summary(answer(weights=[weight("rx_packets", 0.004, 0.95)]))
    assert told["summary"]["counter"] is None
    assert "no counter explains it by itself" in told["summary"]["sentence"]


@pytest.mark.parametrize(
    ("outside", "error", "says"),
    [(4, 0.032, "not trained on it, have a median error of 3.2 % on 8 of 12 rows"),
     (12, None, "all 12 rows are outside of what was learned")],
)  # fmt: skip
def test_of_a_function_that_others_tell(outside: int, error: float | None, says: str) -> None:
    transfer = {"learned_from": ["nginx", "nat"], "rows": 12, "outside": outside,
                "median_error": error}  # fmt: skip
    told = sentence(models=[], weights=[], transfer=transfer)
    assert says in told
    assert "models of nginx and nat" in told


def test_of_a_chain_what_it_was_worth_is_told() -> None:
    score = {"samples": 12, "outside": 5, "overloaded": 0, "judged": 7, "coverage": 1.0,
             "median_error": 0.072, "apart_error": 0.077, "width": 14.0}  # fmt: skip
    chain = {"layout": "chain", "chain": "a-b", "kpi": "p95_ms", "points": [{"outside": True}]}
    told = with_summary({**chain, "score": score})["summary"]["sentence"]
    assert told == (
        "p95 of a-b: not trained on, median error 7.2 % on 7 of 12 samples, 100 % within their "
        "interval; 5 outside of what was learned; if what others take of its cores is not counted, "
        "the error is 7.7 %"
    )
    nobody = with_summary({**chain, "score": None})["summary"]["sentence"]
    assert "predicted at 1 operating point" in nobody
    assert "1 of them outside" in nobody
    none = {**score, "judged": 0, "coverage": None}
    assert (
        "none of its 12 samples can be judged"
        in (with_summary({**chain, "score": none})["summary"]["sentence"])
    )
