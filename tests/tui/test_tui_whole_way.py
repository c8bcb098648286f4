"""The whole way by keys alone in a real terminal, against the simulated lab."""

from __future__ import annotations

import host_needs
import pytest
import whole_way_keys as way
from driving import Workbench
from terminal import Terminal


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (160, 50)])
def test_from_an_empty_workspace_to_a_deployment_by_keys_alone(
    workbench: Workbench, full_length: bool, columns: int, rows: int
) -> None:
    if (columns, rows) != (80, 24) and not full_length:
        pytest.skip("the same at another size; run by make accept")
    if not full_length and all(map(host_needs.is_there, ("ssh", "sftp"))):
        pytest.skip("the same keys over SSH (ssh/test_ssh_whole_way.py); run by make accept")
    screen = Terminal(workbench, columns=columns, rows=rows)
    screen.until("Sessions")
    way.build(screen)
    way.choose(screen)
    way.await_breakpoints(screen)
    way.compare(screen)
    way.canary(screen)
    way.accept(screen)
    way.recommend(screen)
    way.close(screen)

    again = Terminal(workbench, columns=columns, rows=rows)
    way.find_again(again)
    way.close(again)

    stored = workbench.json("show", way.SESSION, "--json")
    assert stored["state"] == "finished"
    kustomization, *patches = way.written(workbench.root / "exports" / f"{way.SESSION}-r1")
    assert kustomization["kind"] == "Component"
    assert {patch["metadata"]["name"] for patch in patches} == {"haproxy", "tinyproxy"}
    for patch in patches:
        (container,) = patch["spec"]["template"]["spec"]["containers"]
        assert container["resources"]["limits"]["cpu"] in ("250m", "500m")
