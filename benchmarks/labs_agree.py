"""Whether the namespace lab measures what the Docker lab does: `python benchmarks/labs_agree.py`.

A chain of the demo is measured twice on each lab, in turns. Printed are how many figures differ
visibly between a lab's own two sessions, and the factors that `workbench compare` states of one
lab over the other. Needs a Docker engine, root and a quiet host, for 7 minutes.
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


def compared(first: str, second: str) -> dict[str, Any]:
    """As `workbench compare --json` has it."""
    answer: dict[str, Any] = json.loads(command("compare", first, second, "--json"))
    return answer


def again(first: str, second: str) -> str:
    """Of two sessions on one lab, how many figures differ."""
    verdicts = [one["verdict"] for one in compared(first, second)["differences"]]
    comparable = [one for one in verdicts if one != "not_comparable"]
    differ = sum(one != "no_visible_difference" for one in comparable)
    return f"{differ} of {len(comparable)} figures differ visibly"


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
    for lab, pair in made.items():
        print(f"{lab} again: {again(*pair)}")
    found = [compared(*pair)["factors"] for pair in zip(*made.values(), strict=True)]
    for turn, factors in enumerate(found, 1):
        for one in factors:
            print(
                f"netns over docker, turn {turn}: {one['figure']} {one['value']:.3f} "
                f"({one['low']:.3f} to {one['high']:.3f})"
            )
    if given.results:
        given.results.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
