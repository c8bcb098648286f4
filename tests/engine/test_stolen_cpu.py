"""What a hypervisor gives to others is told: by the run, once, and by `doctor`."""

from __future__ import annotations

import pytest

from workbench.engine.runs.doctor import _stolen_cpu
from workbench.engine.runs.stolen_cpu import LEAST_S, StolenCpu


class Host:
    """A clock, and CPU seconds that are stolen at a rate while a sample is taken."""

    def __init__(self, stolen_cores: float) -> None:
        self.at = self.stolen_s = 0.0
        self.stolen_cores = stolen_cores

    async def samples(self, watched: StolenCpu, count: int, each_s: float = 3.0) -> None:
        for _ in range(count):
            watched.begin()
            self.at += each_s
            self.stolen_s += each_s * self.stolen_cores
            await watched.taken()
            self.at += 100.0  # between samples nothing counts
            self.stolen_s += 100.0


def watching(host: Host) -> tuple[StolenCpu, list[str]]:
    noted: list[str] = []

    async def note(text: str) -> None:
        noted.append(text)

    return StolenCpu(note, lambda: host.stolen_s, lambda: host.at, cores=2), noted


async def test_a_host_that_is_stolen_from_is_told_once() -> None:
    host = Host(stolen_cores=0.25)
    watched, noted = watching(host)

    await host.samples(watched, int(LEAST_S // 3.0))
    assert noted == []  # too short to say
    await host.samples(watched, 20)

    assert len(noted) == 1
    assert "the hypervisor gave 12% of this host's cores to others" in noted[0]


async def test_a_little_is_not_told() -> None:
    host = Host(stolen_cores=0.08)  # 4 % of two cores
    watched, noted = watching(host)

    await host.samples(watched, 20)

    assert noted == []


@pytest.mark.parametrize(
    ("stolen_s", "busy_s", "state", "share"),
    [(12.0, 100.0, "warning", "12%"), (1.0, 100.0, "ok", "1%"), (0.0, 0.0, "ok", "0%")],
)
def test_doctor_says_what_was_stolen(
    stolen_s: float, busy_s: float, state: str, share: str
) -> None:
    check = _stolen_cpu(stolen_s, busy_s)

    assert (check.name, check.state) == ("stolen CPU", state)
    assert check.found.startswith(f"{share} of the CPU wanted")
