"""The Docker engine: where it is, and what goes wrong between it and us, as sentences."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import aiodocker
import aiohttp

from workbench.domain.campaign import Campaign
from workbench.domain.errors import LabError, LabGone
from workbench.labs.components.environment import expand

CONNECT_TIMEOUT_S = 10.0

UNREACHABLE = 900
"""Status that aiodocker gives to connections that cannot be made."""

UNANSWERED = (aiodocker.DockerError, aiohttp.ClientError, OSError, TimeoutError)
"""How it shows that an engine does not answer."""

NO_ENGINE = "Start one, set DOCKER_HOST, or use the simulated lab (--lab sim)"
NO_SSH = (
    "Try `ssh HOST docker version`: the key, the known host and the docker command must be there"
)
NO_HOST_KEY = "Connect once with ssh, so that the host is known"


def agent_url(campaign: Campaign) -> str | None:
    """The engine that a campaign's agent names, with `${NAME}` filled in; None for the default."""
    for agent in campaign.agents:
        if agent.kind == "docker" and agent.url:
            return expand(agent.url, f"agent {agent.name}")
    return None


@asynccontextmanager
async def connect(url: str | None = None) -> AsyncIterator[aiodocker.Docker]:
    """An engine that has answered. Raises `LabError` where there is none."""
    docker = await dial(url)
    try:
        yield docker
    finally:
        await docker.close()


async def dial(url: str | None = None) -> aiodocker.Docker:
    """As `connect`, for a caller that closes it.

    Without `url` it is the Docker context's engine, `DOCKER_HOST` or the local socket; TLS as
    `DOCKER_TLS_VERIFY` and `DOCKER_CERT_PATH` say. `ssh://` goes by the user's keys and known
    hosts, and needs the docker command over there.
    """
    timeout = aiohttp.ClientTimeout(connect=CONNECT_TIMEOUT_S)
    try:
        docker = aiodocker.Docker(url, timeout=timeout)
    except (AssertionError, ValueError, OSError, aiodocker.DockerError) as error:
        # aiodocker asserts that it found a socket, and wants certificates or known hosts to exist.
        reason = reason_of(error) or "no socket of one is on this host"
        raise LabError(
            f"there is no Docker engine: {reason}",
            where=_asked(url),
            remedy=NO_HOST_KEY if _by_ssh(url) else NO_ENGINE,
        ) from error
    if hasattr(docker.connector, "_clean_environment"):  # by ssh, whose import takes its time
        # aiodocker would offer the whole environment to the other host, secrets included.
        docker.connector._clean_environment = dict
    try:
        await docker.version()
    except BaseException as error:  # also who gives up waiting leaves no connection
        await docker.close()
        if not isinstance(error, UNANSWERED):
            raise
        raise LabError(
            f"the Docker engine does not answer: {reason_of(error)}",
            where=_asked(url),
            remedy=NO_SSH if _by_ssh(url) else NO_ENGINE,
        ) from error
    return docker


def _asked(url: str | None) -> str | None:
    return url or os.environ.get("DOCKER_HOST")


def _by_ssh(url: str | None) -> bool:
    return (_asked(url) or "").startswith("ssh://")


@contextmanager
def speaking_to(where: str) -> Iterator[None]:
    """Turns what can go wrong between us and the engine into sentences."""
    try:
        yield
    except aiodocker.DockerError as error:
        if error.status == UNREACHABLE:
            raise LabGone(
                "the Docker engine is gone", where=where, remedy="Start it, then resume the session"
            ) from error
        raise LabError(f"the Docker engine refused: {error.message}", where=where) from error
    except (aiohttp.ClientError, ConnectionError, TimeoutError) as error:
        raise LabGone(
            f"the connection to the Docker engine broke: {reason_of(error)}",
            where=where,
            remedy="See that the engine runs, then resume the session",
        ) from error


def reason_of(error: BaseException) -> str:
    """The engine's own words, or those of the connection."""
    text = error.message if isinstance(error, aiodocker.DockerError) else error
    return str(text) or type(error).__name__
