"""What is injected on the Docker lab, and which verdict would be right.

`tuned`: thresholds of rules were looked at while this cause was injected; the others are held out.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from workbench.domain.topology import VnfTemplate

HEALTHY = ""
"""The right verdict where nothing was injected: none of any strength."""


@dataclass(frozen=True)
class Cause:
    """One thing done to a chain.

    Attributes
    ----------
    right : the cause that a verdict should name; `HEALTHY` for none.
    chain : functions from the source's side.
    vcpu : by function; others have 0.5.
    wl : requests per second.
    neighbours : processes that spin while it is measured.
    text : by template, what is replaced in its files by what.
    build : by template, the folder beside this file that its image is built of instead.
    """

    name: str
    right: str
    chain: tuple[str, ...]
    wl: float
    tuned: bool = True
    vcpu: dict[str, float] = field(default_factory=dict)
    neighbours: int = 0
    text: dict[str, tuple[str, str]] = field(default_factory=dict)
    build: dict[str, str] = field(default_factory=dict)

    def changed(self, template: VnfTemplate) -> VnfTemplate:
        """A template as this cause has it."""
        if template.name in self.build:
            template = replace(template, build=str(HERE / self.build[template.name]))
        if template.name not in self.text:
            return template
        before, after = self.text[template.name]
        if not any(before in file.text for file in template.files):
            raise ValueError(f"{self.name}: {before!r} is not in the files of {template.name}")
        files = tuple(replace(f, text=f.text.replace(before, after)) for f in template.files)
        return replace(template, files=files)

    @contextmanager
    def injected(self) -> Iterator[None]:
        """What happens beside the lab while load is driven; ends with it on every way out."""
        spinning = [
            subprocess.Popen([sys.executable, "-c", "while True: pass"])
            for _ in range(self.neighbours)
        ]
        try:
            yield
        finally:
            for process in spinning:
                process.kill()
            for process in spinning:
                process.wait()


HERE = Path(__file__).parent
BOTH = ("haproxy", "tinyproxy")
CAUSES = (
    Cause("healthy, one function", HEALTHY, ("haproxy",), 100.0),
    Cause("healthy, a chain", HEALTHY, BOTH, 60.0),
    Cause("order: small writes first", "delayed acknowledgement", BOTH[::-1], 60.0),
    Cause("quota of tinyproxy 4 %", "quota throttling", BOTH, 120.0, vcpu={"tinyproxy": 0.04}),
    Cause(
        "a process spins on each core",
        "CPU wait by a neighbour",
        BOTH,
        60.0,
        neighbours=2 * (os.cpu_count() or 1),
    ),
    Cause("healthy, tinyproxy", HEALTHY, ("tinyproxy",), 40.0, tuned=False),
    Cause(
        "order, with TCP_NODELAY set",
        HEALTHY,
        BOTH[::-1],
        60.0,
        tuned=False,
        build={"tinyproxy": "tinyproxy_nodelay"},
    ),
    Cause("order, at other loads", "delayed acknowledgement", BOTH[::-1], 150.0, tuned=False),
    Cause(
        "quota of haproxy 2 %",
        "quota throttling",
        ("haproxy",),
        350.0,
        tuned=False,
        vcpu={"haproxy": 0.02},
    ),
    Cause(
        "backlog of 1 at the sink",
        "listen overflow",
        ("tinyproxy",),
        600.0,
        tuned=False,
        vcpu={"tinyproxy": 1.0},
        text={"sink": ("backlog=4096", "backlog=1")},
    ),
)
