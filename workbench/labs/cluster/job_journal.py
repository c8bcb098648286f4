"""Jobs of ours in a cluster, written down before they are created, and how they are removed.

As with changed pods (`pod_journal`): a file for each lab that is open, on disk before the API
server is asked. What is found again are labels: those of the lab that was opened (`RUN`).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from workbench.domain.errors import LabError
from workbench.labs.attached.journal import Entry, OwnedJournal
from workbench.labs.cluster.cluster_api import ClusterApi
from workbench.labs.cluster.job_manifest import JOB, RUN, SESSION, label_of
from workbench.labs.cluster.pod_journal import REAP_S


@dataclass
class JobJournal(OwnedJournal):
    """Jobs of one lab, through one API server."""

    undone = "not deleted"
    suffix = ".jobs"
    headings = ("context", "kubeconfig", "run")
    context: str = ""
    kubeconfig: str = ""
    run: str = field(default_factory=lambda: secrets.token_hex(8))
    """In a label of every Job of this lab, and of no other's."""
    names: dict[str, str] = field(default_factory=dict)
    """Jobs that may be there, in the order in which they were noted: the namespace of each."""
    unsure: set[str] = field(default_factory=set)
    """Those of which no answer said whether they were created: they may yet come."""
    left: str = ""
    """What could not be deleted when something else was told, as a sentence."""

    def __post_init__(self) -> None:
        self.run = label_of(self.run)

    @property
    def labels(self) -> dict[str, str]:
        return {SESSION: label_of(self.session), RUN: self.run}

    def add(self, namespace: str, name: str) -> None:
        """A Job is about to be created. Raises `LabError` where that cannot be written down."""
        self.note({"namespace": namespace, "job": name})
        self.names[name] = namespace

    def take(self, entry: Entry) -> None:
        namespace, name = entry["namespace"], entry["job"]
        # Without labels of its own every Job of the namespace would be meant.
        if self.run and isinstance(namespace, str) and isinstance(name, str) and label_of(name):
            self.names[label_of(name)] = namespace

    @property
    def asks(self) -> str:
        return f"{self.kubeconfig} {self.context}"

    async def undo(self) -> tuple[str, ...]:
        async with ClusterApi.connected(self.context, self.kubeconfig, REAP_S) as api:
            return await self.remove(api)

    async def remove(self, api: ClusterApi, only: str = "") -> tuple[str, ...]:
        """Delete every Job that is still there, or one of them; a sentence about each.

        The journal stays until none may be left. Raises `LabError` with what is left where the
        server cannot be asked.
        """
        said: list[str] = []
        for name in list(reversed(self.names)):  # load before its guard
            if only not in ("", name):
                continue
            namespace = self.names[name]
            try:
                for job in await api.jobs(namespace, f"{RUN}={self.run},{JOB}={name}"):
                    await api.delete_job(namespace, name, str(job["metadata"]["uid"]))
                    self.unsure.discard(name)
                    said.append(f"Job {namespace}/{name} of session {self.session} was deleted")
            except LabError as error:
                raise LabError(
                    f"a Job of session {self.session} may be left in it, and cannot be deleted. "
                    f"{api.place}: {error.what}",
                    where=f"namespace {namespace}",
                    remedy="`workbench reap` deletes it as soon as that answers; what it sends "
                    "ends by itself with its drive",
                ) from error
            if name not in self.unsure:
                self.names.pop(name, None)
        if not self.names:
            self.path.unlink(missing_ok=True)
        return tuple(said)
