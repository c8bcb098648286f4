"""`workbench counters profile/flowmon --json | python benchmarks/flowmon_table.py`: Yala's rows.

Keeps the figures of all models in `results/flowmon.json` (none of the rows, which are theirs) and
writes the table of counters-science.md from them.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from doc_blocks import with_blocks

RESULTS = Path(__file__).parent / "results" / "flowmon.json"
PAGE = Path(__file__).parents[1] / "docs" / "counters-science.md"
BLOCK = "counted: flowmon"
KEPT = ("layout", "kpi", "rows", "held_out", "seeds", "features", "models")
"""Of the command's answer; its points and weights are of single rows, or not in the table."""
SOUGHT = 0.04
"""Of the mean error (issue 23)."""


def kept_of(answer: dict[str, Any]) -> dict[str, Any]:
    """What is kept of the answer of `counters --json`. Raises `ValueError` of another layout."""
    if answer["layout"] != "co-located":
        raise ValueError(f"is an answer over {answer['layout']}, not over co-located rows")
    return {name: answer[name] for name in KEPT}


def flowmon_table(kept: dict[str, Any]) -> str:
    """Each model with its errors, least and largest over the seeds, and its interval."""
    lines = [
        f"| of {kept['held_out']} test rows, {kept['seeds']} seeds | learned from | MAPE, mean "
        "(least, most) | within 5 % | within 10 % | interval holds | half width | the accelerator "
        "decides |",
        "|---|---|---|---|---|---|---|---|",
    ]
    best = min(one["mape"] for one in kept["models"])
    for one in kept["models"]:
        mape = _share(one["mape"])
        if one["mape"] == best:
            mape = f"**{mape}**"
        interval = "it has none |"
        if one["width"] is not None:
            interval = f"{_whole(one['coverage'])} | {_share((1.0 + one['width']) ** 0.5 - 1.0)}"
        lines.append(
            f"| {one['model']} | {one['learned_from']} rows | {mape} ({_share(one['mape_low'])}, "
            f"{_share(one['mape_high'])}) | {_whole(one['within_5'])} | "
            f"{_whole(one['within_10'])} | {interval} | {one['by_accelerator']} |"
        )
    return "\n".join(lines)


def _whole(value: float) -> str:
    return f"{100.0 * value:.0f} %"


def _share(value: float) -> str:
    return f"{100.0 * value:.1f} %" if value < 1.0 else f"{100.0 * value:.0f} %"


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    try:
        found = kept_of(json.load(sys.stdin))
    except (ValueError, KeyError) as error:
        sys.exit(f"standard input is no answer of `counters --json` over such rows: {error}")
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    table = flowmon_table(found)
    page = with_blocks(PAGE.read_text(encoding="utf-8"), {BLOCK: table})
    PAGE.write_text(page, encoding="utf-8")
    print(table)
