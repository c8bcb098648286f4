"""Where the load of attached functions comes from: a process of ours beside them, on their host.

It has a control group and a root of its own (`labs.netns`), so that its CPU is counted and its
programs need not be installed, and its host's network, so that it reaches whatever the host does
without a rule or a route being changed. A host's network is never idle: that the generator begins
to send is told by its sockets.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from workbench.domain.topology import VnfTemplate
from workbench.labs.components.wiring import SOURCE
from workbench.labs.netns.groups import Group
from workbench.labs.netns.namespaces import hold_root
from workbench.labs.netns.processes import ProcessComponent, abandon, work_folder
from workbench.measuring.records import ComponentCounters
from workbench.probes.child_ending import uncancelled
from workbench.probes.containers import ContainerProbe
from workbench.probes.process import PROC

SHARED_MEMORY = 64 << 20


class HostSource(ProcessComponent):
    """A source in the network of its host."""

    def sends(self, before: ComponentCounters) -> bool:
        del before
        return any(_has_socket(pid) for pid in self.group.processes())


def _has_socket(pid: int) -> bool:
    with suppress(OSError):
        return any(
            str(link.readlink()).startswith("socket:")
            for link in (PROC / str(pid) / "fd").iterdir()
        )
    return False


async def make_source(
    session: str, packages: Path | None, template: VnfTemplate, programs: dict[str, bytes]
) -> HostSource:
    """A source that runs and waits. Raises `LabError`, and leaves nothing then."""
    group = Group.make(session, SOURCE)
    try:
        work = work_folder(group.name)
        work.mkdir(mode=0o700)
        namespace = await hold_root(packages, work, SHARED_MEMORY, own_network=False)
    except BaseException:
        await uncancelled(abandon(group, None))
        raise
    source = HostSource(
        SOURCE,
        template,
        pid=namespace.pid,
        probe=ContainerProbe(namespace.pid, group.counters, own_network=False),
        namespace=namespace,
        group=group,
        environment={},
    )
    try:
        for path, content in programs.items():
            await source.write(path, content, "755")
        await source.start()
    except BaseException:
        await uncancelled(source.remove())
        raise
    return source
