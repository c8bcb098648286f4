"""Workers of lab hosts as jobs of Slurm, which dask-jobqueue writes and submits.

A job's worker reads its certificates from files, since a job has no standard input: they lie in the
fleet's folder, which must be on a file system that the nodes share, for their owner's eyes.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from workbench import files
from workbench.domain.counts import counted
from workbench.domain.errors import UsageError
from workbench.domain.fleets import LabHost
from workbench.fleet.fleet_standing import FleetError, FleetFolder
from workbench.fleet.security import Secrets
from workbench.fleet.tasks import PRELOAD
from workbench.log import logger

if TYPE_CHECKING:
    from dask_jobqueue.slurm import SLURMJob
    from distributed import Security

SUBMITTING_S = 60.0
ASKING_S = 20.0
ALONE_S = 60
"""After that a worker ends that finds no scheduler, and its job with it."""
ENDED = (
    "COMPLETED", "COMPLETING", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY",
    "BOOT_FAIL", "LAUNCH_FAILED", "DEADLINE", "PREEMPTED", "REVOKED",
)  # fmt: skip
"""States of a job, as `squeue` says them, in which it comes to nothing any more."""
LAB_WORKER = ("--resources", "lab=1", "--preload", PRELOAD, "--no-dashboard")
NO_ANSWER = -1
UNKNOWN_AFTER = 3
"""Answers in a row that do not know a job, after which it is taken for ended: Slurm may be starting
again."""

log = logger("fleet")


@dataclass(frozen=True)
class SubmittedJob:
    """A job that Slurm has taken."""

    number: str

    async def state(self) -> str | None:
        """As `squeue` says it; empty where Slurm knows it no more, None where Slurm does not
        answer."""
        jobs = await _jobs_there()
        return None if jobs is None else jobs.get(self.number, ("", ""))[0]


def must_submit(hosts: Sequence[LabHost]) -> None:
    """Raise `UsageError` where there are hosts of Slurm, and nothing here submits jobs."""
    if not any(host.kind == "slurm" for host in hosts):
        return
    if find_spec("dask_jobqueue") is None:
        raise UsageError(
            "jobs of Slurm are submitted by the package 'dask-jobqueue', which is not installed",
            remedy="Install it with `pip install 'vnf-workbench[fleet,slurm]'`",
        )
    if shutil.which("sbatch") is None:
        raise UsageError(
            "this host has no sbatch, which submits jobs to Slurm",
            remedy="Install slurm-client, and give it the cluster's slurm.conf",
        )


@asynccontextmanager
async def submitted(
    host: LabHost, scheduler: str, folder: FleetFolder, secrets: Secrets, ports: str = ""
) -> AsyncIterator[SubmittedJob]:
    """A job that is there while the body runs; its worker listens at one of `ports`, as Dask takes
    them (empty: any).

    Its name is on disk before Slurm is asked for it, and its number once that is known: whoever
    ends this, in the middle of it or by a kill of this process, leaves what can be cancelled.

    Raises
    ------
    FleetError
        Slurm does not take it, or does not say whether one of before is cancelled.
    """
    await cancel_left(folder, host.name)
    name = job_name(folder, host)
    kept = _kept(folder, host.name)
    try:
        try:
            job = _job(host, scheduler, folder, secrets, name, ports)
            files.write_own(kept, name.encode())
            async with asyncio.timeout(SUBMITTING_S):
                await job.start()
        except (RuntimeError, ValueError, OSError) as error:
            lines = [line for line in str(error).splitlines() if line.startswith("sbatch: ")]
            why = (lines or [str(error) or f"no answer within {SUBMITTING_S:g} s"])[-1]
            raise FleetError(f"Slurm does not take its job: {why}", where=host.name) from None
        files.write_own(kept, str(job.job_id).encode())
        yield SubmittedJob(str(job.job_id))
    finally:
        try:
            await cancel_left(folder, host.name)  # one that was not taken may have been
        except FleetError as error:  # told by whoever looks for it next
            log.warning("job not cancelled", host=host.name, why=str(error))


async def cancel_left(folder: FleetFolder, name: str = "*") -> None:
    """Cancel the job of a host, or of all at once, that this or an earlier keeper has submitted.

    Raises `FleetError`, which names them, where Slurm does not say within `ASKING_S` that it has
    taken that: whoever comes next tries again.
    """
    left = {path: _text(path) for path in sorted(_kept(folder, name).parent.glob(f"{name}.job"))}
    numbers = [text for text in left.values() if text and text.isdecimal()]
    names = [text for text in left.values() if text and not text.isdecimal()]
    asked = [["scancel", "--me", f"--name={each}"] for each in names]
    asked += [["scancel", *numbers]] if numbers else []
    codes = [code for code, _ in await asyncio.gather(*map(_said, asked))]
    silent = {path: "one that cannot be read" for path, text in left.items() if text is None}
    if names or any(codes):  # Slurm is not there, has a job no more, or may take one just now
        jobs = await _jobs_there()
        there = [(job, its) for job, (state, its) in (jobs or {}).items() if state not in ENDED]
        known = {word for words in there for word in words}
        cancelled = set() if codes[-1] else set(numbers)
        silent |= {
            path: text
            for path, text in left.items()
            if text and text not in cancelled and (jobs is None or text in known)
        }
    for path in left.keys() - silent.keys():
        with suppress(OSError):
            path.unlink()
    if silent:
        told = ", ".join(f"{text} of {path.stem}" for path, text in silent.items())
        raise FleetError(
            f"Slurm did not say that it cancels {counted(len(silent), 'job')} of the fleet: {told}",
            where=str(folder.root),
            remedy="See with `squeue --me` which are there, and end them with `scancel`",
        )


async def _jobs_there() -> dict[str, tuple[str, str]] | None:
    """State and name of this user's jobs that Slurm knows, by number; None where it does not
    answer."""
    asked = ("--noheader", "--states=all", f"--user={os.getuid()}", "--format=%i %T %j")
    code, said = await _said(["squeue", *asked])
    if code != 0:
        return None
    lines = [line.split(maxsplit=2) for line in said.splitlines()]
    return {line[0]: (line[1], line[2]) for line in lines if len(line) == 3}


def _kept(folder: FleetFolder, host: str) -> Path:
    """What is known of a host's job: its number, before that its name."""
    return folder.root / "jobs" / f"{host}.job"


