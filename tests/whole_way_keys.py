"""The whole way by keys alone, in the parts of a day's work: what is pressed, what is seen then."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from terminal import Terminal

ENTER, ESCAPE, TAB, DOWN, CLEAR = "\r", "\x1b", "\t", "\x1b[B", "\x15"
RUN, ASK = "\x1b[15~", "\x12"
"""F5 and ctrl-r."""
SESSION = "untitled-1"
SLA = "p95<=200ms @ rate=300/s, filesize=10kB"
PLACE_OF_KUSTOMIZE = 5
"""Among the formats, by their names."""


def build(screen: Terminal) -> None:
    """tinyproxy→haproxy, and both functions alone."""
    screen.press("2")
    screen.until("No draft is open")
    screen.press("n")
    screen.until("Start a draft from")
    screen.press(ENTER)
    screen.until("no target yet")
    for key, typed, shown in (
        ("a", "tiny", "1 target"),
        ("a", "hapr", "series: [tinyproxy, haproxy]"),
        ("A", "hapr", "2 targets"),
        ("A", "tiny", "3 targets"),
    ):
        screen.press(key)
        screen.until("part of a name")
        screen.press(typed)
        screen.until(typed)
        screen.press(ENTER)
        screen.until(shown, lambda text: "part of a name" not in text)
    screen.until("can be run")


def choose(screen: Terminal) -> None:
    """25 and 50 % of every function, an SLA, four samples each, the simulated lab."""
    screen.press("3")
    screen.until("Cost", "3 configurations")
    screen.press(TAB)
    screen.until("every target")
    screen.press(ENTER)
    step(screen, "target", DOWN)
    step(screen, "tinyproxy", CLEAR, "25%, 50%", TAB)
    step(screen, "haproxy", CLEAR, "25%, 50%", *[TAB] * 7)
    step(screen, "SLA", SLA, *[TAB] * 2)
    step(screen, "samples", CLEAR, "4", *[TAB] * 3)
    step(screen, "lab", "s", ENTER)
    screen.until("‹ sim ›")
    screen.press(ESCAPE)
    screen.until("≤ 32 samples", "can be run")
    screen.press(RUN)
    screen.until("on the lab sim?")
    screen.press("y")
    screen.until("RUNNING", "●")


def step(screen: Terminal, label: str, *keys: str) -> None:
    """Press keys once the line of that label is edited."""
    screen.until(lambda _: screen.edits(label))
    screen.press(*keys)


def await_breakpoints(screen: Terminal) -> None:
    """The run is over, and says up to which load the SLA holds."""
    screen.until("FINISHED", lambda text: re.search(r"sla [\d.]+k? \[", text) is not None)


def compare(screen: Terminal) -> None:
    """The profiles alone miss the delayed acknowledgements of this order."""
    screen.press("5")
    screen.until("tinyproxy-haproxy", "worse")


def canary(screen: Terminal, steps: int = 4) -> None:
    screen.press("7")
    screen.until("No canary yet", "New")
    screen.press("n")
    screen.until("Plan a canary", "of lab time")
    step(screen, "chain", *[DOWN] * 4)
    step(screen, "steps", CLEAR, str(steps))
    screen.until(lambda text: re.search(rf"steps +{steps} *│", text) is not None, "of lab time")
    screen.press(RUN)
    screen.until(f"with {steps} rising loads")
    screen.press("y")
    screen.until("1 kept")


def accept(screen: Terminal) -> None:
    """What the canary came to, which may have ended while nobody looked."""
    screen.until("Accept", "Reject")
    screen.press("Y")
    screen.until("Accept proposal")
    screen.press("held-out loads agree", ENTER)
    screen.until("in force model 1")


def recommend(screen: Terminal) -> None:
    screen.press("8")
    screen.until("No recommendation yet")
    screen.press("e")
    screen.until("Leave", SLA)
    screen.press(ASK)
    screen.until("r1:", "Export")
    screen.press("x")
    screen.until("Export r1")
    screen.press(*["j"] * PLACE_OF_KUSTOMIZE)
    screen.until("a Kustomize patch", "caution: this rests on a simulation")
    screen.press(" ")
    screen.until("kustomize.config.k8s.io", "kind: Component")
    screen.press(ENTER)
    screen.until("Wrote")


def close(screen: Terminal) -> None:
    screen.press("q")
    assert screen.ended() == 0


def find_again(screen: Terminal) -> None:
    """What was decided is there, and the session plays again from its start to the same end."""
    screen.until(SESSION, "finished")
    screen.press(ENTER)
    screen.until("FINISHED", "●")
    screen.press("7")
    screen.until("in force model 1")
    screen.press("8")
    screen.until("r1:")
    screen.press(ESCAPE)
    screen.until("Open", "Replay")
    screen.press("R")
    screen.until("REPLAY")
    for _ in range(6):
        screen.press("+")
    screen.until("REPLAY ended", "FINISHED")


def written(folder: Path) -> list[dict[str, Any]]:
    """The Kubernetes resources that were exported: the kustomization, and a patch a function."""
    return [yaml.safe_load(path.read_text("utf-8")) for path in sorted(folder.glob("*.yaml"))]
