"""What was changed of pods, written down before it is changed, and the way back.

As the journal of control groups (`labs.attached.journal`): a file for each lab that is open, a line
for every change, on disk before the API server is asked. Whoever finds the file of a dead process
puts everything back. No credential is in it: the way to the server is a kubeconfig's path and
context.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from workbench.domain.errors import LabError
from workbench.labs.attached.journal import AGAIN, Entry, OwnedJournal
from workbench.labs.cluster.cluster_api import CONFLICT, NOT_FOUND, ApiRefused, ClusterApi, Json
from workbench.labs.cluster.cpu_amounts import CpuGiven
from workbench.labs.cluster.found_pod import FoundPod, spec_of
from workbench.labs.cluster.resizing import answer_of, ask_for

REAP_S = 5.0
"""How long the server of a dead session's pods is tried: an engine that starts does not wait."""


@dataclass(frozen=True)
class PodContainer:
    """Whose CPU was changed."""

    namespace: str
    pod: str
    uid: str
    container: str

    @property
    def place(self) -> str:
        return f"pod {self.namespace}/{self.pod}, container {self.container}"


@dataclass
class PodJournal(OwnedJournal):
    """Changes of one lab, through one API server."""

    suffix = ".pods"
    headings = ("context", "kubeconfig")
    context: str = ""
    kubeconfig: str = ""
    before: dict[PodContainer, CpuGiven] = field(default_factory=dict)
    ours: dict[PodContainer, list[CpuGiven]] = field(default_factory=dict)
    """Everything that was asked for."""

    async def change(self, api: ClusterApi, found: FoundPod, cpu: CpuGiven) -> Json:
        """Ask for another CPU of a container, after noting what it had; the pod as it is then.

        Raises `LabError`.
        """
        whose = PodContainer(found.namespace, found.pod, found.uid, found.container)
        before = self.before.setdefault(whose, found.cpu)
        entry = {
            "namespace": whose.namespace,
            "pod": whose.pod,
            "uid": whose.uid,
            "container": whose.container,
            "before": [before.limit, before.request],
            "ours": [cpu.limit, cpu.request],
        }
        self.note(entry)
        self.ours.setdefault(whose, []).append(cpu)
        return await ask_for(api, whose.namespace, whose.pod, whose.uid, whose.container, cpu)

    def take(self, entry: Entry) -> None:
        whose = PodContainer(
            *(str(entry[name]) for name in ("namespace", "pod", "uid", "container"))
        )
        before, ours = _given(entry["before"]), _given(entry["ours"])
        self.before.setdefault(whose, before)
        self.ours.setdefault(whose, []).append(ours)

    @property
    def asks(self) -> str:
        return f"{self.kubeconfig} {self.context}"

    async def undo(self) -> tuple[str, ...]:
        async with ClusterApi.connected(self.context, self.kubeconfig, REAP_S) as api:
            return await self.restore(api)

    async def restore(self, api: ClusterApi) -> tuple[str, ...]:
        """Ask for what was before; a sentence about every container that had another CPU.

        What somebody else set meanwhile stays as they set it, and is named. Raises `LabError`
        with what is left changed where the server cannot be asked, or refuses, after all others
        have been put back; the journal stays then.
        """
        said: list[str] = []
        first: LabError | None = None
        for whose, before in list(self.before.items()):
            try:
                said.append(await self._put_back(api, whose, before))
            except LabError as error:
                kind = type(error) if not isinstance(error, ApiRefused) else LabError
                left = kind(
                    f"the CPU of its container {whose.container} is left changed: {before} before, "
                    f"{self.ours[whose][-1]} since. {api.place}: {error.what}",
                    where=f"pod {whose.namespace}/{whose.pod}",
                    remedy="`workbench reap` puts it back as soon as that answers",
                )
                left.__cause__ = error
                first = first or left
                continue
            del self.before[whose]
        if first is not None:
            raise first
        self.path.unlink(missing_ok=True)
        self.ours = {}
        return tuple(filter(None, said))

    async def _put_back(self, api: ClusterApi, whose: PodContainer, before: CpuGiven) -> str:
        try:
            pod = await api.pod(whose.namespace, whose.pod)
        except ApiRefused as error:
            if error.status != NOT_FOUND:
                raise
            return f"{whose.place} is gone, and the CPU of this session with it"
        if pod["metadata"].get("uid") != whose.uid:
            return f"{whose.place} was made again, without the CPU of this session"
        now = CpuGiven.of(spec_of(pod, whose.container).get("resources"))
        if now.same(before):
            return ""
        if not any(now.same(one) for one in self.ours.get(whose, ())):
            return f"{whose.place}: somebody set its CPU to {now} meanwhile; that stays"
        try:
            after = await ask_for(
                api, whose.namespace, whose.pod, whose.uid, whose.container, before
            )
        except ApiRefused as error:
            if error.status not in (NOT_FOUND, CONFLICT):
                raise
            return f"{whose.place} was made again, without the CPU of this session"
        return self._told(after, whose, before)

    def _told(self, after: Json, whose: PodContainer, before: CpuGiven) -> str:
        kept = CpuGiven.of(spec_of(after, whose.container).get("resources"))
        if not kept.same(before):
            raise LabError(f"the server keeps {kept} where {before} was asked for")
        answer = answer_of(after, whose.container, before)
        if answer.state in ("Deferred", "Infeasible", "Error"):
            return (
                f"{whose.place}: {before} is asked for again, and the kubelet says {answer.clause}"
            )
        return f"{whose.place}: its CPU is {before}{AGAIN}"


def _given(pair: Any) -> CpuGiven:
    limit, request = pair
    given = CpuGiven(str(limit), str(request))
    given.same(given)  # raises for what is no amount
    return given


def in_use(whose: FoundPod) -> PodJournal | None:
    """The journal of another lab that lives and has changed that container."""
    key = PodContainer(whose.namespace, whose.pod, whose.uid, whose.container)
    return next(
        (one for one in PodJournal.kept() if key in one.before and one.owner.may_live()), None
    )
