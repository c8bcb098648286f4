"""What every component of every lab finds around it: variables, kernel parameters."""

from __future__ import annotations

import os
from string import Template

from workbench.domain.errors import LabError

SYSCTLS = {
    # A closing proxy spends a local port per request and gets it back after a minute.
    "net.ipv4.ip_local_port_range": "10000 65000",
    # Hosts that default to BBR pace the lab's own links: after a delayed acknowledgement it takes
    # them for slow, and at 500-3000 requests/s over haproxy 9 % of the answers came after 40-90 ms
    # with both ends idle, 0.05 % with Reno. Reno is the one that every namespace may choose.
    "net.ipv4.tcp_congestion_control": "reno",
}
FORWARDING = {"net.ipv4.ip_forward": "1"}


def expand(text: str, where: str) -> str:
    """`${NAME}` from the environment. Raises `LabError` naming a variable that is not set."""
    try:
        return Template(text).substitute(os.environ)
    except KeyError as error:
        name = error.args[0]
        raise LabError(
            f"the environment has no {name}", where=where, remedy=f"Export {name} and start again"
        ) from None
