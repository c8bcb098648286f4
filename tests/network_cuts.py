"""Cut the network of processes without a reset: what they send and what is sent to them is dropped.

Each process gets a control group of its own before it opens a socket, since the kernel notes the
group of a socket when it is made; rules of nftables drop what belongs to it (`socket cgroupv2`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
"""Where nft looks control groups up."""
NFT = shutil.which("nft") or "/usr/sbin/nft"  # not on everybody's PATH
LOOK_S = 0.1
LONGEST_S = 10.0


def control_groups() -> Path | None:
    """The mount of version 2, if there is one that this process may write."""
    for folder in (MOUNT, MOUNT / "unified"):
        if (folder / "cgroup.procs").exists() and os.access(folder, os.W_OK):
            return folder
    return None


def why_not() -> str:
    """What keeps a network from being cut here; empty if it can be."""
    if not os.access(NFT, os.X_OK):
        return "nft is missing: apt-get install nftables"
    if control_groups() is None:
        return "there are no control groups of version 2 that may be written"
    return ""


class NetworkCuts:
    """Every process that `processes` names gets a group of its own, as soon as it is there."""

    def __init__(self, processes: Callable[[], Iterable[int]]) -> None:
        root = control_groups()
        assert root is not None, why_not()
        self.processes = processes
        self.root = root
        self.prefix = f"workbench-cut-{os.getpid()}"
        self.grouped: set[int] = set()
        self.cut_off: set[int] = set()
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._group, daemon=True)

    def __enter__(self) -> NetworkCuts:
        self._watch.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._watch.join(LONGEST_S)
        for pid in set(self.cut_off):
            self.mend(pid)
        for group in self.root.glob(f"{self.prefix}-*"):
            for process in (group / "cgroup.procs").read_text().split():
                with suppress(OSError):
                    (self.root / "cgroup.procs").write_text(process)
            latest = time.monotonic() + LONGEST_S
            while group.exists() and time.monotonic() < latest:
                with suppress(OSError):  # busy until the kernel is done with who left it
                    group.rmdir()
                time.sleep(LOOK_S)

    def _group(self) -> None:
        while not self._ended.wait(LOOK_S):
            for pid in set(self.processes()) - self.grouped:
                group = self.root / f"{self.prefix}-{pid}"
                with suppress(OSError):  # it has ended
                    group.mkdir(exist_ok=True)
                    (group / "cgroup.procs").write_text(str(pid))
                    self.grouped.add(pid)

    def cut(self, pid: int) -> bool:
        """Drop all packets of that process; False where it was never grouped, or has ended."""
        group = self.root / f"{self.prefix}-{pid}"
        if pid not in self.grouped or not (group / "cgroup.procs").read_text().split():
            return False
        match = f'socket cgroupv2 level 1 "{group.relative_to(MOUNT)}" drop;'
        nft(
            f"table inet {self.prefix}-{pid} {{\n"
            f" chain incoming {{ type filter hook input priority 0; {match} }}\n"
            f" chain outgoing {{ type filter hook output priority 0; {match} }}\n}}\n"
        )
        self.cut_off.add(pid)
        return True

    def mend(self, pid: int) -> None:
        nft(f"delete table inet {self.prefix}-{pid}\n")
        self.cut_off.discard(pid)


def nft(rules: str) -> None:
    subprocess.run(
        [NFT, "-f", "-"], input=rules, text=True, check=True, timeout=LONGEST_S
    )  # fmt: skip
