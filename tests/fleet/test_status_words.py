"""What `fleet status` and `ls --fleet` say: who measures what for whom, and what has changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_late_hosts import orders_of

from workbench.cli import lab_fleet
from workbench.domain.errors import UsageError
from workbench.domain.fleets import Fleet, LabHost
from workbench.domain.session_tables import sessions_by_host
from workbench.fleet import fleet_lifecycle
from workbench.fleet.fleet_standing import FleetStanding
from workbench.fleet.host_engine import HostEngine
from workbench.fleet.security import Secrets
from workbench.paths import Workspace, shipped
from workbench.store import catalogue

FLEET = Fleet("hosts", (LabHost("a", "simulated"), LabHost("b", "simulated")), file="my hosts.yaml")


async def test_a_host_says_what_it_measures_for_which_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = next(iter(orders_of(tmp_path, "v1")))
    engine: Any = None
    host, said = HostEngine(engine, FLEET.hosts[0]), list[str]()

    async def measured(_: object) -> Any:
        said.append(host.at_what())

    monkeypatch.setattr(host, "_measured", measured)
    await host.measure(order)
    campaign = order.shard.campaign.name
    assert said == [f"{order.shard.target} (2 configurations) of {campaign}, session {order.run}"]


def test_a_hosts_file_that_has_changed_since_is_said_and_the_command_names_it() -> None:
    a, _ = FLEET.hosts
    assert not list(lab_fleet._changed(FLEET, replace(FLEET, file="other.yaml")))
    now = replace(FLEET, hosts=(replace(a, speed=2.0), LabHost("c", "simulated")))
    (said,) = lab_fleet._changed(FLEET, now)
    assert "(c added; b removed; a changed)" in said
    assert "`workbench fleet down 'my hosts.yaml'`" in said
    standing = FleetStanding(FLEET, 1, "tls://a:1", Secrets("", ""))
    with pytest.raises(UsageError, match="is up with another hosts file") as refused:
        fleet_lifecycle._must_suit(standing, now)
    assert "with `workbench fleet down 'my hosts.yaml'`" in str(refused.value)


def test_a_damaged_session_widens_no_table(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.sessions.mkdir()
    (workspace.sessions / "broken.duckdb").write_bytes(b"no session")
    found = catalogue.list_sessions(workspace, shipped("sessions"))
    listed = tuple(one for one in found if one.kind == "session")
    (row,) = sessions_by_host({"a": listed}).texts
    assert row[3] == "cannot be read"
    assert listed[0].troubles == ("cannot be read: is not a session file",)
