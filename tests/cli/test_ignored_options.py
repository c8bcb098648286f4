"""An option that nothing would heed is refused: who gave it expects something of it."""

from __future__ import annotations

import pytest
from driving import Workbench


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("compare demo-real chain-real --shared-cores", "--shared-cores"),
        ("models demo-real --chain tinyproxy-haproxy", "--chain"),
        ("models demo-real --why because", "--why"),
        ("models demo-real --rollback 0 --target haproxy --by configuration", "--target, --by"),
        ("models demo-real --rollback 0 --methods short", "--methods"),
        ("models demo-real --rollback 0 --fleet hosts.yaml", "--fleet"),
        ("serve --http 127.0.0.1:0 --idle 1h --connections 3", "--connections, --idle"),
        ("serve --http 127.0.0.1:0 --host 0.0.0.0 --port 8000", "--host, --port"),
        ("show demo-real --plot --size 80x24", "--plot, --size"),
        ("show demo-real --theme dark --screen models", "--screen, --theme"),
        ("canary demo-real --why because", "--why"),
    ],
)
def test_it_is_refused_by_its_name(workbench: Workbench, command: str, named: str) -> None:
    said = " ".join(workbench.run(*command.split(), expect=2).stderr.split())
    assert named in said
    assert "would be ignored" in said or "Give two sessions" in said
