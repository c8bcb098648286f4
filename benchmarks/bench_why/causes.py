"""What is injected on the Docker lab, at up to three strengths, and which verdicts would be right.

`tuned`: thresholds of rules were looked at while this cause was injected; the others are held out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from workbench.domain.topology import VnfTemplate

HEALTHY = ""
"""The right verdict where nothing was injected: none of any strength."""
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Cause:
    """Something done to a chain.

    Attributes
    ----------
    amount : how much of it, as it is listed; empty where there is one strength.
    right : causes that verdicts should name; empty where nothing is injected.
    chain : functions from the source's side.
    wl, filesize_bytes : requests per second, and what each asks for.
    resources : as a configuration has them, `haproxy.vcpu`; a function has 0.5 vCPU else.
    niceness : of the processes that spin, one on each core, while it is measured; None: none spin.
    text : by template, what is replaced in its files by what.
    build : by template, the folder beside this file that its image is built of instead.
    inside : by function, commands that are run in its network namespace before the load.
    drives : samples of one deployment, a trial each.
    """

    name: str
    right: tuple[str, ...]
    chain: tuple[str, ...]
    wl: float
    amount: str = ""
    tuned: bool = False
    filesize_bytes: float = 10_000.0
    resources: dict[str, float] = field(default_factory=dict)
    niceness: int | None = None
    text: dict[str, tuple[str, str]] = field(default_factory=dict)
    build: dict[str, str] = field(default_factory=dict)
    inside: dict[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    drives: int = 1

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


HAPROXY = ("haproxy",)
BOTH = ("haproxy", "tinyproxy")
SWAPPED = BOTH[::-1]
LARGE = ("haproxy", "nginx")
"""Functions that write large pieces, as tinyproxy does not."""
NODELAY = {"tinyproxy": "tinyproxy_nodelay"}
ACK, QUOTA, STALL = "delayed acknowledgement", "quota throttling", "retransmission stall"
NEIGHBOUR, OVERFLOW = "CPU wait by a neighbour", "listen overflow"


def _losing(per_mille: int) -> tuple[tuple[str, ...], ...]:
    """Commands by which a namespace loses packets that come in, drawn at random."""
    hook = "{ type filter hook input priority 0 ; }"
    return (
        ("nft", "add", "table", "inet", "injected"),
        ("nft", "add", "chain", "inet", "injected", "arriving", hook),
        (
            *("nft", "add", "rule", "inet", "injected", "arriving"),
            *("numgen", "random", "mod", "1000", "<", str(per_mille), "drop"),
        ),
    )


OFFLOADS_OFF = (("ethtool", "-K", "eth0", "gro", "off", "gso", "off", "tso", "off"),)

CAUSES = (
    Cause("healthy, one function", (), HAPROXY, 100.0, tuned=True, drives=8),
    Cause("healthy, a chain", (), BOTH, 60.0, tuned=True, drives=8),
    Cause("healthy, tinyproxy", (), ("tinyproxy",), 40.0, drives=8),
    Cause("healthy, nginx before haproxy", (), LARGE[::-1], 150.0, drives=8),
    Cause("order, with TCP_NODELAY set", (), SWAPPED, 60.0, build=NODELAY),
    Cause("order: small writes first", (ACK,), SWAPPED, 60.0, tuned=True),
    Cause("order, at other loads", (ACK,), SWAPPED, 150.0),
    *(
        Cause(
            "quota of tinyproxy",
            (QUOTA,),
            BOTH,
            120.0,
            f"{share:.0%} of a core",
            tuned=share == 0.04,
            resources={"tinyproxy.vcpu": share},
        )
        for share in (0.1, 0.08, 0.04)
    ),
    *(
        Cause(
            "quota of haproxy",
            (QUOTA,),
            HAPROXY,
            350.0,
            f"{share:.0%} of a core",
            resources={"haproxy.vcpu": share},
        )
        for share in (0.04, 0.03, 0.02)
    ),
    *(
        Cause(
            "a process spins on each core",
            (NEIGHBOUR,),
            BOTH,
            60.0,
            f"nice {n}",
            tuned=True,
            niceness=n,
        )
        for n in (-10, -15, -20)
    ),
    *(
        Cause(
            "haproxy takes one connection, and one waits",
            (OVERFLOW,),
            SWAPPED,
            wl,
            f"{wl:g}/s",
            build=NODELAY,
            tuned=True,
            resources={"tinyproxy.vcpu": 1.0},
            text={"haproxy": ("backlog 4096", "backlog 1\n          maxconn 1")},
        )
        for wl in (700.0, 800.0, 900.0)
    ),
    *(
        Cause(
            "packets to haproxy are lost",
            (STALL,),
            BOTH,
            60.0,
            f"{per_mille / 10:g} %",
            tuned=True,
            inside={"haproxy": _losing(per_mille)},
        )
        for per_mille in (30, 50, 100)
    ),
    *(
        Cause(
            "receive buffer of haproxy",
            ("small window",),
            LARGE,
            60.0,
            f"{size} B",
            tuned=True,
            filesize_bytes=100_000.0,
            text={
                "haproxy": ("nbthread $threads", f"nbthread $threads\n  tune.rcvbuf.server {size}")
            },
        )
        for size in (16_384, 4_096, 2_304)
    ),
    *(
        Cause(
            "offloads off at haproxy",
            ("offload off",),
            LARGE,
            60.0,
            f"{size / 1e3:g} kB",
            tuned=True,
            filesize_bytes=size,
            inside={"haproxy": OFFLOADS_OFF, "nginx": OFFLOADS_OFF},
        )
        for size in (200_000.0, 300_000.0, 400_000.0)
    ),
    *(
        Cause(
            "memory of squid",
            ("memory reclaim or OOM",),
            ("squid",),
            60.0,
            f"{mib:g} MiB",
            tuned=True,
            resources={"squid.memory_bytes": mib * 2**20},
        )
        for mib in (15.0, 14.0, 13.0)
    ),
    Cause(
        "order, and a quota of tinyproxy",
        (ACK, QUOTA),
        SWAPPED,
        120.0,
        "10% of a core",
        resources={"tinyproxy.vcpu": 0.1},
    ),
    Cause(
        "lost packets, and a quota of tinyproxy",
        (STALL, QUOTA),
        BOTH,
        120.0,
        "5 %, 10% of a core",
        resources={"tinyproxy.vcpu": 0.1},
        inside={"haproxy": _losing(50)},
    ),
)