def _text(path: Path) -> str | None:
    """What is known of a job: its number or name; empty where it was cancelled meanwhile, None
    where its file cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except FileNotFoundError:
        return ""
    except OSError:
        return None


def remove_certificates(folder: FleetFolder) -> None:
    """Those that jobs read; they end with the fleet."""
    shutil.rmtree(folder.root / "tls", ignore_errors=True)


def job_name(folder: FleetFolder, host: LabHost) -> str:
    """Of one job and no other: jobs are cancelled by it, and fleets of the same user may have hosts
    of the same name."""
    fleet = re.sub(r"[^A-Za-z0-9_.-]", "-", folder.root.name)[:40]
    return f"workbench-{fleet}-{host.name}-{token_hex(4)}"


def _job_kind() -> type[SLURMJob]:
    """In the main thread: as it is imported, dask-jobqueue takes signals for itself, and here they
    are given back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        from dask_jobqueue import slurm
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

    class EndedJob(slurm.SLURMJob):  # type: ignore[misc]
        """One whose `sbatch` ends with whoever waits for it; else it would be taken by Slurm once
        nobody knows of it."""

        @staticmethod
        async def _call(cmd: Sequence[str], **_: object) -> str:
            code, out, error = await _run(cmd)
            if code != 0:
                raise RuntimeError(error.strip() or out.strip() or f"sbatch ended with {code}")
            return out

    return EndedJob


def _job(
    host: LabHost, scheduler: str, folder: FleetFolder, secrets: Secrets, name: str, ports: str
) -> SLURMJob:
    asked = host.job
    assert asked is not None
    files.make_folder(folder.root / "jobs")
    place = shlex.quote(f"{host.folder}/{host.name}")
    listening = ["--worker-port", ports] if ports else []
    return _job_kind()(
        scheduler=scheduler,
        name=host.name,
        queue=asked.queue or None,
        walltime=asked.walltime or None,
        cores=1,  # threads of the worker: it measures one thing at a time
        processes=1,
        job_cpu=asked.cores,
        memory=asked.memory,
        nanny=False,
        security=_security(folder, secrets),
        death_timeout=ALONE_S,
        local_directory="dask",  # below its workspace
        python=shlex.quote(host.python),
        job_name=name,
        log_directory=str(folder.root / "jobs"),
        worker_extra_args=[*LAB_WORKER, *listening],
        job_script_prologue=[
            "umask 077",
            '[ -d "$XDG_RUNTIME_DIR" ] || unset XDG_RUNTIME_DIR',  # of where it was submitted
            f"cd && mkdir -p {place} && cd {place} && export WORKBENCH_WORKSPACE=$PWD",
        ],
        job_extra_directives=list(asked.directives),
    )


def _security(folder: FleetFolder, secrets: Secrets) -> Security:
    """The same certificates as files: their names stand in a job, what is in them does not."""
    from distributed import Security

    there = folder.root / "tls"
    files.make_folder(there)
    texts = {
        "authority.pem": secrets.authority or secrets.certificate,
        "certificate.pem": secrets.certificate,
        "key.pem": secrets.key,
    }
    for name, text in texts.items():
        with open(there / name, "w", encoding="utf-8", opener=files.opener) as file:
            file.write(text)
    return Security(
        require_encryption=True,
        tls_ca_file=str(there / "authority.pem"),
        tls_worker_cert=str(there / "certificate.pem"),
        tls_worker_key=str(there / "key.pem"),
    )


async def _said(words: Sequence[str]) -> tuple[int, str]:
    """Exit code and output of a command of Slurm; `NO_ANSWER` where it takes longer than
    `ASKING_S`, or is not there."""
    try:
        async with asyncio.timeout(ASKING_S):
            code, out, _ = await _run(words)
    except TimeoutError:
        return NO_ANSWER, ""
    except OSError as error:
        log.warning("a program of Slurm cannot be run", program=words[0], why=str(error))
        return NO_ANSWER, ""
    return code, out


async def _run(words: Sequence[str]) -> tuple[int, str, str]:
    """Exit code, output and errors of a program, which is ended where nobody waits for it."""
    process = await asyncio.create_subprocess_exec(
        *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        out, error = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()  # the loop reaps it
    return process.returncode or 0, out.decode(errors="replace"), error.decode(errors="replace")
