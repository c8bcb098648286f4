"""Jobs of ours in a cluster, written down before they are created, and how they are removed.

As with changed pods (`pod_journal`): a file for each lab that is open, on disk before the API
server is asked. What is found again are labels: those of the lab that was opened (`RUN`).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from workbench.domain.errors import LabError
from workbench.labs.attached.journal import Entry, Untold, is_left, journals, new_path, note
from workbench.labs.cluster.cluster_api import ClusterApi
from workbench.labs.cluster.job_manifest import JOB, RUN, SESSION, label_of
from workbench.labs.cluster.pod_journal import REAP_S
from workbench.labs.docker.strays import Owner

SUFFIX = ".jobs"


@dataclass
class JobJournal:
    """Jobs of one lab, through one API server."""

    path: Path
    session: str
    owner: Owner
    context: str
    kubeconfig: str
    run: str = field(default_factory=lambda: secrets.token_hex(8))
    """In a label of every Job of this lab, and of no other's."""
    names: dict[str, str] = field(default_factory=dict)
    """Jobs that may be there, in the order in which they were noted: the namespace of each."""
    unsure: set[str] = field(default_factory=set)
    """Those of which no answer said whether they were created: they may yet come."""
    left: str = ""
    """What could not be deleted when something else was told, as a sentence."""

    @classmethod
    def new(cls, session: str, context: str, kubeconfig: str) -> JobJournal:
        """A journal of this process; its file is made with the first Job."""
        return cls(new_path(SUFFIX), session, Owner.this_process(), context, kubeconfig)

    @property
    def labels(self) -> dict[str, str]:
        return {SESSION: label_of(self.session), RUN: self.run}

    def note(self, namespace: str, name: str) -> None:
        """That a Job is about to be created. Raises `LabError` where it cannot be written down."""
        header = {
            "session": self.session,
            "owner": str(self.owner),
            "context": self.context,
            "kubeconfig": self.kubeconfig,
            "run": self.run,
        }
        note(self.path, header, {"namespace": namespace, "job": name})
        self.names[name] = namespace

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


def kept() -> Iterator[JobJournal]:
    """Journals that can be read, of whoever it is."""
    return journals(SUFFIX, _read)


def _read(path: Path, owner: Owner, header: Entry, entries: list[Entry]) -> JobJournal:
    session, context, kubeconfig, run = (
        str(header.get(name, "")) for name in ("session", "context", "kubeconfig", "run")
    )
    journal = JobJournal(path, session, owner, context, kubeconfig, label_of(run))
    for entry in entries:
        namespace, name = entry.get("namespace"), entry.get("job")
        # Without labels of its own every Job of the namespace would be meant.
        if journal.run and isinstance(namespace, str) and isinstance(name, str) and label_of(name):
            journal.names[label_of(name)] = namespace
    return journal


async def reap(alive: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Delete the Jobs that dead labs left; a sentence about each, and about those that cannot be
    deleted yet."""
    said: list[str] = []
    for journal in kept():
        if not is_left(journal, alive):
            continue
        try:
            async with ClusterApi.connected(journal.context, journal.kubeconfig, REAP_S) as api:
                said += await journal.remove(api)
        except LabError as error:
            said.append(f"not deleted: {error}")
    untold.add(said)
    return tuple(said)


untold = Untold()
