"""Addresses of a network of namespaces, over more deployments than it has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from workbench.labs.netns import namespaces


async def test_addresses_are_given_again_and_none_is_the_network_s_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The 85th deployment of three components got one that `ip` refuses."""

    async def nothing(*commands: str) -> None:
        """No namespace is there."""

    monkeypatch.setattr(namespaces, "set_links", nothing)
    bridge = namespaces.Bridge(cast(Any, SimpleNamespace(network="bridge")), 1)
    component = cast(Any, SimpleNamespace(pid=1, network="component"))
    given = [await bridge.connect(component, "eth0") for _ in range(600)]
    assert given[:2] == ["10.77.1.2", "10.77.1.3"]
    assert {address.rpartition(".")[0] for address in given} == {"10.77.1"}
    assert {int(address.rpartition(".")[2]) for address in given} == set(range(2, 252))
