"""What tests need of the host: skipped by name where it is missing, with what brings it.

`@pytest.mark.needs("ssh", "sftp")` names programs of the table below; `@pytest.mark.docker` is a
Docker engine that answers. WORKBENCH_REQUIRE turns what it names ("docker,ssh"), or all of it
("all"), from a reason to skip into a failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache

import pytest

DOCKER, BASE_IMAGE = "docker", "base-image"
PACKAGES = {
    DOCKER: "docker.io",
    BASE_IMAGE: "apt",
    "apt-get": "apt",
    "curl": "curl",
    "dockerd": "docker.io",
    "flock": "util-linux",
    "ip": "iproute2",
    "libfaketime": "libfaketime",
    "libvirtd": "libvirt-daemon",
    "luajit": "luajit",
    "make": "make",
    "nft": "nftables",
    "perf": "linux-perf",
    "munged": "munge",
    "nsenter": "util-linux",
    "prometheus": "prometheus",
    "prometheus-node-exporter": "prometheus-node-exporter",
    "prometheus-process-exporter": "prometheus-process-exporter",
    "promtool": "prometheus",
    "qemu-system-x86_64": "qemu-system-x86",
    "dpkg-deb": "dpkg",
    "git": "git",
    "sbatch": "slurm-client",
    "sftp": "openssh-client",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "sshd": "openssh-server",
    "unshare": "util-linux",
    "virsh": "libvirt-clients",
}
"""The Debian package that brings it."""
PLACES = os.pathsep.join(("/usr/local/sbin", "/usr/sbin", "/sbin"))
"""Where servers lie, which are not on everybody's PATH."""
VARIABLE = "WORKBENCH_REQUIRE"


def required(environment: Mapping[str, str] = os.environ) -> frozenset[str]:
    """What a missing part of the host is a failure for."""
    named = frozenset(filter(None, environment.get(VARIABLE, "").replace(" ", ",").split(",")))
    if unknown := named - PACKAGES.keys() - {"all"}:
        raise pytest.UsageError(
            f"{VARIABLE} names {', '.join(sorted(unknown))}; known are all, "
            f"{', '.join(sorted(PACKAGES))}"
        )
    return frozenset(PACKAGES) if "all" in named else named


@cache
def is_there(need: str) -> bool:
    """Whether the host has it."""
    if need == DOCKER:
        return _docker_answers()
    return shutil.which(need) is not None or shutil.which(need, path=PLACES) is not None


def _docker_answers() -> bool:
    try:
        done = subprocess.run(["docker", "version"], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def demand(item: pytest.Item) -> None:
    """Skip a test, or fail it, that needs what this host has not."""
    for need in needs_of(item):
        if not is_there(need):
            missing(need, "a Docker engine, and none answers" if need == DOCKER else need)


def needs_of(item: pytest.Item) -> list[str]:
    named = [need for mark in item.iter_markers("needs") for need in mark.args]
    return [*([DOCKER] if item.get_closest_marker("docker") else []), *named]


def missing(need: str, what: str) -> None:
    """Skip the test that runs, or fail it where the host must have that."""
    reason = f"needs {what} (Debian package {PACKAGES[need]})"
    if need in required():
        pytest.fail(f"{reason}, which {VARIABLE} says is there", pytrace=False)
    pytest.skip(reason)


def no_base_image(error: Exception) -> None:
    """Skip what needs images where the engine has no base image and none can be made."""
    if "base image" in str(error):
        missing(BASE_IMAGE, f"a base image: {error}")
