"""Whether the namespace lab measures what the Docker lab does: `python benchmarks/labs_agree.py`.

The demo's chain is measured twice on each lab, in turns. Printed are the factors that `workbench
compare` states: of one lab's second session over its first, which is the labs' noise, and of one
lab over the other. Needs a Docker engine, root and a quiet host, for 10 minutes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

CAMPAIGN = Path(__file__).with_suffix(".yaml")
WORKBENCH = (sys.executable, "-m", "workbench")
LABS = ("docker", "netns")


def command(*words: str) -> str:
    """The output of a command. Raises `SystemExit` where it fails."""
    done = subprocess.run([*WORKBENCH, *words], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in {0, 1}:  # 1: a finding
        raise SystemExit(f"workbench {' '.join(words)}: exit {done.returncode}")
    return done.stdout


def factors(first: str, second: str) -> dict[str, dict[str, Any]]:
    """By figure: `value`, `low`, `high` of the second over the first."""
    compared = json.loads(command("compare", first, second, "--json"))
    return {factor["figure"]: factor for factor in compared["factors"]}


def sessions(name: str) -> dict[str, list[str]]:
    """Two of each lab, measured in turns; those that are there already are taken."""
    there = {row["name"] for row in json.loads(command("ls", "--json"))}
    made: dict[str, list[str]] = {lab: [] for lab in LABS}
    for turn in (1, 2):
        for lab in LABS:
            session = f"{name}-{lab}-{turn}"
            if session not in there:
                command("run", str(CAMPAIGN), "--lab", lab, "--headless", "--session", session)
            made[lab].append(session)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="agree", help="what the sessions' names begin with")
    parser.add_argument("--results", type=Path, help="JSON file that keeps the factors")
    given = parser.parse_args()
    made = sessions(given.name)
    docker, netns = made["docker"], made["netns"]
    pairs = {
        "docker again": (docker[0], docker[1]),
        "netns again": (netns[0], netns[1]),
        "netns over docker, first turn": (docker[0], netns[0]),
        "netns over docker, second turn": (docker[1], netns[1]),
    }
    found = {what: factors(*pair) for what, pair in pairs.items()}
    for what, by_figure in found.items():
        for figure, one in by_figure.items():
            print(f"{what:32}{figure:16}{one['value']:.3f} ({one['low']:.3f} to {one['high']:.3f})")
    if given.results:
        given.results.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
