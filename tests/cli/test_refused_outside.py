"""What the system or somebody's file refuses is told in a sentence, as wrong use or a failure."""

from __future__ import annotations

from pathlib import Path

import asyncssh
import pytest
from driving import Workbench

MAPPING = """\
kind: mapping
columns: {target: function, wl: clients, throughput_rps: rps}
load: {kind: closed}
"""
NOTIFY = '[[notify]]\nwebhook = "http://[::1"\n'


@pytest.fixture
def prepared(workbench: Workbench) -> Workbench:
    """What the commands below name lies in its folder."""
    root = workbench.root
    public = asyncssh.generate_private_key("ssh-ed25519").export_public_key()
    (root / "keys").write_bytes(public)
    endless = '"' + "x" * 200_000
    (root / "endless.csv").write_text(f"function,clients,rps\n{endless},1,40\n", encoding="utf-8")
    (root / "mapping.yaml").write_text(MAPPING, encoding="utf-8")
    config = root / "config" / "vnf-workbench"
    config.mkdir(parents=True)
    (config / "notify.toml").write_text(NOTIFY, encoding="utf-8")
    workbench.variables["XDG_CONFIG_HOME"] = str(config.parent)
    return workbench


@pytest.mark.parametrize(
    ("command", "phrase"),
    [
        ("serve --authorized-keys keys --host 192.168..1 --port 0", "no host can be called so"),
        ("serve --http 192.168..1:0 --insist", "no host can be called so"),
        ("web --host 192.168..1 --port 0 --insist", "no host can be called so"),
        ("import endless.csv --mapping mapping.yaml", "field larger than field limit"),
        ("grafana --output /sys/dashboard.json", "cannot be written: Permission denied"),
        (f"query --from {'a' * 300}", "cannot be read"),
        ("notify", "has a webhook that is no URL"),
    ],
    ids=lambda value: value[:20],
)
def test_it_is_a_sentence(prepared: Workbench, command: str, phrase: str) -> None:
    done = prepared.run(*command.split(), expect=2)
    said = " ".join(done.stderr.split())
    assert phrase in said
    assert "Unexpected" not in said
    assert not list(Path(prepared.root, "templates").rglob("*.yaml"))
