"""The base image as it is made where no registry answers; whatever the engine holds."""

from __future__ import annotations

import subprocess

import host_needs
import pytest

from workbench.labs.docker import debian_tree
from workbench.labs.docker.base_image import SUITE
from workbench.labs.docker.engine import connect
from workbench.labs.programs import Listener

pytestmark = [pytest.mark.docker, pytest.mark.unhurried]

REPOSITORY, TAG = "vnf-workbench/test-base", "made"
LOOK = """
set -e
dpkg --audit
apt-get check -qq
stat -c '%a %u' /tmp /etc/shadow /usr/bin/passwd
readlink /bin /usr/bin/awk
ls /var/cache/apt/archives/*.deb /target 2>/dev/null || true
awk 'BEGIN { print "runs" }'
"""


async def test_a_base_made_of_packages_is_a_whole_system() -> None:
    if lacking := debian_tree.lacking(SUITE):
        host_needs.missing(host_needs.BASE_IMAGE, lacking)
    said: list[str] = []
    async with connect() as engine:
        await debian_tree.make(engine, SUITE, REPOSITORY, TAG, Listener(said.append, print))
    try:
        seen = subprocess.run(
            ("docker", "run", "--rm", "--network=none", f"{REPOSITORY}:{TAG}", "sh", "-c", LOOK),
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        subprocess.run(("docker", "rmi", f"{REPOSITORY}:{TAG}"), check=True, capture_output=True)
    assert seen.stdout.split("\n")[:-1] == [
        "1777 0",
        "640 0",
        "4755 0",
        "usr/bin",
        "/etc/alternatives/awk",
        "runs",
    ]
    assert any("unpacking" in line for line in said)
