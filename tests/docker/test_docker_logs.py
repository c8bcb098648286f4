"""What containers write, read from a real engine: hostile, endless, gone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from docker_targets import OpenLab, configuration, container, docker, ignore, point, target

from workbench.domain.errors import LabError
from workbench.domain.logs import KEPT_LINES, LONGEST_LINE, ComponentLog
from workbench.domain.parameters import LoadModel
from workbench.domain.topology import VnfTemplate
from workbench.labs.docker import DockerLab

pytestmark = [pytest.mark.docker, pytest.mark.unhurried]

CLOSED = LoadModel("closed")
HAPROXY = target("haproxy")
QUARTER = configuration(haproxy=0.25)
SERVE = "exec haproxy -db -f /etc/haproxy/haproxy.cfg"


def that_first(known: Sequence[VnfTemplate], script: str) -> VnfTemplate:
    """haproxy, which runs a shell script before it serves."""
    haproxy = next(t for t in known if t.name == "haproxy")
    return replace(haproxy, command=("sh", "-c", f"{script}\n{SERVE}"))


async def written_by_haproxy(lab: DockerLab) -> ComponentLog | None:
    return next((log for log in await lab.written() if log.component == "haproxy"), None)


async def test_hostile_output_is_read_as_text_and_only_once(
    open_lab: OpenLab, known: tuple[VnfTemplate, ...], session: str
) -> None:
    script = (
        r"printf '\033]0;owned\007 \000 \377\n'; printf 'to stderr\n' >&2; "
        r"head -c 1048576 /dev/zero | tr '\0' x; printf '\nafter\n'"
    )
    lab = await open_lab(CLOSED, HAPROXY, changed=that_first(known, script))
    await lab.deploy(HAPROXY, QUARTER)
    log = await written_by_haproxy(lab)
    assert log is not None
    assert (log.dropped, log.uncounted) == (0, False)
    texts = [line.text for line in log.lines]
    assert "\x1b]0;owned\x07 \x00 \ufffd" in texts
    (long,) = [line for line in log.lines if line.cut]
    assert (long.text, long.cut) == ("x" * LONGEST_LINE, (1 << 20) - LONGEST_LINE)
    assert {line.stream for line in log.lines if line.text == "to stderr"} == {"stderr"}
    assert all(line.at for line in log.lines)

    assert await written_by_haproxy(lab) is None, "nothing new"
    name = container(session, "haproxy")
    await asyncio.to_thread(docker, "exec", name, "sh", "-c", "echo later > /proc/1/fd/1")
    later = await written_by_haproxy(lab)
    assert later is not None
    assert [line.text for line in later.lines] == ["later"]


async def test_a_function_that_never_stops_writing_is_bounded_in_session_and_on_disk(
    open_lab: OpenLab, known: tuple[VnfTemplate, ...], session: str
) -> None:
    lab = await open_lab(CLOSED, HAPROXY, changed=that_first(known, "yes chatter chatter &"))
    await lab.deploy(HAPROXY, QUARTER)
    await lab.drive(point(HAPROXY, QUARTER, 1), 3.0, ignore)
    log = await written_by_haproxy(lab)
    assert log is not None
    assert len(log.lines) == KEPT_LINES
    assert log.uncounted
    path = Path(docker("inspect", "--format", "{{.LogPath}}", container(session, "haproxy")))
    if path.parent.is_dir():  # else the engine's files are not ours to see
        kept = sum(file.stat().st_size for file in path.parent.glob("*-json.log*"))
        assert 0 < kept < 12 << 20


async def test_a_function_that_dies_is_quoted_and_its_log_outlives_it(
    open_lab: OpenLab, known: tuple[VnfTemplate, ...], session: str
) -> None:
    lab = await open_lab(CLOSED, HAPROXY, changed=that_first(known, "echo I am up"))
    await lab.deploy(HAPROXY, QUARTER)
    name = container(session, "haproxy")
    last = r"printf '\033[31mlast words\n' > /proc/1/fd/1"
    await asyncio.to_thread(docker, "exec", name, "sh", "-c", last)
    await asyncio.to_thread(docker, "kill", name)
    with pytest.raises(LabError, match=r'the last line of its log: "·\[31mlast words"'):
        await lab.drive(point(HAPROXY, QUARTER, 2), 1.0, ignore)
    log = await written_by_haproxy(lab)
    assert log is not None
    assert "I am up" in [line.text for line in log.lines]

    await lab.deploy(HAPROXY, QUARTER)
    await asyncio.to_thread(docker, "rm", "--force", container(session, "haproxy"))
    with pytest.raises(LabError, match="and its log with it"):
        await lab.drive(point(HAPROXY, QUARTER, 2), 1.0, ignore)
    assert await written_by_haproxy(lab) is None
