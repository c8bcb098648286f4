"""The Docker engine: where it is, and what goes wrong between it and us, as sentences."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from string import Template

import aiodocker
import aiohttp

from workbench.domain.campaign import Campaign
from workbench.domain.errors import LabError

CONNECT_TIMEOUT_S = 10.0

UNREACHABLE = 900
"""Status that aiodocker gives to connections that cannot be made."""

NO_ENGINE = "Start one, set DOCKER_HOST, or use `--lab sim`"


def agent_url(campaign: Campaign) -> str | None:
    """The engine that a campaign's agent names, with `${NAME}` filled in; None for the default."""
    for agent in campaign.agents:
        if agent.kind == "docker" and agent.url:
            return expand(agent.url, f"agent {agent.name}")
    return None


def expand(text: str, where: str) -> str:
    """`${NAME}` from the environment. Raises `LabError` naming a variable that is not set."""
    try:
        return Template(text).substitute(os.environ)
    except KeyError as error:
        name = error.args[0]
        raise LabError(
            f"the environment has no {name}", where=where, remedy=f"Export {name} and start again"
        ) from None


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
    `DOCKER_TLS_VERIFY` and `DOCKER_CERT_PATH` say.
    """
    timeout = aiohttp.ClientTimeout(connect=CONNECT_TIMEOUT_S)
    try:
        docker = aiodocker.Docker(url, timeout=timeout)
    except (AssertionError, ValueError, OSError) as error:
        # aiodocker asserts that it found a socket.
        reason = str(error) or "no socket of one is on this host"
        raise LabError(f"there is no Docker engine: {reason}", remedy=NO_ENGINE) from error
    try:
        await docker.version()
    except (aiodocker.DockerError, aiohttp.ClientError, OSError, TimeoutError) as error:
        await docker.close()
        raise LabError(
            f"the Docker engine does not answer: {reason_of(error)}",
            where=url or os.environ.get("DOCKER_HOST"),
            remedy=NO_ENGINE,
        ) from error
    return docker


@contextmanager
def speaking_to(where: str) -> Iterator[None]:
    """Turns what can go wrong between us and the engine into sentences."""
    try:
        yield
    except aiodocker.DockerError as error:
        if error.status == UNREACHABLE:
            raise LabError(
                "the Docker engine is gone", where=where, remedy="Start it, then resume the session"
            ) from error
        raise LabError(f"the Docker engine refused: {error.message}", where=where) from error
    except (aiohttp.ClientError, ConnectionError, TimeoutError) as error:
        raise LabError(
            f"the connection to the Docker engine broke: {reason_of(error)}",
            where=where,
            remedy="See that the engine runs, then resume the session",
        ) from error


def reason_of(error: BaseException) -> str:
    """The engine's own words, or those of the connection."""
    text = error.message if isinstance(error, aiodocker.DockerError) else error
    return str(text) or type(error).__name__
