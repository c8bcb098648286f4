"""The table of Yala's rows in counters-science.md: what the command said, and nothing of theirs."""

from __future__ import annotations

import json

import pytest
from doc_blocks import with_blocks
from flowmon_table import BLOCK, PAGE, RESULTS, SOUGHT, flowmon_table, kept_of


def test_the_page_has_the_figures_that_are_kept() -> None:
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    assert with_blocks(page, {BLOCK: flowmon_table(kept)}) == page
    assert kept_of(kept) == kept, "no row of theirs is kept"
    models = {one["model"]: one for one in kept["models"]}
    assert (kept["seeds"], kept["held_out"]) == (10, 72)
    assert models["ours"]["mape_high"] <= SOUGHT, "with every seed"
    assert [name for name, one in models.items() if not one["width"]] == ["the accelerator alone"]


def test_a_table_marks_the_model_that_errs_least() -> None:
    model = {
        "model": "ours", "learned_from": 100, "mape": 0.0334, "mape_low": 0.03, "mape_high": 0.04,
        "within_5": 0.69, "within_10": 0.97, "coverage": 0.95, "width": 0.21, "by_accelerator": 52,
    }  # fmt: skip
    other = {**model, "model": "linear", "mape": 3.86, "mape_low": 3.86, "mape_high": 3.86}
    table = flowmon_table({"held_out": 72, "seeds": 10, "models": [model, other]})
    assert (
        "| ours | 100 rows | **3.3 %** (3.0 %, 4.0 %) | 69 % | 97 % | 95 % | 10.0 % | 52 |" in table
    )
    assert "| linear | 100 rows | 386 % (386 %, 386 %) |" in table
    with pytest.raises(ValueError, match="is an answer over table"):
        kept_of({"layout": "table"})
